"""EventBridge, every minute → `scheduler.tasks.plan`."""

from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from lambdas._clock import compare
from lambdas._logger import logger
from scheduler.tasks.plan import plan


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Run plan once. The clock decides what is due; the event only shows whether it is wrong by minutes. Raises WrongClock."""
    ports = _runtime.ports()
    compare(event, ports.clock.now())
    result = plan(ports)
    logger.info("plan", extra=asdict(result))
    return asdict(result)
