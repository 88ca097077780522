"""The breaker of a failing target: after failures in a row its jobs wait instead of using up their attempts. Pure.

A closed breaker opens after `FAILURES` failures in a row over at least a second, for 10 s. Then it is half-open: one job tries, as a
probe. If the probe succeeds the breaker closes; if it fails the breaker opens again, for twice as long. A probe without
a result is given up, and another job may try.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scheduler.model import misfire
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.job import FailureKind, Finished, Job, Result
from scheduler.model.spec import DEFAULT_TIMEOUT_MS

FAILURES, OVER_MS = 5, 1_000  # failures in a row in one executor; one batch that fails within `OVER_MS` is not enough
FIRST_MS, LONGEST_MS = 10_000, 300_000  # how long a breaker stays open, at first and at most
PROBE_MS = 10_000  # another probe may start if one has no result this long after its time-out: its process has ended
PATIENCE_MS = 3_600_000  # the longest wait of a job without `max_elapsed_ms` for a breaker; after that it uses its attempts
MOST_OF_OWNER = 100  # open breakers of one owner: every executor reads all of them every second


def circuit(job: Job) -> Circuit | None:
    """The circuit of a job. It is the named target, else the one that the job's type declares, of this owner.

    None: the job calls nothing that could fail.
    """
    if job.spec.target is not None:
        return Circuit(f"target {job.spec.target}")
    from scheduler.targets import registry  # functions that run no jobs never load it

    try:
        name = registry.load(job.spec.type).circuit_of(job.spec.payload)
    except registry.UnknownType:
        return None
    return None if name is None else Circuit(name, job.owner)


def is_dead(result: Result) -> bool:
    """Whether the result indicates a failing target: no answer, none in time, or a 5xx. A refusal or a throttled call does not."""
    failure = result.failure
    if failure is None or failure.kind not in (FailureKind.RETRYABLE, FailureKind.TIMEOUT):
        return False
    if result.response is not None:
        return int(result.response.get("status", 0)) >= 500
    return result.output is None  # the output of a function that raised shows that the target works


def shows_nothing(done: Finished) -> bool:
    """Whether the attempt shows neither a failing target nor a working one.

    It was cancelled, nothing was called, or the job chose a time-out below the default of its type and did not wait longer.
    """
    job, result = done.job, done.result
    if result.failure is None or result.response is not None or result.output is not None:
        return False
    if job.cancel_requested_at is not None or result.failure.kind in (FailureKind.THROTTLED, FailureKind.CANCELLED):
        return True
    limit = time_limit(job)
    if limit >= _time_limit(job.spec.type, {}, DEFAULT_TIMEOUT_MS):
        return False
    # A type's own time-out is a retryable failure. Only its duration distinguishes it, roughly: `fetch` has another clock.
    is_late = result.failure.kind is FailureKind.RETRYABLE and (done.ended_at - done.started_at) * 2 >= limit
    return result.failure.kind is FailureKind.TIMEOUT or is_late


def time_limit(job: Job) -> int:
    """The longest time (ms) that an attempt takes by the job's time-out and the payload's own."""
    return _time_limit(job.spec.type, job.spec.payload, job.spec.attempt_ms)


def _time_limit(type: str, payload: Mapping[str, Any], timeout_ms: int) -> int:
    from scheduler.targets import registry  # as above

    try:
        own = registry.load(type).time_limit_ms(payload)
    except registry.UnknownType:
        return timeout_ms
    return timeout_ms if own is None else min(own, timeout_ms)


def opened(circuit: Circuit, now: int, before: Breaker | None = None) -> Breaker:
    """The breaker opened at `now`: for `FIRST_MS`, or, after the probe of `before` failed, for twice as long as before."""
    if before is None:
        return Breaker(circuit, now, now + FIRST_MS, FIRST_MS)
    waits = min(before.waits_ms * 2, LONGEST_MS)
    return Breaker(circuit, now, now + waits, waits, version=before.version + 1)


def may_probe(breaker: Breaker, now: int) -> bool:
    """Whether a job may try: the breaker's time is over, and no other probe is under way."""
    return now >= breaker.until and (breaker.probe_until is None or now >= breaker.probe_until)


def probed(breaker: Breaker, job: Job, now: int) -> Breaker:
    """The half-open breaker while this job tries."""
    return replace(breaker, until=now, probe_until=now + time_limit(job) + PROBE_MS, version=breaker.version + 1)


def without_probe(breaker: Breaker) -> Breaker:
    """The half-open breaker whose probe does not run or had no result: another job may try."""
    return replace(breaker, probe_until=None, version=breaker.version + 1)


def back_at(breaker: Breaker, now: int, chance: float) -> int:
    """The instant at which a waiting job checks the breaker again (ms). `chance`, a random number from 0 to 1, spreads the jobs.

    While a probe is under way, the job waits as long again as the probe has taken until now. So a probe without an answer costs a job
    few checks, and after a short probe the job waits half of `waits_ms`.
    """
    spread = int(chance * max(breaker.waits_ms // 5, 2_000))
    if now < breaker.until:
        return breaker.until + 500 + spread
    if breaker.probe_until is None or breaker.probe_until <= now:  # another job was faster, and its probe has not been read here yet
        return now + breaker.waits_ms // 2 + spread
    return min(breaker.probe_until, now + max(breaker.waits_ms // 2, now - breaker.until)) + spread


def can_wait(job: Job, at: int) -> bool:
    """Whether the job may wait for the breaker until `at`: its expiry, its `max_elapsed_ms` or `PATIENCE_MS` allows it."""
    expires_at = misfire.expires_at(job)
    if expires_at is not None and at >= expires_at:
        return False
    begin = max(job.scheduled_at + (job.delay_ms or 0), job.redriven_at or 0, job.created_at)
    limit = job.spec.retry.max_elapsed_ms if job.delay_ms is not None else None
    return at <= begin + (PATIENCE_MS if limit is None else limit)
