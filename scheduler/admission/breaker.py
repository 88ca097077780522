"""The breaker of a dead target: after failures in a row its jobs wait instead of using up their attempts. Pure.

A closed breaker opens after `FAILURES` failures in a row over at least a second, for 10 s. Then it is half-open: one job tries, as a
probe. If the probe succeeds the breaker closes; if it fails the breaker opens again, for twice as long.
"""

from dataclasses import dataclass, replace

from scheduler.model import misfire
from scheduler.model.job import FailureKind, Job, Result

FAILURES, OVER_MS = 5, 1_000  # failures in a row in one executor; one batch that fails within `OVER_MS` is not enough
FIRST_MS, LONGEST_MS = 10_000, 300_000  # how long a breaker stays open, at first and at most
PROBE_MS = 60_000  # another probe starts if one has no result this long after its time-out
PATIENCE_MS = 3_600_000  # how long a job without `max_elapsed_ms` waits for a breaker at most; after that it uses its attempts


@dataclass(frozen=True, slots=True)
class Breaker:
    """A breaker that is open or half-open; a closed one is not stored. Every change is conditional on `version`."""

    circuit: str
    opened_at: int  # when it last opened
    until: int  # no job starts before this
    waits_ms: int  # the time from `opened_at` to `until`
    probe_until: int | None = None  # a job tries, and has until this instant; None: no job tries
    version: int = 1


def circuit(job: Job) -> str | None:
    """The circuit of a job: jobs of one circuit fail together. It is the named target, else the one that the job's type declares.

    None: the job reaches nothing that could be dead.
    """
    if job.spec.target is not None:
        return f"target {job.spec.target}"
    from scheduler.targets import registry  # functions that run no jobs never load it

    try:
        return registry.load(job.spec.type).circuit_of(job.spec.payload)
    except registry.UnknownType:
        return None


def is_dead(result: Result) -> bool:
    """Whether the result indicates a dead target: no answer, none in time, or a 5xx. A refusal or a throttled call does not."""
    failure = result.failure
    if failure is None or failure.kind not in (FailureKind.RETRYABLE, FailureKind.TIMEOUT):
        return False
    if result.response is not None:
        return int(result.response.get("status", 0)) >= 500
    return result.output is None  # the output of a function that raised shows that the target is alive


def opened(circuit: str, now: int, before: Breaker | None = None) -> Breaker:
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
    return replace(breaker, probe_until=now + job.spec.timeout_ms + PROBE_MS, version=breaker.version + 1)


def back_at(breaker: Breaker, now: int, chance: float) -> int:
    """When a waiting job checks the breaker again (ms). `chance`, a random number from 0 to 1, spreads the jobs."""
    if now < breaker.until:
        return breaker.until + 500 + int(chance * max(breaker.waits_ms // 5, 2_000))
    return now + 3_000 + int(chance * 4_000)  # a probe is under way


def can_wait(job: Job, at: int) -> bool:
    """Whether the job may wait for the breaker until `at`: its expiry, its `max_elapsed_ms` or `PATIENCE_MS` allows it."""
    expires_at = misfire.expires_at(job)
    if expires_at is not None and at >= expires_at:
        return False
    begin = max(job.scheduled_at + (job.delay_ms or 0), job.redriven_at or 0, job.created_at)
    limit = job.spec.retry.max_elapsed_ms if job.delay_ms is not None else None
    return at <= begin + (PATIENCE_MS if limit is None else limit)
