"""Redrive: another life for jobs that failed or were killed, one by hand or many at a rate. Pure.

A redrive of many is a record that whoever works it off changes by its version: chosen letters counted, how far it is, and
until when nobody else need look at it. What keeps a job from being redriven twice is not the record but the job's fence.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from scheduler.model import ids, lifecycle, slots
from scheduler.model.job import Job, Letter
from scheduler.model.lifecycle import DEAD, is_open, state

DEFAULT_RATE = 50
MAX_RATE = 1_000
MAX_RUNNING = 5  # redrives of one owner at once
CHUNKS_PER_S = 4
MAX_CHUNK = 100
LEASE_MS = 30_000  # a chunk takes a second at most; after this, another one takes the redrive over
KEPT_S = 90 * 86_400


class State(StrEnum):
    """What a redrive is doing."""

    RUNNING = "running"
    DONE = "done"  # it has been through all letters, or has reached its limit
    ABORTED = "aborted"  # somebody asked


@dataclass(frozen=True, slots=True)
class Filter:
    """Which letters; `since` and `until` are about their scheduled time, as in all lists."""

    task: str | None = None
    type: str | None = None
    fingerprint: str | None = None
    since: int | None = None
    until: int | None = None  # exclusive

    def matches(self, letter: Letter) -> bool:
        """Whether it is chosen by what it died of; the times are the reader's business."""
        return (
            self.task in (None, letter.task)
            and self.type in (None, letter.type)
            and (self.fingerprint is None or letter.fingerprint == self.fingerprint)
        )


@dataclass(frozen=True, slots=True)
class Redrive:
    """One redrive and how far it is."""

    owner: str
    id: str
    started_at: int  # what failed later is left alone
    filter: Filter = field(default_factory=Filter)
    rate: int = DEFAULT_RATE  # jobs per second
    limit: int | None = None  # jobs redriven
    state: State = State.RUNNING
    ended_at: int | None = None
    found: int = 0  # letters that the filter chose so far: those redriven and those skipped
    redriven: int = 0
    skipped: int = 0  # not dead any more, or their task does not want them
    after: str | None = None  # the position of the last letter looked at
    version: int = 1  # rises with every change, and is what every change is conditional on
    lease_until: int = 0

    @property
    def expires(self) -> int | None:
        """Epoch seconds."""
        return None if self.ended_at is None else self.ended_at // 1000 + KEPT_S

    @property
    def chunk(self) -> int:
        """How many jobs to redrive at once: some chunks a second, so that an abort is soon and the rate smooth."""
        size = max(1, min(self.rate // CHUNKS_PER_S, MAX_CHUNK))
        return size if self.limit is None else max(0, min(size, self.limit - self.redriven))


def new(owner: str, now: int, random: int, filter: Filter, *, rate: int = DEFAULT_RATE, limit: int | None = None) -> Redrive:
    return Redrive(owner, ids.new(now, random), now, filter, rate, limit)


def is_dead(job: Job) -> bool:
    """Whether it failed or was killed, so that it may be redriven."""
    return not is_open(job) and state(job) in DEAD


def again(job: Job, now: int, shards: int) -> Job:
    """The dead job scheduled again, for now, in a slot that is safe."""
    return lifecycle.redrive(job, now, slot=slots.place(now, now, job.shard_key, shards).slot)
