"""Shapes of tasks in requests and answers."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from lambdas.rest.alert_models import AlertsRequest, AlertsShape
from lambdas.rest.form_models import RunShape, ScheduleRequest
from lambdas.rest.job_answers import SpecShape
from lambdas.rest.models import LINE, LINES, CallBackRequest, GroupId, Request, WorkRequest, check_same_key
from lambdas.rest.notification_models import NotificationsRequest
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime, optional
from scheduler.model.job import Misfire, Overlap
from scheduler.model.schedule import Cron, Schedule
from scheduler.model.task import Task, TaskPage, TaskStatus
from scheduler.model.task import status as task_status
from scheduler.tasks import schedule_form, service
from scheduler.tasks.preview import warnings
from scheduler.tasks.schedule import Run
from scheduler.tasks.service import NewTask, PutOutcome

_Overlap = Annotated[Overlap, Field(strict=False)]  # an enum has no form of its own in JSON
_Misfire = Annotated[Misfire, Field(strict=False)]


class TaskRequest(WorkRequest):
    """A task: the work, as in a job, and its schedule."""

    name: Annotated[str, Field(min_length=1, max_length=120), LINE]
    """The name for people, on one line. It need not be unique."""
    description: Annotated[str, Field(max_length=1_000), LINES] | None = None
    schedule: ScheduleRequest | None = None
    """When to run. Default: once, now."""
    overlap: _Overlap | None = None
    """The rule for a run that is due while an earlier one has not ended. Default: skip if the task recurs, else allow."""
    misfire: _Misfire | None = None
    """The rule for runs that could not start on time. Recurring tasks only. Default: run_latest."""
    misfire_threshold_seconds: Annotated[int, Field(ge=10, le=86_400)] | None = None
    """The delay from which a start is a misfire. Recurring tasks only. Default: 60."""
    max_catch_up: Annotated[int, Field(ge=1, le=1_000)] | None = None
    """The maximum number of missed runs that are caught up, the latest ones. Only with misfire run_all. Default: 100."""
    alerts: AlertsRequest | None = None
    """Rules about time for its runs. They require notifications, with the receivers. Empty: none. Default: your default alerts."""
    paused: bool | None = None
    """True: the task is created paused, and has no runs until you resume it. Requires a schedule. An edit leaves pauses as they are."""
    pause_reason: Annotated[str, Field(min_length=1, max_length=500), LINE] | None = None
    """The reason of this pause. Only with paused."""

    @field_validator("name")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value

    @field_validator("misfire", "misfire_threshold_seconds", "max_catch_up")
    @classmethod
    def _recurs(cls, value: Any, info: ValidationInfo) -> Any:
        """Runs after the schedule was validated; an invalid one is reported already."""
        if value is not None and "schedule" in info.data and not _is_recurring(info.data["schedule"]):
            raise ValueError("requires cron, every or rate: only recurring tasks have misfires")
        return value

    @field_validator("max_catch_up")
    @classmethod
    def _catches_up(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and "misfire" in info.data and info.data["misfire"] is not Misfire.RUN_ALL:
            raise ValueError("requires misfire run_all, the only rule that catches up")
        return value

    @field_validator("alerts")
    @classmethod
    def _has_receivers(cls, value: AlertsRequest | None, info: ValidationInfo) -> AlertsRequest | None:
        """Runs after the receivers were validated; invalid ones are reported already."""
        if value is not None and "notifications" in info.data and info.data["notifications"] is None:
            raise ValueError("requires notifications, which has the receivers; empty ones are for your default receivers")
        return value

    @field_validator("paused")
    @classmethod
    def _has_a_schedule(cls, value: bool | None, info: ValidationInfo) -> bool | None:
        if value and "schedule" in info.data and info.data["schedule"] is None:
            raise ValueError("requires a schedule: a task without one runs once, when it is created")
        return value

    @field_validator("pause_reason")
    @classmethod
    def _is_of_a_pause(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and not info.data.get("paused"):
            raise ValueError("requires paused: true")
        return value

    def new_task(self, owner: str) -> NewTask:
        """The task to create, or to put in the place of one."""
        seconds = self.misfire_threshold_seconds
        return NewTask(
            owner=owner,
            name=self.name,
            description=self.description,
            spec=self.spec,
            schedule=None if self.schedule is None else self.schedule.form,
            overlap=self.overlap,
            misfire=self.misfire,
            misfire_threshold_ms=None if seconds is None else seconds * 1_000,
            max_catch_up=self.max_catch_up,
            notifications=None if self.notifications is None else self.notifications.record,
            alerts=None if self.alerts is None else self.alerts.record,
            paused=bool(self.paused),
            pause_reason=self.pause_reason,
        )

    def of_key(self, owner: str, key: str) -> NewTask:
        """The task to put under the key of the path. Raises Invalid for another key in the body."""
        check_same_key(self.key, key)
        new = self.new_task(owner)
        return replace(new, spec=replace(new.spec, key=key))


def _is_recurring(schedule: ScheduleRequest | None) -> bool:
    """One of no kind at all is refused later, for that."""
    return schedule is not None and schedule.at is None


class TaskEdit(TaskRequest):
    """A task that replaces another one. An absent field gets its default, not the old value.

    The body may be an answer of `GET`: fields that only answers have are ignored.
    """

    generation: Annotated[int, Field(ge=1)] | None = None
    """The generation that you read. If the task was changed since, the request is refused. Default: no check."""

    @model_validator(mode="before")
    @classmethod
    def _as_answered(cls, body: Any) -> Any:
        return without_read_only(body) if isinstance(body, Mapping) else body


def without_read_only(body: Mapping[str, Any]) -> Json:
    """The body without the fields of an answered task that no request sets."""
    answered = PutTaskShape.model_fields.keys() | ListedTaskShape.model_fields.keys()
    return {name: value for name, value in body.items() if name in TaskEdit.model_fields or name not in answered}


class PauseRequest(Request):
    """The reason of a pause."""

    reason: Annotated[str, Field(min_length=1, max_length=500), LINE] | None = None
    """Shown with the task, and with runs that do not start for it."""


class RunRequest(Request):
    """The options of this run."""

    overlap: _Overlap | None = None
    """Default: the rule of the task."""
    group: GroupId | None = None
    """The id of an open group of yours that the run joins. Default: none."""


class ScheduleShape(Shape):
    """The schedule, in the form that requests take. Fields with their default are absent."""

    cron: str | list[str] | None = None
    """One expression, or several in alphabetical order."""
    every: str | None = None
    times: str | list[str] | None = None
    weekdays: str | list[str] | None = None
    """Absent: `every` is a number of days."""
    rate: str | None = None
    at: WrittenTime | None = None
    time_zone: str | None = None
    """Absent: UTC."""
    jitter_seconds: int | None = None
    start: WrittenTime | None = None
    """The start of the schedule. A rate and `every` always have one."""
    end: WrittenTime | None = None
    max_runs: int | None = None
    dst_gap: str | None = None
    dst_overlap: str | None = None
    exclude: list[str] | None = None
    """Calendars and dates on which no runs take place."""
    only: list[str] | None = None
    """Calendars and dates on which runs take place."""
    on_excluded: str | None = None
    """The rule for an excluded run. Absent: skip."""
    working_days: list[str] | None = None
    """The weekdays of a working day. Absent: MON to FRI."""


class TaskFacts(SpecShape):
    """The fields of a task that are always present. A field without a value is null."""

    name: str
    key: str | None
    """The name that you chose for it; it never changes."""
    description: str | None
    status: TaskStatus
    schedule: ScheduleShape | None
    """The schedule. Null: one run, when the task was created."""
    ordering_key: str | None
    """Its runs start one after the other, and after earlier jobs with the same key."""
    overlap: Overlap
    misfire: Misfire | None
    """The rule for missed runs. `misfire` and the next two fields are null if the task does not recur."""
    misfire_threshold_seconds: int | None
    max_catch_up: int | None
    """The maximum number of missed runs that are caught up. Null unless misfire is run_all."""
    alerts: AlertsShape | None
    """The rules about time for its runs. Empty: none. Null: the default alerts of its owner."""
    generation: int
    """Raised by every edit, pause and resume."""
    created_at: WrittenTime
    updated_at: WrittenTime
    inactive_at: WrittenTime | None
    """When it was paused. Null: it is active."""
    inactive_reason: str | None
    warnings: list[str]
    """Calendars that are not known for all runs shown here."""
    defaults: list[str]
    """The fields with their default value, such as `retry.cap_seconds`. A request for the same task may leave them out."""

    @classmethod
    def facts(cls, task: Task, now: int, runs: Sequence[Run], **next_runs: Any) -> Json:
        """Every field of a task as of `now`, and its next runs."""
        shown = cls._shown(task, now, warnings=warnings(task.schedule, runs), **next_runs)
        return shown | {"defaults": list(_with_default(shown, _default_fields(task.is_recurring)))}

    @classmethod
    def _shown(cls, task: Task, now: int, **next_runs: Any) -> Json:
        recurring = task.is_recurring
        return cls.of_spec(
            task,
            key=task.spec.key,
            status=task_status(task, now),
            schedule=optional(schedule_form.write, task.schedule),
            misfire=task.misfire if recurring else None,
            misfire_threshold_seconds=task.misfire_threshold_ms // 1000 if recurring else None,
            max_catch_up=task.max_catch_up if recurring and task.misfire is Misfire.RUN_ALL else None,
            alerts=optional(AlertsShape.of, task.alerts),
            defaults=None,
            **next_runs,
        )


@cache
def _default_fields(recurs: bool) -> Json:
    """The fields of a task whose request leaves them out, and those within `callback` and `notifications` if it gives these empty."""
    fields: Json = {
        "ordering_key": "-",
        "callback": CallBackRequest.model_construct(),
        "notifications": NotificationsRequest.model_construct(),
    }
    new = TaskRequest.model_construct(name="", **fields).new_task("")
    task = service.as_task(new, "", Schedule(Cron("@daily", "UTC")) if recurs else None, 0)
    shown = TaskFacts._shown(task, 0, warnings=[]) | ({"max_catch_up": task.max_catch_up} if recurs else {})
    chosen = ("name", "type", "payload", "ordering_key", "schedule")
    return {name: shown[name] for name in TaskRequest.model_fields if shown.get(name) is not None and name not in chosen}


def _with_default(shown: Json, defaults: Json) -> Iterator[str]:
    """The names of fields with their default value. By default there is no `callback` and no `notifications`: only their fields count."""
    for name, value in defaults.items():
        if shown[name] == value and name not in ("callback", "notifications"):
            yield name
        elif isinstance(shown[name], Mapping) and isinstance(value, Mapping):
            yield from (f"{name}.{part}" for part in value if shown[name][part] == value[part])


class TaskShape(TaskFacts):
    """A task and its next runs."""

    next_runs: list[RunShape]
    """The next ten runs."""

    @classmethod
    def of(cls, task: Task, runs: Sequence[Run], now: int) -> Json:
        return cls.facts(task, now, runs, next_runs=[RunShape.of(run) for run in runs])


class FieldChangeShape(Shape):
    """A field of a task that a request changes. A field without a value is null."""

    field: str
    """The field, such as `schedule.cron`."""
    before: Any
    """The value of the stored task."""
    after: Any
    """The value after the request."""


class PutTaskShape(TaskShape):
    """A task and its next runs, and what the request did."""

    outcome: PutOutcome
    """`created`, `updated`, or `unchanged` if the task already matched the request."""
    changes: list[FieldChangeShape] | None
    """With `dry_run`: the fields that the request would change, without a start of a rate or `every` that it does not give. Else null."""

    @classmethod
    def of_dry_run(cls, body: TaskEdit, before: Task | None, after: Task, outcome: PutOutcome, runs: Sequence[Run], now: int) -> Json:
        shown = TaskShape.of(after, runs, now)
        fields = [name for name in TaskEdit.model_fields if name != "generation"]
        changes = [] if before is None else list(_differences(TaskShape.of(before, (), now), shown, fields))
        chosen = body.schedule
        counts = chosen is not None and chosen.start is None and (chosen.rate is not None or chosen.every is not None)
        free = ("schedule.start",) if counts else ()
        return shown | {"outcome": outcome, "changes": [each for each in changes if each["field"] not in free]}


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], names: Iterable[str], path: str = "") -> Iterator[Json]:
    """The changes of these fields. Values are compared as JSON, in which `true`, 1 and 1.0 differ."""
    for name in names:
        old, new, field = before.get(name), after.get(name), path + name
        if json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True):
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, dict.fromkeys((*old, *new)), f"{field}.")
        else:
            yield {"field": field, "before": old, "after": new}


class ListedTaskShape(TaskFacts):
    """A task and its next run."""

    next_run: RunShape | None

    @classmethod
    def of(cls, task: Task, runs: Sequence[Run], now: int) -> Json:
        return cls.facts(task, now, runs, next_run=RunShape.of(runs[0]) if runs else None)


class TaskPageShape(ListShape):
    items: list[ListedTaskShape]

    @classmethod
    def of(cls, page: TaskPage, next_runs: Callable[[Task], Sequence[Run]], now: int) -> Json:
        return cls.page([ListedTaskShape.of(task, next_runs(task), now) for task in page.tasks], page.cursor)


class DeletedShape(Shape):
    id: str


EXAMPLES: dict[str, Any] = {
    "cron": {
        "summary": "A call every night",
        "value": {
            "name": "Nightly report",
            "schedule": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin"},
            "type": "http",
            "payload": {"method": "POST", "url": "https://example.com/reports"},
            "tags": ["reports", "env:prod"],
            "overlap": "skip",
            "misfire": "run_latest",
        },
    },
    "rate": {
        "summary": "Every five minutes, catching up on missed runs",
        "value": {
            "name": "Meter",
            "schedule": {"rate": "rate(5 minutes)"},
            "message": "read the meter",
            "overlap": "queue_one",
            "misfire": "run_all",
            "max_catch_up": 12,
        },
    },
    "at once": {"summary": "Once, now", "value": {"name": "Try it", "message": "hello"}},
}
PATCHES: dict[str, Any] = {
    "schedule": {"summary": "Another time, the rest as it is", "value": {"schedule": {"cron": "0 3 * * *"}}},
    "tags": {"summary": "Other tags, and no description", "value": {"tags": ["reports"], "description": None}},
}
