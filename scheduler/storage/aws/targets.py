"""Named targets on DynamoDB, in the tasks table: their registry, how much of their limits is in use, and who waits for them."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Unavailable
from scheduler.model.job import JobKey
from scheduler.model.limiter import KeyLimit
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import Limit
from scheduler.model.target_queue import QueueUser, Released, TargetQueue
from scheduler.model.target_usage import USUAL_MS, Move, Place, TargetUsage, UsageChange
from scheduler.storage.aws import keys, readable, spec_items
from scheduler.storage.aws.table import Table
from scheduler.storage.ports import ChangeResult, Found, Written
from scheduler.targets.named_target import ITEMS, item_name

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_TEXTS = ("kind", "created_by", "updated_by", "description")
_NUMBERS = ("created_at", "updated_at", "concurrency", "version")


class DynamoTargets:
    """The port `Targets`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def targets(self, names: Sequence[str]) -> Found[str, NamedTarget]:
        stored = self._table.get_many([keys.target(name) for name in dict.fromkeys(names)])
        return readable.found(read_target, lambda item: str(item["sk"]["S"]), stored)

    def usages(self, names: Sequence[str]) -> dict[str, TargetUsage]:
        by_partition = {keys.usage(name)["pk"]["S"]: name for name in names}
        items = self._table.get_many([keys.usage(name) for name in by_partition.values()])
        return {(name := by_partition[item["pk"]["S"]]): _read_usage(name, item) for item in items}

    def use(self, uses: Sequence[UsageChange]) -> list[ChangeResult]:
        return list(self._table.pool.map(self._use, uses) if len(uses) > 1 else map(self._use, uses))

    def use_together(self, uses: Sequence[UsageChange]) -> Written:
        actions = [{"Update": _as_transacted(_as_update(use, self._table.name))} for use in uses]
        try:
            return Written.of(self._table.transact(actions))
        except Unavailable:
            return Written.REFUSED

    def all(self) -> list[NamedTarget]:
        return list(readable.each(read_target, self._table.all(keys.all_of(keys.TARGETS) | {"ConsistentRead": True})))

    def put(self, before: NamedTarget | None, after: NamedTarget) -> bool:
        if self._table.put(target_item(after), keys.IF_NEW if before is None else keys.if_version(before.version)):
            return True
        return self.targets([after.name]).get(after.name) == after  # an earlier answer was lost

    def delete(self, target: NamedTarget) -> bool:
        if not self._table.delete(keys.target(target.name), keys.if_version(target.version)):
            return False
        try:
            for number in range(ITEMS + 1 if target.beside else 1):
                self._table.delete(keys.usage(item_name(target.name, number)))
        except Unavailable:
            pass  # a new target of that name inherits the rate's next instants, and the concurrency slots until their leases end
        return True

    def join_queue(self, target: str, owner: str, at: int) -> int:
        values: dict[str, Any] = {":at": _number(at), ":yes": {"BOOL": True}}
        before = self._update_user(target, owner, "SET joined_at = :at, waiting = :yes", values, {"ReturnValues": "UPDATED_OLD"})
        return int(before["joined_at"]["N"]) if before and before["waiting"]["BOOL"] else 0

    def queue(self, target: str) -> tuple[TargetQueue | None, list[QueueUser]]:
        return _read_queue(self._table.all(keys.in_queue(target) | {"ConsistentRead": True}))

    def queues(self, part: int | None = None) -> Iterator[tuple[TargetQueue, list[QueueUser]]]:
        partition = keys.QUEUES if part is None else keys.queues(part)
        items = self._table.all(keys.all_of(partition) | {"ConsistentRead": True})
        for target, of_target in itertools.groupby(items, lambda item: keys.queue_of(item["sk"]["S"])[0]):
            queue, users = _read_queue(of_target)
            yield queue or TargetQueue(target), users

    def queue_users(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], QueueUser]:
        items = self._table.get_many([keys.queue_user(target, owner) for target, owner in pairs])
        return {keys.queue_of(item["sk"]["S"]): _read_user(item) for item in items}

    def change_queue(self, before: TargetQueue | None, after: TargetQueue) -> bool:
        if self._table.put(_queue_item(after), keys.IF_NEW if before is None else keys.if_epoch(before.epoch)):
            return True
        item = self._table.get(keys.target_queue(after.target))  # an earlier answer was lost
        return item is not None and _read_queue([item])[0] == after

    def drop_queue(self, queue: TargetQueue) -> bool:
        return self._table.delete(keys.target_queue(queue.target), keys.if_epoch(queue.epoch))

    def note_queue_user(self, user: QueueUser) -> None:
        values: dict[str, Any] = {":finish": {"N": repr(user.finish)}, ":waiting": {"BOOL": user.waiting}}
        self._update_user(user.target, user.owner, "SET next_tag = :finish, waiting = :waiting", values, keys.IF_STORED)

    def drop_queue_user(self, user: QueueUser) -> bool:
        return self._table.delete(keys.queue_user(user.target, user.owner), keys.if_joined(user.joined_at))

    def _update_user(
        self, target: str, owner: str, expression: str, values: Mapping[str, Any], condition: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        arguments: dict[str, Any] = {"TableName": self._table.name, "Key": keys.queue_user(target, owner), "UpdateExpression": expression}
        done, item = self._table.call(arguments | {"ExpressionAttributeValues": values, **condition})
        if done is Written.REFUSED:
            raise Unavailable
        return item

    def _use(self, use: UsageChange) -> ChangeResult:
        done, item = self._table.call(_as_update(use, self._table.name))
        return ChangeResult(
            done, None if done is Written.REFUSED else TargetUsage(use.target) if item is None else _read_usage(use.target, item)
        )


def target_item(target: NamedTarget) -> dict[str, Any]:
    """The whole item of a target; nested values are JSON text."""
    item: dict[str, Any] = keys.target(target.name) | {"defaults": {"S": _json(target.defaults)}, "locked": {"S": _json(target.locked)}}
    item |= {name: {"S": getattr(target, name)} for name in _TEXTS if getattr(target, name) is not None}
    item |= {name: {"N": str(getattr(target, name))} for name in _NUMBERS if getattr(target, name) is not None}
    if target.beside:
        item["beside"] = {"N": str(target.beside)}
    if target.rate is not None:
        item["rate"] = {"N": repr(target.rate)}
    if target.payload_schema is not None:
        item["payload_schema"] = {"S": _json(target.payload_schema)}
    if target.allow:
        item["allow"] = {"S": _json(target.allow)}
    if target.limit is not None:
        item["limit"] = {"S": _json(spec_items.limit(target.limit))}
    if target.placeholders:
        item["placeholders"] = {"BOOL": True}
    return item if target.enabled else item | {"enabled": {"BOOL": False}}


def read_target(item: Mapping[str, Any]) -> NamedTarget:
    keys.check_format(item)
    found: dict[str, Any] = {name: item[name]["S"] for name in _TEXTS if name in item}
    found |= {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
    if "beside" in item:
        found["beside"] = int(item["beside"]["N"])
    if "rate" in item:
        found["rate"] = float(item["rate"]["N"])
    if "payload_schema" in item:
        found["payload_schema"] = json.loads(item["payload_schema"]["S"])
    if "allow" in item:
        found["allow"] = tuple(json.loads(item["allow"]["S"]))
    if "limit" in item:
        found["limit"] = Limit(*json.loads(item["limit"]["S"]))
    if "placeholders" in item:
        found["placeholders"] = True
    defaults, locked = json.loads(item["defaults"]["S"]), tuple(json.loads(item["locked"]["S"]))
    return NamedTarget(item["sk"]["S"], defaults=defaults, locked=locked, enabled="enabled" not in item, **found)


def _as_update(use: UsageChange, table: str) -> dict[str, Any]:
    """The arguments of UpdateItem that apply the change if its condition is true: `limits.used` as expressions."""
    writing = _Writing()
    if use.first:
        writing.terms.append(keys.NEW)
        end_us, step_us = (0, 0) if use.starts is None else (use.starts.base_us + use.starts.by_us, use.starts.step_us)
        numbers = {"start_us": end_us, "step_us": step_us, "took_ms": USUAL_MS, "taken": len(use.takes)}
        for name, number in (numbers | {"queued_until": use.queued_until or 0}).items():
            writing.set(name, _number(number))
        writing.set("places", {"M": {_name(place): _lease(place) for place in use.takes}})
        if use.limit is not None:
            writing.set("key_limit", _key_limit(use.limit[1]))
    else:
        writing.terms.append("attribute_exists(pk)")
        if use.starts is not None:
            writing.move(use.starts)
        if use.took_ms is not None:
            writing.set("took_ms", _number(use.took_ms))
        if use.queued_until is not None:
            writing.set("queued_until", _number(use.queued_until))
        if use.limit is not None:
            writing.limit(*use.limit)
        if use.takes:
            writing.add("taken", len(use.takes))
        writing.places(use)
    if use.expires is not None:
        writing.set("expires", _number(use.expires // 1_000))
    return {"TableName": table, "Key": keys.usage(use.target), **writing.arguments()}


def _queue_item(queue: TargetQueue) -> dict[str, Any]:
    numbers = {"epoch": queue.epoch, "lease_until": queue.lease_until, "next_at": queue.next_at, "checked_at": queue.checked_at}
    item: dict[str, Any] = keys.target_queue(queue.target) | {name: _number(number) for name, number in numbers.items()}
    item |= {"message_id": {"S": queue.message_id}, "clock": {"N": repr(queue.clock)}}
    return item | {"released": {"S": _json([[each.at, each.jobs, each.taken] for each in queue.released])}}


def _read_queue(items: Iterable[Mapping[str, Any]]) -> tuple[TargetQueue | None, list[QueueUser]]:
    """The queue of one target and its users."""
    queue, users = None, list[QueueUser]()
    for item in items:
        target, owner = keys.queue_of(item["sk"]["S"])
        if owner:
            users.append(_read_user(item))
            continue
        epoch, lease_until, next_at, checked_at = (int(item[name]["N"]) for name in ("epoch", "lease_until", "next_at", "checked_at"))
        released = tuple(Released(*each) for each in json.loads(item["released"]["S"]))
        clock = float(item["clock"]["N"])
        queue = TargetQueue(target, epoch, lease_until, next_at, item["message_id"]["S"], clock, checked_at, released)
    return queue, users


def _read_user(item: Mapping[str, Any]) -> QueueUser:
    target, owner = keys.queue_of(item["sk"]["S"])
    finish = float(item["next_tag"]["N"]) if "next_tag" in item else 0.0
    return QueueUser(target, owner, int(item["joined_at"]["N"]), finish, item["waiting"]["BOOL"])


class _Writing:
    """An update expression and its condition, clause by clause. Names and values are numbered."""

    def __init__(self) -> None:
        self.sets, self.removes, self.terms = list[str](), list[str](), list[str]()
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def set(self, name: str, content: Any) -> None:
        self.sets.append(f"{name} = {self._value(content)}")

    def add(self, name: str, number: int) -> None:
        self.sets.append(f"{name} = if_not_exists({name}, {self._value(_number(0))}) + {self._value(_number(number))}")

    def limit(self, before: KeyLimit | None, after: KeyLimit) -> None:
        self.terms.append("attribute_not_exists(key_limit)" if before is None else f"key_limit = {self._value(_key_limit(before))}")
        self.set("key_limit", _key_limit(after))

    def move(self, move: Move) -> None:
        self.set("step_us", _number(move.step_us))
        if move.back_from_us is not None:
            self.terms.append(f"start_us = {self._value(_number(move.back_from_us))}")
            self.set("start_us", _number(move.base_us + move.by_us))
            return
        base = self._value(_number(move.base_us))
        if not move.behind:
            self.terms.append(f"start_us < {base}")
            self.set("start_us", _number(move.base_us + move.by_us))
            return
        self.terms.append(f"start_us >= {base}")
        if move.latest_us is not None:
            self.terms.append(f"start_us <= {self._value(_number(move.latest_us))}")
        self.add("start_us", move.by_us)

    def places(self, use: UsageChange) -> None:
        if use.room is not None:
            self.terms.append(f"size(places) <= {self._value(_number(use.room))}")
        taken = {place.job for place in use.takes}
        for place in use.drops:
            self.terms.append(f"{self._place(place)} = {self._value(_lease(place))}")
        self.removes += [self._place(place) for place in use.drops if place.job not in taken]
        dropped = {place.job for place in use.drops}
        self.terms += [f"attribute_not_exists({self._place(place)})" for place in use.takes if place.job not in dropped]
        self.sets += [f"{self._place(place)} = {self._value(_lease(place))}" for place in use.takes]

    def _place(self, place: Place) -> str:
        return f"places.{self._names.setdefault(_name(place), f'#{len(self._names)}')}"

    def _value(self, content: Any) -> str:
        self._values[f":{len(self._values)}"] = content
        return f":{len(self._values) - 1}"

    def arguments(self) -> dict[str, Any]:
        clauses = ["SET " + ", ".join(self.sets)] * bool(self.sets) + ["REMOVE " + ", ".join(self.removes)] * bool(self.removes)
        return ({"ExpressionAttributeNames": {alias: name for name, alias in self._names.items()}} if self._names else {}) | {
            "UpdateExpression": " ".join(clauses),
            "ConditionExpression": " AND ".join(self.terms),
            "ExpressionAttributeValues": self._values,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }


def _as_transacted(update: dict[str, Any]) -> dict[str, Any]:
    """The update as a part of a transaction, which returns no items."""
    return {name: value for name, value in update.items() if not name.startswith("ReturnValues")}


def _key_limit(known: KeyLimit) -> dict[str, str]:
    return {"S": _json([*spec_items.limit(known.limit), known.by, known.until])}


def _read_key_limit(text: str) -> KeyLimit:
    *limit, by, until = json.loads(text)
    return KeyLimit(Limit(*limit), by, until)


def _number(content: int) -> dict[str, str]:
    return {"N": str(content)}


def _name(place: Place) -> str:
    return f"{place.job.owner}#{place.job.id}"


def _lease(place: Place) -> dict[str, str]:
    """The stored form of a concurrency slot. It is short because every start writes all slots: up to 500 of about 100 bytes."""
    return {"S": f"{place.fence} {place.since} {place.until}"}


def _read_place(name: str, lease: str) -> Place:
    owner, _, id = name.rpartition("#")
    return Place(JobKey(owner, id), *map(int, lease.split()))


def _read_usage(target: str, item: Mapping[str, Any]) -> TargetUsage:
    places = sorted((_read_place(name, lease["S"]) for name, lease in item["places"]["M"].items()), key=attrgetter("since", "job"))
    start_us, step_us, took_ms, taken = (int(item[name]["N"]) for name in ("start_us", "step_us", "took_ms", "taken"))
    queued_until = int(item["queued_until"]["N"])
    limit = _read_key_limit(item["key_limit"]["S"]) if "key_limit" in item else None
    expires = int(item["expires"]["N"]) * 1_000 if "expires" in item else 0
    return TargetUsage(target, start_us, step_us, tuple(places), took_ms, taken, queued_until, True, limit, expires)
