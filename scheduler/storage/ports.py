"""What the services need from the world, in domain verbs.

`scheduler.storage.aws` and `scheduler.storage.memory` implement the ports; one contract suite in `tests/contract` runs over both.

An implementation may fail any call with `errors.Unavailable` (throttled, refused, unreachable): the effect may or may
not have happened. Nothing here reads the clock: instants are arguments, UTC milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from scheduler.model.job import (
    Cursor,
    DueEntry,
    Finished,
    Holder,
    Job,
    JobKey,
    Lane,
    LaneState,
    Letter,
    Line,
    Look,
    Marker,
    Message,
    OrderKey,
    Page,
    Receipt,
    TaskHead,
    TaskKey,
    Turn,
    Unit,
    UnitKey,
)

if TYPE_CHECKING:  # hot functions never load schedules
    from scheduler.accounts.access import Role
    from scheduler.accounts.audit import Entry as AuditEntry
    from scheduler.accounts.model import Account, Profile, Quotas, Stock, Tally
    from scheduler.admission.breaker import Breaker
    from scheduler.admission.limits import Usage, Use
    from scheduler.dead_letters.model import Redrive
    from scheduler.insight.counting import Counted, Entry
    from scheduler.model.attempt_output import Whole
    from scheduler.model.rules import Rules
    from scheduler.notify.messages import Message as NoticeMessage
    from scheduler.notify.policy import DeliveryRecord, NotificationState, Outbox
    from scheduler.sharing.fair_queue import Backlog
    from scheduler.targets.named_target import NamedTarget
    from scheduler.tasks.task import Task, TaskPage


class ClaimRequest(NamedTuple):
    """Claim the job of `key` under `fence`, if it is scheduled and due no later than `due_by`."""

    key: JobKey
    fence: int
    message_id: str
    nonce: str
    at: int
    alone: bool
    due_by: int


class ClaimResult(NamedTuple):
    """`job` is the claimed job when `won`, else the job as it stands (None: there is none)."""

    won: bool
    job: Job | None


class Written(Enum):
    """What became of one write of several. Compare it by identity: every member is true."""

    YES = auto()  # it is written, now or by an earlier try whose answer was lost
    NO = auto()  # its condition does not hold
    REFUSED = auto()  # the table refuses it for now; perhaps it is written

    @classmethod
    def of(cls, written: bool) -> Written:
        return cls.YES if written else cls.NO


class Guard(Enum):
    """What of the stored job must be as in `before` of a change."""

    FENCE = auto()  # its fence, its claim (by nonce, or none), and whether it is open
    SLOT = auto()  # its slot as well: of a change that only moves it, which must not undo another move
    LEASE = auto()  # its lease for its call-back as well: a worker whose heartbeat was answered has the lease that it was told


class Change(NamedTuple):
    """Replace `before` by `after`, a later state of the same job. What the change does not touch keeps its stored value."""

    before: Job
    after: Job
    guard: Guard = Guard.FENCE

    @classmethod
    def of_slot(cls, before: Job, after: Job) -> Change:
        """A change that only says when the scheduler looks at the job next: guarded by its slot if it takes another one."""
        return cls(before, after, Guard.FENCE if after.slot == before.slot else Guard.SLOT)


KEPT_RECEIPTS_MS = 86_400_000


class Jobs(Protocol):
    """The jobs table and its indexes."""

    def put(self, job: Job) -> bool:
        """Insert a new job. False if the id is taken (by an earlier try of the same call, say); nothing is overwritten."""

    def put_many(self, jobs: Sequence[Job]) -> list[Written]:
        """Insert each of these new, different jobs on its own; in order. NO: its id is taken. REFUSED: most likely it is not there."""

    def get(self, key: JobKey) -> Job | None:
        """The job as last written (strongly consistent)."""

    def get_many(self, keys: Sequence[JobKey]) -> dict[JobKey, Job]:
        """Those of the jobs that exist (strongly consistent)."""

    def claim(self, requests: Sequence[ClaimRequest]) -> list[ClaimResult | None]:
        """Claim each job on its own; one result per request, in order. None: refused for now, state unknown."""

    def change(self, changes: Sequence[Change]) -> list[Written]:
        """Apply each change on its own; in order."""

    def withdraw(self, keys: Sequence[JobKey]) -> list[Written]:
        """Delete each of these jobs that nobody has ever claimed (scheduled, fence 1, no claim); in order.

        YES: it is gone, or was not there. NO: it was claimed, or has ended.
        """

    def due(self, slot: str, *, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        """A page of one slot of the due index by due time, and the next page's cursor. Eventually consistent; no canaries."""

    def count(self, slot: str, lane: Lane, *, since: int, until: int) -> int:
        """How many jobs of the lane the due index shows in the slot with `since <= due_at <= until`. Eventually consistent."""

    def put_canary(self, unit: UnitKey, slot: str, at: int) -> None:
        """Put the canary of a unit into `slot`. Idempotent."""

    def canary_visible(self, unit: UnitKey, slot: str) -> bool:
        """Whether the due index shows the canary of the unit."""

    def drop_canary(self, unit: UnitKey) -> None:
        """Take the canary away. Idempotent."""

    def oldest_slot(self) -> str | None:
        """The earliest slot that the due index holds. Reads the whole (sparse) index: for an empty ledger only."""

    def history(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        """Jobs of one owner with `since <= scheduled_at < until`, by scheduled time, beyond the position `after`.

        A job's position (`ids.position`) is its id unless it was rescheduled. The page's cursor is the position of its last
        job, so that a reader who stops inside a page can make one.
        """

    def of_task(self, task: TaskKey, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        """The same of one task's jobs. Eventually consistent."""

    def failures(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int) -> Page:
        """Failed and killed jobs of one owner, newest first, at a cost that does not depend on the successes. Cursors as in `history`."""

    def count_ahead(self, owner: str, since: int) -> int:
        """How many open jobs of one owner are first scheduled for `since` or later. Reads them all; eventually consistent."""

    def letters(
        self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int
    ) -> tuple[list[Letter], str | None]:
        """What the failures index tells of them, at a small part of the cost; and the next page's cursor. Eventually consistent."""


class Ledger(Protocol):
    """The ledger of minutes: cursor, open units, later looks, measured latency of the lanes."""

    def cursor(self) -> Cursor | None: ...

    def advance(self, before: Cursor | None, after: Cursor) -> bool:
        """Move the cursor if it still has the epoch of `before` (or does not exist). `after.epoch` is one more."""

    def open_unit(self, unit: Unit) -> bool:
        """Add an open unit. False if it is open already."""

    def open_units(self) -> list[Unit]:
        """All open units, oldest minute first (strongly consistent)."""

    def unit(self, key: UnitKey) -> Unit | None: ...

    def change_unit(self, before: Unit, after: Unit) -> bool:
        """Replace an open unit if it still has the epoch of `before`; by another epoch (a take-over) only if its lease was not renewed."""

    def close_unit(self, unit: Unit, at: int, look: Look) -> bool:
        """Close a unit that still has this epoch; its first later look is stored with it, in one transaction."""

    def looks(self, by: int) -> list[Look]:
        """Later looks planned up to the instant `by`."""

    def replace_look(self, look: Look, following: Look | None) -> None:
        """A look is done: take it away and store the following one, if any. Does nothing if the look is gone."""

    def set_lane_state(self, state: LaneState) -> None:
        """Pause or resume a lane: the last writer wins."""

    def watched(self) -> Watched:
        """The states of the lanes that are or were paused, and the breakers that are not closed, in one read (strongly consistent)."""

    def set_breaker(self, before: Breaker | None, after: Breaker | None) -> bool:
        """Open a breaker (`before` None: there must be none), change it or close it (`after` None), if it has the version of `before`."""

    def plan_cursor(self) -> str | None:
        """The minute from which on the replenish index has to be looked at; None: plan never ran."""

    def set_plan_cursor(self, before: str | None, after: str) -> bool:
        """Move it if it still is `before`."""

    def report_latency(self, lane: Lane, reporter: str, p99_ms: int, at: int) -> None:
        """An executor's recent p99 from publish to claim. One item per lane and reporter bucket."""

    def latency(self, lane: Lane, since: int) -> int | None:
        """The largest p99 reported for the lane since the instant; None if there is none."""

    def report_backlog(self, backlog: Backlog) -> None:
        """What waits in one dispatcher for a lane; replaces what was reported of that unit and lane before."""

    def drop_backlog(self, unit: UnitKey, lane: Lane) -> None:
        """Nothing waits there any more. Idempotent."""

    def backlogs(self, lane: Lane, since: int) -> list[Backlog]:
        """What was reported of the lane since the instant (strongly consistent)."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What whoever works for a while looks at every second. Closed breakers and lanes never paused are not named."""

    lanes: dict[Lane, LaneState]
    breakers: dict[str, Breaker]


class Tasks(Protocol):
    """The tasks table: tasks, their replenish index, and the holder item of each whose runs must not overlap."""

    def heads(self, keys: Sequence[TaskKey]) -> dict[TaskKey, TaskHead]:
        """What runs must know of those tasks that exist (strongly consistent)."""

    def holders(self, keys: Sequence[TaskKey]) -> dict[TaskKey, Holder]:
        """Those of the holder items that exist (strongly consistent)."""

    def hold(self, changes: Sequence[tuple[Holder | None, Holder]]) -> list[Written]:
        """Replace each holder item if it still has the version of the first one (None: there is none yet); in order."""

    def store(self, before: Task | None, after: Task, runs: Sequence[Job], receipt: Receipt | None = None) -> bool:
        """In one transaction: replace the task `before` (None: there must be none) by `after`, insert the runs, keep the receipt.

        At most `task.STORED_WITH_IT` runs. False, and nothing is changed, if the stored task has another generation than `before`,
        the task or a run's id or the receipt's key is taken. True also if an earlier, lost answer had applied it.
        """

    def delete(self, task: Task) -> bool:
        """Delete the task if it still has this generation."""

    def move_on(self, before: Task, after: Task) -> bool:
        """Note that more runs are stored: replaces `planned_until`, `planned` and `replenish`.

        Holds if generation and `planned_until` still are those of `before`. True also if an earlier, lost answer had applied it.
        """

    def get(self, key: TaskKey) -> Task | None:
        """The task as last written (strongly consistent)."""

    def page(self, owner: str, *, after: str | None, limit: int) -> TaskPage:
        """Tasks of one owner, the newest first, beyond the task whose id is `after`. The page's cursor is the id of its last task."""

    def to_replenish(self, slot: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        """A page of one slot of the replenish index, and the next page's cursor. Eventually consistent."""

    def overdue(self, before: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        """A page of the tasks whose replenish slot lies before the minute `before`: a scan of the (small) index, for repair only."""


class Orders(Protocol):
    """The lines of ordering keys: a marker per open job, and whose turn it is. `scheduler.admission.ordering` says what they mean."""

    def enqueue(self, markers: Sequence[Marker]) -> list[Written]:
        """Put each of these different markers; in order. NO: it is there already, and stays as it is."""

    def lines(self, orders: Sequence[OrderKey], *, limit: int) -> dict[OrderKey, Line]:
        """The head of each line, at most `limit` markers by their positions (strongly consistent)."""

    def take_turns(self, changes: Sequence[tuple[Turn | None, Turn]]) -> list[Written]:
        """Replace the turns of different lines, each if it still has the version of the first one (None: there is none yet); in order."""

    def leave(self, markers: Sequence[Marker]) -> None:
        """Take these markers away. Idempotent."""


class Used(NamedTuple):
    """`usage`: as it stands after the write (None: refused)."""

    done: Written
    usage: Usage | None


class Targets(Protocol):
    """The registry of named targets, and what of their limits is in use."""

    def targets(self, names: Sequence[str]) -> dict[str, NamedTarget]:
        """Those of the targets that exist (strongly consistent)."""

    def usages(self, names: Sequence[str]) -> dict[str, Usage]:
        """Those of the usages that exist (strongly consistent)."""

    def use(self, uses: Sequence[Use]) -> list[Used]:
        """Make each change, of different targets, if it holds (see `limits.used`); in order.

        After a refusal it may have been made: who takes a place finds it then, who moved an end has moved it for nobody.
        """

    def all(self) -> list[NamedTarget]:
        """All of them, by name (strongly consistent)."""

    def put(self, before: NamedTarget | None, after: NamedTarget) -> bool:
        """Register a target (`before` None: the name must be free) or replace it, if it still has the version of `before`.

        True also if an earlier, lost answer had applied it.
        """

    def delete(self, target: NamedTarget) -> bool:
        """Delete it, if it still has this version, and what is known of its usage."""


class Receipts(Protocol):
    """Requests that came with an idempotency key, kept for `KEPT_RECEIPTS_MS`."""

    def keep(self, receipts: Sequence[Receipt], now: int) -> list[Receipt | None]:
        """Store each whose owner and key are not taken by a younger one; in order, the receipt that stands: it, or the earlier one.

        No two of them have the same owner and key. None: refused for now, most likely not there.
        """

    def find(self, owner: str, key: str, now: int) -> Receipt | None:
        """The receipt that stands (strongly consistent)."""


class Redrives(Protocol):
    """The records of redrives, kept for a while after they have ended."""

    def add(self, redrive: Redrive) -> None:
        """Store a new one. Adding it twice is as good as once."""

    def get(self, owner: str, id: str) -> Redrive | None:
        """The redrive as last written (strongly consistent)."""

    def running(self) -> list[Redrive]:
        """Those of all owners that have not ended (strongly consistent)."""

    def change(self, before: Redrive, after: Redrive) -> bool:
        """Replace it if it still has the version of `before`. False also if an earlier, lost answer had applied it."""


class Counters(Protocol):
    """Sums that are written from streams, each change counted once. What a row stands for: `scheduler.insight.counting`."""

    def add(self, shard: str, entries: Sequence[Entry]) -> None:
        """Add each entry that was not added before. Those of one shard come in the order of their sequences, and again from any of them on.

        Raises Unavailable: some of them may be added; all of them have to come again.
        """

    def read(self, partition: str, low: str, high: str) -> list[Counted]:
        """The rows with `low <= name < high`, by name. Eventually consistent."""

    def forget(self, partition: str, rows: Sequence[Counted]) -> None:
        """Take rows away whose time is over: nothing adds to them any more."""


class Notices(Protocol):
    """How tasks stand with their receivers, what was decided of which news, and how far each sending is. Kept for a while."""

    def read(self, task: TaskKey, id: str) -> tuple[NotificationState | None, Outbox | None]:
        """The notification state of a task, and what was decided of the news (or the end of a window) of that id (strongly consistent)."""

    def decide(self, before: NotificationState | None, after: NotificationState, id: str, outbox: Outbox | None, now: int) -> bool:
        """Replace the state and remember the outbox of `id`, both or neither; without an outbox only the state.

        False if the state has another version than `before` (None: there is none), or `id` was decided already. The version of
        `after` is not looked at: it is one more than that of `before`.
        """

    def delivery(self, task: TaskKey, id: str) -> DeliveryRecord | None:
        """How far a sending is (strongly consistent)."""

    def set_delivery(self, before: DeliveryRecord | None, after: DeliveryRecord, now: int) -> bool:
        """Replace it if it still has the version of `before` (None: there is none); its version is one more."""

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        """Queue all of these, the ends of windows delayed to their instants (at most 900 s). Raises Unavailable if any was refused."""


class Lanes(Protocol):
    """The queues, addressed directly or through the topic in front of them."""

    def send(self, messages: Sequence[Message], now: int) -> list[Message]:
        """Send each to its lane, delayed to its `not_before` (at most 900 s). Returns those that were refused."""

    def extend(self, lane: Lane, receipts: Sequence[str], seconds: int) -> set[str]:
        """Set the visibility of messages in hand to `seconds` from now. Returns the receipts for which it held."""

    def backlog(self, lane: Lane) -> int:
        """About how many messages wait in the lane (not counting those in flight or delayed)."""

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        """Publish all to the topic, whose filter picks the queue, on parallel connections. Returns those that were refused."""


class Functions(Protocol):
    """The scheduler's own functions: started without waiting for them, and kept ready by the pollers that call them."""

    def start_dispatch(self, unit: UnitKey) -> None:
        """Start a dispatcher for the unit."""

    def start_redrive(self) -> None:
        """Start a worker for the running redrives."""

    def pollers(self, lane: Lane) -> int:
        """How many pollers the lane keeps."""

    def keep_pollers(self, lane: Lane, count: int) -> None:
        """Keep `count` pollers of the lane from now on. Raises Unavailable."""


class Clock(Protocol):
    """The only source of time a service may wait on. In the simulation it is virtual."""

    def now(self) -> int:
        """UTC milliseconds of this machine."""

    def monotonic(self) -> int:
        """Milliseconds that never jump, for measuring leases."""

    def sleep_until(self, at: int) -> None:
        """Return at `at` by `now()` or just after, never before."""


class Pool(Protocol):
    """Where an executor's jobs run at once."""

    def start(self, job: Job) -> None:
        """Run the job's target now, beside the others, until its time-out. Its result comes out of `wait`."""

    def wait(self, until: int) -> list[Finished]:
        """Everything that has finished; waits for the first one, no longer than to the instant `until`."""

    def cancel(self, job: Job) -> None:
        """Ask one job's work to stop. Its result still comes out of `wait`, unless its target does not listen."""

    def kill(self, job: Job) -> None:
        """End the work of one job that did not stop, where that can be done. Its result does not count."""

    def stop(self) -> None:
        """End all running work, or ask it to stop where it cannot be ended: its result no longer counts."""


class Outputs(Protocol):
    """What attempts put out and logged beyond what their jobs' items hold; and the archive of jobs that have left their table."""

    def put(self, key: JobKey, fence: int, whole: Whole) -> None:
        """Store everything of one attempt, told by the fence it ran under. Twice is as good as once."""

    def get(self, key: JobKey, fence: int) -> Whole | None:
        """What was stored of that attempt; None if nothing was, or it has gone."""

    def archive(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Keep these records of jobs that have left their table; one that comes again is kept twice.

        Raises Unavailable: some of them may be kept, and all have to come again.
        """


class Secrets(Protocol):
    """The keys that sign the tokens of call-backs, and the secrets that jobs may use, each one's of its owner alone."""

    def keys(self, now: int, *, newest: bool = False) -> Sequence[bytes]:
        """Those that count, the one to sign with first; as read some minutes ago at most. Raises Unavailable.

        `newest`: read again, unless that was done just now.
        """

    def values(self, owner: str, name: str, now: int) -> Sequence[str]:
        """What the owner's secret of that name holds, and behind it what it held before it was last changed; as read a minute ago at most.

        Raises NotFound, Unavailable.
        """


class Users(Protocol):
    """What the scheduler itself keeps of users: weights, quotas and the like; and counts that many processes share, by name."""

    def weights(self, ids: Sequence[str]) -> dict[str, float]:
        """The fair-share weights of these users; without those who have none and weigh `fairness.USUAL_WEIGHT`."""

    def set_weight(self, id: str, weight: float) -> None:
        """Counts for the jobs stored already as well, within a minute."""

    def profiles(self, ids: Sequence[str]) -> dict[str, Profile]:
        """Of all that are asked for; who has nothing of his own has the defaults."""

    def set_quotas(self, id: str, quotas: Quotas) -> None: ...

    def set_disabled(self, id: str, at: int | None) -> None: ...

    def set_stock(self, id: str, stock: Stock) -> None: ...

    def add_to_tally(self, name: str, number: int, now: int) -> Tally:
        """Add it; the tally as it is after that. One that nobody has added to for a month begins anew."""

    def restart_tally(self, name: str, seen: Tally, number: int, now: int) -> bool:
        """Count from `number` since `now` on, if it still counts since `seen.since`; `total` stays."""


class Identity(Protocol):
    """The people who may sign in, and the machine clients of the deployment: Cognito's business."""

    @property
    def clients(self) -> Mapping[str, str]:
        """The names of the machine clients by their ids."""

    def login(self, username: str, password: str) -> Session:
        """Raises Unauthorized for a wrong name or password, without telling which."""

    def refresh(self, refresh_token: str) -> Session:
        """Raises Unauthorized for a refresh token that is not valid any more."""

    def change_password(self, token: str, current: str, new: str) -> None:
        """Of whose token it is. Raises Invalid naming `current_password` if it is wrong, `new_password` if the policy refuses it."""

    def user(self, token: str) -> User:
        """Whose token it is. Raises Unauthorized for one that is not valid (any more)."""

    def create(self, username: str, password: str, role: Role, weight: float) -> Account:
        """Raises Conflict for a name that is taken, Invalid for a password that the policy refuses."""

    def get(self, id: str) -> Account | None: ...

    def page(self, cursor: str | None, limit: int) -> tuple[list[Account], str | None]:
        """Some of all, in no order, and the next page's cursor. Raises Invalid for a cursor that is none."""

    def set_role(self, id: str, role: Role) -> None:
        """Counts from the next sign-in or refresh on."""

    def set_weight(self, id: str, weight: float) -> None:
        """What sign-in tells of it; what counts is `Users.set_weight`."""

    def set_enabled(self, id: str, enabled: bool) -> None:
        """A disabled account neither signs in nor refreshes."""

    def set_password(self, id: str, password: str) -> None:
        """For good, and signs out everywhere. Raises Invalid for one that the policy refuses."""


class Trail(Protocol):
    """The audit trail: entries kept for `audit.KEPT_DAYS`."""

    def write(self, entry: AuditEntry) -> None:
        """Store it, or replace it by itself as it ended."""

    def entries(self, owner: str | None, *, since: int, until: int, after: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        """Entries with `since <= at < until`, newest first, beyond the id `after`; the next page's cursor.

        Those of one owner's objects, or (`owner` None) everybody's, eventually consistent.
        """


@dataclass(frozen=True, slots=True)
class User:
    id: str
    username: str
    job_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in user's tokens; `expire` is the instant at which `token` ends."""

    token: str
    expire: int
    refresh_token: str | None = None
    user: User | None = None


class Ports(Protocol):
    """All that the services need from the world, in one record. An adapter is made when its port is first used."""

    @property
    def clock(self) -> Clock: ...
    @property
    def rules(self) -> Rules: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def orders(self) -> Orders: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def functions(self) -> Functions: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def redrives(self) -> Redrives: ...
    @property
    def targets(self) -> Targets: ...
    @property
    def users(self) -> Users: ...
    @property
    def identity(self) -> Identity: ...
    @property
    def trail(self) -> Trail: ...
    @property
    def counters(self) -> Counters: ...
    @property
    def notices(self) -> Notices: ...
    @property
    def outputs(self) -> Outputs: ...
    @property
    def secrets(self) -> Secrets: ...
