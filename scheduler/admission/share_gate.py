"""The gate of users with long jobs: a user pins at most a share of the executors of a lane. The rule is `sharing.pins`.

The jobs of a user without a long job in the lane concern no gate and cost no write. An executor counts each user one of whose jobs has
run for `LONG_MS`. While a user is counted, the executor of a further job of the user takes its place before the job starts, reads the
counts again, and gives way if they are beyond the bound; so the bound holds however far apart long jobs start. The same holds for a job
whose last attempt was long, whether its user is counted or not. No lock is needed.

A job that gives way waits in the overflow. The dispatcher there knows the counts, too, and keeps the job until one of the user's ends.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.admission.gate import Clear, Requeue, Verdict
from scheduler.admission.lane_state import LaneStateCache
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Lane, RequeueCause
from scheduler.sharing import fair_queue, pins
from scheduler.storage.ports import Ports

WHY = "its owner's long jobs use their share of the executors"
CHECK_MS = 1_000  # how often an executor checks which of its jobs have become long

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ShareGate:
    """See `admission.Gate`. Belongs to one batch: it counts the users whose jobs pin this executor."""

    lane: Lane
    pauses: LaneStateCache
    ports: Ports
    _pinned: dict[str, int] = field(default_factory=dict)  # the period of each user's count of this executor
    _known: Mapping[str, int] | None = None  # the users counted when the batch began
    _check_at: int = 0

    def concerns(self, job: Job) -> bool:
        if self._known is None:
            self._known = self.pauses.pins.get(self.lane, {})
        return job.owner in self._known or pins.was_long(job)

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return the verdicts on jobs that may start. The others are asked about again at their instant: a place may be free by then."""
        return {key: verdict for key, verdict in self.decide(jobs).items() if isinstance(verdict, Clear)}

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        now = self.ports.clock.now()
        full = {owner for owner in sorted({job.owner for job in jobs}) if not self._take(owner)}
        back = Requeue(RequeueCause.SHARE, WHY, at=now)
        return {job.key: back if job.owner in full else Clear(now) for job in jobs}

    def is_due(self, now: int) -> bool:
        """Return whether it is time for `check`."""
        return now >= self._check_at

    def check(self, long: Collection[str], here: Collection[str]) -> None:
        """Count the users `long`, whose jobs have become long; stop counting those who have no job `here` any more."""
        now = self.ports.clock.now()
        self._check_at, period = now + CHECK_MS, pins.period(now)
        for owner in sorted(self._pinned.keys() - here):
            self._count(owner, self._pinned.pop(owner), -1)
        for owner, counted in [(owner, self._pinned.get(owner)) for owner in sorted({*long, *self._pinned})]:
            if counted != period and self._count(owner, period, 1):
                self._pinned[owner] = period
                if counted is not None:
                    self._count(owner, counted, -1)

    def close(self) -> None:
        """Stop counting: the batch is over."""
        for owner, period in self._pinned.items():
            self._count(owner, period, -1)
        self._pinned.clear()

    def _take(self, owner: str) -> bool:
        """Return whether the user may pin this executor; it is counted then. While the ledger refuses, nobody gives way."""
        executors = self.ports.rules.executors_of(self.lane)
        if owner in self._pinned or executors is None:
            return True
        period = pins.period(self.ports.clock.now())
        if not self._count(owner, period, 1):
            return True
        self._pinned[owner] = period
        if self._fits(owner, executors):
            return True
        self._count(owner, self._pinned.pop(owner), -1)
        return False

    def _fits(self, owner: str, executors: int) -> bool:
        try:
            counts = pins.by_owner(self.ports.ledger.watched().pins, self.ports.clock.now()).get(self.lane, {})
            weight = self.ports.users.weights([owner]).get(owner, fair_queue.DEFAULT_WEIGHT)
        except Unavailable:
            return True
        mine = counts.get(owner, 0)
        return pins.is_within(mine, sum(counts.values()) - mine, executors, max(weight, fair_queue.LEAST_WEIGHT))

    def _count(self, owner: str, period: int, by: int) -> bool:
        try:
            self.ports.ledger.pin(self.lane, owner, period, by)
        except Unavailable as error:
            log.info("could not count an executor of a user; its period ends soon", extra={"user_id": owner, "error": str(error)})
            return False
        return True
