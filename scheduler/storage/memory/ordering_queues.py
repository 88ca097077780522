"""The ordering queues in memory, for tests and the simulation, with the same contract as on AWS."""

from collections import defaultdict
from collections.abc import Sequence

from scheduler.model.job import OrderingQueue, OrderKey, QueueEntry, QueueHead
from scheduler.storage.ports import Written


class MemoryOrderingQueues:
    """The port `OrderingQueues`."""

    def __init__(self) -> None:
        self.turns: dict[OrderKey, QueueHead] = {}
        self.markers: dict[OrderKey, dict[tuple[int, int, str, int], QueueEntry]] = defaultdict(
            dict
        )  # the entries of each queue, by position

    def enqueue(self, markers: Sequence[QueueEntry]) -> list[Written]:
        return [Written.of(self._enqueue(marker)) for marker in markers]

    def lines(self, orders: Sequence[OrderKey], *, limit: int) -> dict[OrderKey, OrderingQueue]:
        return {order: self._line(order, limit) for order in orders}

    def take_turns(self, changes: Sequence[tuple[QueueHead | None, QueueHead]]) -> list[Written]:
        return [Written.of(self._take_turn(before, after)) for before, after in changes]

    def leave(self, markers: Sequence[QueueEntry]) -> None:
        for marker in markers:
            self.markers[marker.order].pop(marker.position, None)

    def _enqueue(self, marker: QueueEntry) -> bool:
        line = self.markers[marker.order]
        if marker.position in line:
            return False
        line[marker.position] = marker
        return True

    def _line(self, order: OrderKey, limit: int) -> OrderingQueue:
        line = self.markers[order]
        return OrderingQueue(self.turns.get(order), tuple(line[position] for position in sorted(line)[:limit]), len(line) > limit)

    def _take_turn(self, before: QueueHead | None, after: QueueHead) -> bool:
        stored = self.turns.get(after.order)
        if stored == after:
            return True
        if (stored and stored.version) != (before and before.version):
            return False
        self.turns[after.order] = after
        return True
