"""Redrives: jobs that failed or were killed are scheduled again, one by hand or many at a rate. Pure.

A redrive of many jobs is a record with its progress and a lease. The function that processes it writes it under the condition of its
version. Not the record but the fence of each job prevents that a job is redriven twice.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from scheduler.model import ids, lifecycle, slots
from scheduler.model.job import DeadLetter, Job
from scheduler.model.lifecycle import DEAD, is_open, state

DEFAULT_RATE = 50
MAX_RATE = 1_000
MAX_RUNNING = 5  # redrives of one owner at once
CHUNKS_PER_S = 4
MAX_CHUNK = 100
LEASE_MS = 30_000  # a chunk takes a second at most; another invocation takes the redrive over after this
KEPT_S = 90 * 86_400  # how long the record is kept after its end


class State(StrEnum):
    """The state of a redrive."""

    RUNNING = "running"
    DONE = "done"  # it has processed all dead letters, or has reached its limit
    ABORTED = "aborted"  # a user requested it


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of dead letters; None: any. `since` and `until` (ms) apply to the scheduled time, as in all lists."""

    task: str | None = None
    type: str | None = None
    fingerprint: str | None = None
    since: int | None = None
    until: int | None = None  # exclusive

    def matches(self, letter: DeadLetter) -> bool:
        """Whether task, type and fingerprint match. The caller reads only letters within `since` and `until`."""
        return (
            self.task in (None, letter.task)
            and self.type in (None, letter.type)
            and (self.fingerprint is None or letter.fingerprint == self.fingerprint)
        )


@dataclass(frozen=True, slots=True)
class Redrive:
    """One redrive and its progress."""

    owner: str
    id: str
    started_at: int  # a job that failed later is not redriven
    filter: Filter = field(default_factory=Filter)
    rate: int = DEFAULT_RATE  # jobs per second
    limit: int | None = None  # the most jobs to redrive; None: all
    state: State = State.RUNNING
    ended_at: int | None = None
    found: int = 0  # letters that matched the filter so far: redriven and skipped ones
    redriven: int = 0
    skipped: int = 0  # jobs that are not dead any more, or that their task does not allow to run
    after: str | None = None  # the position of the last letter read
    version: int = 1  # rises with every change; every change is conditional on it
    lease_until: int = 0

    @property
    def expires(self) -> int | None:
        """When the record expires (epoch seconds); None while the redrive runs."""
        return None if self.ended_at is None else self.ended_at // 1000 + KEPT_S

    @property
    def chunk(self) -> int:
        """How many jobs to redrive at once. Several chunks a second, so that an abort takes effect soon and the rate stays even."""
        size = max(1, min(self.rate // CHUNKS_PER_S, MAX_CHUNK))
        return size if self.limit is None else max(0, min(size, self.limit - self.redriven))


def new(owner: str, now: int, random: int, filter: Filter, *, rate: int = DEFAULT_RATE, limit: int | None = None) -> Redrive:
    """A redrive that starts at `now`; `random` fills its id: see `ids.new`."""
    return Redrive(owner, ids.new(now, random), now, filter, rate, limit)


def is_dead(job: Job) -> bool:
    """Whether the job failed or was killed, so that it may be redriven."""
    return not is_open(job) and state(job) in DEAD


def again(job: Job, now: int, shards: int, by: str | None = None) -> Job:
    """The dead job scheduled again, due at `now`, by the request with the id `by`. Raises IllegalTransition for any other job."""
    return lifecycle.redrive(job, now, slot=slots.place(now, now, job.shard_key, shards).slot, by=by)
