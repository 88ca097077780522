"""The timers of watched runs: each run of a task whose alerts have deadlines has one, from its planning until its last deadline.

A timer is armed before its run is stored. If its process ends in between, a timer too many is judged and dropped. A message of the work
queue wakes the timers of one second in one partition; the worker sends it in the minute before. If it is lost, the next minute sends
another one, as the timer is still there.
"""

import zlib
from collections.abc import Sequence

from scheduler.model.job import Job
from scheduler.model.lifecycle import is_open
from scheduler.model.run_timer import RunTimer
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.ports import Ports
from scheduler.storage.ports.run_timers import PARTS

AHEAD_MS = 75_000  # messages are sent this long ahead: a little longer than a minute, after which the next ones are sent
EARLY_MS = 200  # a message may come this early; the queue delays for whole seconds only
SECOND_MS = 1_000
PAGE = 500  # timers per read
START = (0, "")  # before all timers


def arm(timers: Sequence[RunTimer], ports: Ports) -> None:
    """Store the timers of runs that are about to be stored. Raises Unavailable."""
    if timers:
        ports.run_timers.arm(timers)


def wake_soon(timers: Sequence[RunTimer], ports: Ports, now: int) -> None:
    """Send the messages of the timers that are due before the next minute sends its own. If the queue refuses, that one does."""
    due = {(item_of(timer), delay_ms(timer.next_at, now)) for timer in timers if timer.next_at <= now + AHEAD_MS}
    for item, delay in sorted(due):
        ports.work.send([item], delay_ms=delay)


def request(ports: Ports, now: int) -> int:
    """Send a message for each second of each partition whose timers are due, up to `AHEAD_MS` ahead. Returns their number."""
    sent = 0
    for part in range(PARTS):
        due, after = set[tuple[WorkItem, int]](), START
        while found := ports.run_timers.timers(part, after, now + AHEAD_MS, PAGE):
            due |= {(item_of(timer), delay_ms(timer.next_at, now)) for timer in found if timer.next_at <= now + AHEAD_MS}
            after = found[-1].position
            if len(found) < PAGE:
                break
        for item, delay in sorted(due):
            ports.work.send([item], delay_ms=delay)
        sent += len(due)
    return sent


def of_runs(runs: Sequence[Job]) -> list[Job]:
    """The runs that are watched, and are yet to start."""
    return [run for run in runs if run.origin is not None and run.origin.watched and is_open(run)]


def item_of(timer: RunTimer) -> WorkItem:
    """The message that wakes a timer: it names the second of its first deadline, in which it is stored."""
    return WorkItem(WorkKind.RUN_TIMERS, str(timer.at // SECOND_MS), str(zlib.crc32(timer.position[1].encode()) % PARTS))


def delay_ms(at: int, now: int) -> int:
    """The delay of the message of a timer, in whole seconds: it comes up to `EARLY_MS` early, so that it is late by less than a second."""
    return max(-(-(at - now - EARLY_MS) // SECOND_MS), 0) * SECOND_MS
