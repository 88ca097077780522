"""Accept jobs: a put each, and a direct hand-over of those that are due before any minute that is safe to write into."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scheduler import ids, slots
from scheduler.errors import Unavailable
from scheduler.lifecycle import Event, apply
from scheduler.model import Job
from scheduler.ports import Change, Clock, Jobs, Lanes
from scheduler.rules import Rules
from scheduler.services.handover import hand_over

HANDED_AT_ONCE = 160  # messages sent by one reading of the clock: as many as the lanes send side by side

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
    tags: tuple[str, ...] = ()


class _Draft(NamedTuple):
    """A job on its way into the table; `direct`: its slot is only its net."""

    job: Job
    direct: bool


def submit(request: NewJob, *, jobs: Jobs, lanes: Lanes, clock: Clock, rules: Rules, random: int) -> Job:
    """Store the job and answer it; it is accepted once the put holds, even if the hand-over then fails.

    `random` fills the id. Raises Unavailable if the table refuses: then nothing was accepted.
    """
    now = clock.now()
    draft = _draft(request, now, rules, random)
    jobs.put(draft.job)  # False can only be an earlier, unanswered try of this very put: 75 random bits do not collide
    (job,) = _on_their_way([draft], now, jobs, lanes, clock, rules)
    return job


def submit_many(
    requests: Sequence[NewJob], *, jobs: Jobs, lanes: Lanes, clock: Clock, rules: Rules, randoms: Sequence[int]
) -> list[Job | None]:
    """The same for many, each accepted or not on its own: in order, None where the table refused.

    `randoms` fill the ids. Raises Unavailable if the table refuses them all at once.
    """
    now = clock.now()
    drafts = [_draft(request, now, rules, random) for request, random in zip(requests, randoms, strict=True)]
    held = [done is not None for done in jobs.put_many([draft.job for draft in drafts])]  # False: as for a single put
    accepted = iter(_on_their_way([draft for draft, holds in zip(drafts, held, strict=True) if holds], now, jobs, lanes, clock, rules))
    return [next(accepted) if holds else None for holds in held]


def _draft(request: NewJob, now: int, rules: Rules, random: int) -> _Draft:
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
        tags=request.tags,
    )
    return _Draft(job, placement.direct)


def _on_their_way(drafts: Sequence[_Draft], began: int, jobs: Jobs, lanes: Lanes, clock: Clock, rules: Rules) -> list[Job]:
    """The stored jobs as they stand once those that need it are moved and handed over; their puts began at `began`."""
    now = clock.now()
    if now - began > slots.SLOW_PUT:
        drafts = _moved(drafts, now, jobs, rules)
    _hand_over([draft.job for draft in drafts if draft.direct], lanes, clock)
    return [draft.job for draft in drafts]


def _moved(drafts: Sequence[_Draft], now: int, jobs: Jobs, rules: Rules) -> list[_Draft]:
    """Jobs whose slots are not safe any more in slots that are: their puts took so long that dispatch of the old ones may have begun."""
    changes = {draft.job.key: _move(draft.job, now, rules) for draft in drafts if not slots.is_safe(draft.job.slot or "", now)}
    try:
        held = dict(zip(changes, jobs.change(list(changes.values())), strict=True))
    except Unavailable:
        held = {}
    return [
        _Draft(changes[draft.job.key].after if held.get(draft.job.key) else draft.job, True) if draft.job.key in changes else draft
        for draft in drafts
    ]


def _move(job: Job, now: int, rules: Rules) -> Change:
    return Change(job, apply(job, Event.MOVE, now, slot=slots.place(job.due_at, now, job.id, rules.shards).slot))


def _hand_over(jobs: Sequence[Job], lanes: Lanes, clock: Clock) -> None:
    """The soonest first. Delays count from the moment of sending, and a thousand messages take a while: hence the clock in between.

    Where nothing gets through at all, the rest is left to its slots: the caller waits for its answer.
    """
    left = sorted(jobs, key=lambda job: job.due_at)
    while left:
        part = left[:HANDED_AT_ONCE]
        try:
            refused = hand_over(part, lanes=lanes, now=clock.now())
        except Unavailable:
            refused = len(part)
        if refused:
            log.warning("hand-over refused; the slots are the net", extra=part[0].log_context() | {"refused": refused, "of": len(left)})
        left = [] if refused == len(part) else left[HANDED_AT_ONCE:]
