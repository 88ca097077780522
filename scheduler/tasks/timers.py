"""Timers in partitions, which messages of the work queue wake: what timers of watched runs and of monitors have in common.

A message wakes timers of one second in one partition. It is sent in the minute before; if it is lost, the next minute sends another one,
as the timer is still there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from scheduler.model.work import WorkItem
from scheduler.storage.ports import Ports

AHEAD_MS = 75_000  # messages are sent this long ahead: a little longer than a minute, after which the next ones are sent
EARLY_MS = 200  # a message may come this early; the queue delays for whole seconds only
SECOND_MS = 1_000
PAGE = 500  # timers per read
PAGES = 4  # of a partition in one step: another step continues

Position = tuple[int, str]  # of a timer in its partition: its instant, and the name of its run or monitor
START: Position = (0, "")  # before all timers
T = TypeVar("T")


class Wake(NamedTuple):
    """A message, and when it is due."""

    item: WorkItem
    at: int


def delay_ms(at: int, now: int) -> int:
    """The delay of the message of a timer, in whole seconds: it comes up to `EARLY_MS` early, so that it is late by less than a second."""
    return max(-(-(at - now - EARLY_MS) // SECOND_MS), 0) * SECOND_MS


def second_end(at: int, now: int) -> int:
    """The last instant whose timers have the message of a timer at `at`, which is sent now."""
    return now + delay_ms(at, now) + EARLY_MS


def wake_soon(wakes: Iterable[Wake], ports: Ports, now: int) -> int:
    """Send the messages that are due before the next minute sends its own, each once. Returns their number.

    If the queue refuses, the next minute sends them.
    """
    by_delay = defaultdict[int, set[WorkItem]](set)
    for wake in wakes:
        if wake.at <= now + AHEAD_MS:
            by_delay[delay_ms(wake.at, now)].add(wake.item)
    for delay, items in sorted(by_delay.items()):
        ports.work.send(sorted(items), delay_ms=delay)
    return sum(map(len, by_delay.values()))


def request(
    read: Callable[[Position, int], Sequence[T]],
    wake_of: Callable[[T], Wake],
    following: Callable[[T], Position],
    ports: Ports,
    now: int,
    begin: Position = START,
) -> tuple[int, Position | None]:
    """Send the messages of the timers of a partition that are due up to `AHEAD_MS` ahead, in at most `PAGES` reads.

    `read` returns up to a number of timers after a position, `following` the position after which to read on. Returns the number of
    messages, and the position at which to continue in another step; None: that was the last timer.
    """
    sent, after = 0, begin
    for _ in range(PAGES):
        found = read(after, PAGE)
        sent += wake_soon(map(wake_of, found), ports, now)
        if len(found) < PAGE:
            return sent, None
        after = following(found[-1])
    return sent, after
