"""The direct path: each user may enqueue jobs at once, up to a fair share of their lane; further jobs go to the overflow slots.

The overflow's dispatcher publishes in fair order, and crowds in packs. So of many jobs that are posted one by one for the same instant, the
first go directly and the others to the overflow. The jobs of one call for one instant are not divided, unless they are due within seconds.
Each process counts on its own: that is cheap, and enough to keep a flood off the direct path, which has no fair order.
"""

import logging
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Lane, Unit, UnitKey, changed
from scheduler.model.work import WorkItem
from scheduler.pipeline import packs
from scheduler.pipeline.overflow import open_unit, unit_of
from scheduler.sharing.fair_queue import Backlog
from scheduler.sharing.window import PUBLISHED_MS
from scheduler.storage.ports import Ports

START_MS = 1_000  # a process sends the work of a unit at most once in this time
LOOK_MS = 1_000  # how long published backlogs are cached
FEW = 20  # up to this number of jobs of a user within a second, the published backlogs are not read
SOON_MS, LATER_MS = 5_000, 60_000  # the overflow has the time to pack jobs that are due later than the first; the second bounds its wait
TOGETHER = 5  # messages of a user that one process sends directly for the same instant: ten processes fill the ready executors
IN_A_CALL = 20  # the same in its first call for that instant: a dispatcher of the overflow stays until the instant, and that costs more
MOST_INSTANTS = 1_000  # counted at once; more are searched for those that have passed
INSTANT_MS = 100  # jobs due within this time are due at the same instant

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: int
    sent: deque[tuple[int, int]] = field(default_factory=deque)  # (instant in ms, jobs) of the last second
    instants: Counter[int] = field(default_factory=Counter)  # messages for each instant, by its number; also of crowds in the overflow


@dataclass(slots=True)
class DirectPath:
    """One process's count of the jobs that its users enqueued directly."""

    ports: Ports
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _backlogs: dict[Lane, tuple[int, list[Backlog]]] = field(default_factory=dict)
    _started_at: dict[UnitKey, int] = field(default_factory=dict)
    _opened: set[UnitKey] = field(default_factory=set)

    def place(self, drafts: Sequence[Job], now: int) -> list[Job]:
        """Return the drafts; those beyond their owner's share of the direct path are moved to the overflow slots.

        The drafts were placed by `slots.place` at `now`.
        """
        soon = sorted((job for job in drafts if slots.is_safety_slot(job.slot, job.due_at)), key=lambda job: job.due_at)
        groups: dict[tuple[str, Lane], list[Job]] = {}
        for job in soon:
            groups.setdefault((job.owner, job.lane), []).append(job)
        over: set[JobKey] = set()
        for (owner, lane), jobs in groups.items():
            alone = self._apart(owner, jobs, now)
            over |= {job.key for job in jobs} - {job.key for job in self._allowed(owner, lane, alone, now)}
        moved = {job.key: slots.overflow(job.shard_key, self.ports.rules.shards) for job in drafts if job.key in over}
        if not moved or not self._open({*moved.values()}, now):
            return list(drafts)
        return [changed(job, slot=moved[job.key]) if job.key in moved else job for job in drafts]

    def start(self, taken: Collection[str]) -> None:
        """Send the work of the overflow's units, after jobs were put into the slots `taken`. Never raises: the tick sends it, too."""
        now = self.ports.clock.now()
        for unit in self._units(taken):
            if now - self._started_at.get(unit.key, -START_MS) < START_MS:
                continue
            self._started_at[unit.key] = now
            try:
                self._send(unit, now)
            except Unavailable as error:
                log.warning("could not send the overflow's work; the tick sends it", extra={"unit": unit.key, "error": str(error)})

    def _send(self, unit: Unit, now: int) -> None:
        """Send the work of a unit, unless a dispatcher has it. If the queue refuses, the tick finds the unit's step due."""
        found = self.ports.ledger.unit(unit.key)
        if found is None:  # the ledger was emptied
            open_unit(unit, self.ports, now)
        elif found.lease_until > now + START_MS:
            return
        if self.ports.work.send([WorkItem.of_unit(unit.key)]) and found is not None:
            self.ports.ledger.change_unit(found, replace(found, next_at=now))

    def _open(self, taken: Collection[str], now: int) -> bool:
        """Return whether the overflow's units of these slots exist, after creating missing ones. Else every job takes the direct path."""
        try:
            for unit in self._units(taken):
                if unit.key not in self._opened:
                    open_unit(unit, self.ports, now)
                    self._opened.add(unit.key)
        except Unavailable as error:
            log.warning("could not open the overflow; jobs take the direct path", extra={"error": str(error)})
            return False
        return True

    def _units(self, taken: Collection[str]) -> list[Unit]:
        """Return the units of the overflow that have these slots."""
        units = [unit_of(slot, self.ports.rules.shards) for slot in sorted(taken)]
        return list({unit.key: unit for unit in units}.values())

    def _apart(self, owner: str, jobs: Sequence[Job], now: int) -> list[Job]:
        """Return the jobs for whose instants this process has sent few messages; the others are a crowd, which the overflow packs."""
        instants, few = self._bucket(owner, now).instants, list[Job]()
        for instant, together in groupby(jobs, key=_instant):
            group = list(together)
            wanted = -(-len(group) // packs.size(len(group), self.ports.rules.ready_executors))
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
        """Return the jobs for which the user's bucket has tokens, and take the tokens. `jobs` are in the order of their due times.

        A crowd is not divided: its few direct messages would be received last, when the packs of the overflow fill the executors.
        """
        bucket = self._bucket(owner, now)
        lately = sum(count for _, count in bucket.sent)
        if lately + len(jobs) > FEW and self._waits(owner, lane, now):
            return []
        allowed, others = list(jobs[: int(bucket.tokens)]), jobs[int(bucket.tokens) :]
        if others and others[0].due_at - now > SOON_MS:
            allowed = [job for job in allowed if _instant(job) != _instant(others[0])]
        bucket.tokens -= len(allowed)
        bucket.sent.append((now, len(allowed)))
        return allowed

    def _bucket(self, owner: str, now: int) -> _Bucket:
        burst, rate = self.ports.rules.direct_burst, self.ports.rules.direct_rate
        if len(self._buckets) > 1_000:  # a full bucket equals a new one
            full = [name for name, each in self._buckets.items() if each.tokens + (now - each.filled_at) * rate / 1000 >= burst]
            for name in full:
                del self._buckets[name]
        bucket = self._buckets.setdefault(owner, _Bucket(burst, now))
        bucket.tokens = min(burst, bucket.tokens + max(now - bucket.filled_at, 0) * rate / 1000)
        bucket.filled_at = now
        while bucket.sent and bucket.sent[0][0] <= now - 1_000:
            bucket.sent.popleft()
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
