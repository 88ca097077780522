"""The operations of AWS that `aws` jobs may call, by the option `allowed_actions`. Some are denied, whatever it lists."""

from collections.abc import Sequence
from difflib import get_close_matches

from scheduler.targets import denied_actions, service_models
from scheduler.targets.base import NotAllowed, Reach
from scheduler.targets.service_models import Operation

OPTION = "the option allowed_actions"


def operation(service: str, action: str, reach: Reach) -> Operation:
    """The operation, if jobs of this reach may call it. Raises NotAllowed."""
    name, allowed = f"{service}:{action}", names(reach)
    if not allowed:
        raise NotAllowed(
            "action", f"{name} is not allowed for jobs of this stage: {OPTION}, which its operators set, lists no action for them"
        )
    if (reason := denied_actions.reason(name)) is not None:
        raise NotAllowed("action", f"{name} is denied to all jobs ({reason}), whatever {OPTION} lists")
    if name not in allowed:  # before a model is read: a flood of other names must cost little
        hint = "".join(f"; did you mean {near}?" for near in get_close_matches(name, allowed, 1, 0.8))
        raise NotAllowed("action", f"{name} is not allowed for jobs of this stage; {OPTION} lists: {', '.join(allowed)}{hint}")
    try:
        return service_models.operation(service, action)
    except service_models.Unknown as error:  # the option was checked by another version of boto3
        raise NotAllowed(error.field, str(error)) from None


def names(reach: Reach) -> Sequence[str]:
    """The names that the option lists, such as s3:CopyObject, in its order."""
    return [each.partition(" ")[0] for each in reach.actions]


def operations(reach: Reach) -> list[Operation]:
    """The operations that jobs of this reach may call, by name.

    The names are few, as they have room in a function's environment variables, so `service_models.operation` keeps all of them.
    """
    found = []
    for name in sorted(names(reach)):
        service, _, action = name.partition(":")
        try:
            found.append(operation(service, action, reach))
        except NotAllowed:  # a job of it is refused as well
            continue
    return found
