"""Enqueue jobs that are due before any minute that is safe to write into. Each also has a safety slot, from which it is picked up."""

import logging
from collections.abc import Sequence

from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Message
from scheduler.model.rules import Rules
from scheduler.storage.ports import Change, Lanes, Ports, Written

SENT_AT_ONCE = 160  # messages sent per reading of the clock: as many as the lanes send in parallel

log = logging.getLogger(__name__)


def message(job: Job, now: int, after: int = 0) -> Message:
    early = max(slots.not_before(job.due_at), after)
    return Message(job.key, job.fence, job.lane, job.due_at, sent_at=now, not_before=early if early > now else 0)


def enqueue(jobs: Sequence[Job], *, lanes: Lanes, now: int, after: int = 0) -> int:
    """Send a message per job, delayed to just before its due time and at least to `after` (ms). Returns how many were refused.

    Raises Unavailable.
    """
    return len(lanes.send([message(job, now, after) for job in jobs], now)) if jobs else 0


def try_enqueue(jobs: Sequence[Job], *, lanes: Lanes, now: int, after: int = 0) -> int:
    """Like `enqueue`, but never raises: a job whose message is missing only starts later, from its slot."""
    try:
        refused = enqueue(jobs, lanes=lanes, now=now, after=after)
    except Unavailable:
        refused = len(jobs)
    if refused:
        log.warning(
            "could not enqueue jobs; they are picked up from their slots",
            extra=jobs[0].log_context() | {"refused": refused, "of": len(jobs)},
        )
    return refused


def enqueue_if_due_soon(stored: Sequence[Job], began: int, ports: Ports) -> list[Job]:
    """Enqueue newly stored jobs that are due before a dispatcher reads their slots. Returns all jobs as they are stored then.

    The jobs were placed by `slots.place` at `began`, when their puts began. If the puts took long, jobs are moved to safe slots first.
    Never raises: each job has a slot from which it is picked up.
    """
    now = ports.clock.now()
    unsafe: set[JobKey] = set()
    if now - began > slots.SLOW_PUT:
        unsafe = {job.key for job in stored if not slots.is_safe(job.slot or "", now)}
        stored = _moved(stored, unsafe, now, ports)
    _enqueue_in_parts([job for job in stored if job.key in unsafe or slots.is_safety_slot(job.slot, job.due_at)], ports)
    return list(stored)


def _moved(stored: Sequence[Job], unsafe: set[JobKey], now: int, ports: Ports) -> list[Job]:
    """Move the `unsafe` jobs to safe slots: their puts took long, and dispatch of their slots may have begun. Returns all jobs."""
    changes = {job.key: _move(job, now, ports.rules) for job in stored if job.key in unsafe}
    try:
        held = dict(zip(changes, ports.jobs.change(list(changes.values())), strict=True))
    except Unavailable:
        held = {}
    return [changes[job.key].after if held.get(job.key) is Written.YES else job for job in stored]


def _move(job: Job, now: int, rules: Rules) -> Change:
    return Change.of_slot(job, lifecycle.move(job, slot=slots.place(job.due_at, now, job.shard_key, rules.shards).slot))


def _enqueue_in_parts(jobs: Sequence[Job], ports: Ports) -> None:
    """Enqueue jobs by due time, in parts. The clock is read before each part: delays count from sending, and that takes a while.

    If a whole part is refused, the other parts are left to their slots: the caller waits for its answer.
    """
    left = sorted(jobs, key=lambda job: job.due_at)
    while left:
        part = left[:SENT_AT_ONCE]
        refused = try_enqueue(part, lanes=ports.lanes, now=ports.clock.now())
        left = [] if refused == len(part) else left[SENT_AT_ONCE:]
