"""EventBridge, every minute → services.scale."""

import secrets
from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from lambdas._metrics import emit
from scheduler.insight import metrics
from scheduler.insight.scale import scale
from scheduler.model import ids


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """One round. The event says nothing that matters: `now` decides."""
    at = _runtime.scale()
    result = scale(
        counters=at.counters,
        capacity=at.capacity,
        executors=at.settings.executors,
        most_pollers=at.settings.most_pollers,
        canary=at.settings.canary,
        random=secrets.randbits(ids.RANDOM_BITS),
        jobs=at.jobs,
        orders=at.orders,
        lanes=at.lanes,
        clock=at.clock,
        rules=at.rules,
    )
    _runtime.logger.info("scale", extra=asdict(result))
    emit("scale", {metrics.REQUIRED: result.required, metrics.AVAILABLE: result.available, metrics.USED: result.used_percent})
    return asdict(result)
