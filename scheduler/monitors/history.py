"""The history of a monitor: the pings of its pulse, and the entries that are stored apart."""

from scheduler.model.monitor import EventKind, Monitor, MonitorEvent
from scheduler.storage.ports import Ports

MOST = 100


def of(monitor: Monitor, ports: Ports) -> list[MonitorEvent]:
    """The last pings and changes, newest first. A ping that is stored apart is not repeated. Raises Unavailable."""
    apart = ports.monitors.history(monitor, MOST)
    known = {(event.at, event.kind) for event in apart}
    recent = [MonitorEvent(each.at, 0, EventKind(each.kind.value), duration_ms=each.duration_ms) for each in monitor.pulse.recent]
    found = apart + [event for event in recent if (event.at, event.kind) not in known]
    return sorted(found, key=lambda event: (event.at, event.number), reverse=True)[:MOST]
