"""The ordering queues, in the tasks table: each queue in one partition, its head before its entries."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Unavailable
from scheduler.model.job import OrderingQueue, OrderKey, QueueEntry, QueueHead
from scheduler.storage.aws import keys
from scheduler.storage.aws.table import Statement, Table
from scheduler.storage.aws.updates import Update, as_delete, as_insert
from scheduler.storage.ports import Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ENTRY_RETENTION_S = 400 * 86_400  # after its job's time: longer than any job is kept; a leftover entry expires then
HEAD_RETENTION_S = 100 * 86_400  # after it was taken: longer than any job runs and is retried


class DynamoOrderingQueues:
    """The port `OrderingQueues`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def enqueue(self, entries: Sequence[QueueEntry]) -> list[Written]:
        return self._table.insert([keys.queue_entry(entry) | _entry_item(entry) for entry in entries])

    def lines(self, orders: Sequence[OrderKey], *, limit: int) -> dict[OrderKey, OrderingQueue]:
        distinct = list(dict.fromkeys(orders))
        if len(distinct) == 1:
            return {distinct[0]: self._line(distinct[0], limit)}
        return dict(zip(distinct, self._table.pool.map(lambda order: self._line(order, limit), distinct), strict=True))

    def set_heads(self, changes: Sequence[tuple[QueueHead | None, QueueHead]]) -> list[Written]:
        done = [answer.done for answer in self._table.run_many([self._taking(before, after) for before, after in changes])]
        lost = [after for (_, after), taken in zip(changes, done, strict=True) if taken is Written.NO]
        stored = {after.order: self._head(after.order) for after in lost}
        # If the stored head is the new one, an earlier call wrote it and its answer was lost.
        return [
            Written.of(stored[after.order] == after) if taken is Written.NO else taken
            for (_, after), taken in zip(changes, done, strict=True)
        ]

    def leave(self, entries: Sequence[QueueEntry]) -> None:
        item_keys = [keys.queue_entry(entry) for entry in dict.fromkeys(entries)]
        answers = self._table.run_many([Statement(key, as_delete(key, (), self._table.name)) for key in item_keys])
        if any(answer.done is Written.REFUSED for answer in answers):
            raise Unavailable

    def _line(self, order: OrderKey, limit: int) -> OrderingQueue:
        """One query. No caller needs more than its megabyte of entries; `more` reports entries beyond."""
        page = self._table.query(keys.all_of(keys.line(order)) | {"Limit": limit + 2, "ConsistentRead": True})
        items = list(page["Items"])
        head = _head(order, items.pop(0)) if items and items[0]["sk"] == keys.queue_head(order)["sk"] else None
        more = len(items) > limit or "LastEvaluatedKey" in page
        return OrderingQueue(head, tuple(_entry(order, item) for item in items[:limit]), more)

    def _head(self, order: OrderKey) -> QueueHead | None:
        item = self._table.get(keys.queue_head(order))
        return _head(order, item) if item else None

    def _taking(self, before: QueueHead | None, after: QueueHead) -> Statement:
        key, item = keys.queue_head(after.order), _head_item(after)
        if before is None:
            return Statement(key, as_insert(key | item, self._table.name))
        return self._table.statement(Update(key, item, (), keys.same_version(before)))


def _entry_item(entry: QueueEntry) -> dict[str, Any]:
    """All of the item but its key."""
    return {"at": {"N": str(entry.at)}, "expires": {"N": str(entry.scheduled_at // 1000 + ENTRY_RETENTION_S)}}


def _entry(order: OrderKey, item: Mapping[str, Any]) -> QueueEntry:
    scheduled_at, created_at, job, life = keys.entry_position(item["sk"]["S"])
    return QueueEntry(order, job, scheduled_at, created_at, life, int(item["at"]["N"]))


def _head_item(head: QueueHead) -> dict[str, Any]:
    """All of the item but its key."""
    values = {"version": head.version, "at": head.at, "expires": head.at // 1000 + HEAD_RETENTION_S}
    return {"job": {"S": head.job}} | {name: {"N": str(value)} for name, value in values.items()}


def _head(order: OrderKey, item: Mapping[str, Any]) -> QueueHead:
    return QueueHead(order, item["job"]["S"], int(item["at"]["N"]), int(item["version"]["N"]))
