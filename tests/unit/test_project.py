"""Changes of jobs and tasks become counters, and the counters equal a recount of the tables."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scheduler.insight import counting
from scheduler.insight.counting import EVERYBODY, day_of, hour_of, load_at
from scheduler.insight.forecast import MINUTE
from scheduler.insight.project import ProjectResult, project
from scheduler.model import ids, lifecycle
from scheduler.model.counters import CounterEntry
from scheduler.model.job import CANARY_OWNER, Claim, Job, Misfire, Overlap, Result, RunInfo, Status
from scheduler.model.schedule import Cron, Rate, Schedule
from scheduler.model.spec import Ordering
from scheduler.model.task import Task
from scheduler.storage.aws.stream import JobChange, TaskChange
from scheduler.storage.memory.counters import MemoryCounters
from scheduler.storage.memory.ports import MemoryPorts
from tests.conftest import FixedClock
from tests.contract import make
from tests.contract.make import NOW

SLOT = "2026-11-20T10:09#03"


class CounterLog(MemoryPorts):
    """Counters to which changes are added, one batch each."""

    def __init__(self) -> None:
        super().__init__(FixedClock())
        self._sequence = 0

    def change(self, before: Any, after: Any) -> ProjectResult:
        self._sequence += 1
        kind = TaskChange if isinstance(before or after, Task) else JobChange
        return project("s", [kind(f"{self._sequence:040d}", before, after)], self)

    def through(self, *states: Job | Task | None) -> ProjectResult:
        for before, after in zip((None, *states), states, strict=False):
            result = self.change(before, after)
        return result

    def load(self, owner: str = EVERYBODY) -> dict[tuple[int, str], int]:
        rows = self.counters.read(counting.load_partition(owner), "0", "~")
        return {(at, type): amount for row in rows for at, type, amount in load_at(row)}

    def stats(self, owner: str = EVERYBODY) -> dict[str, dict[str, int]]:
        return {row.name: dict(row.amounts) for row in self.counters.read(counting.stats_partition(owner), "0", "~")}

    def recurring(self, owner: str = EVERYBODY) -> list[int]:
        return [row.amounts.get("tasks", 0) for row in self.counters.read(counting.recurring_partition(owner), "0", "~")]


@pytest.fixture
def log() -> CounterLog:
    return CounterLog()


def minute(at: int) -> int:
    return at // MINUTE * MINUTE


def test_a_job_counts_as_load_of_its_minute_for_its_owner_and_all(log: CounterLog) -> None:
    job = make.job(at=NOW + 90_000, type="http")
    log.through(job)
    assert log.load() == log.load("ada") == {(minute(NOW + 90_000), "http"): 1}
    assert log.load("eve") == {}


def test_a_claimed_start_stays_in_the_count_of_its_minute(log: CounterLog) -> None:
    job = make.job(at=NOW)
    claimed = make.claimed(job)
    log.through(job, claimed, make.succeeded(claimed), None)
    assert log.load() == {(minute(NOW), "log"): 1}


@pytest.mark.parametrize("gone", [make.cancelled, lambda job: None], ids=["cancelled", "withdrawn"])
def test_a_cancelled_start_leaves_the_count(log: CounterLog, gone: Any) -> None:
    job = make.job(at=NOW)
    log.through(job, gone(job))
    assert log.load() == {}


def test_a_moved_start_moves_and_reconciling_changes_nothing(log: CounterLog) -> None:
    job = make.job(at=NOW)
    log.through(job, make.rescheduled(job, NOW + 3 * MINUTE))
    assert log.load() == {(minute(NOW + 3 * MINUTE), "log"): 1}
    log.change(job, make.moved(job, SLOT))
    assert log.load() == {(minute(NOW + 3 * MINUTE), "log"): 1}


def test_a_move_within_an_hour_is_one_entry(log: CounterLog) -> None:
    """Two entries of one row with the same sequence would count as one."""
    job = make.job(at=NOW // 3_600_000 * 3_600_000)
    log.through(job, make.rescheduled(job, job.due_at + MINUTE))
    assert log.load() == {(minute(job.due_at + MINUTE), "log"): 1}


def test_a_retry_is_another_start(log: CounterLog) -> None:
    job = make.job(at=NOW)
    claimed = make.claimed(job)
    log.through(job, claimed, make.retried(claimed, SLOT, NOW + 5 * MINUTE))
    assert log.load() == {(minute(NOW), "log"): 1, (minute(NOW + 5 * MINUTE), "log"): 1}


def test_a_recurring_run_is_load_only_as_a_retry(log: CounterLog) -> None:
    origin = RunInfo("t", 1, NOW, Overlap.SKIP, Misfire.RUN_LATEST)
    run = make.job(at=NOW, origin=origin)
    claimed = make.claimed(run)
    log.through(run, claimed)
    assert log.load() == {}
    log.change(claimed, make.retried(claimed, SLOT, NOW + MINUTE))
    assert log.load() == {(minute(NOW + MINUTE), "log"): 1}
    log.through(make.job(at=NOW, origin=RunInfo("t", 1, overlap=Overlap.SKIP)))
    assert log.load()[(minute(NOW), "log")] == 1, "a manual run: no schedule contains it"


def test_an_end_is_counted_with_its_run_time(log: CounterLog) -> None:
    claimed = make.claimed(make.job(at=NOW))
    log.through(claimed, make.succeeded(claimed, NOW + 1_000))
    day = f"{day_of(NOW + 1_000)}#log"
    assert log.stats() == log.stats("ada") == {day: {"succeeded": 1, "runs": 1, "run_ms": 1_000, "h39": 1}}


def test_the_deletion_of_an_ended_job_adds_nothing(log: CounterLog) -> None:
    claimed = make.claimed(make.job(at=NOW))
    ended = make.succeeded(claimed)
    log.through(claimed, ended)
    before = log.stats()
    log.change(ended, None)
    log.change(ended, replace(ended, expires=1))
    assert log.stats() == before and log.load() == {}


def test_each_life_has_its_end(log: CounterLog) -> None:
    claimed = make.claimed(make.job(at=NOW))
    failed = make.failed(claimed)
    again = make.redriven(failed)
    log.through(claimed, failed, again, make.cancelled(again))
    assert sum(each["failed"] for each in log.stats().values() if "failed" in each) == 1
    assert sum(each.get("cancelled", 0) for each in log.stats().values()) == 1
    assert log.load() == {}, "the start of its second life was cancelled"


def test_a_job_that_never_started_has_no_run_time(log: CounterLog) -> None:
    job = make.job(at=NOW)
    log.through(job, make.cancelled(job))
    assert log.stats() == {f"{day_of(NOW)}#log": {"cancelled": 1}}


def test_a_late_start_is_counted_as_late(log: CounterLog) -> None:
    job = make.claimed(make.job(at=NOW))
    late = lifecycle.succeed(job, NOW + 20_000, started_at=NOW + 15_000, result=Result("done"))
    log.through(job, late)
    assert next(iter(log.stats().values()))["late"] == 1


def test_recurring_tasks_are_counted_by_recurrence(log: CounterLog) -> None:
    tasks = [make.task(schedule=Schedule(Cron("*/5 * * * *")), owner=owner) for owner in ("ada", "ada", "eve")]
    for task in tasks:
        log.change(None, task)
    assert (log.recurring(), log.recurring("ada"), log.recurring("eve")) == ([3], [2], [1])
    rows = len(log.counters.rows)
    log.change(tasks[0], replace(tasks[0], planned_until=NOW + 10**7, planned=40))
    log.change(tasks[1], replace(tasks[1], inactive_at=NOW, replenish=None))
    log.change(tasks[2], None)
    assert log.recurring() == [1] and len(log.counters.rows) == rows


def test_an_edit_moves_a_task_to_another_recurrence(log: CounterLog) -> None:
    task = make.task(schedule=Schedule(Cron("*/5 * * * *", "Europe/Berlin")), type="http")
    log.through(task, replace(task, schedule=Schedule(Rate(60_000, NOW)), generation=2))
    rows = log.counters.read(counting.recurring_partition(EVERYBODY), "0", "~")
    assert sorted(row.amounts.get("tasks", 0) for row in rows) == [0, 1]
    read = {counting.read_recurrence(row.about or "").schedule.spec for row in rows}
    assert read == {Cron("*/5 * * * *", "Europe/Berlin"), Rate(60_000, NOW % 60_000 // 1_000 * 1_000)}


def test_delays_are_reported_of_jobs_that_waited_only_for_their_time(log: CounterLog) -> None:
    job = make.job(at=NOW)
    claimed = make.claimed(job)
    result = log.through(job, claimed, make.succeeded(claimed, NOW + 250))
    assert (result.start_delays_ms, result.latencies_ms, result.overheads_ms) == ([0], [250], [0])
    assert (result.processed, result.dead, result.ended) == (1, 0, {"succeeded": 1})
    for other in (
        replace(claimed, fence=2),
        replace(claimed, spec=replace(claimed.spec, ordering=Ordering("k"))),
        replace(claimed, created_at=NOW + 1),
    ):
        result = log.through(other, make.failed(other))
        assert result.start_delays_ms == [] and result.dead == 1


def test_a_creation_is_reported_once(log: CounterLog) -> None:
    job = make.job(at=NOW)
    assert log.through(job).created == 1
    assert log.change(job, make.claimed(job)).created == 0


def test_a_job_whose_executors_die_before_its_start_is_reported_late(log: CounterLog) -> None:
    job, delays = make.job(at=NOW), list[list[int]]()
    for number in range(3):
        at = max(job.due_at, NOW)
        claimed = lifecycle.claim(job, claim=Claim(f"m{number}", f"n{number}", at, True))
        log.change(job, claimed)
        job = lifecycle.take_back(claimed, at + 30_000, slot=SLOT)
        delays.append(log.change(claimed, job).start_delays_ms)
        assert log.change(job, lifecycle.move(job, slot=SLOT)).start_delays_ms == []
    assert delays == [[], [60_000], [90_000]]


def test_the_canary_is_not_counted_and_its_delay_is_reported(log: CounterLog) -> None:
    claimed = make.claimed(make.job(at=NOW, owner=CANARY_OWNER))
    result = log.through(claimed, make.succeeded(claimed))
    assert result.canary_delays_ms == [0]
    assert (result.processed, result.created, log.counters.rows) == (0, 0, {})


# A chaotic run: jobs take random legal steps; their stream arrives in several shards, repeated, cut and bisected; then all is recounted.


def _steps(chance: random.Random, job: Job) -> list[Job | None]:
    """A sequence of random legal states, beginning with the creation."""
    steps: dict[Status, list[Callable[[Job, int], Job | None]]] = {
        Status.SCHEDULED: [
            lambda each, _: make.claimed(each),
            lambda each, _: make.cancelled(each),
            lambda each, _: make.moved(each, SLOT),
            make.rescheduled,
        ],
        Status.RUNNING: [
            lambda each, _: make.succeeded(each),
            lambda each, _: make.failed(each),
            lambda each, later: make.retried(each, SLOT, later),
            lambda each, _: make.taken_back(each),
        ],
        Status.FAILED: [lambda each, _: make.redriven(each), lambda each, _: None],
    }
    states: list[Job | None] = [job]
    for _ in range(chance.randint(1, 6)):
        current = states[-1]
        possible = steps.get(lifecycle.state(current)) if current is not None else None
        if current is None or possible is None:
            break
        states.append(chance.choice(possible)(current, NOW + chance.randint(1, 600) * 1_000))
    return states


def _some_job(chance: random.Random, number: int) -> Job:
    at, owner, type = NOW + chance.randint(0, 600) * 1_000, chance.choice(["ada", "eve"]), chance.choice(["log", "http"])
    return make.job(id=ids.new(NOW, number), at=at, owner=owner, type=type)


@pytest.mark.parametrize("seed", range(20))
def test_after_a_chaotic_run_the_counters_are_what_a_recount_finds(seed: int) -> None:
    chance = random.Random(seed)
    jobs = [_some_job(chance, number) for number in range(60)]
    histories = [_steps(chance, job) for job in jobs]
    shards: dict[str, list[JobChange]] = {"a": [], "b": [], "c": []}
    waiting = [list(zip((None, *states), states, strict=False)) for states in histories]
    while any(waiting):
        number = chance.choice([each for each, steps in enumerate(waiting) if steps])
        before, after = waiting[number].pop(0)
        shard = shards["abc"[number % 3]]
        shard.append(JobChange(f"{len(shard) + 1:040d}", before, after))
    counters = MemoryCounters()
    for name, stream in shards.items():
        done = 0
        while done < len(stream):
            size = chance.randint(1, 25)
            for _ in range(chance.randint(0, 2)):  # aborted after some rows, then retried in halves
                project(name, stream[done : done + size], MemoryPorts(FixedClock(), counters=_Dying(counters, chance)))
                size = max(1, size // 2)
            project(name, stream[done : done + size], MemoryPorts(FixedClock(), counters=counters))
            done += size
    log = CounterLog()
    log.counters = counters

    planned: dict[tuple[int, str], int] = {}
    ends: dict[str, int] = {}
    ran = 0
    for states in histories:
        for before, after in zip((None, *states), states, strict=False):
            for job, amount in ((before, -1), (after, 1)):
                open_ = job is not None and job.slot is not None and job.claim is None
                if open_ and job is not None and not (amount < 0 and after is not None and after.claim is not None):
                    key = (minute(job.due_at), job.spec.type)
                    planned[key] = planned.get(key, 0) + amount
            if after is not None and after.slot is None and before is not None and before.slot is not None:
                status = str(lifecycle.state(after))
                ends[status] = ends.get(status, 0) + 1
                ran += after.started_at is not None
    assert log.load() == {key: amount for key, amount in planned.items() if amount}
    both = {owner: log.load(owner) for owner in ("ada", "eve")}
    assert {key: sum(each.get(key, 0) for each in both.values()) for key in log.load()} == log.load()
    counted: dict[str, int] = {}
    for row in log.stats().values():
        for name, amount in row.items():
            counted[name] = counted.get(name, 0) + amount
    assert {name: counted.get(name, 0) for name in ends} == ends and counted.get("runs", 0) == ran
    assert sum(amount for name, amount in counted.items() if name.startswith("h")) == ran


class _Dying:
    """Counters in a call that dies: only some rows are written."""

    def __init__(self, counters: MemoryCounters, chance: random.Random) -> None:
        self._counters, self._chance = counters, chance

    def add(self, shard: str, entries: list[CounterEntry]) -> None:
        rows = sorted({entry.row[:2] for entry in entries})
        written = set(self._chance.sample(rows, self._chance.randint(0, len(rows))))
        self._counters.add(shard, [entry for entry in entries if entry.row[:2] in written])


def test_hours_and_days_are_read_from_the_instant() -> None:
    assert (hour_of(NOW), day_of(NOW)) == ("2026-11-18T11", "2026-11-18")
