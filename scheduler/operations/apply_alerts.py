"""Carry the changed default alerts of an owner to the tasks: an operation that replaces the future runs of each task without own ones."""

from dataclasses import dataclass

from scheduler.model.job import TaskKey
from scheduler.model.operation import SETTLED_MS, Candidate, Counts, Operation
from scheduler.model.task import TaskStatus, status
from scheduler.operations import replan
from scheduler.operations.change_tasks import ChangeTasks
from scheduler.storage.ports import Ports
from scheduler.tasks import service

READ = 100  # tasks read at once


@dataclass(frozen=True, slots=True)
class ApplyAlerts:
    """The work of an operation that carries default alerts to the tasks of their owner."""

    ports: Ports
    at_most: int = 25  # one after the other, each with some ten writes

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of tasks; the chosen ones have the default alerts and future runs."""
        page, now = self.ports.tasks.page(operation.owner, after=after, limit=READ), self.ports.clock.now()
        chosen = {task.key for task in page.tasks if task.has_default_alerts and status(task, now) is TaskStatus.ACTIVE}
        return [Candidate(task.id, task.key if task.key in chosen else None) for task in page.tasks], page.cursor

    def key(self, owner: str, id: str) -> TaskKey:
        return TaskKey(owner, id)

    def takes_changes(self, key: TaskKey) -> bool:
        return ChangeTasks(self.ports).takes_changes(key)

    def apply(self, operation: Operation, chosen: list[Candidate]) -> Counts:
        """Replace the future runs of these tasks. A task that was changed after the alerts were stored has runs that follow them."""
        since = operation.started_at + SETTLED_MS
        return replan.each(operation, chosen, lambda key: service.replan(key, self.ports, since=since), self.ports)
