"""Ordering queues: a job enters one before it is stored and leaves it when it has ended; then the next job is the head.

A waiting job lies still: the end of the job before it enqueues it. One job of the beginning of each queue has a near slot, so that a lost
wake-up is found within minutes; the others are checked rarely, however long the queue is.
"""

import logging
from collections.abc import Sequence

from scheduler.admission import ordering
from scheduler.model import lifecycle, slots
from scheduler.model.after import waits
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, OrderingQueue
from scheduler.storage.ports import Change, OrderingQueues, Ports, Written

HEAD = 10  # entries read of a queue: in most cases the first one decides

log = logging.getLogger(__name__)


def join_queues(jobs: Sequence[Job], *, orders: OrderingQueues, now: int) -> list[bool]:
    """Store the entries of jobs that have an ordering key. Returns for each job whether it may be stored: not without its entry.

    A job that waits for its predecessors holds up no queue, since they may be behind it. Its gate stores its entry when they have ended.
    """
    ordered = [job for job in jobs if job.spec.ordering is not None and not waits(job.after)]
    if not ordered:
        return [True] * len(jobs)
    try:
        put = orders.enqueue([ordering.entry_of(job, now) for job in ordered])
    except Unavailable:
        put = [Written.REFUSED] * len(ordered)
    refused = {job.key for job, done in zip(ordered, put, strict=True) if done is Written.REFUSED}
    return [job.key not in refused for job in jobs]


def leave_queues(left: Sequence[Job], *, orders: OrderingQueues) -> None:
    """Remove the entries of jobs that have ended or whose time has changed. A job that pauses its key keeps its entry."""
    entries = [ordering.entry_of(job) for job in left if job.spec.ordering is not None and not ordering.pauses(job)]
    if not entries:
        return
    try:
        orders.leave(entries)
    except Unavailable:
        log.info("could not remove ordering entries; the next executor that reads them will", extra={"entries": len(entries)})


def next_in_line(of: Sequence[Job], ports: Ports, now: int) -> list[Job]:
    """The jobs that may start next in the ordering queues of these jobs; none while a table refuses.

    A job behind them gets a near slot where none has it.
    """
    lines_of = sorted({ordering.order_of(job) for job in of if job.spec.ordering is not None})
    if not lines_of:
        return []
    try:
        lines = ports.orders.lines(lines_of, limit=HEAD)
        found = ports.jobs.get_many(sorted({key for line in lines.values() for key in named(line)}))
    except Unavailable:
        log.warning("could not read ordering queues; their jobs are picked up from their slots", extra={"keys": len(lines_of)})
        return []
    _bring_near([job for line in lines.values() if (job := ordering.to_watch(line, found, now)) is not None], ports, now)
    return [job for line in lines.values() if (job := ordering.next_up(line, found)) is not None]


def _bring_near(watching: Sequence[Job], ports: Ports, now: int) -> None:
    """Move these waiting jobs to near slots. A refused one is found later."""
    if not watching:
        return
    moved = [lifecycle.move(job, slot=slots.place(job.due_at, now, job.id, ports.rules.shards).slot) for job in watching]
    try:
        ports.jobs.change([Change.of_slot(job, after) for job, after in zip(watching, moved, strict=True)])
    except Unavailable:
        log.info("could not move waiting jobs to near slots", extra={"jobs": len(watching)})


def named(line: OrderingQueue) -> set[JobKey]:
    """The jobs that the entries and the head of a queue name."""
    head = {line.head.key} if line.head is not None else set()
    return head | {entry.key for entry in line.entries}
