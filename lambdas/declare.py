"""CloudFormation, for a custom resource in the stack of a user → `scheduler.declarations.declare`."""

from typing import Any

from lambdas import _declaring, _init
from lambdas._logger import logger
from scheduler.declarations.declare import declare
from scheduler.model.errors import Invalid

_init.end(_declaring.declaring)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Carry out one event, and answer CloudFormation. Neither the address of the answer nor a property is logged."""
    at = _declaring.declaring()
    about = {"event_id": event.get("RequestId"), "stack": event.get("StackId"), "resource": event.get("LogicalResourceId")}
    try:
        done = declare(event, at.entry(context.invoked_function_arn), at.ports)
    except Invalid as error:
        logger.warning("an event was refused", extra=about | {"rule": error.message})
        return {}
    about |= {"request": event.get("RequestType"), "object": done.physical_id, "failed": done.reason is not None}
    logger.info("declare", extra=about)
    return {}
