"""A task as an item of the tasks table, in the manner of `items`: defaults are not stored, and nested values are JSON text."""

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, fields
from typing import TYPE_CHECKING, Any

from scheduler.model.alerts import Alerts
from scheduler.model.job import Misfire, Overlap
from scheduler.model.task import Gap, Task
from scheduler.notify import messages
from scheduler.storage.aws import keys, spec_items
from scheduler.tasks import schedule_form

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

Item = dict[str, Any]

_TEXTS = ("name", "description", "inactive_reason", "replenish")
_NUMBERS = (
    "created_at",
    "updated_at",
    "generation",  # stored even if 1: conditions compare it, as they do `planned_until`
    "planned_until",
    "misfire_threshold_ms",
    "max_catch_up",
    "inactive_at",
    "planned",
)
_ALWAYS = ("generation", "planned_until")
_DEFAULTS = {field.name: field.default for field in fields(Task)}
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode(task: Task) -> Item:
    """The whole item."""
    item: Item = spec_items.encode(task.spec) | {"v": {"N": keys.FORMAT}}
    for name in _TEXTS:
        if _is_stored(task, name):
            item[name] = {"S": getattr(task, name)}
    for name in _NUMBERS:
        if _is_stored(task, name):
            item[name] = {"N": str(getattr(task, name))}
    for name in ("overlap", "misfire"):
        if _is_stored(task, name):
            item[name] = {"S": getattr(task, name).value}
    if task.notifications is not None:
        item["notifications"] = {"S": messages.encode_notifications(task.notifications)}
    if task.alerts is not None:
        item["alerts"] = {"S": encode_alerts(task.alerts)}
    if task.gap is not None:
        item["gap"] = gap(task.gap)
    if task.schedule is not None:
        item["schedule"] = {"S": _json(schedule_form.stored(task.schedule))}
    return keys.stored_task(task.key) | item


def decode(item: Mapping[str, Any]) -> Task:
    """The task of a whole item. It raises for an unreadable item."""
    keys.check_format(item)
    found: dict[str, Any] = {name: item[name]["S"] for name in _TEXTS if name in item}
    found |= {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
    if "overlap" in item:
        found["overlap"] = Overlap(item["overlap"]["S"])
    if "misfire" in item:
        found["misfire"] = Misfire(item["misfire"]["S"])
    if "notifications" in item:
        found["notifications"] = messages.decode_notifications(item["notifications"]["S"])
    if "alerts" in item:
        found["alerts"] = Alerts(**json.loads(item["alerts"]["S"]))
    if "gap" in item:
        found["gap"] = Gap(*map(int, item["gap"]["S"].split()))
    schedule = schedule_form.restore(json.loads(item["schedule"]["S"])) if "schedule" in item else None
    owner, task_id = keys.task_key(item)
    return Task(owner=owner, id=task_id, spec=spec_items.decode(item), schedule=schedule, **found)


def encode_alerts(alerts: Alerts) -> str:
    """The rules that apply, as JSON text."""
    return _json({name: value for name, value in asdict(alerts).items() if value is not None and value is not False})


def plan(before: Task, after: Task) -> tuple[Item, list[str]]:
    """The attributes to set and to remove to store how far the task is planned."""
    sets: Item = {"planned_until": {"N": str(after.planned_until)}, "planned": {"N": str(after.planned)}}
    if after.replenish is not None:
        sets["replenish"] = {"S": after.replenish}
    if after.gap is not None:
        sets["gap"] = gap(after.gap)
    return sets, [name for name in ("replenish", "gap") if getattr(before, name) is not None and getattr(after, name) is None]


def gap(found: Gap) -> "AttributeValueTypeDef":
    """The stored form of a gap, which conditions compare."""
    return {"S": " ".join(str(number) for number in astuple(found) if number is not None)}


def _is_stored(task: Task, name: str) -> bool:
    return name in _ALWAYS or getattr(task, name) != _DEFAULTS[name]
