"""A CloudWatch alarm that begins to ring → `scheduler.insight.provision`."""

from dataclasses import asdict
from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from scheduler.insight.provision import provision
from scheduler.model.errors import Unavailable


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run provision once. It does not read which alarm rings: the requirement decides.

    An alarm calls only when it begins to ring. If AWS refused a lane it raises Unavailable, and Lambda calls twice more.
    """
    result = provision(_runtime.ports())
    logger.info("provision", extra=asdict(result))
    if result.refused:
        raise Unavailable(f"pollers not set for {', '.join(result.refused)}")
    return asdict(result)
