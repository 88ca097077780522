"""Watch the runs of a task: find the rules about time that apply to it, mark its runs, and make their timers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from scheduler.model.alerts import Alerts
from scheduler.model.job import Job, TaskKey
from scheduler.model.run_timer import RunTimer
from scheduler.model.task import Task
from scheduler.storage.ports import Ports
from scheduler.tasks import deadlines
from scheduler.tasks.run_timers import of_runs


def rules(tasks: Collection[Task], ports: Ports) -> dict[TaskKey, Alerts]:
    """The rules of each task that is watched: its own, or the default ones of its owner. Others are absent. Raises Unavailable.

    The default ones are read once for each owner, if a task needs them.
    """
    owners = {task.owner for task in tasks if task.has_default_alerts}
    defaults = ports.owner_alerts.of(owners) if owners else {}
    found = {task.key: task.alerts for task in tasks if task.notifications is not None and task.alerts is not None}
    found |= {task.key: defaults[task.owner].alerts for task in tasks if task.has_default_alerts and task.owner in defaults}
    return {key: alerts for key, alerts in found.items() if alerts.kinds}


def marked(runs: Sequence[Job]) -> list[Job]:
    """The new runs of a watched task, with the note that they are watched."""
    return [run if run.origin is None else replace(run, origin=replace(run.origin, watched=True)) for run in runs]


def timers_of(task: Task, runs: Sequence[Job], alerts: Alerts | None, now: int) -> list[RunTimer]:
    """The timers of new runs of a task: none for a run without a deadline. `alerts` None: the task is not watched."""
    if alerts is None:
        return []
    found = []
    for run in of_runs(runs):
        assert run.origin is not None
        at = deadlines.first(alerts, deadlines.zone_of(task.schedule), run.scheduled_at, run.origin.nominal_at)
        if at is not None:
            found.append(RunTimer(at, run.key, now, at))
    return found


def timers_of_all(planned: Iterable[tuple[Task, Sequence[Job]]], alerts: Mapping[TaskKey, Alerts], now: int) -> list[RunTimer]:
    """The timers of new runs of several tasks."""
    return [timer for task, runs in planned for timer in timers_of(task, runs, alerts.get(task.key), now)]
