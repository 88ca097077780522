"""Take away the runs of a generation that is over, and see to it that none of them still starts."""

import logging
from collections.abc import Sequence

from scheduler.errors import Unavailable
from scheduler.model import JobKey
from scheduler.planning import to_withdraw
from scheduler.ports import Clock, Jobs
from scheduler.services.execute import READ_WINDOW_MS
from scheduler.task import Task

TRIES = 3
STARTED_MS = 100  # from the decision to start a run to its first effect

log = logging.getLogger(__name__)


def withdraw_runs(old: Task, *, jobs: Jobs, clock: Clock) -> None:
    """Take away the future runs of the generation of `old`; the task has a newer one already, or is gone.

    Their ids are derived, so no lagging index can hide one. What an executor has claimed cannot be taken away: it reads the
    generation before it starts a run, at most `READ_WINDOW_MS` before. When this returns whoever read the old one has started.
    What is due already stays: it is cancelled where it would start, so that every time that came has its record.
    """
    if old.inactive_at is not None:
        return
    now = clock.now()
    withdraw(to_withdraw(old, now), jobs)
    clock.sleep_until(now + READ_WINDOW_MS + STARTED_MS)


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
