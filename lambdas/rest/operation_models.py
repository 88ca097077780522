"""Shapes of operations on many jobs or tasks."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from lambdas.rest.models import LINE, Instant, Request, Tags
from lambdas.rest.resolution import Broken, Stage
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.model import ids, operation
from scheduler.model.job import Lane
from scheduler.model.operation import Action, Filter, Operation, State
from scheduler.operations.requests import Estimate

MAX_TASK_RATE = 100
OpenStatus = Literal["scheduled", "queued", "running"]
TaskStatus = Literal["active", "inactive", "ended"]


def several(value: Any) -> Any:
    """A single text is accepted as a list of one."""
    return [value] if isinstance(value, str) else value


def task_id(text: str) -> str:
    if not ids.is_job_id(text):
        raise ValueError("must be the id of a task")
    return text


TaskId = Annotated[str, AfterValidator(task_id)]
Type = Annotated[str, Field(min_length=1, max_length=64), LINE]
SeveralTags = Annotated[Tags, BeforeValidator(several)]


class ManyRequest(Request):
    """The jobs or tasks to change, and the speed. Without any filter, `all` must be true."""

    type: Type | None = None
    """Only of this task type."""
    tag: SeveralTags = Field(default_factory=list)
    """Only with all of these tags: a list, or a single tag as a text."""
    all: bool = False
    """True: all of them, without a filter. A request without a filter and without `all` is refused."""
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """The maximum number of changes. Default: all that match."""
    dry_run: bool = False
    """True: nothing is changed, and the answer has the present number of matches."""

    def broken(self, stage: Stage) -> Iterator[Broken]:
        if self.all != (self.filter == Filter()):
            yield (
                ("all",),
                "must be absent or false beside a filter" if self.all else "must be true if there is no filter: it means all of them",
            )

    @property
    def filter(self) -> Filter:
        return Filter(type=self.type, tags=tuple(self.tag))


class CancelRequest(ManyRequest):
    """The jobs to cancel, and the speed."""

    task: TaskId | None = None
    """Runs of the task with this id."""
    status: Annotated[list[OpenStatus], Field(max_length=3), BeforeValidator(several)] = Field(default_factory=list)
    """Only in one of these states: a list, or a single state as a text. Default: scheduled and queued, so that running jobs continue."""
    lane: Annotated[Lane, Field(strict=False)] | None = None
    """Only of this lane."""
    since: Annotated[Instant | None, Field(alias="from")] = None
    """Scheduled at or after this instant."""
    until: Annotated[Instant | None, Field(alias="to")] = None
    """Scheduled before this instant."""
    rate: Annotated[int, Field(ge=1, le=operation.MAX_RATE)] = operation.DEFAULT_RATE
    """Jobs per second."""

    @property
    def filter(self) -> Filter:
        statuses = tuple(dict.fromkeys(self.status))
        return Filter(self.task, self.type, None, self.since, self.until, tuple(self.tag), statuses, self.lane)


class TasksRequest(ManyRequest):
    """The tasks to change, and the speed."""

    name: Annotated[str, Field(min_length=1, max_length=120), LINE] | None = None
    """Only with this text in the name, in upper or lower case."""
    rate: Annotated[int, Field(ge=1, le=MAX_TASK_RATE)] = 10
    """Tasks per second."""

    @property
    def filter(self) -> Filter:
        return Filter(type=self.type, tags=tuple(self.tag), name=self.name)


class PauseTasksRequest(TasksRequest):
    """The tasks to pause, and the speed. Only active ones are paused."""

    reason: Annotated[str, Field(min_length=1, max_length=500), LINE] | None = None
    """Shown with each task, and with runs that do not start for it."""


class ResumeTasksRequest(TasksRequest):
    """The tasks to resume, and the speed. Only paused ones are resumed."""


class DeleteTasksRequest(TasksRequest):
    """The tasks to delete, and the speed."""

    status: Annotated[list[TaskStatus], Field(max_length=3), BeforeValidator(several)] = Field(default_factory=list)
    """Only in one of these states: a list, or a single state as a text. Default: in any state."""

    @property
    def filter(self) -> Filter:
        return Filter(type=self.type, tags=tuple(self.tag), name=self.name, statuses=tuple(dict.fromkeys(self.status)))


class ChosenShape(Shape):
    """The filter of the request. A field that is null or empty matches everything."""

    type: str | None
    tag: list[str]
    status: list[str]
    task: str | None
    lane: Lane | None
    name: str | None
    calendar: str | None
    """The calendar whose tasks get its dates."""
    fingerprint: str | None
    since: Annotated[WrittenTime | None, Field(alias="from")]
    until: Annotated[WrittenTime | None, Field(alias="to")]

    @classmethod
    def of(cls, filter: Filter) -> Json:
        return cls.from_record(filter, tag=list(filter.tags), status=list(filter.statuses))


class OperationShape(Shape):
    """An operation and its progress."""

    id: str
    action: Action
    status: State
    filter: ChosenShape
    rate: int
    """Jobs or tasks per second."""
    limit: int | None
    reason: str | None
    """The reason of a pause."""
    matched: int
    """The number of matches so far: `done`, `skipped`, `failed` and `conflicts` together."""
    done: int
    skipped: int
    """The number of matches that no longer matched when their turn came: a job had started, a task was changed or deleted."""
    failed: int
    """The number of matches whose change failed with an unexpected error. They are unchanged."""
    conflicts: int
    """Of a redrive: the number of jobs that stay dead letters, since another job that has not ended has their `key`. Else 0."""
    started_at: WrittenTime
    """The start. Jobs and tasks that are created or changed later stay unchanged."""
    ended_at: WrittenTime | None

    @classmethod
    def of(cls, record: Operation) -> Json:
        return cls.from_record(record, status=record.state, filter=ChosenShape.of(record.filter))


class EstimateShape(Shape):
    """The answer to a dry run."""

    action: Action
    filter: ChosenShape
    matched: int
    """The number of matches at present."""
    complete: bool
    """False: there are more objects than one request can read, so more than `matched` may match."""

    @classmethod
    def of(cls, estimate: Estimate) -> Json:
        return cls.from_record(estimate, filter=ChosenShape.of(estimate.filter))


class OperationsShape(ListShape):
    items: list[OperationShape]
    """The running operations, followed by the ended ones; both newest first."""

    @classmethod
    def of(cls, operations: Sequence[Operation], cursor: str | None) -> Json:
        return cls.page([OperationShape.of(each) for each in operations], cursor)
