"""Dead letters: failed and killed jobs, and the change that schedules one of them again. Pure."""

from scheduler.model import lifecycle, slots
from scheduler.model.job import DeadLetter, Job
from scheduler.model.lifecycle import DEAD, is_open, state
from scheduler.model.operation import Filter


def matches(letter: DeadLetter, filter: Filter) -> bool:
    """Whether task, type and fingerprint match. The caller reads only letters within `since` and `until`."""
    return (
        filter.task in (None, letter.task)
        and filter.type in (None, letter.type)
        and (filter.fingerprint is None or letter.fingerprint == filter.fingerprint)
    )


def is_dead(job: Job) -> bool:
    """Whether the job failed or was killed, so that it may be redriven."""
    return not is_open(job) and state(job) in DEAD


def again(job: Job, now: int, shards: int, by: str | None = None) -> Job:
    """The dead job scheduled again, due at `now`, by the request with the id `by`. Raises IllegalTransition for any other job."""
    return lifecycle.redrive(job, now, slot=slots.place(now, now, job.id, shards).slot, by=by)
