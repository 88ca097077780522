"""The tasks table on DynamoDB."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, Receipt, TaskKey
from scheduler.storage.aws import items, keys, receipts, task_items
from scheduler.storage.aws.holders import DynamoTaskGate
from scheduler.storage.aws.updates import Update
from scheduler.storage.ports import Written
from scheduler.tasks.task import Task, TaskPage, planned_as

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoTasks(DynamoTaskGate):
    """The port `Tasks`: `jobs` and `ledger` are the tables of what is stored with a task, its runs and its receipt."""

    def __init__(self, client: "DynamoDBClient", table: str, *, jobs: str, ledger: str) -> None:
        super().__init__(client, table)
        self._jobs, self._ledger = jobs, ledger

    def store(self, before: Task | None, after: Task, runs: Sequence[Job], receipt: Receipt | None = None) -> bool:
        condition = keys.IF_NEW if before is None else keys.if_generation(before.generation)
        actions = [_put(self._table.name, task_items.encode(after), condition)]
        actions += [_put(self._jobs, items.encode(run), keys.IF_NEW) for run in runs]
        if receipt is not None:
            actions.append(_put(self._ledger, receipts.encode(receipt), keys.if_no_receipt(receipt.at)))
        if self._table.transact(actions):
            return True
        stored = self.get(after.key)
        return stored is not None and planned_as(stored, after) == after  # an earlier answer was lost

    def delete(self, task: Task) -> bool:
        if not self._table.delete(keys.stored_task(task.key), keys.if_generation(task.generation)):
            return False
        try:
            self._table.delete(keys.holder(task.key))
        except Unavailable:
            pass  # it names a run of a task that is not there any more: nobody starts by it
        return True

    def move_on(self, before: Task, after: Task) -> bool:
        sets, removes = task_items.plan(after)
        update = Update(keys.stored_task(before.key), sets, removes, keys.same_plan(before.generation, before.planned_until))
        (answer,) = self._table.update([update])
        if answer.done is Written.REFUSED:
            raise Unavailable()
        if answer.done is Written.YES or answer.item is None:
            return answer.done is Written.YES
        stored = task_items.decode(answer.item)
        return (stored.generation, stored.planned_until, stored.replenish) == (before.generation, after.planned_until, after.replenish)

    def get(self, key: TaskKey) -> Task | None:
        item = self._table.get(keys.stored_task(key))
        return task_items.decode(item) if item else None

    def page(self, owner: str, *, after: str | None, limit: int) -> TaskPage:
        condition, values = (keys.ALL_OF, {}) if after is None else (keys.UP_TO, {":bound": {"S": after}})
        query = {"KeyConditionExpression": condition, "ExpressionAttributeValues": {":pk": {"S": owner}} | values}
        found = self._table.all(query | {"Limit": limit + 1, "ScanIndexForward": False, "ConsistentRead": True})
        tasks = [task_items.decode(item) for item in itertools.islice(found, limit + 1)]
        return TaskPage(tasks[:limit], tasks[limit - 1].id if len(tasks) > limit else None)

    def to_replenish(self, slot: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        query = {"KeyConditionExpression": keys.TO_REPLENISH, "ExpressionAttributeValues": {":slot": {"S": slot}}}
        return _keys(self._table.query({"IndexName": keys.REPLENISH} | query | _start(after)))

    def overdue(self, before: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        scan = {"FilterExpression": keys.REPLENISH_BEFORE, "ExpressionAttributeValues": {":minute": {"S": before}}}
        return _keys(self._table.scan({"IndexName": keys.REPLENISH} | scan | _start(after)))


def _put(table: str, item: Mapping[str, Any], condition: Mapping[str, Any]) -> dict[str, Any]:
    return {"Put": {"TableName": table, "Item": item, **condition}}


def _start(after: str | None) -> dict[str, Any]:
    return {"ExclusiveStartKey": json.loads(after)} if after else {}


def _keys(page: Any) -> tuple[list[TaskKey], str | None]:
    return [keys.task_key(item) for item in page["Items"]], json.dumps(page["LastEvaluatedKey"]) if "LastEvaluatedKey" in page else None
