"""Shapes of the previews and lists that a task form reads before anything is saved.

The fields of a schedule are checked by `scheduler/tasks/schedule_form.py` alone; here they are only described.
"""

from typing import Annotated, Any, Self

from pydantic import Field, WithJsonSchema, model_validator

from lambdas.rest.models import Instant, Request
from lambdas.rest.parameters import Part
from lambdas.rest.resolution import caller_schema, payload_of
from lambdas.rest.shapes import WRITTEN_INSTANT, Json, ListShape, Shape, WrittenTime
from scheduler.model.named_target import NamedTarget
from scheduler.targets import registry
from scheduler.tasks import calendar_form, schedule_form
from scheduler.tasks.exclusions import ON_EXCLUDED
from scheduler.tasks.preview import MOST_DAYS, Preview
from scheduler.tasks.schedule import DST_GAP, DST_OVERLAP, Run, Skipped

Text = Annotated[Any, WithJsonSchema({"type": "string"})]
OneOrMore = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})]
WrittenInstant = Annotated[Any, WRITTEN_INSTANT]
ENTRIES = WithJsonSchema({"type": "array", "items": {"type": "string"}, "maxItems": calendar_form.MOST_ENTRIES})
WEEKDAYS = WithJsonSchema({"type": "array", "items": {"type": "string", "enum": list(calendar_form.WEEKDAYS)}})
EVERY = {
    "type": "object",
    "properties": {
        "every": {"type": "integer", "minimum": 1, "description": "The number of units."},
        "unit": {"type": "string", "examples": ["minutes"], "description": "The unit of time."},
    },
    "required": ["every", "unit"],
    "additionalProperties": False,
}


def _whole(low: int, high: int) -> WithJsonSchema:
    return WithJsonSchema({"type": "integer", "minimum": low, "maximum": high})


class ScheduleRequest(Request):
    """When to run: exactly one of `cron`, `every`, `rate` and `at`, and its options."""

    cron: OneOrMore | None = Field(None, examples=["30 2 * * *"])
    """Five fields, as in Debian's cron, or a word such as @daily. A list of up to 10 runs when any of them does."""
    every: Text | None = Field(None, examples=["2 weeks"])
    """A number of days or weeks, with `times`. It counts from the day or the week of `start`; default: of its next run."""
    times: OneOrMore | None = Field(None, examples=["09:00"])
    """The local times of `every`, up to 24."""
    weekdays: OneOrMore | None = Field(None, examples=[["MON", "WED"]])
    """The days of `every` with weeks: MON to SUN. Default: that of the start."""
    rate: Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, EVERY]})] | None = Field(None, examples=["rate(5 minutes)"])
    """From one second to 366 days: rate(5 minutes), 5 minutes, or {"every": 5, "unit": "minutes"}."""
    at: WrittenInstant | None = None
    """One run at this instant: RFC 3339 with an offset. An instant up to a day in the past is due now."""
    time_zone: Text | None = Field(None, examples=["Europe/Berlin"])
    """An IANA time zone, in which cron expressions and times apply and local times are shown. Default: UTC."""
    jitter_seconds: Annotated[Any, _whole(0, schedule_form.LONGEST_JITTER)] | None = None
    """Delays each run by a part of this window. The part depends on the task only."""
    start: WrittenInstant | None = None
    """The first instant of the schedule. A rate has its first run at this instant, and `every` counts from its day or week."""
    end: WrittenInstant | None = None
    """No run starts at this instant or later."""
    max_runs: Annotated[Any, _whole(1, schedule_form.MOST_RUNS)] | None = None
    """The schedule ends after this number of runs."""
    dst_gap: Annotated[Any, WithJsonSchema({"type": "string", "enum": list(DST_GAP)})] | None = None
    """For cron with fixed times: the rule for a time that the clock skips. Default: shift, to the first instant after the gap."""
    dst_overlap: Annotated[Any, WithJsonSchema({"type": "string", "enum": list(DST_OVERLAP)})] | None = None
    """For cron with fixed times: the rule for a time that occurs twice. Default: first."""
    exclude: Annotated[Any, ENTRIES] | None = Field(None, examples=[["de-holidays", "2026-12-24"]])
    """Calendars and dates, as local dates of the time zone: runs on these do not take place. Recurring schedules only."""
    only: Annotated[Any, ENTRIES] | None = None
    """Calendars and dates: runs on all others do not take place. Not beside exclude."""
    on_excluded: Annotated[Any, WithJsonSchema({"type": "string", "enum": list(ON_EXCLUDED)})] | None = None
    """The rule for an excluded run: it is skipped, or moved to the same local time of a working day. Default: skip."""
    working_days: Annotated[Any, WEEKDAYS] | None = None
    """The weekdays of a working day, for on_excluded. Default: MON to FRI."""

    @property
    def form(self) -> dict[str, object]:
        """The schedule as `schedule_form.parse` takes it."""
        return {name: getattr(self, name) for name in schedule_form.FIELDS}


class WholeScheduleRequest(ScheduleRequest):
    """A body that is a schedule."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        """Without this check the error would name a field `schedule`, but here the body is the schedule."""
        if all(getattr(self, kind) is None for kind in schedule_form.KINDS):
            raise ValueError(f"must have one of {', '.join(schedule_form.KINDS)}")
        return self


class PreviewRequest(WholeScheduleRequest):
    """A schedule to preview."""

    count: Annotated[int, Field(ge=1, le=1_000)] = 10
    """The number of runs of a page: up to 100, with `days` up to 1,000."""
    days: Annotated[int, Field(ge=1, le=MOST_DAYS)] | None = None
    """Show the runs of this number of days only, of 24 hours each. Default: of any time."""
    cursor: Annotated[str, Field(max_length=60)] | None = None
    """The `cursor` of the previous page, with the same other fields. It is valid for a day."""
    after: Instant | None = None
    """Show runs later than this instant. Default: now, also for a past instant. Not allowed with max_runs, which counts from now."""


class RunShape(Shape):
    """A future run, or a skipped time."""

    nominal: WrittenTime
    """The time by the schedule. For a skipped time: the first instant after the gap."""
    at: WrittenTime | None
    """The start, with jitter; a preview shows an example of the jitter. Null: skipped, nothing runs."""
    local_at: WrittenTime
    """`nominal` in the time zone, with its offset."""
    dst_note: str | None
    """The effect of a change of the clock, or of a calendar, on this time."""

    @classmethod
    def of(cls, run: Run | Skipped) -> Json:
        return cls.from_record(run, local_at=None, dst_note=run.odd) | {"local_at": _to_the_second(run.local)}


def _to_the_second(local: str) -> str:
    """A local time such as `2027-03-28T03:00+02:00` with its seconds, which are always 0."""
    return f"{local[:16]}:00{local[16:]}" if local[16:17] != ":" else local


class PreviewShape(Shape):
    """The runs by time, and the skipped times between them, which `count` does not include."""

    runs: list[RunShape]
    warnings: list[str]
    """Calendars that are not known for all of these runs."""

    @classmethod
    def of(cls, preview: Preview) -> Json:
        return {"runs": [RunShape.of(run) for run in preview.runs], "warnings": preview.warnings}


class PreviewPageShape(PreviewShape):
    """A page of a preview. All pages together have at most 10,000 runs."""

    cursor: str | None
    """The position of the next page; null if there is none."""

    @classmethod
    def of(cls, preview: Preview) -> Json:
        return super().of(preview) | {"cursor": None if preview.following is None else ".".join(map(str, preview.following))}


class TaskTypeShape(Shape):
    """A task type, or a named target. A job refers to a target by `target` instead of `type`."""

    type: str
    target: str | None
    description: str
    payload_schema: dict[str, Any]
    """The JSON Schema of a job's payload. For a target: its own schema, or that of the type without the locked fields."""

    @classmethod
    def of_type(cls, name: str) -> Json:
        schema = payload_of(name).json_schema()
        return cls.from_record(None, type=name, target=None, description=registry.description(name), payload_schema=schema)

    @classmethod
    def of_target(cls, target: NamedTarget) -> Json:
        return cls.from_record(
            target,
            type=target.kind,
            target=target.name,
            description=target.description or target.name,
            payload_schema=caller_schema(target),
        )


class TaskTypesShape(ListShape):
    items: list[TaskTypeShape]
    """The types, followed by the enabled targets."""

    @classmethod
    def of(cls, found: Part[str | NamedTarget]) -> Json:
        """The types by name, followed by the targets."""
        shown = [TaskTypeShape.of_type(each) if isinstance(each, str) else TaskTypeShape.of_target(each) for each in found.entries]
        return cls.page(shown, found.cursor)


EXAMPLES: dict[str, Any] = {
    "cron": {
        "summary": "Every night",
        "value": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "count": 3},
    },
    "skip": {
        "summary": "The same, skipping a night without that time",
        "value": {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "dst_gap": "skip", "count": 3},
    },
    "several": {
        "summary": "At two times that no single expression has",
        "value": {"cron": ["0 9 * * MON-FRI", "30 11 LW * *"], "count": 4},
    },
    "every": {
        "summary": "Every other week",
        "value": {"every": "2 weeks", "weekdays": ["MON", "WED"], "times": "09:00", "time_zone": "Europe/Berlin", "count": 5},
    },
    "rate": {"summary": "Every 90 minutes, ten times", "value": {"rate": "rate(90 minutes)", "max_runs": 10}},
}
