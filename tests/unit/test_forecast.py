"""The forecast, minute by minute."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.insight import forecast
from scheduler.insight.forecast import AHEAD, CALLED, MINUTE, UNKNOWN_MS, expected, recurrence, together
from scheduler.model.instants import parse
from scheduler.model.schedule import Cron, Dates, Every, Exclusions, Once, Rate, Schedule
from scheduler.model.task import Task
from scheduler.targets import registry
from scheduler.tasks import schedule as runs
from scheduler.tasks import zones
from scheduler.tasks.planning import next_runs
from tests.contract import make

NOW = parse("2026-11-20T10:00:30Z")
FIRST = NOW // MINUTE * MINUTE


def a_task(schedule: Schedule | None, **fields: Any) -> Task:
    chosen: dict[str, Any] = {"created_at": NOW - 3_600_000, "updated_at": NOW - 3_600_000, "planned_until": NOW, "planned": 0}
    return make.task(schedule=schedule, **(chosen | fields))


def recurrences(*tasks: Task) -> list[tuple[forecast.Recurrence, int]]:
    return [(each, 1) for task in tasks if (each := recurrence(task)) is not None]


def starts(*tasks: Task, since: int = NOW, until: int = NOW + AHEAD) -> dict[int, int]:
    minutes = expected({}, recurrences(*tasks), {}, since, until)
    return {each.at: each.jobs for each in minutes if each.jobs}


def by_the_planner(task: Task, until: int = NOW + AHEAD) -> dict[int, int]:
    """The same from the runs that plan would store, one by one."""
    found: dict[int, int] = {}
    for run in next_runs(replace(task, planned_until=FIRST - 1, updated_at=FIRST - 1), FIRST - 1, 12_000):
        minute = run.at // MINUTE * MINUTE
        if minute < until:
            found[minute] = found.get(minute, 0) + 1
    return found


def test_stored_jobs_and_recurring_tasks_add_up() -> None:
    task = a_task(Schedule(Cron("2 10 * * *")), type="http")
    stored = {FIRST + 2 * MINUTE: {"http": 4, "log": 2}, FIRST - MINUTE: {"log": 9}}
    minutes = expected(stored, [(each, 10) for each, _ in recurrences(task)], {"http": 2_000.0}, NOW, NOW + 4 * MINUTE)
    assert [each.at for each in minutes] == [FIRST + number * MINUTE for number in range(5)]
    assert minutes[2] == (FIRST + 2 * MINUTE, 16, 14 * 2_000 + 2 * UNKNOWN_MS, 14 * 2_000)
    assert [each.executors for each in minutes] == [0, 0, 4, 0, 0]  # 30,000 / 9,000
    assert forecast.most(minutes) == 4 and forecast.most([]) == 0


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(Cron("*/5 * * * *")),
        Schedule(Cron("0 12 * * *", "Europe/Berlin")),
        Schedule(Cron("* * * * *"), start=NOW + 3_600_000),
        Schedule(Cron("* * * * *"), end=NOW + 3_600_000),
        Schedule(Cron("*/10 * * * *"), jitter_ms=400_000),
        Schedule(Rate(7_000, NOW - 3_123)),
        Schedule(Rate(90_000, NOW - 86_400_000 - 59_999)),
        Schedule(Rate(3_600_000, NOW + 7_000_000)),
        Schedule(Rate(60_000, NOW - 30_000), end=NOW + 600_000),
        Schedule(Rate(60_000, NOW - 30_000), max_runs=5),
    ],
    ids=str,
)
def test_a_recurring_task_is_expected_at_the_minutes_of_its_runs(schedule: Schedule) -> None:
    task = a_task(schedule, planned_until=FIRST - 1)
    assert starts(task) == by_the_planner(task) != {}


@pytest.mark.long
@given(st.integers(1, 7_200), st.integers(60_000, 10**7), st.integers(0, 3_000))
def test_a_rate_is_expected_in_the_minutes_of_its_runs(seconds: int, ago: int, end: int) -> None:
    schedule = Schedule(Rate(seconds * 1_000, NOW - ago), end=NOW + end * 7_000 if end else None)
    task = a_task(schedule, created_at=NOW - ago, updated_at=NOW - ago, planned_until=FIRST - 1)
    assert starts(task) == by_the_planner(task)


@pytest.mark.parametrize("schedule", [None, Schedule(Once(NOW + MINUTE))])
def test_a_task_that_is_not_recurring_has_no_recurrence(schedule: Schedule | None) -> None:
    assert recurrence(a_task(schedule)) is None


@pytest.mark.parametrize("spec", [Cron("*/5 * * * *", "Asia/Tokyo"), Rate(300_000, NOW, "Asia/Tokyo")])
def test_no_run_is_expected_on_an_excluded_date(spec: Cron | Rate) -> None:
    today = datetime.fromtimestamp(NOW // 1000, zones.zone("Asia/Tokyo")).toordinal()
    excluded = Schedule(spec, days=Exclusions((Dates(frozenset({today})),)))
    assert starts(a_task(excluded)) == by_the_planner(a_task(excluded)) != starts(a_task(Schedule(spec)))
    assert starts(a_task(replace(excluded, days=Exclusions((Dates(frozenset({today})),), only=True))))


def test_a_paused_task_is_not_expected() -> None:
    assert recurrence(a_task(Schedule(Cron("* * * * *")), inactive_at=NOW)) is None


def test_a_task_with_nothing_more_to_plan_ends_with_its_last_stored_run() -> None:
    task = a_task(Schedule(Rate(MINUTE, FIRST), max_runs=50), replenish=None, planned_until=FIRST + 3 * MINUTE, planned=50)
    assert starts(task) == {FIRST + number * MINUTE: 1 for number in range(4)}


def test_the_last_of_many_runs_is_not_computed() -> None:
    task = a_task(Schedule(Rate(MINUTE, FIRST), max_runs=1_000_000))
    found = recurrence(task)
    assert found is not None and found.schedule.end is None


def test_tasks_that_run_at_the_same_times_share_one_recurrence() -> None:
    one = a_task(Schedule(Cron("*/5 * * * *"), max_runs=10_000))
    other = a_task(Schedule(Cron("*/5 * * * *")), owner="eve", name="another", planned=7)
    assert recurrence(one) == recurrence(other)
    assert recurrence(one) != recurrence(replace(other, spec=replace(other.spec, type="http")))
    beat = [a_task(Schedule(Rate(300_000, start)), updated_at=start) for start in (NOW - 900_000, NOW - 300_000 + 400)]
    assert recurrence(beat[0]) == recurrence(beat[1])
    assert recurrence(beat[0]) != recurrence(a_task(Schedule(Rate(300_000, NOW - 290_000)), updated_at=NOW - 290_000))


@pytest.mark.parametrize("weekdays", [(), (0, 6)])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def test_tasks_of_the_same_days_share_one_recurrence(weekdays: tuple[int, ...], zone: str) -> None:
    day = 1_440 * MINUTE
    period = 3 * day * (7 if weekdays else 1)
    found = [recurrence(a_task(Schedule(Every(3, NOW - number * period, (540, 620), weekdays, zone)))) for number in range(1, 40)]
    assert len(set(map(str, found))) == 1 and found[0] is not None
    spec = Every(3, NOW - period, (540, 620), weekdays, zone)
    assert runs.next_runs(found[0].schedule, NOW, 50) == runs.next_runs(Schedule(spec), NOW, 50)
    assert recurrence(a_task(Schedule(replace(spec, start=NOW - period - day if not weekdays else NOW - period - 7 * day)))) != found[0]
    ahead = Schedule(replace(spec, start=NOW + day))
    assert recurrence(a_task(ahead)) == recurrence(a_task(ahead)) != found[0]


def test_a_recurrence_does_not_change_as_plan_moves_on() -> None:
    task = a_task(Schedule(Cron("*/5 * * * *"), jitter_ms=200_000))
    assert recurrence(replace(task, planned_until=NOW + 10**6, planned=30, replenish="2026-11-20T11:00#01")) == recurrence(task)


def test_a_negative_count_of_a_minute_is_no_expected_job() -> None:
    (minute, *_) = expected({FIRST: {"log": -3, "http": 2}}, [], {}, NOW, NOW + 1)
    assert (minute.jobs, minute.compute_ms) == (2, 2 * UNKNOWN_MS)


def test_calls_of_urls_are_counted_by_themselves() -> None:
    """Each needs an execution of `fetch` beside the executor that waits for it."""
    called = [name for name in registry.names() if registry.load(name).ahead_ms]
    assert called == [CALLED]
    (minute,) = expected({FIRST: {CALLED: 50, "log": 1_000}}, [], {CALLED: 1_800.0, "log": 9.0}, FIRST, FIRST + MINUTE)
    assert (minute.calls, minute.executors) == (10, 11)
    assert together([[minute], [minute]])[0].calls == 20
