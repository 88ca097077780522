"""What people see and do with an ordering key: who runs, who waits, which failure parks it; and resume it."""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.admission import ordering
from scheduler.admission.ordering_queue import named
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, JobKey, Line, OrderKey
from scheduler.model.lifecycle import is_open
from scheduler.pipeline.enqueue import enqueue
from scheduler.pipeline.follow_up import waits
from scheduler.storage.ports import Ports

COUNTED = 100  # jobs of a line that are read to tell of it


@dataclass(frozen=True, slots=True)
class LineView:
    """A line as people see it. `turn`: the job that runs, or waits for another attempt; `parked_by`: the failed one that stops it."""

    turn: Job | None
    parked_by: Job | None
    waiting: int
    more: bool  # more are waiting than were counted


def look(order: OrderKey, ports: Ports) -> LineView:
    """How the line of the key stands. A key that was never used has an empty one."""
    line, found = _read(order, ports)
    standing = [job for marker in line.markers if (job := found.get(marker.key)) is not None and ordering.marker(job) == marker]
    turn = ordering.holding(line, found)
    parked = next((job for job in standing if ordering.parks(job)), None)
    waiting = [job for job in standing if is_open(job) and job is not turn]
    return LineView(turn, parked, len(waiting), line.more)


def resume(order: OrderKey, ports: Ports) -> LineView:
    """Let those go on that wait behind failed jobs; these stay failed, and lose their places. Raises Conflict if none parks the key.

    Who waited may be looked at an hour later only, so its message has to go: raises Unavailable if it was refused, and asked again
    sends it again.
    """
    line, found = _read(order, ports)
    parked = ordering.parked_by(line, found)
    if parked:
        ports.orders.leave(parked)
        line, found = _read(order, ports)
    now, first = ports.clock.now(), ordering.next_up(line, found)
    sleeping = [first] if first is not None and waits(first, now) else []
    if not parked and not sleeping:
        raise Conflict("the key is not parked")
    if enqueue(sleeping, lanes=ports.lanes, now=now):
        raise Unavailable("the key goes on, but its next job could not be handed over; resume it again")
    return look(order, ports)


def _read(order: OrderKey, ports: Ports) -> tuple[Line, Mapping[JobKey, Job]]:
    line = ports.orders.lines([order], limit=COUNTED)[order]
    return line, ports.jobs.get_many(sorted(named(line)))
