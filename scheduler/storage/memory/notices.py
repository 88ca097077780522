"""Notices in memory: the same contract as on AWS."""

from collections.abc import Sequence
from dataclasses import replace

from scheduler.model.job import TaskKey
from scheduler.notify.messages import Message
from scheduler.notify.policy import Mark, Outbox, Standing


class MemoryNotices:
    """The port `Notices`."""

    def __init__(self) -> None:
        self.standings: dict[TaskKey, Standing] = {}
        self.outboxes: dict[tuple[TaskKey, str], Outbox] = {}
        self.marks: dict[tuple[TaskKey, str], Mark] = {}
        self.sent: list[Message] = []  # in order

    def read(self, task: TaskKey, id: str) -> tuple[Standing | None, Outbox | None]:
        return self.standings.get(task), self.outboxes.get((task, id))

    def decide(self, before: Standing | None, after: Standing, id: str, outbox: Outbox | None, now: int) -> bool:
        known = self.standings.get(after.task)
        if (known and known.version) != (before and before.version) or (outbox is not None and (after.task, id) in self.outboxes):
            return False
        self.standings[after.task] = replace(after, version=1 if before is None else before.version + 1)
        if outbox is not None:
            self.outboxes[after.task, id] = outbox
        return True

    def mark(self, task: TaskKey, id: str) -> Mark | None:
        return self.marks.get((task, id))

    def set_mark(self, before: Mark | None, after: Mark, now: int) -> bool:
        known = self.marks.get((after.task, after.id))
        if (known and known.version) != (before and before.version):
            return False
        self.marks[after.task, after.id] = replace(after, version=1 if before is None else before.version + 1)
        return True

    def send(self, messages: Sequence[Message], now: int) -> None:
        self.sent += messages
