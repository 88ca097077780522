"""Metrics as EMF log lines: CloudWatch makes them from the log, no call is made."""

from collections.abc import Mapping, Sequence

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from scheduler.insight.metrics import BY_NAME, NAMESPACE


def emit(service: str, values: Mapping[str, float | Sequence[float]]) -> None:
    """Emit each value, or all of several, under its name, with the one dimension that says which verb speaks: a line of log, or one for
    each hundred values. Of no values nothing is emitted."""
    line = EphemeralMetrics(namespace=NAMESPACE, service=service)
    told = False
    for name, value in values.items():
        for each in value if isinstance(value, Sequence) else [value]:
            line.add_metric(name=name, unit=MetricUnit(BY_NAME[name].unit), value=each)
            told = True
    if told:
        line.flush_metrics()
