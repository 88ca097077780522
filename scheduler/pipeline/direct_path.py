"""Who may hand a job to its lane directly: everyone, up to a fair share of it. What is beyond goes to the intake, which keeps order.

Counted by each process on its own: cheap, and enough to turn a flood away from the path that nothing can hold back.
"""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, Lane
from scheduler.pipeline.overflow import INTAKE, open_intake
from scheduler.sharing.fair_queue import Backlog
from scheduler.sharing.window import PUBLISHED_MS
from scheduler.storage.ports import Ports

START_MS = 1_000  # a process starts the intake no more often
LOOK_MS = 1_000  # how long published backlogs are taken for the present ones
FEW = 20  # jobs of a user within a second that nobody asks about

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: int
    sent: deque[tuple[int, int]] = field(default_factory=deque)  # (instant, jobs) of the last second


@dataclass(slots=True)
class DirectPath:
    """One process's view of its users' direct hand-overs."""

    ports: Ports
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _backlogs: dict[Lane, tuple[int, list[Backlog]]] = field(default_factory=dict)
    _started_at: int | None = None
    _opened: bool = False

    def place(self, drafts: Sequence[Job], now: int) -> list[Job]:
        """The drafts, placed by `slots.place` at `now`, of which those beyond their owner's share of the direct path go to the intake."""
        soon = sorted((job for job in drafts if slots.is_net(job.slot, job.due_at)), key=lambda job: job.due_at)
        groups: dict[tuple[str, Lane], list[Job]] = {}
        for job in soon:
            groups.setdefault((job.owner, job.lane), []).append(job)
        over = {job.key for (owner, lane), jobs in groups.items() for job in jobs[self._allowed(owner, lane, len(jobs), now) :]}
        if not over or not self._open(now):
            return list(drafts)
        return [replace(job, slot=slots.intake(job.shard_key, self.ports.rules.shards)) if job.key in over else job for job in drafts]

    def start(self) -> None:
        """Jobs were put into the intake: start its dispatcher. Never raises: the tick does so, too."""
        now = self.ports.clock.now()
        if self._started_at is not None and 0 <= now - self._started_at < START_MS:
            return
        self._started_at = now
        try:
            self.ports.functions.start_dispatch(INTAKE)
        except Unavailable as error:
            log.warning("the intake is not started; the next tick does", extra={"error": str(error)})

    def _open(self, now: int) -> bool:
        """Whether the intake is there. Without it, everyone has the direct path."""
        if not self._opened:
            try:
                open_intake(self.ports, now)
                self._opened = True
            except Unavailable as error:
                log.warning("the intake cannot be opened for now", extra={"error": str(error)})
        return self._opened

    def _allowed(self, owner: str, lane: Lane, wanted: int, now: int) -> int:
        bucket = self._bucket(owner, now)
        lately = sum(jobs for _, jobs in bucket.sent)
        if lately + wanted > FEW and self._waits(owner, lane, now):
            return 0
        allowed = min(wanted, int(bucket.tokens))
        bucket.tokens -= allowed
        bucket.sent.append((now, allowed))
        return allowed

    def _bucket(self, owner: str, now: int) -> _Bucket:
        burst, rate = self.ports.rules.direct_burst, self.ports.rules.direct_rate
        if len(self._buckets) > 1_000:  # full ones say nothing
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
        """Whether jobs of the user wait in a dispatcher for their turn in that lane."""
        asked_at, found = self._backlogs.get(lane, (None, []))
        if asked_at is None or not 0 <= now - asked_at < LOOK_MS:
            try:
                found = self.ports.ledger.backlogs(lane, now - PUBLISHED_MS)
            except Unavailable:
                found = []
            self._backlogs[lane] = (now, found)
        return any(owner in backlog.users for backlog in found)
