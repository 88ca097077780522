"""Notices in memory: the same contract as on AWS."""

from collections.abc import Sequence
from dataclasses import replace

from scheduler.model.job import TaskKey
from scheduler.notify.messages import Message
from scheduler.notify.policy import DeliveryRecord, NotificationState, Outbox


class MemoryNotices:
    """The port `Notices`."""

    def __init__(self) -> None:
        self.states: dict[TaskKey, NotificationState] = {}
        self.outboxes: dict[tuple[TaskKey, str], Outbox] = {}
        self.deliveries: dict[tuple[TaskKey, str], DeliveryRecord] = {}
        self.sent: list[Message] = []  # in order

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

    def send(self, messages: Sequence[Message], now: int) -> None:
        self.sent += messages
