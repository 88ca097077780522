"""The counters in memory: the same contract as on AWS."""

from collections import Counter
from collections.abc import Sequence

from scheduler.model.counters import Counted, CounterEntry


class MemoryCounters:
    """One row per name and shard, as on AWS."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], Counter[str]] = {}
        self._seen: dict[tuple[str, str, str], str] = {}
        self._about: dict[tuple[str, str], str] = {}

    def add(self, shard: str, entries: Sequence[CounterEntry]) -> None:
        for entry in entries:
            key = (entry.row.partition, entry.row.name, shard)
            if entry.sequence > self._seen.get(key, ""):
                self._seen[key] = entry.sequence
                self.rows.setdefault(key, Counter()).update(entry.amounts)
                if entry.row.about is not None:
                    self._about[key[:2]] = entry.row.about

    def read(self, partition: str, low: str, high: str) -> list[Counted]:
        found: dict[str, Counter[str]] = {}
        for (each, name, _), amounts in self.rows.items():
            if each == partition and low <= name < high:
                found.setdefault(name, Counter()).update(amounts)
        return [Counted(name, _without_zeros(found[name]), self._about.get((partition, name))) for name in sorted(found)]

    def forget(self, partition: str, rows: Sequence[Counted]) -> None:
        names = {row.name for row in rows}
        for key in [key for key in self.rows if key[0] == partition and key[1] in names]:
            del self.rows[key]


def _without_zeros(amounts: Counter[str]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount}
