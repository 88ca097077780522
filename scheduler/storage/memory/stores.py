"""The ports in memory, for tests and the simulation, with the same contract as on AWS."""

import bisect
import heapq
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from operator import attrgetter
from typing import Any

from scheduler.model import ids, item_limit, lifecycle, slots
from scheduler.model.attempt_output import FullOutput
from scheduler.model.backlog import Backlog
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.errors import NotFound, Unreadable
from scheduler.model.job import (
    Claim,
    Cursor,
    DeadLetter,
    Delivery,
    DueEntry,
    Job,
    JobKey,
    KeyEntry,
    Lane,
    LaneState,
    LaterCheck,
    Message,
    OwnKey,
    Page,
    TaskKey,
    Unit,
    UnitKey,
    changed,
)
from scheduler.model.lifecycle import DEAD
from scheduler.model.notifications import Notifications
from scheduler.model.operation import Operation, State
from scheduler.model.pin import Pin
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkDelivery, WorkItem
from scheduler.storage.ports import MOVING, Change, ClaimRequest, ClaimResult, EndNote, Found, Guard, KeyTaking, Watched, Written

DELAY_LIMIT = 900_000  # SQS delays a message at most 15 minutes
MAX_RECEIVES = 10


class _Shown:
    """The entries of the due index in one slot. They are read often and change little, so they are kept in order."""

    __slots__ = ("_dues", "_entries", "_order", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[JobKey, DueEntry] = {}
        self._order: list[tuple[int, JobKey]] = []
        self._entries: list[DueEntry] = []  # in that order
        self._dues: dict[Lane, list[int]] = {lane: [] for lane in Lane}

    def show(self, entry: DueEntry) -> None:
        self.drop(entry.key)
        self.by_key[entry.key] = entry
        place = bisect.bisect_left(self._order, (entry.due_at, entry.key))
        self._order.insert(place, (entry.due_at, entry.key))
        self._entries.insert(place, entry)
        bisect.insort(self._dues[entry.lane], entry.due_at)

    def drop(self, key: JobKey) -> None:
        entry = self.by_key.pop(key, None)
        if entry is not None:
            dues = self._dues[entry.lane]
            place = bisect.bisect_left(self._order, (entry.due_at, key))
            del self._order[place], self._entries[place]
            del dues[bisect.bisect_left(dues, entry.due_at)]

    def entries(self) -> list[DueEntry]:
        return [*self._entries]

    def count(self, lane: Lane, since: int, until: int) -> int:
        dues = self._dues[lane]
        return max(bisect.bisect_right(dues, until) - bisect.bisect_left(dues, since), 0)


class MemoryJobs:
    """The jobs table. `_index` is the due index; the simulation overrides `_project` to let it lag."""

    def __init__(self) -> None:
        self.rows: dict[JobKey, Job] = {}
        self.unreadable: dict[JobKey, str] = {}  # the jobs that count as stored by another version, each with the reason
        self._index: dict[str, _Shown] = defaultdict(_Shown)
        self.entries: dict[OwnKey, KeyEntry] = {}  # of keys
        self._canaries: dict[UnitKey, str] = {}
        self._mark = 0

    def check(self, spec: JobSpec, notifications: Notifications | None = None) -> None:
        receivers = 0 if notifications is None else json_size(asdict(notifications))
        item_limit.check("the job", json_size(spec.payload) + receivers + item_limit.NEW_JOB)

    def put(self, job: Job) -> bool:
        if job.key in self.rows:
            return False
        self._store(None, job)
        return True

    def put_many(self, jobs: Sequence[Job]) -> list[Written]:
        return [Written.of(self.put(job)) for job in jobs]

    def key_entries(self, keys: Sequence[OwnKey]) -> dict[OwnKey, KeyEntry]:
        return {own: self.entries[own] for own in keys if own in self.entries}

    def take_keys(self, takings: Sequence[KeyTaking]) -> list[Written]:
        return [Written.of(self._take(taking)) for taking in takings]

    def prolong_key(self, job: Job) -> Written:
        entry = None if job.own_key is None else self.entries.get(job.own_key)
        return Written.of(entry is not None and entry.job == job.id)

    def get(self, key: JobKey) -> Job | None:
        if key in self.unreadable:
            raise Unreadable
        return self.rows.get(key)

    def get_many(self, keys: Sequence[JobKey]) -> Found[JobKey, Job]:
        unread = self.unreadable
        if not unread:
            return Found({key: self.rows[key] for key in keys if key in self.rows})
        readable = {key: self.rows[key] for key in keys if key in self.rows and key not in unread}
        return Found(readable, {key: unread[key] for key in keys if key in unread})

    def glance(self, jobs: Sequence[Job]) -> Found[JobKey, Job]:
        known = {job.key: job for job in jobs}
        stored = self.get_many(list(known))
        return Found({key: glanced(known[key], job) for key, job in stored.items()}, stored.unreadable)

    def outlines(self, keys: Sequence[JobKey]) -> Found[JobKey, Job]:
        whole = self.get_many(keys)
        return Found({key: _outline(job) for key, job in whole.items()}, whole.unreadable)

    def set_aside(self, moves: Sequence[tuple[JobKey, str, str]]) -> list[Written]:
        return [Written.of(self._set_aside(*move)) for move in moves]

    def claim(self, requests: Sequence[ClaimRequest]) -> list[ClaimResult | None]:
        return [self._claim(request) for request in requests]

    def change(self, changes: Sequence[Change]) -> list[Written]:
        return [Written.of(self._change(change)) for change in changes]

    def follow(self, followed: Sequence[tuple[JobKey, int]]) -> list[Written]:
        return [Written.of(self._follow(*each)) for each in followed]

    def note_ends(self, notes: Sequence[EndNote]) -> list[tuple[Written, Job | None]]:
        return [(Written.of(self._note(each)), self.rows.get(each.key)) for each in notes]

    def withdraw(self, keys: Sequence[JobKey]) -> list[Written]:
        return [Written.of(self._withdraw(key)) for key in keys]

    def due(self, slot: str, *, since: int = 0, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        entries = self._index[slot].entries()
        return entries[bisect.bisect_left(entries, since, key=attrgetter("due_at")) :] if since else entries, None

    def due_in(self, slots: Sequence[str], *, since: int = 0) -> list[tuple[list[DueEntry], str | None]]:
        return [self.due(slot, since=since) for slot in slots]

    def waiting(self, slots: Sequence[str], *, limit: int) -> list[DueEntry]:
        found = [entry for slot in slots for entry in self.due(slot)[0][:limit]]
        return sorted(found, key=attrgetter("due_at", "key.id"))[:limit]

    def overdue(self, slots: Sequence[str], until: int, *, limit: int) -> list[tuple[list[DueEntry], bool]]:
        found = [[entry for entry in self.due(slot)[0] if entry.due_at <= until] for slot in slots]
        return [(entries[:limit], len(entries) > limit) for entries in found]

    def count(self, slots: Sequence[str], lane: Lane, *, since: int, until: int) -> int:
        return sum(self._index[slot].count(lane, since, until) for slot in slots)

    def tally(self, slots: Sequence[str], most: int) -> list[int]:
        return [min(len(self.due(slot)[0]) + (slot in self._canaries.values()), most) for slot in slots]

    def put_canary(self, unit: UnitKey, slot: str, at: int) -> None:
        self._canaries[unit] = slot

    def canary_visible(self, unit: UnitKey, slot: str) -> bool:
        return self._canaries.get(unit) == slot

    def drop_canary(self, unit: UnitKey) -> None:
        self._canaries.pop(unit, None)

    def sweep(self, *, after: str | None = None) -> tuple[list[DueEntry], str | None]:
        """One slot is one page; the cursor is the slot."""
        slot = min((slot for slot, shown in self._index.items() if shown.by_key and slot > (after or "")), default=None)
        return ([], None) if slot is None else (self._index[slot].entries(), slot)

    def mark(self) -> int:
        return self._mark

    def set_mark(self, number: int) -> None:
        self._mark = max(number, self._mark)

    def history(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        rows = sorted((job for job in self.rows.values() if job.owner == owner), key=attrgetter("id"))
        return self._page(_between(rows, since, until), after, limit, newest_first)

    def of_task(self, task: TaskKey, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool) -> Page:
        rows = [job for job in self.rows.values() if job.owner == task.owner and job.origin is not None and job.origin.task == task.id]
        return self._page(_between(rows, since, until), after, limit, newest_first)

    def failures(self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int) -> Page:
        return self._page(_between(self._dead(owner), since, until), after, limit, True, _failed_position)

    def count_ahead(self, owner: str, now: int) -> int:
        return sum(job.owner == owner and job.slot is not None for job in self.rows.values())

    def letters(
        self, owner: str, *, since: int | None, until: int | None, after: str | None, limit: int, newest_first: bool
    ) -> tuple[list[DeadLetter], str | None]:
        page = self._page(_between(self._dead(owner), since, until), after, limit, newest_first, _failed_position)
        return [_letter(job) for job in page.jobs], page.cursor

    def _dead(self, owner: str) -> Iterator[Job]:
        mine = (job for job in self.rows.values() if job.owner == owner)
        return (job for job in mine if not lifecycle.is_open(job) and lifecycle.state(job) in DEAD)

    def _page(
        self, rows: list[Job], after: str | None, limit: int, newest_first: bool, position: Callable[[Job], str] | None = None
    ) -> Page:
        page = _page(rows, after, limit, newest_first, position or _position)
        return Page([job for job in page.jobs if job.key not in self.unreadable], page.cursor)

    def _set_aside(self, key: JobKey, slot: str, to: str) -> bool:
        job = self.rows.get(key)
        if job is None or job.slot not in (slot, to):
            return False
        self._store(job, replace(job, slot=to))
        return True

    def _claim(self, request: ClaimRequest) -> ClaimResult | None:
        if request.key in self.unreadable:
            return None
        job = self.rows.get(request.key)
        if job is None or not lifecycle.is_open(job) or job.claim or job.fence != request.fence or job.due_at > request.due_by:
            return ClaimResult(False, job)
        claim = Claim(request.message_id, request.nonce, request.at, request.alone, revocable=request.revocable)
        claimed = lifecycle.claim(job, claim=claim)
        self._store(job, claimed)
        return ClaimResult(True, claimed)

    def _change(self, change: Change) -> bool:
        stored, before, after = self.rows.get(change.before.key), change.before, change.after
        if stored is None:
            return False
        if stored is before:
            self._store(before, after)
            return True
        holds = lifecycle.is_open(stored) == lifecycle.is_open(before) and stored.fence == before.fence and _nonce(stored) == _nonce(before)
        if holds and change.guard is Guard.SLOT:
            holds = stored.slot == before.slot
        if holds and change.guard is Guard.LEASE:
            holds = _lease(stored) == _lease(before) and (_lease(before) is None or stored.heartbeat_at == before.heartbeat_at)
        if holds and change.guard is Guard.REVOKE:
            holds = stored.claim is not None and stored.claim.revocable
        if holds and change.guard in (Guard.CANCEL, Guard.REVOKE):
            holds = stored.cancel_requested_at == before.cancel_requested_at
        if holds and change.ends:
            holds = (stored.followed is None) is (before.followed is None)
        if holds and change.guard is Guard.HEARTBEAT:
            holds = stored.heartbeat_at == before.heartbeat_at
        if not holds:
            return stored.key not in self.unreadable and change.made(stored)
        self._store(stored, replace(stored, **differences(before, after)))
        return True

    def _follow(self, key: JobKey, until: int) -> bool:
        job = self.rows.get(key)
        if job is None or not lifecycle.is_open(job):
            return False
        self._store(job, lifecycle.followed(job, until))
        return True

    def _note(self, note: EndNote) -> bool:
        job = self.rows.get(note.key)
        if job is None or not lifecycle.is_open(job) or job.after[note.place].end is not None:
            return False
        ends = (replace(each, end=note.end) if place == note.place else each for place, each in enumerate(job.after))
        self._store(job, changed(job, after=tuple(ends)))
        return True

    def _take(self, taking: KeyTaking) -> bool:
        own, job = taking.job.own_key, taking.job
        assert own is not None
        stored, dead = self.entries.get(own), taking.dead
        if dead is None:
            if stored != taking.before or job.key in self.rows:
                return stored is not None and stored.job == job.id
            self._store(None, job)
        elif stored != taking.before or not self._change(Change(dead, job)):
            found = self.rows.get(job.key)
            return found is not None and Change(dead, job).made(found)
        self.entries[own] = KeyEntry(own, job.id, job.redrives)
        return True

    def _withdraw(self, key: JobKey) -> bool:
        job = self.rows.get(key)
        if job is None:
            return True
        if not lifecycle.is_open(job) or job.claim is not None or job.fence != 1:
            return False
        self._remove(job)
        return True

    def _store(self, before: Job | None, after: Job) -> None:
        self.rows[after.key] = after
        self._project(before, after)

    def _remove(self, job: Job) -> None:
        del self.rows[job.key]
        self._project(job, None)

    def _project(self, before: Job | None, after: Job | None) -> None:
        if before is None or after is None or _indexed(before) != _indexed(after):
            self._reindex(before, _entry(after) if after else None)

    def _reindex(self, before: Job | None, new: DueEntry | None) -> None:
        """Replace the index entry of `before`, if there is one, by `new`, if there is one."""
        if before is not None and before.slot is not None:
            self._index[before.slot].drop(before.key)
        if new is not None:
            self._index[new.slot].show(new)


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def json_size(content: Any) -> int:
    """Bytes of a value as JSON. In memory, an object is about as large as its largest value."""
    return len(_JSON.encode(content).encode())


def _outline(job: Job) -> Job:
    return changed(job, spec=replace(job.spec, payload={}), output=None, response=None, attempts=(), progress=None, notifications=None)


def glanced(known: Job, stored: Job) -> Job:
    """Return a known job with what a glance shows of the stored one."""
    return lifecycle.seen(known, stored.slot, stored.fence, stored.claim, stored.cancel_requested_at)


def differences(before: Job, after: Job) -> dict[str, Any]:
    """The fields of `after` that a change writes, by name: see `Change`."""
    pairs = ((each.name, getattr(before, each.name), getattr(after, each.name)) for each in fields(Job) if each.init)
    always = MOVING if after.fence != before.fence else ()
    return {name: new for name, old, new in pairs if name in always or (old is not new and old != new)}


def _nonce(job: Job) -> str | None:
    return job.claim.nonce if job.claim else None


def _lease(job: Job) -> int | None:
    return job.claim.lease_until if job.claim else None


_indexed: Callable[[Job], tuple[object, ...]] = attrgetter("slot", "due_at", "lane", "fence")  # the fields in a job's index entry


def _entry(job: Job) -> DueEntry | None:
    if job.slot is None:
        return None
    return DueEntry.of(job.key, job.slot, job.due_at, job.lane, job.fence)


def _letter(job: Job) -> DeadLetter:
    task = job.origin.task if job.origin is not None else None
    return DeadLetter(job.key, _failed_position(job), job.spec.type, task, job.fingerprint, job.failed_at or job.killed_at or 0)


def _between(rows: Iterable[Job], since: int | None, until: int | None) -> list[Job]:
    return [job for job in rows if (since is None or job.scheduled_at >= since) and (until is None or job.scheduled_at < until)]


def _page(rows: list[Job], after: str | None, limit: int, newest_first: bool, position: Callable[[Job], str]) -> Page:
    ordered = sorted(rows, key=position, reverse=newest_first)
    if after is not None:
        ordered = [job for job in ordered if (position(job) < after if newest_first else position(job) > after)]
    cursor = position(ordered[limit - 1]) if len(ordered) > limit else None
    return Page(ordered[:limit], cursor)


def _position(job: Job) -> str:
    return ids.position(job.id, job.scheduled_at)


def _failed_position(job: Job) -> str:
    return ids.queue_position(job.id, job.scheduled_at, job.created_at)


class MemorySecrets:
    """Secrets by owner and name, and the keys that sign tokens, the newest first."""

    def __init__(self, stored: Mapping[tuple[str, str], Sequence[str]] | None = None, *, signing: Sequence[bytes] = (b"key",)) -> None:
        self.stored, self.signing = dict(stored or {}), tuple(signing)

    def keys(self, now: int, *, newest: bool = False) -> Sequence[bytes]:
        return self.signing

    def values(self, owner: str, name: str, now: int) -> Sequence[str]:
        if (owner, name) not in self.stored:
            raise NotFound(f"there is no secret {name!r}")
        return self.stored[owner, name]


class MemoryLedger:
    """The ledger."""

    def __init__(self) -> None:
        self._cursor: Cursor | None = None
        self._open: dict[UnitKey, Unit] = {}
        self._later_checks: dict[tuple[int, UnitKey], LaterCheck] = {}
        self._latency: dict[tuple[Lane, bool, str], tuple[int, int, str]] = {}
        self._ready: dict[Lane, tuple[int, int]] = {}
        self._lane_states: dict[Lane, LaneState] = {}
        self._breakers: dict[Circuit, Breaker] = {}
        self._plan_cursor: str | None = None
        self._sweep_cursor: str | None = None
        self._mark = 0
        self._backlogs: dict[tuple[UnitKey, Lane], Backlog] = {}
        self._pins: dict[tuple[Lane, str, int], int] = {}

    def cursor(self) -> Cursor | None:
        return self._cursor

    def advance(self, before: Cursor | None, after: Cursor) -> bool:
        if (self._cursor and self._cursor.epoch) != (before and before.epoch):
            return False
        self._cursor = after
        return True

    def open_unit(self, unit: Unit) -> bool:
        if unit.key in self._open:
            return False
        self._open[unit.key] = unit
        return True

    def open_units(self) -> list[Unit]:
        return sorted((unit for unit in self._open.values() if not slots.is_always_open(unit.key.minute)), key=lambda unit: unit.key)

    def overflow_units(self) -> list[Unit]:
        return sorted((unit for unit in self._open.values() if slots.is_always_open(unit.key.minute)), key=lambda unit: unit.key)

    def unit(self, key: UnitKey) -> Unit | None:
        return self._open.get(key)

    def change_unit(self, before: Unit, after: Unit) -> bool:
        stored = self._open.get(before.key)
        if stored is None or stored.epoch != before.epoch or (after.epoch != before.epoch and stored.lease_until != before.lease_until):
            return False
        self._open[before.key] = after
        return True

    def close_unit(self, unit: Unit, at: int, check: LaterCheck) -> bool:
        stored = self._open.get(unit.key)
        if stored is None or stored.epoch != unit.epoch:
            return False
        del self._open[unit.key]
        self._later_checks[(check.at, check.unit.key)] = check
        return True

    def later_checks(self, by: int) -> list[LaterCheck]:
        return [self._later_checks[key] for key in sorted(self._later_checks) if key[0] <= by]

    def replace_check(self, check: LaterCheck, following: LaterCheck | None) -> None:
        if following is not None:
            self._later_checks[(following.at, following.unit.key)] = following
        self._later_checks.pop((check.at, check.unit.key), None)

    def set_lane_state(self, state: LaneState) -> None:
        self._lane_states[state.lane] = state

    def watched(self) -> Watched:
        pins = [Pin(*key, executors) for key, executors in self._pins.items() if executors]
        return Watched(dict(self._lane_states), dict(self._breakers), tuple(pins))

    def pin(self, lane: Lane, owner: str, period: int, by: int) -> None:
        for old in [key for key in self._pins if key[2] < period - 1]:
            del self._pins[old]
        key = (lane, owner, period)
        self._pins[key] = self._pins.get(key, 0) + by

    def set_breaker(self, before: Breaker | None, after: Breaker | None) -> bool:
        circuits = [each.circuit for each in (before, after) if each is not None]
        for stored in map(self._breakers.get, circuits):
            if (stored and stored.version) != (before and before.version):
                return False
        if after is not None:
            self._breakers[after.circuit] = after
        elif before is not None:
            del self._breakers[before.circuit]
        return True

    def mark(self) -> int:
        return self._mark

    def set_mark(self, number: int) -> None:
        self._mark = max(number, self._mark)

    def sweep_cursor(self) -> str | None:
        return self._sweep_cursor

    def set_sweep_cursor(self, cursor: str | None) -> None:
        self._sweep_cursor = cursor

    def require_shards(self, shards: int) -> int:
        if self._cursor is None:
            return 0
        if self._cursor.shards < shards:
            self._cursor = replace(self._cursor, shards=shards, epoch=self._cursor.epoch + 1)
        return self._cursor.shards

    def plan_cursor(self) -> str | None:
        return self._plan_cursor

    def set_plan_cursor(self, before: str | None, after: str) -> bool:
        if self._plan_cursor != before:
            return False
        self._plan_cursor = after
        return True

    def report_latency(self, lane: Lane, reporter: str, p99_ms: int, at: int, *, deployment: str = "", delayed: bool = False) -> None:
        self._latency[(lane, delayed, reporter)] = (p99_ms, at, deployment)

    def latency(self, lane: Lane, since: int, *, deployment: str = "", delayed: bool = False) -> int | None:
        reports = [report for (*which, _), report in self._latency.items() if tuple(which) == (lane, delayed)]
        return max((p99 for p99, at, by in reports if at >= since and by == deployment), default=None)

    def report_ready(self, lane: Lane, executors: int, at: int) -> None:
        self._ready[lane] = (executors, at)

    def ready(self, lane: Lane, since: int) -> int:
        executors, at = self._ready.get(lane, (0, since))
        return executors if at >= since else 0

    def report_backlog(self, backlog: Backlog) -> None:
        self._backlogs[(backlog.unit, backlog.lane)] = backlog

    def drop_backlog(self, unit: UnitKey, lane: Lane) -> None:
        self._backlogs.pop((unit, lane), None)

    def backlogs(self, lane: Lane, since: int) -> list[Backlog]:
        return [backlog for backlog in self._backlogs.values() if backlog.lane is lane and backlog.at >= since]


class MemoryOperations:
    """The records of operations."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Operation] = {}
        self._places: dict[tuple[str, int], str] = {}

    def places(self, owner: str) -> dict[int, str]:
        return {place: id for (of, place), id in self._places.items() if of == owner}

    def add(self, operation: Operation, place: int, former: str | None) -> bool:
        if self._places.get((operation.owner, place)) != former or (operation.owner, operation.id) in self.rows:
            return False
        self._places[operation.owner, place] = operation.id
        self.rows[operation.owner, operation.id] = operation
        return True

    def get(self, owner: str, id: str) -> Operation | None:
        return self.rows.get((owner, id))

    def running(self) -> list[Operation]:
        return [self.rows[key] for key in sorted(self.rows) if self.rows[key].state is State.RUNNING]

    def ended(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Operation], str | None]:
        found = [row for (_, id), row in sorted(self.rows.items(), reverse=True) if after is None or id < after]
        page = [row for row in found if row.owner == owner and row.state is not State.RUNNING]
        return page[:limit], page[limit - 1].id if len(page) > limit else None

    def change(self, before: Operation, after: Operation) -> bool:
        stored = self.rows.get((before.owner, before.id))
        if stored is None or (stored.version, stored.state) != (before.version, before.state):
            return False
        self.rows[(before.owner, before.id)] = after
        return True


@dataclass(slots=True)
class Queued:
    message: Message
    message_id: str
    visible_at: int
    receive_count: int = 0
    receipt: str = ""


class MemoryLanes:
    """The queues and the topic in front of them: visibility, delays, receive counts, dead-letter queues.

    `receive` and `delete` stand in for the event source mapping.
    """

    def __init__(self, *, visibility_ms: int = 900_000) -> None:
        self.queues: dict[Lane, dict[str, Queued]] = {lane: {} for lane in Lane}
        self.dead: dict[Lane, dict[str, Queued]] = {lane: {} for lane in Lane}
        self._ready: dict[Lane, list[tuple[int, str]]] = {lane: [] for lane in Lane}  # heaps of (visible at, message id)
        self._visibility = visibility_ms
        self._numbers = itertools.count(1)
        self._now = 0

    def send(self, messages: Sequence[Message], now: int) -> list[Message]:
        for message in messages:
            delay = min(max(message.not_before - now, 0) // 1000 * 1000, DELAY_LIMIT)
            self.add(message._replace(sent_at=message.sent_at or now), now + delay)
        return []

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        for message in messages:
            self.add(message, message.sent_at)
        return []

    def add(self, message: Message, visible_at: int) -> None:
        """Store one message, visible from `visible_at` on."""
        queued = Queued(message, f"m{next(self._numbers)}", visible_at)
        self.queues[message.lane][queued.message_id] = queued
        self._show(queued, visible_at)

    def receive(self, lane: Lane, limit: int, now: int) -> list[Delivery]:
        """Up to `limit` visible messages, the longest visible first. A message received too often moves to the dead-letter queue."""
        self._now = max(self._now, now)
        ready, taken = self._ready[lane], list[Delivery]()
        while ready and ready[0][0] <= now and len(taken) < limit:
            at, message_id = heapq.heappop(ready)
            queued = self.queues[lane].get(message_id)
            if queued is None or queued.visible_at != at:
                continue  # deleted or extended since
            if queued.receive_count >= MAX_RECEIVES:
                self.dead[lane][message_id] = self.queues[lane].pop(message_id)
                continue
            queued.receive_count += 1
            queued.receipt = f"{message_id}/{queued.receive_count}"
            self._show(queued, now + self._visibility)
            taken.append(Delivery(queued.message, message_id, queued.receipt, queued.receive_count))
        return taken

    def _show(self, queued: Queued, at: int) -> None:
        """The message becomes visible at `at`."""
        queued.visible_at = at
        heapq.heappush(self._ready[queued.message.lane], (at, queued.message_id))

    def delete(self, lane: Lane, receipt: str) -> None:
        """Delete by receipt; a stale receipt deletes nothing."""
        queued = self.queues[lane].get(receipt.partition("/")[0])
        if queued is not None and queued.receipt == receipt:
            del self.queues[lane][queued.message_id]

    def extend(self, lane: Lane, receipts: Sequence[str], seconds: int) -> set[str]:
        return {receipt for receipt in receipts if self._extend(lane, receipt, seconds)}

    def backlog(self, lane: Lane) -> int:
        now = self.now()
        return len([1 for queued in self.queues[lane].values() if queued.visible_at <= now])

    def now(self) -> int:
        """The queue service's own clock: without a simulation, the last instant passed to `receive`."""
        return self._now

    def _extend(self, lane: Lane, receipt: str, seconds: int) -> bool:
        queued = self.queues[lane].get(receipt.partition("/")[0])
        if queued is None or queued.receipt != receipt:
            return False
        self._show(queued, self.now() + seconds * 1000)
        return True


@dataclass(slots=True)
class QueuedWork:
    item: WorkItem
    message_id: str
    visible_at: int
    receive_count: int = 0
    receipt: str = ""


class MemoryWork:
    """The work queue. `receive` and `delete` stand in for the event source mapping."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.queued: dict[str, QueuedWork] = {}
        self._numbers = itertools.count(1)

    def send(self, items: Sequence[WorkItem], *, delay_ms: int = 0) -> list[WorkItem]:
        for item in items:
            self.add(item, self._clock.now() + min(delay_ms // 1000 * 1000, DELAY_LIMIT))
        return []

    def add(self, item: WorkItem, visible_at: int) -> QueuedWork:
        """Store one message, visible from `visible_at` on."""
        made = QueuedWork(item, f"w{next(self._numbers)}", visible_at)
        self.queued[made.message_id] = made
        return made

    def receive(self, now: int, *, limit: int = 1_000, visibility_ms: int = 900_000) -> list[WorkDelivery]:
        """Up to `limit` visible messages, the longest visible first."""
        ready = sorted((each for each in self.queued.values() if each.visible_at <= now), key=attrgetter("visible_at"))[:limit]
        for each in ready:
            each.receive_count += 1
            each.receipt, each.visible_at = f"{each.message_id}/{each.receive_count}", now + visibility_ms
        return [WorkDelivery(each.item, each.message_id, each.receipt, each.receive_count) for each in ready]

    def hide(self, receipt: str, seconds: int) -> bool:
        each = self.queued.get(receipt.partition("/")[0])
        if each is None or each.receipt != receipt:
            return False
        each.visible_at = self._clock.now() + seconds * 1000
        return True

    def delete(self, receipt: str) -> None:
        """Delete by receipt; a stale receipt deletes nothing."""
        each = self.queued.get(receipt.partition("/")[0])
        if each is not None and each.receipt == receipt:
            del self.queued[each.message_id]


class MemoryOutputs:
    """The outputs and logs of attempts that are too long for their jobs, and the archive."""

    def __init__(self) -> None:
        self.rows: dict[tuple[JobKey, int], FullOutput] = {}
        self.archived: list[Mapping[str, Any]] = []

    def put(self, key: JobKey, fence: int, whole: FullOutput) -> None:
        self.rows[key, fence] = whole

    def get(self, key: JobKey, fence: int) -> FullOutput | None:
        return self.rows.get((key, fence))

    def archive(self, records: Sequence[Mapping[str, Any]]) -> None:
        self.archived += records


class MemoryFunctions:
    """The pollers that each lane keeps ready; none at first."""

    def __init__(self) -> None:
        self.provisioned: dict[Lane, int] = {}

    def pollers(self, lane: Lane) -> int:
        return self.provisioned.get(lane, 0)

    def keep_pollers(self, lane: Lane, count: int) -> None:
        self.provisioned[lane] = count
