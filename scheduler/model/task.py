"""The record of a task: work and a schedule. Its runs are jobs; hot functions read only `model.RunInfo` and `model.TaskHead` of it."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from scheduler.model.alerts import Alerts
from scheduler.model.job import Lane, Misfire, Overlap, OwnKey, TaskHead, TaskKey
from scheduler.model.notifications import Notifications
from scheduler.model.schedule import Once, Schedule
from scheduler.model.spec import JobSpec

STORED_WITH_IT = 10  # runs that are stored in one transaction with their task


@dataclass(frozen=True, slots=True)
class Gap:
    """Runs whose time passed while nothing was planned: those with a nominal time later than `after`, and `until` at most.

    `at` is when plan ran again, or when an edit came before it. The runs that could start then are stored; the others never become jobs
    of their own. `generation`: the first one whose runs they were, if an edit has handed them on. It may have stored some of them.
    """

    after: int
    until: int
    at: int
    generation: int | None = None


class TaskStatus(StrEnum):
    """The status of a task. It is never stored: `status` derives it."""

    ACTIVE = "active"  # further runs will come
    INACTIVE = "inactive"  # a user paused it
    ENDED = "ended"  # its schedule has no more runs, or its one run is in the past


@dataclass(frozen=True, slots=True)
class Task:
    """Work and the schedule by which it runs. `schedule` None: it runs once, when the task is created.

    Runs are stored ahead, up to the nominal time `planned_until`: every run up to it is stored as a job (or was), and none beyond it.
    Every edit, pause and resume raises `generation` and plans its future runs from scratch; runs of an older generation no longer start.
    See `planning.hand_on` for the runs that were missed before.
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
    max_catch_up: int = 100  # with run_all: the maximum number of missed runs that start, the last ones
    notifications: Notifications | None = None  # None: no notices of its runs are sent
    alerts: Alerts | None = None  # the rules about time for its runs; only with notifications. None: the default ones of its owner
    generation: int = 1
    inactive_at: int | None = None
    inactive_reason: str | None = None
    planned_until: int = 0
    planned: int = 0  # the number of runs planned so far, for `max_runs`
    replenish: str | None = None  # slot (minute # shard) of the replenish index; None: there is nothing more to plan
    gap: Gap | None = None  # the exception to `planned_until`: earlier runs that plan has not decided on yet

    @property
    def key(self) -> TaskKey:
        return TaskKey(self.owner, self.id)

    @property
    def own_key(self) -> OwnKey | None:
        """The key that its owner chose for it."""
        return None if self.spec.key is None else OwnKey(self.owner, self.spec.key)

    @property
    def calendars(self) -> dict[str, int]:
        """The versions of the calendars whose dates its schedule has, by name."""
        days = None if self.schedule is None else self.schedule.days
        return {dates.name: dates.version for dates in (() if days is None else days.listed) if dates.name is not None}

    @property
    def has_default_alerts(self) -> bool:
        """Whether the default alerts of its owner apply to it."""
        return self.alerts is None and self.notifications is not None

    @property
    def head(self) -> TaskHead:
        """The part of the task that an executor reads before it starts a run."""
        return TaskHead(self.generation, self.inactive_at, self.inactive_reason, self.name)

    @property
    def is_recurring(self) -> bool:
        return self.schedule is not None and not isinstance(self.schedule.spec, Once)

    @property
    def lane(self) -> Lane:
        """The lane of its scheduled runs."""
        return Lane.RECURRING if self.is_recurring else Lane.ONE_TIME


@dataclass(frozen=True, slots=True)
class TaskPage:
    """A page of tasks and the cursor of the next one (None at the end)."""

    tasks: list[Task] = field(default_factory=list)
    cursor: str | None = None


def planned_as(task: Task, other: Task) -> Task:
    """The task with the planning state of `other`."""
    return replace(task, planned_until=other.planned_until, planned=other.planned, replenish=other.replenish, gap=other.gap)


def status(task: Task, now: int) -> TaskStatus:
    """The status of the task at `now`. A task whose runs are all stored has ended once the last of them is due."""
    if task.inactive_at is not None:
        return TaskStatus.INACTIVE
    return TaskStatus.ACTIVE if task.replenish is not None or task.planned_until > now else TaskStatus.ENDED
