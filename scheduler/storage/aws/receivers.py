"""Named receivers in the users table: one partition of each owner, an item of each receiver."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Unavailable
from scheduler.model.receiver import Health, NamedReceiver, ReceiverKind, Region
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Item, Table
from scheduler.storage.aws.updates import Update, as_call
from scheduler.storage.ports import Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_NUMBERS = ("created_at", "updated_at", "version")


class DynamoReceivers:
    """The port `Receivers`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def all(self, owner: str) -> list[NamedReceiver]:
        return list(readable.each(_decode, self._table.all(keys.receivers(owner))))

    def find(self, owner: str, name: str) -> NamedReceiver | None:
        item = self._table.get(keys.receiver(owner, name))
        return None if item is None else readable.read(_decode, item)

    def put(self, before: NamedReceiver | None, after: NamedReceiver) -> bool:
        if self._table.put(_encode(after), keys.IF_NEW if before is None else keys.if_version(before.version)):
            return True
        return self.find(after.owner, after.name) == after  # an earlier answer was lost

    def note(self, receiver: NamedReceiver, health: Health) -> None:
        same = keys.Term(("version",), "=", {"N": str(receiver.version)})
        update = Update(keys.receiver(receiver.owner, receiver.name), {"health": {"S": _health(health)}}, [], [same])
        if self._table.call(as_call(update, self._table.name))[0] is Written.REFUSED:
            raise Unavailable

    def delete(self, receiver: NamedReceiver) -> bool:
        return self._table.delete(keys.receiver(receiver.owner, receiver.name), keys.if_version(receiver.version))


def _encode(receiver: NamedReceiver) -> Item:
    item = keys.receiver(receiver.owner, receiver.name) | {"v": {"N": keys.FORMAT}}
    item |= {"kind": {"S": receiver.kind}, "address": {"S": receiver.address}, "region": {"S": receiver.region}}
    item |= {"default": {"BOOL": receiver.default}, "health": {"S": _health(receiver.health)}}
    item |= {name: {"N": str(getattr(receiver, name))} for name in _NUMBERS}
    return item | ({} if receiver.signing_secret is None else {"signing_secret": {"S": receiver.signing_secret}})


def _decode(item: Mapping[str, Any]) -> NamedReceiver:
    keys.check_format(item)
    numbers = {name: int(item[name]["N"]) for name in _NUMBERS}
    return NamedReceiver(
        owner=keys.owner_of_receiver(item),
        name=item["sk"]["S"],
        kind=ReceiverKind(item["kind"]["S"]),
        address=item["address"]["S"],
        signing_secret=item["signing_secret"]["S"] if "signing_secret" in item else None,
        region=Region(item["region"]["S"]),
        default=item["default"]["BOOL"],
        health=Health(**json.loads(item["health"]["S"])),
        **numbers,
    )


def _health(health: Health) -> str:
    return _json(asdict(health))
