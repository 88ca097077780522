"""Task types, one module each: adding a type is adding a file here.

A target has a `Payload`, a frozen dataclass whose `Annotated` limits the API checks when a job is created, and a `run`.
Nothing is imported before its first job comes, so that no type slows the start of an executor that never runs it.
A type that is a word of Python has an underscore behind its module's name; a module with one before its name is no type.
"""

import importlib
import pkgutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol, cast

from scheduler.model.errors import NotFound
from scheduler.model.job import Result
from scheduler.targets import arns
from scheduler.targets.calls import Calls


@dataclass(frozen=True, slots=True)
class Reach:
    """What of AWS the jobs of a stage may use: nothing, unless its deployment says so; and which URLs they may call."""

    arns: Sequence[str] = ()  # patterns, as in `scheduler/targets/arns.py`
    sender: str = ""  # whom e-mails come from; empty: none are sent
    plain_http: bool = False  # http:// as well as https://
    hosts: Sequence[str] = ()  # that `http` jobs may call, `*` for any text; empty: any


class NotAllowed(ValueError):
    """A payload asks for what this stage may not reach. `field` of the payload; empty: the type as such."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(rule)
        self.field = field


@dataclass(frozen=True, slots=True)
class CallBackAddress:
    """Where the worker of an attempt reports to: /heartbeat, /complete and /fail below the URL, with the token."""

    url: str
    token: str
    fence: int


def no_calls() -> Calls:
    raise RuntimeError("nothing here calls AWS")


def no_secrets(name: str) -> Sequence[str]:
    raise NotFound(f"there is no secret {name!r}")


@dataclass(frozen=True, slots=True)
class Context:
    """What a target may know of the attempt it runs."""

    job_id: str
    attempt: int
    deadline: float  # by `time.monotonic()`
    stop: threading.Event  # set: a cancel was asked or the lease is lost; end soon, no result but success counts any more
    allow_private: bool = False  # may call private and loopback addresses
    fetcher: str = ""  # the ARN of the function that calls URLs; empty: they are called right here
    not_before: int = 0  # an instant (UTC ms) that may still be to come: what is sent ahead is to begin then
    reach: Reach = field(default_factory=Reach)
    calls: Callable[[], Calls] = no_calls  # what it takes to call AWS, made when it is first asked for
    callback: CallBackAddress | None = None  # of a job that reports by call-back
    secrets: Callable[[str], Sequence[str]] = no_secrets  # of the job's owner, by name: the newest value first

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt at one job."""
        return self.job_id

    @property
    def id_name(self) -> str:
        """By which name receivers are told `job_id`: a notice is sent the way a job is, and is none."""
        return "Punctual-Notice-Id" if self.job_id.startswith("notice_") else "Punctual-Job-Id"

    @property
    def unique(self) -> str:
        """What receivers drop copies by: that of the job, or, where each attempt has a worker of its own, of the attempt."""
        return self.job_id if self.callback is None else f"{self.job_id}-{self.callback.fence}"

    def left(self) -> float:
        """Seconds until it must end; none once it is asked to stop."""
        return 0.0 if self.stop.is_set() else max(self.deadline - time.monotonic(), 0.0)


class Target(Protocol):
    """What a module in this package offers."""

    Payload: type[Any]
    # A type that reaches AWS also has `RESOURCE`, the field of its payload with the ARN, or `SENDS_MAIL`. One that may work in
    # the executor itself has `is_work`: whether a payload does. Its `run` is called in a child process then, which is killed at
    # the deadline, and needs neither `reach` nor `calls`.
    # One that may be done by a function of its own has `AHEAD_MS`, what it takes to reach that.
    # One that has rules for its payloads beyond its fields has `check`.
    # One that tells its worker where to report has `CALLS_BACK`, the most attributes that leave room for that; 0: it takes none.

    def run(self, payload: Mapping[str, Any], context: Context) -> Result:
        """One attempt. Returns (or raises) by the deadline, and soon after `stop` is set."""


class UnknownType(LookupError):
    """No target has this name; the message lists those there are."""


@cache
def _modules() -> dict[str, str]:
    """The modules of all types, by the type's name."""
    found = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return {name.removesuffix("_"): name for name in sorted(found)}


def names() -> list[str]:
    """All task types, by name."""
    return list(_modules())


@cache  # asked for every job, and the folder never changes
def load(name: str) -> Target:
    """The target of a task type. Raises UnknownType."""
    if name not in names():
        raise UnknownType(f"there is no type {name!r}; known types: {', '.join(names())}")
    return cast(Target, importlib.import_module(f"{__name__}.{_modules()[name]}"))


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
