"""Carry the dates of a changed calendar to its tasks: an operation that replaces the future runs of each task with older dates."""

from dataclasses import dataclass

from scheduler.model.job import TaskKey
from scheduler.model.operation import Candidate, Counts, Operation
from scheduler.operations import replan
from scheduler.operations.change_tasks import ChangeTasks
from scheduler.storage.ports import Ports
from scheduler.tasks import service

READ = 100  # tasks read at once


@dataclass(frozen=True, slots=True)
class ApplyCalendar:
    """The work of an operation that carries a calendar to its tasks."""

    ports: Ports
    at_most: int = 25  # one after the other, each with some ten writes

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of the tasks of the calendar; the chosen ones have another version of it."""
        name = operation.filter.calendar
        assert name is not None
        keys, cursor = self.ports.calendars.tasks(operation.owner, name, after=after, limit=READ)
        found, calendar = self.ports.tasks.get_many(keys), self.ports.calendars.named(operation.owner, [name]).get(name)
        older = {key for key, task in found.items() if calendar is not None and task.calendars.get(name) != calendar.version}
        return [Candidate(key.id, key if key in older else None) for key in keys], cursor

    def key(self, owner: str, id: str) -> TaskKey:
        return TaskKey(owner, id)

    def takes_changes(self, key: TaskKey) -> bool:
        return ChangeTasks(self.ports).takes_changes(key)

    def apply(self, operation: Operation, chosen: list[Candidate]) -> Counts:
        """Replace the future runs of these tasks."""
        return replan.each(operation, chosen, lambda key: service.refresh(key, self.ports), self.ports)
