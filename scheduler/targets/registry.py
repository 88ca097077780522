"""The registry of target types: one module each in `scheduler.targets.types`, so adding a type is adding a file there.

A target has a `Payload`, a frozen dataclass whose `Annotated` limits the API checks when a job is created, and a `run`.
Nothing is imported before its first job comes, so that no type slows the start of an executor that never runs it.
A type whose name is a Python keyword has an underscore behind its module's name.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

from scheduler.targets import arns, types
from scheduler.targets.base import NotAllowed, Reach, Target


class UnknownType(LookupError):
    """No target has this name; the message lists those there are."""


@cache
def _modules() -> dict[str, str]:
    """The modules of all types, by the type's name."""
    found = [module.name for module in pkgutil.iter_modules(types.__path__) if not module.name.startswith("_")]
    return {name.removesuffix("_"): name for name in sorted(found)}


def names() -> list[str]:
    """All task types, by name."""
    return list(_modules())


@cache  # asked for every job, and the folder never changes
def load(name: str) -> Target:
    """The target of a task type. Raises UnknownType."""
    if name not in names():
        raise UnknownType(f"there is no type {name!r}; known types: {', '.join(names())}")
    return cast(Target, importlib.import_module(f"{types.__name__}.{_modules()[name]}"))


def is_work(name: str, payload: Mapping[str, Any]) -> bool:
    """Whether such a job is work of the executor itself, to be done in a process that can be killed. Raises UnknownType."""
    asked = getattr(load(name), "is_work", None)
    return asked is not None and bool(asked(payload))


def ahead_ms(name: str) -> int:
    """How long before its instant a job of the type is sent on its way, where the stage has a function for it. Raises UnknownType."""
    return int(getattr(load(name), "AHEAD_MS", 0))


def check_reach(name: str, payload: Mapping[str, Any], reach: Reach) -> None:
    """Raises NotAllowed if a payload, which is one of the type, asks for what may not be reached, and UnknownType."""
    target = load(name)
    if (check := getattr(target, "check", None)) is not None:
        check(payload, reach)
    resource = getattr(target, "RESOURCE", None)  # the field that holds an ARN
    if resource is not None:
        _check_arn(resource, payload[resource], reach)
    elif getattr(target, "SENDS_MAIL", False) and not reach.sender:
        raise NotAllowed("", "no e-mail can be sent: this stage has no sender (deploy it with -c email_sender=...)")


def check_callback(name: str, payload: Mapping[str, Any]) -> None:
    """Raises NotAllowed if a job of the type and payload cannot report by call-back, and UnknownType."""
    most = getattr(load(name), "CALLS_BACK", None)
    if most is None:
        raise NotAllowed("", f"a job of type {name} has no worker that could report")
    if most and len(payload.get("attributes") or ()) > most:
        raise NotAllowed("attributes", f"goes with at most {most} attributes in the payload: two more tell where to report")


def _check_arn(field: str, value: str, reach: Reach) -> None:
    arn = arns.queue(value)
    if arns.is_allowed(arn, reach.arns):
        return
    allowed = ", ".join(arns.of_service(arns.service(arn), reach.arns)) or "none: deploy with -c allowed_targets=..."
    raise NotAllowed(field, f"is not among what jobs of this stage may reach; allowed: {allowed}")


def description(name: str) -> str:
    """What a task type does: the first line of its module's docstring, behind the name. Raises UnknownType."""
    line = (load(name).__doc__ or "").partition("\n")[0].partition(": ")[2]
    return line[:1].upper() + line[1:]
