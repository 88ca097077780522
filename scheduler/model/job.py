"""The records of jobs and of items that refer to jobs. All are immutable; every instant is an int of UTC milliseconds since the epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from scheduler.model import slots
from scheduler.model.after import Predecessor
from scheduler.model.notifications import Notifications
from scheduler.model.spec import JobSpec


class Lane(StrEnum):
    """A class of queue with executors of its own. A lane that fails stops no other, and a retry never waits behind first attempts."""

    ONE_TIME = "one-time"
    RECURRING = "recurring"
    RETRY = "retry"  # each batch has one message: a job that kills its executor affects no other job


class Status(StrEnum):
    """The status of a job. It is never stored: `lifecycle.status` derives it from the job's times."""

    SCHEDULED = "scheduled"  # it waits for its time
    QUEUED = "queued"  # it is due, or claimed ahead of its instant, and has not started yet
    RUNNING = "running"  # an executor has claimed it and its instant has come
    SUCCEEDED = "succeeded"  # its target reported success
    FAILED = "failed"  # no attempt is left, or the error is permanent
    KILLED = "killed"  # its time-out passed and the work was stopped
    CANCELLED = "cancelled"  # a user or a program requested it
    SKIPPED = "skipped"  # a rule decided against the run; `reason` names the rule


class Overlap(StrEnum):
    """The rule for a run whose instant comes while another run of its task has not ended."""

    SKIP = "skip"  # the run is skipped
    QUEUE_ONE = "queue_one"  # the run waits until the other one has ended; a third one is skipped
    ALLOW = "allow"  # both run
    CANCEL_RUNNING = "cancel_running"  # the other one is cancelled, and the run starts when that has ended


class Misfire(StrEnum):
    """The rule for a run that could not start on time."""

    RUN_LATEST = "run_latest"  # the run is skipped if the next one is due as well
    RUN_ALL = "run_all"  # the run starts after the one before it; of many late runs only the last `max_catch_up` start
    SKIP = "skip"  # the run is skipped


class Outcome(StrEnum):
    """The end of an attempt."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    CRASHED = "crashed"  # its executor ended early, as another executor or reconciling found
    CANCELLED = "cancelled"  # a cancel was requested, and the work stopped


class JobKey(NamedTuple):
    """The key of a job: its owner and its id."""

    owner: str
    id: str


class TaskKey(NamedTuple):
    """The key of a task: its owner and its id."""

    owner: str
    id: str


class GroupKey(NamedTuple):
    """The key of a group: its owner and its id."""

    owner: str
    id: str


class OrderKey(NamedTuple):
    """The key of an ordering queue: the owner of its jobs and their ordering key."""

    owner: str
    key: str


class OwnKey(NamedTuple):
    """A key that an owner chose for a job or a task: `scheduler.model.own_keys`."""

    owner: str
    key: str


class KeyEntry(NamedTuple):
    """The entry of a key: it names the job that has the key, or had it last. The key is free once that job has ended or was deleted."""

    own: OwnKey
    job: str
    life: int = 0  # the number of redrives of the job: a job that lives again has its key again, for any request that read it as dead

    @property
    def job_key(self) -> JobKey:
        return JobKey(self.own.owner, self.job)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The run info: the part of a task that its run carries, so that an executor can decide at the instant without the schedule."""

    task: str  # the task's id
    generation: int  # of the task when the run was planned: every edit, pause and resume raises it
    nominal_at: int | None = None  # the time by the schedule, before jitter; None: a manual run
    overlap: Overlap = Overlap.ALLOW
    misfire: Misfire | None = None  # None: it has no misfire rule (a manual run, or a run of a task that does not recur)
    # Of misfire run_all only, so that late runs start in order:
    late_from: int | None = None  # a run that starts at this instant or later waits until the run before it has ended
    previous_at: int | None = None  # the scheduled time of the run before it; its id follows from that: `ids.run`
    next_at: int | None = None  # the scheduled time of the run after it
    notify: bool = False  # whether its task had receivers when it was planned: project then notifies them of its end
    watched: bool = False  # whether its task had alerts, too: its start and each end of it may then end an incident


@dataclass(frozen=True, slots=True)
class TaskHead:
    """The part of a task that an executor reads before it starts one of its runs."""

    generation: int
    inactive_at: int | None = None
    inactive_reason: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class RunLock:
    """The run lock of a task: the item that names the run that may run, until its job is final, and the run that waits for it."""

    task: TaskKey
    job: str  # the id of the job that has the lock
    waiting: str | None = None  # the id of the job that waits for it
    version: int = 1  # rises with every change; every change is conditional on it


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A job's entry in the ordering queue of its key."""

    order: OrderKey
    job: str
    scheduled_at: int
    created_at: int
    life: int = 0  # the number of the job's redrives: removing the entry of one life does not remove that of the next one
    at: int = field(default=0, compare=False)  # when it was written: only a young entry may exist before its job

    @property
    def key(self) -> JobKey:
        return JobKey(self.order.owner, self.job)

    @property
    def position(self) -> tuple[int, int, str, int]:
        """The sort key of the entry in its queue."""
        return self.scheduled_at, self.created_at, self.job, self.life


@dataclass(frozen=True, slots=True)
class QueueHead:
    """The head of an ordering queue: the item that names the last job of the key that was let through."""

    order: OrderKey
    job: str
    at: int  # when it was let through
    version: int = 1  # rises with every change; every change is conditional on it

    @property
    def key(self) -> JobKey:
        return JobKey(self.order.owner, self.job)


@dataclass(frozen=True, slots=True)
class OrderingQueue:
    """The beginning of an ordering queue: its head and its first entries, in order."""

    head: QueueHead | None = None
    entries: tuple[QueueEntry, ...] = ()
    more: bool = False  # whether there are further entries


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of a request with an idempotency key: enough to repeat it exactly, and to refuse a different one with the same key."""

    owner: str
    key: str  # as the client chose it
    fingerprint: str  # of the request's route and body
    at: int  # when it first arrived: the `now` of its job or task
    random: int  # the random part of its job's or task's id


@dataclass(frozen=True, slots=True)
class LaneState:
    """The pause of a lane, with its time and reason, or the time of its last resume."""

    lane: "Lane"
    paused_at: int | None = None  # None: it is not paused
    resumed_at: int | None = None
    reason: str | None = None
    paused_by: str | None = None  # the id of the user who paused it, or gave the present reason; None: the scheduler itself
    paused_by_name: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """An executor's claim on a job, with the delivery of the message under which the job runs."""

    message_id: str  # of the SQS message that brought the job
    nonce: str  # unique per delivery: message id, request id and receive count
    at: int  # when the job was claimed
    alone: bool  # no other job was in the batch: a crash of the executor is the fault of this job
    lease_until: int | None = None  # the end of the lease, if the job waits for its call-back
    revocable: bool = False  # the executor has yet to fix the start of the job if it has a key: until then its owner may change it


@dataclass(frozen=True, slots=True)
class Awaited:
    """Work that a service of AWS does for a job until its end, such as a container: no executor works meanwhile.

    It is stored before the start. An attempt after one whose executor ended too early to record the start repeats it, so that nothing
    starts twice.
    """

    fence: int  # of the attempt that started it first; the client token of the start follows from it
    request: str | None = None  # the exact request of the start, as JSON; None: its service does not compare the requests of a token
    id: str | None = None  # the ARN of what was started; None: not known yet
    start_by: int | None = None  # it is stopped unless it has begun to run by this instant (ms); None: it has begun, or may wait
    stopping: str | None = None  # the reason for which its stop was requested
    facts: Mapping[str, Any] = field(default_factory=dict)  # the data with which its target type judges and shows its end


class RequeueCause(StrEnum):
    """The cause of a requeue: a claimed job went back to its lane before it started."""

    PAUSED = "paused"  # its lane is paused, or its owner is disabled
    MISFIRE = "misfire"  # the late run before it has not ended
    OVERLAP = "overlap"  # another run of its task has not ended
    ORDERING = "ordering"  # another job of its ordering key is first
    BREAKER = "breaker"  # the breaker of its target is open
    LIMIT = "limit"  # its target is at its limit
    REFUSED = "refused"  # its gates could not be checked: a table refused the read or write
    CROWDED = "crowded"  # its executor is full
    AFTER = "after"  # a job that it waits for has not ended
    SHARE = "share"  # the long jobs of its owner keep as many executors of the lane busy as one user may


class FailureKind(StrEnum):
    """The kind of a failure, by which `retry.decide` chooses what follows."""

    RETRYABLE = "retryable"
    PERMANENT = "permanent"
    THROTTLED = "throttled"  # the target accepts no attempt for now
    TIMEOUT = "timeout"
    CRASHED = "crashed"  # the executor died, or the worker sent no heartbeat within its lease
    CANCELLED = "cancelled"  # a cancel was requested, and the work did not stop in time
    BURIED = "buried"  # there was no attempt: no executor could start the job
    REFUSED = "refused"  # the executor stopped the work, since the queue refused to renew its lease; or it does not know the type


_FAILURE_KINDS = {kind.value: kind for kind in FailureKind}


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why an attempt did not succeed. Target types may give the kind as a text. Raises ValueError for an unknown one."""

    kind: FailureKind
    message: str
    retry_after_ms: int | None = None  # the wait before the next attempt that the target requested

    def __post_init__(self) -> None:
        if not isinstance(self.kind, FailureKind):
            known = _FAILURE_KINDS.get(self.kind)
            if known is None:
                raise ValueError(f"{self.kind!r} is no kind of a failure; use one of {', '.join(_FAILURE_KINDS)}")
            object.__setattr__(self, "kind", known)

    @classmethod
    def read(cls, kind: str, message: str, retry_after_ms: int | None = None) -> "Failure":
        """Read a failure that was stored or sent, perhaps by another version of the product.

        A kind that this version does not know becomes `RETRYABLE`; its name becomes a part of the message.
        """
        known = _FAILURE_KINDS.get(kind)
        if known is None:
            return cls(FailureKind.RETRYABLE, f"{kind}: {message}", retry_after_ms)
        return cls(known, message, retry_after_ms)


class Preview(StrEnum):
    """The place of the full output and log, if the job's item has only previews of them."""

    STORED = "stored"  # the store of `Outputs` has both
    CUT = "cut"  # nowhere: they could not be stored, or were cut when another attempt began


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress that a worker reports."""

    fraction: float | None = None  # 0 to 1
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a job. The job's item keeps the last `lifecycle.RETAINED_ATTEMPTS`."""

    fence: int
    picked_at: int  # when an executor claimed the job
    started_at: int | None  # None: the executor ended before the instant
    ended_at: int
    outcome: Outcome
    failure: Failure | None = None
    log: str | None = None  # the log that was written while it ran, or the end of it
    output: str | None = None  # the beginning of its output or response; None for the last attempt, whose output is the job's
    preview: Preview | None = None  # None: output and log are complete


@dataclass(frozen=True)  # without slots: `changed` copies its dictionary
class Job:
    """One run at one instant.

    A job is open while it has a `slot` (the minute and shard in which the scheduler checks it next), and running while it also
    has a `claim`. `fence` rises whenever the job goes back to its lane (retry, requeue, redrive), and never falls. `charged` counts
    the attempts that used up one of `max_attempts`.
    """

    owner: str
    id: str
    spec: JobSpec
    scheduled_at: int  # the start that its owner requested; the scheduler never changes it
    due_at: int  # when its next attempt may start
    created_at: int
    slot: str | None
    lane: Lane = Lane.ONE_TIME
    origin: RunInfo | None = None  # the task it is a run of
    group: str | None = None  # the id of the group that it is a member of, or a call-back of
    member: int | None = None  # its number in its group; None: it is a call-back of the group, or has no group
    notifications: Notifications | None = None  # of a one-time job; the receivers of a run are those of its task
    start_by: int | None = None  # the start deadline (exclusive): by its misfire rule, else the expiry that its owner set
    fence: int = 1
    charged: int = 0
    throttled: int = 0  # failed attempts that used up none of `max_attempts`: `lifecycle.UNCHARGED`
    claim: Claim | None = None
    awaited: Awaited | None = None  # its work in AWS, or that of its last attempt
    looks: int = 0  # how often reconciling found it not started under its present fence
    crashes: int = 0  # crashes that used up an attempt: it was alone in its batch
    buried: int = 0  # how often its message reached a dead-letter queue under its present fence, unstarted
    picked_at: int | None = None  # when the last attempt was claimed
    started_at: int | None = None
    completed_at: int | None = None
    failed_at: int | None = None
    killed_at: int | None = None
    cancelled_at: int | None = None
    skipped_at: int | None = None
    cancel_requested_at: int | None = None
    delay_ms: int | None = None  # first start minus `scheduled_at`
    heartbeat_at: int | None = None  # the last heartbeat of this attempt
    progress: Progress | None = None  # the last one that this attempt's worker reported
    reason: str | None = None  # the reason why it waits, or why it ended
    requeue_cause: RequeueCause | None = None  # recorded where a decision or a read needs it: PAUSED, MISFIRE, CROWDED, BREAKER
    output: str | None = None
    response: Mapping[str, Any] | None = None
    attempts: tuple[Attempt, ...] = ()
    dropped: int = 0  # the number of attempts that its history no longer has
    released_at: int | None = None  # the start that its limited target has assigned to it under its present fence
    fingerprint: str | None = None  # of the error of a failed or killed job: `fingerprint.of_job`
    redrives: int = 0  # how often it was scheduled again after it had failed or was killed
    redriven_at: int | None = None  # the last time
    changed_at: int | None = None  # the last time that a user changed its time, its content or its rules
    replay_of: str | None = None  # the id of the ended job whose work it does again: `scheduler.jobs.replay`
    nominal_at: int | None = None  # of a replay: the time for which the work of the first of all originals was
    trace: str | None = None  # the trace context of the request that created it: `model.trace`
    links_to: str | None = None  # of a replay: the traceparent of the original's last span, if the stage exports spans
    put_by: str | None = None  # the request that made it what it is by its key: a repeat of that request changes nothing
    puts: int = 0  # how many puts by its key made it, and changed it before its start
    redriven_by: str | None = None  # the request that did it: one of two simultaneous requests recognizes its own write by it
    after: tuple[Predecessor, ...] = ()  # the jobs that it waits for
    followed: int | None = None  # another job waits for its end: after that, its record is kept until this instant (ms) at least
    expires: int | None = None  # epoch seconds (DynamoDB TTL); a final transition writes it, and a redrive removes it
    key: JobKey = field(init=False, repr=False, compare=False)  # stored, since an executor reads the key of a job dozens of times

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", JobKey(self.owner, self.id))

    @property
    def own_key(self) -> OwnKey | None:
        """The key that its owner chose for it; None for a run, whose specification has the key of its task."""
        return None if self.spec.key is None or self.origin is not None else OwnKey(self.owner, self.spec.key)

    @property
    def group_key(self) -> GroupKey | None:
        """The key of the group that it is a member or a call-back of."""
        return None if self.group is None else GroupKey(self.owner, self.group)

    @property
    def task_key(self) -> str | None:
        """The key that its owner chose for the task it is a run of; None for any other job."""
        return None if self.origin is None else self.spec.key

    def log_context(self) -> dict[str, Any]:
        """The fields that identify this job in a log line."""
        named = {"job_id": self.id, "user_id": self.owner, "fence": self.fence, "lane": str(self.lane), "type": self.spec.type}
        return named if self.origin is None else named | {"task_id": self.origin.task}


def changed(job: Job, /, **values: Any) -> Job:
    """Return the job with other values, never of `owner` or `id`. Raises TypeError if it has no such field.

    Does what `dataclasses.replace` does, in a tenth of its time (decision 34): each event of a job makes a copy.
    """
    fields = job.__dict__ | values
    if len(fields) > len(job.__dict__):
        raise TypeError(f"a job has no {', '.join(sorted(values.keys() - job.__dict__.keys()))}")
    copy = object.__new__(Job)
    object.__setattr__(copy, "__dict__", fields)
    return copy


_BLANK = Job("", "", JobSpec("", {}), 0, 0, 0, None)


def new_job(*, owner: str, id: str, spec: JobSpec, scheduled_at: int, due_at: int, created_at: int, slot: str, **others: Any) -> Job:
    """Return a new job, as `Job` does, in a third of its time. `others`: further fields. Raises TypeError if a job has no such field."""
    times = {"scheduled_at": scheduled_at, "due_at": due_at, "created_at": created_at}
    return changed(_BLANK, owner=owner, id=id, key=JobKey(owner, id), spec=spec, slot=slot, **times, **others)


class Packed(NamedTuple):
    """A job that travels in the message of another one."""

    key: JobKey
    fence: int
    due_at: int


class Message(NamedTuple):
    """A message in a lane: enough to claim its jobs, without their content. It names one job, and the ones packed with it."""

    key: JobKey
    fence: int
    lane: Lane
    due_at: int
    sent_at: int = 0  # by the sender's clock; 0: not sent yet. The measured latency, and with it the lead, follow from it
    not_before: int = 0  # delivery may be delayed to this instant (whole seconds), or the executor hides it until then; 0: neither
    version: int = 1
    more: tuple[Packed, ...] = ()  # of the same lane, due soon after the first

    @classmethod
    def of(cls, job: Job, now: int, after: int = 0) -> "Message":
        """The message of a job, sent at `now`: delayed to just before its due time, and at least to `after` (ms)."""
        early = max(slots.not_before(job.due_at), after)
        return cls(job.key, job.fence, job.lane, job.due_at, sent_at=now, not_before=early if early > now else 0)

    def singles(self) -> list["Message"]:
        """The message of each job on its own."""
        if not self.more:
            return [self]
        rest = (self.sent_at, self.not_before, self.version)
        return [self._replace(more=()), *[Message(each.key, each.fence, self.lane, each.due_at, *rest) for each in self.more]]


class Delivery(NamedTuple):
    """One message as an executor, or the function of the dead-letter queues, received it; or one job of it, after `singles`."""

    message: Message
    message_id: str
    receipt: str
    receive_count: int
    jobs: int = 1  # the number of jobs in the message as received

    def singles(self) -> list["Delivery"]:
        """The delivery of each job of the message."""
        if not self.message.more:
            return [self]
        jobs = 1 + len(self.message.more)
        return [Delivery(each, self.message_id, self.receipt, self.receive_count, jobs) for each in self.message.singles()]


CANARY_OWNER = "punctual"  # of the job that the scheduler sends itself every two minutes, to measure its delay


class DueEntry(NamedTuple):
    """The entry of an open job in the due index: all fields that dispatch needs, so that it never reads the job itself."""

    key: JobKey
    slot: str
    due_at: int
    lane: Lane
    fence: int
    mark: str  # names the job under this fence, which is sent once. Stored: dispatch looks up thousands of entries twice a second

    @classmethod
    def of(cls, key: JobKey, slot: str, due_at: int, lane: Lane, fence: int) -> "DueEntry":
        return cls(key, slot, due_at, lane, fence, f"{key.owner}/{key.id}#{fence}")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """The entry of a dead letter, a job that failed or was killed, in the failures index: enough to count and to filter."""

    key: JobKey
    position: str  # `ids.queue_position`
    type: str
    task: str | None
    fingerprint: str | None
    at: int  # when it ended


class UnitKey(NamedTuple):
    """The key of a unit of dispatch: a minute and the number of a range of its shards."""

    minute: str  # as in "2026-11-20T10:01"
    part: int  # the number of the shard range, from 0


@dataclass(frozen=True, slots=True)
class Unit:
    """A ledger entry: a range of slots of one minute, whose jobs one dispatcher publishes. It is open until its slots are proved empty.

    `epoch` fences every change of it. `handed_out_at` is None while dispatch has jobs left to publish. One message of the work queue
    drives the unit from step to step: it is hidden until `next_at`.
    """

    key: UnitKey
    first_shard: int
    last_shard: int  # inclusive
    epoch: int = 0
    lease_until: int = 0
    progress: int = 0  # every job due before this instant has been published
    handed_out_at: int | None = None
    opened_at: int = 0
    next_at: int = 0  # when its next step is due
    resting: int = 0  # when only jobs of paused lanes were left to publish (ms); 0: there are others
    message_id: str = ""  # the message that drives it, from the moment at which that message first took its lease
    early: tuple[int, ...] = ()  # digests of the entries that were published long ahead: executors hide these messages

    @property
    def slots(self) -> list[str]:
        """Its slots, in the order of their shards."""
        return [f"{self.key.minute}#{shard:02d}" for shard in range(self.first_shard, self.last_shard + 1)]


@dataclass(frozen=True, slots=True)
class LaterCheck:
    """A later check of a closed unit, for the case that the index lagged longer than the canary could prove.

    `number` counts the checks of the unit from 0, see `scheduler.pipeline.leftover.LOOKS`.
    """

    unit: Unit
    number: int
    at: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """The state of the ledger: all minutes before `minute` have been opened. `shards` never shrinks."""

    minute: str
    shards: int
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one attempt: an output or a response on success, else a failure."""

    output: str | None = None
    response: Mapping[str, Any] | None = None
    failure: Failure | None = None
    log: str | None = None  # the log that the target type or its executor wrote during the attempt
    preview: Preview | None = None  # of output, response and log; None: they are complete
    began_at: int | None = None  # when the work began, by the clock of the machine that did it, if that was not the executor
    unstarted: bool = False  # the work did not begin, as `failure` describes: its executor requeues the job, and no attempt is recorded
    awaited: Awaited | None = None  # the work goes on in AWS, and the job runs until it ends: no output yet
    unclear: bool = False  # the work in AWS may have started nevertheless: the next attempt repeats the start with its token


@dataclass(frozen=True, slots=True)
class Page:
    """A page of jobs and the cursor of the next one (None at the end)."""

    jobs: list[Job] = field(default_factory=list)
    cursor: str | None = None


class Finished(NamedTuple):
    """The finished work of a job: its result, and its real start and end by the executor's clock."""

    job: Job
    started_at: int
    ended_at: int
    result: Result
