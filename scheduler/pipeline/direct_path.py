"""The direct path: a short cut for a few jobs of each user; further jobs that are due soon go to the overflow slots.

The overflow's dispatcher publishes in fair order, and crowds in packs; the direct path does neither. A bound that each process keeps by
itself is no bound of all processes, of which a user may meet dozens. So a process sends only a few messages of a user directly, of as
many jobs as fit into them, unless it sees that the user's jobs are quick: a job that it sent directly before has ended shortly after its
time. Then no lane is behind, and none of its executors is kept busy. Nothing goes directly of a user of whom a dispatcher publishes that
jobs wait.

A retry is sent directly only if it is alone and its attempt was short. Several retries of a batch, and redriven jobs, go to the overflow.
"""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from scheduler.model import lifecycle, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import FailureKind, Job, JobKey, Lane, Unit, UnitKey, changed
from scheduler.model.work import WorkItem
from scheduler.pipeline import packs
from scheduler.pipeline.overflow import unit_of, want
from scheduler.sharing.fair_queue import Backlog
from scheduler.sharing.pins import LONG_MS
from scheduler.sharing.window import PUBLISHED_MS
from scheduler.storage.ports import Ports

SEEN_MS = 30_000  # the backlogs are read for a user who had jobs within this time; a sporadic job needs no read
START_MS = 1_000  # a process marks a unit as wanted, and sends its work, at most once in this time
LOOK_MS = 1_000  # how long published backlogs are cached
FEW, EACH = 2, 100  # messages of a user that a process sends directly without a sign that the jobs are quick; more in a lane of more
# than FEW * EACH executors: one for each EACH of them. Fifty processes then keep half of the executors free.
FILL_MS, RETRY_FILL_MS = 1_000, 10_000  # after this time the process may send one message more; the second: one retry
QUICK_MS = 500  # a job is quick that ends at most this long after its time ...
QUICK_FOR_MS = 1_000  # ... and a sign for so long that the jobs of its owner are quick
ASK_MS, MOST_SIGNS = 200, 10  # between two reads of jobs that may be such signs, and their number
SOON_MS, LATER_MS = 5_000, 60_000  # the overflow has the time to pack jobs that are due later than the first; the second bounds its wait
TOGETHER = 2  # messages of a user that one process sends directly for the same instant
IN_A_CALL = 5  # the same in its first call for that instant: a dispatcher of the overflow stays until the instant, and that costs more
NO_SIGN = (FailureKind.CRASHED, FailureKind.REFUSED)  # such an attempt lasts until its executor is missed, however short the work is
MOST_INSTANTS = 1_000  # counted at once; more are searched for those that have passed
INSTANT_MS = 100  # jobs due within this time are due at the same instant

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    few: float  # messages that may be sent without a sign that the jobs are quick
    filled_at: int
    signs: dict[JobKey, int] = field(default_factory=dict)  # jobs sent directly, and when they were due: whether they end shortly after it
    asked_at: int = 0
    quick_until: int = 0
    seen_at: int | None = None  # when the user last had jobs that were due soon
    instants: Counter[int] = field(default_factory=Counter)  # messages for each instant, by its number; also of crowds in the overflow


@dataclass(slots=True)
class DirectPath:
    """One process's count of the jobs that its users enqueued directly."""

    ports: Ports
    _buckets: dict[tuple[str, Lane], _Bucket] = field(default_factory=dict)
    _backlogs: dict[Lane, tuple[int, list[Backlog]]] = field(default_factory=dict)
    _started_at: dict[UnitKey, int] = field(default_factory=dict)
    _wanted: dict[UnitKey, tuple[int, bool]] = field(default_factory=dict)  # when it was marked (ms), and whether a dispatcher had it

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

    def divert(self, drafts: Sequence[Job], now: int) -> list[Job]:
        """Return the drafts; all of them that are due soon are moved to the overflow slots."""
        return self._moved(drafts, {job.key for job in drafts if slots.is_safety_slot(job.slot, job.due_at)}, now)

    def _moved(self, drafts: Sequence[Job], over: Collection[JobKey], now: int) -> list[Job]:
        moved = {job.key: slots.overflow(job.id, self.ports.rules.shards) for job in drafts if job.key in over}
        if not moved or not self._want({*moved.values()}, now):
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
            wanted_at, is_awake = self._wanted.get(unit.key, (0, False))
            is_new = now - self._started_at.get(unit.key, -START_MS) >= START_MS
            if not is_new or (is_awake and now - wanted_at < START_MS):
                continue
            self._started_at[unit.key] = now
            try:
                self.ports.work.send([WorkItem.of_unit(unit.key)])
            except Unavailable as error:
                log.warning("could not send the overflow's work; the tick sends it", extra={"unit": unit.key, "error": str(error)})

    def _want(self, taken: Collection[str], now: int) -> bool:
        """Mark the overflow's units of these slots as wanted; return whether they are. Else every job takes the direct path."""
        try:
            for unit in self._units(taken):
                if now - self._wanted.get(unit.key, (-START_MS, False))[0] >= START_MS:
                    self._wanted[unit.key] = (now, want(unit, self.ports, now))
        except Unavailable as error:
            log.warning("could not open the overflow; jobs take the direct path", extra={"error": str(error)})
            return False
        return True

    def _units(self, taken: Collection[str]) -> list[Unit]:
        """Return the units of the overflow that have these slots."""
        units = [unit_of(slot, self.ports.rules.shards) for slot in sorted(taken)]
        return list({unit.key: unit for unit in units}.values())

    def _apart(self, owner: str, lane: Lane, jobs: Sequence[Job], now: int) -> list[Job]:
        """Return the jobs for whose instants this process has sent few messages; the others are a crowd, which the overflow packs."""
        instants, few = self._bucket(owner, lane, now).instants, list[Job]()
        for instant, together in groupby(jobs, key=_instant):
            group = list(together)
            wanted = packs.messages(len(group), self.ports.rules.ready_executors)
            most = TOGETHER if instants[instant] else IN_A_CALL
            if SOON_MS < group[0].due_at - now <= LATER_MS and instants[instant] + wanted > most:
                continue
            instants[instant] += wanted
            few += group
        if len(instants) > MOST_INSTANTS:
            for instant in [each for each in instants if each * INSTANT_MS < now]:
                del instants[instant]
        return few

    def _allowed(self, owner: str, lane: Lane, jobs: Sequence[Job], now: int) -> list[Job]:
        """Return the jobs to send directly, and take their tokens. `jobs` are in the order of their due times.

        A crowd is not divided: its few direct messages would be received last, when the packs of the overflow fill the executors.
        """
        bucket = self._bucket(owner, lane, now)
        seen_at, bucket.seen_at = bucket.seen_at, now
        if not jobs or (seen_at is not None and now - seen_at < SEEN_MS and self._waits(owner, lane, now)):
            return []
        if lane is Lane.RETRY:
            allowed = list(jobs) if len(jobs) == 1 and bucket.few >= 1 and not _was_long(jobs[0]) else []
            bucket.few -= len(allowed)
            return allowed
        allowed, others = list(jobs[: int(bucket.tokens)]), jobs[int(bucket.tokens) :]
        if others and others[0].due_at - now > SOON_MS:
            allowed = [job for job in allowed if _instant(job) != _instant(others[0])]
        soon = [job for job in allowed if job.due_at - now <= SOON_MS]
        ready, few = self.ports.rules.ready_executors, int(bucket.few)
        if packs.messages(len(soon), ready) > few and not self._is_quick(bucket, now):
            soon = soon[: packs.most_in(few)]
        bucket.few = max(bucket.few - packs.messages(len(soon), ready), 0)
        for job in (soon[0], soon[-1]) if soon and len(bucket.signs) < MOST_SIGNS else ():
            bucket.signs[job.key] = max(now, job.due_at)
        allowed = soon + [job for job in allowed if job.due_at - now > SOON_MS]
        bucket.tokens -= len(allowed)
        return allowed

    def _is_quick(self, bucket: _Bucket, now: int) -> bool:
        """Return whether the jobs of the user are quick, by those that were sent directly lately. One that is not says more than others."""
        if bucket.signs and now - bucket.asked_at >= ASK_MS:
            bucket.asked_at = now
            try:
                found = self.ports.jobs.get_many(list(bucket.signs))
            except Unavailable:
                return now < bucket.quick_until
            ends = {key: lifecycle.first_end(found[key]) if key in found else 0 for key in bucket.signs}
            slow = [key for key, due_at in bucket.signs.items() if (now if (at := ends[key]) is None else at) - due_at > QUICK_MS]
            if slow:
                bucket.quick_until = 0
            elif any(ends.values()):
                bucket.quick_until = now + QUICK_FOR_MS
            bucket.signs = {key: due_at for key, due_at in bucket.signs.items() if ends[key] is None}
        return now < bucket.quick_until

    def _most_few(self, lane: Lane) -> int:
        return 1 if lane is Lane.RETRY else max(FEW, (self.ports.rules.executors_of(lane) or 0) // EACH)

    def _bucket(self, owner: str, lane: Lane, now: int) -> _Bucket:
        burst, rate, few = self.ports.rules.direct_burst, self.ports.rules.direct_rate, self._most_few(lane)
        fill_ms = RETRY_FILL_MS if lane is Lane.RETRY else FILL_MS
        if len(self._buckets) > 1_000:  # a full bucket equals a new one
            old = [of for of, each in self._buckets.items() if each.tokens + (now - each.filled_at) * rate / 1000 >= burst]
            for of in [of for of in old if now - self._buckets[of].filled_at >= RETRY_FILL_MS]:
                del self._buckets[of]
        bucket = self._buckets.setdefault((owner, lane), _Bucket(burst, few, now))
        passed = max(now - bucket.filled_at, 0)
        bucket.tokens, bucket.few = min(burst, bucket.tokens + passed * rate / 1000), min(few, bucket.few + passed / fill_ms)
        bucket.filled_at = now
        return bucket

    def _waits(self, owner: str, lane: Lane, now: int) -> bool:
        """Return whether jobs of the user wait in a dispatcher until that lane has room for them."""
        read_at, found = self._backlogs.get(lane, (None, []))
        if read_at is None or not 0 <= now - read_at < LOOK_MS:
            try:
                found = self.ports.ledger.backlogs(lane, now - PUBLISHED_MS)
            except Unavailable:
                found = []
            self._backlogs[lane] = (now, found)
        return any(owner in backlog.users for backlog in found)


def _instant(job: Job) -> int:
    """The number of the instant at which the job is due."""
    return job.due_at // INSTANT_MS


def _was_long(job: Job) -> bool:
    """Whether the last attempt of the job was long: the next one probably is, too."""
    if not job.attempts or (last := job.attempts[-1]).failure is None or last.failure.kind in NO_SIGN:
        return False
    return last.ended_at - (last.started_at or last.ended_at) >= LONG_MS
