"""Overlap: whether a run may start while another run of its task has not ended. Pure.

All runs of a task agree on its holder item. It names the run that runs, and holds until that job is final: nobody releases
it, so nobody who dies can leave it locked; who finds it held by a job that is over takes it. A late run that has not started
may leave it to the one before it. It also names the one run that waits. A run that wins a change of the item (they are
conditional) has decided; who loses looks again.
"""

from dataclasses import dataclass, replace

from scheduler.model.job import Holder, Job, Origin, Overlap, TaskKey
from scheduler.model.lifecycle import is_open

REPLACED = "overlap: replaced by a later run"
WAKES = (Overlap.QUEUE_ONE, Overlap.CANCEL_RUNNING)  # policies under which a run may wait for another


@dataclass(frozen=True, slots=True)
class Start:
    """It may start once `hold` is written (None: there is nothing to write); then those in `cancel` are to be cancelled."""

    hold: Holder | None
    cancel: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True)
class Skip:
    """It must not run."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """It waits for the holder's job once `hold` is written; then those in `cancel` are to be cancelled, or flagged if they run."""

    hold: Holder | None
    cancel: tuple[Job, ...] = ()


def decide(job: Job, origin: Origin, holder: Holder | None, holding: Job | None, waiting: Job | None) -> Start | Skip | Wait:
    """What follows for `job` at its instant. `holding` and `waiting` are the jobs that the holder item names, as stored (None: gone)."""
    if holder is None:
        return Start(Holder(TaskKey(job.owner, origin.task), job.id))
    if holder.job == job.id:
        # Who had ended in between may be about to be replaced: a redriven run takes its own place again, or sees that it is gone.
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


def passed_on(holder: Holder, to: str) -> Holder:
    """The item once its run, which has not started, has left the place to that one. Who waits goes on waiting."""
    return replace(holder, job=to, waiting=None if holder.waiting == to else holder.waiting, version=holder.version + 1)


def _take_over(job: Job, origin: Origin, holder: Holder, other: Job | None) -> Start | Skip:
    """The run that waited is on its way but was slower: it waits again, or, where the later run replaces the earlier, goes."""
    if other is not None and origin.overlap is Overlap.CANCEL_RUNNING:
        if other.scheduled_at > job.scheduled_at:
            return Skip(REPLACED)
        return Start(_held(job, holder, None), (other,))
    return Start(_held(job, holder, other))


def _replace(job: Job, holder: Holder, holding: Job, other: Job | None) -> Wait | Skip:
    """The latest run wins, in whatever order they come."""
    if any(each is not None and each.scheduled_at > job.scheduled_at for each in (holding, other)):
        return Skip(REPLACED)
    return Wait(_waits(job, holder), (holding,) if other is None else (holding, other))


def _held(job: Job, holder: Holder, waiting: Job | None) -> Holder:
    return replace(holder, job=job.id, waiting=waiting.id if waiting is not None else None, version=holder.version + 1)


def _waits(job: Job, holder: Holder) -> Holder | None:
    return None if holder.waiting == job.id else replace(holder, waiting=job.id, version=holder.version + 1)
