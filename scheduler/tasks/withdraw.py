"""Withdraw the runs of an old generation of a task, so that none of them starts."""

import logging
from collections.abc import Sequence

from scheduler.admission.gate import READ_WINDOW_MS
from scheduler.jobs import stock
from scheduler.model.errors import Unavailable
from scheduler.model.job import JobKey, OrderKey
from scheduler.model.task import Task
from scheduler.storage.ports import Jobs, OrderingQueues, Ports, Written
from scheduler.tasks.planning import to_withdraw

TRIES = 3
ENTRIES_READ = 2_000  # entries read of an ordering queue to find those of the runs; executors remove the rest when they read them
STARTED_MS = 100  # allowed time from the decision to start a run to its first effect

log = logging.getLogger(__name__)


def withdraw_runs(old: Task, ports: Ports, *, settle: bool = True) -> None:
    """Withdraw the future runs of the generation of `old`; the task already has a newer generation, or is deleted.

    Their ids are derived, so no lagging index can hide a run. A run that an executor has claimed cannot be withdrawn: the executor
    reads the generation at most `READ_WINDOW_MS` before it starts the run. When this returns, every executor that read the old
    generation has started its run, unless `settle` is False: then this does not wait for it. A due run stays: its executor cancels
    it instead of starting it, so that every past time has its record.
    """
    if old.inactive_at is not None:
        return
    now = ports.clock.now()
    runs = to_withdraw(old, now)
    stay = withdraw(runs, ports.jobs)
    stock.free(old.owner, len(runs) - len(stay), ports)
    if old.spec.ordering is not None:
        _step_out(OrderKey(old.owner, old.spec.ordering.key), set(runs) - set(stay), ports.orders)
    if settle:
        _settle(now, ports)


def settle(ports: Ports) -> None:
    """Wait until no executor starts a run that it has read before, of a generation that is over."""
    _settle(ports.clock.now(), ports)


def _settle(since: int, ports: Ports) -> None:
    ports.clock.sleep_until(since + READ_WINDOW_MS + STARTED_MS)


def withdraw(keys: Sequence[JobKey], jobs: Jobs) -> list[JobKey]:
    """Withdraw these runs. Returns the runs that stay: claimed, ended, or refused. The new generation stops their start."""
    stay, left = list[JobKey](), list(keys)
    for _ in range(TRIES):
        try:
            results = jobs.withdraw(left) if left else []
        except Unavailable:
            continue
        stay += [key for key, gone in zip(left, results, strict=True) if gone is Written.NO]
        left = [key for key, gone in zip(left, results, strict=True) if gone is Written.REFUSED]
    if left:
        log.warning("could not withdraw runs of an older generation; executors cancel them", extra={"runs": len(left), "first": left[0]})
    return stay + left


def _step_out(order: OrderKey, gone: set[JobKey], orders: OrderingQueues) -> None:
    """Remove the entries of withdrawn runs: only the queue knows their positions, which follow from when each was planned."""
    try:
        line = orders.lines([order], limit=ENTRIES_READ)[order]
        orders.leave([entry for entry in line.entries if entry.key in gone])
    except Unavailable:
        log.info("could not remove ordering entries; the next executor that reads them will", extra={"runs": len(gone)})
