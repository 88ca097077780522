"""Operations in the ledger table: the running ones in one partition, the ended ones by owner until they expire (TTL)."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from scheduler.model.job import Lane
from scheduler.model.operation import Action, Filter, Operation, State
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_TIMES = ("started_at", "ended_at", "lease_until", "due_at", "next_at", "announced_at")
_NUMBERS = (*_TIMES, "rate", "limit", "done", "skipped", "failed", "conflicts", "tries", "version")
_WRITTEN = (*_NUMBERS, "expires")
_TEXTS = ("reason", "after", "message_id")


class DynamoOperations:
    """The port `Operations`."""

    def __init__(self, client: "DynamoDBClient", ledger: str) -> None:
        self._table = Table(client, ledger)

    def places(self, owner: str) -> dict[int, str]:
        query = keys.all_of(keys.operation_places(owner)) | {"ConsistentRead": True}
        return {int(item["sk"]["S"]): item["id"]["S"] for item in self._table.all(query)}

    def add(self, operation: Operation, place: int, former: str | None) -> bool:
        table = {"TableName": self._table.name}
        taken = {"Item": keys.operation_place(operation.owner, place) | {"id": {"S": operation.id}}, **keys.if_taken_by(former)}
        return self._table.transact([{"Put": table | taken}, {"Put": table | {"Item": _encode(operation), **keys.IF_NEW}}])

    def get(self, owner: str, id: str) -> Operation | None:
        item = self._table.get(keys.running_operation(owner, id)) or self._table.get(keys.ended_operation(owner, id))
        return readable.read(_decode, item) if item else None

    def running(self) -> list[Operation]:
        return list(readable.each(_decode, self._table.all(keys.all_of(keys.OPERATIONS) | {"ConsistentRead": True})))

    def ended(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Operation], str | None]:
        low, high = keys.bounds(None, None, after, newest_first=True)
        query = keys.IN_PARTITION.query(keys.ended_operations(owner), low, high)
        found = self._table.all(query | {"Limit": limit + 1, "ScanIndexForward": False, "ConsistentRead": True})
        listed = list(itertools.islice(found, limit + 1))
        return list(readable.each(_decode, listed[:limit])), listed[limit - 1]["sk"]["S"] if len(listed) > limit else None

    def change(self, before: Operation, after: Operation) -> bool:
        condition = keys.if_version(before.version)
        if _key(before) == _key(after):
            return self._table.put(_encode(after), condition)
        delete = {"TableName": self._table.name, "Key": _key(before), **condition}
        return self._table.transact([{"Delete": delete}, {"Put": {"TableName": self._table.name, "Item": _encode(after)}}])


def _key(operation: Operation) -> keys.Value:
    key = keys.running_operation if operation.state is State.RUNNING else keys.ended_operation
    return key(operation.owner, operation.id)


def _encode(operation: Operation) -> dict[str, Any]:
    filter = {name: value for name, value in asdict(operation.filter).items() if value is not None and value != ()}
    item: dict[str, Any] = {**_key(operation), "owner": {"S": operation.owner}, "id": {"S": operation.id}}
    item |= {"action": {"S": operation.action.value}, "state": {"S": operation.state.value}, "filter": {"S": json.dumps(filter)}}
    if operation.pending:
        item["pending"] = {"S": " ".join(operation.pending)}
    if operation.payload is not None:
        item["payload"] = {"S": json.dumps(operation.payload, ensure_ascii=False)}
    item |= {name: {"N": str(value)} for name in _WRITTEN if (value := getattr(operation, name)) is not None}
    return item | {name: {"S": value} for name in _TEXTS if (value := getattr(operation, name)) is not None}


def _decode(item: Mapping[str, Any]) -> Operation:
    fields: dict[str, Any] = {name: item[name]["S"] for name in _TEXTS if name in item}
    fields |= {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
    return Operation(
        owner=item["owner"]["S"],
        id=item["id"]["S"],
        action=Action(item["action"]["S"]),
        filter=_read(json.loads(item["filter"]["S"])),
        payload=json.loads(item["payload"]["S"]) if "payload" in item else None,
        state=State(item["state"]["S"]),
        pending=tuple(item["pending"]["S"].split(" ")) if "pending" in item else (),
        **fields,
    )


def _read(fields: dict[str, Any]) -> Filter:
    lists: dict[str, Any] = {name: tuple(fields[name]) for name in ("tags", "statuses") if name in fields}
    return Filter(**fields | lists | ({"lane": Lane(fields["lane"])} if "lane" in fields else {}))
