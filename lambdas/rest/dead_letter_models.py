"""The shapes of dead letters and redrives."""

from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from lambdas.rest.job_answers import FailureShape
from lambdas.rest.models import Instant, Request
from lambdas.rest.operation_models import TaskId, Type
from lambdas.rest.parameters import part
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime, optional
from scheduler.dead_letters.groups import Group, Overview
from scheduler.model import operation
from scheduler.model.fingerprint import LENGTH, is_fingerprint
from scheduler.model.operation import Filter, Operation, State

FINGERPRINT = rf"^[0-9a-f]{{{LENGTH}}}$"


def _fingerprint(text: str) -> str:
    if not is_fingerprint(text):
        raise ValueError(f"must be a fingerprint: {LENGTH} hex digits")
    return text


FILTERS = ("task", "type", "fingerprint", "since", "until")


class RedriveRequest(Request):
    """The dead letters to run again, and the rate. Give at least one filter, or `all`."""

    task: TaskId | None = None
    """Runs of the task with this id."""
    type: Type | None = None
    """Jobs of this task type."""
    fingerprint: Annotated[str, AfterValidator(_fingerprint), WithJsonSchema({"type": "string", "pattern": FINGERPRINT})] | None = None
    """Jobs that failed with this error."""
    since: Annotated[Instant | None, Field(alias="from")] = None
    """Scheduled at or after this instant."""
    until: Annotated[Instant | None, Field(alias="to")] = None
    """Scheduled before this instant."""
    all: bool = Field(False, validate_default=True)
    """True: all dead letters, without a filter. A request with neither is refused."""
    rate: Annotated[int, Field(ge=1, le=operation.MAX_RATE)] = operation.DEFAULT_RATE
    """Jobs per second."""
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """The most jobs to retry, the earliest by scheduled time first. Default: all."""

    @field_validator("all")
    @classmethod
    def _filtered_or_all(cls, value: bool, info: ValidationInfo) -> bool:
        """Runs after the filters were validated; an invalid one is reported already."""
        filtered = any(info.data.get(name) is not None for name in FILTERS)
        if value and filtered:
            raise ValueError("must be absent or false beside a filter")
        if not value and not filtered and info.data.keys() >= set(FILTERS):
            raise ValueError("must be true to redrive all dead letters; to choose some, give task, type, fingerprint, from or to")
        return value

    @property
    def filter(self) -> Filter:
        return Filter(self.task, self.type, self.fingerprint, self.since, self.until)


class GroupShape(Shape):
    """The dead letters of one error."""

    fingerprint: str | None
    """The error, as filters take it. Null for jobs that an early version stored without one."""
    count: int
    error: FailureShape | None
    """The error of the latest dead letter. Null if that one has just been redriven."""
    calls: str | None
    """The place that the latest dead letter calls: a named target, host, function, queue or type. Null if that one was deleted."""
    types: list[str]
    task_ids: list[str]
    """The tasks whose runs are in this group, at most 20."""
    first_at: WrittenTime
    """When the first job of this group ended."""
    last_at: WrittenTime
    job_id: str
    """The id of the latest job of this group."""

    @classmethod
    def of(cls, group: Group) -> Json:
        return cls.from_record(
            group,
            error=optional(FailureShape.of, group.sample),
            types=sorted(group.types),
            task_ids=sorted(group.tasks),
            job_id=group.latest.key.id,
        )


class OverviewShape(ListShape):
    items: list[GroupShape]
    """At most 100 groups, the largest first."""
    scanned: int
    """The number of dead letters that were counted."""
    complete: bool
    """False: there are more dead letters or groups than one answer counts. Request a shorter period with `from` and `to`."""

    @classmethod
    def of(cls, overview: Overview, limit: int | None, cursor: str | None) -> Json:
        shown = part(overview.groups, limit, cursor)
        counted = {"scanned": overview.read, "complete": overview.complete}
        return cls.page([GroupShape.of(group) for group in shown.entries], shown.cursor, **counted)


class FilterShape(Shape):
    task: str | None
    type: str | None
    fingerprint: str | None
    since: Annotated[WrittenTime | None, Field(alias="from")]
    until: Annotated[WrittenTime | None, Field(alias="to")]


class RedriveShape(Shape):
    id: str
    status: State
    filter: FilterShape
    rate: int
    limit: int | None
    matched: int
    """The number of dead letters that have matched so far: `redriven`, `skipped`, `failed` and `conflicts` together."""
    redriven: int
    skipped: int
    """The number of jobs that matched but were no dead letters when their turn came, or whose task was deleted or paused."""
    failed: int
    """The number of jobs that could not be read or changed. They are unchanged."""
    conflicts: int
    """The number of jobs that stay dead letters, since another job that has not ended has their `key`."""
    started_at: WrittenTime
    """Jobs that failed later are not included."""
    ended_at: WrittenTime | None

    @classmethod
    def of(cls, redrive: Operation) -> Json:
        filter = FilterShape.from_record(redrive.filter)
        return cls.from_record(redrive, filter=filter, status=redrive.state, redriven=redrive.done)
