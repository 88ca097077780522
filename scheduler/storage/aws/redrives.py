"""Redrives in the ledger table: the running ones in one partition, the ended ones by owner until they expire (TTL)."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from scheduler.dead_letters.model import Filter, Redrive, State
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_NUMBERS = ("started_at", "rate", "limit", "ended_at", "found", "redriven", "skipped", "version", "lease_until", "expires")
_READ = tuple(name for name in _NUMBERS if name != "expires")


class DynamoRedrives:
    """The port `Redrives`."""

    def __init__(self, client: "DynamoDBClient", ledger: str) -> None:
        self._table = Table(client, ledger)

    def add(self, redrive: Redrive) -> None:
        self._table.put(_encode(redrive), keys.IF_NEW)

    def get(self, owner: str, id: str) -> Redrive | None:
        item = self._table.get(keys.running_redrive(owner, id)) or self._table.get(keys.ended_redrive(owner, id))
        return readable.read(_decode, item) if item else None

    def running(self) -> list[Redrive]:
        return list(readable.each(_decode, self._table.all(keys.all_of(keys.REDRIVES) | {"ConsistentRead": True})))

    def change(self, before: Redrive, after: Redrive) -> bool:
        condition = keys.if_version(before.version)
        if _key(before) == _key(after):
            return self._table.put(_encode(after), condition)
        delete = {"TableName": self._table.name, "Key": _key(before), **condition}
        return self._table.transact([{"Delete": delete}, {"Put": {"TableName": self._table.name, "Item": _encode(after)}}])


def _key(redrive: Redrive) -> keys.Value:
    key = keys.running_redrive if redrive.state is State.RUNNING else keys.ended_redrive
    return key(redrive.owner, redrive.id)


def _encode(redrive: Redrive) -> dict[str, Any]:
    item: dict[str, Any] = {**_key(redrive), "owner": {"S": redrive.owner}, "id": {"S": redrive.id}, "state": {"S": redrive.state.value}}
    item["filter"] = {"S": json.dumps({name: value for name, value in asdict(redrive.filter).items() if value is not None})}
    item |= {name: {"N": str(getattr(redrive, name))} for name in _NUMBERS if getattr(redrive, name) is not None}
    return item if redrive.after is None else item | {"after": {"S": redrive.after}}


def _decode(item: Mapping[str, Any]) -> Redrive:
    return Redrive(
        owner=item["owner"]["S"],
        id=item["id"]["S"],
        filter=Filter(**json.loads(item["filter"]["S"])),
        state=State(item["state"]["S"]),
        after=item["after"]["S"] if "after" in item else None,
        **{name: int(item[name]["N"]) for name in _READ if name in item},
    )
