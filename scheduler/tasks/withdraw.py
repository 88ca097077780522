"""Take away the runs of a generation that is over, and see to it that none of them still starts."""

import logging
from collections.abc import Sequence

from scheduler.admission.gate import READ_WINDOW_MS
from scheduler.model.errors import Unavailable
from scheduler.model.job import JobKey, OrderKey
from scheduler.storage.ports import Jobs, Orders, Ports, Written
from scheduler.tasks.planning import to_withdraw
from scheduler.tasks.task import Task

TRIES = 3
MARKERS = 2_000  # of a line, read to find those of the runs; what is left is taken away by who comes to it
STARTED_MS = 100  # from the decision to start a run to its first effect

log = logging.getLogger(__name__)


def withdraw_runs(old: Task, ports: Ports) -> None:
    """Take away the future runs of the generation of `old`; the task has a newer one already, or is gone.

    Their ids are derived, so no lagging index can hide one. What an executor has claimed cannot be taken away: it reads the
    generation before it starts a run, at most `READ_WINDOW_MS` before. When this returns whoever read the old one has started.
    What is due already stays: it is cancelled where it would start, so that every time that came has its record.
    """
    if old.inactive_at is not None:
        return
    now = ports.clock.now()
    runs = to_withdraw(old, now)
    stay = withdraw(runs, ports.jobs)
    if old.spec.ordering is not None:
        _step_out(OrderKey(old.owner, old.spec.ordering.key), set(runs) - set(stay), ports.orders)
    ports.clock.sleep_until(now + READ_WINDOW_MS + STARTED_MS)


def withdraw(keys: Sequence[JobKey], jobs: Jobs) -> list[JobKey]:
    """Take these runs away. Answers those that stay: claimed, ended, or refused; the generation of their task holds them back."""
    stay, left = list[JobKey](), list(keys)
    for _ in range(TRIES):
        try:
            held = jobs.withdraw(left) if left else []
        except Unavailable:
            continue
        stay += [key for key, gone in zip(left, held, strict=True) if gone is Written.NO]
        left = [key for key, gone in zip(left, held, strict=True) if gone is Written.REFUSED]
    if left:
        log.warning("runs of an older generation stay for now", extra={"runs": len(left), "first": left[0]})
    return stay + left


def _step_out(order: OrderKey, gone: set[JobKey], orders: Orders) -> None:
    """Take away the markers of runs that are gone: their places are known to the line alone, by when each was planned."""
    try:
        line = orders.lines([order], limit=MARKERS)[order]
        orders.leave([marker for marker in line.markers if marker.key in gone])
    except Unavailable:
        log.info("markers stay for now; who comes to them takes them away", extra={"runs": len(gone)})
