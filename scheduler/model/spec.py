"""The specification of work by its owner: the part that a job, a task and the drafts of both have in common."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scheduler.model import durations


class OnFailure(StrEnum):
    """The effect of a failing job on the jobs behind it in the ordering queue of its key."""

    CONTINUE = "continue"  # they wait while it is retried, and continue when it has ended in any way
    PAUSE = "pause"  # if it fails or is killed, they wait until a user resumes the key, or retries the job and it succeeds


@dataclass(frozen=True, slots=True)
class Ordering:
    """Jobs of one owner with the same ordering key start one after the other: `scheduler.admission.ordering`."""

    key: str
    on_failure: OnFailure = OnFailure.CONTINUE


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `concurrency` jobs of one owner with the same key run at one time, and at most `rate` of them start in `period_ms`.

    One of the two is given, or both.
    """

    key: str
    concurrency: int | None = None
    rate: int | None = None
    period_ms: int = 1_000

    @property
    def per_second(self) -> float | None:
        """The starts per second."""
        return None if self.rate is None else self.rate * 1_000 / self.period_ms

    def __str__(self) -> str:
        """The limit in words, without its key."""
        rate = None if self.rate is None else f"{self.rate} per {durations.write(self.period_ms)}"
        return ", ".join(part for part in (f"{self.concurrency} at once" if self.concurrency else None, rate) if part)


MOST_OF_KEY, MOST_STARTS_A_SECOND = 50, 1_000  # a key has one item, which every start writes; a named target may have more
SHORTEST_PERIOD_MS, LONGEST_PERIOD_MS = 1_000, 7 * 86_400_000


class Jitter(StrEnum):
    """The random part of the wait before another attempt: jobs that failed together are not retried together. See `retry.backoff`."""

    FULL = "full"  # all of it
    EQUAL = "equal"  # its second half
    NONE = "none"  # nothing


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The waits and limits of a job's retries; the job's `max_attempts` limits their number. `retry.decide` applies it."""

    base_ms: int = 1_000  # upper bound of the first wait; each later bound is twice the one before ...
    cap_ms: int = 900_000  # ... up to this
    jitter: Jitter = Jitter.FULL
    max_elapsed_ms: int | None = None  # no attempt starts later than this after the first start; None: only throttled ones are bounded
    on_timeout: bool = False  # whether an attempt that exceeded its time-out is retried, too


DEFAULT_RETRIES = RetryPolicy()  # the meaning of a stored job or task without a policy: time-outs are not retried
REQUESTED_RETRIES = RetryPolicy(on_timeout=True)  # the policy of a request that names none
DEFAULT_TIMEOUT_MS = 300_000
LONGEST_ATTEMPT_MS = 840_000  # for which an executor works on an attempt: an invocation ends after 15 minutes
LONGEST_AWAITED_MS = 30 * 86_400_000  # for which the end of work in AWS is awaited
AWAITED_TIMEOUT_MS = 86_400_000  # the time-out of such a job, if its owner sets none


@dataclass(frozen=True, slots=True)
class CallBack:
    """A successful answer of the job's target means "accepted": its worker sends heartbeats, and reports the end itself."""

    lease_ms: int = 300_000  # a worker without a heartbeat for this time is dead
    max_ms: int = 86_400_000  # longest time from the start of an attempt to its report, regardless of heartbeats


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The work of a job, and the rules for its attempts. A task copies its specification into each of its runs."""

    type: str
    payload: Mapping[str, Any]
    target: str | None = None  # a named target, whose defaults complete the payload; `type` is then its kind
    tags: tuple[str, ...] = ()
    max_attempts: int = 3
    retry: RetryPolicy = DEFAULT_RETRIES
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    callback: CallBack | None = None
    ordering: Ordering | None = None  # None: the job waits for no other
    limit: Limit | None = None  # of its key: `scheduler.admission.key_limits`
    events: bool = False  # whether its end is sent to the stage's event bus: `scheduler.notify.announce`
    placeholders: bool = False  # whether its payload has placeholders; if not, it is not searched for them
    key: str | None = None  # the owner's own name for the job, or of a run for its task: `model.own_keys`

    @property
    def attempt_ms(self) -> int:
        """The longest time (ms) for which an executor works on an attempt. Only a job whose end in AWS is awaited has a longer time-out."""
        return min(self.timeout_ms, LONGEST_ATTEMPT_MS)
