"""Misfire and expiry: until when a job may start, and what is said of one that could not. Pure.

`start_by` is written when a run is planned, so that at its instant nothing but the job itself has to be known.
"""

from collections.abc import Sequence

from scheduler.model.instants import render
from scheduler.model.job import Job, Misfire, RequeueCause


def plan_start_by(misfire: Misfire, scheduled_at: int, following: Sequence[int], threshold_ms: int, max_catch_up: int) -> int | None:
    """The instant from which on a run of a recurring task is skipped instead of started; None: it always runs.

    `following`: when the runs after it are scheduled, in order: one of them is enough for run_latest, `max_catch_up` for run_all.
    """
    late_from = scheduled_at + threshold_ms
    if misfire is Misfire.SKIP:
        return late_from
    nth = 1 if misfire is Misfire.RUN_LATEST else max_catch_up
    return max(late_from, following[nth - 1]) if len(following) >= nth else None


def expires_at(job: Job) -> int | None:
    """When the job expires by its owner's wish: it is not started, nor tried again, at this instant or later."""
    return None if job.origin is not None and job.origin.misfire is not None else job.start_by


def too_late(job: Job, now: int) -> str | None:
    """Why the job must not start at `now` any more; None if it may.

    A misfire rule is for runs that could not start on time, so it does not judge one that was handed back: it was tried, or
    waited for another. A pause of its lane is no such excuse.
    """
    if job.start_by is None or now < job.start_by:
        return None
    if expires_at(job) is not None:
        return f"expired: it was not to start at {render(job.start_by)} or later" if job.delay_ms is None else None
    tried = job.fence > 1 and (job.requeue_cause is not RequeueCause.PAUSED or bool(job.attempts))
    return None if tried else f"misfire: it could not start before {render(job.start_by)}"
