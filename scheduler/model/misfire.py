"""Misfire and expiry: the start deadline of a job, and the reason of a job that missed it. Pure.

Planning writes the deadline into the run as `start_by`, so that the executor decides by the job alone.
"""

from collections.abc import Sequence

from scheduler.model import lifecycle
from scheduler.model.instants import render
from scheduler.model.job import Job, Misfire, RequeueCause


def plan_start_by(misfire: Misfire, scheduled_at: int, following: Sequence[int], threshold_ms: int, max_catch_up: int) -> int | None:
    """The start deadline of a run of a recurring task (ms): from then on it is skipped instead of started. None: it always runs.

    `following` has the scheduled times of the runs after it, in order: `run_latest` reads one of them, `run_all` `max_catch_up`.
    """
    late_from = scheduled_at + threshold_ms
    if misfire is Misfire.SKIP:
        return late_from
    nth = 1 if misfire is Misfire.RUN_LATEST else max_catch_up
    return max(late_from, following[nth - 1]) if len(following) >= nth else None


def missed_with(last: Job, count: int, since: int, why: str | None = None) -> str:
    """The reason of the run that represents `count` runs from the instant `since` up to itself, none of which became a job.

    `why` None: the misfire rule.
    """
    why = why or f"misfire: it could not start before {render(last.start_by or last.scheduled_at)}"
    if count == 1:
        return f"{why}: nothing was planned then"
    return f"{why}; it stands for {count:,} missed runs, the first of {render(since)}: nothing was planned then"


def is_missed(job: Job) -> bool:
    """Whether the run was skipped at its start deadline or after it: by its misfire rule, or because nothing was planned."""
    return job.origin is not None and job.skipped_at is not None and job.start_by is not None and job.skipped_at >= job.start_by


def expires_at(job: Job) -> int | None:
    """The expiry that the job's owner set (ms), None without one. The job is neither started nor retried at this instant or later."""
    return None if job.origin is not None and job.origin.misfire is not None else job.start_by


def too_late(job: Job, now: int) -> str | None:
    """The reason why the job must not start at `now`; None if it may.

    A misfire rule is for runs that could not start on time. It therefore does not apply to a run that was retried or requeued: an
    executor has tried it, or it waited for another job. A run that was requeued only because its lane was paused, or its owner disabled,
    is still late. So is a job of which nothing is known but executors that died, the last one before the start.
    """
    if job.start_by is None or now < job.start_by:
        return None
    died, paused = lifecycle.has_only_died(job), job.requeue_cause is RequeueCause.PAUSED
    if expires_at(job) is not None:
        return f"expired: it was not to start at {render(job.start_by)} or later" if job.delay_ms is None or died else None
    waited = paused or job.fence == lifecycle.next_attempt(job)  # for nothing else: no other requeue has raised its fence
    tried = job.fence > 1 and not (waited and (died or not job.attempts))
    return None if tried else f"misfire: it could not start before {render(job.start_by)}"
