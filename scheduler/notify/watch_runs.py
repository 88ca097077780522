"""The worker wakes with the timers of watched runs: it judges the runs, sends news of broken rules, and sets the next deadlines.

Each step may be repeated: the ids of news follow from the run and the rule, and a timer that was armed again is not dropped.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from scheduler.admission.run_gate import unwanted
from scheduler.model import lifecycle
from scheduler.model.alerts import Alerts
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, TaskKey
from scheduler.model.run_timer import RunTimer
from scheduler.model.task import Task
from scheduler.model.work import WorkItem
from scheduler.notify.policy import broke
from scheduler.storage.ports import Found, Ports
from scheduler.tasks import deadlines, run_timers, timers, watch

STEP_MS = 10_000  # a step ends after this time; the next minute continues
PAGE = 50  # runs judged at once
LATE_MS = 60_000  # a judgement that is this late is noted: the minute after a lost message has passed
SETTLED_MS = 60_000  # the process that armed a timer has stored its run by then, or never will

log = logging.getLogger(__name__)


class _Facts(NamedTuple):
    """The records by which runs are judged. `alerts`: of the watched tasks; `silent`: the owners whose runs are not reported."""

    jobs: Found[JobKey, Job]
    tasks: Found[TaskKey, Task]
    alerts: Mapping[TaskKey, Alerts]
    silent: frozenset[str]


def wake(item: WorkItem, ports: Ports, note_lag: Callable[[int], object] = lambda ms: None) -> int:
    """Judge the watched runs whose timers are stored in a second of a partition, and due now or in a moment. Returns their number.

    `note_lag` gets the delay of the latest one, if it is over `LATE_MS`.
    """
    until, judged = ports.clock.now() + STEP_MS, 0
    start = int(item.of) * timers.SECOND_MS
    after = start, ""
    while ports.clock.now() < until:
        found = ports.run_timers.timers(int(item.part), after, start + timers.SECOND_MS - 1, PAGE)
        due = sorted((timer for timer in found if timer.next_at <= ports.clock.now() + timers.EARLY_MS), key=lambda each: each.next_at)
        if due:
            if (lag := ports.clock.now() - due[0].next_at) > LATE_MS:
                note_lag(lag)
            ports.clock.sleep_until(due[-1].next_at)
            _judge_all(due, ports)
            judged += len(due)
        if len(found) < PAGE:
            break
        after = found[-1].position
    return judged


def _judge_all(due: Sequence[RunTimer], ports: Ports) -> None:
    """Judge these runs. An error leaves its timer for the next minute, and stops no other one."""
    now = ports.clock.now()  # before the jobs are read: what happens after that is judged later
    jobs = ports.jobs.get_many([timer.run for timer in due])
    tasks = ports.tasks.get_many(list(dict.fromkeys(_task_of(job) for job in jobs.values() if job.origin is not None)))
    barred = ports.users.barred()
    facts = _Facts(jobs, tasks, watch.rules(list(tasks.values()), ports), barred.disabled | barred.deleted)
    ports.side_by_side(*(partial(_tolerant, timer, facts, ports, now) for timer in due))


def _tolerant(timer: RunTimer, facts: _Facts, ports: Ports, now: int) -> None:
    try:
        _judge(timer, facts, ports, now)
    except Exception as error:
        level = logging.WARNING if isinstance(error, Unavailable) else logging.ERROR
        log.log(level, "a watched run was not judged; the next minute tries it again", extra={"run": timer.run, "error": repr(error)})


def _judge(timer: RunTimer, facts: _Facts, ports: Ports, now: int) -> None:
    """Raises Unavailable."""
    job = facts.jobs.get(timer.run)
    if job is None:
        if facts.jobs.is_absent(timer.run) and timer.armed_at + SETTLED_MS <= now:
            ports.run_timers.drop(timer)
        return
    key = _task_of(job)
    task, alerts = facts.tasks.get(key), facts.alerts.get(key)
    if task is None and not facts.tasks.is_absent(key):
        return
    if task is None or alerts is None or job.owner in facts.silent or not _is_marked(job) or _will_not_start(job, task, now):
        ports.run_timers.drop(timer)
        return
    found = deadlines.judge(job, alerts, deadlines.zone_of(task.schedule), timer.judged_until, now)
    if found.broken:
        ports.notices.send([broke(job, alert, at) for alert, at in found.broken], now)
    if found.next_at is None:
        ports.run_timers.drop(timer)
        return
    moved = replace(timer, next_at=found.next_at, judged_until=found.until)
    run_timers.set_to(timer, moved, ports, now)


def _is_marked(job: Job) -> bool:
    """Whether the run was planned as a watched one: the end of another one is reported to nobody, so that its incident would stay open."""
    return job.origin is not None and job.origin.watched


def _will_not_start(job: Job, task: Task, now: int) -> bool:
    """Whether an executor would cancel the run, which has not started, instead of starting it."""
    return lifecycle.is_open(job) and deadlines.first_start(job, now) is None and unwanted(job, task.head) is not None


def _task_of(job: Job) -> TaskKey:
    assert job.origin is not None
    return TaskKey(job.owner, job.origin.task)
