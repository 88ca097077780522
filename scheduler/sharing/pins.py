"""Pinned executors: how many of a lane's executors the long jobs of each user keep busy, and how many a user may. Pure.

An executor takes no further batch until the last job of its batch has ended. So a few long jobs, each in an executor of its own, could
stop a lane although they are a hundredth of the jobs that it can hold. Executors therefore count the users whose jobs run for `LONG_MS`:
one for each executor and user, in counters of a period, which end by themselves if an executor dies. A retry of a job whose last attempt
was long is counted before it starts: a crowd of such retries would fill the lane within the two seconds.

A user may pin `RATIO` times as many executors as are pinned by nobody, per weight of 1. So one user gets three quarters of a lane, two
users three sevenths each, and some executors always remain for the jobs of all others. A job over the bound waits in the overflow. The
dispatcher there knows the counts, and releases it once its owner may pin a further executor.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from scheduler.model.job import FailureKind, Job, Lane
from scheduler.model.pin import Pin

LONG_MS = 2_000  # a job that has run this long pins its executor
PERIOD_MS = 60_000  # of the counters: an executor that goes on moves from the one of the period before to the present one
NO_SIGN = (FailureKind.CRASHED, FailureKind.REFUSED)  # such an attempt lasts until its executor is missed, however short the work is
RATIO = 3.0  # executors that a user of weight 1 may pin for each one that nobody has pinned

Pins = Mapping[Lane, Mapping[str, int]]  # executors by lane and user


def period(now: int) -> int:
    """The number of the period that contains the instant (ms)."""
    return now // PERIOD_MS


def by_owner(found: Iterable[Pin], now: int) -> Pins:
    """The executors that each user pins now: those of this period, and those that still have to move from the period before."""
    pins: dict[Lane, dict[str, int]] = defaultdict(dict)
    present = period(now)
    for pin in found:
        if pin.period >= present - 1 and pin.executors > 0:
            pins[pin.lane][pin.owner] = pins[pin.lane].get(pin.owner, 0) + pin.executors
    return pins


def is_within(mine: int, others: int, executors: int, weight: float = 1.0) -> bool:
    """Whether a user may pin `mine` of the `executors` of a lane while other users pin `others`. A lane of one executor has no bound."""
    return executors <= 1 or mine <= RATIO * weight * (executors - mine - others)


def was_long(job: Job) -> bool:
    """Whether the last attempt of the job was long: the next one probably is, too."""
    if not job.attempts or (last := job.attempts[-1]).failure is None or last.failure.kind in NO_SIGN:
        return False
    return last.ended_at - (last.started_at or last.ended_at) >= LONG_MS
