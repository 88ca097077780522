"""Lines of ordering keys: who steps into one before it is stored, and out of it when it has ended, and whose turn it is then."""

import logging
from collections.abc import Sequence

from scheduler.admission import ordering
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Line
from scheduler.storage.ports import Orders, Ports, Written

HEAD = 10  # markers read of a line: usually the first one decides

log = logging.getLogger(__name__)


def line_up(jobs: Sequence[Job], *, orders: Orders, now: int) -> list[bool]:
    """Put the markers of those that have an ordering key. In order, whether each may be stored: one without its marker may not."""
    ordered = [job for job in jobs if job.spec.ordering is not None]
    if not ordered:
        return [True] * len(jobs)
    try:
        put = orders.enqueue([ordering.marker(job, now) for job in ordered])
    except Unavailable:
        put = [Written.REFUSED] * len(ordered)
    refused = {job.key for job, done in zip(ordered, put, strict=True) if done is Written.REFUSED}
    return [job.key not in refused for job in jobs]


def step_out(left: Sequence[Job], *, orders: Orders) -> None:
    """Take away the markers of jobs that have ended, or whose time was changed. One that parks its key stays where it is."""
    markers = [ordering.marker(job) for job in left if job.spec.ordering is not None and not ordering.parks(job)]
    if not markers:
        return
    try:
        orders.leave(markers)
    except Unavailable:
        log.info("markers stay for now; who comes to them takes them away", extra={"markers": len(markers)})


def next_in_line(of: Sequence[Job], ports: Ports) -> list[Job]:
    """Whose turn it is in the lines that these jobs stand or stood in; nobody while a table refuses."""
    lines_of = sorted({ordering.order_of(job) for job in of if job.spec.ordering is not None})
    if not lines_of:
        return []
    try:
        lines = ports.orders.lines(lines_of, limit=HEAD)
        found = ports.jobs.get_many(sorted({key for line in lines.values() for key in named(line)}))
    except Unavailable:
        log.warning("not looked whose turn it is; the slots are the net", extra={"keys": len(lines_of)})
        return []
    return [job for line in lines.values() if (job := ordering.next_up(line, found)) is not None]


def named(line: Line) -> set[JobKey]:
    """The jobs that the head of a line speaks of."""
    turn = {line.turn.key} if line.turn is not None else set()
    return turn | {marker.key for marker in line.markers}
