"""Accept jobs: a put each, and a direct hand-over of those that are due before any minute that is safe to write into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduler import ids, slots
from scheduler.model import Job
from scheduler.ports import Clock, Jobs, Lanes
from scheduler.rules import Rules
from scheduler.services.placing import on_their_way


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job as its owner asks for it, already validated. `execute_at` None means now."""

    owner: str
    type: str
    payload: Mapping[str, Any]
    execute_at: int | None = None
    max_attempts: int = 3
    timeout_ms: int = 300_000
    weight: float = 1.0
    tags: tuple[str, ...] = ()


def submit(request: NewJob, *, jobs: Jobs, lanes: Lanes, clock: Clock, rules: Rules, random: int) -> Job:
    """Store the job and answer it; it is accepted once the put holds, even if the hand-over then fails.

    `random` fills the id. Raises Unavailable if the table refuses: then nothing was accepted.
    """
    now = clock.now()
    draft = _draft(request, now, rules, random)
    jobs.put(draft)  # False can only be an earlier, unanswered try of this very put: 75 random bits do not collide
    (job,) = on_their_way([draft], now, jobs=jobs, lanes=lanes, clock=clock, rules=rules)
    return job


def submit_many(
    requests: Sequence[NewJob], *, jobs: Jobs, lanes: Lanes, clock: Clock, rules: Rules, randoms: Sequence[int]
) -> list[Job | None]:
    """The same for many, each accepted or not on its own: in order, None where the table refused.

    `randoms` fill the ids. Raises Unavailable if the table refuses them all at once.
    """
    now = clock.now()
    drafts = [_draft(request, now, rules, random) for request, random in zip(requests, randoms, strict=True)]
    held = [done is not None for done in jobs.put_many(drafts)]  # False: as for a single put
    stored = [draft for draft, holds in zip(drafts, held, strict=True) if holds]
    accepted = iter(on_their_way(stored, now, jobs=jobs, lanes=lanes, clock=clock, rules=rules))
    return [next(accepted) if holds else None for holds in held]


def _draft(request: NewJob, now: int, rules: Rules, random: int) -> Job:
    scheduled_at = now if request.execute_at is None else request.execute_at
    due_at = max(scheduled_at, now)
    job_id = ids.new(scheduled_at, random)
    return Job(
        owner=request.owner,
        id=job_id,
        type=request.type,
        payload=request.payload,
        scheduled_at=scheduled_at,
        due_at=due_at,
        created_at=now,
        slot=slots.place(due_at, now, job_id, rules.shards).slot,
        max_attempts=request.max_attempts,
        timeout_ms=request.timeout_ms,
        weight=request.weight,
        tags=request.tags,
    )
