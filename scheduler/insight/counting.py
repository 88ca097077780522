"""The amounts that a change of a job or a task adds to the counters. Pure; `scheduler.insight.project` adds each change once.

    load#<owner>       <hour>         planned starts of jobs by minute and type, without the runs of recurring tasks:
                                      `forecast` expands those
    recurring#<owner>  <digest>       tasks by recurrence
    stats#<owner>      <day>#<type>   ended jobs by status, their run times (sum and histogram), late starts

Each is kept for each owner and for all owners together.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping

from scheduler.insight.forecast import Recurrence, recurrence
from scheduler.insight.histogram import bucket
from scheduler.model import lifecycle
from scheduler.model.counters import Counted, Row
from scheduler.model.job import CANARY_OWNER, Job, Status
from scheduler.model.slots import MINUTE, minute_of, start_of
from scheduler.model.task import Task
from scheduler.tasks import schedule_form

EVERYBODY = "*"
DAY_S = 86_400
LOAD_RETENTION_S, STATS_RETENTION_S = 2 * DAY_S, 400 * DAY_S

RUNS, RUN_MS, BUCKET = "runs", "run_ms", "h"  # of stats: number of runs, their total run time, the histogram's `h<bucket>`
LATE = "late"
TASKS = "tasks"
DEAD_NAMES = tuple(map(str, lifecycle.DEAD))

Amounts = Mapping[str, int]


def of_job(before: Job | None, after: Job | None) -> list[tuple[Row, Amounts]]:
    """The amounts that a change of a job adds; `before` None: the job is new, `after` None: it was deleted."""
    known = after or before
    if known is None or known.owner == CANARY_OWNER:
        return []
    scopes = (EVERYBODY, known.owner)
    return [each for owner in scopes for each in (*_load(owner, before, after), *_stats(owner, before, after))]


def of_task(before: Task | None, after: Task | None) -> list[tuple[Row, Amounts]]:
    """The amounts that a change of a task adds. Most changes add nothing: plan moves on, and the recurrence stays the same."""
    changes = [(task, each, amount) for task, amount in ((before, -1), (after, 1)) if task is not None and (each := recurrence(task))]
    if len(changes) == 2 and changes[0][1] == changes[1][1]:
        return []
    return [(recurring_row(scope, each), {TASKS: amount}) for task, each, amount in changes for scope in (EVERYBODY, task.owner)]


def load_partition(owner: str) -> str:
    return f"load#{owner}"


def recurring_partition(owner: str) -> str:
    return f"recurring#{owner}"


def stats_partition(owner: str) -> str:
    return f"stats#{owner}"


def hour_of(at: int) -> str:
    return minute_of(at)[:13]


def day_of(at: int) -> str:
    return minute_of(at)[:10]


def load_at(row: Counted) -> Iterator[tuple[int, str, int]]:
    """Each count of a load row: the beginning of its minute, the type, the number of jobs."""
    hour = start_of(f"{row.name}:00")
    for name, amount in row.amounts.items():
        minute, _, type = name.partition("#")
        yield hour + int(minute) * MINUTE, type, amount


def recurring_row(owner: str, each: Recurrence) -> Row:
    about = json.dumps([schedule_form.stored(each.schedule), each.type, each.shift_ms], sort_keys=True)
    return Row(recurring_partition(owner), hashlib.sha256(about.encode()).hexdigest()[:24], None, about)


def read_recurrence(about: str) -> Recurrence:
    form, type, shift_ms = json.loads(about)
    return Recurrence(schedule_form.restore(form), type, shift_ms)


def is_expanded(job: Job) -> bool:
    """Whether the forecast expands this start from its task's schedule: it is the first start of a run of a recurring task."""
    return job.origin is not None and job.origin.misfire is not None and job.fence == 1


def _waits(job: Job | None) -> bool:
    """Whether a start of the job is planned and belongs in the load counters."""
    return job is not None and job.slot is not None and job.claim is None and not is_expanded(job)


def _load(owner: str, before: Job | None, after: Job | None) -> Iterator[tuple[Row, Amounts]]:
    """A planned start stays in its minute's count after an executor has claimed the job; a moved or cancelled start leaves the count."""
    taken = after is not None and after.claim is not None
    old = before if _waits(before) and not taken else None
    new = after if _waits(after) else None
    if old is not None and new is not None and (old.due_at // MINUTE, old.spec.type) == (new.due_at // MINUTE, new.spec.type):
        return
    for job, amount in ((old, -1), (new, 1)):
        if job is not None:
            minute = minute_of(job.due_at)
            row = Row(load_partition(owner), minute[:13], job.due_at // 1_000 + LOAD_RETENTION_S)
            yield row, {f"{minute[14:16]}#{job.spec.type}": amount}


def _stats(owner: str, before: Job | None, after: Job | None) -> Iterator[tuple[Row, Amounts]]:
    """A job's end is counted once per life (first run or redrive); the later deletion of its item adds nothing."""
    if after is None or lifecycle.is_open(after) or (before is not None and not lifecycle.is_open(before)):
        return
    status = lifecycle.state(after)
    ended = ended_at(after)
    amounts = {str(status): 1}
    ran = run_ms(after)
    if ran is not None:
        amounts |= {RUNS: 1, RUN_MS: ran, f"{BUCKET}{bucket(ran)}": 1}
    if status is not Status.CANCELLED and lifecycle.is_late(after, ended):
        amounts[LATE] = 1
    yield Row(stats_partition(owner), f"{day_of(ended)}#{after.spec.type}", ended // 1_000 + STATS_RETENTION_S), amounts


def ended_at(job: Job) -> int:
    """When a final job ended."""
    at: int = getattr(job, lifecycle.FINAL_TIMES[lifecycle.state(job)])
    return at


def run_ms(job: Job) -> int | None:
    """The run time of the last attempt of a final job; None if it never started, or if it ran outside the executor."""
    elsewhere = job.spec.callback is not None or job.awaited is not None
    if job.started_at is None or elsewhere or lifecycle.state(job) in (Status.CANCELLED, Status.SKIPPED):
        return None
    return max(0, ended_at(job) - job.started_at)
