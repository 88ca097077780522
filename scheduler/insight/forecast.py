"""What is to come: jobs, work and executors per minute. Pure: counts in, minutes out.

Jobs that are stored are counted by their minute. Runs of recurring tasks are not: they are expanded from the schedules, and since
tasks that run at the same minutes share one expansion, the cost grows with distinct schedules, not with tasks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from scheduler.tasks.schedule import Once, Rate, Schedule, after, next_runs
from scheduler.tasks.task import Task

MINUTE = 60_000
AHEAD = 180 * MINUTE  # shown
SCALED_AHEAD = 10 * MINUTE  # acted upon
BOUND_MS = 10_000  # what is due at one time is to be over so soon ...
BUFFER_PERCENT = 10  # ... with so much of each executor left free
UNKNOWN_MS = 1_000  # how long a job of a type takes of which none has ended yet
LAST_RUNS = 200  # with so few runs left, when the last one is matters


@dataclass(frozen=True, slots=True)
class Recurrence:
    """What recurring tasks that run at the same times have in common."""

    schedule: Schedule  # without jitter and number of runs
    type: str
    shift_ms: int = 0  # by which its jitter puts each run off


class Expected(NamedTuple):
    """What is to start in the minute that begins at `at`."""

    at: int
    jobs: int
    compute_ms: int

    @property
    def executors(self) -> int:
        return required(self.compute_ms)


def required(compute_ms: int) -> int:
    """How many executors, each at one job at a time, end so much work in time.

    >>> required(0), required(9_000), required(9_001)
    (0, 1, 2)
    """
    return -(-compute_ms // (BOUND_MS * (100 - BUFFER_PERCENT) // 100))


def recurrence(task: Task) -> Recurrence | None:
    """None if the task is not recurring, or is paused. Times within a second, of a jitter within a minute, count as the same."""
    schedule = task.schedule
    if schedule is None or isinstance(schedule.spec, Once) or task.inactive_at is not None:
        return None
    plain = replace(schedule, end=_end(task, schedule), max_runs=None, jitter_ms=0)
    shift = _shift(task, schedule)
    if not isinstance(plain.spec, Rate):
        return Recurrence(plain, task.spec.type, shift // MINUTE * MINUTE)
    rate = plain.spec
    start = (rate.start + shift) // 1_000 * 1_000
    if start <= task.updated_at + rate.every_ms:
        start %= rate.every_ms  # it has begun: only its beat matters
    return Recurrence(replace(plain, spec=Rate(rate.every_ms, start)), task.spec.type)


def expected(
    stored: Mapping[int, Mapping[str, int]],
    recurring: Iterable[tuple[Recurrence, int]],
    elapsed_ms: Mapping[str, float],
    since: int,
    until: int,
) -> list[Expected]:
    """Every minute, whole, from that of `since` to that before `until`.

    `stored`: jobs by the beginning of their minute and by type. `recurring`: how many tasks have each recurrence. `elapsed_ms`: the average
    by type.
    """
    first, until = since // MINUTE * MINUTE, -(-until // MINUTE) * MINUTE
    counts: dict[int, dict[str, int]] = {at: defaultdict(int, stored.get(at, {})) for at in range(first, until, MINUTE)}
    for each, tasks in recurring:
        if tasks > 0:
            for at, runs in _starts(each, first, until):
                counts[at][each.type] += runs * tasks
    return [_minute(at, of_type, elapsed_ms) for at, of_type in counts.items()]


def together(parts: Iterable[Iterable[Expected]]) -> list[Expected]:
    """The same minutes, of several lanes, as one."""
    return [
        Expected(same[0].at, sum(each.jobs for each in same), sum(each.compute_ms for each in same)) for same in zip(*parts, strict=True)
    ]


def most(minutes: Iterable[Expected]) -> int:
    """The executors that the busiest of the minutes requires."""
    return max((each.executors for each in minutes), default=0)


def _minute(at: int, of_type: Mapping[str, int], elapsed_ms: Mapping[str, float]) -> Expected:
    positive = {type: jobs for type, jobs in of_type.items() if jobs > 0}
    work = sum(jobs * elapsed_ms.get(type, UNKNOWN_MS) for type, jobs in positive.items())
    return Expected(at, sum(positive.values()), round(work))


def _starts(each: Recurrence, first: int, until: int) -> Iterator[tuple[int, int]]:
    """The minutes from `first` to `until` in which a task of the recurrence runs, and how often."""
    spec = each.schedule.spec
    if isinstance(spec, Rate):
        end = until if each.schedule.end is None else min(until, each.schedule.end)
        for at in range(first, until, MINUTE):
            runs = _beats(spec, min(at + MINUTE, end)) - _beats(spec, min(at, end))
            if runs:
                yield at, runs
        return
    for run in after(each.schedule, first - each.shift_ms - 1):
        start = run.at + each.shift_ms
        if start >= until:
            return
        yield start // MINUTE * MINUTE, 1


def _beats(rate: Rate, until: int) -> int:
    """How often the rate has come before the instant."""
    return max(0, -(-(until - rate.start) // rate.every_ms))


def _shift(task: Task, schedule: Schedule) -> int:
    if not schedule.jitter_ms:
        return 0
    run = next(iter(next_runs(replace(schedule, max_runs=None), task.created_at, 1, seed=task.id)), None)
    return run.at - run.nominal if run is not None else 0


def _end(task: Task, schedule: Schedule) -> int | None:
    """The instant after which it has no more runs; of a long number of runs that is not looked up yet."""
    if task.replenish is None:
        return task.planned_until + 1  # all there will ever be are planned
    if schedule.max_runs is None or schedule.max_runs - task.planned > LAST_RUNS:
        return schedule.end
    left = islice(after(replace(schedule, max_runs=None, jitter_ms=0), task.planned_until), max(0, schedule.max_runs - task.planned))
    return max((run.nominal for run in left), default=task.planned_until) + 1
