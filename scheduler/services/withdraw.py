"""Take away the runs of a generation that is over, and see to it that none of them still starts."""

import logging
from collections.abc import Sequence

from scheduler.errors import Unavailable
from scheduler.model import JobKey
from scheduler.planning import near_or_to_come
from scheduler.ports import Clock, Jobs
from scheduler.services.execute import READ_WINDOW_MS
from scheduler.task import Task

TRIES = 3
STARTED_BY_MS = 100  # after its instant, a run whose executor read the old generation has started

log = logging.getLogger(__name__)


def withdraw_runs(old: Task, *, jobs: Jobs, clock: Clock) -> None:
    """Take away the future runs of the generation of `old`; the task has a newer one already, or is gone.

    Their ids are derived, so no lagging index can hide one. What an executor has claimed cannot be taken away: it reads the
    generation just before the instant, and may have done so just before it was raised. When this returns that instant is over.
    What is due already stays: it is cancelled where it would start, so that every time that came has its record.
    """
    now = clock.now()
    runs = near_or_to_come(old, now, now - STARTED_BY_MS)
    left = withdraw([key for key, at in runs.items() if at > now], jobs)
    near = [at for key, at in runs.items() if at <= now or (at <= now + READ_WINDOW_MS and key in left)]
    if near:
        clock.sleep_until(max(near) + STARTED_BY_MS)


def withdraw(keys: Sequence[JobKey], jobs: Jobs) -> list[JobKey]:
    """Take these runs away. Answers those that stay: claimed, ended, or refused; the generation of their task holds them back."""
    stay, left = list[JobKey](), list(keys)
    for _ in range(TRIES):
        try:
            held = jobs.withdraw(left) if left else []
        except Unavailable:
            continue
        stay += [key for key, gone in zip(left, held, strict=True) if gone is False]
        left = [key for key, gone in zip(left, held, strict=True) if gone is None]
    if left:
        log.warning("runs of an older generation stay for now", extra={"runs": len(left), "first": left[0]})
    return stay + left
