"""Shows the ordering queue of a key (the running job, the waiting jobs, the failure that pauses it) and resumes a paused key."""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.admission import ordering
from scheduler.admission.ordering_queue import named
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, JobKey, OrderingQueue, OrderKey
from scheduler.model.lifecycle import is_open
from scheduler.pipeline.enqueue import enqueue
from scheduler.pipeline.follow_up import waits
from scheduler.storage.ports import Ports

COUNTED = 100  # jobs of an ordering queue that a view reads and counts


@dataclass(frozen=True, slots=True)
class LineView:
    """A view of an ordering queue. `head`: its job that runs or waits for another attempt. `paused_by`: the failed job that stops it."""

    head: Job | None
    paused_by: Job | None
    waiting: int
    more: bool  # more jobs wait than were counted


def view(order: OrderKey, ports: Ports) -> LineView:
    """Return the view of the ordering queue of a key; empty for a key that was never used."""
    line, found = _read(order, ports)
    queued = [job for entry in line.entries if (job := found.get(entry.key)) is not None and ordering.entry_of(job) == entry]
    head = ordering.holding(line, found)
    paused = next((job for job in queued if ordering.pauses(job)), None)
    waiting = [job for job in queued if is_open(job) and job is not head]
    return LineView(head, paused, len(waiting), line.more)


def resume(order: OrderKey, ports: Ports) -> LineView:
    """Let the jobs behind failed jobs start; the failed jobs stay failed and leave the queue. Raises Conflict if no job pauses the key.

    Without a message, the next job might be checked only an hour later. If its message is refused, this raises Unavailable, and
    another resume sends the message again.
    """
    line, found = _read(order, ports)
    paused = ordering.paused_by(line, found)
    if paused:
        ports.orders.leave(paused)
        line, found = _read(order, ports)
    now, first = ports.clock.now(), ordering.next_up(line, found)
    sleeping = [first] if first is not None and waits(first, now) else []
    if not paused and not sleeping:
        raise Conflict("the ordering key is not paused")
    if enqueue(sleeping, lanes=ports.lanes, now=now):
        raise Unavailable("the ordering key is resumed, but its next job could not be enqueued; resume it again")
    return view(order, ports)


def _read(order: OrderKey, ports: Ports) -> tuple[OrderingQueue, Mapping[JobKey, Job]]:
    line = ports.orders.lines([order], limit=COUNTED)[order]
    return line, ports.jobs.get_many(sorted(named(line)))
