"""Whether and when another attempt follows a failed one: pure, the jitter included. `docs/reference/retries.md` is the page for users."""

import zlib
from dataclasses import dataclass

from scheduler.model import lifecycle, misfire
from scheduler.model.job import Failure, FailureKind, Job
from scheduler.model.spec import Jitter, RetryPolicy

MAX_CRASHES = 2  # charged crashes that end a job: `lifecycle.is_charged`
CRASH_WAITS_MS = (0, 10_000, 60_000, 300_000, 900_000)  # the wait after a crash, by the number of crashes just before it
UNCHARGED_LEAST = RetryPolicy(base_ms=1_000, cap_ms=30_000, jitter=Jitter.EQUAL)  # no wait after an uncharged attempt is shorter than its
MAX_RETRY_AFTER_MS = 3_600_000  # upper bound of the wait that a target may request
UNCHARGED_MS = 24 * 3_600_000  # default `max_elapsed_ms` of uncharged attempts, which could repeat without end
EXPIRED = "expired: its next attempt would start too late"


@dataclass(frozen=True, slots=True)
class Again:
    """Try again at this instant (ms)."""

    at: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Make no further attempt, for this reason."""

    reason: str


def timed_out(job: Job) -> str:
    """The reason of a job that its time-out ended."""
    return f"its time-out of {job.spec.timeout_ms / 1000:g} s passed"


def decide(job: Job, failure: Failure, now: int) -> Again | GiveUp:
    """Decide what follows the failed attempt of the claimed job.

    Three kinds of attempts do not use up one of `max_attempts`: a throttled one, one that its executor stopped without a lease, and a
    crashed one whose work may not have started, or that another job may have caused (`lifecycle.is_charged`).
    """
    reason = _last(job, failure)
    if reason is not None:
        return GiveUp(reason)
    at = now + _wait(job, failure)
    reason = _too_late(job, failure, at, now)
    misses = reason is not None or (job.start_by is not None and now < job.start_by <= at)
    if misses and failure.kind is FailureKind.CRASHED:  # the wait after a crash is no deadline: it must not end the job
        at, reason = now, _too_late(job, failure, now, now)
    return Again(at) if reason is None else GiveUp(reason)


def backoff(policy: RetryPolicy, number: int, seed: str) -> int:
    """The wait after the `number`-th attempt (from 1), in ms.

    With ceiling = min(cap, base * 2**(number - 1)), full jitter is uniform in [0, ceiling), equal jitter is uniform in
    [ceiling / 2, ceiling), and without jitter the wait is the ceiling itself. (Full and equal jitter: M. Brooker, "Exponential
    Backoff And Jitter", AWS Architecture Blog, 2015.) A hash of the seed replaces the random source, so that the decision is
    repeatable: the wait of an attempt is the same in every process.
    """
    ceiling = min(policy.cap_ms, policy.base_ms << min(number - 1, 30))
    if policy.jitter is Jitter.NONE:
        return ceiling
    least = ceiling // 2 if policy.jitter is Jitter.EQUAL else 0
    return least + (zlib.crc32(seed.encode()) * (ceiling - least) >> 32)


def _last(job: Job, failure: Failure) -> str | None:
    """The reason why no attempt may follow at any time; None if one may."""
    if failure.kind is FailureKind.PERMANENT:
        return "the error is permanent"
    if failure.kind in lifecycle.UNCHARGED:
        return None
    if failure.kind is FailureKind.TIMEOUT and not job.spec.retry.on_timeout:
        return timed_out(job)
    if failure.kind is FailureKind.CRASHED:
        return _crashed_too_often(job, failure)
    return f"no attempt is left of {job.spec.max_attempts}" if job.charged + 1 >= job.spec.max_attempts else None


def _crashed_too_often(job: Job, failure: Failure) -> str | None:
    if not lifecycle.is_charged(job):
        return None
    ended = job.crashes + 1 >= MAX_CRASHES or job.charged + 1 >= job.spec.max_attempts
    each_time = "each time" if lifecycle.waits(job) else "each time it ran alone"
    return f"{failure.message} {each_time}" if ended else None


def _wait(job: Job, failure: Failure) -> int:
    """The wait before the next attempt, in ms.

    There is no wait after a first crash, since the lease has already passed, nor after a worker without heartbeats. A wait that the target
    requested replaces the formula.
    """
    if failure.kind is FailureKind.CRASHED:
        row = 0 if lifecycle.waits(job) else lifecycle.crashes_in_row(job)
        return CRASH_WAITS_MS[min(row, len(CRASH_WAITS_MS) - 1)]
    if failure.retry_after_ms is not None:
        return min(failure.retry_after_ms, MAX_RETRY_AFTER_MS)
    seed = f"{job.id}{job.fence}"
    wait = backoff(job.spec.retry, job.charged + job.throttled + 1, seed)
    return max(wait, backoff(UNCHARGED_LEAST, job.throttled + 1, seed)) if failure.kind in lifecycle.UNCHARGED else wait


def _too_late(job: Job, failure: Failure, at: int, now: int) -> str | None:
    """The reason why no attempt may start at `at`; None if one may.

    The expiry of a job that never started, as far as is known, is decided at its start.
    """
    unstarted = failure.kind is FailureKind.CRASHED and lifecycle.crashed_start(job, now) is None
    delay = job.delay_ms if unstarted else lifecycle.delay(job, now)
    if delay is None:
        return None
    expires_at = misfire.expires_at(job)
    if expires_at is not None and at >= expires_at and not (unstarted and job.charged == job.throttled == 0):
        return EXPIRED
    limit = job.spec.retry.max_elapsed_ms
    if limit is None and failure.kind in lifecycle.UNCHARGED:
        limit = UNCHARGED_MS
    begin = max(job.scheduled_at + delay, job.redriven_at or 0)  # the elapsed time starts from scratch with a redrive
    if limit is not None and at > begin + limit:
        return f"its next attempt would start later than {limit / 1000:.10g} s after its first"
    return None
