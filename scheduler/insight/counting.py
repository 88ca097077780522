"""What a change of a job or a task adds to the counters. Pure; `scheduler.insight.project` carries it out, each change once.

    load#<owner>       <hour>         jobs by minute and type: each start that was planned; runs of recurring tasks are not in it,
                                      `forecast` expands those
    recurring#<owner>  <digest>       tasks by recurrence
    stats#<owner>      <day>#<type>   jobs by how they ended, how long they ran (sum and histogram), how late they started

Each is kept for its owner and for everybody together.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scheduler.insight.forecast import Recurrence, recurrence
from scheduler.insight.histogram import bucket
from scheduler.model import lifecycle
from scheduler.model.job import Job, Status
from scheduler.model.slots import MINUTE, minute_of, start_of
from scheduler.tasks import schedule_form
from scheduler.tasks.task import Task

EVERYBODY = "*"
CANARY_OWNER = "punctual"  # its jobs measure the scheduler and are nobody's load
DAY_S = 86_400
KEPT_LOAD_S, KEPT_STATS_S = 2 * DAY_S, 400 * DAY_S

RUNS, RUN_MS, BUCKET = "runs", "run_ms", "h"  # of stats: how many ran, for how long in all, and the histogram's `h<bucket>`
LATE = "late"
TASKS = "tasks"
DEAD_NAMES = tuple(map(str, lifecycle.DEAD))


class Row(NamedTuple):
    """What counters are kept under; rows of one partition sort by their names."""

    partition: str
    name: str
    expires: int | None = None  # epoch seconds
    about: str | None = None  # what the name stands for


class Entry(NamedTuple):
    """What one change adds to one row; `sequence` is the change's place in its stream shard, texts that sort."""

    row: Row
    sequence: str
    amounts: Mapping[str, int]


class Counted(NamedTuple):
    """A row as it is read."""

    name: str
    amounts: Mapping[str, int]
    about: str | None = None


Amounts = Mapping[str, int]


def of_job(before: Job | None, after: Job | None) -> list[tuple[Row, Amounts]]:
    """What a change of a job adds; None: it was not there, or is not any more."""
    known = after or before
    if known is None or known.owner == CANARY_OWNER:
        return []
    scopes = (EVERYBODY, known.owner)
    return [each for owner in scopes for each in (*_load(owner, before, after), *_stats(owner, before, after))]


def of_task(before: Task | None, after: Task | None) -> list[tuple[Row, Amounts]]:
    """What a change of a task adds. None of most: plan moves on, and the recurrence stays."""
    found = [(task, each, amount) for task, amount in ((before, -1), (after, 1)) if task is not None and (each := recurrence(task))]
    if len(found) == 2 and found[0][1] == found[1][1]:
        return []
    return [(recurring_row(scope, each), {TASKS: amount}) for task, each, amount in found for scope in (EVERYBODY, task.owner)]


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
    """Each count of a load row: the beginning of its minute, the type, how many."""
    hour = start_of(f"{row.name}:00")
    for name, amount in row.amounts.items():
        minute, _, type = name.partition("#")
        yield hour + int(minute) * MINUTE, type, amount


def recurring_row(owner: str, each: Recurrence) -> Row:
    about = json.dumps([schedule_form.write(each.schedule), each.type, each.shift_ms], sort_keys=True)
    return Row(recurring_partition(owner), hashlib.sha256(about.encode()).hexdigest()[:24], None, about)


def read_recurrence(about: str) -> Recurrence:
    form, type, shift_ms = json.loads(about)
    return Recurrence(schedule_form.restore(form), type, shift_ms)


def is_expanded(job: Job) -> bool:
    """Whether the forecast knows of this start by its task's schedule: a first start of a run that was planned by one."""
    return job.origin is not None and job.origin.misfire is not None and job.fence == 1


def _waits(job: Job | None) -> bool:
    """Whether a start of it is planned."""
    return job is not None and job.slot is not None and job.claim is None and not is_expanded(job)


def _load(owner: str, before: Job | None, after: Job | None) -> Iterator[tuple[Row, Amounts]]:
    """A start that was planned stays in its minute's count once an executor takes it; one that is put off or called off leaves it."""
    taken = after is not None and after.claim is not None
    old = before if _waits(before) and not taken else None
    new = after if _waits(after) else None
    if old is not None and new is not None and (old.due_at // MINUTE, old.spec.type) == (new.due_at // MINUTE, new.spec.type):
        return
    for job, amount in ((old, -1), (new, 1)):
        if job is not None:
            minute = minute_of(job.due_at)
            row = Row(load_partition(owner), minute[:13], job.due_at // 1_000 + KEPT_LOAD_S)
            yield row, {f"{minute[14:16]}#{job.spec.type}": amount}


def _stats(owner: str, before: Job | None, after: Job | None) -> Iterator[tuple[Row, Amounts]]:
    """A job's end is counted once per life; that its item is deleted later counts for nothing."""
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
    yield Row(stats_partition(owner), f"{day_of(ended)}#{after.spec.type}", ended // 1_000 + KEPT_STATS_S), amounts


def ended_at(job: Job) -> int:
    """When a final job ended."""
    at: int = getattr(job, lifecycle.FINAL_TIMES[lifecycle.state(job)])
    return at


def run_ms(job: Job) -> int | None:
    """How long the last attempt of a final job ran; None if it never started, or ran beyond its executor and reported."""
    if job.started_at is None or job.spec.callback is not None or lifecycle.state(job) in (Status.CANCELLED, Status.SKIPPED):
        return None
    return max(0, ended_at(job) - job.started_at)
