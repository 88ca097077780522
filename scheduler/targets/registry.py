"""The registry of target types: one module each in `scheduler.targets.types`, so adding a type is adding a file there.

A module declares its type as `TYPE` (`scheduler/targets/target_type.py`); nothing else in the product names a type.
A type is imported with its first job, so that no type slows the start of an executor that never runs it.
A type whose name is a Python keyword has an underscore behind its module's name.
"""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

from scheduler.targets import types
from scheduler.targets.awaited_ends import AwaitedEnds
from scheduler.targets.base import NotAllowed, Reach
from scheduler.targets.target_type import Resource, TargetType


class UnknownType(LookupError):
    """No target type has this name; the message lists the known types."""


@cache
def _modules() -> dict[str, str]:
    """The module names of all types, by type name."""
    found = [module.name for module in pkgutil.iter_modules(types.__path__) if not module.name.startswith("_")]
    return {name.removesuffix("_"): name for name in sorted(found)}


def names() -> list[str]:
    """All task types, by name."""
    return list(_modules())


@cache  # called for every job, and the folder never changes
def load(name: str) -> TargetType:
    """The declaration of a task type. Raises UnknownType."""
    found: TargetType = _module(name).TYPE
    return found


def check_reach(name: str, payload: Mapping[str, Any], reach: Reach) -> None:
    """Raises NotAllowed if a valid payload of the type names something that the stage may not reach, and UnknownType."""
    target = load(name)
    target.check(payload, reach)
    if target.resource is not None:
        target.resource.check(payload, reach)
    target.role_of(payload, reach)


def check_callback(name: str, payload: Mapping[str, Any]) -> None:
    """Raises NotAllowed if a job of the type and payload cannot report by call-back, and UnknownType."""
    target = load(name)
    if not target.calls_back:
        raise NotAllowed("", f"is not possible for type {name}: its jobs have no worker")
    if target.awaits(payload):
        raise NotAllowed("wait", "excludes callback: the end of the work in AWS ends the job")
    most = target.callback_attributes
    if most is not None and len(payload.get("attributes") or ()) > most:
        raise NotAllowed("attributes", f"requires at most {most} attributes in the payload: two more carry the call-back address")


def resources() -> list[Resource]:
    """The AWS resources of the types, ordered by type name. It imports every type, so executors must not call it."""
    return [resource for name in names() if (resource := load(name).resource) is not None]


def awaited_ends(source: str, detail_type: str) -> AwaitedEnds | None:
    """The record of the type whose ends AWS announces by such events; None: there is none. It imports every type."""
    found = (load(name).ends for name in names())
    return next((ends for ends in found if ends is not None and (ends.source, ends.detail_type) == (source, detail_type)), None)


def description(name: str) -> str:
    """A sentence about a task type: the first line of its module's docstring, without the name. Raises UnknownType."""
    line = (_module(name).__doc__ or "").partition("\n")[0].partition(": ")[2]
    return line[:1].upper() + line[1:]


def _module(name: str) -> ModuleType:
    if name not in _modules():
        raise UnknownType(f"there is no type {name!r}; known types: {', '.join(names())}")
    return importlib.import_module(f"{types.__name__}.{_modules()[name]}")
