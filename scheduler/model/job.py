"""The records everything else speaks about. All are immutable; every instant is an int of UTC milliseconds since the epoch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from scheduler.model.spec import JobSpec, Ordering


class Lane(StrEnum):
    """One class of queue. One lane down does not stop the others, and a retry never waits behind first attempts."""

    ONE_TIME = "one-time"
    RECURRING = "recurring"
    RETRY = "retry"  # its batches are of one: a job that kills its executor dies alone


class Status(StrEnum):
    """What a job is doing. Never stored: `lifecycle.status` derives it from the job's times."""

    SCHEDULED = "scheduled"  # waits for its time
    QUEUED = "queued"  # due, or handed out by its minute, and not started yet
    RUNNING = "running"  # an executor has claimed it and its instant has come
    SUCCEEDED = "succeeded"  # its target answered well
    FAILED = "failed"  # no attempt is left, or the error is permanent
    KILLED = "killed"  # its time-out passed and the work was stopped
    CANCELLED = "cancelled"  # a person or a program asked
    SKIPPED = "skipped"  # a rule decided that it should not run; `reason` says which


class Overlap(StrEnum):
    """What a run does when its instant comes and another run of its task has not ended."""

    SKIP = "skip"  # it is skipped
    QUEUE_ONE = "queue_one"  # it waits for the other to end; a third one is skipped
    ALLOW = "allow"  # both run
    CANCEL_RUNNING = "cancel_running"  # the other is cancelled, and it starts when that has ended


class Misfire(StrEnum):
    """What becomes of a run that could not start on time."""

    RUN_LATEST = "run_latest"  # it is skipped if the next one is due as well
    RUN_ALL = "run_all"  # it runs, after the one before it; of a long row only the last ones
    SKIP = "skip"  # it is skipped


class Outcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    KILLED = "killed"
    CRASHED = "crashed"  # its executor died; found by another one or by the recheck
    CANCELLED = "cancelled"  # a cancel was asked, and the work stopped


class JobKey(NamedTuple):
    """What names a job everywhere: its owner and its id."""

    owner: str
    id: str


class TaskKey(NamedTuple):
    """What names a task everywhere: its owner and its id."""

    owner: str
    id: str


class OrderKey(NamedTuple):
    """What names a line of jobs: their owner and their ordering key."""

    owner: str
    key: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What a job of a task carries of it: enough to decide at its instant without knowing the schedule."""

    task: str  # the task's id
    generation: int  # the task's when this was planned: every edit, pause and resume raises it
    nominal_at: int | None = None  # by the schedule, before jitter; None: asked for by hand
    overlap: Overlap = Overlap.ALLOW
    misfire: Misfire | None = None  # None: it has no misfire rule (by hand, or not recurring)
    # Of misfire run_all only, so that late runs start in order:
    late_from: int | None = None  # a run that starts no sooner than this first waits for the one before it to end
    previous_at: int | None = None  # when the run before it was scheduled, which names it: `ids.run`
    next_at: int | None = None  # and the run after it
    notify: bool = False  # its task had receivers when this was planned: project tells of its end


@dataclass(frozen=True, slots=True)
class TaskHead:
    """What must be known of a task before one of its runs starts."""

    generation: int
    inactive_at: int | None = None
    inactive_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """The item that all runs of a task agree on: which of them runs (it holds until its job is final), and which one waits for it."""

    task: TaskKey
    job: str  # id of the job that runs
    waiting: str | None = None
    version: int = 1  # rises with every change, and is what every change is conditional on


@dataclass(frozen=True, slots=True)
class Marker:
    """A job's place in the line of its ordering key."""

    order: OrderKey
    job: str
    scheduled_at: int
    created_at: int
    life: int = 0  # the job's redrives: what is taken away at the end of one life is not the marker of the next one
    at: int = field(default=0, compare=False)  # when it was put: only a young one may be there before its job

    @property
    def key(self) -> JobKey:
        return JobKey(self.order.owner, self.job)

    @property
    def position(self) -> tuple[int, int, str, int]:
        return self.scheduled_at, self.created_at, self.job, self.life


@dataclass(frozen=True, slots=True)
class Turn:
    """The item that all jobs of an ordering key agree on: which of them was the last one let through."""

    order: OrderKey
    job: str
    at: int
    version: int = 1  # rises with every change, and is what every change is conditional on

    @property
    def key(self) -> JobKey:
        return JobKey(self.order.owner, self.job)


@dataclass(frozen=True, slots=True)
class Line:
    """The head of the line of an ordering key: whose turn it is, and the first markers."""

    turn: Turn | None = None
    markers: tuple[Marker, ...] = ()
    more: bool = False  # there are further markers


@dataclass(frozen=True, slots=True)
class Receipt:
    """What is kept of a request that came with an idempotency key: enough to do it again to the letter, and to tell another from it."""

    owner: str
    key: str  # as the client chose it
    fingerprint: str  # of what was asked: route and body
    at: int  # when it was first asked: the `now` of its job or task
    random: int  # the random part of its job's or task's id


@dataclass(frozen=True, slots=True)
class LaneState:
    """Whether a lane is paused, and since when; or when it was last resumed."""

    lane: "Lane"
    paused_at: int | None = None
    resumed_at: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """An executor's mark on a running job."""

    message_id: str  # the SQS message that brought the job
    nonce: str  # unique per delivery: message id, request id and receive count
    at: int
    alone: bool  # no other job was in the batch: a crash now is this job's own
    lease_until: int | None = None  # its target took the job over and will report by call-back: who is not heard of until then is dead


class RequeueCause(StrEnum):
    """Why a claimed job went back to its queue before it started."""

    PAUSED = "paused"  # its lane is paused
    MISFIRE = "misfire"  # the late run before it has not ended
    OVERLAP = "overlap"  # another run of its task has not ended
    ORDERING = "ordering"  # another job of its ordering key is first
    BREAKER = "breaker"  # its target does not answer
    LIMIT = "limit"  # its target is at its limit
    REFUSED = "refused"  # its gates could not be asked: a table refused


class FailureKind(StrEnum):
    """What the failure of an attempt means for the next one: `retry.decide`."""

    RETRYABLE = "retryable"
    PERMANENT = "permanent"
    THROTTLED = "throttled"  # its target wants no attempt now
    TIMEOUT = "timeout"
    CRASHED = "crashed"  # its executor died, or its worker was silent for its lease
    CANCELLED = "cancelled"  # a cancel was requested, and its work did not stop in time
    BURIED = "buried"  # of no attempt: no executor could start it


_FAILURE_KINDS = {kind.value: kind for kind in FailureKind}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt did not succeed."""

    kind: FailureKind
    message: str
    retry_after_ms: int | None = None  # how long its target asked to be left alone

    @classmethod
    def read(cls, kind: str, message: str, retry_after_ms: int | None = None) -> "Failure":
        """As it was stored or sent, perhaps by another version: a kind that this version does not have becomes retryable, and its
        name a part of the message."""
        known = _FAILURE_KINDS.get(kind)
        if known is None:
            return cls(FailureKind.RETRYABLE, f"{kind}: {message}", retry_after_ms)
        return cls(known, message, retry_after_ms)


class Kept(StrEnum):
    """Where the rest is of an output and a log that are more than what their job's item holds of them."""

    STORED = "stored"  # the whole is among the `Outputs`
    CUT = "cut"  # nowhere: it could not be stored, or was not worth it once another attempt had begun


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a worker says it is."""

    fraction: float | None = None  # 0 to 1
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a job, kept with it (the last `lifecycle.KEPT_ATTEMPTS`)."""

    fence: int
    picked_at: int
    started_at: int | None  # None: the executor died before the instant
    ended_at: int
    outcome: Outcome
    failure: Failure | None = None
    log: str | None = None  # what was written while it ran, or its end
    output: str | None = None  # the beginning of its output or answer; of the last one the job itself has it
    kept: Kept | None = None  # None: nothing was left out


def shard_key(owner: str, job_id: str, ordering: Ordering | None) -> str:
    """See `Job.shard_key`."""
    return job_id if ordering is None else f"{owner}#{ordering.key}"


@dataclass(frozen=True, slots=True)
class Job:
    """One dated run.

    A job is open while it has a `slot` (the minute and shard at which the scheduler must look at it next) and running
    while it also has a `claim`. `fence` rises with every hand-back and never falls; `charged` counts the attempts that
    used up one of `max_attempts`.
    """

    owner: str
    id: str
    spec: JobSpec
    scheduled_at: int  # when its owner wants it; never changed by the scheduler
    due_at: int  # when its next attempt may start
    created_at: int
    slot: str | None
    lane: Lane = Lane.ONE_TIME
    origin: Origin | None = None  # the task it is a run of
    start_by: int | None = None  # it is not started at this instant or later: its misfire rule, else the expiry its owner set
    fence: int = 1
    charged: int = 0
    throttled: int = 0  # attempts that charged nothing because the target wanted none now
    claim: Claim | None = None
    looks: int = 0  # rechecks that found it not started since its last hand-back
    crashes: int = 0  # charged crashes: alone in its batch
    buried: int = 0  # times its message reached a dead-letter queue unstarted
    picked_at: int | None = None
    started_at: int | None = None
    completed_at: int | None = None
    failed_at: int | None = None
    killed_at: int | None = None
    cancelled_at: int | None = None
    skipped_at: int | None = None
    cancel_requested_at: int | None = None
    delay_ms: int | None = None  # first start minus `scheduled_at`
    heartbeat_at: int | None = None  # the last one of this attempt
    progress: Progress | None = None  # as last told in this attempt
    reason: str | None = None
    requeue_cause: RequeueCause | None = None  # recorded where a decision reads it: only PAUSED, for the misfire rule
    output: str | None = None
    response: Mapping[str, Any] | None = None
    attempts: tuple[Attempt, ...] = ()
    reserved_at: int | None = None  # its ticket in the line of a limited target; counts as long as it is its `due_at`
    fingerprint: str | None = None  # of the error of a failed or killed job: `fingerprint.of_job`
    redrives: int = 0  # times it was given another life after it had failed or was killed
    redriven_at: int | None = None  # the last time
    expires: int | None = None  # epoch seconds (DynamoDB TTL); a final transition writes it, and a redrive takes it away
    key: JobKey = field(init=False, repr=False, compare=False)  # of `owner` and `id`: a job in hand is asked for it dozens of times

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", JobKey(self.owner, self.id))

    @property
    def shard_key(self) -> str:
        """What its slot's shard is chosen by: jobs of one ordering key share it, so that one dispatcher hands them out in order."""
        return shard_key(self.owner, self.id, self.spec.ordering)

    def log_context(self) -> dict[str, Any]:
        """The fields that name this job in a log line."""
        named = {"job_id": self.id, "user_id": self.owner, "fence": self.fence, "lane": str(self.lane), "type": self.spec.type}
        return named if self.origin is None else named | {"task_id": self.origin.task}


class Message(NamedTuple):
    """What travels through a lane: enough to claim the job, nothing of its content."""

    key: JobKey
    fence: int
    lane: Lane
    due_at: int
    sent_at: int = 0  # by the sender's clock; 0 = not sent yet. Feeds the lead back
    not_before: int = 0  # delivery may be delayed to this instant (whole seconds); 0 = at once
    version: int = 1


class Delivery(NamedTuple):
    """One message as an executor or bury received it."""

    message: Message
    message_id: str
    receipt: str
    receive_count: int


class DueEntry(NamedTuple):
    """What the due index projects of an open job: all that dispatch needs, so that it never reads a job."""

    key: JobKey
    slot: str
    due_at: int
    lane: Lane
    fence: int
    mark: str  # names the job under this fence, what is sent once: thousands of entries are looked up by it twice a second

    @classmethod
    def of(cls, key: JobKey, slot: str, due_at: int, lane: Lane, fence: int) -> "DueEntry":
        return cls(key, slot, due_at, lane, fence, f"{key.owner}/{key.id}#{fence}")


@dataclass(frozen=True, slots=True)
class Letter:
    """What the failures index tells of a dead letter, a job that failed or was killed: all it takes to count and to choose."""

    key: JobKey
    position: str  # `ids.position`
    type: str
    task: str | None
    fingerprint: str | None
    at: int  # when it ended


class UnitKey(NamedTuple):
    """A unit of dispatch: one minute and its `part`-th range of shards."""

    minute: str  # "2026-11-20T10:01"
    part: int


@dataclass(frozen=True, slots=True)
class Unit:
    """A ledger entry: a range of slots of one minute that one dispatcher hands out. Open until its slots are proved empty.

    `epoch` fences every change of it. `handed_out_at` is None while dispatch has work left here.
    """

    key: UnitKey
    first_shard: int
    last_shard: int  # inclusive
    epoch: int = 0
    lease_until: int = 0
    progress: int = 0  # every job due before this instant has been published
    handed_out_at: int | None = None
    opened_at: int = 0

    @property
    def slots(self) -> list[str]:
        return [f"{self.key.minute}#{shard:02d}" for shard in range(self.first_shard, self.last_shard + 1)]


@dataclass(frozen=True, slots=True)
class Look:
    """A later look at a closed unit, against an index that lagged longer than the canary could prove."""

    unit: Unit
    number: int
    at: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far the ledger is: every minute before `minute` has been opened; `shards` only grows."""

    minute: str
    shards: int
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What a target says of one attempt: an output and a response when it went well, else a failure."""

    output: str | None = None
    response: Mapping[str, Any] | None = None
    failure: Failure | None = None
    log: str | None = None  # what it or its executor wrote meanwhile
    kept: Kept | None = None  # of output, answer and log; None: nothing was left out
    began_at: int | None = None  # if another machine did the work: when, by its clock


@dataclass(frozen=True, slots=True)
class Page:
    """A page of jobs and the cursor of the next one (None at the end)."""

    jobs: list[Job] = field(default_factory=list)
    cursor: str | None = None


class Finished(NamedTuple):
    """A job's work that came back: when it really started and ended (by the executor's clock), and what it said."""

    job: Job
    started_at: int
    ended_at: int
    result: Result
