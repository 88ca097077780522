"""The limits of named targets and of keys: when each job may start. Pure; `scheduler/admission/limit_gate.py` carries it out.

One record per limited target, or key, has the whole state:

- The **rate** is virtual scheduling (GCRA without a burst): each start gets an instant of its own, one step after the start before it,
  and its executor starts the job then. No start is assigned more than `NEAR_MS` ahead.
- The **concurrency slots** are leases: a job that runs has one until its work ends, or until the lease has passed.
- A job that would have to wait longer goes into the **target queue** (`scheduler/admission/target_queue.py`), without a start. A job that
  was released from there has a start, or may wait for the slot that becomes free next.

DynamoDB bills a write by the size of its item, and takes 1,000 units a second in one partition. So a target with more slots than fit
into one small item has them in `ITEMS` further ones, each with a share of the limit; a job looks for a slot in a few of them. The shares
add up to the limit, so the limit is never exceeded. The cursor stays in the first item, so that rates stay exact.

Hundreds of executors may write the record at one moment. A change is therefore not conditional on an unchanged record. It names the slots
and instants that it takes, and is conditional only on their validity. If another executor has moved the last start before, its starts
precede ours.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.model.job import JobKey
from scheduler.model.limiter import Limiter, is_key
from scheduler.model.target_usage import USUAL_MS, Move, Place, TargetUsage, UsageChange
from scheduler.targets.named_target import share_of

NEAR_MS = 1_500  # the executor waits for a start at most this far ahead; a job with a later start goes into the target queue
LATE_MS, LATEST_MS = 250, 2_500  # a job that is late for its start by at most this, or a quarter of a step of the rate, may still use it
QUICK_MS = 1_000  # where jobs keep their slots for longer than this, no job waits for one in its executor
RETENTION_MS = 43_200_000  # from the last use of a key to the expiry of its record
LEASE_MS = 60_000  # the lease of a concurrency slot is this much longer than the time-out of its job
NO_ITEMS: Mapping[int, "TargetUsage"] = {}
UP, DOWN = 5, 4  # each job changes the measured time by at most this ratio: it follows the median, and one slow job hardly changes it


@dataclass(frozen=True, slots=True)
class Ask:
    """The request of a job to start, at `earliest` (ms) or later."""

    job: JobKey
    fence: int
    timeout_ms: int
    earliest: int
    start: int | None = None  # the start assigned to it, by this executor or by a release step
    released: bool = False  # a release step chose it: it waits for a slot rather than in the queue
    waits: bool = False  # it waits for a slot already
    behind: bool = False  # other jobs of its owner are in the queue, or it found no slot for too long


@dataclass(frozen=True, slots=True)
class Start:
    """The job starts now. `place` is its concurrency slot; None: the target does not limit concurrency."""

    place: Place | None = None


@dataclass(frozen=True, slots=True)
class At:
    """The job starts at this instant (ms), and repeats its request then."""

    at: int


@dataclass(frozen=True, slots=True)
class Full:
    """The job could start now, but no concurrency slot is free. It waits for one in its executor."""


@dataclass(frozen=True, slots=True)
class Queue:
    """The job waits in the target queue."""


Answer = Start | At | Full | Queue


def admit(
    usage: TargetUsage,
    limit: Limiter,
    asks: Sequence[Ask],
    now: int,
    gone: Collection[Place] = (),
    beside: Mapping[int, TargetUsage] = NO_ITEMS,
) -> tuple[UsageChange | None, dict[JobKey, Answer]]:
    """The answers to requests, in order, and the change to write before they apply (None: no change). See `confirmed`.

    A repeated request gets the same answer: a slot belongs to a job and fence, and the request itself has its start
    instant. A request for an ended attempt, while a later attempt has the slot, gets no answer: its executor has lost the job without
    noticing yet. `gone`: slots whose attempts are known to have ended. `beside`: further items, by their number, in
    which to look for free slots.
    """
    plan, answers = _Plan(usage, limit, now, gone, beside), dict[JobKey, Answer]()
    for ask in asks:
        mine = next((item.live[ask.job] for item in plan.items if ask.job in item.live), None)
        if mine is not None and mine.fence == ask.fence:
            answers[ask.job] = Start(mine)
        elif mine is None or mine.fence < ask.fence:
            answers[ask.job] = plan.answer(ask)
    return plan.use(), answers


@dataclass(frozen=True, slots=True)
class Part:
    """One of the limiters of a job, with its usage. `gone`, `beside`: see `admit`; `behind`: see `Ask`."""

    limiter: Limiter
    usage: TargetUsage
    gone: Collection[Place] = ()
    beside: Mapping[int, TargetUsage] = field(default_factory=dict)
    behind: bool = False


@dataclass(frozen=True, slots=True)
class Waits:
    """The limiter of this part has no room for the job."""

    part: Part
    answer: Full | Queue


@dataclass(frozen=True, slots=True)
class Together:
    """The changes to write in one step, and what then applies: the job starts `at` this instant, or now (None) with these slots."""

    uses: Sequence[UsageChange]
    at: int | None = None
    places: list[tuple[str, Place]] = field(default_factory=list)  # each with its item


def admit_to_all(parts: Sequence[Part], ask: Ask, now: int) -> Waits | Together | None:
    """The answer to a job with several limiters. None: a later attempt of it has a slot, so this executor has lost it.

    All rates assign one instant. No slot is taken before it, and none if one is missing.
    """
    if ask.start is not None and now > ask.start + min(late_ms(part.limiter) for part in parts):
        ask = replace(ask, start=None)
    earliest = max(ask.earliest, ask.start or 0)
    if ask.start is None:
        starts = [(next_start(part.usage, part.limiter, now), part) for part in parts if part.limiter.rate is not None]
        far = [part for at, part in starts if at > earliest + NEAR_MS]
        if far:
            return Waits(far[0], Queue())
        earliest = max([earliest, *(at for at, _ in starts)])
    uses, places, at = list[UsageChange](), list[tuple[str, Place]](), None
    for part in parts:
        mine = replace(ask, earliest=earliest, behind=part.behind)
        use, answers = admit(part.usage, part.limiter, [mine], now, part.gone, part.beside)
        answer = answers.get(ask.job)
        if answer is None:
            return None
        if isinstance(answer, Full | Queue):
            return Waits(part, answer)
        if isinstance(answer, At):
            at = max(at or 0, answer.at)
        written = [] if use is None else [replace(_exact(use, part.usage), also=()), *use.also]
        uses += [each for each in written if not each.is_empty]
        places += [(each.target, place) for each in written for place in each.takes]
    if at is not None:
        return Together([each for each in uses if each.starts is not None], at)
    return Together(uses, None, places)


def reserve_together(parts: Sequence[Part], job: JobKey, now: int) -> Waits | Together:
    """Assign one start to a job that waits for one of several limiters; no slot is taken. Waits: the next start of a rate is far."""
    starts = [(next_start(part.usage, part.limiter, now), part) for part in parts if part.limiter.rate is not None]
    far = [part for at, part in starts if at > now + NEAR_MS]
    if far:
        return Waits(far[0], Queue())
    at, uses = max([now, *(at for at, _ in starts)]), list[UsageChange]()
    for _, part in starts:
        cursor = _Cursor.of(part.usage, part.limiter)
        cursor.give(job, at * 1_000)
        use = UsageChange(part.usage.target, first=not part.usage.stored, starts=cursor.move())
        uses.append(_exact(replace(use, expires=expiry(part.usage, use, now)), part.usage))
    return Together(uses, at)


def is_full(part: Part, now: int) -> bool:
    """Whether all slots of its limiter are in use."""
    return part.limiter.concurrency is not None and live(part.usage, now) >= part.limiter.concurrency


def live(usage: TargetUsage, now: int) -> int:
    """The number of slots in use."""
    return sum(1 for place in usage.places if place.until > now)


def _exact(use: UsageChange, usage: TargetUsage) -> UsageChange:
    """The change, valid only while no other start is assigned: a transaction returns no item that would show the cursor after it."""
    return use if use.starts is None or use.first else replace(use, starts=replace(use.starts, back_from_us=usage.start_us))


def confirmed(answers: Mapping[JobKey, Answer], use: UsageChange, after: TargetUsage) -> dict[JobKey, Answer]:
    """The answers after the change was written: starts are later by as much as others advanced the cursor meanwhile."""
    moved: dict[JobKey, Answer] = {job: At(at) for job, at in _assigned_starts(use.starts, after.start_us)}
    return {job: moved.get(job, answer) if isinstance(answer, At) else answer for job, answer in answers.items()}


def assigned(use: UsageChange, after: TargetUsage) -> dict[JobKey, int]:
    """The start instants (ms) that a written change assigned."""
    return dict(_assigned_starts(use.starts, after.start_us))


def _assigned_starts(move: Move | None, end_us: int) -> Iterator[tuple[JobKey, int]]:
    """Yield each job of the move with its instant (ms), after the cursor was written as `end_us`."""
    if move is not None:
        later_us = end_us - move.by_us - move.base_us
        yield from ((job, _ms(at_us + later_us)) for job, at_us in move.assigned)


def used(usage: TargetUsage, use: UsageChange) -> TargetUsage | None:
    """The usage after the change; None if the change is not valid."""
    starts = _moved(usage.start_us, use.starts)
    full = use.room is not None and len(usage.places) > use.room
    if use.limit is not None and usage.limit != use.limit[0]:
        return None
    if starts is None or full or usage.stored == use.first or not set(use.drops) <= set(usage.places):
        return None
    remaining = tuple(place for place in usage.places if place not in use.drops)
    if {place.job for place in use.takes} & {place.job for place in remaining}:
        return None
    took_ms = usage.took_ms if use.took_ms is None else use.took_ms
    queued_until = usage.queued_until if use.queued_until is None else use.queued_until
    step_us = usage.step_us if use.starts is None else use.starts.step_us
    limit = usage.limit if use.limit is None else use.limit[1]
    expires = usage.expires if use.expires is None else use.expires
    places, taken = remaining + use.takes, usage.taken + len(use.takes)
    return TargetUsage(usage.target, starts, step_us, places, took_ms, taken, queued_until, True, limit, expires)


def expiry(usage: TargetUsage, use: UsageChange, now: int) -> int | None:
    """When the record of a key expires (ms) if this change is written; None: as before, or it is the record of a target.

    It is needed until the last start that it has assigned, the leases of its slots and the last job that has its limit are over.
    """
    if not is_key(usage.target):
        return None
    cursor = _ms(max(usage.start_us, 0 if use.starts is None else use.starts.base_us + use.starts.by_us))
    limit = usage.limit if use.limit is None else use.limit[1]
    needed = max(now, cursor, 0 if limit is None else limit.until, *(place.until for place in (*usage.places, *use.takes)), 0)
    return None if usage.expires >= needed + RETENTION_MS // 2 else (needed + RETENTION_MS) // 1_000 * 1_000


def _moved(end_us: int, move: Move | None) -> int | None:
    if move is None:
        return end_us
    begins_us = move.begins_at(end_us)
    return None if begins_us is None else begins_us + move.by_us


def freed(target: str, ended: Sequence[Place], took_ms: int, now: int) -> UsageChange:
    """The change that frees these slots, whose attempts have ended at `now`; `took_ms` is the value of the usage read last."""
    for place in ended:
        took = max(now - place.since, 1)
        if took_ms == USUAL_MS:
            took_ms = took  # the first measurement
            continue
        took_ms = min(took, took_ms * UP // DOWN + 1) if took > took_ms else max(took, took_ms * DOWN // UP, 1)
    return UsageChange(target, drops=tuple(ended), took_ms=took_ms)


def slot_time_ms(usages: Sequence[TargetUsage], now: int) -> int:
    """The time for which jobs keep their slots: as measured, or longer if those of now already have them for longer."""
    took = sorted(usage.took_ms for usage in usages)
    ages = sorted(now - place.since for usage in usages for place in usage.places)
    return max(took[len(took) // 2], ages[len(ages) // 2] if ages else 0)


def late_ms(limit: Limiter) -> int:
    """The lateness (ms) up to which a job may use the start that was assigned to it."""
    return LATE_MS if limit.rate is None else max(LATE_MS, min(round(250 / limit.rate), LATEST_MS))


def reserve(usage: TargetUsage, limit: Limiter, jobs: Sequence[JobKey], now: int) -> Move | None:
    """Assign the next starts to these jobs, or to the first of them: none more than `NEAR_MS` ahead. None: the next start is later."""
    cursor = _Cursor.of(usage, limit)
    for job in jobs:
        at_us = max(cursor.end_us, now * 1_000)
        if at_us > (now + NEAR_MS) * 1_000:
            break
        cursor.give(job, at_us)
    return cursor.move((now + NEAR_MS) * 1_000)


def next_start(usage: TargetUsage, limit: Limiter, now: int) -> int:
    """The next instant (ms) that is not assigned yet."""
    return max(_ms(_Cursor.of(usage, limit).end_us), now)


def _step_us(limit: Limiter) -> int:
    return 0 if limit.rate is None else round(1_000_000 / limit.rate)


@dataclass(slots=True)
class _Cursor:
    """The cursor of a usage, while instants are assigned from it one by one."""

    read_us: int
    end_us: int
    step_us: int
    base_us: int | None = None
    assigned: list[tuple[JobKey, int]] = field(default_factory=list)

    @classmethod
    def of(cls, usage: TargetUsage, limit: Limiter) -> "_Cursor":
        """The cursor by this limit: if the rate was raised, the next start is sooner."""
        step_us = _step_us(limit)
        return cls(usage.start_us, usage.start_us - max(usage.step_us - step_us, 0), step_us)

    def give(self, job: JobKey, at_us: int) -> int:
        """Assign the instant to the job and advance the cursor to a step after it; returns the instant in ms."""
        self.base_us = at_us if self.base_us is None else self.base_us
        self.assigned.append((job, at_us))
        self.end_us = at_us + self.step_us
        return _ms(at_us)

    def move(self, latest_us: int | None = None) -> Move | None:
        if self.base_us is None:
            return None
        back = self.read_us if self.base_us < self.read_us else None
        by_us, behind = self.end_us - self.base_us, self.base_us == self.read_us
        return Move(self.base_us, by_us, self.step_us, behind, latest_us, tuple(self.assigned), back)


class _Item:
    """One item of a usage, with its share of the slots (None: no limit), while slots are taken from it."""

    def __init__(self, usage: TargetUsage, share: int | None, now: int, gone: Collection[Place]) -> None:
        self.usage, self.share = usage, share
        self.live = {place.job: place for place in usage.places if place.until > now and place not in gone}
        self.takes: list[Place] = []

    @property
    def room(self) -> int:
        """The number of free slots; negative after the limit was lowered."""
        return 1 if self.share is None else self.share - len(self.live)

    def take(self, place: Place) -> None:
        self.live[place.job] = place
        self.takes.append(place)

    def drops(self) -> tuple[Place, ...]:
        live = set(self.live.values())
        return tuple(place for place in self.usage.places if place not in live) if self.takes else ()

    def change(self) -> UsageChange:
        return UsageChange(self.usage.target, first=not self.usage.stored, takes=tuple(self.takes), drops=self.drops(), most=self.share)


class _Plan:
    """The change of a usage, built up request by request."""

    def __init__(self, usage: TargetUsage, limit: Limiter, now: int, gone: Collection[Place], beside: Mapping[int, TargetUsage]) -> None:
        self.limit, self.now = limit, now
        self.starts = _Cursor.of(usage, limit)
        self.main = _Item(usage, share_of(limit, 0), now, gone)
        self.items = [self.main, *(_Item(each, share_of(limit, number), now, gone) for number, each in beside.items())]
        took_ms = slot_time_ms([item.usage for item in self.items[1:] or self.items], now)
        # The number of further jobs that may wait for a slot in their executor: one, if others wait in the queue.
        # None, of a key: thousands of keys may be full at one moment, and their jobs would fill the executors.
        self.patience = 0 if took_ms > QUICK_MS or is_key(limit.name) else 1 if usage.queued_until > now else limit.concurrency or 0
        self.near_us = 0  # the cursor of the starts must not be beyond this, so that no executor waits long with a job ...
        self.at_once = False  # ... nor beyond its first instant, if a job is to start now: it would start late

    def use(self) -> UsageChange | None:
        """The whole change; None if nothing changes."""
        starts = self.starts.move(self.starts.base_us if self.at_once else self.near_us)
        also = tuple(item.change() for item in self.items[1:] if item.takes)
        use = replace(self.main.change(), starts=starts, also=also)
        if use.is_empty and not also:
            return None
        return replace(use, expires=expiry(self.main.usage, use, self.now)) if is_key(self.limit.name) else use

    def answer(self, ask: Ask) -> Answer:
        """Answer a job that does not have a concurrency slot yet."""
        for each in self.items:
            each.live.pop(ask.job, None)  # the slot of an ended attempt
        # While the first item has more jobs than its share, slots have just moved to further items, or are fewer: those jobs end first.
        item = max(self.items, key=lambda item: item.room) if self.main.room >= 0 else self.main
        has_room = item.room > 0
        if (ask.behind and ask.start is None) or (not has_room and not self._may_wait(ask)):
            return Queue()
        wait = self._wait_for_start(ask)
        if wait is not None:
            return wait
        if not has_room:
            return Full()
        if self.limit.concurrency is None:
            return Start()
        place = Place(ask.job, ask.fence, self.now, self.now + ask.timeout_ms + LEASE_MS)
        item.take(place)
        return Start(place)

    def _may_wait(self, ask: Ask) -> bool:
        """Whether the job may wait for a concurrency slot in its executor."""
        if ask.released or ask.waits or ask.earliest > self.now:
            return True
        self.patience -= 1
        return self.patience >= 0

    def _wait_for_start(self, ask: Ask) -> At | Queue | None:
        """The start that the job has to wait for, or the queue; None: it may start now if a slot is free."""
        now = self.now
        if ask.start is not None and now <= ask.start + late_ms(self.limit):
            return At(ask.start) if ask.start > now else None
        earliest_us = max(ask.earliest, now) * 1_000
        is_far = self.starts.end_us > earliest_us + NEAR_MS * 1_000
        if self.limit.rate is None:
            return At(ask.earliest) if ask.earliest > now else None
        if is_far:
            return Queue()
        self.near_us = self.near_us or earliest_us + NEAR_MS * 1_000
        at = self.starts.give(ask.job, max(self.starts.end_us, earliest_us))
        self.at_once = self.at_once or at <= now
        return At(at) if at > now else None


def _ms(at_us: int) -> int:
    """Microseconds in ms, rounded up: no job starts early."""
    return -(-at_us // 1_000)
