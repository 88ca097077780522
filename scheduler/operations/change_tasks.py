"""Pause, resume or delete many tasks: an operation that reads an owner's tasks, the newest first, and changes those that match."""

import logging
from dataclasses import dataclass, replace

from scheduler.model import ids
from scheduler.model.errors import NotFound, Unavailable
from scheduler.model.job import TaskKey
from scheduler.model.operation import Action, Candidate, Counts, Operation
from scheduler.model.task import Task, TaskStatus, status
from scheduler.storage.ports import Ports, Written
from scheduler.tasks import service

READ = 100  # tasks read at once
STATUSES = {
    Action.PAUSE_TASKS: (TaskStatus.ACTIVE,),
    Action.RESUME_TASKS: (TaskStatus.INACTIVE,),
    Action.DELETE_TASKS: tuple(TaskStatus),
}  # without a filter of statuses

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChangeTasks:
    """The work of an operation that changes tasks."""

    ports: Ports
    at_most: int = 5  # one after the other, each with some ten writes

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of tasks; the chosen tasks match and were created before the start."""
        page, now = self.ports.tasks.page(operation.owner, after=after, limit=READ), self.ports.clock.now()
        return [Candidate(task.id, task.key if _matches(task, operation, now) else None) for task in page.tasks], page.cursor

    def key(self, owner: str, id: str) -> TaskKey:
        return TaskKey(owner, id)

    def takes_changes(self, key: TaskKey) -> bool:
        for task in self.ports.tasks.page(key.owner, after=None, limit=1).tasks:
            absent = replace(task, id=ids.new(ids.time(task.id), 0))  # a task that does not exist: nothing is written
            return self.ports.tasks.move_on([(absent, absent)]) != [Written.REFUSED]
        return True

    def apply(self, operation: Operation, chosen: list[Candidate]) -> Counts:
        """Change these tasks if they still match. An error of one task stops no other."""
        done, failed, refused = 0, 0, list[str]()
        for key in [each.chosen for each in chosen]:
            try:
                done += self._change(operation, key)
            except Unavailable:
                refused.append(key.id)
            except Exception:
                log.exception("could not change a task", extra={"operation_id": operation.id, "task_id": key.id, "user_id": key.owner})
                failed += 1
        return Counts(done, len(chosen) - done - failed - len(refused), failed, tuple(refused))

    def _change(self, operation: Operation, key: TaskKey) -> bool:
        """Whether the task was changed. Its runs that are about to start may still do so for half a second."""
        task = self.ports.tasks.get(key)
        if task is None or not _matches(task, operation, self.ports.clock.now()):
            return key.id in operation.pending and _is_changed(task, operation)
        try:
            if operation.action is Action.PAUSE_TASKS:
                service.deactivate(key, operation.reason, self.ports, settle=False)
            elif operation.action is Action.RESUME_TASKS:
                service.activate(key, self.ports)
            else:
                service.delete(key, self.ports, settle=False)
        except NotFound:
            return False
        return True


def _is_changed(task: Task | None, operation: Operation) -> bool:
    """Whether the operation has probably changed the task and has not counted it: its step died, or the table refused and did it."""
    if operation.action is Action.DELETE_TASKS:
        return task is None
    if task is None or task.updated_at < operation.started_at:
        return False
    return (task.inactive_at is not None) == (operation.action is Action.PAUSE_TASKS)


def _matches(task: Task, operation: Operation, now: int) -> bool:
    filter = operation.filter
    return (
        max(task.created_at, task.updated_at) <= operation.started_at
        and status(task, now) in (filter.statuses or STATUSES[operation.action])
        and (filter.name is None or filter.name.casefold() in task.name.casefold())
        and filter.type in (None, task.spec.type)
        and set(filter.tags) <= set(task.spec.tags)
    )
