"""Whether and when a failed attempt is followed by another: pure, the jitter included. `docs/retries.md` is the page for users."""

import zlib
from dataclasses import dataclass

from scheduler.model import lifecycle, misfire
from scheduler.model.job import Failure, FailureKind, Job
from scheduler.model.spec import Jitter, RetryPolicy

MAX_CRASHES = 2  # charged crashes (alone in the batch) that end a job
MAX_RETRY_AFTER_MS = 3_600_000  # a target that asks for more is asked again after this
THROTTLED_MS = 24 * 3_600_000  # what charges nothing would go on for ever: the default of `max_elapsed_ms` for it
TIMED_OUT = "its time-out passed"
EXPIRED = "expired: its next attempt would start too late"


@dataclass(frozen=True, slots=True)
class Again:
    """Try again at this instant."""

    at: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """No further attempt; `reason` says why."""

    reason: str


def decide(job: Job, failure: Failure, now: int) -> Again | GiveUp:
    """What follows the attempt of the claimed job that failed so.

    Every attempt is charged but a throttled one, and one whose executor died with others in hand: these may be innocent.
    """
    reason = _last(job, failure)
    if reason is not None:
        return GiveUp(reason)
    at = now + _wait(job, failure)
    reason = _too_late(job, failure, at, now)
    return Again(at) if reason is None else GiveUp(reason)


def backoff(policy: RetryPolicy, number: int, seed: str) -> int:
    """The wait after the `number`-th attempt, in ms: of ceiling = min(cap, base * 2**(number - 1)) with full jitter uniform in
    [0, ceiling), with equal jitter uniform in [ceiling / 2, ceiling), without jitter the ceiling itself.

    A hash of the seed instead of a random source keeps the decision repeatable: the same attempt of the same job waits equally
    long wherever it is decided. (Full and equal jitter: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.)
    """
    ceiling = min(policy.cap_ms, policy.base_ms << min(number - 1, 30))
    if policy.jitter is Jitter.NONE:
        return ceiling
    least = ceiling // 2 if policy.jitter is Jitter.EQUAL else 0
    return least + (zlib.crc32(seed.encode()) * (ceiling - least) >> 32)


def _last(job: Job, failure: Failure) -> str | None:
    """Why no attempt follows, whatever the time; None if one may."""
    if failure.kind is FailureKind.PERMANENT:
        return "the error is permanent"
    if failure.kind is FailureKind.THROTTLED:
        return None
    if failure.kind is FailureKind.TIMEOUT and not job.spec.retry.on_timeout:
        return TIMED_OUT
    if failure.kind is FailureKind.CRASHED:
        ended = lifecycle.is_alone(job) and (job.crashes + 1 >= MAX_CRASHES or job.charged + 1 >= job.spec.max_attempts)
        each_time = "each time" if lifecycle.waits(job) else "each time it ran alone"
        return f"{failure.message} {each_time}" if ended else None
    return f"no attempt is left of {job.spec.max_attempts}" if job.charged + 1 >= job.spec.max_attempts else None


def _wait(job: Job, failure: Failure) -> int:
    """A crash waits for nothing: its lease has passed. What a target asks for goes before the formula."""
    if failure.kind is FailureKind.CRASHED:
        return 0
    if failure.retry_after_ms is not None:
        return min(failure.retry_after_ms, MAX_RETRY_AFTER_MS)
    return backoff(job.spec.retry, job.charged + job.throttled + 1, f"{job.id}{job.fence}")


def _too_late(job: Job, failure: Failure, at: int, now: int) -> str | None:
    """Why no attempt may start at `at`; None if one may. Of a job that never started, its start decides."""
    delay = lifecycle.delay(job, now)
    if delay is None:
        return None
    expires_at = misfire.expires_at(job)
    if expires_at is not None and at >= expires_at:
        return EXPIRED
    limit = job.spec.retry.max_elapsed_ms
    if limit is None and failure.kind is FailureKind.THROTTLED:
        limit = THROTTLED_MS
    begin = max(job.scheduled_at + delay, job.redriven_at or 0)  # a redrive is a new life
    if limit is not None and at > begin + limit:
        return f"its next attempt would start later than {limit / 1000:.10g} s after its first"
    return None
