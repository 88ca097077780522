"""The timers of monitors: a timer wakes the worker when a monitor must be judged, and whoever judges arms the next one.

Pings move no timer. A write after which a monitor must be judged earlier than before arms a timer first: if its process ends in between,
a timer too many is judged and dropped. A message wakes a partition of timers for one second: see `scheduler.tasks.timers`.
"""

import zlib
from collections.abc import Sequence
from functools import partial

from scheduler.model.monitor import MonitorTimer
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.ports import Ports
from scheduler.storage.ports.monitors import PARTS
from scheduler.tasks import timers
from scheduler.tasks.timers import AHEAD_MS, START, Position, Wake


def part_of(token_hash: str) -> int:
    """The partition of the timers of a monitor."""
    return zlib.crc32(token_hash.encode()) % PARTS


def item_of(part: int) -> WorkItem:
    """The message that wakes a partition."""
    return WorkItem(WorkKind.MONITOR, part=str(part))


def set_timer(timer: MonitorTimer, ports: Ports) -> None:
    """Store a timer, and send its message if it is due soon. If the queue refuses, the next minute sends it."""
    ports.monitors.arm(timer)
    wake_soon([timer], ports, timer.armed_at)


def wake_soon(armed: Sequence[MonitorTimer], ports: Ports, now: int) -> None:
    """Send one message for each partition and second in which these timers are due, unless the next minute sends it."""
    timers.wake_soon(map(_wake_of, armed), ports, now)


def request(ports: Ports, now: int) -> int:
    """Send a message for each partition and second in which timers are due, up to `AHEAD_MS` ahead. Returns their number.

    The timers of a second share its message: no more than a page of them is read, and all that are overdue share one, too.
    """
    return sum(_request_part(part, ports, now) for part in range(PARTS))


def _request_part(part: int, ports: Ports, now: int) -> int:
    sent, following = 0, partial(_after_second, now)
    left: Position | None = START
    while left is not None:
        more, left = timers.request(partial(_read, ports, part, now + AHEAD_MS), _wake_of, following, ports, now, left)
        sent += more
    return sent


def _after_second(now: int, timer: MonitorTimer) -> Position:
    return timers.second_end(timer.at, now) + 1, ""


def _read(ports: Ports, part: int, until: int, after: Position, limit: int) -> list[MonitorTimer]:
    return ports.monitors.timers(part, after, until, limit)


def _wake_of(timer: MonitorTimer) -> Wake:
    return Wake(item_of(part_of(timer.token_hash)), timer.at)
