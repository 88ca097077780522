"""Monitors in memory."""

import zlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import replace

from scheduler.model.monitor import Monitor, MonitorEvent, MonitorTimer, PingIntake
from scheduler.storage.ports.monitors import PARTS


class MemoryMonitors:
    """The port `Monitors`."""

    def __init__(self) -> None:
        self.stored: dict[str, Monitor] = {}  # by the hashes of their tokens
        self.events: dict[tuple[str, int, int], MonitorEvent] = {}
        self.armed: dict[tuple[int, str], MonitorTimer] = {}
        self.known_intake: PingIntake | None = None
        self._hashes: dict[tuple[str, str], str] = {}  # the tokens of monitors by owner and key
        self._order: list[list[tuple[int, str]]] = [[] for _ in range(PARTS)]  # of the timers of each partition

    def get(self, owner: str, key: str) -> Monitor | None:
        return self.stored.get(self._hashes.get((owner, key), ""))

    def of_tokens(self, hashes: Sequence[str]) -> dict[str, Monitor]:
        return {each: self.stored[each] for each in hashes if each in self.stored}

    def listing(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Monitor], str | None]:
        found = sorted((each for each in self.stored.values() if each.owner == owner), key=lambda each: each.key)
        found = [each for each in found if after is None or each.key > after]
        return found[:limit], found[limit - 1].key if len(found) > limit else None

    def put(self, before: Monitor | None, after: Monitor) -> bool:
        known = self.get(after.owner, after.key)
        if (known and known.pulse.version) != (before and before.pulse.version):
            return False
        if before is not None:
            del self.stored[before.token_hash]
        self.stored[after.token_hash] = _next(before, after)
        self._hashes[after.owner, after.key] = after.token_hash
        return True

    def delete(self, monitor: Monitor) -> None:
        if self.stored.pop(monitor.token_hash, None) is not None:
            del self._hashes[monitor.owner, monitor.key]

    def write_pulse(self, before: Monitor, after: Monitor) -> bool:
        known = self.stored.get(before.token_hash)
        if known is None or known.pulse.version != before.pulse.version:
            return False
        self.stored[before.token_hash] = replace(known, pulse=_next(before, after).pulse)
        return True

    def note(self, monitor: Monitor, events: Sequence[MonitorEvent]) -> None:
        self.events |= {(monitor.id, event.at, event.number): event for event in events}

    def history(self, monitor: Monitor, limit: int) -> list[MonitorEvent]:
        found = sorted((key for key in self.events if key[0] == monitor.id), reverse=True)
        return [self.events[key] for key in found[:limit]]

    def arm(self, timer: MonitorTimer) -> None:
        key = timer.at, timer.token_hash
        if key not in self.armed:
            insort(self._part(timer), key)
        self.armed[key] = timer

    def drop(self, timer: MonitorTimer) -> None:
        key = timer.at, timer.token_hash
        if self.armed.pop(key, None) is not None:
            part = self._part(timer)
            del part[bisect_left(part, key)]

    def timers(self, part: int, after: tuple[int, str], until: int, limit: int) -> list[MonitorTimer]:
        order = self._order[part]
        first, last = bisect_right(order, after), bisect_left(order, (until + 1, ""))
        return [self.armed[key] for key in order[first : min(last, first + limit)]]

    def _part(self, timer: MonitorTimer) -> list[tuple[int, str]]:
        return self._order[zlib.crc32(timer.token_hash.encode()) % PARTS]

    def intake(self) -> PingIntake | None:
        return self.known_intake

    def set_intake(self, intake: PingIntake) -> None:
        self.known_intake = intake


def _next(before: Monitor | None, after: Monitor) -> Monitor:
    return replace(after, pulse=replace(after.pulse, version=1 if before is None else before.pulse.version + 1))
