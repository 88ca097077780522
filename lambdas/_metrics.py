"""Metrics as EMF log lines: CloudWatch makes them from the log, no call is made."""

from collections.abc import Mapping

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from scheduler.metrics import NAMESPACE, SERVICE


def emit(service: str, values: Mapping[str, float], unit: str = "Count") -> None:
    """Emit each value under its name, with the one dimension that says which verb speaks."""
    for name, value in values.items():
        with single_metric(name=name, unit=MetricUnit(unit), value=value, namespace=NAMESPACE) as metric:
            metric.add_dimension(SERVICE, service)
