"""The operations of owners on calendars: put, read, list, delete. A change of dates starts an operation that carries it to the tasks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from scheduler.model import operation
from scheduler.model.calendar import MOST_CALENDARS, Calendar
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.operation import Action, Filter, Operation
from scheduler.operations import requests
from scheduler.storage.ports import Ports
from scheduler.tasks.calendars import users
from scheduler.tasks.service import PutOutcome

TRIES = 5
RATE = 100  # tasks per second
NAMED = 10  # tasks that a refusal names
COUNTED = 1_000  # tasks that a refusal counts


@dataclass(frozen=True, slots=True)
class PutCalendar:
    """The result of a put. `operation` carries the dates to the tasks; None: all tasks of the calendar have them."""

    calendar: Calendar
    outcome: PutOutcome
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class NewCalendar:
    """The calendar to store."""

    owner: str
    name: str
    days: frozenset[int]
    source: str | None = None
    covers_until: int | None = None


def put(new: NewCalendar, ports: Ports, *, random: int) -> PutCalendar:
    """Store the calendar. Idempotent: a repeated put starts the operation that an earlier one did not start, or that was aborted.

    Raises Conflict if the owner has too many calendars or running operations, Unavailable.
    """
    for _ in range(TRIES):
        stored, now = ports.calendars.named(new.owner, [new.name]).get(new.name), ports.clock.now()
        if stored is None and len(ports.calendars.all(new.owner)) >= MOST_CALENDARS:
            raise Conflict(f"there are {MOST_CALENDARS} calendars already; delete one")
        # A version is never used twice, not even by a calendar that is made after one of its name was deleted.
        version = now if stored is None else stored.version + 1
        after = Calendar(new.owner, new.name, new.days, now, new.source, new.covers_until, version)
        if stored is not None and replace(after, version=stored.version, updated_at=stored.updated_at) == stored:
            after = stored
        is_carried = stored is None or _is_carried(after, ports)
        if not is_carried:
            requests.check_room(new.owner, operations=ports.operations)
        if after != stored and not ports.calendars.put(stored, after):
            continue
        carrying = None if is_carried else _carry(after, ports, random)
        outcome = PutOutcome.CREATED if stored is None else PutOutcome.UNCHANGED if after == stored else PutOutcome.UPDATED
        return PutCalendar(after, outcome, carrying)
    raise Unavailable("other requests keep changing this calendar; try again")


def find(owner: str, name: str, ports: Ports) -> Calendar:
    """Return a calendar. Raises NotFound."""
    found = ports.calendars.named(owner, [name]).get(name)
    if found is None:
        raise NotFound("there is no such calendar")
    return found


def listing(owner: str, ports: Ports) -> Sequence[Calendar]:
    """Return the owner's calendars, by name."""
    return ports.calendars.all(owner)


def delete(owner: str, name: str, ports: Ports) -> Calendar:
    """Delete a calendar that no task uses. Raises NotFound; Conflict, naming the tasks, if one does; Unavailable.

    It is withdrawn first: from then on no other task can take it, so the tasks that are read after that are all there are.
    """
    for _ in range(TRIES):
        stored = find(owner, name, ports)
        _check_unused(stored, ports)
        withdrawn = stored if stored.withdrawn else replace(stored, withdrawn=True, version=stored.version + 1)
        if withdrawn != stored and not ports.calendars.put(stored, withdrawn):
            continue
        try:
            _check_unused(withdrawn, ports)
        except Conflict:
            ports.calendars.put(withdrawn, replace(withdrawn, withdrawn=False, version=withdrawn.version + 1))
            raise
        if ports.calendars.delete(withdrawn):
            return stored
    raise Unavailable("other requests keep changing this calendar; try again")


def _is_carried(calendar: Calendar, ports: Ports) -> bool:
    """Whether all tasks of the calendar have this version."""
    return all(task.calendars[calendar.name] == calendar.version for task in users(calendar.owner, calendar.name, ports))


def _carry(calendar: Calendar, ports: Ports, random: int) -> Operation:
    chosen = Filter(calendar=calendar.name)
    return requests.start(operation.new(calendar.owner, ports.clock.now(), random, Action.APPLY_CALENDAR, chosen, rate=RATE), ports)


def _check_unused(calendar: Calendar, ports: Ports) -> None:
    found = list(islice(users(calendar.owner, calendar.name, ports), COUNTED))
    if not found:
        return
    shown = ", ".join(f"{task.name} ({task.id})" for task in found[:NAMED])
    more = "" if len(found) <= NAMED else " and others"
    count = f"at least {COUNTED} tasks use" if len(found) == COUNTED else f"{len(found)} tasks use" if len(found) > 1 else "a task uses"
    raise Conflict(f"{count} the calendar: {shown}{more}")
