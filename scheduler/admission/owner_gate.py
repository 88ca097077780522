"""The gate of jobs of disabled and deleted users: a job of a disabled user waits, a job of a deleted user is cancelled.

The job waits in the user's waiting room (`pipeline.waiting_room`), which nothing polls until the user is enabled or deleted.

All other jobs do not concern the gate. It costs one read of one item per process, at most every `FRESH_MS`, for all users together.
A disable takes effect within a minute: the known users are at most `STALE_MS` old when a batch begins, and a batch holds its jobs for
seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.admission.gate import Cancel, Clear, Requeue, Verdict
from scheduler.model import misfire, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, RequeueCause
from scheduler.storage.cache import Cache
from scheduler.storage.ports import Barred, Ports

FRESH_MS = 10_000  # a process reads the users again after a batch if its last read is older than this ...
STALE_MS = 30_000  # ... and within a batch only if it is older than this
WHY_DISABLED, WHY_DELETED = "its owner is disabled", "its owner was deleted"

NOBODY = Barred()


@dataclass(slots=True)
class BarredOwners:
    """One process's cache of the users whose jobs do not run. It is kept while the table refuses; at first it is empty."""

    ports: Ports
    _users: Cache[None, Barred] = field(init=False)

    def __post_init__(self) -> None:
        self._users = Cache("which users are disabled", self._read, FRESH_MS, backs_off=False)

    @classmethod
    def read(cls, ports: Ports) -> "BarredOwners":
        """Return a cache of the users as they are now. Raises Unavailable."""
        owners = cls(ports)
        owners._users.get(None, ports.clock.now())
        return owners

    def is_due(self, age_ms: int = FRESH_MS) -> bool:
        """Whether the last try to read the users is older than `age_ms`."""
        return self._users.is_due(None, self.ports.clock.now(), age_ms)

    def refresh(self, age_ms: int = FRESH_MS) -> Barred:
        """The users, read again if the last try is older than `age_ms`. Never raises: no job waits because this cannot be read."""
        try:
            return self._users.get(None, self.ports.clock.now(), age_ms)
        except Unavailable:
            return NOBODY

    def _read(self, keys: Sequence[None], now: int) -> dict[None, Barred]:
        try:
            return {None: self.ports.users.barred()}
        except Exception as error:  # a missing grant or setting too: it must not stop all jobs
            raise Unavailable(str(error)) from error


@dataclass(slots=True)
class OwnerGate:
    """See `admission.Gate`. Belongs to one batch, which reads the users once, when it has claimed its jobs."""

    owners: BarredOwners
    ports: Ports
    _barred: Barred | None = field(default=None)

    def concerns(self, job: Job) -> bool:
        if self._barred is None:
            self._barred = self.owners.refresh(STALE_MS)
        return job.owner in self._barred.disabled or job.owner in self._barred.deleted

    def ahead(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        """Return the verdicts, except on jobs that will be too late at their instant: those are skipped then."""
        return self.decide([job for job in jobs if misfire.too_late(job, job.due_at) is None])

    def decide(self, jobs: Sequence[Job]) -> dict[JobKey, Verdict]:
        barred, now = self.owners.refresh(0), self.ports.clock.now()  # an old read sends no job away whose owner was just enabled
        return {job.key: _decide(job, barred, now) for job in jobs}


def _decide(job: Job, barred: Barred, now: int) -> Verdict:
    if job.owner in barred.deleted:
        return Cancel(WHY_DELETED)
    if job.owner in barred.disabled:
        return Requeue(RequeueCause.PAUSED, WHY_DISABLED, room=slots.room_of_owner(job.owner))
    return Clear(now)
