"""A change of some fields of a task: a JSON merge patch (RFC 7396) of the task as `GET` answers it.

The fields of a task depend on each other, so the task after the patch is validated as a whole, by the rules for an edit.
"""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, ValidationError

from lambdas.rest import envelope
from lambdas.rest.models import Request
from lambdas.rest.shapes import Json
from lambdas.rest.task_models import TaskEdit, TaskShape, without_read_only
from scheduler.model.errors import Invalid
from scheduler.model.job import Misfire
from scheduler.model.task import Task
from scheduler.tasks import schedule_form

_OF_RECURRING = ("misfire", "misfire_threshold_seconds", "max_catch_up")


class TaskPatch(Request):
    """The fields to change. An absent field stays as it is; null resets a field to its default. Nested objects are patched too."""

    model_config = ConfigDict(extra="allow")

    @property
    def fields(self) -> Json:
        return self.model_extra or {}


def patched(task: Task, patch: Mapping[str, Any]) -> TaskEdit | None:
    """The edit that the patch makes of the task; None if it changes nothing. Raises Invalid."""
    changes = without_read_only(patch)
    if not changes:
        raise Invalid.field("body", "give at least one field to change")
    for name in ("paused", "pause_reason"):
        if changes.get(name) is not None:
            raise Invalid.field(name, "goes with the creation of a task: POST /tasks/{id}/pause pauses it, and /resume resumes it")
    answered: Json = json.loads(json.dumps(TaskShape.of(task, (), task.updated_at)))
    before = {name: value for name, value in answered.items() if name in TaskEdit.model_fields and name != "generation"}
    after = _merged(_replaced(before, changes), changes)
    _drop_meaningless(after, changes)
    try:
        edit = TaskEdit.model_validate(after)
        return None if edit == TaskEdit.model_validate({"generation": edit.generation} | before) else edit
    except ValidationError as error:
        raise envelope.body_violations(error, TaskEdit) from None


def _merged(before: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(before) if isinstance(before, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged


def _replaced(before: Json, patch: Mapping[str, Any]) -> Json:
    """The task without what the patch replaces: of fields that exclude each other, the given one takes the place of the other."""
    left = dict(before)
    if patch.get("message") is not None:
        for name in ("type", "target", "payload"):
            left.pop(name, None)
    elif patch.get("target") is not None:
        left.pop("type", None)  # that of the target
    schedule, replacement = before.get("schedule"), patch.get("schedule")
    if (
        isinstance(schedule, Mapping)
        and isinstance(replacement, Mapping)
        and any(replacement.get(kind) is not None for kind in schedule_form.KINDS)
    ):
        gone = schedule_form.KINDS if replacement.get("every") is not None else (*schedule_form.KINDS, *schedule_form.OF_EVERY)
        left["schedule"] = {name: value for name, value in schedule.items() if name not in gone}
    elif isinstance(schedule, Mapping) and isinstance(replacement, Mapping) and "every" in schedule and "time_zone" in replacement:
        moved = {"every": schedule["every"], "time_zone": replacement["time_zone"]}  # it keeps the day from which it counts
        left["schedule"] = {**schedule, "start": schedule_form.with_start_of(schedule_form.restore(schedule), moved).get("start")}
    return left


def _drop_meaningless(after: Json, patch: Mapping[str, Any]) -> None:
    """Remove what the task had and no longer means anything. A field of the patch itself stays, and is refused by its rule."""
    schedule = after.get("schedule")
    gone: tuple[str, ...] = ()
    if not isinstance(schedule, Mapping) or schedule.get("at") is not None:
        gone = _OF_RECURRING
    elif after.get("misfire") != Misfire.RUN_ALL:
        gone = ("max_catch_up",)
    if after.get("ordering_key") is None:
        gone = (*gone, "on_failure")
    if after.get("notifications") is None:
        gone = (*gone, "alerts")
    for name in gone:
        if name not in patch:
            after.pop(name, None)
