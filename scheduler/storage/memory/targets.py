"""Named targets in memory, for tests and the simulation, with the same contract as on AWS."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from scheduler.admission import limits
from scheduler.model.named_target import NamedTarget
from scheduler.model.target_queue import QueueUser, TargetQueue, queue_part
from scheduler.model.target_usage import TargetUsage, UsageChange
from scheduler.storage.ports import ChangeResult, Found, Written
from scheduler.targets.named_target import ITEMS, item_name


class MemoryTargets:
    """The registry of named targets, how much of their limits is in use, and who waits for them."""

    def __init__(self) -> None:
        self.rows: dict[str, NamedTarget] = {}
        self._usages: dict[str, TargetUsage] = {}
        self._queues: dict[str, TargetQueue] = {}
        self._queue_users: dict[tuple[str, str], QueueUser] = {}

    def all(self) -> list[NamedTarget]:
        return [self.rows[name] for name in sorted(self.rows)]

    def targets(self, names: Sequence[str]) -> Found[str, NamedTarget]:
        return Found({name: self.rows[name] for name in names if name in self.rows})

    def put(self, before: NamedTarget | None, after: NamedTarget) -> bool:
        stored = self.rows.get(after.name)
        if stored == after:
            return True
        if (stored and stored.version) != (before and before.version):
            return False
        self.rows[after.name] = after
        return True

    def delete(self, target: NamedTarget) -> bool:
        stored = self.rows.get(target.name)
        if stored is None or stored.version != target.version:
            return False
        del self.rows[target.name]
        for number in range(ITEMS + 1):
            self._usages.pop(item_name(target.name, number), None)
        return True

    def usages(self, names: Sequence[str]) -> dict[str, TargetUsage]:
        return {name: self._usages[name] for name in names if name in self._usages}

    def use(self, uses: Sequence[UsageChange]) -> list[ChangeResult]:
        return [self._use(use) for use in uses]

    def use_together(self, uses: Sequence[UsageChange]) -> Written:
        after = [limits.used(self._usages.get(use.target, TargetUsage(use.target)), use) for use in uses]
        if None in after:
            return Written.NO
        self._usages |= {usage.target: usage for usage in after if usage is not None}
        return Written.YES

    def join_queue(self, target: str, owner: str, at: int) -> int:
        before = self._queue_users.get((target, owner), QueueUser(target, owner, 0))
        self._queue_users[target, owner] = replace(before, joined_at=at, waiting=True)
        return before.joined_at if before.waiting else 0

    def queue(self, target: str) -> tuple[TargetQueue | None, list[QueueUser]]:
        users = [user for (name, _), user in sorted(self._queue_users.items()) if name == target]
        return self._queues.get(target), users

    def queues(self, part: int | None = None) -> Iterator[tuple[TargetQueue, list[QueueUser]]]:
        names = sorted(name for name in {*self._queues, *(name for name, _ in self._queue_users)} if queue_part(name) == part)
        yield from ((found or TargetQueue(name), users) for name in names for found, users in [self.queue(name)])

    def queue_users(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], QueueUser]:
        return {pair: self._queue_users[pair] for pair in pairs if pair in self._queue_users}

    def change_queue(self, before: TargetQueue | None, after: TargetQueue) -> bool:
        stored = self._queues.get(after.target)
        if stored == after:
            return True
        if (stored and stored.epoch) != (before and before.epoch):
            return False
        self._queues[after.target] = after
        return True

    def drop_queue(self, queue: TargetQueue) -> bool:
        stored = self._queues.get(queue.target)
        if stored is not None and stored.epoch != queue.epoch:
            return False
        self._queues.pop(queue.target, None)
        return True

    def note_queue_user(self, user: QueueUser) -> None:
        if stored := self._queue_users.get((user.target, user.owner)):
            self._queue_users[user.target, user.owner] = replace(stored, finish=user.finish, waiting=user.waiting)

    def drop_queue_user(self, user: QueueUser) -> bool:
        stored = self._queue_users.get((user.target, user.owner))
        if stored is not None and stored.joined_at != user.joined_at:
            return False
        self._queue_users.pop((user.target, user.owner), None)
        return True

    def _use(self, use: UsageChange) -> ChangeResult:
        stored = self._usages.get(use.target, TargetUsage(use.target))
        after = limits.used(stored, use)
        if after is None:
            return ChangeResult(Written.NO, stored)
        self._usages[use.target] = after
        return ChangeResult(Written.YES, after)
