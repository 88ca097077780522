"""Watch the runs of a task: make their timers from its alerts."""

from collections.abc import Iterable, Sequence

from scheduler.model.job import Job
from scheduler.model.run_timer import RunTimer
from scheduler.model.task import Task
from scheduler.tasks import deadlines
from scheduler.tasks.run_timers import of_runs


def timers_of(task: Task, runs: Sequence[Job], now: int) -> list[RunTimer]:
    """The timers of new runs of a task: none for a run without a deadline."""
    if task.alerts is None:
        return []
    found = []
    for run in of_runs(runs):
        assert run.origin is not None
        at = deadlines.first(task.alerts, deadlines.zone_of(task.schedule), run.scheduled_at, run.origin.nominal_at)
        if at is not None:
            found.append(RunTimer(at, run.key, now, at))
    return found


def timers_of_all(planned: Iterable[tuple[Task, Sequence[Job]]], now: int) -> list[RunTimer]:
    """The timers of new runs of several tasks."""
    return [timer for task, runs in planned for timer in timers_of(task, runs, now)]
