"""The ledger on DynamoDB."""

import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from scheduler.aws import errors, keys
from scheduler.model import Cursor, Lane, Look, Unit, UnitKey

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CLOSED_KEPT_S = 30 * 86_400
LATENCY_KEPT_S = 86_400
_UNIT = ("first_shard", "last_shard", "epoch", "lease_until", "progress", "handed_out_at", "opened_at")
Item = dict[str, Any]


class DynamoLedger:
    """The port `Ledger`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def cursor(self) -> Cursor | None:
        item = self._get(keys.CURSOR)
        return Cursor(item["minute"]["S"], int(item["shards"]["N"]), int(item["epoch"]["N"])) if item else None

    def advance(self, before: Cursor | None, after: Cursor) -> bool:
        item = {**keys.CURSOR, "minute": {"S": after.minute}, "shards": {"N": str(after.shards)}, "epoch": {"N": str(after.epoch)}}
        return self._put(item, _new() if before is None else _same_epoch(before.epoch))

    def open_unit(self, unit: Unit) -> bool:
        return self._put(keys.open_unit(unit.key) | _unit(unit), _new())

    def open_units(self) -> list[Unit]:
        return [_read_unit(item) for item in self._all(keys.ALL_OF, {":pk": {"S": keys.OPEN}})]

    def unit(self, key: UnitKey) -> Unit | None:
        item = self._get(keys.open_unit(key))
        return _read_unit(item) if item else None

    def change_unit(self, before: Unit, after: Unit) -> bool:
        return self._put(keys.open_unit(before.key) | _unit(after), _same_epoch(before.epoch))

    def close_unit(self, unit: Unit, at: int, look: Look) -> bool:
        closed = keys.closed_unit(unit.key) | {"at": {"N": str(at)}, "expires": {"N": str(at // 1000 + CLOSED_KEPT_S)}}
        delete = {"TableName": self._table, "Key": keys.open_unit(unit.key)} | _same_epoch(unit.epoch)
        return self._transact([{"Delete": delete}, self._putting(closed), self._putting(_look(look))])

    def looks(self, by: int) -> list[Look]:
        values = {":pk": {"S": keys.LOOKS}, ":bound": {"S": keys.look_bound(by + 1)}}
        return [_read_look(item) for item in self._all(keys.UP_TO, values)]

    def replace_look(self, look: Look, following: Look | None) -> None:
        """If the look is gone, nothing is stored: a late second call must not bring an old look back."""
        delete = {"TableName": self._table, "Key": keys.look(look), "ConditionExpression": keys.EXISTS}
        self._transact([{"Delete": delete}] + ([self._putting(_look(following))] if following else []))

    def closed_at(self, key: UnitKey) -> int | None:
        item = self._get(keys.closed_unit(key))
        return int(item["at"]["N"]) if item and self._get(keys.open_unit(key)) is None else None

    def report_latency(self, lane: Lane, reporter: str, p99_ms: int, at: int) -> None:
        bucket = zlib.crc32(reporter.encode()) % keys.LATENCY_BUCKETS
        item: Item = {"pk": {"S": keys.latencies(lane)}, "sk": {"S": str(bucket)}, "p99": {"N": str(p99_ms)}, "at": {"N": str(at)}}
        with errors.translated():
            self._client.put_item(TableName=self._table, Item=item | {"expires": {"N": str(at // 1000 + LATENCY_KEPT_S)}})

    def latency(self, lane: Lane, since: int) -> int | None:
        reports = self._all(keys.ALL_OF, {":pk": {"S": keys.latencies(lane)}})
        return max((int(item["p99"]["N"]) for item in reports if int(item["at"]["N"]) >= since), default=None)

    def _get(self, key: keys.Value) -> Mapping[str, Any] | None:
        with errors.translated():
            return self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")

    def _put(self, item: Item, condition: Mapping[str, Any]) -> bool:
        with errors.translated():
            try:
                self._client.put_item(TableName=self._table, Item=item, **condition)
            except ClientError as error:
                if errors.condition_failed(error):
                    return False
                raise
        return True

    def _putting(self, item: Item) -> dict[str, Any]:
        return {"Put": {"TableName": self._table, "Item": item}}

    def _transact(self, actions: list[dict[str, Any]]) -> bool:
        """All of the actions or, if a condition does not hold, none."""
        written: Any = actions
        with errors.translated():
            try:
                self._client.transact_write_items(TransactItems=written)
            except ClientError as error:
                if errors.condition_failed(error):
                    return False
                raise
        return True

    def _all(self, condition: str, values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Every item of a key condition, strongly consistent, in key order."""
        start: Item = {}
        while True:
            with errors.translated():
                page = self._client.query(
                    TableName=self._table, KeyConditionExpression=condition, ExpressionAttributeValues=values, ConsistentRead=True, **start
                )
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def _new() -> dict[str, Any]:
    return {"ConditionExpression": keys.NEW}


def _same_epoch(epoch: int) -> dict[str, Any]:
    return {"ConditionExpression": keys.SAME_EPOCH, "ExpressionAttributeValues": {":epoch": {"N": str(epoch)}}}


def _unit(unit: Unit) -> Item:
    return {name: {"N": str(getattr(unit, name))} for name in _UNIT if getattr(unit, name) is not None}


def _read_unit(item: Mapping[str, Any]) -> Unit:
    return Unit(keys.unit_key(item["sk"]["S"]), **{name: int(item[name]["N"]) for name in _UNIT if name in item})


def _look(look: Look) -> Item:
    return keys.look(look) | _unit(look.unit) | {"number": {"N": str(look.number)}, "at": {"N": str(look.at)}}


def _read_look(item: Mapping[str, Any]) -> Look:
    return Look(_read_unit(item), int(item["number"]["N"]), int(item["at"]["N"]))
