"""The calendars of tasks: reads those that a schedule names, and brings the copies of a task up to date."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from scheduler.model.calendar import Calendar
from scheduler.model.task import Task
from scheduler.storage.ports import Ports
from scheduler.tasks import calendar_form

PAGE = 100


def named_in(form: Mapping[str, object] | None, owner: str, ports: Ports, *, used: Collection[str] = ()) -> dict[str, Calendar]:
    """The owner's calendars that the form of a schedule names. One that is being deleted is absent, unless it is `used` already."""
    names = calendar_form.names(form)
    found = ports.calendars.named(owner, names) if names else {}
    return {name: each for name, each in found.items() if name in used or not each.withdrawn}


def refreshed(task: Task, ports: Ports) -> Task:
    """The task with the present dates of its calendars."""
    if not task.calendars:
        return task
    assert task.schedule is not None and task.schedule.days is not None
    present, rule = ports.calendars.named(task.owner, list(task.calendars)), task.schedule.days
    copies = tuple(calendar_form.copy(present[each.name]) if each.name in present else each for each in rule.listed)
    return replace(task, schedule=replace(task.schedule, days=replace(rule, listed=copies)))


def users(owner: str, name: str, ports: Ports) -> Iterator[Task]:
    """The tasks that use a calendar, by id."""
    after: str | None = None
    while True:
        keys, after = ports.calendars.tasks(owner, name, after=after, limit=PAGE)
        found = ports.tasks.get_many(keys)
        yield from (found[key] for key in keys if key in found and name in found[key].calendars)
        if after is None:
            return
