"""Jobs as the API shows them. The archive keeps the same fields, so this module loads no HTTP resolver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from lambdas.rest.notification_answers import NotificationsShape
from lambdas.rest.shapes import Json, ListShape, Shape, WrittenTime, optional, seconds, shortened
from scheduler.admission import why_waits
from scheduler.admission.why_waits import Seen
from scheduler.insight.counting import ended_at
from scheduler.model import callback_lease, durations, fingerprint, lifecycle
from scheduler.model.after import Ending, Kind, Predecessor, When
from scheduler.model.job import (
    Attempt,
    Failure,
    Job,
    Lane,
    Misfire,
    Outcome,
    Overlap,
    Page,
    Preview,
    Status,
    TaskKey,
)
from scheduler.model.spec import CallBack, Jitter, JobSpec, Limit, OnFailure, RetryPolicy
from scheduler.pipeline.output_store import Text
from scheduler.targets import registry
from scheduler.targets.called import calls

if TYPE_CHECKING:
    from scheduler.jobs.by_key import Put
    from scheduler.model.task import Task

LONGEST_ERROR = 500  # characters of the last error in a reason; the attempt has all of it


@dataclass(frozen=True, slots=True)
class Beside:
    """The part of an answer that is not stored with its jobs: the states behind their reasons, and the names of their tasks."""

    seen: Seen | None = None
    names: Mapping[TaskKey, str] = field(default_factory=dict)


class RetryShape(Shape):
    """The retry policy, in the form that requests take."""

    base_seconds: float
    cap_seconds: float
    jitter: Jitter
    max_elapsed_seconds: float | None
    """Null: no limit, except a day for throttled attempts."""
    on_timeout: bool

    @classmethod
    def of(cls, policy: RetryPolicy) -> Json:
        return cls.from_record(
            policy,
            base_seconds=seconds(policy.base_ms),
            cap_seconds=seconds(policy.cap_ms),
            max_elapsed_seconds=seconds(policy.max_elapsed_ms),
        )


class CallBackShape(Shape):
    """The rules for its worker, in the form that requests take."""

    lease_seconds: int
    max_seconds: int

    @classmethod
    def of(cls, callback: CallBack) -> Json:
        return cls.from_record(callback, lease_seconds=callback.lease_ms // 1000, max_seconds=callback.max_ms // 1000)


class LimitShape(Shape):
    """The limit of its key, in the form that requests take."""

    key: str
    """Jobs with the same key share the limit."""
    concurrency: int | None
    """The jobs that run at one time. Null: any number."""
    rate: int | None
    """The starts in a period. Null: any number."""
    period: str | None
    """The period of the rate, such as 1m."""

    @classmethod
    def of(cls, limit: Limit) -> Json:
        return cls.from_record(limit, period=None if limit.rate is None else durations.write(limit.period_ms))


class ProgressShape(Shape):
    """The last progress report of its worker."""

    fraction: float | None
    message: str | None


class FailureShape(Shape):
    kind: Literal["retryable", "permanent", "throttled", "timeout", "crashed", "buried", "refused"]
    message: str
    retry_after_seconds: float | None
    """The wait that its target requested."""

    @classmethod
    def of(cls, failure: Failure) -> Json:
        return cls.from_record(failure, retry_after_seconds=seconds(failure.retry_after_ms))


class AttemptShape(Shape):
    number: int
    """1, 2, 3 and so on; retries of a failed job continue the numbers."""
    picked_at: WrittenTime
    started_at: WrittenTime | None
    ended_at: WrittenTime
    outcome: Outcome
    failure: FailureShape | None
    output: str | None
    """The beginning of its output, or of the response body. The response of the last attempt is in `response`."""
    log: str | None
    """The log of the attempt; of a long log, the end."""
    output_kept: Literal["whole", "excerpt"]
    """`whole`: `/attempts/{number}/output` and `/log` return the full texts. `excerpt`: only the part shown here is stored."""

    @classmethod
    def of(cls, number: int, attempt: Attempt) -> Json:
        return cls.from_record(
            attempt,
            number=number,
            failure=optional(FailureShape.of, attempt.failure),
            output_kept="excerpt" if attempt.preview is Preview.CUT else "whole",
        )


class AwaitedShape(Shape):
    """The work in AWS that the job waits for, or that its last attempt has waited for."""

    id: str
    """The ARN of the task or of the execution."""
    url: str
    """Its page in the AWS console."""
    logs: dict[str, str]
    """The pages of the logs of its containers, by the name of the container."""
    stopping: str
    """The reason for which its stop was requested. Empty: it was not."""

    @classmethod
    def of(cls, job: Job) -> Json | None:
        awaited = job.awaited
        ends = None if awaited is None or awaited.id is None else registry.load(job.spec.type).ends
        if awaited is None or awaited.id is None or ends is None:
            return None
        logs = awaited.facts.get("logs") or {}
        return cls.from_record(awaited, url=ends.link(awaited.id), logs=logs, stopping=awaited.stopping or "")


class ResponseShape(Shape):
    status: int
    headers: dict[str, str]
    body: str
    """The body, cut so that it fits into 4 KB with the log. The full body is at `/attempts/{number}/output`."""


class AfterShape(Shape):
    """A job or a group that this job waits for."""

    job: str | None
    """The id of that job. Null: it is a group."""
    group: str | None
    """The id of that group."""
    when: When
    outcome: Ending | None
    """Its end. Null: it has not ended. `deleted`: it is no longer stored, and its end is unknown."""

    @classmethod
    def of(cls, each: Predecessor) -> Json:
        ids = {kind.value: each.id if each.kind is kind else None for kind in Kind}
        return cls.from_record(each, **ids, outcome=None if each.end is None else each.end.ending)


class SpecShape(Shape):
    """The fields that jobs and tasks have in common: what to run, and how."""

    id: str
    type: str
    target: str | None
    """The named target whose defaults complete its payload; `type` is its kind."""
    payload: dict[str, Any]
    tags: list[str]
    max_attempts: int
    retry: RetryShape
    timeout_seconds: int
    callback: CallBackShape | None
    """The rules for its worker. Null: the response of its target ends the job."""
    ordering_key: str | None
    """Jobs with the same key start one after the other."""
    on_failure: OnFailure | None
    """The rule for the jobs behind it after it has failed. Null without an ordering key."""
    limit: LimitShape | None
    """The limit of its key, as its request gave it. Null: none."""
    notifications: NotificationsShape | None
    """The receivers of its notices. Null: none. Always null for a run: its task has the receivers."""
    events: bool
    """True: each end is sent to the stage's event bus."""

    @classmethod
    def of_spec(cls, record: "Job | Task", **others: Any) -> Json:
        """As `from_record`, with the fields of the record's spec."""
        spec = record.spec
        converted = {
            "retry": RetryShape.of(spec.retry),
            "timeout_seconds": spec.timeout_ms // 1000,
            "callback": optional(CallBackShape.of, spec.callback),
            "ordering_key": None if spec.ordering is None else spec.ordering.key,
            "on_failure": None if spec.ordering is None else spec.ordering.on_failure,
            "limit": optional(LimitShape.of, spec.limit),
            "notifications": optional(NotificationsShape.of, record.notifications),
        }
        return cls.from_record(record, **{name: getattr(spec, name) for name in _AS_STORED}, **converted, **others)


_AS_STORED = [field.name for field in fields(JobSpec) if field.name in SpecShape.model_fields.keys() - {"retry", "callback", "limit"}]


class JobShape(SpecShape):
    """A job. Every field is always present. A field without a value is null."""

    status: Status
    lane: Lane
    shard_id: int | None
    """The shard of its minute. Null once the job has ended."""
    created_at: WrittenTime
    scheduled_at: WrittenTime
    due_at: WrittenTime
    """When its next attempt may start."""
    picked_at: WrittenTime | None
    started_at: WrittenTime | None
    completed_at: WrittenTime | None
    failed_at: WrittenTime | None
    killed_at: WrittenTime | None
    cancelled_at: WrittenTime | None
    skipped_at: WrittenTime | None
    ended_at: WrittenTime | None
    """The end, whatever the outcome. Null before that."""
    duration_ms: int | None
    """The time from the start of its last attempt to its end. Null before the end, and if it never started."""
    start_delay_ms: int | None
    """First start minus scheduled time."""
    late: bool
    cancel_requested_at: WrittenTime | None
    lease_until: WrittenTime | None
    """The end of its worker's lease, while the job waits for its call-back; or the next check of its work in AWS."""
    awaited: AwaitedShape | None
    """Its work in AWS: a container or an execution. Null: there is none, or its start is not recorded yet."""
    heartbeat_at: WrittenTime | None
    """The last heartbeat of this attempt."""
    progress: ProgressShape | None
    attempts: list[AttemptShape]
    """The last five attempts."""
    output: str | None
    response: ResponseShape | None
    calls: str | None
    """The named target, host and path, function, state machine, queue, topic, bus or first recipient. Null: it calls nothing."""
    after: list[AfterShape]
    """The jobs that it waits for."""
    reason: str | None
    """The reason why it waits, was skipped or cancelled, or failed, with the last error. Null: there is nothing to explain."""
    fingerprint: str | None
    """The fingerprint of the error of a failed or killed job. Errors that differ only in ids, numbers, times and addresses share one."""
    redrives: int
    """The number of retries after it had failed or was killed."""
    redriven_at: WrittenTime | None
    """The time of the last of these retries."""
    replay_of: str | None
    """The id of the ended job whose work it does again. Null: it is no replay."""
    traceparent: str | None
    """The trace context of the request that created it. Null: the request had no valid one."""
    expires_at: WrittenTime | None
    """The expiry: a job that has not started by this instant is skipped."""
    key: str | None
    """The name that you chose for it."""
    group_id: str | None
    """The group that it belongs to, or that it is a call-back of."""
    group_member: int | None
    """Its number in that group, from 0. Null: it is a call-back, or has no group."""
    puts: int
    """The number of puts by its key that made it, and changed it before its start."""
    task_id: str | None
    """The task, if the job is a run of one."""
    task_name: str | None
    """The present name of that task. Null for any other job, and if the task is gone."""
    task_key: str | None
    """The name that you chose for that task."""
    generation: int | None
    """The generation of the task when this run was planned."""
    nominal_at: WrittenTime | None
    """Its time by the schedule, before jitter; of a replay that of its original. Null for a run that you requested with `/run`."""
    overlap: Overlap | None
    misfire: Misfire | None

    @classmethod
    def of(cls, job: Job, now: int, beside: "Beside | None" = None) -> Json:
        """Every field of a job as of `now`."""
        beside = beside or Beside()
        origin = job.origin
        ended = None if lifecycle.is_open(job) else ended_at(job)
        started = _started_at(job, now)
        return cls.of_spec(
            job,
            status=lifecycle.status(job, now),
            shard_id=None if job.slot is None else int(job.slot.partition("#")[2]),
            picked_at=job.claim.at if job.claim else job.picked_at,
            started_at=started,
            ended_at=ended,
            duration_ms=None if ended is None or started is None else max(0, ended - started),
            start_delay_ms=lifecycle.delay(job, now),
            late=lifecycle.is_late(job, now),
            calls=calls(job.spec),
            after=[AfterShape.of(each) for each in job.after],
            reason=_reason(job, beside.seen, now),
            lease_until=callback_lease.ends_at(job) if lifecycle.waits(job) else None,
            awaited=AwaitedShape.of(job),
            progress=optional(ProgressShape.from_record, job.progress),
            attempts=[AttemptShape.of(number, attempt) for number, attempt in _with_outputs(job)],
            traceparent=None if job.trace is None else job.trace.partition(" ")[0],
            # A run with a misfire rule has no expiry: the same field holds the end of the rule's window.
            expires_at=job.start_by if origin is None or origin.misfire is None else None,
            key=None if origin is not None else job.spec.key,
            group_id=job.group,
            group_member=job.member,
            task_id=None if origin is None else origin.task,
            task_name=None if origin is None else beside.names.get(TaskKey(job.owner, origin.task)),
            generation=None if origin is None else origin.generation,
            nominal_at=job.nominal_at if origin is None else origin.nominal_at,
            overlap=None if origin is None else origin.overlap,
            misfire=None if origin is None else origin.misfire,
        )


def _started_at(job: Job, now: int) -> int | None:
    """A claimed job has started once its instant has passed; nothing is written at that moment."""
    if job.claim is None:
        return job.started_at
    return lifecycle.started_at(job) if lifecycle.has_started(job, now) else None


def _reason(job: Job, seen: Seen | None, now: int) -> str | None:
    reason = why_waits.reason(job, seen, now) or _burials(job)
    if lifecycle.is_open(job) or lifecycle.state(job) not in lifecycle.DEAD:
        return reason
    last = fingerprint.error(job).message
    return reason if reason is None or last in reason else f"{reason}: {shortened(last, LONGEST_ERROR)}"


def _burials(job: Job) -> str | None:
    """The reason of a job without another one, if its messages reached a dead-letter queue."""
    if not job.buried or not lifecycle.is_open(job):
        return None
    return f"no executor could start it: its messages reached the dead-letter queue {job.buried} times; it is enqueued again from its slot"


def _with_outputs(job: Job) -> Sequence[tuple[int, Attempt]]:
    """Its attempts with their numbers; the last one has its output too, which is the job's."""
    if not job.attempts:
        return ()
    *earlier, (number, last) = lifecycle.numbered_attempts(job)
    return (*earlier, (number, last if last.output else replace(last, output=job.output)))


class TextShape(Shape):
    """The output or the log of an attempt."""

    number: int
    """The number of the attempt."""
    text: str
    complete: bool
    """False: the text is longer than 1 MB, or the rest could not be stored."""

    @classmethod
    def of(cls, text: Text, number: int) -> Json:
        return cls.from_record(text, number=number)


class PutJobShape(JobShape):
    """A job, and what the request did."""

    outcome: Literal["created", "replaced", "kept", "extended", "throttled"]
    """`created`, `replaced`, `kept`, `extended`, or `throttled`: this job has won, and nothing was done."""
    follows: str | None
    """The job that had the key and continues beside this one."""

    @classmethod
    def of_put(cls, done: "Put", now: int) -> Json:
        return JobShape.of(done.job, now) | {"outcome": done.outcome, "follows": done.follows}


class PageShape(ListShape):
    items: list[JobShape]

    @classmethod
    def of(cls, page: Page, now: int, beside: Beside) -> Json:
        return cls.page([JobShape.of(job, now, beside) for job in page.jobs], page.cursor)


class AcceptedShape(Shape):
    """The new fields of an accepted job. GET returns all fields."""

    id: str
    status: Status
    scheduled_at: WrittenTime

    @classmethod
    def of(cls, job: Job, now: int) -> Json:
        return cls.from_record(job, status=lifecycle.status(job, now))
