"""Queues and topic that lose, double, delay and reorder messages, and wake what polls them."""

import heapq
from collections.abc import Callable, Collection, Sequence
from enum import Enum, auto
from functools import partial
from typing import Any

from lab.world.clock import SimClock
from lab.world.faults import Faults
from lab.world.hub import NEVER, Hub
from scheduler.model.job import Delivery, Lane, Message
from scheduler.model.work import WorkDelivery, WorkItem
from scheduler.pipeline.worker import WorkResult, hidden_s
from scheduler.storage.memory.stores import MemoryLanes, MemoryWork, Queued, QueuedWork

WORK_HIDDEN_MS = 600_000  # of a received message of the work queue


class AlarmedLanes(MemoryLanes):
    """Queues on a hub, which wake their pollers when a message becomes visible."""

    def __init__(self, hub: Hub, wake: Callable[[Lane], None]) -> None:
        super().__init__()
        self._hub = hub
        self._wake = {lane: partial(wake, lane) for lane in Lane}
        self._alarms = dict.fromkeys(Lane, NEVER)  # when each poller is woken next
        self._set: dict[Lane, set[int]] = {lane: set() for lane in Lane}  # the times of all alarms, including outdated ones

    def now(self) -> int:
        return self._hub.time

    def receive(self, lane: Lane, limit: int, now: int) -> list[Delivery]:
        """See `MemoryLanes`. The poller that finds a full batch polls again by itself."""
        taken = super().receive(lane, limit, now)
        self._taken(lane, taken, now)
        if self._ready[lane] and self._ready[lane][0][0] > now:
            self._set_alarm(lane, self._ready[lane][0][0])
        return taken

    def _taken(self, lane: Lane, taken: Sequence[Delivery], now: int) -> None:
        """Messages were received, and no alarm is set yet."""

    def _show(self, queued: Queued, at: int) -> None:
        super()._show(queued, at)
        self._set_alarm(queued.message.lane, at)

    def _set_alarm(self, lane: Lane, at: int) -> None:
        """Wake the poller at `at`, unless an earlier alarm is set."""
        if at < self._alarms[lane]:
            self._alarms[lane] = at
            if at not in self._set[lane]:
                self._set[lane].add(at)
                self._hub.at(at, partial(self._ring, lane, at))

    def _ring(self, lane: Lane, at: int) -> None:
        """Wake the poller if a message is visible. Most messages are deleted, or their leases renewed, before they are visible again."""
        self._set[lane].remove(at)
        if self._alarms[lane] != at:
            return  # an earlier alarm replaced this one
        self._alarms[lane] = NEVER
        ready, queue = self._ready[lane], self.queues[lane]
        while ready and ((queued := queue.get(ready[0][1])) is None or queued.visible_at != ready[0][0]):
            heapq.heappop(ready)
        if ready and ready[0][0] > self._hub.time:
            self._set_alarm(lane, ready[0][0])
        elif ready:
            self._wake[lane]()


class AlarmedWork(MemoryWork):
    """The work queue on a hub. It hands each message to `step` when that becomes visible."""

    def __init__(self, hub: Hub, clock: Any, step: Callable[[WorkDelivery], None]) -> None:
        super().__init__(clock)
        self._hub, self._step = hub, step

    def add(self, item: WorkItem, visible_at: int) -> QueuedWork:
        made = super().add(item, visible_at)
        self._alarm(made)
        return made

    def hide(self, receipt: str, seconds: int) -> bool:
        is_hidden = super().hide(receipt, seconds)
        if is_hidden:
            self._alarm(self.queued[receipt.partition("/")[0]])
        return is_hidden

    def _alarm(self, queued: QueuedWork) -> None:
        self._hub.at(queued.visible_at, partial(self._ring, queued.message_id, queued.visible_at))

    def _ring(self, message_id: str, at: int) -> None:
        queued = self.queued.get(message_id)
        if queued is None or queued.visible_at != at:
            return
        queued.receive_count += 1
        queued.receipt, queued.visible_at = f"{message_id}/{queued.receive_count}", self._hub.time + WORK_HIDDEN_MS
        self._alarm(queued)
        self._deliver(WorkDelivery(queued.item, message_id, queued.receipt, queued.receive_count))

    def _deliver(self, delivery: WorkDelivery) -> None:
        self._step(delivery)


def end_batch(lanes: Any, lane: Lane, batch: Sequence[Delivery], left: Collection[str], keeps: Callable[[], bool] = lambda: False) -> None:
    """Delete the messages of a batch that its executor has not left, as an event source mapping does; `keeps`: whether a delete is lost."""
    for item in batch:
        if item.message_id not in left and not keeps():
            lanes.delete(lane, item.receipt)


def end_step(queue: Any, delivery: WorkDelivery, done: WorkResult, now: int, keeps: Callable[[], bool] = lambda: False) -> None:
    """Delete the message of a step, or hide it until the next one, as an event source mapping does."""
    if done.next_at is not None:
        queue.hide(delivery.receipt, hidden_s(done.next_at, now))
    elif not keeps():
        queue.delete(delivery.receipt)


class Lenience(Enum):
    """The answer of the queues to an old receipt handle. AWS documents that DeleteMessage succeeds with one."""

    NO = auto()  # they refuse it
    SAID = auto()  # they say that the visibility is changed, and do nothing
    DONE = auto()  # they change it


class SimLanes(AlarmedLanes):
    """Queues and topic that lose, double, delay and reorder messages."""

    lenience = Lenience.NO

    def __init__(
        self, hub: Hub, faults: Faults, wake: Callable[[Lane], None], sent: Callable[[str], None] = lambda message_id: None
    ) -> None:
        super().__init__(hub, wake)
        self._faults, self._sent = faults, sent

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        refused = []
        for message in messages:
            if self._faults.strike("publish refused", self._faults.rates.refuse):
                refused.append(message)
            else:
                self._arrive(message, self._hub.time)
        return refused

    def send(self, messages: Sequence[Message], now: int) -> list[Message]:
        for message in messages:
            delay = max(message.not_before - now, 0) // 1000 * 1000
            self._arrive(message, self._hub.time + min(delay, 900_000))
        return []

    def add(self, message: Message, visible_at: int) -> None:
        super().add(message, visible_at)
        self._sent(next(reversed(self.queues[message.lane])))

    def _taken(self, lane: Lane, taken: Sequence[Delivery], now: int) -> None:
        for delivery in taken:
            if self._faults.strike("redelivered", self._faults.rates.redeliver):
                queued = self.queues[lane][delivery.message_id]
                self._show(queued, now + self._faults.random.choice((100, 5_000, 31_000)))

    def _arrive(self, message: Message, at: int) -> None:
        faults = self._faults
        if faults.strike("lost", faults.rates.lose):
            return
        self.add(message, at + faults.between(5, 60))
        if faults.strike("doubled", faults.rates.double):
            self.add(message, faults.random.choice((self._hub.time + 10, at + 10, at + 4_000, at + 60_000, at + 400_000)))
            if faults.strike("dead", faults.rates.dead):
                self._bury(message, faults.random.choice((10, 1_000, 20_000)))

    def _bury(self, message: Message, after: int) -> None:
        """Put another copy into the dead-letter queue."""
        self.add(message, self._hub.time)
        message_id = next(reversed(self.queues[message.lane]))
        self.dead[message.lane][message_id] = self.queues[message.lane].pop(message_id)
        self._hub.at(self._hub.time + after, self._wake[message.lane])

    def _extend(self, lane: Lane, receipt: str, seconds: int) -> bool:
        if super()._extend(lane, receipt, seconds):
            return True
        if self.lenience is Lenience.NO:
            return False
        queued = self.queues[lane].get(receipt.partition("/")[0])
        if queued is not None and self.lenience is Lenience.DONE:
            self._show(queued, self.now() + seconds * 1000)
        return queued is not None


class SimWork(AlarmedWork):
    """The work queue: it loses, doubles and delays messages, and starts a worker for each one that becomes visible."""

    def __init__(
        self, hub: Hub, faults: Faults, step: Callable[[WorkDelivery], None], sent: Callable[[str], None] = lambda message_id: None
    ) -> None:
        super().__init__(hub, SimClock(hub, 0), step)
        self._faults, self._sent = faults, sent

    def add(self, item: WorkItem, visible_at: int) -> QueuedWork:
        faults = self._faults
        made = MemoryWork.add(self, item, visible_at + faults.between(5, 60))
        self._sent(made.message_id)
        if faults.strike("work lost", faults.rates.lose):
            del self.queued[made.message_id]
            return made
        self._alarm(made)
        if faults.strike("work doubled", faults.rates.double):
            again = super().add(item, made.visible_at + faults.random.choice((10, 2_000, 60_000)))
            self._sent(again.message_id)
        return made

    def _deliver(self, delivery: WorkDelivery) -> None:
        self._hub.spawn(partial(self._step, delivery), self._hub.time + self._faults.between(1, 100))
