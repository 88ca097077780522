"""Tasks and receipts in memory, for tests and the simulation, with the same contract as on AWS."""

from collections.abc import Sequence

from scheduler.model import item_limit
from scheduler.model.job import Job, OwnKey, Receipt, RunLock, TaskHead, TaskKey
from scheduler.model.task import Task, TaskPage, planned_as
from scheduler.storage.memory.calendars import MemoryCalendars
from scheduler.storage.memory.stores import MemoryJobs, json_size
from scheduler.storage.ports import RECEIPT_RETENTION_MS, Found, Written


class MemoryReceipts:
    """The receipts."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Receipt] = {}

    def keep(self, receipts: Sequence[Receipt], now: int) -> list[Receipt | None]:
        return [self._keep(receipt, now) for receipt in receipts]

    def find(self, owner: str, key: str, now: int) -> Receipt | None:
        found = self.rows.get((owner, key))
        return found if found is not None and found.at + RECEIPT_RETENTION_MS > now else None

    def _keep(self, receipt: Receipt, now: int) -> Receipt:
        earlier = self.find(receipt.owner, receipt.key, now)
        if earlier is None:
            self.rows[(receipt.owner, receipt.key)] = receipt
        return earlier or receipt


class MemoryTasks:
    """The tasks table. `_index` is the replenish index; the simulation overrides `_project` to let it lag."""

    def __init__(self, jobs: MemoryJobs, receipts: MemoryReceipts) -> None:
        self._jobs, self._receipts = jobs, receipts
        self.calendars = MemoryCalendars()
        self.rows: dict[TaskKey, Task] = {}
        self._index: dict[TaskKey, str] = {}
        self._holders: dict[TaskKey, RunLock] = {}
        self._of_keys: dict[OwnKey, str] = {}

    def check(self, task: Task) -> None:
        item_limit.check("the task", json_size([task.spec.payload, task.name, task.description]))

    def store(
        self, before: Task | None, after: Task, runs: Sequence[Job], receipt: Receipt | None = None, *, former: str | None = None
    ) -> bool:
        stored = self.rows.get(after.key)
        if stored is not None and planned_as(stored, after) == after:
            return True
        taken = receipt is not None and self._receipts.find(receipt.owner, receipt.key, receipt.at) is not None
        if taken or any(self._jobs.get(run.key) is not None for run in runs) or _generation(stored) != _generation(before):
            return False
        key = after.own_key if before is None else None
        if (key is not None and self._of_keys.get(key) != former) or not self.calendars.take(before, after):
            return False
        if key is not None:
            self._of_keys[key] = after.id
        for run in runs:
            self._jobs.put(run)
        if receipt is not None:
            self._receipts.keep([receipt], receipt.at)
        self._store(after)
        return True

    def delete(self, task: Task) -> bool:
        if _generation(self.rows.get(task.key)) != task.generation:
            return False
        del self.rows[task.key]
        self._holders.pop(task.key, None)
        self.calendars.leave(task.key, task.calendars)
        if task.own_key is not None and self._of_keys.get(task.own_key) == task.id:
            del self._of_keys[task.own_key]
        self._project(task.key, None)
        return True

    def of_key(self, own: OwnKey) -> str | None:
        return self._of_keys.get(own)

    def move_on(self, moves: Sequence[tuple[Task, Task]]) -> list[Written]:
        return [Written.of(self._move_on(before, after)) for before, after in moves]

    def _move_on(self, before: Task, after: Task) -> bool:
        stored = self.rows.get(before.key)
        if stored is None or stored.generation != before.generation:
            return False
        if (stored.planned_until, stored.gap) != (before.planned_until, before.gap):
            return planned_as(before, stored) == planned_as(before, after)
        self._store(planned_as(stored, after))
        return True

    def get(self, key: TaskKey) -> Task | None:
        return self.rows.get(key)

    def get_many(self, keys: Sequence[TaskKey]) -> Found[TaskKey, Task]:
        return Found({key: self.rows[key] for key in keys if key in self.rows})

    def heads(self, keys: Sequence[TaskKey]) -> Found[TaskKey, TaskHead]:
        return Found({key: self.rows[key].head for key in keys if key in self.rows})

    def page(self, owner: str, *, after: str | None, limit: int) -> TaskPage:
        found = sorted((task for task in self.rows.values() if task.owner == owner), key=lambda task: task.id, reverse=True)
        if after is not None:
            found = [task for task in found if task.id < after]
        return TaskPage(found[:limit], found[limit - 1].id if len(found) > limit else None)

    def to_replenish(self, slot: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        return sorted(key for key, shown in self._index.items() if shown == slot), None

    def overdue(self, before: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        return sorted(key for key, shown in self._index.items() if shown < before), None

    def holders(self, keys: Sequence[TaskKey]) -> Found[TaskKey, RunLock]:
        return Found({key: self._holders[key] for key in keys if key in self._holders})

    def hold(self, changes: Sequence[tuple[RunLock | None, RunLock]]) -> list[Written]:
        return [Written.of(self._hold(before, after)) for before, after in changes]

    def _hold(self, before: RunLock | None, after: RunLock) -> bool:
        stored = self._holders.get(after.task)
        if stored == after:
            return True
        if (stored and stored.version) != (before and before.version):
            return False
        self._holders[after.task] = after
        return True

    def _store(self, task: Task) -> None:
        self.rows[task.key] = task
        self._project(task.key, task.replenish)

    def _project(self, key: TaskKey, slot: str | None) -> None:
        self._show(key, slot)

    def _show(self, key: TaskKey, slot: str | None) -> None:
        self._index.pop(key, None)
        if slot is not None:
            self._index[key] = slot


def _generation(task: Task | None) -> int | None:
    return task.generation if task is not None else None
