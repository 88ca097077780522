"""The crowded minutes of the next days: in which minutes several runs of an owner's tasks begin, and of which tasks.

It reads the owner's tasks, at most `MOST_TASKS`, and no job. Tasks with the same run times share one expansion, as in the forecast.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.insight.forecast import MINUTE, Recurrence, recurrence, starts
from scheduler.model.task import Task, TaskStatus
from scheduler.storage.ports import Ports
from scheduler.tasks import planning, service
from scheduler.tasks.service import Search

DAY_MS = 86_400_000
MOST_DAYS = 7
MOST_TASKS = 1_000
MOST_STARTS = 200_000  # minutes in which a task begins, over all expansions
MOST_MINUTES = 100  # of an answer
MOST_NAMED = 20  # tasks of a minute
PAGE = 100


class Beginning(NamedTuple):
    """A task of which runs begin in a minute."""

    task: Task
    runs: int


class Minute(NamedTuple):
    """A minute in which at least two runs begin. `beginning`: at most `MOST_NAMED` of its `tasks`."""

    at: int
    runs: int
    tasks: int
    beginning: Sequence[Beginning]


@dataclass(frozen=True, slots=True)
class Crowded:
    """The most crowded minutes from `since` on and before `until`, and the number of runs by minute of the hour, in UTC.

    `complete`: whether all runs of all active tasks are counted.
    """

    since: int
    until: int
    minutes: Sequence[Minute]
    by_minute: Sequence[int]
    tasks: int
    complete: bool


def crowded(owner: str, now: int, ports: Ports, *, days: int, limit: int) -> Crowded:
    """The crowded minutes of the owner's tasks, those with the most runs first. The days begin with the next whole minute."""
    since = (now // MINUTE + 1) * MINUTE
    until = since + days * DAY_MS
    tasks, complete = _active(owner, ports)
    left, found = MOST_STARTS, list[tuple[Sequence[Task], Mapping[int, int]]]()
    for of_these, minutes in _expanded(tasks, now, since, until):
        begun = dict[int, int]()
        for at, runs in minutes:
            if left == 0:
                complete = False
                break
            begun[at] = begun.get(at, 0) + runs
            left -= 1
        found.append((of_these, begun))
    counts = Counter[int]()
    for sharing, of_each in found:
        for at, runs in of_each.items():
            counts[at] += runs * len(sharing)
    by_minute = [0] * 60
    for at, runs in counts.items():
        by_minute[at // MINUTE % 60] += runs
    chosen = sorted(((at, runs) for at, runs in counts.items() if runs > 1), key=lambda each: (-each[1], each[0]))[:limit]
    return Crowded(since, until, [_minute(at, runs, found) for at, runs in chosen], by_minute, len(tasks), complete)


def _active(owner: str, ports: Ports) -> tuple[list[Task], bool]:
    """The owner's active tasks, the newest first, and whether they are all."""
    tasks, cursor = list[Task](), None
    for _ in range(MOST_TASKS // PAGE):
        page = service.search(Search(owner, statuses=(TaskStatus.ACTIVE,), limit=PAGE, cursor=cursor), ports)
        tasks, cursor = [*tasks, *page.tasks], page.cursor
        if cursor is None:
            return tasks, True
    return tasks, False


def _expanded(tasks: Sequence[Task], now: int, since: int, until: int) -> Iterator[tuple[Sequence[Task], Iterator[tuple[int, int]]]]:
    """The tasks with the same run times, and the minutes in which one of them begins, with the number of its runs."""
    sharing = defaultdict[Recurrence, list[Task]](list)
    for task in tasks:
        if (shared := recurrence(task)) is not None:
            sharing[shared].append(task)
        else:
            yield [task], iter([(run.at // MINUTE * MINUTE, 1) for run in planning.next_runs(task, now, 1) if since <= run.at < until])
    for shared, of_these in sharing.items():
        yield of_these, starts(shared, since, until)


def _minute(at: int, runs: int, found: Sequence[tuple[Sequence[Task], Mapping[int, int]]]) -> Minute:
    beginning = [Beginning(task, begun[at]) for tasks, begun in found if at in begun for task in tasks]
    beginning.sort(key=lambda each: (-each.runs, each.task.name, each.task.id))
    return Minute(at, runs, len(beginning), beginning[:MOST_NAMED])
