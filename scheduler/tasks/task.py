"""A task: what to run, and when. Its runs are jobs; hot functions know of it only what `model.Origin` and `model.TaskHead` say."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduler.model.job import Lane, Misfire, Overlap, TaskHead, TaskKey
from scheduler.model.notifications import Notifications
from scheduler.model.spec import JobSpec
from scheduler.tasks.schedule import Once, Schedule

STORED_WITH_IT = 10  # runs that are stored in one transaction with their task


class TaskStatus(StrEnum):
    """What a task is doing. Never stored: `status` derives it."""

    ACTIVE = "active"  # runs of it are to come
    INACTIVE = "inactive"  # a person paused it
    ENDED = "ended"  # its schedule has no more runs, or its one run is in the past


@dataclass(frozen=True, slots=True)
class Task:
    """What to run, and when. `schedule` None: at once, when it is created.

    Runs are stored ahead. `planned_until` says how far: every run with a nominal time up to it is stored as a job (or was), and
    none beyond it. Every edit, pause and resume raises `generation` and plans anew; runs of an older one do not start any more.
    """

    owner: str
    id: str
    name: str
    spec: JobSpec
    schedule: Schedule | None
    created_at: int
    updated_at: int
    description: str | None = None
    overlap: Overlap = Overlap.SKIP
    misfire: Misfire = Misfire.RUN_LATEST
    misfire_threshold_ms: int = 60_000  # a start this much after its time is a misfire
    max_catch_up: int = 100  # with run_all: how many of the missed runs run, the last ones
    notifications: Notifications | None = None  # who is told of its runs; None: nobody
    generation: int = 1
    inactive_at: int | None = None
    inactive_reason: str | None = None
    planned_until: int = 0
    planned: int = 0  # how many runs that are in all, for `max_runs`
    replenish: str | None = None  # slot (minute # shard) of the replenish index; None: there is nothing more to plan

    @property
    def key(self) -> TaskKey:
        return TaskKey(self.owner, self.id)

    @property
    def head(self) -> TaskHead:
        return TaskHead(self.generation, self.inactive_at, self.inactive_reason)

    @property
    def is_recurring(self) -> bool:
        return self.schedule is not None and not isinstance(self.schedule.spec, Once)

    @property
    def lane(self) -> Lane:
        return Lane.RECURRING if self.is_recurring else Lane.ONE_TIME


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of tasks and the cursor of the next one (None at the end)."""

    tasks: list[Task] = field(default_factory=list)
    cursor: str | None = None


def planned_as(task: Task, other: Task) -> Task:
    """The task, planned as far as the other."""
    return replace(task, planned_until=other.planned_until, planned=other.planned, replenish=other.replenish)


def status(task: Task, now: int) -> TaskStatus:
    """What the task is doing at `now`. A task whose every run is stored has ended once the last of them is due."""
    if task.inactive_at is not None:
        return TaskStatus.INACTIVE
    return TaskStatus.ACTIVE if task.replenish is not None or task.planned_until > now else TaskStatus.ENDED
