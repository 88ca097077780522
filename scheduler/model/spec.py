"""What to run and how, as an owner specifies it: the part that a job, a task and the drafts of both have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class OnFailure(StrEnum):
    """What the failure of a job means for those behind it in the line of its ordering key."""

    BLOCK = "block"  # they wait while it is retried, and go on when it has ended, whichever way
    PARK = "park"  # if it fails or is killed, they wait until a person resumes the key, or retries it and it succeeds


@dataclass(frozen=True, slots=True)
class Ordering:
    """The jobs of one ordering key of one owner start one after the other: `scheduler.admission.ordering`."""

    key: str
    on_failure: OnFailure = OnFailure.BLOCK


class Jitter(StrEnum):
    """Which part of a wait before another attempt is left to chance, so that jobs which failed together do not come back together."""

    FULL = "full"  # all of it
    EQUAL = "equal"  # its second half
    NONE = "none"  # nothing


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a job is tried again; how often is its `max_attempts`. `retry.decide` reads it."""

    base_ms: int = 1_000  # the first wait at most; each one after it twice the one before ...
    cap_ms: int = 900_000  # ... up to this
    jitter: Jitter = Jitter.FULL
    max_elapsed_ms: int | None = None  # no attempt starts later than this after the first start; None: only a throttled one is bounded
    on_timeout: bool = False  # an attempt that ran out of time is followed by another, too


USUAL_RETRIES = RetryPolicy()


@dataclass(frozen=True, slots=True)
class CallBack:
    """A good answer of the job's target means "accepted": its worker reports the end itself, and heartbeats until then."""

    lease_ms: int = 300_000  # without a heartbeat for so long its worker is dead
    max_ms: int = 86_400_000  # from the start of an attempt to its report, whatever the heartbeats say


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What to run and how. A task hands its own to each of its runs."""

    type: str
    payload: Mapping[str, Any]
    target: str | None = None  # a named target, whose defaults complete the payload; `type` is its kind
    tags: tuple[str, ...] = ()
    max_attempts: int = 3
    retry: RetryPolicy = USUAL_RETRIES
    timeout_ms: int = 300_000
    callback: CallBack | None = None
    ordering: Ordering | None = None  # the job waits for its turn
