"""EventBridge, every minute, and an asynchronous invocation by api → `scheduler.dead_letters.redrive`."""

from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from scheduler.dead_letters.redrive import redrive


def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Continue the running redrives. It does not read the event."""
    result = redrive(_runtime.ports())
    _runtime.logger.info("redrive", extra=asdict(result))
    return asdict(result)
