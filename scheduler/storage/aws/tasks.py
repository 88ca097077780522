"""The tasks table on DynamoDB: tasks, their heads and run locks. Schedules are imported with the first whole task, not in hot functions."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model import item_limit
from scheduler.model.errors import Unavailable, Unreadable
from scheduler.model.job import Job, OwnKey, Receipt, RunLock, TaskHead, TaskKey
from scheduler.storage.aws import items, keys, readable, receipts
from scheduler.storage.aws.table import Answer, Statement, Table
from scheduler.storage.aws.updates import Update, as_insert, as_put
from scheduler.storage.ports import Found, Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from scheduler.model.task import Task, TaskPage

HEAD = ("generation", "inactive_at", "inactive_reason", "name")


class DynamoTasks:
    """The port `Tasks`. `jobs` and `ledger` name the tables of the runs and of the receipt, which are stored together with a task."""

    def __init__(self, client: "DynamoDBClient", table: str, *, jobs: str, ledger: str) -> None:
        self._table = Table(client, table)
        self._jobs, self._ledger = jobs, ledger

    def heads(self, task_keys: Sequence[TaskKey]) -> Found[TaskKey, TaskHead]:
        stored = self._table.get_many([keys.stored_task(key) for key in dict.fromkeys(task_keys)], ("pk", "sk", "v", *HEAD))
        return readable.found(_head, keys.task_key, stored)

    def holders(self, task_keys: Sequence[TaskKey]) -> Found[TaskKey, RunLock]:
        by_partition = {keys.holder(key)["pk"]["S"]: key for key in task_keys}

        def task_of(item: Mapping[str, Any]) -> TaskKey:
            return by_partition[item["pk"]["S"]]

        stored = self._table.get_many([keys.holder(key) for key in by_partition.values()])
        return readable.found(lambda item: _holder(task_of(item), item), task_of, stored)

    def hold(self, changes: Sequence[tuple[RunLock | None, RunLock]]) -> list[Written]:
        answers = self._table.run_each([self._holding(before, after) for before, after in changes])
        done = [answer.done for answer in answers]
        stored = self.holders([after.task for (_, after), written in zip(changes, done, strict=True) if written is Written.NO])
        # If the stored holder is the new one, an earlier call wrote it and its answer was lost.
        return [
            Written.of(stored.get(after.task) == after) if written is Written.NO else written
            for (_, after), written in zip(changes, done, strict=True)
        ]

    def _holding(self, before: RunLock | None, after: RunLock) -> Statement:
        key, item = keys.holder(after.task), _item(after)
        if before is None:
            return Statement(key, as_insert(key | item, self._table.name))
        removes = [name for name in _item(before) if name not in item]
        return self._table.statement(Update(key, item, removes, keys.same_version(before)))

    def check(self, task: "Task") -> None:
        from scheduler.storage.aws import task_items

        item_limit.check("the task", items.size(task_items.encode(task)))

    def store(
        self, before: "Task | None", after: "Task", runs: Sequence[Job], receipt: Receipt | None = None, *, former: str | None = None
    ) -> bool:
        from scheduler.model.task import planned_as
        from scheduler.storage.aws import calendars, task_items

        condition = keys.IF_NEW if before is None else keys.if_generation(before.generation)
        actions = [as_put(task_items.encode(after), condition, self._table.name)]
        actions += [as_put(items.encode(run), keys.IF_NEW, self._jobs) for run in runs]
        if receipt is not None:
            actions.append(as_put(receipts.encode(receipt), keys.if_no_receipt(receipt.at), self._ledger))
        if before is None and after.own_key is not None:
            entry = keys.own_key(after.own_key) | {"id": {"S": after.id}}
            actions.append(as_put(entry, keys.if_names(former), self._table.name))
        actions += calendars.actions(before, after, self._table.name)
        if self._table.transact(actions):
            return True
        stored = self.get(after.key)
        return stored is not None and planned_as(stored, after) == after  # an earlier answer was lost

    def delete(self, task: "Task") -> bool:
        if not self._table.delete(keys.stored_task(task.key), keys.if_generation(task.generation)):
            return False
        try:
            self._table.delete(keys.holder(task.key))
            if task.own_key is not None:
                self._table.delete(keys.own_key(task.own_key), keys.if_names(task.id))
            for name in task.calendars:
                self._table.delete(keys.calendar_task(task.key, name))
        except Unavailable:
            pass  # a leftover names a run of a deleted task, or that task: no run reads it, and its key is free
        return True

    def of_key(self, own: OwnKey) -> str | None:
        item = self._table.get(keys.own_key(own))
        return item["id"]["S"] if item else None

    def move_on(self, moves: "Sequence[tuple[Task, Task]]") -> list[Written]:
        answers = self._table.update([_moving(before, after) for before, after in moves]) if moves else []
        return [_moved(before, after, answer) for (before, after), answer in zip(moves, answers, strict=True)]

    def get_many(self, task_keys: Sequence[TaskKey]) -> "Found[TaskKey, Task]":
        from scheduler.storage.aws import task_items

        stored = self._table.get_many([keys.stored_task(key) for key in dict.fromkeys(task_keys)])
        return readable.found(task_items.decode, keys.task_key, stored)

    def get(self, key: TaskKey) -> "Task | None":
        from scheduler.storage.aws import task_items

        item = self._table.get(keys.stored_task(key))
        return readable.read(task_items.decode, item) if item else None

    def page(self, owner: str, *, after: str | None, limit: int) -> "TaskPage":
        from scheduler.model.task import TaskPage
        from scheduler.storage.aws import task_items

        query = keys.all_of(owner) if after is None else keys.up_to(owner, after)
        found = self._table.all(query | {"Limit": limit + 1, "ScanIndexForward": False, "ConsistentRead": True})
        listed = list(itertools.islice(found, limit + 1))
        cursor = keys.task_key(listed[limit - 1]).id if len(listed) > limit else None
        return TaskPage(list(readable.each(task_items.decode, listed[:limit])), cursor)

    def to_replenish(self, slot: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        return _keys(self._table.query(keys.to_replenish(slot) | _start(after)))

    def overdue(self, before: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        return _keys(self._table.scan(keys.replenish_before(before) | _start(after)))


def _moving(before: "Task", after: "Task") -> Update:
    from scheduler.storage.aws import task_items

    sets, removes = task_items.plan(before, after)
    gap = task_items.gap(before.gap) if before.gap is not None else None
    return Update(keys.stored_task(before.key), sets, removes, keys.same_plan(before.generation, before.planned_until, gap))


def _moved(before: "Task", after: "Task", answer: Answer) -> Written:
    """The result of a move. If the stored task is planned as far already, an earlier call wrote it and its answer was lost."""
    from scheduler.model.task import planned_as
    from scheduler.storage.aws import task_items

    if answer.done is not Written.NO or answer.item is None:
        return answer.done
    try:
        stored = readable.read(task_items.decode, answer.item)
    except Unreadable:
        return Written.NO
    return Written.of(stored.generation == before.generation and planned_as(before, stored) == planned_as(before, after))


def _start(after: str | None) -> dict[str, Any]:
    return {"ExclusiveStartKey": json.loads(after)} if after else {}


def _keys(page: Any) -> tuple[list[TaskKey], str | None]:
    return [keys.task_key(item) for item in page["Items"]], json.dumps(page["LastEvaluatedKey"]) if "LastEvaluatedKey" in page else None


def _item(holder: RunLock) -> dict[str, Any]:
    """All of the item but its key."""
    item = {"job": {"S": holder.job}, "version": {"N": str(holder.version)}}
    return item | ({"waiting": {"S": holder.waiting}} if holder.waiting is not None else {})


def _holder(task: TaskKey, item: Mapping[str, Any]) -> RunLock:
    return RunLock(task, item["job"]["S"], item["waiting"]["S"] if "waiting" in item else None, int(item["version"]["N"]))


def _head(item: Mapping[str, Any]) -> TaskHead:
    keys.check_format(item)
    inactive_at = int(item["inactive_at"]["N"]) if "inactive_at" in item else None
    inactive_reason = item["inactive_reason"]["S"] if "inactive_reason" in item else None
    return TaskHead(int(item["generation"]["N"]), inactive_at, inactive_reason, item["name"]["S"] if "name" in item else "")
