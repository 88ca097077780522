"""The ports: the interfaces through which the services reach storage, queues, functions, secrets, people and time.

`scheduler.storage.aws` and `scheduler.storage.memory` implement them; one contract suite in `tests/contract` runs over both.

Common to all methods:
- An implementation may fail any call with `errors.Unavailable` (AWS throttles, refuses or cannot be reached). The effect of a failed
  write may or may not have happened, so callers repeat writes; a write is therefore conditional or idempotent.
- No implementation reads the clock: instants are arguments, in UTC milliseconds. Durations are milliseconds, unless a name says otherwise.
- A method that writes several items writes each on its own, and returns one `Written` for each argument, in their order.
  A refusal of one item does not raise.
- Reads are eventually consistent unless the method says "strongly consistent". A batch read returns a mapping; it omits objects that do
  not exist.
- An item is unreadable if its format (`v`) is newer than this version's, if it has an unknown value, or if a field is missing. Each
  unreadable item is logged and counted with every read. Lists leave it out, `Found` names it, and a read of that one object raises
  `errors.Unreadable`.
- A cursor is opaque to the caller, unless the method says otherwise; None: there is no next page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from scheduler.model import lifecycle
from scheduler.model.job import (
    Cursor,
    DeadLetter,
    DueEntry,
    Finished,
    Job,
    JobKey,
    KeyEntry,
    Lane,
    LaneState,
    LaterCheck,
    Message,
    OrderingQueue,
    OrderKey,
    OwnKey,
    Page,
    QueueEntry,
    QueueHead,
    Receipt,
    RunLock,
    TaskHead,
    TaskKey,
    Unit,
    UnitKey,
)
from scheduler.model.notifications import Notifications
from scheduler.model.work import WorkItem

if TYPE_CHECKING:  # hot functions never load schedules
    from scheduler.model.account import Account, Ceiling, Profile, Quotas, Role, Stock, Tally
    from scheduler.model.attempt_output import FullOutput
    from scheduler.model.audit import AuditEntry
    from scheduler.model.backlog import Backlog
    from scheduler.model.breaker import Breaker, Circuit
    from scheduler.model.counters import Counted, CounterEntry
    from scheduler.model.event import Event
    from scheduler.model.named_target import NamedTarget
    from scheduler.model.notice import DeliveryRecord, NoticeMessage, NotificationState, Outbox, ReceivedNotice
    from scheduler.model.operation import Operation
    from scheduler.model.pin import Pin
    from scheduler.model.rules import Rules
    from scheduler.model.spec import JobSpec
    from scheduler.model.target_queue import QueueUser, TargetQueue
    from scheduler.model.target_usage import TargetUsage, UsageChange
    from scheduler.model.task import Task, TaskPage


K = TypeVar("K")
V = TypeVar("V")


class Found(dict[K, V]):
    """The objects of a batch read that exist, by key. `unreadable`: the keys of items that this version cannot read, each with the reason.

    An unreadable object exists: no caller may treat it as deleted or ended.
    """

    def __init__(self, found: Mapping[K, V] | Iterable[tuple[K, V]] = (), unreadable: Mapping[K, str] | None = None) -> None:
        super().__init__(found)
        self.unreadable: dict[K, str] = dict(unreadable or {})

    def is_absent(self, key: K) -> bool:
        """Return whether no such object is stored, not even an unreadable one."""
        return key not in self and key not in self.unreadable


class ClaimRequest(NamedTuple):
    """A request to claim the job of `key` for `message_id`, valid if the job is unclaimed, has this `fence` and is due by `due_by`."""

    key: JobKey
    fence: int
    message_id: str
    nonce: str
    at: int
    alone: bool
    due_by: int


class ClaimResult(NamedTuple):
    """The answer to one claim. `job` is the claimed job if `won`, else the job as stored (None: there is no such job)."""

    won: bool
    job: Job | None


class Written(Enum):
    """The result of one conditional write. Compare it by identity: every member is true."""

    YES = auto()  # it is written, now or by an earlier try whose answer was lost
    NO = auto()  # its condition is not met; nothing was changed
    REFUSED = auto()  # AWS refused it or did not answer: it may or may not be written; try again later

    @classmethod
    def of(cls, written: bool) -> Written:
        """Return YES or NO for a write that was not refused."""
        return cls.YES if written else cls.NO


class Guard(Enum):
    """The fields of the stored job that must equal those of `before` for a change to be applied."""

    FENCE = auto()  # the fence, the claim (by nonce, or none), and whether the job is open
    SLOT = auto()  # the slot as well: a change that only moves the job must not undo another move
    LEASE = auto()  # the call-back lease as well: a lease reported to a worker by the answer to its heartbeat must not be shortened
    CANCEL = auto()  # the cancel request as well: a job that goes back to its lane must not wait there with one that nobody has seen
    BEAT = auto()  # the last heartbeat as well, for the same reason: of two heartbeats at once, the older one may be written last


MOVING = frozenset({"slot", "due_at", "looks"})  # of a job that an executor has: reconciling moves it under the same fence and claim


class Change(NamedTuple):
    """Replace `before` by `after`, a later state of the same job. Only fields that differ between the two are written.

    With a new fence the fields `MOVING` are written in any case: others may have changed them since `before` was read.
    """

    before: Job
    after: Job
    guard: Guard = Guard.FENCE

    @classmethod
    def of_slot(cls, before: Job, after: Job) -> Change:
        """Return the change of a job whose next slot is all that matters: it is guarded by the slot too if `after` has another one."""
        return cls(before, after, Guard.FENCE if after.slot == before.slot else Guard.SLOT)

    def made(self, stored: Job) -> bool:
        """Return whether an earlier try of this change, whose answer was lost, made the stored job."""
        if self.guard is Guard.BEAT and stored.heartbeat_at != self.after.heartbeat_at:
            return False
        return lifecycle.marks(stored) == lifecycle.marks(self.after)


KEPT_RECEIPTS_MS = 86_400_000
KEPT_KEYS_MS = 400 * 86_400_000  # after the time of its job: longer than any ended job is kept; the entry of a key expires then


class KeyTaking(NamedTuple):
    """Insert a new `job` that takes its key from the job that the entry `before` names (None: the key has no entry).

    With `dead`, redrive that job instead: `job` is its state after that.
    """

    before: KeyEntry | None
    job: Job
    dead: Job | None = None


class Jobs(Protocol):
    """The jobs table and its indexes."""

    def check(self, spec: JobSpec, notifications: Notifications | None = None) -> None:
        """Raise TooLarge if a new job of this content could need more bytes in the table than `item_limit.LIMIT`. No call of AWS."""

    def put(self, job: Job) -> bool:
        """Insert a new job; nothing is overwritten. False if the id is taken, possibly by an earlier try of the same call."""

    def put_many(self, jobs: Sequence[Job]) -> list[Written]:
        """Insert each of these new, different jobs. NO: its id is taken. REFUSED: it is probably not stored."""

    def key_entries(self, keys: Sequence[OwnKey]) -> dict[OwnKey, KeyEntry]:
        """Return the entries of keys that exist (strongly consistent). Keys may repeat."""

    def take_keys(self, takings: Sequence[KeyTaking]) -> list[Written]:
        """Insert or redrive each job, and with it in one transaction store the entry of its key. No two of the jobs have the same key.

        NO: the entry is no longer `before`, or the id of a new job is taken, or a job to be redriven is no longer as in `dead`. YES also
        if an earlier try, whose answer was lost, applied it.
        """

    def prolong_key(self, job: Job) -> Written:
        """Let the entry of the job's key expire by the present time of the job. NO: the entry names another job, or does not exist."""

    def get(self, key: JobKey) -> Job | None:
        """Return the job, None if there is none (strongly consistent). Raises Unreadable."""

    def get_many(self, keys: Sequence[JobKey]) -> Found[JobKey, Job]:
        """Return the jobs that exist, by key (strongly consistent). Keys may repeat."""

    def glance(self, jobs: Sequence[Job]) -> Found[JobKey, Job]:
        """Read again whether these jobs are open, under which fence and claim, and with which cancel request; return them with that.

        At half the price of `get_many`: some may be missing or as they were before their last writes. AWS documents no bound for that
        time; usually it is well below a second. The other fields are those of the given jobs.
        """

    def outlines(self, keys: Sequence[JobKey]) -> Found[JobKey, Job]:
        """Return the jobs as `get_many` does, each without the fields that may be large.

        In an outline, payload, output, response, attempts, progress and notifications are empty. An outline may be the `before` of a
        change that moves its job to another slot or due time: such a change writes none of these fields. To settle a job, or to take it
        back, read it whole.
        """

    def set_aside(self, moves: Sequence[tuple[JobKey, str, str]]) -> list[Written]:
        """Move items to other slots without reading them: for each the key, its slot now and its new slot.

        Only the slot is written, if the stored one is the slot given. It is for unreadable jobs: the scheduler checks them again and again,
        and they run after an update. NO: the item has another slot, or was deleted.
        YES also if an earlier try, whose answer was lost, wrote it.
        """

    def claim(self, requests: Sequence[ClaimRequest]) -> list[ClaimResult | None]:
        """Claim each job whose request is valid; one result per request, in order. None: refused, so the job may or may not be claimed.

        An unreadable job is refused as well; it stays unclaimed.
        A claim whose answer was lost is not recognised: repeating it is not won, and the result shows the stored job with its claim.
        """

    def change(self, changes: Sequence[Change]) -> list[Written]:
        """Apply each change whose guard is met. NO: the guard is not met. REFUSED: the change may or may not be applied.

        The fault of one change (its item would be too large for the table) is REFUSED too, and logged.
        YES also if an earlier try, whose answer was lost, applied the change. Several changes of one job are applied in order.
        """

    def withdraw(self, keys: Sequence[JobKey]) -> list[Written]:
        """Delete each of these jobs that was never claimed (scheduled, fence 1, no claim).

        YES: the job is deleted or did not exist. NO: it was claimed, or it has ended. REFUSED: it may or may not be deleted.
        """

    def due(self, slot: str, *, since: int = 0, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        """Return a page of the entries of one slot with `due_at >= since`, by due time, and the cursor of the next page.

        Eventually consistent: an entry may be missing or outdated. Canaries and unreadable entries are left out.
        """

    def due_in(self, slots: Sequence[str], *, since: int = 0) -> list[tuple[list[DueEntry], str | None]]:
        """Return the first page of each slot as `due` does, in their order. The slots are read in parallel."""

    def waiting(self, slots: Sequence[str], *, limit: int) -> list[DueEntry]:
        """Return the first entries of these slots together, by due time and id, at most `limit`. Eventually consistent."""

    def overdue(self, slots: Sequence[str], until: int, *, limit: int) -> list[tuple[list[DueEntry], bool]]:
        """Return of each slot the first `limit` entries with `due_at <= until`, by due time, and whether the slot has more of them.

        The slots are read in parallel. Canaries and unreadable entries are left out. Eventually consistent.
        """

    def count(self, slots: Sequence[str], lane: Lane, *, since: int, until: int) -> int:
        """Count the jobs of the lane in these slots of the due index with `since <= due_at <= until`, without canaries.

        Eventually consistent.
        """

    def tally(self, slots: Sequence[str], most: int) -> list[int]:
        """Count the entries of each slot; a slot with `most` or more is not counted to its end. The slots are counted in parallel.

        Eventually consistent. Canaries count, too.
        """

    def put_canary(self, unit: UnitKey, slot: str, at: int) -> None:
        """Move the canary of a unit to `slot`, creating it if necessary. Idempotent."""

    def canary_visible(self, unit: UnitKey, slot: str) -> bool:
        """Whether the due index shows the canary of the unit in `slot`.

        A visible canary suggests, and does not prove, that the index shows the writes made before it.
        """

    def drop_canary(self, unit: UnitKey) -> None:
        """Delete the canary of a unit. Idempotent."""

    def sweep(self, *, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        """Return a page of the whole due index, in no order, and the cursor of the next page. Canaries are left out.

        Eventually consistent.
        """

    def mark(self) -> int:
        """Return the number that the table was last marked with, 0 if it never was (strongly consistent)."""

    def set_mark(self, number: int) -> None:
        """Mark the table with the number of a tick, unless it has a higher one. A restored table has the mark that it had in its backup.

        Idempotent.
        """

    def history(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        """Return a page of an owner's jobs with `since <= scheduled_at < until`, ordered by position, beyond the position `after`.

        A job's position (`ids.position`) is its id unless it was rescheduled; positions sort by scheduled time. The cursor is the position
        of the page's last job, so a caller that stops inside a page can derive one. Eventually consistent.
        """

    def of_task(self, task: TaskKey, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        """Return a page of the jobs of one task; order, bounds and cursor as in `history`. Eventually consistent."""

    def failures(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int) -> Page:
        """Return a page of an owner's failed and killed jobs, newest first; bounds as in `history`. Eventually consistent.

        Their positions are those of `ids.queue_position`, so the jobs of an ordering key are in the order of its queue.
        The cost does not depend on the number of successful jobs. A page may have fewer than `limit` jobs, or none, and yet a cursor: the
        index may still list jobs that were redriven.
        """

    def count_ahead(self, owner: str, now: int) -> int:
        """Count the open jobs of an owner: those whose time is `now` or later, and those that wait past their time. Eventually consistent.

        It reads all of the former. The latter are read the latest first, until many in a row have ended: those behind them may be missed.
        """

    def letters(
        self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool
    ) -> tuple[list[DeadLetter], str | None]:
        """Return a page of the entries of an owner's failures index, and the cursor of the next page.

        Positions as in `failures`; bounds and cursor as in `history`. It reads the index only, at a small part of the cost of `failures`.
        Eventually consistent.
        """


class Ledger(Protocol):
    """The ledger of minutes: cursor, open units, later checks; lane states, breakers, and the figures that processes report about lanes."""

    def cursor(self) -> Cursor | None:
        """Return the cursor, None before the first tick (strongly consistent)."""

    def advance(self, before: Cursor | None, after: Cursor) -> bool:
        """Replace the cursor if the stored one still has the epoch of `before` (None: no cursor is stored). `after.epoch` is one more."""

    def open_unit(self, unit: Unit) -> bool:
        """Add an open unit. False if a unit of this key is open already."""

    def open_units(self) -> list[Unit]:
        """Return all open units of minutes, oldest minute first (strongly consistent). Those of `overflow_units` are left out."""

    def overflow_units(self) -> list[Unit]:
        """Return the units of the overflow and of the waiting rooms (strongly consistent). Only those of the rooms of users close."""

    def unit(self, key: UnitKey) -> Unit | None:
        """Return the open unit of this key, None if it is not open (strongly consistent)."""

    def change_unit(self, before: Unit, after: Unit) -> bool:
        """Replace an open unit if the stored one has the epoch of `before`. False if it does not, or is closed.

        If `after` has another epoch (a take-over), the stored lease must be that of `before` as well: no other call renewed it.
        """

    def close_unit(self, unit: Unit, at: int, look: LaterCheck) -> bool:
        """Close the unit if it is open and has this epoch, and store its first later check, in one transaction.

        False: nothing was changed.
        """

    def looks(self, by: int) -> list[LaterCheck]:
        """Return the later checks planned for the instant `by` or earlier, the earliest first (strongly consistent)."""

    def replace_look(self, look: LaterCheck, following: LaterCheck | None) -> None:
        """Store the `following` check, if any, then delete the one that is done.

        A late repeat may store the following check again, which then finds nothing.
        """

    def set_lane_state(self, state: LaneState) -> None:
        """Store the state of a lane, paused or resumed. Unconditional: the last writer wins."""

    def watched(self) -> Watched:
        """Return the stored lane states, breakers and pins in one read (strongly consistent)."""

    def pin(self, lane: Lane, owner: str, period: int, by: int) -> None:
        """Add `by` to the number of the lane's executors that the long jobs of this user keep busy in this period.

        A call that is repeated after a lost answer counts twice, until the period has passed. Raises Unavailable.
        """

    def set_breaker(self, before: Breaker | None, after: Breaker | None) -> bool:
        """Open, change or close (`after` None) a breaker if the stored one has the version of `before` (None: no breaker is stored).

        False: another process changed it.
        """

    def mark(self) -> int:
        """Return the number that the jobs table was last marked with, as far as the ledger knows; 0: never (strongly consistent)."""

    def set_mark(self, number: int) -> None:
        """Note the number that the jobs table was marked with, unless a higher one is noted. Idempotent."""

    def sweep_cursor(self) -> str | None:
        """Return where the sweep of the due index continues; None: at the beginning (strongly consistent)."""

    def set_sweep_cursor(self, cursor: str | None) -> None:
        """Store where the sweep continues. Unconditional: the last writer wins."""

    def require_shards(self, shards: int) -> int:
        """Raise the number of shards of all minutes that are not open yet to at least `shards`, and return it; 0: there is no cursor."""

    def plan_cursor(self) -> str | None:
        """Return the first minute of the replenish index that plan has not processed; None: plan never ran (strongly consistent)."""

    def set_plan_cursor(self, before: str | None, after: str) -> bool:
        """Replace plan's cursor if the stored one is `before`. False if it is not."""

    def report_latency(self, lane: Lane, reporter: str, p99_ms: int, at: int, *, deployment: str = "", delayed: bool = False) -> None:
        """Store an executor's recent p99 from publishing to claim, in milliseconds, over the earlier value of this lane and reporter.

        `deployment`: of the executor. `delayed`: from the end of the delay to the claim, of messages that SQS has delayed; stored apart.
        """

    def latency(self, lane: Lane, since: int, *, deployment: str = "", delayed: bool = False) -> int | None:
        """Return the largest p99 (ms) that executors of `deployment` reported for the lane at `since` or later; None if there is none.

        `delayed`: of its delayed messages.
        """

    def report_ready(self, lane: Lane, executors: int, at: int) -> None:
        """Store how many executors the lane's pollers can call at once since `at`. Raises Unavailable."""

    def ready(self, lane: Lane, since: int) -> int:
        """Return the executors reported ready for the lane at `since` or later; 0 if there is no such report. Raises Unavailable."""

    def report_backlog(self, backlog: Backlog) -> None:
        """Store the backlog of one dispatcher for one lane, over the earlier one of this unit and lane."""

    def drop_backlog(self, unit: UnitKey, lane: Lane) -> None:
        """Delete the backlog of this unit and lane. Idempotent."""

    def backlogs(self, lane: Lane, since: int) -> list[Backlog]:
        """Return the lane's backlogs reported at `since` or later, in no order (strongly consistent)."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The lane states, breakers and pins that long-running processes poll every second.

    Lanes never paused, closed breakers and users without long jobs are absent; pins of passed periods may still be there.
    """

    lanes: dict[Lane, LaneState]
    breakers: dict[Circuit, Breaker]
    pins: Sequence[Pin] = ()


class Tasks(Protocol):
    """The tasks table: tasks, their replenish index, and the run locks of tasks whose runs must not overlap."""

    def heads(self, keys: Sequence[TaskKey]) -> Found[TaskKey, TaskHead]:
        """Return the heads of the tasks that exist: the part that runs need (strongly consistent)."""

    def holders(self, keys: Sequence[TaskKey]) -> Found[TaskKey, RunLock]:
        """Return the run locks that exist (strongly consistent)."""

    def hold(self, changes: Sequence[tuple[RunLock | None, RunLock]]) -> list[Written]:
        """Replace each run lock if the stored one has the version of the pair's first element (None: no lock is stored).

        NO: it has another version. YES also if an earlier try, whose answer was lost, applied it. One lock may appear several times.
        """

    def check(self, task: Task) -> None:
        """Raise TooLarge if the task needs more bytes in the table than `item_limit.LIMIT`. No call of AWS."""

    def store(
        self, before: Task | None, after: Task, runs: Sequence[Job], receipt: Receipt | None = None, *, former: str | None = None
    ) -> bool:
        """In one transaction, replace the task `before` (None: it must not exist) by `after`, insert the runs and store the receipt.

        With a new task that has a key, also store the entry of the key, which must name the task `former` until then (None: no entry).
        At most `task.STORED_WITH_IT` runs. False, and nothing is changed, if the stored task has another generation than `before`, or if
        the task, the id of a run or the key of the receipt exists, or if the entry names another task than `former`. True also if an
        earlier try, whose answer was lost, applied it.
        """

    def of_key(self, own: OwnKey) -> str | None:
        """Return the id of the task that has this key or had it last, None if none has had it (strongly consistent)."""

    def delete(self, task: Task) -> bool:
        """Delete the task if it has this generation, its run lock and the entry of its key.

        False if it has another generation or does not exist. A refusal while deleting the run lock or the entry is ignored: those of a
        deleted task have no effect.
        """

    def move_on(self, moves: Sequence[tuple[Task, Task]]) -> list[Written]:
        """Record for each task that more runs are stored: replace `planned_until`, `planned`, `replenish` and `gap` of the pair's first
        element by those of the second.

        NO: the stored task has another generation, `planned_until` or `gap` than the first element, or does not exist. YES also if an
        earlier try, whose answer was lost, applied it. No task may be given twice.
        """

    def get(self, key: TaskKey) -> Task | None:
        """Return the task, None if there is none (strongly consistent)."""

    def get_many(self, keys: Sequence[TaskKey]) -> Found[TaskKey, Task]:
        """Return the tasks that exist (strongly consistent)."""

    def page(self, owner: str, *, after: str | None, limit: int) -> TaskPage:
        """Return a page of an owner's tasks, newest first, beyond the task with the id `after` (strongly consistent).

        The cursor is the id of the page's last task.
        """

    def to_replenish(self, slot: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        """Return a page of the tasks in one slot of the replenish index, and the cursor of the next page. Eventually consistent."""

    def overdue(self, before: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        """Return a page of the tasks whose replenish slot is before the minute `before`, and the cursor of the next page.

        Eventually consistent.

        It scans the (small) replenish index: for repair only.
        """


class OrderingQueues(Protocol):
    """The ordering queues, one for each ordering key: an entry for each open job, and the head.

    `scheduler.admission.ordering` defines them.
    """

    def enqueue(self, markers: Sequence[QueueEntry]) -> list[Written]:
        """Insert each of these different entries. NO: the entry exists, and is unchanged. REFUSED: it may or may not be stored."""

    def lines(self, orders: Sequence[OrderKey], *, limit: int) -> dict[OrderKey, OrderingQueue]:
        """Return the beginning of each ordering queue: its head and at most `limit` entries, sorted by position (strongly consistent).

        Every queue of `orders` is in the mapping, an empty one as an empty `OrderingQueue`.
        """

    def take_turns(self, changes: Sequence[tuple[QueueHead | None, QueueHead]]) -> list[Written]:
        """Replace the heads of different queues, each if the stored head has the version of the pair's first element (None: no head is
        stored).

        NO: it has another version. YES also if an earlier try, whose answer was lost, applied it.
        """

    def leave(self, markers: Sequence[QueueEntry]) -> None:
        """Delete these entries. Idempotent. Raises Unavailable if the deletion of any was refused."""


class ChangeResult(NamedTuple):
    """The answer to one `UsageChange`. `usage` is the stored usage after it (None if refused)."""

    done: Written
    usage: TargetUsage | None


class Targets(Protocol):
    """The registry of named targets, and the usage of their limits.

    A target with many concurrency slots has several items of usage, each with a name of its own (`named_target.item_name`).
    """

    def targets(self, names: Sequence[str]) -> Found[str, NamedTarget]:
        """Return the targets that exist, by name (strongly consistent)."""

    def usages(self, names: Sequence[str]) -> dict[str, TargetUsage]:
        """Return the usages that exist, by the name of their target or item (strongly consistent)."""

    def use(self, uses: Sequence[UsageChange]) -> list[ChangeResult]:
        """Apply each change, of different targets or items, if it is valid (see `limits.used`); one result per change, in order.

        NO: it is not valid for the stored usage. If refused, the change may still have been applied: a concurrency slot that was taken
        shows up in `usages`, a start that was assigned stays unused.
        """

    def join_queue(self, target: str, owner: str, at: int) -> None:
        """Note that jobs of the owner wait for the target since `at`. A release step then looks for them."""

    def queue(self, target: str) -> tuple[TargetQueue | None, list[QueueUser]]:
        """Return the queue of a target (None: it never had a release step) and its users (strongly consistent)."""

    def queues(self) -> list[tuple[TargetQueue, list[QueueUser]]]:
        """Return all queues with their users (strongly consistent)."""

    def queue_users(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], QueueUser]:
        """Return the users of queues that exist, by target and owner (strongly consistent)."""

    def change_queue(self, before: TargetQueue | None, after: TargetQueue) -> bool:
        """Store the queue if the stored one has the epoch of `before` (None: none is stored). False if it does not.

        True also if an earlier try, whose answer was lost, stored it.
        """

    def note_queue_user(self, user: QueueUser) -> None:
        """Store the turn of a user and whether jobs of it wait, but not when it joined. Unconditional: the last writer wins."""

    def drop_queue_user(self, user: QueueUser) -> bool:
        """Delete the user of a queue unless it has joined since. False if it has."""

    def all(self) -> list[NamedTarget]:
        """Return all targets, by name (strongly consistent)."""

    def put(self, before: NamedTarget | None, after: NamedTarget) -> bool:
        """Insert a target (`before` None: the name must be free), or replace it if the stored one has the version of `before`.

        False: the name is taken, or the target was changed or deleted. True also if an earlier try, whose answer was lost, applied it.
        """

    def delete(self, target: NamedTarget) -> bool:
        """Delete the target if it has this version, and its usage. False if it has another version or does not exist.

        A refusal while deleting the usage is ignored: a new target of that name continues with it.
        """


class Receipts(Protocol):
    """Receipts of requests with an idempotency key. A receipt is valid for `KEPT_RECEIPTS_MS` after its instant."""

    def keep(self, receipts: Sequence[Receipt], now: int) -> list[Receipt | None]:
        """Store each receipt unless a valid one of its owner and key exists; return the valid one for each, in order: itself or the earlier
        one.

        No two of the receipts have the same owner and key. None: refused; the receipt is probably not stored.
        """

    def find(self, owner: str, key: str, now: int) -> Receipt | None:
        """Return the receipt of this owner and key that is valid at `now`, None if there is none (strongly consistent)."""


class Operations(Protocol):
    """The records of operations on many jobs or tasks. A record of an ended operation expires.

    An owner has a few places, and each running operation takes one. A place keeps the id of an operation that has ended until another
    one takes it.
    """

    def places(self, owner: str) -> dict[int, str]:
        """Return the ids of the operations that took places, by place (strongly consistent)."""

    def add(self, operation: Operation, place: int, former: str | None) -> bool:
        """Insert a new record and take a place, which must have the id `former` (None: no operation has taken it yet).

        False: it has another one, or the record exists; then nothing changes.
        """

    def get(self, owner: str, id: str) -> Operation | None:
        """Return the record, None if there is none or it has expired (strongly consistent)."""

    def running(self) -> list[Operation]:
        """Return the running operations of all owners, by owner and id (strongly consistent)."""

    def ended(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Operation], str | None]:
        """Return a page of the ended operations of an owner, newest first, beyond the one with the id `after`, and the next page's cursor.

        The cursor is the id of the page's last record. Strongly consistent.
        """

    def change(self, before: Operation, after: Operation) -> bool:
        """Replace the record if the stored one has the version of `before`.

        False also if an earlier try, whose answer was lost, applied it.
        """


class Counters(Protocol):
    """Sums written from streams; each change is counted once. `scheduler.insight.counting` defines the rows."""

    def add(self, shard: str, entries: Sequence[CounterEntry]) -> None:
        """Add each entry that was not added before.

        The entries of one shard arrive in the order of their sequences; the stream may deliver again from any of them on.
        Raises Unavailable: some entries may be added; the caller repeats all of them.
        """

    def read(self, partition: str, low: str, high: str) -> list[Counted]:
        """Return the rows of a partition with `low <= name < high`, by name. Eventually consistent."""

    def forget(self, partition: str, rows: Sequence[Counted]) -> None:
        """Delete these rows. Only for rows that no stream changes now. Idempotent."""


class Notices(Protocol):
    """Notifications: the notification state of each task, the decision for each news, the progress of each sending, and the queue.

    All expire.
    """

    def read(self, task: TaskKey, id: str) -> tuple[NotificationState | None, Outbox | None]:
        """Return the notification state of a task, and the decision for the news (or the end of a window) of that id (strongly consistent).

        None in place of each that is not stored.
        """

    def decide(self, before: NotificationState | None, after: NotificationState, id: str, outbox: Outbox | None, now: int) -> bool:
        """Replace the state and insert the outbox of `id`, both or neither; without an outbox replace the state only.

        False if the stored state has another version than `before` (None: no state is stored), or if an outbox of `id` exists. The version
        stored is one more than that of `before`; that of `after` is ignored.
        """

    def delivery(self, task: TaskKey, id: str) -> DeliveryRecord | None:
        """Return the progress of a sending, None if nothing is stored (strongly consistent)."""

    def set_delivery(self, before: DeliveryRecord | None, after: DeliveryRecord, now: int) -> bool:
        """Replace the record if the stored one has the version of `before` (None: no record is stored); the version stored is one more.

        False if it has another version.
        """

    def send(self, messages: Sequence[NoticeMessage], now: int) -> None:
        """Enqueue all messages; the end of a window is delayed to its instant (at most 900 s).

        Raises Unavailable if any was refused: the caller repeats all of them.
        """


class NoticeQueue(Protocol):
    """The queue of notices as notify uses it while it waits for receivers. A temporary refusal raises nothing."""

    def receive(self, wait_s: int) -> list[ReceivedNotice]:
        """Return up to ten messages; wait for one for at most `wait_s` seconds. Unreadable messages are left to the dead-letter queue."""

    def put_back(self, delays: Mapping[str, int]) -> None:
        """Make received messages visible again, each receipt after its delay (s); after a refusal, when their visibility time-out ends."""

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete received messages. One that could not be deleted is delivered again."""


class EventBus(Protocol):
    """The event bus of the stage, which other systems read."""

    def put(self, events: Sequence[Event]) -> list[bool]:
        """Put each event on the bus. Return for each whether it is there; a refused event may be there nevertheless."""


class Lanes(Protocol):
    """The queues of the lanes, addressed directly or through the topic in front of them. A message may be delivered more than once."""

    def send(self, messages: Sequence[Message], now: int) -> list[Message]:
        """Send each message, alone or a pack, to the queue of its lane, delayed to its `not_before` (in whole seconds, at most 900).

        `sent_at` becomes `now` if it is not set. Return the refused messages: each may or may not have been sent.
        """

    def extend(self, lane: Lane, receipts: Sequence[str], seconds: int) -> set[str]:
        """Set the visibility of received messages to end in `seconds` from now. Return the receipts of those for which it was set.

        A refusal does not raise: its receipts are not returned.
        """

    def backlog(self, lane: Lane) -> int:
        """Return about how many messages wait in the lane, without those in flight or delayed."""

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        """Publish all messages to the topic, which routes each to the queue of its lane, on parallel connections.

        Return the refused messages: each may or may not have been published.
        """


class WorkQueue(Protocol):
    """The queue of the engine's own work. The visibility of a message is the lease of its step."""

    def send(self, items: Sequence[WorkItem], *, delay_ms: int = 0) -> list[WorkItem]:
        """Send a message for each item, delayed by `delay_ms` (rounded down to whole seconds, at most 900 s).

        Return the items of the refused messages: each may or may not have been sent.
        """

    def hide(self, receipt: str, seconds: int) -> bool:
        """Hide a received message until `seconds` from now, at most 42,000. False: refused, or the receipt is outdated."""


class Functions(Protocol):
    """The pollers that keep the executors' functions ready."""

    def pollers(self, lane: Lane) -> int:
        """Return the number of pollers that are kept ready for the lane; 0: AWS alone scales it. Raises Unavailable."""

    def keep_pollers(self, lane: Lane, count: int) -> None:
        """Keep `count` pollers of the lane ready from now on, or none. Raises Unavailable, also while an earlier change is in progress."""


class Clock(Protocol):
    """The only source of time for a service, and the only means to wait. In the simulation it is virtual."""

    def now(self) -> int:
        """Return UTC milliseconds by this machine's clock."""

    def monotonic(self) -> int:
        """Return milliseconds of a clock that is never set. It may stand still while the machine is frozen."""

    def sleep_until(self, at: int) -> None:
        """Return when `now()` is `at` or slightly later, never earlier."""


class Pool(Protocol):
    """Runs the jobs of an executor in parallel."""

    def has_room(self, job: Job) -> bool:
        """Return whether the job would begin at once if it were started now, beside the running jobs."""

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        """Start the job's target at the job's instant, or now if that has passed, limited by its time-out. Return at once; `wait` returns
        its result.

        `task`: the task of a run, for its receiver.

        A target that could not begin by `not_after` (ms) does not begin: its result is then `unstarted`.
        """

    def wait(self, until: int) -> list[Finished]:
        """Wait for the first finished job, at most until the instant `until`. Return all that have finished; empty if none has."""

    def cancel(self, job: Job) -> None:
        """Request one job's work to stop. `wait` still returns its result, unless its target ignores the request."""

    def kill(self, job: Job) -> None:
        """End the work of one job that did not stop, where the pool can. The caller ignores its result."""

    def stop(self) -> None:
        """End all running work, or request it to stop where the pool cannot end it. `wait` returns none of its results."""


class Outputs(Protocol):
    """The full output and log of attempts, where the job's item cannot hold them; and the archive of jobs that have left their table."""

    def put(self, key: JobKey, fence: int, whole: FullOutput) -> None:
        """Store the full output and log of the attempt that ran under `fence`. Idempotent."""

    def get(self, key: JobKey, fence: int) -> FullOutput | None:
        """Return the stored texts of that attempt; None if there are none, or if they have expired."""

    def archive(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append these records of jobs that have left their table to the archive. Not idempotent: a repeated record is archived twice.

        Raises Unavailable: some records may be archived; the caller repeats all of them.
        """


class Secrets(Protocol):
    """The keys that sign call-back tokens, and the secrets that jobs may use. A job can use secrets of its owner only."""

    def keys(self, now: int, *, newest: bool = False) -> Sequence[bytes]:
        """Return the valid signing keys, the one to sign with first; cached for some minutes. Raises Unavailable.

        `newest`: read them again, unless they were read a few seconds ago. If AWS refuses, the cached keys remain in use.
        """

    def values(self, owner: str, name: str, now: int) -> Sequence[str]:
        """Return the values of the owner's secret: the current one, then the one before its last change; cached for at most a minute.

        Raises NotFound if there is no such secret; Unavailable.
        """


class Barred(NamedTuple):
    """The users whose jobs do not run: those of disabled users wait, those of deleted users are cancelled."""

    disabled: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()


class Users(Protocol):
    """The scheduler's own records of users: weights, quotas, states; and tallies, counts by name that many processes share."""

    def weights(self, ids: Sequence[str]) -> dict[str, float]:
        """Return the fair-share weights of these users. Users without a weight are omitted (they get `fair_queue.DEFAULT_WEIGHT`)."""

    def set_weight(self, id: str, weight: float) -> None:
        """Store the weight of a user. It applies within a minute, to jobs stored already as well."""

    def profiles(self, ids: Sequence[str]) -> dict[str, Profile]:
        """Return a profile for each of these users; a user without a record gets the defaults."""

    def set_quotas(self, id: str, quotas: Quotas) -> None:
        """Store the quotas of a user; None in a quota removes it.

        Other fields of the profile are unchanged.
        """

    def set_disabled(self, id: str, at: int | None) -> None:
        """Store the instant at which a user was disabled; None: the user is enabled. `barred` lists the user from then on, or no longer.

        Idempotent. A refusal may leave one of the two done.
        """

    def set_sessions_since(self, id: str, at: int) -> None:
        """Store the instant before which all sessions of the user began that have ended. Idempotent."""

    def delete(self, id: str, at: int) -> None:
        """Note that a user was deleted at this instant: the profile is disabled, and `barred` lists the user as deleted. Idempotent."""

    def barred(self) -> Barred:
        """Return the users whose jobs do not run, from one item that has them all (strongly consistent)."""

    def set_stock(self, id: str, stock: Stock) -> None:
        """Store a user's latest count of open jobs."""

    def free(self, id: str, jobs: int) -> None:
        """Add to the `freed` of a user's profile, if a count of the user's jobs is stored; else nothing is stored. Not idempotent."""

    def profile_and_tally(self, id: str) -> tuple[Profile, Tally]:
        """Return the profile of a user and the tally of the same name, read together; `Tally()` if none is stored."""

    def add_to_tally(self, name: str, number: int, now: int) -> Tally:
        """Add `number` to a tally, creating it if necessary, and return the tally after that. Atomic, not idempotent.

        A tally that nothing was added to for a month expires: the next call creates it again.
        """

    def add_within(self, name: str, number: int, now: int, ceiling: Ceiling, *, restart: bool) -> tuple[bool, Tally]:
        """Add `number` to a tally if it is within the ceiling; with `restart` its count begins again at `number`, since `now`.

        Return whether it was added, and the tally after that: `Tally()` if none is stored. Atomic, not idempotent; expires as above.
        """

    def restart_tally(self, name: str, seen: Tally, number: int, now: int) -> bool:
        """Set the count of a tally to `number`, counted since `now`, if it still counts since `seen.since`; `total` is unchanged.

        False if another process restarted it, or if it does not exist.
        """


class Identity(Protocol):
    """The identity provider (Cognito): the people who may sign in, and the machine clients of the deployment."""

    @property
    def clients(self) -> Mapping[str, str]:
        """The names of the machine clients, by their ids."""

    def login(self, username: str, password: str) -> Session:
        """Sign in. Raises Unauthorized for a wrong name or password, without revealing which of them."""

    def refresh(self, refresh_token: str) -> Session:
        """Return a session with a new token. Raises Unauthorized for an invalid or expired refresh token."""

    def revoke(self, refresh_token: str) -> None:
        """End the session of a refresh token. Idempotent. Raises Unauthorized for a text that is none."""

    def change_password(self, token: str, current: str, new: str) -> None:
        """Change the password of the token's user.

        Raises Invalid naming `current_password` if it is wrong, `new_password` if the policy refuses it.
        """

    def user(self, token: str, now: int) -> User:
        """Return the user of a token. Raises Unauthorized for an invalid or expired token.

        No authorizer has checked the token: one that cannot be ours causes no call, so that a flood of them uses up no quota.
        """

    def create(self, username: str, password: str, role: Role) -> Account:
        """Create an account that can sign in. Raises Conflict if the name is taken, Invalid if the policy refuses the password.

        A refused account leaves nothing behind: its user name stays free.
        """

    def get(self, id: str) -> Account | None:
        """Return the account of an id, None if there is none."""

    def page(self, cursor: str | None, limit: int) -> tuple[list[Account], str | None]:
        """Return a page of all accounts, in no order, and the cursor of the next page. Raises Invalid for an invalid cursor."""

    def set_role(self, id: str, role: Role) -> None:
        """Set the role of an account. It applies from the next sign-in or refresh on."""

    def set_enabled(self, id: str, enabled: bool) -> None:
        """Enable or disable an account. A disabled account can neither sign in nor refresh."""

    def delete(self, id: str) -> None:
        """Delete an account; its user name is free again. Idempotent."""

    def set_password(self, id: str, password: str) -> None:
        """Set a permanent password. Raises Invalid if the policy refuses it."""

    def sign_out(self, id: str) -> None:
        """Revoke all refresh tokens of an account. Access tokens stay valid for the gateway until they expire."""


class Trail(Protocol):
    """The audit trail. An entry expires after `model.audit.KEPT_DAYS`."""

    def write(self, entry: AuditEntry) -> None:
        """Store an entry, over an earlier one of the same id: an entry is written when its request begins and when it ends."""

    def entries(self, owner: str | None, *, since: int, until: int, after: str | None, limit: int) -> tuple[list[AuditEntry], str | None]:
        """Return a page of entries with `since <= at < until`, newest first, beyond the id `after`, and the cursor of the next page.

        The cursor is the id of the page's last entry. `owner`: entries about this owner's objects; None: all entries, eventually
        consistent.
        """


@dataclass(frozen=True, slots=True)
class User:
    """A user who has signed in. The weight is not in the token: `accounts.login` adds it from the users table."""

    id: str
    username: str
    job_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Session:
    """The tokens of a user who has signed in. `expire` is the instant (ms) at which `token` expires."""

    token: str
    expire: int
    refresh_token: str | None = None
    user: User | None = None


class Ports(Protocol):
    """All ports in one record: the argument of most services. An adapter is created when its port is first used."""

    def side_by_side(self, *calls: Callable[[], Any]) -> list[Any]:
        """Make calls that do not wait for each other; return their answers, in order, once the last one has ended.

        Raises the first error in that order, then too only once all have ended: Lambda freezes what an invocation leaves behind.
        """

    @property
    def clock(self) -> Clock: ...
    @property
    def rules(self) -> Rules: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def tasks(self) -> Tasks: ...
    @property
    def orders(self) -> OrderingQueues: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def lanes(self) -> Lanes: ...
    @property
    def work(self) -> WorkQueue: ...
    @property
    def functions(self) -> Functions: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def operations(self) -> Operations: ...
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
    def events(self) -> EventBus: ...
    @property
    def outputs(self) -> Outputs: ...
    @property
    def secrets(self) -> Secrets: ...
