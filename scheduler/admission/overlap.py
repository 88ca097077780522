"""Overlap: whether a run may start while another run of its task has not ended. Pure.

All runs of a task share one item, the run lock. It names the run that may run, and is valid until that job is final. No executor
releases it, so an executor that ends early cannot leave it locked: the next run takes a lock whose job has ended. A late run that has not
started may pass the lock on to the run before it. The item also names the one run that waits. Every change of the item is
conditional on its version; an executor whose change is refused reads the item again and decides again.
"""

from dataclasses import dataclass, replace

from scheduler.model.job import Job, Overlap, RunInfo, RunLock, TaskKey
from scheduler.model.lifecycle import is_open

REPLACED = "overlap: replaced by a later run"
WAKES = (Overlap.QUEUE_ONE, Overlap.CANCEL_RUNNING)  # the rules under which a run may wait for another


@dataclass(frozen=True, slots=True)
class Start:
    """The jobs in `cancel` are to be cancelled; then the run may start once `hold` is written (None: nothing is to be written)."""

    hold: RunLock | None
    cancel: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """The run must not start, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """The jobs in `cancel` are to be cancelled; for those that run, a cancel is to be requested.

    Then the run waits for the job that has the lock, once `hold` is written (None: nothing is to be written).
    """

    hold: RunLock | None
    cancel: tuple[Job, ...] = ()


def decide(job: Job, origin: RunInfo, holder: RunLock | None, holding: Job | None, waiting: Job | None) -> Start | Skip | Wait:
    """Decide about the run `job` at its instant. `holding` and `waiting` are the jobs that the run lock names, as stored (None: gone)."""
    if holder is None:
        return Start(RunLock(TaskKey(job.owner, origin.task), job.id))
    if holder.job == job.id:
        # Another run may be about to take the lock, since this one had ended before its redrive: the write shows which of them has it.
        return Start(replace(holder, version=holder.version + 1) if job.redrives else None)
    other = waiting if waiting is not None and is_open(waiting) and waiting.id != job.id else None
    if holding is None or not is_open(holding):
        return _take_over(job, origin, holder, other)
    if origin.overlap is Overlap.CANCEL_RUNNING:
        return _replace(job, holder, holding, other)
    if origin.overlap is Overlap.QUEUE_ONE and other is None:
        return Wait(_waits(job, holder))
    queued = f", and run {other.id} waits for it" if other is not None and origin.overlap is Overlap.QUEUE_ONE else ""
    return Skip(f"overlap: run {holding.id} has not ended{queued}")


def passed_on(holder: RunLock, to: str) -> RunLock:
    """The run lock after its run, which has not started, passed it on to the job `to`. A run that waits continues to wait."""
    return replace(holder, job=to, waiting=None if holder.waiting == to else holder.waiting, version=holder.version + 1)


def _take_over(job: Job, origin: RunInfo, holder: RunLock, other: Job | None) -> Start | Skip:
    """Take the lock of a job that has ended, although the waiting run `other` has been enqueued and was slower.

    `other` waits again; if the later run replaces the earlier one, the earlier of the two is dropped.
    """
    if other is not None and origin.overlap is Overlap.CANCEL_RUNNING:
        if _is_later(other, job):
            return Skip(REPLACED)
        return Start(_locked(job, holder, None), (other,))
    return Start(_locked(job, holder, other))


def _replace(job: Job, holder: RunLock, holding: Job, other: Job | None) -> Wait | Skip:
    """The run with the latest scheduled time wins, in any order of arrival."""
    if any(each is not None and _is_later(each, job) for each in (holding, other)):
        return Skip(REPLACED)
    return Wait(_waits(job, holder), (holding,) if other is None else (holding, other))


def _is_later(one: Job, other: Job) -> bool:
    """Whether `one` replaces the other. Of two runs of one instant, one never replaces the other and is replaced by it."""
    return (one.scheduled_at, one.id) > (other.scheduled_at, other.id)


def _locked(job: Job, holder: RunLock, waiting: Job | None) -> RunLock:
    return replace(holder, job=job.id, waiting=waiting.id if waiting is not None else None, version=holder.version + 1)


def _waits(job: Job, holder: RunLock) -> RunLock | None:
    return None if holder.waiting == job.id else replace(holder, waiting=job.id, version=holder.version + 1)
