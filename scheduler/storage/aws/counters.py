"""Counters on DynamoDB. Every stream shard writes rows of its own, and a reader adds them up: writers never contend for a row.

The attribute `seen`, the highest sequence number added, makes each entry count once. A shard delivers its records in order; after
a failure it delivers them again from the last checkpoint on, in batches of any size.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scheduler.model.counters import Counted, CounterEntry, Row
from scheduler.storage.aws import errors, keys
from scheduler.storage.aws.table import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MOST_NAMES = 100  # amounts in one update: its expression has at most 4 KB
_AMOUNT = "n:"  # prefix of the attributes that are amounts


class DynamoCounters:
    """The port `Counters`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = Table(client, table)

    def add(self, shard: str, entries: Sequence[CounterEntry]) -> None:
        rows: dict[tuple[str, str], list[CounterEntry]] = defaultdict(list)
        for entry in entries:
            rows[entry.row[:2]].append(entry)
        for _ in self._table.pool.map(lambda of_row: self._add(shard, of_row), rows.values()):
            pass  # raises the exception of a failed update

    def read(self, partition: str, low: str, high: str) -> list[Counted]:
        amounts: dict[str, Counter[str]] = defaultdict(Counter)
        about: dict[str, str] = {}
        # `high` is a name. It sorts before the rows of that name, whose sort keys continue with the shard.
        for item in self._table.all(keys.IN_PARTITION.query(partition, low, high)):
            name = keys.counted_name(item["sk"]["S"])
            amounts[name].update(_amounts(item))
            if "about" in item:
                about[name] = item["about"]["S"]
        return [
            Counted(name, {key: amount for key, amount in amounts[name].items() if amount}, about.get(name)) for name in sorted(amounts)
        ]

    def forget(self, partition: str, rows: Sequence[Counted]) -> None:
        for row in rows:
            for item in self._table.all(keys.IN_PARTITION.query(partition, keys.counted(row.name, ""), keys.counted(row.name, "~"))):
                self._table.delete({"pk": item["pk"], "sk": item["sk"]})

    def _add(self, shard: str, entries: Sequence[CounterEntry]) -> None:
        for chunk in _chunks(entries):
            left: Sequence[CounterEntry] = chunk
            while left and (seen := self._update(shard, left)) is not None:
                left = [entry for entry in left if entry.sequence > seen]

    def _update(self, shard: str, entries: Sequence[CounterEntry]) -> str | None:
        """Add all entries in one write. If the row has the first one already, add none and return its highest sequence number."""
        with errors.translated():
            try:
                self._client.update_item(**_as_call(self._table.name, shard, entries))
            except ClientError as error:
                if not errors.condition_failed(error):
                    raise
                old: Any = error.response
                return str(old["Item"]["seen"]["S"])
        return None


def _as_call(table: str, shard: str, entries: Sequence[CounterEntry]) -> dict[str, Any]:
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


def _chunks(entries: Sequence[CounterEntry]) -> Iterator[list[CounterEntry]]:
    """The entries in order, in chunks that add to at most `MOST_NAMES` amounts."""
    chunk: list[CounterEntry] = []
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
