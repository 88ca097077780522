"""After a recount the counters equal the tables, from any earlier state."""

import random
from dataclasses import replace

import pytest

from scheduler.insight import summary
from scheduler.insight.counting import EVERYBODY
from scheduler.insight.forecast import MINUTE
from scheduler.insight.project import project
from scheduler.insight.recount import recount
from scheduler.model.instants import parse
from scheduler.model.job import Job
from scheduler.model.schedule import Cron, Schedule
from scheduler.storage.aws.stream import JobChange, TaskChange
from scheduler.storage.memory.counters import MemoryCounters
from scheduler.storage.memory.ports import MemoryPorts
from tests.conftest import FixedClock
from tests.contract import make

NOW = parse("2026-11-20T10:00:30Z")


def world(seed: int) -> tuple[list[JobChange], list[TaskChange], list[Job]]:
    """Changes, and the jobs that exist in the end: some in the future, some that ran today or yesterday."""
    chance = random.Random(seed)
    changes: list[tuple[Job | None, Job]] = []
    stored = []
    for _ in range(40):
        owner = chance.choice(["ada", "eve"])
        if chance.random() < 0.5:
            job = make.job(at=NOW + chance.randint(60, 9_000) * 1_000, owner=owner)
            changes.append((None, job))
        else:
            claimed = make.claimed(make.job(at=NOW, owner=owner))
            job = make.succeeded(claimed, NOW - chance.randint(0, 30) * 3_600_000)
            changes += [(None, claimed), (claimed, job)]
        stored.append(job)
    tasks = [make.task(schedule=Schedule(Cron("*/5 * * * *")), owner="ada") for _ in range(3)]
    job_changes = [JobChange(f"{number:040d}", before, after) for number, (before, after) in enumerate(changes, 1)]
    return job_changes, [TaskChange(f"{number:040d}", None, task) for number, task in enumerate(tasks, 1)], stored


def figures(counters: MemoryCounters) -> list[object]:
    owners = (EVERYBODY, "ada", "eve")
    ahead = [summary.ahead(owner, NOW, counters) for owner in owners]
    return [*ahead, *(summary.by_type(owner, NOW - 5 * summary.DAY, NOW, counters) for owner in owners)]


@pytest.mark.parametrize("seed", range(8))
def test_a_recount_corrects_missed_and_doubled_changes_only(seed: int) -> None:
    jobs, tasks, stored = world(seed)
    right = MemoryCounters()
    project("jobs/a", jobs, MemoryPorts(FixedClock(), counters=right))
    project("tasks/a", tasks, MemoryPorts(FixedClock(), counters=right))

    chance, wrong = random.Random(seed), MemoryCounters()
    project("jobs/a", [change for change in jobs if chance.random() < 0.7], MemoryPorts(FixedClock(), counters=wrong))
    project("jobs/b", [change for change in jobs if chance.random() < 0.4], MemoryPorts(FixedClock(), counters=wrong))
    project("tasks/a", tasks[:1], MemoryPorts(FixedClock(), counters=wrong))
    assert figures(wrong) != figures(right)

    planned = [change.after for change in tasks if change.after]
    done = recount(stored, planned, NOW, 30, counters=wrong)
    assert (done.jobs, done.tasks) == (40, 3) and done.corrected > 0
    assert figures(wrong) == figures(right)
    assert recount(stored, planned, NOW + 1, 30, counters=wrong).corrected == 0

    one = make.job(at=NOW + 5 * MINUTE)
    for counters in (right, wrong):
        project("jobs/a", [JobChange("9" * 40, None, one)], MemoryPorts(FixedClock(), counters=counters))
    assert figures(wrong) == figures(right), "later changes are added as before"


def test_a_recount_leaves_the_past_that_tables_cannot_show() -> None:
    counters = MemoryCounters()
    claimed = make.claimed(make.job(at=NOW))
    old = make.succeeded(claimed, NOW - 40 * summary.DAY)
    project(
        "jobs/a",
        [JobChange("1", claimed, old), JobChange("2", None, make.job(at=NOW - 20 * MINUTE))],
        MemoryPorts(FixedClock(), counters=counters),
    )
    before = dict(counters.rows)
    assert recount([], [], NOW, 30, counters=counters).corrected == 0
    assert counters.rows == before


def test_a_recount_removes_a_deleted_task() -> None:
    counters = MemoryCounters()
    task = make.task(schedule=Schedule(Cron("*/5 * * * *")))
    project("tasks/a", [TaskChange("1", None, task)], MemoryPorts(FixedClock(), counters=counters))
    recount([], [replace(task, inactive_at=NOW, replenish=None)], NOW, 30, counters=counters)
    assert not any(minute.jobs for minute in summary.ahead(EVERYBODY, NOW, counters))
    recount([], [task], NOW + 1, 30, counters=counters)
    assert any(minute.jobs for minute in summary.ahead("ada", NOW, counters))
