"""Ordering: which job of an ordering key may start. Pure decisions over the beginning of the key's ordering queue.

Each open job has an entry in the queue of its key; entries are sorted by (scheduled time, creation, id). The first job becomes the
head of the queue, and stays it from its start to its end, retries included; the other jobs wait. A failed job whose `on_failure`
is pause leaves its entry in the queue: nothing else marks a paused key.

An entry is written before its job and removed after its job, so it may be without one. Such an entry is respected while it is young,
since its job may be about to be stored or redriven, and is removed after that. So many jobs that are redriven together start in order,
in whatever order the table stores them.
"""

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from scheduler.model import slots
from scheduler.model.job import Job, JobKey, OrderingQueue, OrderKey, QueueEntry, QueueHead
from scheduler.model.lifecycle import DEAD, is_open, state
from scheduler.model.spec import OnFailure

YOUNG_MS = 60_000  # how long an entry may exist before its job is stored, or is rescheduled to it
REDRIVEN_MS = 180_000  # the same until its job is redriven: if a step dies that redrives many, another one continues within this time
LATE_MS, LATEST_MS = 3_600_000, 86_400_000  # a job far back in its queue is checked after three times its wait, within these bounds
NEAR_MS = slots.HORIZON + 2 * slots.MINUTE  # a slot that begins sooner than this is as near as a new slot can be


@dataclass(frozen=True, slots=True)
class Start:
    """The job may start once `head` is written as head of the queue (None: the job is the head already)."""

    head: QueueHead | None
    stale: tuple[QueueEntry, ...] = ()  # entries to remove


@dataclass(frozen=True, slots=True)
class Wait:
    """The job has to wait for the job `blocker`; if `paused`, until a user resumes the key, since `blocker` failed."""

    reason: str
    blocker: JobKey
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Repair:
    """The queue has to be repaired: remove the `stale` entries, write the `missing` one, read the queue again and decide again."""

    stale: tuple[QueueEntry, ...] = ()
    missing: QueueEntry | None = None


@dataclass(frozen=True, slots=True)
class DecideLater:
    """Decide again later: an entry before the job's may belong to a job that is being stored at this moment."""


Decision = Start | Wait | Repair | DecideLater


class _EntryState(Enum):
    """The state of an entry, by its job."""

    JOB = auto()  # it belongs to an open job
    PAUSES = auto()  # it belongs to a failed job that pauses the key
    UNSURE = auto()  # it is without a job, which may be about to be stored or redriven
    STALE = auto()  # it is without a job
    NOT_YET = auto()  # its job may be about to be rescheduled to it


def order_of(job: Job) -> OrderKey:
    """The key of the job's ordering queue. Raises ValueError if the job has no ordering key."""
    if job.spec.ordering is None:
        raise ValueError(f"job {job.id} has no ordering key")
    return OrderKey(job.owner, job.spec.ordering.key)


def entry_of(job: Job, at: int = 0) -> QueueEntry:
    """The job's entry in its ordering queue, written at the instant `at` (ms). Raises ValueError if it has no ordering key."""
    return QueueEntry(order_of(job), job.id, job.scheduled_at, job.created_at, job.redrives, at)


def pauses(job: Job) -> bool:
    """Whether the job has ended in a way that pauses its key."""
    return job.spec.ordering is not None and job.spec.ordering.on_failure is OnFailure.PAUSE and not is_open(job) and state(job) in DEAD


def has_begun(job: Job) -> bool:
    """Whether an attempt has started since the job was created, or since its last redrive."""
    since = job.redriven_at or 0
    return job.charged + job.throttled > 0 or any(each.started_at is not None and each.picked_at >= since for each in job.attempts)


def decide(job: Job, line: OrderingQueue, jobs: Mapping[JobKey, Job], now: int, *, asking: Collection[JobKey] = ()) -> Decision:
    """Decide about the claimed `job` by the beginning of its queue. `jobs`: the existing jobs of the head and the entries.

    `asking`: jobs that the deciding executor has claimed itself, and which therefore have not started under their claims.
    """
    mine, stale = entry_of(job, now), list[QueueEntry]()
    if mine not in line.entries and (not line.more or mine.position < line.entries[-1].position):
        return Repair(missing=mine)
    holds = holding(line, jobs, asking)
    if holds is not None:
        return Start(None) if holds.key == job.key else Wait(after(holds.id), holds.key)
    for each in line.entries:
        if each == mine:
            return Start(_new_head(job, line, now), tuple(stale))
        entry_state = _entry_state(each, jobs.get(each.key), now)
        if entry_state is _EntryState.JOB:
            return Wait(after(each.job), each.key)
        if entry_state is _EntryState.PAUSES:
            return Wait(f"order: its key {each.order.key} is paused, for job {each.job} failed", each.key, paused=True)
        if entry_state is _EntryState.UNSURE:
            return DecideLater()
        if entry_state is _EntryState.STALE:
            stale.append(each)
    return Repair(tuple(stale))  # the job's own entry is behind those that were read


def check_at(job: Job, line: OrderingQueue, now: int, *, paused: bool) -> int | None:
    """When to check a waiting job that no executor enqueues before; None: soon.

    One job of the beginning of a queue is checked soon: it finds a lost wake-up. See `to_watch`. The others wait long, and not until
    the same minute. A paused key waits for its owner alone.
    """
    if not paused and line.entries and line.entries[-1].key == job.key:
        return None
    waited = now - max(job.scheduled_at, job.created_at, job.redriven_at or 0)
    return now + min(max(3 * waited, LATE_MS), LATEST_MS) + zlib.crc32(job.id.encode()) % LATE_MS


def after(job_id: str) -> str:
    """The reason of a job that waits for this one."""
    return f"order: it runs after job {job_id}"


def holding(line: OrderingQueue, jobs: Mapping[JobKey, Job], asking: Collection[JobKey] = ()) -> Job | None:
    """The open job at the head of the queue, if it may be running or has run; else None. A job requeued before it started is not head."""
    job = jobs.get(line.head.key) if line.head is not None else None
    if job is None or not is_open(job):
        return None
    return job if has_begun(job) or (job.claim is not None and job.key not in asking) else None


def next_up(line: OrderingQueue, jobs: Mapping[JobKey, Job]) -> Job | None:
    """The job that may start next, as far as the entries that were read show; None while the queue has a head or the key is paused."""
    if holding(line, jobs) is not None:
        return None
    for each in line.entries:
        job = jobs.get(each.key)
        if job is not None and pauses(job):
            return None
        if job is not None and is_open(job) and entry_of(job) == each:
            return job
    return None


def to_watch(line: OrderingQueue, jobs: Mapping[JobKey, Job], now: int) -> Job | None:
    """The waiting job that needs a near slot now: no other job behind the next one has it. None: one has it, or none waits.

    It is the last one that was read, so that it serves for as many ends as possible.
    """
    following = next_up(line, jobs)
    waiting = [
        job
        for each in line.entries
        if (job := jobs.get(each.key)) is not None and is_open(job) and job.claim is None and job.due_at <= now and entry_of(job) == each
    ]
    if paused_by(line, jobs) or any(_is_near(job, now) for job in waiting if job is not following):
        return None
    return waiting[-1] if waiting and waiting[-1] is not following else None


def _is_near(job: Job, now: int) -> bool:
    slot = job.slot or ""
    return slots.is_always_open(slot) or slots.is_queued(slot) or slots.start_of(slots.minute(slot)) <= now + NEAR_MS


def paused_by(line: OrderingQueue, jobs: Mapping[JobKey, Job]) -> list[QueueEntry]:
    """The entries of the failed jobs that pause the key, in order."""
    return [each for each in line.entries if (job := jobs.get(each.key)) is not None and pauses(job) and entry_of(job) == each]


def _entry_state(each: QueueEntry, job: Job | None, now: int) -> _EntryState:
    is_young = now - each.at < YOUNG_MS
    if job is None:
        return _EntryState.UNSURE if is_young else _EntryState.STALE
    if each.life > job.redrives:  # the job is about to be redriven
        return _EntryState.UNSURE if now - each.at < REDRIVEN_MS else _EntryState.STALE
    if entry_of(job) != each:  # the job was rescheduled or redriven, or is about to be rescheduled
        return _EntryState.NOT_YET if is_young else _EntryState.STALE
    if is_open(job):
        return _EntryState.JOB
    return _EntryState.PAUSES if pauses(job) else _EntryState.STALE


def _new_head(job: Job, line: OrderingQueue, now: int) -> QueueHead:
    """The job as head of the queue, always with another version: a job whose executor has read the version before must not become head."""
    return QueueHead(order_of(job), job.id, now, line.head.version + 1 if line.head is not None else 1)
