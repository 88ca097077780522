"""The timers of watched runs in memory."""

import zlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from scheduler.model.run_timer import RunTimer
from scheduler.storage.ports.run_timers import PARTS


class MemoryRunTimers:
    """The port `RunTimers`."""

    def __init__(self) -> None:
        self.armed: dict[tuple[int, str], RunTimer] = {}
        self._order: list[list[tuple[int, str]]] = [[] for _ in range(PARTS)]  # of the timers of each partition

    def arm(self, timers: Sequence[RunTimer]) -> None:
        for timer in timers:
            if timer.position not in self.armed:
                insort(self._part(timer), timer.position)
            self.armed[timer.position] = timer

    def move(self, before: RunTimer, after: RunTimer) -> bool:
        stored = self.armed.get(before.position)
        if stored is None or stored.armed_at != before.armed_at:
            return False
        self.armed[before.position] = after
        return True

    def drop(self, timer: RunTimer) -> bool:
        stored = self.armed.get(timer.position)
        if stored is None:
            return True
        if stored.armed_at != timer.armed_at:
            return False
        del self.armed[timer.position]
        part = self._part(timer)
        del part[bisect_left(part, timer.position)]
        return True

    def timers(self, part: int, after: tuple[int, str], until: int, limit: int) -> list[RunTimer]:
        order = self._order[part]
        first, last = bisect_right(order, after), bisect_left(order, (until + 1, ""))
        return [self.armed[position] for position in order[first : min(last, first + limit)]]

    def _part(self, timer: RunTimer) -> list[tuple[int, str]]:
        return self._order[zlib.crc32(timer.position[1].encode()) % PARTS]
