"""The timer and the entries of the history that go with the write of a monitor."""

import logging

from scheduler.model.errors import Unavailable
from scheduler.model.monitor import Monitor, MonitorTimer
from scheduler.monitors import rules
from scheduler.monitors.timers import set_timer
from scheduler.storage.ports import Ports

log = logging.getLogger(__name__)


def arm(before: Monitor | None, after: Monitor, ports: Ports, now: int) -> None:
    """Arm a timer if the change to `after` needs one. The caller does it before it stores the change. Raises Unavailable."""
    old = None if before is None else rules.wake_at(before, None, now)
    at = rules.wake_at(after, None, now)
    if at is not None and rules.must_arm(old, at, now):
        set_timer(MonitorTimer(at, after.token_hash, now), ports)


def note(monitor: Monitor, events: rules.Events, ports: Ports) -> None:
    """Add to the history. A refusal loses the entries, but not what they report: that is stored by now."""
    try:
        if events:
            ports.monitors.note(monitor, events)
    except Unavailable:
        log.warning("entries of a history are lost", extra={"user_id": monitor.owner, "monitor": monitor.key})
