"""The deadlines of watched runs, and what follows from a job."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.alerts import Alert, Alerts
from scheduler.model.instants import parse
from scheduler.model.job import Job, RunInfo
from scheduler.model.schedule import Cron, Once, Rate, Schedule
from scheduler.tasks import deadlines
from scheduler.tasks.deadlines import SETTLED_MS, START_MS, Broken, done_at, first, judge, refusal
from tests.contract import make
from tests.simulation.alerting import ZONES, next_on_the_wall

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
AT = parse("2026-11-20T02:00:00Z")
ALL = Alerts(late_after_ms=MINUTE, max_duration_ms=10 * MINUTE, done_by=7 * 60)
DONE = AT + 5 * HOUR


def run(**fields: Any) -> Job:
    return make.job(at=AT, origin=RunInfo("t1", 1, AT, notify=True, watched=True), **fields)


def started(at: int, **fields: Any) -> Job:
    return replace(make.claimed(run(due_at=AT)), started_at=at, **fields)


def ended(start: int, end: int, name: str = "completed_at") -> Job:
    return run(slot=None, delay_ms=start - AT, **{name: end})


def broken(job: Job, now: int, since: int = 0, alerts: Alerts = ALL) -> list[Alert]:
    return [each.alert for each in judge(job, alerts, "UTC", since, now).broken]


@pytest.mark.parametrize(
    ("alerts", "at"),
    [
        (ALL, AT + MINUTE),
        (Alerts(max_duration_ms=MINUTE), AT + MINUTE + START_MS),
        (Alerts(done_by=7 * 60), DONE),
        (Alerts(late_after_ms=9 * HOUR, done_by=7 * 60), DONE),
    ],
)
def test_a_run_is_judged_first_just_after_its_first_deadline(alerts: Alerts, at: int) -> None:
    assert first(alerts, "UTC", AT, AT) == at + SETTLED_MS


def test_a_run_without_a_deadline_is_not_judged() -> None:
    assert first(Alerts(missed=True), "UTC", AT, AT) is None and first(Alerts(done_by=420), "UTC", AT, None) is None


@pytest.mark.parametrize("zone", [*ZONES, "Pacific/Apia", "Africa/Casablanca"])
def test_done_by_is_read_from_the_clock_on_the_wall(zone: str) -> None:
    for day in range(0, 400, 3):
        for done_by in (0, 90, 150, 179, 420, 1_439):
            at = AT + day * 24 * HOUR + done_by * 7_777_000 % (24 * HOUR) // MINUTE * MINUTE
            assert done_at(done_by, zone, at) == next_on_the_wall(at, done_by, zone), (zone, day, done_by)


@pytest.mark.parametrize(
    ("zone", "nominal", "done_by", "at"),
    [
        ("Europe/Berlin", "2027-03-28T01:00:00+01:00", "02:30", "2027-03-28T03:00:00+02:00"),  # the clock jumps over it
        ("Europe/Berlin", "2027-10-31T01:00:00+02:00", "02:30", "2027-10-31T02:30:00+02:00"),  # it comes twice
        ("Europe/Berlin", "2027-10-31T02:40:00+02:00", "02:30", "2027-10-31T02:30:00+01:00"),
        ("UTC", "2027-10-31T07:00:00Z", "07:00", "2027-11-01T07:00:00Z"),
    ],
)
def test_done_by_on_days_on_which_the_clock_changes(zone: str, nominal: str, done_by: str, at: str) -> None:
    hour, minute = map(int, done_by.split(":"))
    assert done_at(hour * 60 + minute, zone, parse(nominal)) == parse(at)


def test_a_run_that_has_not_started_is_late_and_checked_again() -> None:
    found = judge(run(), ALL, "UTC", 0, AT + MINUTE + SETTLED_MS)
    assert found.broken == (Broken(Alert.LATE, AT + MINUTE),) and found.until == AT + MINUTE
    assert found.next_at == AT + 10 * MINUTE + START_MS + SETTLED_MS


def test_nothing_is_judged_before_ends_are_stored() -> None:
    assert broken(run(), AT + MINUTE + SETTLED_MS - 1) == []


def test_a_late_start_is_late_however_late_it_is_judged() -> None:
    assert broken(started(AT + MINUTE + 1), AT + HOUR, alerts=Alerts(late_after_ms=MINUTE)) == [Alert.LATE]
    assert broken(started(AT + MINUTE), AT + HOUR, alerts=Alerts(late_after_ms=MINUTE)) == []
    assert broken(ended(AT + 2 * MINUTE, AT + 3 * MINUTE), AT + HOUR) == [Alert.LATE]


def test_a_long_run_is_reported_whether_it_has_ended_or_not() -> None:
    assert broken(started(AT + SECOND), AT + 11 * MINUTE) == [Alert.LONG]
    assert broken(ended(AT + SECOND, AT + 10 * MINUTE + SECOND + 1), AT + 11 * MINUTE) == [Alert.LONG]
    assert broken(ended(AT + SECOND, AT + 10 * MINUTE + SECOND), AT + 11 * MINUTE) == []


def test_a_redriven_run_does_not_take_too_long() -> None:
    assert broken(started(AT + SECOND, redrives=1), AT + 11 * MINUTE) == []


@pytest.mark.parametrize(
    ("name", "end", "alerts"),
    [
        ("completed_at", DONE, []),
        ("completed_at", DONE + 1, [Alert.NOT_DONE]),
        ("failed_at", DONE - HOUR, [Alert.NOT_DONE]),  # it has not succeeded
        ("cancelled_at", DONE - HOUR, []),
        ("skipped_at", DONE - HOUR, []),
    ],
)
def test_a_run_must_have_succeeded_by_done_by(name: str, end: int, alerts: list[Alert]) -> None:
    assert broken(ended(AT, end, name), DONE + MINUTE, alerts=Alerts(done_by=7 * 60)) == alerts


def test_a_deadline_is_judged_once() -> None:
    assert broken(run(), AT + HOUR, since=AT + MINUTE) == []


def test_an_ended_run_has_no_further_deadline() -> None:
    assert judge(ended(AT, AT + SECOND), ALL, "UTC", 0, AT + MINUTE + SETTLED_MS).next_at is None


def test_a_failed_run_is_judged_again_at_done_by() -> None:
    assert judge(ended(AT, AT + SECOND, "failed_at"), ALL, "UTC", 0, AT + MINUTE + SETTLED_MS).next_at == DONE + SETTLED_MS


def test_a_run_that_waits_for_hours_is_checked_seldom() -> None:
    now, checks = AT + 11 * MINUTE, 0
    while now < AT + 240 * HOUR:
        found = judge(run(), Alerts(max_duration_ms=MINUTE), "UTC", 0, now)
        assert found.next_at is not None and found.next_at - now <= max(2 * MINUTE, (now - AT) / 4 + SETTLED_MS)
        now, checks = found.next_at, checks + 1
    assert checks < 40


@pytest.mark.parametrize(
    ("schedule", "done_by", "refused"),
    [
        (Schedule(Cron("0 13 * * *", "Europe/Berlin")), 7 * 60, False),  # exactly 18 hours, also when the clock changes
        (Schedule(Cron("59 12 * * *", "Europe/Berlin")), 7 * 60, True),
        (Schedule(Rate(HOUR, AT)), 7 * 60, True),
        (Schedule(Once(AT, "UTC")), 7 * 60, False),
        (Schedule(Once(AT, "UTC")), 60, True),
        (Schedule(Cron("0 2 * * *", "UTC", more=("0 8 1 1 *",))), 7 * 60, True),  # one run of the year
    ],
)
def test_a_done_by_too_long_after_a_run_is_refused(schedule: Schedule, done_by: int, refused: bool) -> None:
    assert (refusal(done_by, schedule, AT) is not None) is refused


def test_the_zone_is_that_of_the_schedule() -> None:
    assert deadlines.zone_of(None) == "UTC" and deadlines.zone_of(Schedule(Cron("@daily", "Asia/Kolkata"))) == "Asia/Kolkata"
