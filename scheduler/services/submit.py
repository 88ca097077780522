"""Accept a job: one put, and a direct hand-over if it is due before any minute that is safe to write into."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler import ids, slots
from scheduler.errors import Unavailable
from scheduler.lifecycle import Event, apply
from scheduler.model import Job
from scheduler.ports import Change, Clock, Jobs, Lanes
from scheduler.rules import Rules
from scheduler.services.handover import hand_over

log = logging.getLogger(__name__)


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


def submit(request: NewJob, *, jobs: Jobs, lanes: Lanes, clock: Clock, rules: Rules, random: int) -> Job:
    """Store the job and answer it; it is accepted once the put holds, even if the hand-over then fails.

    `random` fills the id. Raises Unavailable if the table refuses: then nothing was accepted.
    """
    now = clock.now()
    job, direct = _draft(request, now, rules, random)
    jobs.put(job)  # False can only be an earlier, unanswered try of this very put: 75 random bits do not collide
    after = clock.now()
    if after - now > slots.SLOW_PUT and not slots.is_safe(job.slot or "", after):
        job, direct = _moved(job, after, jobs, rules), True
    if direct:
        _hand_over(job, lanes, after)
    return job


def _draft(request: NewJob, now: int, rules: Rules, random: int) -> tuple[Job, bool]:
    scheduled_at = now if request.execute_at is None else request.execute_at
    due_at = max(scheduled_at, now)
    job_id = ids.new(scheduled_at, random)
    placement = slots.place(due_at, now, job_id, rules.shards)
    job = Job(
        owner=request.owner,
        id=job_id,
        type=request.type,
        payload=request.payload,
        scheduled_at=scheduled_at,
        due_at=due_at,
        created_at=now,
        slot=placement.slot,
        max_attempts=request.max_attempts,
        timeout_ms=request.timeout_ms,
        weight=request.weight,
    )
    return job, placement.direct


def _moved(job: Job, now: int, jobs: Jobs, rules: Rules) -> Job:
    """The job in a slot that is safe now: its put took so long that dispatch of the old slot may have begun."""
    moved = apply(job, Event.MOVE, now, slot=slots.place(job.due_at, now, job.id, rules.shards).slot)
    try:
        (held,) = jobs.change([Change(job, moved)])
    except Unavailable:
        held = None
    return moved if held else replace(job)


def _hand_over(job: Job, lanes: Lanes, now: int) -> None:
    try:
        refused = hand_over([job], lanes=lanes, now=now)
    except Unavailable:
        refused = 1
    if refused:
        log.warning("hand-over refused; the slot is the net", extra=job.log_context() | {"slot": job.slot})
