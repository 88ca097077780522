"""EventBridge, every minute → services.plan."""

from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.tasks.plan import plan


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """One round of planning. The event says nothing that matters: `now` decides."""
    result = plan(_runtime.ports())
    _runtime.logger.info("plan", extra=asdict(result))
    emit("plan", {metrics.PLAN_LAG: result.lag_ms / 1000})
    return asdict(result)
