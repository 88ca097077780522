"""The ordering queues, in the tasks table: each queue in one partition, its head (turn) before its entries (markers)."""

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

MARKER_KEPT_S = 400 * 86_400  # after its job's time: longer than any job is kept; a leftover entry expires then
TURN_KEPT_S = 100 * 86_400  # after it was taken: longer than any job runs and is retried


class DynamoOrderingQueues:
    """The port `OrderingQueues`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def enqueue(self, markers: Sequence[QueueEntry]) -> list[Written]:
        return self._table.insert([keys.marker(marker) | _marker_item(marker) for marker in markers])

    def lines(self, orders: Sequence[OrderKey], *, limit: int) -> dict[OrderKey, OrderingQueue]:
        wanted = list(dict.fromkeys(orders))
        if len(wanted) == 1:
            return {wanted[0]: self._line(wanted[0], limit)}
        return dict(zip(wanted, self._table.pool.map(lambda order: self._line(order, limit), wanted), strict=True))

    def take_turns(self, changes: Sequence[tuple[QueueHead | None, QueueHead]]) -> list[Written]:
        done = [answer.done for answer in self._table.run_many([self._taking(before, after) for before, after in changes])]
        lost = [after for (_, after), taken in zip(changes, done, strict=True) if taken is Written.NO]
        stored = {after.order: self._turn(after.order) for after in lost}
        # If the stored turn is the new one, an earlier call wrote it and its answer was lost.
        return [
            Written.of(stored[after.order] == after) if taken is Written.NO else taken
            for (_, after), taken in zip(changes, done, strict=True)
        ]

    def leave(self, markers: Sequence[QueueEntry]) -> None:
        entries = [keys.marker(marker) for marker in dict.fromkeys(markers)]
        answers = self._table.run_many([Statement(entry, as_delete(entry, (), self._table.name)) for entry in entries])
        if any(answer.done is Written.REFUSED for answer in answers):
            raise Unavailable

    def _line(self, order: OrderKey, limit: int) -> OrderingQueue:
        """One query. No caller needs more than its megabyte of entries; `more` reports entries beyond."""
        page = self._table.query(keys.all_of(keys.line(order)) | {"Limit": limit + 2, "ConsistentRead": True})
        items = list(page["Items"])
        turn = _turn(order, items.pop(0)) if items and items[0]["sk"] == keys.turn(order)["sk"] else None
        more = len(items) > limit or "LastEvaluatedKey" in page
        return OrderingQueue(turn, tuple(_marker(order, item) for item in items[:limit]), more)

    def _turn(self, order: OrderKey) -> QueueHead | None:
        item = self._table.get(keys.turn(order))
        return _turn(order, item) if item else None

    def _taking(self, before: QueueHead | None, after: QueueHead) -> Statement:
        key, item = keys.turn(after.order), _turn_item(after)
        if before is None:
            return Statement(key, as_insert(key | item, self._table.name))
        return self._table.statement(Update(key, item, (), keys.same_version(before)))


def _marker_item(marker: QueueEntry) -> dict[str, Any]:
    """All of the item but its key."""
    return {"at": {"N": str(marker.at)}, "expires": {"N": str(marker.scheduled_at // 1000 + MARKER_KEPT_S)}}


def _marker(order: OrderKey, item: Mapping[str, Any]) -> QueueEntry:
    scheduled_at, created_at, job, life = keys.marker_position(item["sk"]["S"])
    return QueueEntry(order, job, scheduled_at, created_at, life, int(item["at"]["N"]))


def _turn_item(turn: QueueHead) -> dict[str, Any]:
    """All of the item but its key."""
    values = {"version": turn.version, "at": turn.at, "expires": turn.at // 1000 + TURN_KEPT_S}
    return {"job": {"S": turn.job}} | {name: {"N": str(value)} for name, value in values.items()}


def _turn(order: OrderKey, item: Mapping[str, Any]) -> QueueHead:
    return QueueHead(order, item["job"]["S"], int(item["at"]["N"]), int(item["version"]["N"]))
