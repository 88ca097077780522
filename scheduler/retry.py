"""Whether and when a failed attempt is followed by another: pure, the jitter included."""

import zlib
from dataclasses import dataclass

from scheduler import misfire
from scheduler.model import Failure, Job

BASE_MS = 1_000
CAP_MS = 15 * 60_000
MAX_CRASHES = 2  # charged crashes (alone in the batch) that end a job
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
    """What follows the failure of the attempt `job.charged + 1`, which is charged."""
    if failure.kind == "permanent":
        return GiveUp("the error is permanent")
    attempt = job.charged + 1
    if attempt >= job.max_attempts:
        return GiveUp(f"no attempt is left of {job.max_attempts}")
    at, expires_at = now + backoff(attempt, f"{job.id}{job.fence}"), misfire.expires_at(job)
    return Again(at) if expires_at is None or at < expires_at else GiveUp(EXPIRED)


def backoff(attempt: int, seed: str) -> int:
    """Full jitter, in ms: uniform in [0, min(cap, base * 2**(attempt - 1))], drawn from a hash of the seed.

    A hash instead of a random source keeps the decision repeatable: the same attempt of the same job waits equally
    long wherever it is decided. (Full jitter: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.)
    """
    ceiling = min(CAP_MS, BASE_MS << min(attempt - 1, 30))
    return zlib.crc32(seed.encode()) * ceiling >> 32
