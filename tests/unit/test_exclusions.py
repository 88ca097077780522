"""Schedules with calendars: which runs take place, and where the excluded ones go."""

import random
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise, takewhile
from typing import Any

import pytest
from dateutil.rrule import DAILY, MONTHLY, WEEKLY, YEARLY, rrule

from scheduler.model.calendar import Calendar
from scheduler.model.errors import Invalid
from scheduler.model.instants import parse, render
from scheduler.model.schedule import Schedule
from scheduler.tasks import calendar_form, schedule_form, zones
from scheduler.tasks.exclusions import MOST_A_DAY, MOST_MOVED
from scheduler.tasks.schedule import after, next_runs
from tests.conftest import NOW

DAY = 86_400_000
NEW_YEAR = parse("2027-01-01T00:00:00Z")


def calendar(name: str, *dates: str, **fields: Any) -> Calendar:
    return Calendar("ada", name, frozenset(date.fromisoformat(each).toordinal() for each in dates), NOW, **fields)


def schedule(now: int = NOW, *calendars: Calendar, **form: Any) -> Schedule:
    return schedule_form.parse(form, now, {each.name: each for each in calendars})


def local(found: Schedule, count: int, now: int = NOW) -> list[str]:
    return [run.local[:16] for run in next_runs(found, now, count)]


CHRISTMAS = calendar("de", "2026-12-25", "2026-12-26")
BEFORE = parse("2026-12-24T00:00:00Z")


def test_excluded_dates_have_no_run() -> None:
    found = schedule(BEFORE, CHRISTMAS, cron="0 9 * * *", exclude=["de", "2026-12-28"])
    assert local(found, 3, BEFORE) == ["2026-12-24T09:00", "2026-12-27T09:00", "2026-12-29T09:00"]


def test_only_listed_dates_have_runs() -> None:
    found = schedule(BEFORE, CHRISTMAS, cron="0 */12 * * *", only=["de"])
    assert local(found, 9, BEFORE) == ["2026-12-25T00:00", "2026-12-25T12:00", "2026-12-26T00:00", "2026-12-26T12:00"]


def test_a_date_is_that_of_the_zone_of_the_task() -> None:
    found = schedule(BEFORE, CHRISTMAS, cron="30 23 * * *", time_zone="America/New_York", exclude=["de"])
    assert [render(run.nominal) for run in next_runs(found, BEFORE, 3)] == [
        "2026-12-24T04:30:00.000Z",  # the evening of the 23rd
        "2026-12-25T04:30:00.000Z",
        "2026-12-28T04:30:00.000Z",
    ]


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("next_day", ["2026-12-28T09:00", "2027-12-27T09:00", "2028-12-25T09:00"]),
        ("previous_day", ["2026-12-24T09:00", "2027-12-24T09:00", "2028-12-25T09:00"]),
    ],
)
def test_an_excluded_run_moves_to_a_working_day(to: str, expected: list[str]) -> None:
    holidays = calendar("de", "2026-12-25", "2026-12-26", "2027-12-25", "2027-12-26")
    found = schedule(NOW, holidays, cron="0 9 25 12 *", exclude=["de"], on_excluded=to)
    assert local(found, 3) == expected
    assert [run.odd for run in next_runs(found, NOW, 3)] == [
        "excluded by de, moved from 2026-12-25",
        "excluded by de, moved from 2027-12-25",
        None,
    ]


def test_a_search_after_the_date_of_an_excluded_run_finds_where_it_went() -> None:
    found = schedule(BEFORE, CHRISTMAS, cron="0 9 25 12 *", exclude=["de"], on_excluded="next_day")
    assert local(found, 1, parse("2026-12-27T12:00:00Z")) == ["2026-12-28T09:00"]
    assert local(found, 1, parse("2026-12-28T09:00:00Z")) == ["2027-12-25T09:00"]


def test_runs_that_move_to_one_day_run_once_and_count_once() -> None:
    form = {"cron": "0 9 * * *", "exclude": ["2026-12-25", "2026-12-26", "2026-12-27"], "on_excluded": "next_day", "max_runs": 3}
    assert local(schedule(BEFORE, **form), 9, BEFORE) == ["2026-12-24T09:00", "2026-12-28T09:00", "2026-12-29T09:00"]


def test_working_days_follow_the_week_of_the_task() -> None:
    form = {"cron": "0 9 24 12 *", "exclude": ["2026-12-24"], "on_excluded": "next_day", "working_days": ["sun", "mon"]}
    assert local(schedule(BEFORE, **form), 1, BEFORE) == ["2026-12-27T09:00"]


def test_a_run_without_a_working_day_that_near_is_skipped() -> None:
    days = [(date(2026, 12, 24) + timedelta(days=n)).isoformat() for n in range(MOST_MOVED + 8)]
    form = {"cron": "0 9 24 12 *", "exclude": ["long"], "on_excluded": "next_day"}
    assert local(schedule(BEFORE, calendar("long", *days), **form), 1, BEFORE) == ["2027-12-24T09:00"]


def test_a_moved_run_obeys_the_clock_changes_of_its_new_day() -> None:
    before = parse("2027-03-20T00:00:00Z")
    form: dict[str, Any] = {"cron": "30 2 27 3 *", "time_zone": "Europe/Berlin", "exclude": ["2027-03-27"], "on_excluded": "next_day"}
    week = {"working_days": ["sun"]}  # the clock skips 02:30 on Sunday 28 March
    (run,) = next_runs(schedule(before, **form, **week), before, 1)
    assert (run.local, run.odd) == ("2027-03-28T03:00+02:00", "excluded by its dates, moved from 2027-03-27")
    assert local(schedule(before, **form, **week, dst_gap="skip"), 1, before) == ["2028-03-27T02:30"]
    before = parse("2027-10-20T00:00:00Z")
    form |= {"cron": "30 2 30 10 *", "exclude": ["2027-10-30"]}
    both = next_runs(schedule(before, **form, **week, dst_overlap="both"), before, 2)
    assert [run.local for run in both] == ["2027-10-31T02:30+02:00", "2027-10-31T02:30+01:00"]
    (second,) = next_runs(schedule(before, **form, **week, dst_overlap="second"), before, 1)
    assert second.local == "2027-10-31T02:30+01:00"


def test_a_rate_skips_and_moves_too() -> None:
    start = "2026-12-24T10:00:00.500Z"
    skipping = schedule(BEFORE, CHRISTMAS, rate="1 days", start=start, exclude=["de"])
    assert local(skipping, 2, BEFORE) == ["2026-12-24T10:00", "2026-12-27T10:00"]
    moving = schedule(BEFORE, CHRISTMAS, rate="1 days", start=start, exclude=["de"], on_excluded="previous_day")
    assert [render(run.nominal) for run in next_runs(moving, BEFORE, 2)] == ["2026-12-24T10:00:00.500Z", "2026-12-27T10:00:00.500Z"]


def test_a_rate_of_a_second_leaps_over_years() -> None:
    days = [(date(2026, 1, 1) + timedelta(days=n)).isoformat() for n in range(5_000)]
    assert local(schedule(BEFORE, calendar("long", *days), rate="1 seconds", exclude=["long"]), 1, BEFORE) == ["2039-09-10T00:00"]


def test_no_run_is_moved_before_the_start_or_to_the_end() -> None:
    form = {"cron": "0 9 * * *", "exclude": ["2026-12-28", "2026-12-31"], "on_excluded": "previous_day"}
    found = schedule(BEFORE, **form, start="2026-12-28T00:00:00Z", end="2026-12-31T00:00:00Z")
    assert local(found, 9, BEFORE) == ["2026-12-29T09:00", "2026-12-30T09:00"]
    form["on_excluded"] = "next_day"
    found = schedule(BEFORE, **form, start="2026-12-29T00:00:00Z", end="2027-01-01T00:00:00Z")
    assert local(found, 9, BEFORE) == ["2026-12-29T09:00", "2026-12-30T09:00"]


def test_jitter_never_reaches_the_next_run() -> None:
    form = {"cron": "0 9 * * *", "exclude": ["2026-12-25"], "jitter_seconds": 86_400, "on_excluded": "next_day"}
    found = next_runs(schedule(BEFORE, **form), BEFORE, 30, seed="t1")
    assert all(one.nominal <= one.at < two.nominal for one, two in pairwise(found))


@pytest.mark.parametrize("form", [{"exclude": ["all"]}, {"only": ["2026-12-24"]}, {"only": ["2026-12-24"], "on_excluded": "next_day"}])
def test_a_schedule_that_calendars_leave_empty_is_refused(form: dict[str, Any]) -> None:
    every_christmas = calendar("all", *(f"{year}-12-25" for year in range(2026, 2075)))
    with pytest.raises(Invalid, match="leaves no run of the schedule") as refused:
        schedule(NOW, every_christmas, cron="0 9 25 12 *", **form)
    assert refused.value.details[0]["field"] == next(iter(form))


@pytest.mark.parametrize(
    ("form", "field", "rule"),
    [
        ({"exclude": "de"}, "exclude", "must be a list"),
        ({"exclude": ["fr"]}, "exclude", "names fr, and there is no such calendar"),
        ({"exclude": ["2026-02-30"]}, "exclude", 'has "2026-02-30": an entry is a date'),
        ({"exclude": [20261224]}, "exclude", "has 20261224: an entry is a date"),
        ({"exclude": ["de"], "only": ["de"]}, "only", "must be absent beside exclude"),
        ({"only": []}, "only", "must have an entry"),
        ({"exclude": ["2026-12-24"] * 101}, "exclude", "must have at most 100 entries"),
        ({"exclude": [f"c{n}" for n in range(11)]}, "exclude", "must name at most 10 calendars"),
        ({"on_excluded": "skip"}, "on_excluded", "requires exclude or only"),
        ({"exclude": ["de"], "on_excluded": "later"}, "on_excluded", "must be one of skip, next_day, previous_day"),
        ({"exclude": ["de"], "working_days": ["mon"]}, "working_days", "requires on_excluded"),
        ({"exclude": ["de"], "on_excluded": "next_day", "working_days": ["monday"]}, "working_days", "must be a list of MON"),
        ({"exclude": ["de"], "on_excluded": "next_day", "working_days": []}, "working_days", "must be a list of MON"),
    ],
)
def test_each_broken_rule_is_named(form: dict[str, Any], field: str, rule: str) -> None:
    with pytest.raises(Invalid) as refused:
        schedule(NOW, CHRISTMAS, cron="0 9 * * *", **form)
    assert refused.value.details[0]["field"] == field and refused.value.details[0]["rule"].startswith(rule)


def test_a_schedule_with_many_runs_a_day_moves_none() -> None:
    form: dict[str, Any] = {"exclude": ["2026-12-24"], "on_excluded": "next_day"}
    schedule(NOW, rate={"every": 1440 // MOST_A_DAY, "unit": "minutes"}, **form)
    for kind in ({"cron": "*/14 * * * *"}, {"rate": "1 minutes"}):
        with pytest.raises(Invalid, match="on_excluded: must be skip for a schedule with more than 96 runs a day"):
            schedule(NOW, **kind, **form)


def test_one_run_has_no_calendar() -> None:
    with pytest.raises(Invalid, match="exclude: must be absent beside at"):
        schedule(NOW, at=render(NOW + DAY), exclude=["2026-12-24"])


@pytest.mark.parametrize(
    "form",
    [
        {"exclude": ["de", "2026-12-24", "2027-01-01"]},
        {"only": ["de"], "on_excluded": "next_day", "working_days": ["MON", "SAT"]},
        {"exclude": ["2026-12-24"], "on_excluded": "previous_day"},
    ],
)
def test_a_schedule_is_read_back_as_written_and_as_stored(form: dict[str, Any]) -> None:
    holidays = calendar("de", "2026-12-25", "2199-12-31", covers_until=date(2199, 12, 31).toordinal(), version=7)
    form = {"cron": "0 9 * * *"} | form
    found = schedule(NOW, holidays, **form)
    assert schedule_form.write(found) == form
    assert schedule_form.parse(schedule_form.write(found), NOW, {"de": holidays}) == found
    assert schedule_form.restore(schedule_form.stored(found)) == found


def test_5000_dates_take_a_few_kilobytes() -> None:
    days = frozenset(random.Random(1).sample(range(date(2026, 1, 1).toordinal(), date(2067, 1, 1).toordinal()), 5_000))
    text = calendar_form.packed(days)
    assert len(text) < 3_000 and calendar_form.unpacked(text) == days
    assert calendar_form.unpacked(calendar_form.packed(frozenset())) == frozenset()


# Random schedules, against a generator that shares nothing with ours


def expected(spec: "Spec", since: datetime, until: datetime) -> list[int]:
    """dateutil's rule in local time, without the excluded dates or with them moved, and then in UTC."""
    found = set[int]()
    for at in spec.rule(since - timedelta(days=130), until + timedelta(days=130)):
        if spec.excludes(at.date()):
            if spec.to == "skip":
                continue
            step = 1 if spec.to == "next_day" else -1
            days = (at.date() + timedelta(days=step * n) for n in range(1, MOST_MOVED + 1))
            day = next((day for day in days if day.weekday() < 5 and not spec.excludes(day)), None)
            if day is None:
                continue
            shown = datetime.fromtimestamp(utc(at, spec.zone) // 1000, zones.zone(spec.zone))  # the clock may skip its time
            at = datetime.combine(day, shown.time())
        found.add(utc(at, spec.zone))
    low, high = utc(since, "UTC"), utc(until, "UTC")
    return sorted(at for at in found if low < at < high)


def utc(at: datetime, zone: str) -> int:
    """The instant of a local time; of one that the clock skips: the first minute after the gap."""
    there = zones.zone(zone)
    while (instant := at.replace(tzinfo=there)).astimezone(UTC).astimezone(there).replace(tzinfo=None) != at:
        at += timedelta(minutes=1)
    return int(instant.timestamp() * 1000)


class Spec:
    """A random schedule with calendars, for both generators."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        names = sorted(zones.names())
        self.zone = names[seed * 37 % len(names)]
        self.to = rng.choice(["skip", "next_day", "previous_day"])
        self.hour, self.minute = rng.randrange(24), rng.choice([0, 1, 30, 59])
        self.days = sorted(rng.sample(range(7), rng.randint(1, 7))) if seed % 3 == 0 else []
        self.dates = sorted(rng.sample(range(1, 29), rng.randint(1, 6))) if seed % 3 == 1 else []
        self.month = rng.randint(1, 12) if seed % 6 > 2 else None
        self.only = rng.random() < 0.2
        first = date(2026, 1, 1)
        singles = {first + timedelta(days=rng.randrange(45 * 365)) for _ in range(rng.choice([0, 300, 3_000]))}
        rows = {first + timedelta(days=begin + n) for begin in rng.sample(range(45 * 365), 30) for n in range(rng.choice([3, 20]))}
        self.listed = frozenset(singles | rows)

    def excludes(self, day: date) -> bool:
        return (day in self.listed) != self.only

    @property
    def form(self) -> dict[str, Any]:
        week = ",".join(str((day + 1) % 7) for day in self.days) or "*"
        dates = ",".join(map(str, self.dates)) or "*"
        cron = f"{self.minute} {self.hour} {dates} {self.month or '*'} {week}"
        return {"cron": cron, "time_zone": self.zone, "on_excluded": self.to, "only" if self.only else "exclude": ["cal"]}

    def rule(self, since: datetime, until: datetime) -> Iterator[datetime]:
        options: dict[str, Any] = {"byhour": self.hour, "byminute": self.minute, "bysecond": 0}
        if self.month is not None:
            options["bymonth"] = self.month
        if self.dates:
            options["bymonthday"] = self.dates
        if self.days:
            options["byweekday"] = self.days
        kind = (YEARLY if self.month and self.dates else MONTHLY) if self.dates else WEEKLY if self.days and not self.month else DAILY
        yield from rrule(kind, dtstart=since.replace(hour=0, minute=0), until=until, cache=False, **options)


def check(seed: int, years: int) -> int:
    spec = Spec(seed)
    since, until = datetime(2027, 1, 1), datetime(2027 + years, 1, 1)
    wanted = expected(spec, since, until)
    found = schedule_of(spec)
    if found is None:
        assert wanted == []
        return 0
    low, high = utc(since, "UTC"), utc(until, "UTC")
    runs = [run.nominal for run in takewhile(lambda run: run.nominal < high, after(found, low))]
    assert runs == wanted, f"seed {seed}: {spec.form}"
    for begin in runs[:: max(1, len(runs) // 5)]:  # wherever a search begins, it finds the same runs
        for since, first in ((begin, 1), (begin - 1, 0)):
            following = [run.nominal for run in next_runs(found, since, 4) if run.nominal < high]
            assert following == runs[runs.index(begin) + first :][:4], f"seed {seed}: {spec.form}"
    return len(runs)


def schedule_of(spec: Spec) -> Schedule | None:
    try:
        return schedule(NEW_YEAR, calendar("cal", *(day.isoformat() for day in spec.listed)), **spec.form)
    except Invalid as error:
        assert "leaves no run" in error.message
        return None


def check_all() -> None:
    runs = sum(check(seed, 41) for seed in range(1_000))
    sys.stdout.write(f"1,000 schedules, {runs:,} runs in 41 years\n")


def test_random_schedules_equal_an_independent_generator() -> None:
    assert sum(check(seed, 2) for seed in range(24)) > 500


@pytest.mark.long
@pytest.mark.parametrize("part", range(5))
def test_41_years_of_random_schedules_equal_an_independent_generator(part: int) -> None:
    """`python -m tests.unit.test_exclusions` checks 1,000 schedules, with which each zone has one."""
    assert sum(check(seed, 41) for seed in range(part, 1_000, 97)) > 5_000


if __name__ == "__main__":
    check_all()


def test_a_search_ends_behind_the_last_date_on_which_runs_may_take_place() -> None:
    moving = schedule(BEFORE, rate="rate(15 minutes)", only=["2026-12-25"], on_excluded="previous_day", working_days=["FRI"])
    assert len(next_runs(moving, BEFORE, 1_000)) == 96, "without a bound it would search 41 years"
