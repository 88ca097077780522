"""The direct path: a short cut for a few jobs of each user; further jobs that are due soon go to the overflow slots.

The overflow's dispatcher publishes in fair order, and crowds in packs; the direct path does neither. A bound that each process keeps by
itself is no bound of all processes, of which a user may meet dozens. So a process has few messages of a user under way: it sends another
one directly once a job of an earlier one has ended. Of jobs due later, it sends as few for each span of `SPAN_MS`, after which executors
have counted the users with long jobs. All processes together thus keep some executors free, however long the jobs take. Nothing goes
directly of a user of whom a dispatcher publishes that jobs wait.

A retry is sent directly only if it is alone and its attempt was short. Several retries of a batch, and redriven jobs, go to the overflow.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from scheduler.model import lifecycle, slots
from scheduler.model.backlog import Backlog
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Lane, Unit, UnitKey, changed
from scheduler.model.work import WorkItem
from scheduler.pipeline import packs
from scheduler.pipeline.overflow_units import unit_of, want
from scheduler.sharing.pins import was_long
from scheduler.sharing.window import PUBLISHED_MS
from scheduler.storage.cache import Cache
from scheduler.storage.ports import Found, Ports

SEEN_MS = 30_000  # the backlogs are read for a user who had jobs within this time; a sporadic job needs no read
START_MS = 1_000  # a process marks a unit as wanted, and sends its work, at most once in this time
CACHED_MS = 1_000  # how long published backlogs are cached
FEW, EACH = 4, 70  # direct messages of a user that a process has under way; more in a lane of more than FEW * EACH executors: one for
# each EACH of them. API processes for a lane of 54, 69 and 306 executors are 5, 12 and 50: so a quarter of the executors stays free.
RETRY_MS = 10_000  # a process sends one retry of a user directly in this time
ASK_MS, SELDOM_MS = 50, 1_000  # between two reads of the jobs under way; the second: while none has ended for long
SOON_MS, LATER_MS = 5_000, 60_000  # the overflow has the time to pack jobs that are due later than the first; the second bounds its wait
TOGETHER = 2  # messages of a user that one process sends directly for the same instant
IN_A_CALL = 5  # the same in its first call for that instant: a dispatcher of the overflow stays until the instant, and that costs more
MOST_INSTANTS = 1_000  # counted at once; more are searched for those that have passed
INSTANT_MS = 100  # jobs due within this time are due at the same instant
SPAN_MS = 5_000  # after this time all executors know the users with long jobs: LONG_MS, a second to the next look, and two of their caches

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: int
    in_flight: list[JobKey] = field(default_factory=list)  # of each direct message one job, until it has ended
    ask_at: int = 0  # when to read these jobs next, at the earliest
    pause_ms: int = ASK_MS
    retry_at: int = 0  # when the next retry may be sent
    seen_at: int | None = None  # when the user last had jobs that were due soon
    instants: Counter[int] = field(default_factory=Counter)  # direct messages for each instant, by its number
    spans: Counter[int] = field(default_factory=Counter)  # ... and for each span


@dataclass(slots=True)
class DirectPath:
    """One process's count of the jobs that its users enqueued directly."""

    ports: Ports
    _buckets: dict[tuple[str, Lane], _Bucket] = field(default_factory=dict)
    _started_at: dict[UnitKey, int] = field(default_factory=dict)
    _requested: dict[UnitKey, tuple[int, bool]] = field(default_factory=dict)  # when it was marked (ms), and whether a dispatcher had it
    _backlogs: Cache[Lane, list[Backlog]] = field(init=False)

    def __post_init__(self) -> None:
        self._backlogs = Cache("backlogs", self._read_backlogs, CACHED_MS)

    def place(self, drafts: Sequence[Job], now: int) -> list[Job]:
        """Return the drafts; those beyond their owner's part of the direct path are moved to the overflow slots.

        The drafts were placed by `slots.place` at `now`.
        """
        soon = sorted((job for job in drafts if slots.is_safety_slot(job.slot, job.due_at)), key=lambda job: job.due_at)
        groups: dict[tuple[str, Lane], list[Job]] = {}
        for job in soon:
            groups.setdefault((job.owner, job.lane), []).append(job)
        over: set[JobKey] = set()
        for (owner, lane), jobs in groups.items():
            alone = jobs if lane is Lane.RETRY else self._apart(owner, lane, jobs, now)
            over |= {job.key for job in jobs} - {job.key for job in self._allowed(owner, lane, alone, now)}
        return self._moved(drafts, over, now)

    def reads(self, owner: str, jobs: int, now: int) -> list[Callable[[], object]]:
        """Return the reads that `place` needs for this number of one-time jobs that are due soon; made before it, they are not made again.

        They do not depend on each other, so a caller can make them beside a call of its own. None of them raises.
        """
        bucket = self._bucket(owner, Lane.ONE_TIME, now)
        if not jobs or int(bucket.tokens) == 0:
            return []
        needed: list[Callable[[], object]] = []
        if self._was_seen(bucket.seen_at, now) and self._backlogs.is_due(Lane.ONE_TIME, now):
            needed.append(lambda: self._backlogs.get(Lane.ONE_TIME, now, 0))
        messages = packs.messages(min(jobs, int(bucket.tokens)), self.ports.rules.ready_executors)
        if self._is_full(bucket, Lane.ONE_TIME, messages, now):
            needed.append(lambda: self._ask(bucket, now))
        return needed

    def divert(self, drafts: Sequence[Job], now: int) -> list[Job]:
        """Return the drafts; all of them that are due soon are moved to the overflow slots."""
        return self._moved(drafts, {job.key for job in drafts if slots.is_safety_slot(job.slot, job.due_at)}, now)

    def _moved(self, drafts: Sequence[Job], over: Collection[JobKey], now: int) -> list[Job]:
        moved = {job.key: slots.overflow(job.id, self.ports.rules.shards) for job in drafts if job.key in over}
        if not moved or not self.want({*moved.values()}, now):
            return list(drafts)
        return [changed(job, slot=moved[job.key]) if job.key in moved else job for job in drafts]

    def start_for(self, stored: Sequence[Job]) -> None:
        """Send the work of the overflow's units that have some of these jobs. Never raises."""
        if taken := {job.slot for job in stored if job.slot is not None and slots.is_overflow(job.slot)}:
            self.start(taken)

    def start(self, taken: Collection[str]) -> None:
        """Send the work of the overflow's units, after jobs were put into the slots `taken`. Never raises: the tick sends it, too."""
        now = self.ports.clock.now()
        for unit in self._units(taken):
            requested_at, is_awake = self._requested.get(unit.key, (0, False))
            is_new = now - self._started_at.get(unit.key, -START_MS) >= START_MS
            if not is_new or (is_awake and now - requested_at < START_MS):
                continue
            self._started_at[unit.key] = now
            try:
                self.ports.work.send([WorkItem.of_unit(unit.key)])
            except Unavailable as error:
                log.warning("could not send the overflow's work; the tick sends it", extra={"unit": unit.key, "error": str(error)})

    def want(self, taken: Collection[str], now: int) -> bool:
        """Mark the units of these slots as wanted; return whether they are. Else no job may be moved there.

        They are slots of the overflow or, for jobs of disabled users, of waiting rooms.
        """
        try:
            for unit in self._units(taken):
                if now - self._requested.get(unit.key, (-START_MS, False))[0] >= START_MS:
                    self._requested[unit.key] = (now, want(unit, self.ports, now))
        except Unavailable as error:
            log.warning("could not mark units as wanted; no job is moved there", extra={"error": str(error)})
            return False
        return True

    def _units(self, taken: Collection[str]) -> list[Unit]:
        """Return the units that have these slots."""
        units = [unit_of(slot, self.ports.rules.shards) for slot in sorted(taken)]
        return list({unit.key: unit for unit in units}.values())

    def _apart(self, owner: str, lane: Lane, jobs: Sequence[Job], now: int) -> list[Job]:
        """Return the jobs for whose instants and spans this process has sent few messages; the overflow packs the others."""
        bucket, few, most = self._bucket(owner, lane, now), list[Job](), self._most(lane)
        instants, spans = bucket.instants, bucket.spans
        for instant, together in groupby(jobs, key=_instant):
            group = list(together)
            needed, ahead, span = packs.messages(len(group), self.ports.rules.ready_executors), group[0].due_at - now, _span(group[0])
            is_crowd = ahead <= LATER_MS and instants[instant] + needed > (TOGETHER if instants[instant] else IN_A_CALL)
            if ahead > SOON_MS and (is_crowd or (spans[span] and spans[span] + needed > most)):
                continue
            instants[instant] += needed
            spans[span] += needed
            few += group
        if len(instants) > MOST_INSTANTS:
            bucket.instants = Counter({each: count for each, count in instants.items() if each * INSTANT_MS >= now})
            bucket.spans = Counter({each: count for each, count in spans.items() if (each + 1) * SPAN_MS >= now})
        return few

    def _allowed(self, owner: str, lane: Lane, jobs: Sequence[Job], now: int) -> list[Job]:
        """Return the jobs to send directly, and take their tokens. `jobs` are in the order of their due times.

        A crowd is not divided: its few direct messages would be received last, when the packs of the overflow fill the executors.
        """
        bucket = self._bucket(owner, lane, now)
        seen_at, bucket.seen_at = bucket.seen_at, now
        if not jobs or (self._was_seen(seen_at, now) and self._waits(owner, lane, now)):
            return []
        if lane is Lane.RETRY:
            allowed = list(jobs) if len(jobs) == 1 and now >= bucket.retry_at and not was_long(jobs[0]) else []
            if allowed:
                bucket.retry_at = now + RETRY_MS
            return allowed
        allowed, others = list(jobs[: int(bucket.tokens)]), jobs[int(bucket.tokens) :]
        if others and others[0].due_at - now > SOON_MS:
            allowed = [job for job in allowed if _instant(job) != _instant(others[0])]
        soon = [job for job in allowed if job.due_at - now <= SOON_MS]
        ready = self.ports.rules.ready_executors
        soon = soon[: packs.most_in(self._left(bucket, lane, packs.messages(len(soon), ready), now), ready)]
        if soon:
            each = packs.direct(len(soon), ready)
            bucket.in_flight += [job.key for job in soon[::each]]
        allowed = soon + [job for job in allowed if job.due_at - now > SOON_MS]
        bucket.tokens -= len(allowed)
        return allowed

    def _most(self, lane: Lane) -> int:
        return max(FEW, (self.ports.rules.executors_of(lane) or 0) // EACH)

    def _left(self, bucket: _Bucket, lane: Lane, needed: int, now: int) -> int:
        """Return how many messages may be sent; jobs that are under way are read for it, if there are too many and it is time."""
        if self._is_full(bucket, lane, needed, now):
            self._ask(bucket, now)
        return max(self._most(lane) - len(bucket.in_flight), 0)

    def _is_full(self, bucket: _Bucket, lane: Lane, needed: int, now: int) -> bool:
        """Return whether too many messages seem to be under way, and it is time to read whether their jobs have ended."""
        return bool(bucket.in_flight) and len(bucket.in_flight) + needed > self._most(lane) and now >= bucket.ask_at

    def _ask(self, bucket: _Bucket, now: int) -> None:
        before = len(bucket.in_flight)
        try:
            found = self.ports.jobs.get_many(bucket.in_flight)
            bucket.in_flight = [key for key in bucket.in_flight if _is_in_flight(found, key)]
        except Unavailable:
            pass
        bucket.pause_ms = ASK_MS if len(bucket.in_flight) < before else min(bucket.pause_ms * 2, SELDOM_MS)
        bucket.ask_at = now + bucket.pause_ms

    def _bucket(self, owner: str, lane: Lane, now: int) -> _Bucket:
        burst, rate = self.ports.rules.direct_burst, self.ports.rules.direct_rate
        if len(self._buckets) > 1_000:  # a full bucket equals a new one
            old = [of for of, each in self._buckets.items() if each.tokens + (now - each.filled_at) * rate / 1000 >= burst]
            for of in [of for of in old if now - self._buckets[of].filled_at >= RETRY_MS]:
                del self._buckets[of]
        bucket = self._buckets.setdefault((owner, lane), _Bucket(burst, now))
        passed = max(now - bucket.filled_at, 0)
        bucket.tokens = min(burst, bucket.tokens + passed * rate / 1000)
        bucket.filled_at = now
        return bucket

    def _waits(self, owner: str, lane: Lane, now: int) -> bool:
        """Return whether jobs of the user wait in a dispatcher until that lane has room for them."""
        return any(owner in backlog.users for backlog in self._backlogs.get(lane, now))

    def _read_backlogs(self, lanes: Sequence[Lane], now: int) -> dict[Lane, list[Backlog]]:
        return {lane: self._published(lane, now) for lane in lanes}

    def _published(self, lane: Lane, now: int) -> list[Backlog]:
        try:
            return self.ports.ledger.backlogs(lane, now - PUBLISHED_MS)
        except Unavailable:  # former backlogs would keep users from the direct path whose jobs no longer wait
            return []

    @staticmethod
    def _was_seen(seen_at: int | None, now: int) -> bool:
        """Return whether the user had jobs lately that were due soon."""
        return seen_at is not None and now - seen_at < SEEN_MS


def _instant(job: Job) -> int:
    """The number of the instant at which the job is due."""
    return job.due_at // INSTANT_MS


def _span(job: Job) -> int:
    """The number of the span in which the job is due."""
    return job.due_at // SPAN_MS


def _is_in_flight(found: Found[JobKey, Job], key: JobKey) -> bool:
    """Whether the job waits or runs, as far as is known. One that was just posted may not be stored yet."""
    return key in found.unreadable or key not in found or lifecycle.first_end(found[key]) is None
