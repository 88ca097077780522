"""The timers of monitors: a timer wakes the worker when a monitor must be judged, and whoever judges arms the next one.

Pings move no timer. A write after which a monitor must be judged earlier than before arms a timer first: if its process ends in between,
a timer too many is judged and dropped. A message of the work queue wakes a partition of timers for one second; it is sent in the minute
before. If it is lost, the next minute sends another one, as the timer is still there.
"""

import zlib

from scheduler.model.monitor import MonitorTimer
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.ports import Ports
from scheduler.storage.ports.monitors import PARTS

AHEAD_MS = 75_000  # messages are sent this long ahead: a little longer than a minute, after which the next ones are sent
EARLY_MS = 200  # a message may come this early; the queue delays for whole seconds only
SECOND_MS = 1_000
PAGE = 500  # timers per read
START = (0, "")  # before all timers


def part_of(token_hash: str) -> int:
    """The partition of the timers of a monitor."""
    return zlib.crc32(token_hash.encode()) % PARTS


def set_timer(timer: MonitorTimer, ports: Ports) -> None:
    """Store a timer, and send its message if it is due soon. If the queue refuses, the next minute sends it."""
    ports.monitors.arm(timer)
    if timer.at <= timer.armed_at + AHEAD_MS:
        ports.work.send([item_of(part_of(timer.token_hash))], delay_ms=delay_ms(timer.at, timer.armed_at))


def request(ports: Ports, now: int) -> int:
    """Send a message for each partition and second in which timers are due, up to `AHEAD_MS` ahead. Returns their number."""
    sent = 0
    for part in range(PARTS):
        delays, after = set[int](), START
        while found := ports.monitors.timers(part, after, now + AHEAD_MS, PAGE):
            delays |= {delay_ms(timer.at, now) for timer in found}
            after = (found[-1].at + 1, "")  # others of that instant share its message
            if len(found) < PAGE:
                break
        for delay in sorted(delays):
            ports.work.send([item_of(part)], delay_ms=delay)
        sent += len(delays)
    return sent


def delay_ms(at: int, now: int) -> int:
    """The delay of the message of a timer, in whole seconds: it comes up to `EARLY_MS` early, so that it is late by less than a second."""
    return max(-(-(at - now - EARLY_MS) // SECOND_MS), 0) * SECOND_MS


def item_of(part: int) -> WorkItem:
    return WorkItem(WorkKind.MONITOR, part=str(part))
