"""Ends that are awaited: a job runs until the work ends that it started in AWS, such as a container, and no executor works meanwhile.

EventBridge brings the end quickly (`scheduler/callbacks/conclude.py`). A check at the end of each lease carries the promise: the
services send some events only as best effort, twice, or out of order. `docs/internals/awaited-ends.md` describes both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler.model.job import Awaited, Failure, FailureKind, Job, JobKey, Result
from scheduler.targets.base import Context
from scheduler.targets.job_context import JobContext

SETTLES_MS = 300_000  # AWS shows what it has started after this time at the latest: its descriptions are eventually consistent
GIVE_UP_MS = 3_600_000  # work that cannot be described is given up this long after its time-out
_OURS = "Punctual "  # the beginning of the reason with which work is stopped

Detail = Mapping[str, Any]  # of an event of EventBridge


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedEnds:
    """The functions by which a target type starts work in AWS and learns of its end. `run` of the type starts it, by `context.awaited`."""

    are_awaited: Callable[[Mapping[str, Any]], bool]
    """Whether a job with this payload runs until its work has ended."""

    request: Callable[[Mapping[str, Any], Job, JobContext], str | None]
    """The exact request of the start of a claimed job, as JSON: it is stored before the call. None: the token alone is enough."""

    check: Callable[[Job, Context, int], Result]
    """Describe the work at an instant (UTC ms), and stop it if `context.must_stop` says so. A result with `awaited`: it goes on."""

    source: str
    """The source of its events, such as aws.ecs."""

    detail_type: str
    """The type of its events, as EventBridge names it."""

    pattern: Callable[[Sequence[str]], Mapping[str, Sequence[Any]]]
    """The pattern of the details of events that may end a job, by the patterns of the allowed ARNs of its service."""

    started_by: Callable[[Detail], "Started | None"]
    """The start that an event is about; None: it is not the scheduler's."""

    link: Callable[[str], str]
    """The page of the work with this ARN in the AWS console."""

    judged: Callable[[Detail, Awaited], Result | None]
    """The result of the work by an event or a description; None: it goes on, or the event does not say enough."""


@dataclass(frozen=True, slots=True)
class Started:
    """The start of work in AWS: its job, and the fence of the attempt that started it first. `id`: its ARN."""

    key: JobKey
    fence: int
    id: str


def goes_on(awaited: Awaited) -> Result:
    """The result of a check while the work goes on, or cannot be described."""
    return Result(awaited=awaited)


def unknown(job: Job, awaited: Awaited, what: str, now: int, started_at: int) -> Result:
    """The result of a check whose work AWS does not know: just after its start it may not be shown yet, later it is a crash."""
    if now - started_at < SETTLES_MS:
        return goes_on(awaited)
    return Result(failure=Failure(FailureKind.CRASHED, f"AWS no longer knows {what} {awaited.id}"))


def stop_reason(why: Failure) -> str:
    """The reason that AWS stores with work that is stopped. `stopped_by_us` reads it."""
    return f"{_OURS}{why.kind}: {why.message}"


def stopped_by_us(reason: str | None) -> Failure | None:
    """The failure for which the scheduler stopped the work; None: it did not."""
    if not reason or not reason.startswith(_OURS):
        return None
    kind, _, message = reason.removeprefix(_OURS).partition(": ")
    return Failure.read(kind, message)
