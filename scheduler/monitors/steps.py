"""The steps of the worker for monitors and watched runs: a partition of timers, and what they need each minute."""

from collections.abc import Callable

from scheduler.model.work import WorkDelivery, WorkKind
from scheduler.monitors import ping_intake
from scheduler.monitors.ping_intake import Reachable
from scheduler.storage.ports import Ports
from scheduler.tasks import run_timers


def step(
    delivery: WorkDelivery,
    ports: Ports,
    hide: Callable[[], None],
    *,
    reachable: Reachable = lambda: True,
    note_lag: Callable[[int], object] = lambda ms: None,
) -> int | None:
    """Carry out a message: of timers, or of the minute. Returns None: it has no next step. Raises Unavailable.

    `note_lag` gets the delay (ms) of a watched run that is judged late.
    """
    if delivery.item.kind is WorkKind.MONITOR:
        from scheduler.monitors.judge import wake  # it loads schedules: a cold start of the worker has no time for them

        wake(int(delivery.item.part), ports)
    elif delivery.item.kind is WorkKind.RUN_TIMERS:
        from scheduler.notify import watch_runs

        watch_runs.wake(delivery.item, ports, note_lag)
    elif delivery.item.kind is WorkKind.REQUEST_TIMERS:
        run_timers.resume(delivery.item, ports, ports.clock.now())
    else:
        try:
            ping_intake.minute(ports, reachable)
        finally:
            run_timers.request(ports, ports.clock.now())
    return None
