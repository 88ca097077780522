"""The jobs table and its indexes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple, Protocol

from scheduler.model import lifecycle
from scheduler.model.after import End
from scheduler.model.job import DeadLetter, DueEntry, Job, JobKey, KeyEntry, Lane, OwnKey, Page, TaskKey, UnitKey
from scheduler.model.notifications import Notifications
from scheduler.model.spec import JobSpec
from scheduler.storage.ports.results import Found, Written


class ClaimRequest(NamedTuple):
    """A request to claim the job of `key` for `message_id`, valid if the job is unclaimed, has this `fence` and is due by `due_by`."""

    key: JobKey
    fence: int
    message_id: str
    nonce: str
    at: int
    alone: bool
    due_by: int
    revocable: bool = False  # see `Claim`


class ClaimResult(NamedTuple):
    """The answer to one claim. `job` is the claimed job if `won`, else the job as stored (None: there is no such job)."""

    won: bool
    job: Job | None


class Guard(Enum):
    """The fields of the stored job that must equal those of `before` for a change to be applied."""

    FENCE = auto()  # the fence, the claim (by nonce, or none), and whether the job is open; of an end also whether another job waits for it
    SLOT = auto()  # the slot as well: a change that only moves the job must not undo another move
    LEASE = auto()  # the call-back lease as well: a lease reported to a worker by the answer to its heartbeat must not be shortened
    CANCEL = auto()  # the cancel request as well: a job that goes back to its lane must not wait there with one that nobody has seen
    REVOKE = auto()  # the cancel request as well, and the claim is revocable: the executor has not fixed the start of the job
    HEARTBEAT = auto()  # the last heartbeat as well, for the same reason: of two heartbeats at once, the older one may be written last


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

    @property
    def ends(self) -> bool:
        """Whether it ends the job. Such a change is not applied if it does not know that another job waits for the end (`followed`)."""
        return self.after.slot is None and self.before.slot is not None

    def made(self, stored: Job) -> bool:
        """Return whether an earlier try of this change, whose answer was lost, made the stored job."""
        if self.guard is Guard.HEARTBEAT and stored.heartbeat_at != self.after.heartbeat_at:
            return False
        return lifecycle.marks(stored) == lifecycle.marks(self.after)


KEY_RETENTION_MS = 400 * 86_400_000  # after the time of its job: longer than any ended job is kept; the entry of a key expires then


class KeyTaking(NamedTuple):
    """Insert a new `job` that takes its key from the job that the entry `before` names (None: the key has no entry).

    With `dead`, redrive that job instead: `job` is its state after that.
    """

    before: KeyEntry | None
    job: Job
    dead: Job | None = None


class EndNote(NamedTuple):
    """Note with the waiting job of `key` how its predecessor at this `place` of `after` ended."""

    key: JobKey
    place: int
    end: End


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

    def follow(self, followed: Sequence[tuple[JobKey, int]]) -> list[Written]:
        """Note with each of these different open jobs that another one waits for its end, and until when (ms) its record is kept.

        It touches neither fence nor claim. NO: the job has ended, or does not exist.
        """

    def note_ends(self, notes: Sequence[EndNote]) -> list[tuple[Written, Job | None]]:
        """Apply each note to an open job that does not know that end yet; it touches neither fence nor claim.

        The second value is the job as stored after that, if it is known. NO: the job has ended, knows the end, or does not exist.
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
