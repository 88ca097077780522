"""What executors ask of named targets, on DynamoDB: the targets of a batch and what of their limits is in use."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scheduler.aws import keys
from scheduler.aws.table import Statement, Table
from scheduler.aws.updates import Update, as_insert, as_statement
from scheduler.limits import Place, Usage
from scheduler.model import JobKey
from scheduler.named_target import NamedTarget

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_TEXTS = ("kind", "created_by", "updated_by", "description")
_USED = ("next_us", "start_us", "took_ms", "version")
_NUMBERS = ("created_at", "updated_at", "concurrency", "version")


class DynamoTargetGate:
    """The port `TargetGate`, in the tasks table."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def targets(self, names: Sequence[str]) -> dict[str, NamedTarget]:
        found = self._table.get_many([keys.target(name) for name in dict.fromkeys(names)])
        return {target.name: target for target in map(read_target, found)}

    def usages(self, names: Sequence[str]) -> dict[str, Usage]:
        by_partition = {keys.usage(name)["pk"]["S"]: name for name in names}
        items = self._table.get_many([keys.usage(name) for name in by_partition.values()])
        return {(name := by_partition[item["pk"]["S"]]): _read_usage(name, item) for item in items}

    def use(self, changes: Sequence[tuple[Usage, Usage]]) -> list[bool | None]:
        done = [answer.done for answer in self._table.run_each([self._using(before, after) for before, after in changes])]
        refused = [after.target for (_, after), held in zip(changes, done, strict=True) if held is False]
        stands = self.usages(refused) if refused else {}
        # If what stands is what was to be written, an earlier answer was lost.
        return [stands.get(after.target) == after if held is False else held for (_, after), held in zip(changes, done, strict=True)]

    def _using(self, before: Usage, after: Usage) -> Statement:
        key, item = keys.usage(after.target), _usage(after)
        if before.version == 0:
            return Statement(key, as_insert(key | item, self._table.name))
        return Statement(key, as_statement(Update(key, item, [], keys.same_version(before)), self._table.name))


def target_item(target: NamedTarget) -> dict[str, Any]:
    """The whole item of a target; what is nested is JSON text."""
    item: dict[str, Any] = keys.target(target.name) | {"defaults": {"S": _json(target.defaults)}, "locked": {"S": _json(target.locked)}}
    item |= {name: {"S": getattr(target, name)} for name in _TEXTS if getattr(target, name) is not None}
    item |= {name: {"N": str(getattr(target, name))} for name in _NUMBERS if getattr(target, name) is not None}
    if target.rate is not None:
        item["rate"] = {"N": repr(target.rate)}
    if target.payload_schema is not None:
        item["payload_schema"] = {"S": _json(target.payload_schema)}
    return item if target.enabled else item | {"enabled": {"BOOL": False}}


def read_target(item: Mapping[str, Any]) -> NamedTarget:
    found: dict[str, Any] = {name: item[name]["S"] for name in _TEXTS if name in item}
    found |= {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
    if "rate" in item:
        found["rate"] = float(item["rate"]["N"])
    if "payload_schema" in item:
        found["payload_schema"] = json.loads(item["payload_schema"]["S"])
    defaults, locked = json.loads(item["defaults"]["S"]), tuple(json.loads(item["locked"]["S"]))
    return NamedTarget(item["sk"]["S"], defaults=defaults, locked=locked, enabled="enabled" not in item, **found)


def _usage(usage: Usage) -> dict[str, Any]:
    """All of the item but its key. At most 500 places of about 75 bytes: written at every start, so it is kept short."""
    places = [[place.job.owner, place.job.id, place.fence, place.since, place.until] for place in usage.places]
    numbers = {name: {"N": str(getattr(usage, name))} for name in _USED}
    return numbers | {"places": {"S": _json(places)}, "writer": {"S": usage.writer}}


def _read_usage(target: str, item: Mapping[str, Any]) -> Usage:
    places = tuple(Place(JobKey(owner, id), *numbers) for owner, id, *numbers in json.loads(item["places"]["S"]))
    next_us, start_us, took_ms, version = (int(item[name]["N"]) for name in _USED)
    return Usage(target, next_us, start_us, places, took_ms, version, item["writer"]["S"])
