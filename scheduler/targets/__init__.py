"""Task types, one module each: adding a type is adding a file here.

A target has a `Payload`, a frozen dataclass whose `Annotated` limits the API checks when a job is created, and a `run`.
Nothing is imported before its first job comes, so that no type slows the start of an executor that never runs it.
"""

import importlib
import pkgutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, cast

from scheduler.model import Result


@dataclass(frozen=True, slots=True)
class Context:
    """What a target may know of the attempt it runs."""

    job_id: str
    attempt: int
    deadline: float  # by `time.monotonic()`
    stop: threading.Event  # set: a cancel was asked or the lease is lost; end soon, no result but success counts any more
    allow_private: bool = False  # may call private and loopback addresses

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at one job."""
        return self.job_id


class Target(Protocol):
    """What a module in this package offers."""

    Payload: type[Any]

    def run(self, payload: Mapping[str, Any], context: Context) -> Result:
        """One attempt. Returns (or raises) by the deadline, and soon after `stop` is set."""


class UnknownType(LookupError):
    """No target has this name; the message lists those there are."""


def names() -> list[str]:
    """All task types, by name."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


@cache  # asked for every job, and the folder never changes
def load(name: str) -> Target:
    """The target of a task type. Raises UnknownType."""
    if name not in names():
        raise UnknownType(f"there is no type {name!r}; known types: {', '.join(names())}")
    return cast(Target, importlib.import_module(f"{__name__}.{name}"))


def description(name: str) -> str:
    """What a task type does: the first line of its module's docstring, behind the name. Raises UnknownType."""
    line = (load(name).__doc__ or "").partition("\n")[0].partition(": ")[2]
    return line[:1].upper() + line[1:]
