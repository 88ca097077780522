"""Dead letters of the intake in the ledger table: each in an item of its own, and in the list of its owner without its body."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.model.intake import RETENTION_DAYS, IntakeLetter, IntakeMessage, Violation
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoIntakeDeadLetters:
    """The port `IntakeDeadLetters`."""

    def __init__(self, client: "DynamoDBClient", ledger: str) -> None:
        self._table = Table(client, ledger)

    def add(self, letter: IntakeLetter) -> bool:
        return self._table.transact([self._put(keys.intake_letter(letter.message.id), letter, keys.IF_NEW), self._put_listed(letter)])

    def had(self, ids: Sequence[str]) -> set[str]:
        items = [keys.intake_letter(id) for id in dict.fromkeys(ids)]
        return {item["sk"]["S"] for item in self._table.get_many(items, ["pk", "sk"])}

    def get(self, id: str) -> IntakeLetter | None:
        item = self._table.get(keys.intake_letter(id))
        return None if item is None or "removed" in item else readable.read(_decode, item)

    def page(self, owner: str | None, *, after: str | None, limit: int) -> tuple[list[IntakeLetter], str | None]:
        low, high = keys.bounds(None, None, after, newest_first=True)
        query = keys.IN_PARTITION.query(keys.intake_letters(owner), low, high)
        found = self._table.all(query | {"Limit": limit + 1, "ScanIndexForward": False, "ConsistentRead": True})
        listed = list(itertools.islice(found, limit + 1))
        return list(readable.each(_decode, listed[:limit])), listed[limit - 1]["sk"]["S"] if len(listed) > limit else None

    def change(self, before: IntakeLetter, after: IntakeLetter) -> bool:
        key = keys.intake_letter(after.message.id)
        return self._table.transact([self._put(key, after, keys.if_version(before.version)), self._put_listed(after)])

    def remove(self, letter: IntakeLetter) -> bool:
        note = keys.intake_letter(letter.message.id) | {"removed": {"BOOL": True}, "expires": _expires(letter)}
        listed = {"TableName": self._table.name, "Key": keys.listed_letter(letter.owner, letter.message.sent_at, letter.message.id)}
        table = {"TableName": self._table.name}
        return self._table.transact([{"Put": table | {"Item": note, **keys.if_version(letter.version)}}, {"Delete": listed}])

    def _put(self, key: keys.Value, letter: IntakeLetter, condition: Mapping[str, Any]) -> dict[str, Any]:
        return {"Put": {"TableName": self._table.name, "Item": key | _encode(letter) | {"body": {"S": letter.message.body}}, **condition}}

    def _put_listed(self, letter: IntakeLetter) -> dict[str, Any]:
        key = keys.listed_letter(letter.owner, letter.message.sent_at, letter.message.id)
        return {"Put": {"TableName": self._table.name, "Item": key | _encode(letter)}}


def _expires(letter: IntakeLetter) -> Any:
    return {"N": str(letter.refused_at // 1_000 + RETENTION_DAYS * 86_400)}


def _encode(letter: IntakeLetter) -> dict[str, Any]:
    message = letter.message
    texts = {"id": message.id, "queue": message.queue, "sender": message.sender, "errors": json.dumps(letter.errors, ensure_ascii=False)}
    numbers = {"sent_at": message.sent_at, "receives": message.receives, "refused_at": letter.refused_at}
    numbers |= {"accepted": letter.accepted, "version": letter.version}
    item: dict[str, Any] = {name: {"S": value} for name, value in texts.items()}
    item |= {name: {"N": str(value)} for name, value in numbers.items()}
    if letter.owner is not None:
        item["owner"] = {"S": letter.owner}
    if message.trace is not None:
        item["trace"] = {"S": message.trace}
    return item | {"cut": {"BOOL": letter.is_cut}, "expires": _expires(letter)}


def _decode(item: Mapping[str, Any]) -> IntakeLetter:
    body = item["body"]["S"] if "body" in item else ""
    names = item["id"]["S"], item["queue"]["S"], item["sender"]["S"]
    return IntakeLetter(
        IntakeMessage(*names, int(item["sent_at"]["N"]), body, int(item["receives"]["N"]), item["trace"]["S"] if "trace" in item else None),
        tuple(Violation(field, rule) for field, rule in json.loads(item["errors"]["S"])),
        int(item["refused_at"]["N"]),
        item["owner"]["S"] if "owner" in item else None,
        int(item["accepted"]["N"]),
        item["cut"]["BOOL"],
        int(item["version"]["N"]),
    )
