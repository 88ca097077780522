"""What executors ask of the tasks table: heads and holders. It loads no schedules: hot functions import it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.job import Holder, TaskHead, TaskKey
from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Statement, Table
from scheduler.storage.aws.updates import Update, as_insert, as_statement
from scheduler.storage.ports import Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

HEAD = ("generation", "inactive_at", "inactive_reason")


class DynamoTaskGate:
    """The port `TaskGate`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def heads(self, wanted: Sequence[TaskKey]) -> dict[TaskKey, TaskHead]:
        items = self._table.get_many([keys.stored_task(key) for key in dict.fromkeys(wanted)], ("pk", "sk", *HEAD))
        return {keys.task_key(item): _head(item) for item in items}

    def holders(self, wanted: Sequence[TaskKey]) -> dict[TaskKey, Holder]:
        by_partition = {keys.holder(key)["pk"]["S"]: key for key in wanted}
        items = self._table.get_many([keys.holder(key) for key in by_partition.values()])
        return {(task := by_partition[item["pk"]["S"]]): _holder(task, item) for item in items}

    def hold(self, changes: Sequence[tuple[Holder | None, Holder]]) -> list[Written]:
        answers = self._table.run_each([self._holding(before, after) for before, after in changes])
        done = [answer.done for answer in answers]
        stands = self.holders([after.task for (_, after), held in zip(changes, done, strict=True) if held is Written.NO])
        # If what stands is what was to be written, an earlier answer was lost.
        return [
            Written.of(stands.get(after.task) == after) if held is Written.NO else held
            for (_, after), held in zip(changes, done, strict=True)
        ]

    def _holding(self, before: Holder | None, after: Holder) -> Statement:
        key, item = keys.holder(after.task), _item(after)
        if before is None:
            return Statement(key, as_insert(key | item, self._table.name))
        removes = [name for name in _item(before) if name not in item]
        return Statement(key, as_statement(Update(key, item, removes, keys.same_version(before)), self._table.name))


def _item(holder: Holder) -> dict[str, Any]:
    """All of the item but its key."""
    item = {"job": {"S": holder.job}, "version": {"N": str(holder.version)}}
    return item | ({"waiting": {"S": holder.waiting}} if holder.waiting is not None else {})


def _holder(task: TaskKey, item: Mapping[str, Any]) -> Holder:
    return Holder(task, item["job"]["S"], item["waiting"]["S"] if "waiting" in item else None, int(item["version"]["N"]))


def _head(item: Mapping[str, Any]) -> TaskHead:
    inactive_at = int(item["inactive_at"]["N"]) if "inactive_at" in item else None
    return TaskHead(int(item["generation"]["N"]), inactive_at, item["inactive_reason"]["S"] if "inactive_reason" in item else None)
