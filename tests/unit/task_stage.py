"""The stage with tasks on it: the verbs of services.tasks, top-ups and plan, over memory ports."""

from dataclasses import dataclass, field
from typing import Any

from scheduler.model.job import Job, JobKey, Receipt, TaskKey
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.tasks import service
from scheduler.tasks.plan import PlanResult, plan
from scheduler.tasks.schedule import after
from scheduler.tasks.service import NewTask, World
from scheduler.tasks.task import Task
from scheduler.tasks.top_up import TopUp
from tests.conftest import with_spec
from tests.unit.stage import Stage


@dataclass
class TaskStage(Stage):
    """Ports may be replaced by `Wrapped` ones here too."""

    receipts: Any = field(default_factory=MemoryReceipts)
    tasks: Any = None

    def __post_init__(self) -> None:
        self.tasks = self.tasks or MemoryTasks(self.jobs, self.receipts)

    @property
    def world(self) -> World:
        return World(self.tasks, self.jobs, self.orders, self.lanes, self.receipts, self.clock, self.rules)

    def new(self, schedule: dict[str, Any] | None, **fields: Any) -> NewTask:
        chosen: dict[str, Any] = {"owner": "ann", "name": "a task", "schedule": schedule}
        return NewTask(**with_spec(chosen | fields))

    def create(self, schedule: dict[str, Any] | None, *, receipt: Receipt | None = None, **fields: Any) -> Task:
        self.requests += 1
        return service.create(self.new(schedule, **fields), self.world, random=self.requests, receipt=receipt)

    def edit(self, task: Task, schedule: dict[str, Any] | None, *, generation: int | None = None, **fields: Any) -> Task:
        return service.edit(task.key, self.new(schedule, **fields), self.world, generation=generation)

    def top_up(self, task: Task | TaskKey) -> TopUp:
        """What plan does with a task it finds."""
        work = TopUp(self.tasks, self.jobs, self.orders, self.lanes, self.clock, self.rules)
        found = self.tasks.get(task.key if isinstance(task, Task) else task)
        work.top_up([found] if found else [])
        return work

    def plan(self) -> PlanResult:
        return plan(
            tasks=self.tasks, jobs=self.jobs, orders=self.orders, lanes=self.lanes, ledger=self.ledger, clock=self.clock, rules=self.rules
        )

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
        """The instants of those that the schedule named."""
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
