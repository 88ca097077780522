"""The breaker of a target that is dead: after failures in a row its jobs wait instead of using up their attempts. Pure.

closed -> open, for 10 s, after `FAILURES` in a row over at least a second -> half-open: one job tries -> closed again, or open for
twice as long.
"""

from dataclasses import dataclass, replace

from scheduler.model import misfire
from scheduler.model.job import FailureKind, Job, Result

FAILURES, OVER_MS = 5, 1_000  # in a row, seen by one executor; a batch that fails at one instant is no row yet
FIRST_MS, LONGEST_MS = 10_000, 300_000  # how long it stays open, at first and at most
PROBE_MS = 60_000  # a probe that is not heard of so long after its time-out is followed by another
PATIENCE_MS = 3_600_000  # a job without `max_elapsed_ms` is held back for so long at most; then its attempts are its own again


@dataclass(frozen=True, slots=True)
class Breaker:
    """One that is not closed: closed ones are not kept. `version` is what every change is conditional on."""

    circuit: str
    opened_at: int  # when it last opened
    until: int  # nothing starts before this
    waits_ms: int
    probe_until: int | None = None  # somebody tries, and until when that may take
    version: int = 1


def circuit(job: Job) -> str | None:
    """What fails together: a named target, else what the job's type declares. None: nothing that could be dead."""
    if job.spec.target is not None:
        return f"target {job.spec.target}"
    from scheduler.targets import registry  # functions that run no jobs never load it

    try:
        return registry.load(job.spec.type).circuit_of(job.spec.payload)
    except registry.UnknownType:
        return None


def is_dead(result: Result) -> bool:
    """Whether the attempt says that its target is dead: no answer, none in time, or a 5xx. Not that it refused, nor wanted none now."""
    failure = result.failure
    if failure is None or failure.kind not in (FailureKind.RETRYABLE, FailureKind.TIMEOUT):
        return False
    if result.response is not None:
        return int(result.response.get("status", 0)) >= 500
    return result.output is None  # a function that raised is alive


def opened(circuit: str, now: int, before: Breaker | None = None) -> Breaker:
    """Open, or open again after the probe of `before` failed."""
    if before is None:
        return Breaker(circuit, now, now + FIRST_MS, FIRST_MS)
    waits = min(before.waits_ms * 2, LONGEST_MS)
    return Breaker(circuit, now, now + waits, waits, version=before.version + 1)


def may_probe(breaker: Breaker, now: int) -> bool:
    return now >= breaker.until and (breaker.probe_until is None or now >= breaker.probe_until)


def probed(breaker: Breaker, job: Job, now: int) -> Breaker:
    """Half-open: this job tries."""
    return replace(breaker, probe_until=now + job.spec.timeout_ms + PROBE_MS, version=breaker.version + 1)


def back_at(breaker: Breaker, now: int, chance: float) -> int:
    """When a job that is held back comes again; `chance` from 0 to 1 keeps them from coming together."""
    if now < breaker.until:
        return breaker.until + 500 + int(chance * max(breaker.waits_ms // 5, 2_000))
    return now + 3_000 + int(chance * 4_000)  # somebody tries just now


def can_wait(job: Job, at: int) -> bool:
    """Whether the job may come so late: its expiry, its `max_elapsed_ms` or our patience is not over by then."""
    expires_at = misfire.expires_at(job)
    if expires_at is not None and at >= expires_at:
        return False
    begin = max(job.scheduled_at + (job.delay_ms or 0), job.redriven_at or 0, job.created_at)
    limit = job.spec.retry.max_elapsed_ms if job.delay_ms is not None else None
    return at <= begin + (PATIENCE_MS if limit is None else limit)
