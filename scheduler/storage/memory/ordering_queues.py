"""The ordering queues in memory, for tests and the simulation, with the same contract as on AWS."""

from collections import defaultdict
from collections.abc import Sequence

from scheduler.model.job import OrderingQueue, OrderKey, QueueEntry, QueueHead
from scheduler.storage.ports import Written


class MemoryOrderingQueues:
    """The port `OrderingQueues`."""

    def __init__(self) -> None:
        self.heads: dict[OrderKey, QueueHead] = {}
        self.entries: dict[OrderKey, dict[tuple[int, int, str, int], QueueEntry]] = defaultdict(
            dict
        )  # the entries of each queue, by position

    def enqueue(self, entries: Sequence[QueueEntry]) -> list[Written]:
        return [Written.of(self._enqueue(entry)) for entry in entries]

    def lines(self, orders: Sequence[OrderKey], *, limit: int) -> dict[OrderKey, OrderingQueue]:
        return {order: self._line(order, limit) for order in orders}

    def set_heads(self, changes: Sequence[tuple[QueueHead | None, QueueHead]]) -> list[Written]:
        return [Written.of(self._set_head(before, after)) for before, after in changes]

    def leave(self, entries: Sequence[QueueEntry]) -> None:
        for entry in entries:
            self.entries[entry.order].pop(entry.position, None)

    def _enqueue(self, entry: QueueEntry) -> bool:
        line = self.entries[entry.order]
        if entry.position in line:
            return False
        line[entry.position] = entry
        return True

    def _line(self, order: OrderKey, limit: int) -> OrderingQueue:
        line = self.entries[order]
        return OrderingQueue(self.heads.get(order), tuple(line[position] for position in sorted(line)[:limit]), len(line) > limit)

    def _set_head(self, before: QueueHead | None, after: QueueHead) -> bool:
        stored = self.heads.get(after.order)
        if stored == after:
            return True
        if (stored and stored.version) != (before and before.version):
            return False
        self.heads[after.order] = after
        return True
