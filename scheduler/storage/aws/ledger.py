"""The ledger on DynamoDB."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from scheduler.model.backlog import Backlog, Demand
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, Lane, LaneState, LaterCheck, Unit, UnitKey
from scheduler.model.pin import Pin
from scheduler.sharing.pins import PERIOD_MS
from scheduler.storage.aws import keys, readable
from scheduler.storage.aws.table import Table
from scheduler.storage.ports import Watched, Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CLOSED_RETENTION_S = 30 * 86_400
LATENCY_RETENTION_S = 86_400
BREAKER_RETENTION_S = 86_400  # after its next trial was due: no job has called the target since
PIN_RETENTION_S = 60  # after its period
BACKLOG_RETENTION_S = 300  # after its report; a dispatcher that ends in order deletes its own
_UNIT = ("first_shard", "last_shard", "epoch", "lease_until", "progress", "handed_out_at", "opened_at", "next_at", "resting")
DIGEST = 4  # bytes of one of a unit's early entries
_LANE_TEXTS = ("reason", "paused_by", "paused_by_name")
_BREAKER = ("opened_at", "until", "waits_ms", "probe_until", "version")
Item = dict[str, Any]


class DynamoLedger:
    """The port `Ledger`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def cursor(self) -> Cursor | None:
        item = self._table.get(keys.CURSOR)
        return readable.read(_read_cursor, item) if item else None

    def advance(self, before: Cursor | None, after: Cursor) -> bool:
        item = {**keys.CURSOR, "minute": {"S": after.minute}, "shards": {"N": str(after.shards)}, "epoch": {"N": str(after.epoch)}}
        return self._table.put(item, keys.IF_NEW if before is None else keys.if_epoch(before.epoch))

    def open_unit(self, unit: Unit) -> bool:
        return self._table.put(keys.open_unit(unit.key) | _unit(unit), keys.IF_NEW)

    def open_units(self) -> list[Unit]:
        return list(readable.each(_read_unit, self._all(keys.all_of(keys.OPEN))))

    def overflow_units(self) -> list[Unit]:
        return list(readable.each(_read_unit, self._all(keys.all_of(keys.INTAKE_UNITS))))

    def unit(self, key: UnitKey) -> Unit | None:
        item = self._table.get(keys.open_unit(key))
        return readable.read(_read_unit, item) if item else None

    def change_unit(self, before: Unit, after: Unit) -> bool:
        condition = keys.if_epoch(before.epoch) if after.epoch == before.epoch else keys.if_lease(before.epoch, before.lease_until)
        return self._table.put(keys.open_unit(before.key) | _unit(after), condition)

    def close_unit(self, unit: Unit, at: int, check: LaterCheck) -> bool:
        closed = keys.closed_unit(unit.key) | {"at": {"N": str(at)}, "expires": {"N": str(at // 1000 + CLOSED_RETENTION_S)}}
        delete = {"TableName": self._table.name, "Key": keys.open_unit(unit.key)} | keys.if_epoch(unit.epoch)
        return self._table.transact([{"Delete": delete}, self._putting(closed), self._putting(_check_item(check))])

    def later_checks(self, by: int) -> list[LaterCheck]:
        return list(readable.each(_read_check, self._all(keys.up_to(keys.LATER_CHECKS, keys.check_bound(by + 1)))))

    def replace_check(self, check: LaterCheck, following: LaterCheck | None) -> None:
        """A transaction would cost twice as much; this order loses no check."""
        if following is not None:
            self._table.put(_check_item(following), {})
        self._table.delete(keys.later_check(check))

    def set_lane_state(self, state: LaneState) -> None:
        self._table.put(_lane_state(state), {})

    def watched(self) -> Watched:
        found = list(self._all(keys.all_of(keys.LANES)))
        states = readable.each(_read_lane_state, (item for item in found if not keys.is_breaker(item) and not keys.is_pin(item)))
        breakers = readable.each(_read_breaker, filter(keys.is_breaker, found))
        pins = readable.each(_read_pin, filter(keys.is_pin, found))
        return Watched({state.lane: state for state in states}, {breaker.circuit: breaker for breaker in breakers}, tuple(pins))

    def pin(self, lane: Lane, owner: str, period: int, by: int) -> None:
        fields: Item = {"lane": {"S": lane.value}, "owner": {"S": owner}, "period": {"N": str(period)}}
        names = {f"#{name}": name for name in (*fields, "expires", "executors")}
        expires = (period + 2) * PERIOD_MS // 1000 + PIN_RETENTION_S
        values = {f":{name}": value for name, value in fields.items()} | {":expires": {"N": str(expires)}, ":by": {"N": str(by)}}
        sets = ", ".join(f"#{name} = :{name}" for name in (*fields, "expires"))
        answer = self._table.call(
            {
                "TableName": self._table.name,
                "Key": keys.pin(lane, owner, period),
                "UpdateExpression": f"SET {sets} ADD #executors :by",
                "ExpressionAttributeNames": names,
                "ExpressionAttributeValues": values,
            }
        )
        if answer.done is Written.REFUSED:
            raise Unavailable

    def set_breaker(self, before: Breaker | None, after: Breaker | None) -> bool:
        if after is not None:
            return self._table.put(_breaker(after), keys.IF_NEW if before is None else keys.if_version(before.version))
        return before is None or self._table.delete(keys.breaker(before.circuit), keys.if_version(before.version))

    def mark(self) -> int:
        item = self._table.get(keys.MARK)
        return int(item["number"]["N"]) if item else 0

    def set_mark(self, number: int) -> None:
        self._table.put(keys.MARK | {"number": {"N": str(number)}}, keys.if_marked_before(number))

    def sweep_cursor(self) -> str | None:
        item = self._table.get(keys.SWEEP)
        return item["cursor"]["S"] if item and "cursor" in item else None

    def set_sweep_cursor(self, cursor: str | None) -> None:
        self._table.put(keys.SWEEP | ({} if cursor is None else {"cursor": {"S": cursor}}), {})

    def require_shards(self, shards: int) -> int:
        while (stored := self.cursor()) is not None:
            if stored.shards >= shards:
                return stored.shards
            self.advance(stored, replace(stored, shards=shards, epoch=stored.epoch + 1))
        return 0

    def plan_cursor(self) -> str | None:
        item = self._table.get(keys.PLAN)
        return item["from_minute"]["S"] if item else None

    def set_plan_cursor(self, before: str | None, after: str) -> bool:
        return self._table.put(keys.PLAN | {"from_minute": {"S": after}}, keys.IF_NEW if before is None else keys.if_from(before))

    def report_latency(self, lane: Lane, reporter: str, p99_ms: int, at: int, *, deployment: str = "", delayed: bool = False) -> None:
        item: Item = {"pk": {"S": keys.latencies(lane, delayed)}, "sk": {"S": reporter}, "p99": {"N": str(p99_ms)}, "at": {"N": str(at)}}
        self._table.put(item | {"deployment": {"S": deployment}, "expires": {"N": str(at // 1000 + LATENCY_RETENTION_S)}}, {})

    def latency(self, lane: Lane, since: int, *, deployment: str = "", delayed: bool = False) -> int | None:
        reports = readable.each(_read_latency, self._all(keys.all_of(keys.latencies(lane, delayed))))
        return max((p99 for p99, at, by in reports if at >= since and by == deployment), default=None)

    def report_ready(self, lane: Lane, executors: int, at: int) -> None:
        self._table.put(keys.ready(lane) | {"executors": {"N": str(executors)}, "at": {"N": str(at)}}, {})

    def ready(self, lane: Lane, since: int) -> int:
        item = self._table.get(keys.ready(lane))
        return int(item["executors"]["N"]) if item and int(item["at"]["N"]) >= since else 0

    def report_backlog(self, backlog: Backlog) -> None:
        self._table.put(_backlog(backlog), {})

    def drop_backlog(self, unit: UnitKey, lane: Lane) -> None:
        self._table.delete(keys.backlog(unit, lane))

    def backlogs(self, lane: Lane, since: int) -> list[Backlog]:
        found = readable.each(partial(_read_backlog, lane=lane), self._all(keys.all_of(keys.backlogs(lane))))
        return [backlog for backlog in found if backlog.at >= since]

    def _putting(self, item: Item) -> dict[str, Any]:
        return {"Put": {"TableName": self._table.name, "Item": item}}

    def _all(self, query: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """All items of a query, strongly consistent, in key order."""
        return self._table.all({**query, "ConsistentRead": True})


def _read_cursor(item: Mapping[str, Any]) -> Cursor:
    return Cursor(item["minute"]["S"], int(item["shards"]["N"]), int(item["epoch"]["N"]))


def _read_latency(item: Mapping[str, Any]) -> tuple[int, int, str]:
    """The latency in milliseconds, when it was reported, and by which deployment."""
    return int(item["p99"]["N"]), int(item["at"]["N"]), item.get("deployment", {"S": ""})["S"]


def _unit(unit: Unit) -> Item:
    numbers: Item = {name: {"N": str(getattr(unit, name))} for name in _UNIT if getattr(unit, name) is not None}
    early: Item = {"early": {"B": b"".join(each.to_bytes(DIGEST) for each in unit.early)}} if unit.early else {}
    return numbers | early | {"message_id": {"S": unit.message_id}}


def _read_unit(item: Mapping[str, Any]) -> Unit:
    digests = item["early"]["B"] if "early" in item else b""
    early = tuple(int.from_bytes(digests[at : at + DIGEST]) for at in range(0, len(digests), DIGEST))
    numbers = {name: int(item[name]["N"]) for name in _UNIT if name in item}
    return Unit(keys.unit_key(item["sk"]["S"]), message_id=item["message_id"]["S"], early=early, **numbers)


def _check_item(check: LaterCheck) -> Item:
    return keys.later_check(check) | _unit(check.unit) | {"number": {"N": str(check.number)}, "at": {"N": str(check.at)}}


def _read_check(item: Mapping[str, Any]) -> LaterCheck:
    return LaterCheck(_read_unit(item), int(item["number"]["N"]), int(item["at"]["N"]))


def _backlog(backlog: Backlog) -> Item:
    users = json.dumps({name: [demand.weight, demand.count] for name, demand in backlog.users.items()})
    numbers = {"at": backlog.at, "outstanding": backlog.outstanding, "expires": backlog.at // 1000 + BACKLOG_RETENTION_S}
    item: Item = {name: {"N": str(number)} for name, number in numbers.items()} | {"users": {"S": users}}
    return keys.backlog(backlog.unit, backlog.lane) | item | {"rate": {"N": repr(backlog.rate)}}


def _read_backlog(item: Mapping[str, Any], lane: Lane) -> Backlog:
    users = {name: Demand(weight, count) for name, (weight, count) in json.loads(item["users"]["S"]).items()}
    at, outstanding, rate = int(item["at"]["N"]), int(item["outstanding"]["N"]), float(item["rate"]["N"])
    return Backlog(keys.unit_key(item["sk"]["S"]), lane, at, outstanding, rate, users)


def _lane_state(state: LaneState) -> Item:
    item: Item = {"pk": {"S": keys.LANES}, "sk": {"S": state.lane.value}}
    for name in ("paused_at", "resumed_at"):
        if getattr(state, name) is not None:
            item[name] = {"N": str(getattr(state, name))}
    texts = {name: getattr(state, name) for name in _LANE_TEXTS}
    return item | {name: {"S": text} for name, text in texts.items() if text is not None}


def _read_lane_state(item: Mapping[str, Any]) -> LaneState:
    paused_at, resumed_at = (int(item[name]["N"]) if name in item else None for name in ("paused_at", "resumed_at"))
    texts = {name: item[name]["S"] for name in _LANE_TEXTS if name in item}
    return LaneState(Lane(item["sk"]["S"]), paused_at, resumed_at, **texts)


def _read_pin(item: Mapping[str, Any]) -> Pin:
    return Pin(Lane(item["lane"]["S"]), item["owner"]["S"], int(item["period"]["N"]), int(item["executors"]["N"]))


def _breaker(breaker: Breaker) -> Item:
    expires = {"expires": {"N": str(breaker.until // 1000 + BREAKER_RETENTION_S)}}
    numbers = {name: {"N": str(getattr(breaker, name))} for name in _BREAKER if getattr(breaker, name) is not None}
    circuit, owner = breaker.circuit, breaker.circuit.owner
    owned = {} if owner is None else {"owner": {"S": owner}}
    return keys.breaker(circuit) | {"circuit": {"S": keys.circuit(circuit)}} | owned | numbers | expires


def _read_breaker(item: Mapping[str, Any]) -> Breaker:
    owner = item["owner"]["S"] if "owner" in item else None
    circuit = Circuit(item["circuit"]["S"].removesuffix(keys.circuit(Circuit("", owner))), owner)
    return Breaker(circuit, **{name: int(item[name]["N"]) for name in _BREAKER if name in item})
