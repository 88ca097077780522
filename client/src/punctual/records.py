"""The objects that the API returns, as frozen dataclasses.

Instants are aware `datetime`s, lists are tuples, durations have their unit in their name. A field that the API does not fill is None.
Fields that a newer server adds are ignored, and values of enumerations that this version does not know are passed on as they come. `raw` is
the answer as it came, with all fields.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, cast

from punctual import instants
from punctual.errors import FieldError, InvalidRequest, UnexpectedAnswer

if TYPE_CHECKING:
    from typing_extensions import Self

Json = dict[str, Any]
T = TypeVar("T")
Date = date  # the type, in a record with a field of that name
Status = Literal["scheduled", "queued", "running", "succeeded", "failed", "killed", "cancelled", "skipped"]
Outcome = Literal["succeeded", "failed", "killed", "crashed", "cancelled"]
FailureKind = Literal["retryable", "permanent", "throttled", "timeout", "crashed", "buried", "refused"]
Lane = Literal["one-time", "recurring", "retry"]
TaskStatus = Literal["active", "inactive", "ended"]
Overlap = Literal["skip", "queue_one", "allow", "cancel_running"]
Misfire = Literal["run_latest", "run_all", "skip"]
Role = Literal["user", "operator", "administrator"]
TeamRole = Literal["viewer", "editor", "manager"]
CallerKind = Literal["person", "key", "principal"]
Occasion = Literal["failure", "recovery", "success", "late", "killed"]
ReceiverKind = Literal["email", "webhook", "slack", "teams", "pagerduty"]
OperationStatus = Literal["running", "done", "aborted"]
GroupState = Literal["open", "sealed", "ended", "abandoned"]
MonitorState = Literal["new", "up", "long", "down", "failed", "paused"]
MonitorEventKind = Literal["start", "success", "fail", "new", "paused", "up", "long", "down", "failed"]
CallKind = Literal["on_complete", "on_success", "on_failure"]
Action = Literal["redrive", "cancel_jobs", "replay_jobs", "pause_tasks", "resume_tasks", "delete_tasks", "apply_calendar", "apply_alerts"]
Scope = Literal["own", "all"]
Severity = Literal["critical", "warning", "info"]
ProblemKind = Literal[
    "scheduler_behind", "lane_paused", "breaker_open", "late_jobs", "failures", "task_skips", "task_paused", "user_disabled"
]


@dataclass(frozen=True)
class Record:
    """The base of all records."""

    raw: Json = field(repr=False, compare=False, kw_only=True, default_factory=dict)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Build the record from an answer. Raises UnexpectedAnswer if a field is missing or has another type."""
        if not isinstance(data, Mapping):
            raise UnexpectedAnswer(f"a {cls.__name__} was expected, not {str(data)[:100]!r}")
        values: dict[str, Any] = {"raw": data}
        for name, key, read, required in _plan(cls):  # type: ignore[arg-type]  # a class is hashable
            if key in data:
                try:
                    values[name] = read(data[key])
                except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
                    raise UnexpectedAnswer(f"{cls.__name__}.{name} has an unexpected value, {str(data[key])[:100]!r}: {error}") from error
            elif required:
                raise UnexpectedAnswer(f"the answer is no {cls.__name__}: it has no {key!r}")
        return cls(**values)


def part(data: Any, name: str, kind: type[T]) -> T:
    """Return the field of an answer. Raises UnexpectedAnswer if it is missing or of another type."""
    found = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(found, kind):
        raise UnexpectedAnswer(f"the answer has no {name!r}: {str(data)[:100]!r}")
    return found


Read = Callable[[Any], Any]


@cache
def _plan(record: type[Record]) -> tuple[tuple[str, str, Read, bool], ...]:
    """Return name, JSON key, reader and necessity of each field. `from_` is `from` in JSON."""
    hints = typing.get_type_hints(record)
    lacking = dataclasses.MISSING
    return tuple(
        (one.name, one.name.rstrip("_"), _reader(hints[one.name]), one.default is lacking and one.default_factory is lacking)
        for one in dataclasses.fields(record)
        if one.name != "raw"
    )


def _reader(hint: Any) -> Read:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        kinds = [one for one in inner if one is not type(None)]
        if len(kinds) == 2:  # one text, or several of them
            one, several = map(_reader, kinds)
            return lambda value: None if value is None else several(value) if isinstance(value, list) else one(value)
        some = _reader(*kinds)
        return lambda value: None if value is None else some(value)
    if origin is tuple:
        each = _reader(inner[0])
        return lambda value: tuple(each(one) for one in value)
    if hint is datetime:
        return instants.parse
    if hint is date:
        return date.fromisoformat
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_json
    if hint is FieldError:
        return lambda value: FieldError(value["field"], value["rule"])
    return lambda value: value


# Jobs


@dataclass(frozen=True)
class Failure(Record):
    """The reason of a failed attempt. `retry_after_seconds` is the pause that the target asked for."""

    kind: FailureKind
    message: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True)
class Attempt(Record):
    """One of the last five attempts of a job, by `number` from 1. `output_kept` is `excerpt` if `client.jobs.output` has more."""

    number: int
    picked_at: datetime
    ended_at: datetime
    outcome: Outcome
    started_at: datetime | None = None
    failure: Failure | None = None
    output: str | None = None
    log: str | None = None
    output_kept: Literal["whole", "excerpt"] = "whole"


@dataclass(frozen=True)
class AttemptText(Record):
    """All that an attempt put out, or logged. `complete` is false if the end was cut."""

    number: int
    text: str
    complete: bool


@dataclass(frozen=True)
class Progress(Record):
    """The last report of the worker of a job: a `fraction` of 0 to 1, a `message`, or both."""

    fraction: float | None = None
    message: str | None = None


@dataclass(frozen=True)
class Awaited(Record):
    """The work in AWS that a job waits for, or has waited for: a container or an execution. `id`: its ARN. `logs`: by container."""

    id: str
    url: str
    logs: Mapping[str, str]
    stopping: str


@dataclass(frozen=True)
class Retry(Record):
    """The waits between the attempts of a job."""

    base_seconds: float
    cap_seconds: float
    jitter: Literal["full", "equal", "none"]
    on_timeout: bool
    max_elapsed_seconds: float | None = None


@dataclass(frozen=True)
class Callback(Record):
    """The heartbeat time-out of a job's worker, and the maximum duration of its work."""

    lease_seconds: int
    max_seconds: int


@dataclass(frozen=True)
class KeyLimit(Record):
    """The limit that jobs with the same key share: how many run at one time, and how many start in a `period`, such as 1m."""

    key: str
    concurrency: int | None = None
    rate: int | None = None
    period: str | None = None


@dataclass(frozen=True)
class TargetResponse(Record):
    """The answer of a target. Of a target that is not HTTP, `status` and `headers` are those of the AWS call."""

    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True)
class Webhook(Record):
    """A webhook that is called with notifications."""

    url: str
    signing_secret: str | None = None
    format: Literal["standard", "slack", "teams"] = "standard"


@dataclass(frozen=True)
class Notifications(Record):
    """The receivers of notifications, and of which occasions they are notified."""

    emails: tuple[str, ...]
    webhooks: tuple[Webhook, ...]
    on: tuple[Occasion, ...]
    after_failures: int
    digest_seconds: int
    receivers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Alerts(Record):
    """The rules about time for the runs of a task. A rule that is None or False does not apply."""

    late_after_seconds: int | None = None
    max_duration_seconds: int | None = None
    done_by: str | None = None
    missed: bool = False


@dataclass(frozen=True)
class DefaultAlerts(Record):
    """The rules about time for an owner's tasks without alerts of their own. `updated_at` None: they were never set."""

    late_after_seconds: int | None = None
    max_duration_seconds: int | None = None
    missed: bool = False
    updated_at: datetime | None = None


@dataclass(frozen=True)
class After(Record):
    """A job or a group that a job waits for. `outcome` is its end; None: it has not ended."""

    job: str | None = None
    group: str | None = None
    when: Literal["succeeded", "ended"] = "succeeded"
    outcome: Literal["succeeded", "failed", "killed", "cancelled", "skipped", "deleted"] | None = None


@dataclass(frozen=True, kw_only=True)
class Job(Record):
    """A job: its content, its time, and its result.

    `scheduled_at` is when it was to start, `due_at` when its next attempt is due. `calls` names the target, host, function or queue that
    it calls. `outcome` and `follows` are filled only by
    `client.jobs.create` with a key.
    """

    id: str
    type: str
    status: Status
    lane: Lane
    payload: Mapping[str, Any]
    created_at: datetime
    scheduled_at: datetime
    due_at: datetime
    max_attempts: int
    timeout_seconds: int
    retry: Retry
    tags: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    after: tuple[After, ...] = ()
    late: bool = False
    events: bool = False
    redrives: int = 0
    target: str | None = None
    key: str | None = None
    puts: int = 0
    output: str | None = None
    response: TargetResponse | None = None
    reason: str | None = None
    picked_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    completed_at: datetime | None = None
    failed_at: datetime | None = None
    killed_at: datetime | None = None
    cancelled_at: datetime | None = None
    skipped_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    redriven_at: datetime | None = None
    expires_at: datetime | None = None
    duration_ms: int | None = None
    start_delay_ms: int | None = None
    callback: Callback | None = None
    lease_until: datetime | None = None
    awaited: Awaited | None = None
    heartbeat_at: datetime | None = None
    progress: Progress | None = None
    ordering_key: str | None = None
    on_failure: Literal["continue", "pause"] | None = None
    limit: KeyLimit | None = None
    notifications: Notifications | None = None
    fingerprint: str | None = None
    replay_of: str | None = None
    traceparent: str | None = None
    shard_id: int | None = None
    calls: str | None = None
    group_id: str | None = None
    group_member: int | None = None
    task_id: str | None = None
    task_name: str | None = None
    task_key: str | None = None
    generation: int | None = None
    nominal_at: datetime | None = None
    overlap: Overlap | None = None
    misfire: Misfire | None = None
    outcome: Literal["created", "replaced", "kept", "extended", "throttled"] | None = None
    follows: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the job has ended. A failed job that is retried has not ended any more."""
        return self.ended_at is not None

    @property
    def succeeded(self) -> bool:
        """Whether the job has ended with success."""
        return self.status == "succeeded"

    @property
    def failure(self) -> Failure | None:
        """The failure of the last attempt; None if there was none or it succeeded."""
        return self.attempts[-1].failure if self.attempts else None


@dataclass(frozen=True)
class Accepted(Record):
    """A job of a batch that was accepted. `client.jobs.get(id)` has all its fields."""

    id: str
    status: Status
    scheduled_at: datetime


@dataclass(frozen=True)
class ItemError(Record):
    """The reason why a job of a batch was refused."""

    code: Literal["validation_failed", "payload_too_large", "conflict", "unavailable"]
    message: str
    details: tuple[FieldError, ...] = ()


@dataclass(frozen=True)
class ItemResult(Record):
    """The result of one job of a batch, by `index`: a `job` or an `error`. `replayed`: its idempotency key was used before."""

    index: int
    job: Accepted | None = None
    error: ItemError | None = None
    replayed: bool | None = None


@dataclass(frozen=True)
class BatchResult(Record):
    """The results of a batch, in the order of its jobs."""

    accepted: int
    refused: int
    results: tuple[ItemResult, ...]

    @property
    def jobs(self) -> tuple[Accepted, ...]:
        """The accepted jobs, in their order."""
        return tuple(one.job for one in self.results if one.job is not None)

    @property
    def errors(self) -> tuple[ItemResult, ...]:
        """The results of the refused jobs, in their order."""
        return tuple(one for one in self.results if one.error is not None)

    def all_jobs(self) -> tuple[Accepted, ...]:
        """Return all jobs of the batch. Raises InvalidRequest if one was refused; the accepted ones exist then, too."""
        for one in self.results:
            if one.error is not None:
                message = f"{self.refused} of {len(self.results)} jobs were refused; the first is number {one.index}: {one.error.message}"
                raise InvalidRequest(422, one.error.code, message, one.error.details)
        return self.jobs


# Groups


@dataclass(frozen=True)
class GroupCounts(Record):
    """The number of jobs of a group by status. A job that is redriven counts by its former end until it ends again."""

    unfinished: int
    succeeded: int
    failed: int
    killed: int
    cancelled: int
    skipped: int


@dataclass(frozen=True)
class GroupCallback(Record):
    """A call-back of a group. `job_id` is its job, None before it starts."""

    kind: CallKind
    type: str
    job_id: str | None = None


@dataclass(frozen=True)
class Group(Record):
    """A group of jobs. `jobs` is their number. In a list, `counts` is None for groups of more than 16 jobs."""

    id: str
    state: GroupState
    jobs: int
    created_at: datetime
    seal_by: datetime
    name: str | None = None
    counts: GroupCounts | None = None
    callbacks: tuple[GroupCallback, ...] = ()
    sealed_at: datetime | None = None
    cancelled_at: datetime | None = None
    abandoned_at: datetime | None = None
    ended_at: datetime | None = None
    succeeded_at: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether all its jobs have ended, or nothing waits for them any more, since it was abandoned."""
        return self.state in ("ended", "abandoned")

    @property
    def succeeded(self) -> bool:
        """Whether all its jobs have succeeded, if need be after a redrive."""
        return self.succeeded_at is not None

    def callback(self, kind: CallKind) -> str | None:
        """Return the id of the job of a call-back, None if it has not started."""
        return next((one.job_id for one in self.callbacks if one.kind == kind), None)


@dataclass(frozen=True)
class MadeGroup(Record):
    """A new group, and the results of the jobs that came with it, in their order."""

    group: Group
    results: tuple[ItemResult, ...]

    @property
    def id(self) -> str:
        """The id of the group."""
        return self.group.id

    @property
    def jobs(self) -> tuple[Accepted, ...]:
        """The accepted jobs, in their order."""
        return tuple(one.job for one in self.results if one.job is not None)


# Tasks


@dataclass(frozen=True)
class NextRun(Record):
    """A run of a schedule: `nominal` is the instant by the schedule, `at` when it starts (None: skipped), `local_at` on the zone's clock.

    `dst_note` says what a change of the clock, or a calendar, does to it.
    """

    nominal: datetime
    local_at: datetime
    at: datetime | None = None
    dst_note: str | None = None


@dataclass(frozen=True)
class YearDay(Record):
    """A date of a year. `planned`: its runs to come. `runs`: the runs that were due, by status; None: not counted.

    `clock_change`: the clock changes, and the schedule names a time of the date. `excluded`: why its runs do not take place; they are moved
    to `moved_to`, if that is given. `moved_from`: the dates whose runs are moved to this one.
    """

    date: Date
    planned: int
    runs: dict[str, int] | None
    clock_change: bool
    excluded: str | None
    moved_to: Date | None
    moved_from: tuple[Date, ...]


@dataclass(frozen=True)
class Year(Record):
    """The dates with runs or marks from `first_day` to `last_day`. Runs due before `counted_from` are not counted, if that is given."""

    time_zone: str
    today: date
    first_day: date
    last_day: date
    days: tuple[YearDay, ...]
    counted_from: datetime | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class CrowdedTask(Record):
    """A task, and the number of its runs that begin in a minute."""

    id: str
    name: str
    runs: int


@dataclass(frozen=True)
class CrowdedMinute(Record):
    """A minute in which at least two runs begin, and the first 20 of its tasks."""

    at: datetime
    runs: int
    task_count: int
    tasks: tuple[CrowdedTask, ...]


@dataclass(frozen=True)
class Crowded(Record):
    """The minutes in which the most runs begin, and the runs by minute of the hour (`by_minute`, 60 numbers).

    `complete` is False if there are too many tasks or runs to count all of them.
    """

    since: datetime
    until: datetime
    minutes: tuple[CrowdedMinute, ...]
    by_minute: tuple[int, ...]
    tasks: int
    complete: bool


@dataclass(frozen=True)
class Schedule(Record):
    """The times of a task: one of `cron`, `every`, `rate` and `at`, and what goes with it."""

    cron: str | tuple[str, ...] | None = None
    every: str | None = None
    times: str | tuple[str, ...] | None = None
    weekdays: str | tuple[str, ...] | None = None
    rate: str | None = None
    at: datetime | None = None
    time_zone: str | None = None
    jitter_seconds: int | None = None
    start: datetime | None = None
    end: datetime | None = None
    max_runs: int | None = None
    dst_gap: str | None = None
    dst_overlap: str | None = None
    exclude: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    on_excluded: str | None = None
    working_days: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task(Record):
    """A task: a schedule, and what each of its runs does. `next_runs` is empty in lists, which have `next_run` only.

    `defaults` names the fields that have their default value, such as `retry.cap_seconds`. `warnings` has a text for each calendar that is
    not known for all of its shown runs.
    """

    id: str
    name: str
    type: str
    status: TaskStatus
    generation: int
    payload: Mapping[str, Any]
    overlap: Overlap
    created_at: datetime
    updated_at: datetime
    max_attempts: int
    timeout_seconds: int
    retry: Retry
    tags: tuple[str, ...] = ()
    events: bool = False
    key: str | None = None
    description: str | None = None
    schedule: Schedule | None = None
    next_run: NextRun | None = None
    next_runs: tuple[NextRun, ...] = ()
    target: str | None = None
    misfire: Misfire | None = None
    misfire_threshold_seconds: int | None = None
    max_catch_up: int | None = None
    inactive_at: datetime | None = None
    inactive_reason: str | None = None
    callback: Callback | None = None
    ordering_key: str | None = None
    on_failure: Literal["continue", "pause"] | None = None
    limit: KeyLimit | None = None
    notifications: Notifications | None = None
    alerts: Alerts | None = None
    warnings: tuple[str, ...] = ()
    defaults: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.next_run is None:
            object.__setattr__(self, "next_run", next((run for run in self.next_runs if run.at is not None), None))


@dataclass(frozen=True)
class FieldChange(Record):
    """A field of a task, such as `schedule.cron`, with its value before and after; None stands for no value."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class PutResult:
    """The task, and what `client.tasks.put` did. With `dry_run`: what it would do, and the `changes` of a task that exists."""

    task: Task
    outcome: Literal["created", "updated", "unchanged"]
    changes: tuple[FieldChange, ...] = ()

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Build it from an answer. Raises UnexpectedAnswer."""
        outcome = cast(Literal["created", "updated", "unchanged"], part(data, "outcome", str))
        changes = part(data, "changes", list) if data.get("changes") is not None else []
        return cls(Task.from_json(data), outcome, tuple(FieldChange.from_json(each) for each in changes))


@dataclass(frozen=True)
class TaskType(Record):
    """A type of job, or a named target. `payload_schema` is the JSON Schema of its payload."""

    type: str
    description: str
    payload_schema: Mapping[str, Any]
    target: str | None = None


@dataclass(frozen=True)
class AwsAction(Record):
    """An operation of AWS that jobs of the type `aws` may call. `name` is as in the option `allowed_actions`: s3:CopyObject.

    `idempotent`: Punctual repeats a call whose answer was lost, also if the payload has no `idempotent`.
    """

    name: str
    service: str
    action: str
    summary: str
    documentation: str
    reads_only: bool
    idempotent: bool


@dataclass(frozen=True)
class DescribedAwsAction(AwsAction):
    """An operation of AWS with the JSON Schema of its parameters."""

    parameters_schema: Mapping[str, Any]


# Monitors


@dataclass(frozen=True, kw_only=True)
class Monitor(Record):
    """Work that runs elsewhere and pings. Pings go to `ping_path` below the address of the API."""

    key: str
    name: str
    state: MonitorState
    since: datetime
    grace_seconds: int
    max_duration_seconds: int
    created_at: datetime
    updated_at: datetime
    schedule: Schedule | None = None
    period_seconds: int | None = None
    notifications: Notifications | None = None
    ping_path: str | None = None
    expected_at: datetime | None = None
    down_at: datetime | None = None
    next_expected: tuple[NextRun, ...] = ()
    running_since: datetime | None = None
    pinged_at: datetime | None = None
    flapping: bool = False
    warning: str | None = None


@dataclass(frozen=True)
class MonitorEvent(Record):
    """An entry of the history of a monitor: a ping, or a state that it entered. `body` is the text of the ping."""

    at: datetime
    kind: MonitorEventKind
    exit_code: int | None = None
    duration_seconds: float | None = None
    body: str = ""


# Dead letters and operations on many


@dataclass(frozen=True)
class DeadLetterGroup(Record):
    """The failed and killed jobs of one error; `fingerprint` names it. `job_id` is the last one of them, `calls` what that one calls."""

    count: int
    types: tuple[str, ...]
    task_ids: tuple[str, ...]
    first_at: datetime
    last_at: datetime
    job_id: str
    fingerprint: str | None = None
    error: Failure | None = None
    calls: str | None = None


@dataclass(frozen=True)
class RedriveFilter(Record):
    """The filter of a redrive."""

    task: str | None = None
    type: str | None = None
    fingerprint: str | None = None
    from_: datetime | None = None
    to: datetime | None = None


@dataclass(frozen=True)
class Redrive(Record):
    """The progress of a redrive: of `matched` jobs, `redriven` run again, and `skipped` were no longer dead letters.

    `failed` could not be changed. `conflicts` stay dead, since another job that has not ended has their key.
    """

    id: str
    status: OperationStatus
    filter: RedriveFilter
    rate: int
    matched: int
    redriven: int
    skipped: int
    started_at: datetime
    failed: int = 0
    conflicts: int = 0
    limit: int | None = None
    ended_at: datetime | None = None

    @property
    def ended(self) -> bool:
        return self.status != "running"


@dataclass(frozen=True)
class OperationFilter(Record):
    """The filter of an operation."""

    type: str | None = None
    tag: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    task: str | None = None
    lane: Lane | None = None
    name: str | None = None
    calendar: str | None = None
    fingerprint: str | None = None
    from_: datetime | None = None
    to: datetime | None = None


@dataclass(frozen=True)
class Operation(Record):
    """The progress of an operation on many jobs or tasks."""

    id: str
    action: Action
    status: OperationStatus
    filter: OperationFilter
    rate: int
    matched: int
    done: int
    skipped: int
    failed: int
    started_at: datetime
    conflicts: int = 0
    limit: int | None = None
    reason: str | None = None
    ended_at: datetime | None = None

    @property
    def ended(self) -> bool:
        return self.status != "running"


@dataclass(frozen=True)
class Estimate(Record):
    """The number of jobs or tasks that an operation would change. `complete` is false if there are more than one answer counts."""

    action: Action
    filter: OperationFilter
    matched: int
    complete: bool


# Calendars


@dataclass(frozen=True)
class Calendar(Record):
    """A named set of dates. `dates` is empty in lists, which have the `size` only. `covers_until`: None means that it is complete."""

    name: str
    size: int
    updated_at: datetime
    dates: tuple[date, ...] = ()
    source: str | None = None
    covers_until: date | None = None


@dataclass(frozen=True)
class PutCalendar(Calendar):
    """A calendar, and what `client.calendars.put` did. The `operation` replaces the future runs of its tasks; None: there are none."""

    outcome: Literal["created", "updated", "unchanged"] = "created"
    operation: Operation | None = None


@dataclass(frozen=True)
class PutDefaultAlerts(DefaultAlerts):
    """The default alerts, and what `client.receivers.put_default_alerts` did. The `operation` replaces the future runs of their tasks."""

    outcome: Literal["created", "updated", "unchanged"] = "created"
    operation: Operation | None = None


# Targets, ordering keys, lanes, breakers


@dataclass(frozen=True)
class Target(Record):
    """A named target. `defaults`, `locked`, `payload_schema` and `allow` are shown to administrators only."""

    name: str
    kind: str
    enabled: bool
    job_payload_schema: Mapping[str, Any]
    version: int
    created_at: datetime
    updated_at: datetime
    description: str | None = None
    rate: float | None = None
    concurrency: int | None = None
    limit: KeyLimit | None = None
    defaults: Mapping[str, Any] | None = None
    locked: tuple[str, ...] | None = None
    payload_schema: Mapping[str, Any] | None = None
    network: Literal["public", "private"] = "public"
    allow: tuple[str, ...] | None = None
    created_by: str | None = None
    updated_by: str | None = None


@dataclass(frozen=True)
class Receiver(Record):
    """A named receiver of notices. Of its `address`, what is secret is left out. `off`: it has refused too many notices, and gets none."""

    name: str
    kind: ReceiverKind
    address: str
    default: bool
    off: bool
    created_at: datetime
    updated_at: datetime
    region: Literal["us", "eu"] = "us"
    signing_secret: str | None = None
    error: str | None = None
    failed_at: datetime | None = None
    tested_at: datetime | None = None


@dataclass(frozen=True)
class ReceiverTest(Record):
    """A test of a receiver that was sent."""

    name: str
    requested_at: datetime


@dataclass(frozen=True)
class OrderingKey(Record):
    """The state of an ordering key: the job whose turn it is, how many wait, and which failed job pauses it."""

    ordering_key: str
    waiting: int
    more: bool
    job_id: str | None = None
    paused_by: str | None = None
    paused_at: datetime | None = None


@dataclass(frozen=True)
class LaneState(Record):
    """Whether a lane is paused, since when, by whom and why."""

    lane: Lane
    paused: bool
    paused_at: datetime | None = None
    resumed_at: datetime | None = None
    reason: str | None = None
    paused_by: str | None = None
    paused_by_name: str | None = None


@dataclass(frozen=True)
class Breaker(Record):
    """A breaker that is not closed: jobs of this `circuit` wait until `until`."""

    circuit: str
    state: Literal["open", "half-open"]
    opened_at: datetime
    until: datetime
    owner: str | None = None
    owner_name: str | None = None
    probe_until: datetime | None = None


@dataclass(frozen=True)
class ClosedBreaker(Record):
    """A breaker that was closed, with its owner (None: all users share the named target), and the `others`, which are not closed."""

    circuit: str
    owner: str | None = None
    owner_name: str | None = None
    others: tuple[Breaker, ...] = ()


# The report of present problems


@dataclass(frozen=True)
class Remedy(Record):
    """The cure of a problem: a request (`method`, `path`, `body`), and the same as a `command` of the command line."""

    label: str
    method: str
    path: str
    command: str
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Problem(Record):
    """Something that is wrong now: `title` is a sentence, `inspect` a command that shows more, `remedy` what mends it, if one request does.

    `by` is the user who caused it, such as by a pause, `reason` what they wrote.

    The other fields name what it concerns; each is None unless the problem is about such a thing.
    """

    kind: ProblemKind
    severity: Severity
    title: str
    inspect: str = ""
    since: datetime | None = None
    last_at: datetime | None = None
    by: str | None = None
    by_name: str | None = None
    reason: str | None = None
    count: int | None = None
    lane: Lane | None = None
    circuit: str | None = None
    what: str | None = None
    owner: str | None = None
    owner_name: str | None = None
    task: str | None = None
    task_name: str | None = None
    fingerprint: str | None = None
    remedy: Remedy | None = None


@dataclass(frozen=True)
class SchedulerLag(Record):
    """The lag of the scheduler in seconds, and its oldest minute whose jobs are not all handed out."""

    lag_seconds: float
    oldest_open_minute: datetime | None = None


@dataclass(frozen=True)
class LateJobs(Record):
    """The jobs that should have started over a second ago and have not. With `at_least` there are more than `count`."""

    count: int
    at_least: bool
    longest_seconds: float


@dataclass(frozen=True)
class LaneDepth(Record):
    """A lane: since when and by whom it is paused, if it is, and how many jobs wait in it; with `at_least`, there are more."""

    lane: Lane
    paused_at: datetime | None = None
    paused_by: str | None = None
    paused_by_name: str | None = None
    reason: str | None = None
    waiting: int = 0
    at_least: bool = False


@dataclass(frozen=True)
class WaitingJobs(Record):
    """The number of jobs of one user that are due and wait. Without its last word, `command` cancels them."""

    owner: str
    count: int
    owner_name: str | None = None
    command: str = ""


@dataclass(frozen=True)
class RecentFailures(Record):
    """Failed jobs of the last hour with one error: `what` is the host, function, queue or type that they call."""

    what: str
    owner: str
    count: int
    last_at: datetime
    error: str
    first_at: datetime | None = None
    fingerprint: str | None = None
    owner_name: str | None = None
    job: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class SkippingTask(Record):
    """A task of whose last runs (`of`) at least half were skipped."""

    task: str
    task_name: str
    owner: str
    skipped: int
    of: int
    reason: str
    owner_name: str | None = None


@dataclass(frozen=True)
class StatusReport(Record):
    """The present problems. `well`: there is none. `problems` has the most severe first; with `more_problems` there are others.

    `scheduler` is None if the API does not say it for this scope. `waiting` has the most first; `failures` are of the last hour.
    """

    at: datetime
    scope: Scope
    well: bool
    problems: tuple[Problem, ...]
    late: LateJobs
    more_problems: bool = False
    scheduler: SchedulerLag | None = None
    lanes: tuple[LaneDepth, ...] = ()
    breakers: tuple[Breaker, ...] = ()
    waiting: tuple[WaitingJobs, ...] = ()
    failures: tuple[RecentFailures, ...] = ()
    skipping: tuple[SkippingTask, ...] = ()


# Users


@dataclass(frozen=True)
class Quotas(Record):
    """The limits of a user; None: no limit of their own, or none at all."""

    max_jobs: int | None = None
    creates_per_second: float | None = None


@dataclass(frozen=True)
class Identity(Record):
    """A person, as an identity provider names them."""

    provider: str
    subject: str


@dataclass(frozen=True)
class User(Record):
    """A user. `effective_quotas` are those that apply, `quotas` those set for this user.

    `role` was set by an administrator, `sso_role` comes from the identity provider; the higher one applies. A user without a password
    (`has_password`) signs in by the identity provider.
    """

    id: str
    username: str
    enabled: bool
    job_weight: float
    quotas: Quotas
    effective_quotas: Quotas
    role: Role | None = None
    sso_role: Role | None = None
    has_password: bool = True
    created_at: datetime | None = None


@dataclass(frozen=True)
class TeamOfMe(Record):
    """A team of the caller, and the caller's role in it."""

    id: str
    name: str
    role: TeamRole


@dataclass(frozen=True)
class Me(Record):
    """The caller. A person has a `role` and `teams`; an API key and an AWS role have `scopes`.

    `owner` is the owner whose objects a call is about that names none.
    """

    id: str
    username: str
    scopes: tuple[str, ...]
    job_weight: float
    effective_quotas: Quotas
    role: Role | None = None
    kind: CallerKind = "person"
    owner: str | None = None
    teams: tuple[TeamOfMe, ...] = ()


# Teams, API keys, principals


@dataclass(frozen=True)
class Team(Record):
    """A team. `role` is that of the caller; an operator who is no member has none."""

    id: str
    name: str
    created_at: datetime
    role: TeamRole | None = None


@dataclass(frozen=True)
class Member(Record):
    """A member of a team: a user, the role in the team, and since when."""

    user_id: str
    username: str | None
    role: TeamRole
    since: datetime


@dataclass(frozen=True)
class Invitation(Record):
    """An invitation to a team. Only the answer that creates it has the `token`."""

    id: str
    team: str
    role: TeamRole
    made_by: str
    created_at: datetime
    expires_at: datetime
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class ApiKey(Record):
    """An API key of an owner, created by the person `maker`. Only the answer that creates it has the `key` itself.

    `used_at` is at most an hour before the last use.
    """

    id: str
    name: str
    owner: str
    maker: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None = None
    used_at: datetime | None = None
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Principal(Record):
    """An AWS role, or a pattern of roles (`arn`), that acts for an owner within scopes."""

    id: str
    arn: str
    owner: str
    scopes: tuple[str, ...]
    made_by: str
    created_at: datetime
    unique_id: str | None = None


@dataclass(frozen=True)
class IntakeLetter(Record):
    """A message of an intake queue of which no job was made, or a batch of which some jobs were refused, with the broken rules.

    `owner` is None if the `sender` is unknown. `received` is how often the queue had delivered the message. With `cut` only the beginning
    of a long `body` is stored. Lists have no `body`.
    """

    message_id: str
    queue: str
    sender: str
    errors: tuple[FieldError, ...]
    accepted: int
    received: int
    sent_at: datetime
    refused_at: datetime
    cut: bool
    owner: str | None = None
    body: str | None = None


@dataclass(frozen=True)
class AuditEntry(Record):
    """One change: its author (`actor`), its time, the owner of the object, the action and the fields.

    `key` is the id of the API key that the author used. Without a `status` the request was cut off.
    """

    id: str
    at: datetime
    actor: str
    owner: str
    action: str
    changes: Mapping[str, Any]
    address: str
    request_id: str
    actor_name: str | None = None
    key: str | None = None
    object: str | None = None
    status: int | None = None
    ended_at: datetime | None = None


# Forecast, statistics, state


@dataclass(frozen=True)
class ForecastMinute(Record):
    """The starts of one minute: jobs, their work in milliseconds, and the executors that it requires."""

    scheduled_at: datetime
    jobs: int
    compute_ms: int
    required_instances: int


@dataclass(frozen=True)
class Forecast(Record):
    """The starts in each minute of the next three hours, and how many executors there may be at once."""

    scope: str
    available_instances: int
    minutes: tuple[ForecastMinute, ...]


@dataclass(frozen=True)
class TypeStatistics(Record):
    """Results and durations of the jobs of one type."""

    type: str
    runs: int
    succeeded: int
    failed: int
    killed: int
    cancelled: int
    skipped: int
    late: int
    average_ms: float | None = None
    p50_ms: int | None = None
    p95_ms: int | None = None


@dataclass(frozen=True)
class DayStatistics(Record):
    """The statistics of one day (UTC)."""

    day: date
    types: tuple[TypeStatistics, ...]


@dataclass(frozen=True)
class Statistics(Record):
    """The statistics of jobs by type, and day by day if days were asked for."""

    scope: str
    since: datetime
    until: datetime
    types: tuple[TypeStatistics, ...]
    daily: tuple[DayStatistics, ...] | None = None


@dataclass(frozen=True)
class Health(Record):
    """The state of the API and, with a token, the lag of the scheduler in seconds and the paused lanes."""

    status: str
    oldest_open_minute: datetime | None = None
    lag_seconds: float | None = None
    paused_lanes: tuple[Lane, ...] | None = None


@dataclass(frozen=True)
class Version(Record):
    """The versions of the scheduler and of its API."""

    version: str
    api: str


@dataclass(frozen=True)
class Heartbeat(Record):
    """The answer to a heartbeat: until when the lease lasts, and whether the worker should stop."""

    lease_until: datetime
    cancel_requested: bool


@dataclass(frozen=True)
class Reported(Record):
    """The answer to a report: the job, and its status after it."""

    id: str
    status: Status
