"""Enqueue jobs that are due before any minute that is safe to write into. Each also has a safety slot, from which it is picked up."""

import logging
from collections import Counter
from collections.abc import Sequence

from scheduler.admission import ordering
from scheduler.admission.ordering_queue import join_queues
from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Message
from scheduler.model.rules import Rules
from scheduler.pipeline import packs
from scheduler.storage.ports import Change, Lanes, Ports, Written

SENT_AT_ONCE = 160  # messages sent per reading of the clock: as many as the lanes send in parallel

log = logging.getLogger(__name__)


def enqueue(jobs: Sequence[Job], *, lanes: Lanes, now: int, after: int = 0) -> int:
    """Send a message per job, delayed to just before its due time and at least to `after` (ms). Returns how many were refused.

    Raises Unavailable.
    """
    return len(lanes.send([Message.of(job, now, after) for job in jobs], now)) if jobs else 0


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

    The jobs were placed by `slots.place` at `began`, when they also entered their ordering queues; then their puts began. If the puts took
    long, executors may have removed the entries, which were without jobs: they are stored again, and jobs are moved to safe slots.
    Never raises: each job has a slot from which it is picked up, and stores its own missing entry before it starts.
    """
    now = ports.clock.now()
    if now - began > ordering.YOUNG_MS // 2:
        join_queues(stored, orders=ports.orders, now=now)
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
        written = dict(zip(changes, ports.jobs.change(list(changes.values())), strict=True))
    except Unavailable:
        written = {}
    return [changes[job.key].after if written.get(job.key) is Written.YES else job for job in stored]


def _move(job: Job, now: int, rules: Rules) -> Change:
    return Change.of_slot(job, lifecycle.move(job, slot=slots.place(job.due_at, now, job.id, rules.shards).slot))


def _enqueue_in_parts(jobs: Sequence[Job], ports: Ports) -> None:
    """Enqueue new jobs by due time, crowds in packs, in parts. The clock is read before each part: delays count from sending.

    If a whole part is refused, the other parts are left to their slots: the caller waits for its answer.
    """
    ordered = sorted(jobs, key=lambda job: job.due_at)
    crowds = Counter((job.lane, packs.second(job.due_at)) for job in ordered)

    def crowd(message: Message) -> int:
        return crowds[message.lane, packs.second(message.due_at)]

    now = ports.clock.now()
    messages = [Message.of(job, 0) for job in ordered]
    ready = ports.rules.ready_executors

    def most(first: Message) -> int:
        jobs = crowd(first)
        return packs.direct(jobs, ready) if first.due_at <= now or not packs.is_crowd(jobs, ready) else packs.size(jobs, ready)

    left = packs.pack(messages, most)
    while left:
        now = ports.clock.now()
        part = [_timed(each, crowd(each), now, ports.rules) for each in left[:SENT_AT_ONCE]]
        try:
            refused = len(ports.lanes.send(part, now))
        except Unavailable:
            refused = len(part)
        if refused:
            log.warning("could not enqueue new jobs; they are picked up from their slots", extra={"refused": refused, "of": len(part)})
        left = [] if refused == len(part) else left[SENT_AT_ONCE:]


def _timed(each: Message, crowd: int, now: int, rules: Rules) -> Message:
    """Return the message as it is sent at `now`: a pack arrives ahead of its jobs by the lead of its crowd."""
    early = slots.not_before(each.due_at)
    if each.more:
        early = min(early, each.due_at - packs.lead(crowd, rules.crowd_hold_ms))
    return each._replace(sent_at=now, not_before=early if early > now else 0)
