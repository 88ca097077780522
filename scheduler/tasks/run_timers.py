"""The timers of watched runs: each run of a task whose alerts have deadlines has one, from its planning until its last deadline.

A timer is armed before its run is stored. If its process ends in between, a timer too many is judged and dropped. A message wakes the
timers that are stored in one second of one partition: see `scheduler.tasks.timers`. A timer that is set to a further deadline keeps its
place, so that this is one write; only one that would be read each minute for long gets another place.
"""

import zlib
from collections.abc import Sequence
from functools import partial

from scheduler.model.job import Job
from scheduler.model.lifecycle import is_open
from scheduler.model.run_timer import RunTimer
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.ports import Ports
from scheduler.storage.ports.run_timers import PARTS
from scheduler.tasks import timers
from scheduler.tasks.timers import AHEAD_MS, SECOND_MS, START, Position, Wake

FAR_MS = 6 * 3_600_000  # a timer moved farther than this gets a place there: a write costs less than a read each minute


def arm(armed: Sequence[RunTimer], ports: Ports) -> None:
    """Store the timers of runs that are about to be stored. Raises Unavailable."""
    if armed:
        ports.run_timers.arm(armed)


def wake_soon(armed: Sequence[RunTimer], ports: Ports, now: int) -> None:
    """Send the messages of the timers that are due before the next minute sends its own."""
    timers.wake_soon(map(_wake_of, armed), ports, now)


def set_to(timer: RunTimer, moved: RunTimer, ports: Ports, now: int) -> None:
    """Set a timer to its next deadline. If its process ends between the writes of another place, it is judged again. Raises Unavailable."""
    if moved.next_at > now + FAR_MS:
        ports.run_timers.arm([moved.at_its_deadline])
        ports.run_timers.drop(timer)
    elif ports.run_timers.move(timer, moved):
        wake_soon([moved], ports, now)


def request(ports: Ports, now: int) -> int:
    """Send a message for each second of each partition whose timers are due, up to `AHEAD_MS` ahead. Returns their number."""
    return sum(request_part(part, START, ports, now) for part in range(PARTS))


def request_part(part: int, begin: Position, ports: Ports, now: int) -> int:
    """The same for the timers of a partition after a position. Another message continues it if there are many."""
    read = partial(_read, ports, part, now + AHEAD_MS)
    sent, left = timers.request(read, _wake_of, lambda timer: timer.position, ports, now, begin)
    if left is not None:
        ports.work.send([WorkItem(WorkKind.REQUEST_TIMERS, f"{left[0]}#{left[1]}", str(part))])
    return sent


def resume(item: WorkItem, ports: Ports, now: int) -> int:
    """Continue the request of a partition where the message says."""
    at, _, name = item.of.partition("#")
    return request_part(int(item.part), (int(at), name), ports, now)


def of_runs(runs: Sequence[Job]) -> list[Job]:
    """The runs that are watched, and are yet to start."""
    return [run for run in runs if run.origin is not None and run.origin.watched and is_open(run)]


def item_of(timer: RunTimer) -> WorkItem:
    """The message that wakes a timer: it names the second in which it is stored."""
    return WorkItem(WorkKind.RUN_TIMERS, str(timer.at // SECOND_MS), str(zlib.crc32(timer.position[1].encode()) % PARTS))


def _read(ports: Ports, part: int, until: int, after: Position, limit: int) -> list[RunTimer]:
    return ports.run_timers.timers(part, after, until, limit)


def _wake_of(timer: RunTimer) -> Wake:
    return Wake(item_of(timer), timer.next_at)
