"""The gate of jobs of disabled and deleted users: a job of a disabled user waits, a job of a deleted user is cancelled.

All other jobs do not concern the gate. It costs one read of one item per process, at most every `FRESH_MS`, for all users together.
A disable takes effect within a minute: the known users are at most `STALE_MS` old when a batch begins, and a batch holds its jobs for
seconds.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.admission.gate import Cancel, Requeue, Verdict
from scheduler.model import misfire
from scheduler.model.job import Job, JobKey, RequeueCause
from scheduler.storage.ports import Barred, Ports

FRESH_MS = 10_000  # a process reads the users again after a batch if its last read is older than this ...
STALE_MS = 30_000  # ... and within a batch only if it is older than this
SOON_MS, SELDOM_MS = 60_000, 900_000  # a waiting job is checked again after an eighth of the time that it has waited, within these bounds
WHY_DISABLED, WHY_DELETED = "its owner is disabled", "its owner was deleted"

NOBODY = Barred()

log = logging.getLogger(__name__)


@dataclass(slots=True)
class BarredOwners:
    """One process's cache of the users whose jobs do not run. It is kept while the table refuses; at first it is empty."""

    ports: Ports
    known: Barred = NOBODY
    _tried_at: int | None = None

    def look(self, age_ms: int = FRESH_MS) -> Barred:
        """The users, read again if the last try is older than `age_ms`. Never raises: no job waits because this cannot be read."""
        now = self.ports.clock.now()
        if self._tried_at is None or not 0 <= now - self._tried_at < age_ms:
            self._tried_at = now
            try:
                self.known = self.ports.users.barred()
            except Exception as error:  # a missing grant or setting too: it must not stop all jobs
                log.warning("could not read which users are disabled", extra={"error": str(error)})
        return self.known


@dataclass(slots=True)
class OwnerGate:
    """See `admission.Gate`. Belongs to one batch, which reads the users once, when it has claimed its jobs."""

    owners: BarredOwners
    ports: Ports
    _barred: Barred | None = field(default=None)

    def concerns(self, job: Job) -> bool:
        if self._barred is None:
            self._barred = self.owners.look(STALE_MS)
        return job.owner in self._barred.disabled or job.owner in self._barred.deleted

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return the verdicts, except on jobs that will be too late at their instant: those are skipped then."""
        return self.decide([job for job in jobs if misfire.too_late(job, job.due_at) is None])

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        deleted = (self._barred or NOBODY).deleted
        now = self.ports.clock.now()
        return {job.key: Cancel(WHY_DELETED) if job.owner in deleted else _wait(job, now) for job in jobs}


def _wait(job: Job, now: int) -> Requeue:
    """The requeue of a job of a disabled user, checked again after a part of the time that it has waited."""
    wait = min(max((now - job.scheduled_at) // 8, SOON_MS), SELDOM_MS)
    return Requeue(RequeueCause.PAUSED, WHY_DISABLED, at=max(job.due_at, now) + wait)
