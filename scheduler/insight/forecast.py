"""The forecast: jobs, run time and executors for each future minute. Pure: it maps counts to minutes.

Stored jobs are counted by minute. Runs of recurring tasks are expanded from the schedules instead. Tasks that run at the same minutes
share one expansion: the cost grows with the number of distinct schedules, not with the number of tasks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from scheduler.model.schedule import Every, Once, Rate, Schedule
from scheduler.model.task import Task
from scheduler.tasks import rhythm
from scheduler.tasks.schedule import after, day_start, next_runs

MINUTE = 60_000
AHEAD = 180 * MINUTE  # the forecast that the API shows
SCALED_AHEAD = 10 * MINUTE  # the forecast that `scale` acts on
BOUND_MS = 10_000  # all jobs due at one instant are to end within this time ...
BUFFER_PERCENT = 10  # ... with this share of each executor left free
UNKNOWN_MS = 1_000  # assumed run time of a type of which no job has ended yet
CALLED = "http"  # the type whose jobs the function `fetch` runs
LAST_RUNS = 200  # a task with at most this many runs left is forecast up to its last run only


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The schedule and type that recurring tasks with the same run times share."""

    schedule: Schedule  # without jitter and number of runs
    type: str
    shift_ms: int = 0  # delay of each run by the jitter


class Expected(NamedTuple):
    """The expected starts in the minute that begins at `at`, the run time of those jobs, and that of the calls of URLs among them."""

    at: int
    jobs: int
    compute_ms: int
    call_ms: int = 0

    @property
    def executors(self) -> int:
        return required(self.compute_ms)

    @property
    def calls(self) -> int:
        """The calls of `fetch` at once by which its jobs end within `BOUND_MS`."""
        return required(self.call_ms)


def required(compute_ms: int) -> int:
    """The number of executors that finish this much run time within `BOUND_MS`, each with one job at a time.

    >>> required(0), required(9_000), required(9_001)
    (0, 1, 2)
    """
    return -(-compute_ms // (BOUND_MS * (100 - BUFFER_PERCENT) // 100))


def recurrence(task: Task) -> Recurrence | None:
    """The recurrence of a task; None if the task is not recurring, or is paused.

    Tasks share a recurrence if their run times differ by less than a second, or by jitter within a minute.
    """
    schedule = task.schedule
    if schedule is None or isinstance(schedule.spec, Once) or task.inactive_at is not None:
        return None
    plain = replace(schedule, end=_end(task, schedule), max_runs=None, jitter_ms=0)
    shift = _shift(task, schedule)
    if isinstance(plain.spec, Every) and plain.spec.start <= task.updated_at:
        plain = replace(plain, spec=_in_phase(plain.spec))
    if not isinstance(plain.spec, Rate):
        return Recurrence(plain, task.spec.type, shift // MINUTE * MINUTE)
    rate = plain.spec
    start = (rate.start + shift) // 1_000 * 1_000
    if start <= task.updated_at + rate.every_ms:
        start %= rate.every_ms  # it has begun: only the phase of its rate matters
    return Recurrence(replace(plain, spec=Rate(rate.every_ms, start, "UTC" if plain.days is None else rate.zone)), task.spec.type)


def _in_phase(spec: Every) -> Every:
    """The same days and times, which have begun: only their phase matters."""
    day = rhythm.local_day(spec.start, spec.zone) % (spec.count * (7 if spec.weekdays else 1))
    return replace(spec, start=day_start(day, spec.zone))


def expected(
    stored: Mapping[int, Mapping[str, int]],
    recurring: Iterable[tuple[Recurrence, int]],
    elapsed_ms: Mapping[str, float],
    since: int,
    until: int,
) -> list[Expected]:
    """All whole minutes from the minute of `since` to the last one that begins before `until`.

    `stored`: jobs by the beginning of their minute and by type. `recurring`: the number of tasks with each recurrence. `elapsed_ms`: the
    average run time by type.
    """
    first, until = since // MINUTE * MINUTE, -(-until // MINUTE) * MINUTE
    counts: dict[int, dict[str, int]] = {at: defaultdict(int, stored.get(at, {})) for at in range(first, until, MINUTE)}
    for each, tasks in recurring:
        if tasks > 0:
            for at, runs in starts(each, first, until):
                counts[at][each.type] += runs * tasks
    return [_minute(at, of_type, elapsed_ms) for at, of_type in counts.items()]


def together(parts: Iterable[Iterable[Expected]]) -> list[Expected]:
    """The sums of the same minutes of several lanes."""
    return [Expected(same[0].at, *(sum(each[number] for each in same) for number in (1, 2, 3))) for same in zip(*parts, strict=True)]


def most(minutes: Iterable[Expected]) -> int:
    """The number of executors that the busiest of the minutes requires."""
    return max((each.executors for each in minutes), default=0)


def _minute(at: int, of_type: Mapping[str, int], elapsed_ms: Mapping[str, float]) -> Expected:
    positive = {type: jobs for type, jobs in of_type.items() if jobs > 0}
    work = {type: jobs * elapsed_ms.get(type, UNKNOWN_MS) for type, jobs in positive.items()}
    return Expected(at, sum(positive.values()), round(sum(work.values())), round(work.get(CALLED, 0)))


def starts(each: Recurrence, first: int, until: int) -> Iterator[tuple[int, int]]:
    """The minutes from `first` to `until` in which a task of the recurrence runs, and the number of its runs in each."""
    spec = each.schedule.spec
    if isinstance(spec, Rate) and each.schedule.days is None:
        end = until if each.schedule.end is None else min(until, each.schedule.end)
        if spec.every_ms >= MINUTE:
            begin = max(spec.start, first + (spec.start - first) % spec.every_ms)
            yield from ((at // MINUTE * MINUTE, 1) for at in range(begin, end, spec.every_ms))
            return
        for at in range(first, until, MINUTE):
            runs = _runs_before(spec, min(at + MINUTE, end)) - _runs_before(spec, min(at, end))
            if runs:
                yield at, runs
        return
    for run in after(each.schedule, first - each.shift_ms - 1):
        start = run.at + each.shift_ms
        if start >= until:
            return
        yield start // MINUTE * MINUTE, 1


def _runs_before(rate: Rate, until: int) -> int:
    """The number of runs of the rate before the instant."""
    return max(0, -(-(until - rate.start) // rate.every_ms))


def _shift(task: Task, schedule: Schedule) -> int:
    if not schedule.jitter_ms:
        return 0
    run = next(iter(next_runs(replace(schedule, max_runs=None), task.created_at, 1, seed=task.id)), None)
    return run.at - run.nominal if run is not None else 0


def _end(task: Task, schedule: Schedule) -> int | None:
    """The instant from which the task has no more runs. A limited number of runs is counted only once few are left (`LAST_RUNS`)."""
    if task.replenish is None:
        return task.planned_until + 1  # its last run is planned
    if schedule.max_runs is None or schedule.max_runs - task.planned > LAST_RUNS:
        return schedule.end
    left = islice(after(replace(schedule, max_runs=None, jitter_ms=0), task.planned_until), max(0, schedule.max_runs - task.planned))
    return max((run.nominal for run in left), default=task.planned_until) + 1
