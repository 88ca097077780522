"""The default alerts of an owner: read and put. A change starts an operation that carries it to the tasks."""

from dataclasses import dataclass, replace

from scheduler.model import operation
from scheduler.model.alerts import Alerts, DefaultAlerts
from scheduler.model.errors import Unavailable
from scheduler.model.operation import RETENTION_S, Action, Filter, Operation, State
from scheduler.operations import requests
from scheduler.storage.ports import Ports
from scheduler.tasks.service import PutOutcome

TRIES = 5
RATE = 100  # tasks per second


@dataclass(frozen=True, slots=True)
class PutAlerts:
    """The result of a put. `operation` carries the alerts to the tasks; None: it has begun before, or there is nothing to carry."""

    alerts: DefaultAlerts | None
    outcome: PutOutcome
    operation: Operation | None = None


def find(owner: str, ports: Ports) -> DefaultAlerts | None:
    """Return the default alerts of an owner, None if they were never set."""
    return ports.owner_alerts.of([owner]).get(owner)


def put(owner: str, alerts: Alerts, ports: Ports, *, random: int) -> PutAlerts:
    """Store the default alerts. Idempotent: a repeated put starts the operation that an earlier one did not start, or that was aborted.

    Raises Conflict if the owner has too many running operations, Unavailable.
    """
    for _ in range(TRIES):
        stored, now = find(owner, ports), ports.clock.now()
        is_same = alerts == (Alerts() if stored is None else stored.alerts)
        if is_same and (stored is None or _is_carried(stored, ports, now)):
            return PutAlerts(stored, PutOutcome.UNCHANGED)
        requests.check_room(owner, operations=ports.operations)
        carrying = operation.new(owner, now, random, Action.APPLY_ALERTS, Filter(), rate=RATE)
        if stored is None:
            after = DefaultAlerts(owner, alerts, now, carrying.id)
        else:
            after = replace(stored, alerts=alerts, updated_at=now, operation=carrying.id, version=stored.version + 1)
        if ports.owner_alerts.put(stored, after):
            requests.start(carrying, ports)
            outcome = PutOutcome.CREATED if stored is None else PutOutcome.UNCHANGED if is_same else PutOutcome.UPDATED
            return PutAlerts(after, outcome, carrying)
    raise Unavailable("other requests keep changing the default alerts; try again")


def _is_carried(alerts: DefaultAlerts, ports: Ports, now: int) -> bool:
    """Whether the operation of these alerts has begun, and was not aborted. The record of an old one may have expired."""
    found = ports.operations.get(alerts.owner, alerts.operation)
    return now - alerts.updated_at > RETENTION_S * 1_000 if found is None else found.state is not State.ABORTED
