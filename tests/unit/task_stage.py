"""The stage with tasks on it: the verbs of services.tasks, top-ups and plan, over memory ports."""

from dataclasses import dataclass
from typing import Any

from scheduler.model.job import Job, JobKey, Receipt, TaskKey
from scheduler.model.task import Task
from scheduler.tasks import service
from scheduler.tasks.plan import PlanResult, plan
from scheduler.tasks.schedule import after
from scheduler.tasks.service import NewTask
from scheduler.tasks.top_up import TopUp
from tests.conftest import with_spec
from tests.unit.stage import Stage


@dataclass
class TaskStage(Stage):
    """Ports may be replaced by `Wrapped` ones here too."""

    def new(self, schedule: dict[str, Any] | None, **fields: Any) -> NewTask:
        chosen: dict[str, Any] = {"owner": "ann", "name": "a task", "schedule": schedule}
        return NewTask(**with_spec(chosen | fields))

    def create(self, schedule: dict[str, Any] | None, *, receipt: Receipt | None = None, **fields: Any) -> Task:
        self.requests += 1
        return service.create(self.new(schedule, **fields), self, random=self.requests, receipt=receipt)

    def edit(self, task: Task, schedule: dict[str, Any] | None, *, generation: int | None = None, **fields: Any) -> Task:
        return service.edit(task.key, self.new(schedule, **fields), self, generation=generation)

    def top_up(self, task: Task | TaskKey) -> TopUp:
        """The handling of one task by plan."""
        work = TopUp(self)
        found = self.tasks.get(task.key if isinstance(task, Task) else task)
        work.top_up([found] if found else [])
        return work

    def plan(self) -> PlanResult:
        return plan(self)

    def task(self, task: Task) -> Task:
        found: Task | None = self.tasks.get(task.key)
        assert found is not None
        return found

    def runs(self, task: Task, generation: int | None = None) -> list[Job]:
        """Every stored run of the task (of one generation), by time."""
        rows: dict[JobKey, Job] = self.jobs.rows
        found = [job for job in rows.values() if job.origin is not None and job.origin.task == task.id]
        return sorted((job for job in found if generation in (None, job.origin and job.origin.generation)), key=lambda job: job.id)

    def times(self, task: Task, generation: int | None = None) -> list[int]:
        """The instants of the runs by the schedule."""
        return [job.scheduled_at for job in self.runs(task, generation) if job.origin and job.origin.nominal_at is not None]


def nominal_times(task: Task, since: int, until: int) -> list[int]:
    """When the task runs after the one instant and up to the other, by its schedule."""
    assert task.schedule is not None
    found = []
    for run in after(task.schedule, since, seed=task.id):
        if run.nominal > until:
            break
        found.append(run.at)
    return found
