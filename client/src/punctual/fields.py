"""The types of what the methods take: words, and dictionaries with the fields of the API. A type checker finds a wrong one.

The reference of jobs, tasks and targets explains each field; an absent one has the API's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal, TypedDict

from punctual.records import Lane, Misfire, Occasion, Overlap, Role, Status, TaskStatus

When = datetime | str  # an aware datetime, or RFC 3339
Delay = str | float | timedelta  # "30m", seconds, or a timedelta
OnConflict = Literal["replace", "keep", "extend"]
OnStarted = Literal["refuse", "follow"]
OnFailure = Literal["continue", "pause"]
DstGap = Literal["shift", "skip"]
OnExcluded = Literal["skip", "next_day", "previous_day"]
Weekday = Literal["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]
DstOverlap = Literal["first", "second", "both"]


class HttpRequest(TypedDict, total=False):
    """The payload of an `http` job. Beside a `target`, only the fields that its defaults leave open."""

    url: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    headers: Mapping[str, str]
    body: Any
    timeout_seconds: float
    bearer_secret: str | None
    basic_user: str | None
    basic_secret: str | None
    header_secrets: Mapping[str, str]
    signing_secret: str | None


class RetryFields(TypedDict, total=False):
    """The waits between attempts."""

    base_seconds: float
    cap_seconds: float
    jitter: Literal["full", "equal", "none"]
    max_elapsed_seconds: float | None
    on_timeout: bool


class CallbackFields(TypedDict, total=False):
    """The rules for a worker that reports the end of a job."""

    lease_seconds: int
    max_seconds: int


class LimitFields(TypedDict, total=False):
    """The limit that jobs with the same key share."""

    key: str
    concurrency: int | None
    rate: int | None
    period: str | None


class WebhookFields(TypedDict, total=False):
    """A URL that receives notices."""

    url: str
    format: Literal["standard", "slack", "teams"]
    signing_secret: str | None


class NotificationFields(TypedDict, total=False):
    """The receivers of notices, and the occasions."""

    emails: Sequence[str]
    webhooks: Sequence[WebhookFields]
    receivers: Sequence[str]
    on: Sequence[Occasion]
    after_failures: int
    digest_seconds: int


class AlertFields(TypedDict, total=False):
    """The rules about time for the runs of a task."""

    late_after_seconds: int | None
    max_duration_seconds: int | None
    done_by: str | None
    missed: bool


class QuotaFields(TypedDict, total=False):
    """The quotas of a user."""

    max_jobs: int | None
    creates_per_second: float | None


class AfterFields(TypedDict, total=False):
    """A job or a sealed group that must end before another job starts: its id in `job` or `group`, or the key of the job in `key`."""

    job: str
    key: str
    group: str
    when: Literal["succeeded", "ended"]


# Written by `python -m docs_build.client_fields` from the OpenAPI document:


class JobOptions(TypedDict, total=False):
    """The options that jobs and tasks share."""

    max_attempts: int
    retry: RetryFields | None
    timeout_seconds: int
    callback: CallbackFields | None
    tags: Iterable[str]
    ordering_key: str | None
    on_failure: OnFailure | None
    limit: LimitFields | None
    notifications: NotificationFields | None
    events: bool


class JobOptionChanges(TypedDict, total=False):
    """The changes of these options of a task; None removes a field."""

    max_attempts: int | None
    retry: RetryFields | None
    timeout_seconds: int | None
    callback: CallbackFields | None
    tags: Iterable[str] | None
    ordering_key: str | None
    on_failure: OnFailure | None
    limit: LimitFields | None
    notifications: NotificationFields | None
    events: bool | None


class JobChanges(TypedDict, total=False):
    """The changes of a job, beside `delay` and `http`."""

    execute_at: When
    message: str
    payload: Mapping[str, Any]
    max_attempts: int
    retry: RetryFields
    timeout_seconds: int
    expires_at: When | None
    tags: Iterable[str]
    limit: LimitFields | None
    notifications: NotificationFields | None
    events: bool


# The end of the written part.


class OneTimeOptions(JobOptions, total=False):
    """The options of a one-time job, beside its content, time and key."""

    expires_at: When
    group: str  # the id of an open group
    after: Iterable[AfterFields]  # not of a job that a put by its key changes
    on_started: OnStarted  # of a job with a key
    # Of a job with a key: one of these rules, instead of `on_conflict` and `on_started`.
    debounce: Delay
    max_wait: Delay  # of a debounce
    throttle: Delay
    singleton: bool


class Every(TypedDict):
    """A rate as a number and its unit, such as minutes."""

    every: int
    unit: str


Rate = str | timedelta | Every  # "10 minutes", a timedelta, or the number and its unit
OneOrMore = str | Sequence[str]


class ScheduleOptions(TypedDict, total=False):
    """The parts of a schedule beside its cron, rate or instant, and its time zone. `every`, such as "2 weeks", has `times`."""

    every: str
    times: OneOrMore
    weekdays: OneOrMore
    jitter_seconds: int
    start: When
    end: When
    max_runs: int
    dst_gap: DstGap
    dst_overlap: DstOverlap
    exclude: Iterable[date | str]
    only: Iterable[date | str]
    on_excluded: OnExcluded
    working_days: Iterable[Weekday]


class ScheduleFields(ScheduleOptions, total=False):
    """A schedule: one of `cron`, `every`, `rate` and `at`, and its options."""

    cron: OneOrMore
    rate: Rate
    at: When
    time_zone: str


class TaskOptions(JobOptions, ScheduleOptions, total=False):
    """The options of a task, beside its name, content and schedule."""

    description: str | None
    overlap: Overlap
    misfire: Misfire
    misfire_threshold_seconds: int
    max_catch_up: int
    alerts: AlertFields | None
    paused: bool
    pause_reason: str | None


class TaskFields(TaskOptions, total=False):
    """All fields of a task, but its key."""

    name: str
    type: str | None
    payload: Mapping[str, Any] | None
    http: str | HttpRequest | None
    message: str | None
    target: str | None
    schedule: ScheduleFields | None
    cron: OneOrMore | None
    rate: Rate | None
    at: When | None
    time_zone: str | None
    generation: int


class TaskChanges(JobOptionChanges, total=False):
    """The changes of a task; None removes a field."""

    name: str
    description: str | None
    type: str | None
    payload: Mapping[str, Any] | None
    http: str | HttpRequest | None
    message: str | None
    target: str | None
    schedule: ScheduleFields | None
    cron: OneOrMore | None
    rate: Rate | None
    at: When | None
    time_zone: str | None
    every: str | None
    times: OneOrMore | None
    weekdays: OneOrMore | None
    jitter_seconds: int | None
    start: When | None
    end: When | None
    max_runs: int | None
    dst_gap: DstGap | None
    dst_overlap: DstOverlap | None
    exclude: Iterable[date | str] | None
    only: Iterable[date | str] | None
    on_excluded: OnExcluded | None
    working_days: Iterable[Weekday] | None
    overlap: Overlap | None
    misfire: Misfire | None
    misfire_threshold_seconds: int | None
    max_catch_up: int | None
    alerts: AlertFields | None
    generation: int


class JobFilter(TypedDict, total=False):
    """A filter of jobs."""

    type: str | None
    tag: str | Iterable[str] | None
    task: str | None
    status: Status | Iterable[Status] | None
    lane: Lane | None
    from_: When | None
    to: When | None
    all: bool | None
    rate: int | None
    limit: int | None


class TaskFilter(TypedDict, total=False):
    """A filter of tasks, at most `rate` a second and `limit` in all."""

    type: str | None
    tag: str | Iterable[str] | None
    name: str | None
    status: TaskStatus | Iterable[TaskStatus] | None
    all: bool | None
    rate: int | None
    limit: int | None


class TargetFields(TypedDict, total=False):
    """The fields of a named target, beside its name, kind and defaults."""

    locked: Sequence[str]
    payload_schema: Mapping[str, Any] | None
    rate: float | None
    concurrency: int | None
    limit: LimitFields | None
    network: Literal["public", "private"]
    allow: Sequence[str]
    description: str | None
    enabled: bool
    version: int


class ReceiverFields(TypedDict, total=False):
    """The fields of a receiver of notices, beside its name, kind and address."""

    signing_secret: str | None
    region: Literal["us", "eu"]
    default: bool


class PrincipalChanges(TypedDict, total=False):
    """The changes of an AWS principal."""

    owner: str
    scopes: Sequence[str]
    unique_id: str


class UserChanges(TypedDict, total=False):
    """The changes of a user."""

    role: Role
    job_weight: float
    quotas: QuotaFields
