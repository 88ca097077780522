"""EventBridge, every minute → `scheduler.pipeline.tick`."""

from dataclasses import asdict
from typing import Any

from lambdas import _init, _runtime
from lambdas._clock import compare
from lambdas._logger import logger
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.pipeline.tick import tick

_init.end(_runtime.ports, "jobs", "ledger", "work", "operations")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run one tick. The clock decides which minutes to open; the event only shows whether it is wrong by minutes. Raises WrongClock."""
    ports = _runtime.ports()
    compare(event, ports.clock.now())
    result = tick(ports)
    logger.info("tick", extra=asdict(result))
    emit("tick", {metrics.OLDEST_OPEN_MINUTE: result.lag_ms / 1000})
    if result.plan_lag_ms:
        emit("tick", {metrics.PLAN_LAG: result.plan_lag_ms / 1000})
    return asdict(result)
