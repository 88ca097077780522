"""The days of a schedule: counted fast, and exactly as its runs are."""

from collections import Counter
from dataclasses import replace
from datetime import date
from itertools import takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model.instants import parse
from scheduler.model.schedule import Cron, Dates, Every, Exclusions, Once, Rate, Schedule
from scheduler.tasks.exclusions import day_of
from scheduler.tasks.schedule import after
from scheduler.tasks.year import Day, begin_of, day_of_instant, days

NOW = parse("2026-11-20T10:00:00.500Z")
MINUTE, HOUR = 60_000, 3_600_000
BERLIN = "Europe/Berlin"


def day(text: str) -> int:
    return date.fromisoformat(text).toordinal()


def counted(schedule: Schedule, since: int, first: int, count: int) -> dict[int, int]:
    """The runs by date, one by one."""
    until = begin_of(first + count + 2, schedule.spec.zone)
    found = Counter(day_of(run.local) for run in takewhile(lambda run: run.nominal < until, after(schedule, since)))
    return {each: runs for each, runs in found.items() if first <= each < first + count}


def marks(schedule: Schedule, since: int = NOW, first: str = "2026-11-20", count: int = 366) -> dict[str, Day]:
    found = days(schedule, since, day(first), count)
    return {date.fromordinal(each.date).isoformat(): replace(each, date=0) for each in found}


SPECS = (
    Cron("30 2 * * *", BERLIN),
    Cron("30 2 * * *", BERLIN, dst_gap="skip", dst_overlap="both"),
    Cron("*/15 * * * *", BERLIN),
    Cron("0 0 * * *", "America/Santiago"),
    Cron("0 9 LW * *", "Australia/Lord_Howe", more=("30 1,2 * * SUN", "*/20 0 * * *")),
    Every(2, NOW + 20 * HOUR, (150, 540), (1, 6), zone=BERLIN),
    Every(3, NOW + HOUR, (0, 90, 1439), zone="America/New_York", dst_gap="skip", dst_overlap="second"),
    Rate(7 * HOUR, NOW + 5 * HOUR, BERLIN),
    Rate(20 * MINUTE, NOW - 40 * HOUR, "America/New_York"),
    Once(NOW + 100 * HOUR, BERLIN),
)
HOLIDAYS = frozenset(
    day(each) for each in ("2026-11-21", "2026-12-25", "2026-12-26", "2027-01-01", "2027-03-28", "2027-03-29", "2027-10-31")
)
RULES = (
    None,
    *(Exclusions((Dates(HOLIDAYS, "de"),), on_excluded=each) for each in ("skip", "next_day", "previous_day")),
    Exclusions((Dates(HOLIDAYS),), only=True),
    Exclusions((Dates(HOLIDAYS),), only=True, on_excluded="next_day", working_days=(0, 1, 2, 3, 4, 5, 6)),
)


@settings(max_examples=60)
@given(
    spec=st.sampled_from(SPECS),
    rule=st.sampled_from(RULES),
    start=st.none() | st.integers(0, 40 * 24).map(lambda hours: NOW + hours * HOUR + 1),
    length=st.none() | st.integers(1, 380 * 24).map(lambda hours: hours * HOUR),
    max_runs=st.none() | st.integers(1, 500),
    ahead=st.integers(-3, 130),
    count=st.integers(1, 366),
    since=st.integers(0, 100 * 24).map(lambda hours: NOW + hours * HOUR),
)
def test_every_date_has_the_number_of_its_runs(
    spec: Cron | Every | Rate | Once,
    rule: Exclusions | None,
    start: int | None,
    length: int | None,
    max_runs: int | None,
    ahead: int,
    count: int,
    since: int,
) -> None:
    recurring = not isinstance(spec, Once)
    own = isinstance(spec, Rate | Every)
    end = None if length is None else (start or NOW) + length
    schedule = Schedule(spec, None if own else start, end, max_runs, days=rule if recurring else None)
    first = day_of_instant(since, spec.zone) + ahead
    found = days(schedule, since, first, count)
    assert {each.date: each.planned for each in found if each.planned} == counted(schedule, since, first, count)
    assert [each.date for each in found] == sorted({each.date for each in found})
    assert not any(each.is_plain or (each.excluded and each.planned) for each in found)


def test_a_clock_change_is_marked_where_the_schedule_has_a_time() -> None:
    nightly = marks(Schedule(Cron("30 2 * * *", BERLIN, dst_gap="skip")))
    assert [name for name, each in nightly.items() if each.clock_change] == ["2027-03-28", "2027-10-31"]
    assert nightly["2027-03-28"].planned == 0
    on_mondays = marks(Schedule(Cron("30 2 * * MON", BERLIN)))
    assert not any(each.clock_change for each in on_mondays.values())


def test_an_excluded_date_and_the_date_of_its_runs_name_each_other() -> None:
    rule = Exclusions((Dates(HOLIDAYS, "de"),), on_excluded="next_day")
    found = marks(Schedule(Cron("0 9,17 * * *"), days=rule))
    assert found["2026-12-25"] == Day(0, excluded="excluded by de", moved_to=day("2026-12-28"))
    assert found["2026-12-28"] == Day(0, 2, moved_from=(day("2026-12-25"), day("2026-12-26")))
    skipping = marks(Schedule(Cron("0 9 * * *"), days=replace(rule, on_excluded="skip")))
    assert skipping["2026-12-25"] == Day(0, excluded="excluded by de")


def test_a_date_without_runs_and_marks_is_absent() -> None:
    assert list(marks(Schedule(Cron("0 9 24 12 *", BERLIN)))) == ["2026-12-24"]
    workdays = Schedule(Cron("0 9 * * MON-FRI"), days=Exclusions((Dates(HOLIDAYS, "de"),)))
    assert "2026-11-21" not in marks(workdays), "a Saturday has no run to exclude"


def test_no_date_after_the_last_run_is_marked() -> None:
    rule = Exclusions((Dates(HOLIDAYS, "de"),))
    found = marks(Schedule(Cron("0 9 * * *"), max_runs=33, days=rule))
    assert list(found)[-1] == "2026-12-24"
    assert days(Schedule(Cron("0 9 * * *"), max_runs=3), NOW, day("2026-11-20"), 366, planned=3) == []


@pytest.mark.parametrize("spec", [Rate(1_000, NOW, BERLIN), Cron("* * * * *", BERLIN)])
def test_dense_schedules_are_counted(spec: Rate | Cron) -> None:
    found = marks(Schedule(spec))
    a_day = 86_400 if isinstance(spec, Rate) else 1_440
    assert found["2027-01-01"].planned == a_day
    assert (found["2027-03-28"].planned, found["2027-10-31"].planned) == (a_day * 23 // 24, a_day * 25 // 24)
