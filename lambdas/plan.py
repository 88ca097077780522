"""EventBridge, every minute → `scheduler.tasks.plan`."""

from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from scheduler.tasks.plan import plan


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Run plan once. It does not read the event: the clock decides what is due."""
    result = plan(_runtime.ports())
    logger.info("plan", extra=asdict(result))
    return asdict(result)
