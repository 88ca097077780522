"""Metrics as EMF log lines: CloudWatch extracts them from the log, so the function makes no call."""

import os
from collections.abc import Mapping, Sequence

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from scheduler.insight.metrics import BY_NAME, NAMESPACE

VARIABLE = "POWERTOOLS_METRICS_NAMESPACE"  # a function's environment has it; a handler that a tool calls in its own process needs none


def emit(service: str, values: Mapping[str, float | Sequence[float]]) -> None:
    """Emit the value or values of each metric, with the function (`service`) as the only dimension.

    Their namespace is that of the stage, from the environment. It writes one log line for each hundred values, and none without values.
    """
    line = EphemeralMetrics(namespace=os.environ.get(VARIABLE, NAMESPACE), service=service)
    for name, value in values.items():
        for each in value if isinstance(value, Sequence) else [value]:
            line.add_metric(name=name, unit=MetricUnit(BY_NAME[name].unit), value=each)
    if line.metric_set:  # the library writes a full line by itself
        line.flush_metrics()
