"""EventBridge, every minute → `scheduler.insight.scale`."""

import secrets
from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.insight.scale import scale
from scheduler.model import ids

NOTED = 10  # AWS starts this number of executors without delay, so fewer are not worth a metric


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run scale once. It does not read the event: the clock decides."""
    result = scale(_runtime.ports(), random=secrets.randbits(ids.RANDOM_BITS))
    logger.info("scale", extra=asdict(result))
    if result.required >= NOTED:
        emit("scale", {metrics.REQUIRED: result.required})
    return asdict(result)
