"""An asynchronous invocation by tick → `scheduler.pipeline.dispatch`; by tick or api, for the overflow → `scheduler.pipeline.overflow`."""

from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.pipeline.dispatch import dispatch
from scheduler.pipeline.overflow import OVERFLOW, overflow
from scheduler.storage.aws.functions import unit


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Dispatch one unit: `{"minute": "2026-11-20T10:01", "part": 0}`, or `{"minute": "overflow", "part": 0}`."""
    key = unit(event)
    result = overflow(_runtime.ports()) if key == OVERFLOW else dispatch(key, _runtime.ports())
    _runtime.logger.info("dispatch", extra={"minute": key.minute, "part": key.part} | asdict(result))
    if result.published:
        emit("dispatch", {metrics.PULLED: result.published})
    return asdict(result)
