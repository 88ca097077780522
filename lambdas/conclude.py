"""An event of a service about work that a job started → `scheduler.callbacks.conclude`."""

from typing import Any

from lambdas import _init, _runtime
from lambdas._logger import logger
from scheduler.callbacks.conclude import conclude

_init.end(_runtime.ports, "jobs", "lanes")


def handler(event: dict[str, Any], context: Any) -> None:
    """Settle the job whose work has ended. Raises if a table refuses: Lambda repeats the call, and after that a check finds the end."""
    job = conclude(event, _runtime.ports())
    if job is not None:
        logger.info("conclude", extra=job.log_context())
