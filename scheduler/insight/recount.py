"""Count all jobs and tasks from scratch, and correct the counters by the differences.

Each correction is added as a difference, under a shard of its own, so that project may keep running. The result is exact only while
nothing is written: a change between reading its item and reading its counter is counted twice or not at all. For an exact result, pause
the lanes and count again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from scheduler.insight.counting import EVERYBODY, day_of, hour_of, load_partition, of_job, of_task, recurring_partition, stats_partition
from scheduler.model import slots
from scheduler.model.counters import CounterEntry, Row
from scheduler.model.job import Job
from scheduler.model.task import Task
from scheduler.storage.ports import Counters

DAY = 86_400_000
_LAST = "~"  # sorts after every name


@dataclass(frozen=True, slots=True)
class RecountResult:
    """The number of jobs, tasks and counter rows, and the number of rows that were corrected."""

    jobs: int
    tasks: int
    rows: int
    corrected: int


def recount(jobs: Iterable[Job], tasks: Iterable[Task], now: int, retention_days: int, *, counters: Counters) -> RecountResult:
    """Correct the counters of all owners together and of each owner of a job or a task.

    The tables determine the load only for the minutes to come, and the statistics only for the last `retention_days` days, whose jobs are
    all still stored. The other rows stay unchanged. Raises Unavailable: run it again.
    """
    right: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    known: dict[tuple[str, str], Row] = {}
    owners, seen = {EVERYBODY}, Counter[str]()
    of_jobs = (("jobs", of_job(None, job), job.owner) for job in jobs)
    of_tasks = (("tasks", of_task(None, task), task.owner) for task in tasks)
    for kind, added, owner in chain(of_jobs, of_tasks):
        seen[kind] += 1
        owners.add(owner)
        for row, amounts in added:
            right[row[:2]].update(amounts)
            known[row[:2]] = row
    wrong = [
        entry
        for owner in sorted(owners)
        for partition, low in (
            (load_partition(owner), hour_of(now)),
            (recurring_partition(owner), "0"),
            (stats_partition(owner), day_of(now - (retention_days - 1) * DAY)),
        )
        for entry in _differences(partition, low, right, known, now, counters)
    ]
    counters.add(f"recount/{now}", wrong)
    return RecountResult(seen["jobs"], seen["tasks"], len(known), len(wrong))


def _differences(
    partition: str, low: str, right: dict[tuple[str, str], Counter[str]], known: dict[tuple[str, str], Row], now: int, counters: Counters
) -> Iterable[CounterEntry]:
    counted = {row.name: row for row in counters.read(partition, low, _LAST)}
    names = counted.keys() | {name for each, name in right if each == partition and name >= low}
    for name in sorted(names):
        is_, should = Counter(counted[name].amounts if name in counted else {}), right[partition, name]
        amounts = {key: should[key] - is_[key] for key in is_.keys() | should.keys() if should[key] != is_[key]}
        if partition.startswith("load#"):
            amounts = {key: amount for key, amount in amounts.items() if _is_to_come(name, key, now)}
        if amounts:
            about = counted[name].about if name in counted else None
            yield CounterEntry(known.get((partition, name), Row(partition, name, _expires(partition, now), about)), "1", amounts)


def _is_to_come(hour: str, key: str, now: int) -> bool:
    return slots.start_of(f"{hour}:{key[:2]}") > now


def _expires(partition: str, now: int) -> int | None:
    """The expiry of a row that should not exist at all: a few days from now, or never for a recurrence."""
    return None if partition.startswith("recurring#") else (now + 3 * DAY) // 1_000
