"""Notices in memory: the same contract as on AWS."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.model.job import TaskKey
from scheduler.model.notice import DeliveryRecord, NoticeMessage, NotificationState, Outbox, ReceivedNotice, WindowEnd
from scheduler.storage.ports import Clock


class MemoryNotices:
    """The port `Notices`."""

    def __init__(self) -> None:
        self.states: dict[TaskKey, NotificationState] = {}
        self.outboxes: dict[tuple[TaskKey, str], Outbox] = {}
        self.deliveries: dict[tuple[TaskKey, str], DeliveryRecord] = {}
        self.sent: list[NoticeMessage] = []  # in order

    def read(self, task: TaskKey, id: str) -> tuple[NotificationState | None, Outbox | None]:
        return self.states.get(task), self.outboxes.get((task, id))

    def decide(self, before: NotificationState | None, after: NotificationState, id: str, outbox: Outbox | None, now: int) -> bool:
        known = self.states.get(after.task)
        if (known and known.version) != (before and before.version) or (outbox is not None and (after.task, id) in self.outboxes):
            return False
        self.states[after.task] = replace(after, version=1 if before is None else before.version + 1)
        if outbox is not None:
            self.outboxes[after.task, id] = outbox
        return True

    def delivery(self, task: TaskKey, id: str) -> DeliveryRecord | None:
        return self.deliveries.get((task, id))

    def set_delivery(self, before: DeliveryRecord | None, after: DeliveryRecord, now: int) -> bool:
        known = self.deliveries.get((after.task, after.id))
        if (known and known.version) != (before and before.version):
            return False
        self.deliveries[after.task, after.id] = replace(after, version=1 if before is None else before.version + 1)
        return True

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        self.sent += messages


@dataclass(slots=True)
class QueuedNotice:
    """A message of the queue. Only its last receipt is valid."""

    message: NoticeMessage
    sent_at: int
    visible_at: int
    receives: int = 0


class MemoryNoticeQueue:
    """The port `NoticeQueue`. `send` is the queue's part of the port `Notices`."""

    POLL_MS, VISIBILITY_MS, TEN = 100, 120_000, 10

    def __init__(self, clock: Clock) -> None:
        self.messages: dict[str, QueuedNotice] = {}
        self._clock = clock
        self._sent = 0

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        for message in messages:
            self._sent += 1
            at = message.at if isinstance(message, WindowEnd) else now
            self.messages[f"n{self._sent}"] = QueuedNotice(message, now, max(at, now))

    def receive(self, wait_s: int) -> list[ReceivedNotice]:
        until = self._clock.now() + wait_s * 1_000
        while not (found := self._visible()) and self._clock.now() < until:
            self._clock.sleep_until(self._clock.now() + self.POLL_MS)
        return [self._received(name) for name in self._chosen(found)]

    def put_back(self, delays: Mapping[str, int]) -> None:
        for receipt, seconds in delays.items():
            if (name := self._name(receipt)) is not None:
                self.messages[name].visible_at = self._clock.now() + seconds * 1_000

    def delete(self, receipts: Iterable[str]) -> None:
        for receipt in receipts:
            if (name := self._name(receipt)) is not None:
                del self.messages[name]

    def _visible(self) -> list[str]:
        return [name for name, queued in self.messages.items() if queued.visible_at <= self._clock.now()]

    def _chosen(self, visible: list[str]) -> list[str]:
        return visible[: self.TEN]

    def _received(self, name: str) -> ReceivedNotice:
        queued = self.messages[name]
        queued.receives += 1
        queued.visible_at = self._clock.now() + self.VISIBILITY_MS
        return ReceivedNotice(name, f"{name}#{queued.receives}", queued.message, queued.sent_at)

    def _name(self, receipt: str) -> str | None:
        name, _, receives = receipt.partition("#")
        return name if name in self.messages and str(self.messages[name].receives) == receives else None
