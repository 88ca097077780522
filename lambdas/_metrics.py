"""Metrics as EMF log lines: CloudWatch extracts them from the log, without a call."""

from collections.abc import Mapping, Sequence

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from scheduler.insight.metrics import BY_NAME, NAMESPACE


def emit(service: str, values: Mapping[str, float | Sequence[float]]) -> None:
    """Emit the values of each name, with one dimension: the verb that reports them. Writes a log line per hundred values, none for none."""
    line = EphemeralMetrics(namespace=NAMESPACE, service=service)
    added = False
    for name, value in values.items():
        for each in value if isinstance(value, Sequence) else [value]:
            line.add_metric(name=name, unit=MetricUnit(BY_NAME[name].unit), value=each)
            added = True
    if added:
        line.flush_metrics()
