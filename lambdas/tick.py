"""EventBridge, every minute → services.tick."""

from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.pipeline.tick import tick


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """One tick. The event says nothing that matters: `now` decides."""
    at = _runtime.tick()
    result = tick(
        jobs=at.jobs,
        tasks=at.tasks,
        orders=at.orders,
        ledger=at.ledger,
        lanes=at.lanes,
        dispatchers=at.dispatchers,
        clock=at.clock,
        rules=at.rules,
    )
    _runtime.logger.info("tick", extra=asdict(result))
    emit("tick", {metrics.OLDEST_OPEN_MINUTE: result.lag_ms / 1000})
    return asdict(result)
