"""The shapes of operations on many jobs or tasks."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from lambdas.rest.models import Instant, Request, Tags
from lambdas.rest.resolution import Broken, Stage
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime
from scheduler.model import ids, operation
from scheduler.model.job import Lane
from scheduler.model.operation import Action, Filter, Operation, State
from scheduler.operations.requests import Estimate

MAX_TASK_RATE = 100
OpenStatus = Literal["scheduled", "queued", "running"]
TaskStatus = Literal["active", "inactive", "ended"]


def _several(value: Any) -> Any:
    """One text may stand for a list of one."""
    return [value] if isinstance(value, str) else value


def task_id(text: str) -> str:
    if not ids.is_job_id(text):
        raise ValueError("must be the id of a task")
    return text


TaskId = Annotated[str, AfterValidator(task_id)]
Type = Annotated[str, Field(min_length=1, max_length=64)]
SeveralTags = Annotated[Tags, BeforeValidator(_several)]


class ManyRequest(Request):
    """Which jobs or tasks to change, and how fast. Without any filter, `all` must be true."""

    type: Type | None = None
    """Those of this task type."""
    tag: SeveralTags = Field(default_factory=list)
    """Those with all of these tags; a single one may be given as a text."""
    all: bool = False
    """True: all of them, without a filter. A request with neither is refused."""
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """How many are changed at most. Absent: all that match."""
    dry_run: bool = False
    """True: nothing is changed; the answer has how many match at present."""

    def broken(self, stage: Stage) -> Iterator[Broken]:
        if self.all != (self.filter == Filter()):
            yield (
                ("all",),
                "goes without a filter" if self.all else "must be true if there is no filter, and then means all of them",
            )

    @property
    def filter(self) -> Filter:
        return Filter(type=self.type, tags=tuple(self.tag))


class CancelRequest(ManyRequest):
    """Which jobs to cancel, and how fast."""

    task: TaskId | None = None
    """Runs of the task with this id."""
    status: Annotated[list[OpenStatus], Field(max_length=3), BeforeValidator(_several)] = Field(default_factory=list)
    """Those in one of these states; a single one may be given as a text. Absent: scheduled and queued, which stops no work."""
    lane: Annotated[Lane, Field(strict=False)] | None = None
    """Those of this lane."""
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
    """Which tasks to change, and how fast."""

    name: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    """Those whose names contain this text, in any case."""
    rate: Annotated[int, Field(ge=1, le=MAX_TASK_RATE)] = 10
    """Tasks per second."""

    @property
    def filter(self) -> Filter:
        return Filter(type=self.type, tags=tuple(self.tag), name=self.name)


class PauseTasksRequest(TasksRequest):
    """Which tasks to pause, and how fast. Only active ones are paused."""

    reason: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    """Shown with each task, and with runs that do not start for it."""


class ResumeTasksRequest(TasksRequest):
    """Which tasks to resume, and how fast. Only paused ones are resumed."""


class DeleteTasksRequest(TasksRequest):
    """Which tasks to delete, and how fast."""

    status: Annotated[list[TaskStatus], Field(max_length=3), BeforeValidator(_several)] = Field(default_factory=list)
    """Those in one of these states; a single one may be given as a text. Absent: in any state."""

    @property
    def filter(self) -> Filter:
        return Filter(type=self.type, tags=tuple(self.tag), name=self.name, statuses=tuple(dict.fromkeys(self.status)))


class ChosenShape(Shape):
    """A filter as it was given; null or empty: any."""

    type: str | None
    tag: list[str]
    status: list[str]
    task: str | None
    lane: Lane | None
    name: str | None
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
    """Of a pause."""
    matched: int
    """How many matched so far: those done, skipped and failed."""
    done: int
    skipped: int
    """Matched when they were read, but not any more when their turn came: a job had started, a task was changed or deleted."""
    failed: int
    """An unexpected error stopped the change of each of these; they are as they were."""
    started_at: WrittenTime
    """Jobs and tasks created later are left alone."""
    ended_at: WrittenTime | None

    @classmethod
    def of(cls, record: Operation) -> Json:
        return cls.from_record(record, status=record.state, filter=ChosenShape.of(record.filter))


class EstimateShape(Shape):
    """The answer to a dry run."""

    action: Action
    filter: ChosenShape
    matched: int
    """How many match at present."""
    complete: bool
    """False: there are more than one request can read; at least this many match."""

    @classmethod
    def of(cls, estimate: Estimate) -> Json:
        return cls.from_record(estimate, filter=ChosenShape.of(estimate.filter))


class OperationsShape(ListShape):
    first_name = "operations"
    operations: list[OperationShape]
    """First those that run, then the ended ones; each the newest first."""
    items: list[OperationShape]
    """The same as `operations`."""

    @classmethod
    def of(cls, operations: Sequence[Operation], cursor: str | None) -> Json:
        return cls.page([OperationShape.of(each) for each in operations], cursor)
