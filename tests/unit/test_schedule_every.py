"""Runs every n days or weeks at a local time, compared with dateutil's reading of RFC 5545."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random

import pytest
from dateutil import rrule

from scheduler.model.instants import parse
from scheduler.model.schedule import Cron, Every, Schedule
from scheduler.tasks import rhythm, zones
from scheduler.tasks.schedule import day_start, next_runs, skipped
from tests.unit.minute_by_minute import ODD_ZONES, random_case

MS = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def local(spec: Every, since: str, count: int) -> list[str]:
    return [run.local for run in next_runs(Schedule(spec), parse(since), count)]


def test_the_local_time_stays_when_the_clock_changes() -> None:
    spec = Every(14, parse("2027-03-14T00:00:00+01:00"), (540,), zone="Europe/Berlin")
    assert local(spec, "2027-03-01T00:00:00Z", 3) == ["2027-03-14T09:00+01:00", "2027-03-28T09:00+02:00", "2027-04-11T09:00+02:00"]


def test_no_run_is_before_the_start_and_one_at_the_start_counts() -> None:
    spec = Every(2, parse("2027-01-01T10:00:00Z"), (540, 600))
    assert local(spec, "2020-01-01T00:00:00Z", 3) == ["2027-01-01T10:00+00:00", "2027-01-03T09:00+00:00", "2027-01-03T10:00+00:00"]


def test_weeks_begin_on_monday() -> None:
    spec = Every(2, parse("2027-01-05T00:00:00Z"), (540,), (1, 6))  # a Tuesday
    assert [run[5:10] for run in local(spec, "2027-01-01T00:00:00Z", 5)] == ["01-05", "01-10", "01-19", "01-24", "02-02"]


def test_a_time_in_a_gap_or_an_overlap_follows_the_rules_of_cron() -> None:
    spring = Every(7, parse("2027-03-21T00:00:00+01:00"), (150,), zone="Europe/Berlin")
    (run,) = next_runs(Schedule(spring), parse("2027-03-27T00:00:00Z"), 1)
    assert (run.local, run.odd) == ("2027-03-28T03:00+02:00", "gap: 02:30 does not exist, runs 03:00")
    left_out = Every(7, spring.start, (150,), zone="Europe/Berlin", dst_gap="skip")
    assert local(left_out, "2027-03-27T00:00:00Z", 1) == ["2027-04-04T02:30+02:00"]
    (gap,) = skipped(Schedule(left_out), parse("2027-03-27T00:00:00Z"), parse("2027-04-01T00:00:00Z"))
    assert gap.odd == "gap: 02:30 does not exist, skipped"
    autumn = Every(7, parse("2027-10-24T00:00:00+02:00"), (150,), zone="Europe/Berlin", dst_overlap="both")
    assert local(autumn, "2027-10-30T00:00:00Z", 2) == ["2027-10-31T02:30+02:00", "2027-10-31T02:30+01:00"]


@pytest.mark.parametrize("zone", ODD_ZONES)
def test_a_day_begins_with_its_first_instant(zone: str) -> None:
    place = zones.zone(zone)
    for day in range(20_454, 20_454 + 800):
        at = EPOCH + day_start(day, zone) * MS
        shown = at.astimezone(place)
        assert (shown.date(), (at - MS).astimezone(place).date()) == (
            (EPOCH + timedelta(days=day)).date(),
            (EPOCH + timedelta(days=day - 1)).date(),
        )
        assert rhythm.local_day(day_start(day, zone), zone) == day


def expected(spec: Every, until: datetime) -> list[str]:
    """The local times by dateutil, before a change of the clock has any effect on them."""
    start = (EPOCH + spec.start * MS).astimezone(zones.zone(spec.zone)).replace(tzinfo=None)
    rule = rrule.rrule(
        rrule.WEEKLY if spec.weekdays else rrule.DAILY,
        dtstart=start.replace(hour=0, minute=0),
        interval=spec.count,
        byweekday=spec.weekdays or None,
        byhour=sorted({each // 60 for each in spec.times}),
        byminute=spec.times[0] % 60,
        bysecond=0,
        wkst=rrule.MO,
        until=until,
    )
    return [each.isoformat(timespec="minutes") for each in rule if each >= start]


def disagreement(random: Random) -> str | None:
    zone = random.choice(ODD_ZONES)
    start = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(minutes=random.randrange(400 * 1440))
    times = sorted(hour * 60 + 17 for hour in random.sample((5, 6, 9, 12, 18, 21), random.randint(1, 3)))  # no clock changes at these
    weekdays = sorted(random.sample(range(7), random.randint(0, 4)))
    spec = Every(random.randint(1, 12), (start - EPOCH) // MS, tuple(times), tuple(weekdays), zone)
    right = expected(spec, start.replace(tzinfo=None) + timedelta(days=900))[:40]
    found = [run.local[:16] for run in islice(next_runs(Schedule(spec), 0, 40), len(right))]
    return None if found == right else f"{spec}: {found[:5]} {right[:5]}"


@pytest.mark.long
def test_random_schedules_agree_with_dateutil() -> None:
    assert [found for seed in range(300) if (found := disagreement(Random(seed)))] == []


@pytest.mark.long
@pytest.mark.parametrize("zone", sorted(zones.names())[::9])
def test_forty_years_of_every_other_week_agree_with_dateutil(zone: str) -> None:
    spec = Every(2, parse("2027-01-06T12:00:00Z"), (557,), (1, 6), zone)
    right = expected(spec, datetime(2068, 1, 1))
    assert [run.local[:16] for run in next_runs(Schedule(spec), 0, len(right))] == right


@pytest.mark.long
def test_every_day_at_these_times_is_cron_at_these_times() -> None:
    """Also in gaps and overlaps, with the same notes."""
    for seed in range(300):
        random = Random(seed)
        case = random_case(random)
        times = sorted(random.sample(range(1440), random.randint(1, 5)) + random.sample(range(60, 240), random.randint(0, 3)))
        first, *more = [f"{each % 60} {each // 60} * * *" for each in times]
        instant = (case.instant - EPOCH) // MS
        by_cron = Cron(first, case.zone, case.dst_gap, case.dst_overlap, tuple(more))
        by_days = Every(1, 0, tuple(sorted({*times})), (), case.zone, case.dst_gap, case.dst_overlap)
        assert next_runs(Schedule(by_days), instant, 20) == next_runs(Schedule(by_cron), instant, 20)
        until = instant + 86_400_000
        assert [*skipped(Schedule(by_days), instant, until)] == [*skipped(Schedule(by_cron), instant, until)]


def test_a_later_instant_finds_the_same_runs() -> None:
    random = Random(5)
    for _ in range(200):
        spec = Every(
            random.randint(1, 9), parse("2027-02-03T04:05:06Z"), (150, 540), tuple(random.sample(range(7), 2)), random.choice(ODD_ZONES)
        )
        spec = Every(spec.count, spec.start, spec.times, tuple(sorted(spec.weekdays)), spec.zone)
        runs = next_runs(Schedule(spec), 0, 30)
        at = random.randrange(29)
        assert next_runs(Schedule(spec), runs[at].nominal, 29 - at) == runs[at + 1 :]
