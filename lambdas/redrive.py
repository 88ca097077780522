"""EventBridge, every minute, and an asynchronous invocation by api → services.redrive."""

from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from scheduler.dead_letters.redrive import redrive


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Work off running redrives. The event says nothing that matters."""
    at = _runtime.redrive()
    result = redrive(redrives=at.redrives, jobs=at.jobs, tasks=at.tasks, orders=at.orders, lanes=at.lanes, clock=at.clock, rules=at.rules)
    _runtime.logger.info("redrive", extra=asdict(result))
    return asdict(result)
