"""What people do with tasks: create, edit, pause, resume, delete, run now, look ahead, search."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler.model import Job, Misfire, Overlap, Receipt, TaskKey
from scheduler.ports import Clock, Jobs, Lanes, Receipts, Tasks
from scheduler.rules import Rules
from scheduler.schedule import Run
from scheduler.task import Task, TaskPage, TaskStatus


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task as its owner asks for it; all but `schedule` is validated already. None where the default is wanted."""

    owner: str
    name: str
    type: str
    payload: Mapping[str, Any]
    schedule: Mapping[str, object] | None = None  # as `schedule_form.parse` takes it; None: at once
    description: str | None = None
    tags: tuple[str, ...] = ()
    overlap: Overlap | None = None  # recurring: skip; else allow
    misfire: Misfire | None = None  # of recurring tasks only
    misfire_threshold_ms: int | None = None
    max_catch_up: int | None = None
    max_attempts: int = 3
    timeout_ms: int = 300_000
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class World:
    """The ports that the verbs of this module need."""

    tasks: Tasks
    jobs: Jobs
    lanes: Lanes
    receipts: Receipts
    clock: Clock
    rules: Rules


@dataclass(frozen=True, slots=True)
class Search:
    """Which tasks of an owner. `name`: part of the name, in any case."""

    owner: str
    name: str | None = None
    tag: str | None = None
    type: str | None = None
    status: TaskStatus | None = None
    limit: int = 20
    cursor: str | None = None


def create(new: NewTask, world: World, *, random: int, receipt: Receipt | None = None) -> Task:
    """Store the task with its next runs, and hand over those that are due soon.

    With a `receipt` whose key was used before for the same request, the task as it was answered then, and nothing is stored.
    Raises Invalid (fields of the schedule are led by `schedule.`), Conflict for a key used for another request, Unavailable.
    """
    raise NotImplementedError


def edit(key: TaskKey, new: NewTask, world: World, *, generation: int | None = None) -> Task:
    """Replace the task; its runs that have not started are replaced by those of the new schedule when this returns.

    Raises NotFound, Invalid, Unavailable, and Conflict if the task has another generation than the one given.
    """
    raise NotImplementedError


def deactivate(key: TaskKey, reason: str | None, world: World) -> Task:
    """Pause: its future runs are taken away, and none starts any more when this returns. Idempotent. Raises NotFound, Unavailable."""
    raise NotImplementedError


def activate(key: TaskKey, world: World) -> Task:
    """Resume: plan from now on. What would have run meanwhile does not. Idempotent. Raises NotFound, Unavailable."""
    raise NotImplementedError


def delete(key: TaskKey, world: World) -> Task:
    """Delete the task and its future runs; what has run stays in the history. Raises NotFound, Unavailable."""
    raise NotImplementedError


def run_now(key: TaskKey, world: World, *, random: int, overlap: Overlap | None = None, receipt: Receipt | None = None) -> Job:
    """A run outside the schedule, now; `overlap` None: as the task says. Raises NotFound, Unavailable, Conflict if it is inactive."""
    raise NotImplementedError


def find(key: TaskKey, world: World) -> Task:
    """One task. Raises NotFound."""
    raise NotImplementedError


def search(query: Search, world: World) -> TaskPage:
    """A page of tasks, the newest first. Its cursor is None only if nothing more can match. Raises Invalid for a bad cursor."""
    raise NotImplementedError


def next_runs(task: Task, count: int, now: int) -> list[Run]:
    """Its next runs; none while it is inactive."""
    raise NotImplementedError
