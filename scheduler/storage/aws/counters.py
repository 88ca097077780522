"""Counters on DynamoDB. Every stream shard writes rows of its own, and a reader adds them up.

So nobody contends for a row, and one attribute, the highest sequence added, makes each entry count once: a shard's records come in
order, and come again from the last checkpoint on, in whatever batches.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scheduler.insight.counting import Counted, Entry, Row
from scheduler.storage.aws import errors, keys
from scheduler.storage.aws.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MOST_NAMES = 100  # of one update: its expression has at most 4 KB
_AMOUNT = "n:"  # begins the name of every attribute that is an amount


class DynamoCounters:
    """The port `Counters`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = Table(client, table)

    def add(self, shard: str, entries: Sequence[Entry]) -> None:
        rows: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        for entry in entries:
            rows[entry.row[:2]].append(entry)
        for _ in self._table.pool.map(lambda of_row: self._add(shard, of_row), rows.values()):
            pass  # raises what one of them raised

    def read(self, partition: str, low: str, high: str) -> list[Counted]:
        values = {":pk": {"S": partition}, ":low": {"S": low}, ":high": {"S": high}}
        amounts: dict[str, Counter[str]] = defaultdict(Counter)
        about: dict[str, str] = {}
        # A high that is a name sorts before the rows of that name, which go on with their shard.
        for item in self._table.all({"KeyConditionExpression": keys.IN_PARTITION, "ExpressionAttributeValues": values}):
            name = keys.counted_name(item["sk"]["S"])
            amounts[name].update(_amounts(item))
            if "about" in item:
                about[name] = item["about"]["S"]
        return [
            Counted(name, {key: amount for key, amount in amounts[name].items() if amount}, about.get(name)) for name in sorted(amounts)
        ]

    def forget(self, partition: str, rows: Sequence[Counted]) -> None:
        for row in rows:
            values = {":pk": {"S": partition}, ":low": {"S": keys.counted(row.name, "")}, ":high": {"S": keys.counted(row.name, "~")}}
            for item in self._table.all({"KeyConditionExpression": keys.IN_PARTITION, "ExpressionAttributeValues": values}):
                self._table.delete({"pk": item["pk"], "sk": item["sk"]})

    def _add(self, shard: str, entries: Sequence[Entry]) -> None:
        for chunk in _chunks(entries):
            left: Sequence[Entry] = chunk
            while left and (seen := self._update(shard, left)) is not None:
                left = [entry for entry in left if entry.sequence > seen]

    def _update(self, shard: str, entries: Sequence[Entry]) -> str | None:
        """Add them all at once; or none, and the highest sequence that the row has, if that is not below the first."""
        with errors.translated():
            try:
                self._client.update_item(**_as_call(self._table.name, shard, entries))
            except ClientError as error:
                if not errors.condition_failed(error):
                    raise
                old: Any = error.response
                return str(old["Item"]["seen"]["S"])
        return None


def _as_call(table: str, shard: str, entries: Sequence[Entry]) -> dict[str, Any]:
    total: Counter[str] = Counter()
    for entry in entries:
        total.update(entry.amounts)
    row: Row = entries[-1].row
    names = {f"#{number}": _AMOUNT + name for number, name in enumerate(total)}
    values: dict[str, Any] = {f":{number}": {"N": str(amount)} for number, amount in enumerate(total.values())}
    values |= {":first": {"S": entries[0].sequence}, ":last": {"S": entries[-1].sequence}}
    sets = ["seen = :last"]
    if row.expires is not None:
        sets.append("expires = :expires")
        values[":expires"] = {"N": str(row.expires)}
    if row.about is not None:
        sets.append("about = :about")
        values[":about"] = {"S": row.about}
    adds = ", ".join(f"#{number} :{number}" for number in range(len(total)))
    return {
        "TableName": table,
        "Key": {"pk": {"S": row.partition}, "sk": {"S": keys.counted(row.name, shard)}},
        "UpdateExpression": f"SET {', '.join(sets)} ADD {adds}",
        "ConditionExpression": keys.UNSEEN,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _chunks(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """In order, in parts that add to at most `MOST_NAMES` amounts."""
    chunk: list[Entry] = []
    names: set[str] = set()
    for entry in entries:
        if chunk and len(names | entry.amounts.keys()) > MOST_NAMES:
            yield chunk
            chunk, names = [], set()
        chunk.append(entry)
        names |= entry.amounts.keys()
    if chunk:
        yield chunk


def _amounts(item: Mapping[str, Any]) -> dict[str, int]:
    return {name.removeprefix(_AMOUNT): int(value["N"]) for name, value in item.items() if name.startswith(_AMOUNT)}
