"""Schedules as users write them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.errors import Invalid
from scheduler.model.instants import render
from scheduler.model.schedule import Cron, Once, Rate, Schedule
from scheduler.tasks import zones
from scheduler.tasks.schedule_form import LONGEST_RATE, parse, restore, write
from tests.conftest import NOW

HOUR, DAY = 3_600_000, 86_400_000


def test_one_time() -> None:
    assert parse({"at": "2026-11-20T12:00:00+01:00"}, NOW) == Schedule(Once(NOW + HOUR))


def test_cron_with_everything() -> None:
    form = {
        "cron": " 30  2 * * mon ",
        "time_zone": "Europe/Berlin",
        "dst_gap": "skip",
        "dst_overlap": "both",
        "start": "2026-12-01T00:00:00Z",
        "end": "2027-12-01T00:00:00Z",
        "max_runs": 5,
        "jitter_seconds": 60,
    }
    spec = Cron("30 2 * * mon", "Europe/Berlin", "skip", "both")
    assert parse(form, NOW) == Schedule(
        spec, start=NOW + 10 * DAY + 14 * HOUR, end=NOW + 375 * DAY + 14 * HOUR, max_runs=5, jitter_ms=60_000
    )


def test_the_rules_of_debian_and_utc_are_the_defaults() -> None:
    assert parse({"cron": "@daily", "end": None}, NOW) == Schedule(Cron("@daily", "UTC", "shift", "first"))


@pytest.mark.parametrize(
    ("rate", "every_ms"),
    [
        ("rate(5 minutes)", 300_000),
        ("rate(1 minute)", 60_000),
        (" Rate( 5 Seconds ) ", 5_000),
        ("12 hours", 12 * HOUR),
        ("366 days", 366 * DAY),
        ({"every": 90, "unit": "minutes"}, 90 * 60_000),
    ],
)
def test_rates(rate: object, every_ms: int) -> None:
    assert parse({"rate": rate}, NOW).spec == Rate(every_ms, start=NOW)


def test_an_end_may_be_the_last_possible_date() -> None:
    assert parse({"cron": "@yearly", "end": "9999-12-31T23:59:59Z"}, NOW).end == 253_402_300_799_000


def test_a_rate_counts_from_its_start() -> None:
    form = {"rate": "1 day", "start": render(NOW - HOUR), "time_zone": "Asia/Kolkata"}
    assert parse(form, NOW).spec == Rate(DAY, NOW - HOUR, "Asia/Kolkata")


@pytest.mark.parametrize(
    ("form", "field", "rule"),
    [
        ({}, "schedule", "must have one of at, rate, cron"),
        ({"cron": None}, "schedule", "must have one of"),
        ({"cron": "* * * * *", "rate": "1 day"}, "cron", "must be absent beside rate"),
        ({"cron": "* * * * *", "timezone": "UTC"}, "timezone", "is not a field of a schedule; the fields are at, rate, cron, time_zone"),
        ({"cron": 5}, "cron", "must be a text"),
        ({"cron": "* * * *"}, "cron", "must have five fields"),
        ({"cron": "0 0 30 2 *"}, "cron", "never runs"),
        ({"cron": "* * * * *", "time_zone": "Mars/Olympus"}, "time_zone", "must be an IANA time zone"),
        ({"cron": "* * * * *", "time_zone": "europe/berlin"}, "time_zone", "did you mean Europe/Berlin?"),
        ({"cron": "* * * * *", "time_zone": "../UTC"}, "time_zone", "must be an IANA time zone"),
        ({"cron": "* * * * *", "time_zone": "+02:00"}, "time_zone", "must be an IANA time zone"),
        ({"cron": "* * * * *", "time_zone": "Factory"}, "time_zone", "must be an IANA time zone"),
        ({"cron": "* * * * *", "time_zone": ""}, "time_zone", "must be an IANA time zone"),
        ({"cron": "* * * * *", "time_zone": 2}, "time_zone", "must be an IANA time zone"),
        ({"cron": "* * * * *", "dst_gap": "jump"}, "dst_gap", "must be one of shift, skip"),
        ({"cron": "* * * * *", "dst_overlap": ["both"]}, "dst_overlap", "must be one of first, second, both"),
        ({"rate": "1 day", "dst_gap": "skip"}, "dst_gap", "must be absent beside rate"),
        ({"at": "2026-11-20T12:00:00Z", "max_runs": 1}, "max_runs", "must be absent beside at"),
        ({"at": "2026-11-20T12:00:00Z", "dst_overlap": "both"}, "dst_overlap", "must be absent beside at"),
        ({"at": "tomorrow"}, "at", "must be an RFC 3339 instant"),
        ({"at": "2026-11-20T12:00:00"}, "at", "must be an RFC 3339 instant with an offset"),
        ({"at": "2026-11-18T12:00:00Z"}, "at", "must not be more than a day in the past"),
        ({"at": "2036-12-18T12:00:00Z"}, "at", "must not be more than ten years ahead"),
        ({"rate": "five minutes"}, "rate", "must be a whole number and a unit"),
        ({"rate": "1.5 hours"}, "rate", "must be a whole number and a unit"),
        ({"rate": "5"}, "rate", "must be a whole number and a unit"),
        ({"rate": "rate(5 minutes"}, "rate", "must be a whole number and a unit"),
        ({"rate": "-5 minutes"}, "rate", "must be a whole number and a unit"),
        ({"rate": {"every": True, "unit": "days"}}, "rate", "must be a whole number and a unit"),
        ({"rate": {"every": 5}}, "rate", "must be a whole number and a unit"),
        ({"rate": 5}, "rate", "must be a whole number and a unit"),
        ({"rate": "5 months"}, "rate", "unknown unit months"),
        ({"rate": "0 minutes"}, "rate", "must be between one second and 366 days"),
        ({"rate": "367 days"}, "rate", "must be between one second and 366 days"),
        ({"rate": {"every": -1, "unit": "days"}}, "rate", "must be between one second and 366 days"),
        ({"rate": "1 day", "max_runs": 0}, "max_runs", "must be a whole number from 1"),
        ({"rate": "1 day", "max_runs": True}, "max_runs", "must be a whole number from 1"),
        ({"rate": "1 day", "max_runs": "3"}, "max_runs", "must be a whole number from 1"),
        ({"rate": "1 day", "jitter_seconds": -1}, "jitter_seconds", "must be a whole number from 0 to 86400"),
        ({"rate": "1 day", "jitter_seconds": 86_401}, "jitter_seconds", "must be a whole number from 0 to 86400"),
        ({"rate": "1 day", "start": "soon"}, "start", "must be an RFC 3339 instant"),
        ({"rate": "1 day", "start": "1969-01-01T00:00:00Z"}, "start", "must not be before 1970"),
        ({"cron": "@daily", "start": "9999-12-31T23:59:59Z"}, "start", "must not be more than ten years ahead"),
        ({"rate": "1 day", "end": 5}, "end", "must be an RFC 3339 instant"),
        ({"rate": "1 day", "end": "2026-11-20T10:00:00Z"}, "end", "must be after the start and after now"),
        ({"rate": "1 day", "start": "2027-01-02T00:00:00Z", "end": "2027-01-01T00:00:00Z"}, "end", "must be after the start"),
        ({"rate": "1 day", "end": "2026-11-20T11:00:00Z"}, "rate", "has no run between its start and its end"),
        ({"cron": "0 0 1 1 *", "end": "2026-12-20T11:00:00Z"}, "cron", "has no run between its start and its end"),
        ({"cron": "30 2 */1 3 SUNL", "time_zone": "Europe/Berlin", "dst_gap": "skip"}, "cron", "has no run between its start and its end"),
    ],
)
def test_an_invalid_form_is_refused_with_its_field_and_the_rule(form: dict[str, Any], field: str, rule: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(form, NOW)
    assert refused.value.details[0]["field"] == field
    assert rule in refused.value.details[0]["rule"]


INSTANTS = st.integers(0, 253_402_300_799_000)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"])
SPECS = (
    st.builds(Once, INSTANTS, ZONES),
    st.builds(Rate, st.integers(1, LONGEST_RATE // 1_000).map(lambda seconds: seconds * 1_000), INSTANTS, ZONES),
    st.builds(
        Cron,
        st.sampled_from(["@daily", "30 2 * * MON", "*/5 * * * *"]),
        ZONES,
        st.sampled_from(["shift", "skip"]),
        st.sampled_from(["first", "second", "both"]),
    ),
)


def schedules(spec: st.SearchStrategy[Any], *, start: bool) -> st.SearchStrategy[Schedule]:
    most_runs = st.none() | st.integers(1, 1_000_000_000)
    jitter = st.integers(0, 86_400).map(lambda seconds: seconds * 1_000)
    return st.builds(Schedule, spec, st.none() | INSTANTS if start else st.none(), st.none() | INSTANTS, most_runs, jitter)


@given(schedules(SPECS[0] | SPECS[1], start=False) | schedules(SPECS[2], start=True))
def test_a_schedule_survives_being_written_and_stored_as_json(schedule: Schedule) -> None:
    assert restore(json.loads(json.dumps(write(schedule)))) == schedule


def test_defaults_are_not_written() -> None:
    assert write(Schedule(Cron("@daily"))) == {"cron": "@daily"}
    assert write(Schedule(Once(NOW, "Asia/Kolkata"))) == {"at": "2026-11-20T10:00:00.000Z", "time_zone": "Asia/Kolkata"}
    assert write(parse({"rate": "90 minutes"}, NOW)) == {"rate": "rate(90 minutes)", "start": "2026-11-20T10:00:00.000Z"}
    assert write(parse({"rate": "86400 seconds"}, NOW))["rate"] == "rate(1 day)"


@pytest.mark.parametrize(
    "form",
    [
        {"rate": "5 minutes"},
        {"rate": "1 day", "start": render(NOW - HOUR), "jitter_seconds": 30},
        {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "dst_gap": "skip", "start": render(NOW + DAY), "max_runs": 3},
        {"at": render(NOW + 1)},
    ],
)
def test_a_written_form_can_be_submitted_again_with_the_same_meaning(form: dict[str, Any]) -> None:
    schedule = parse(form, NOW)
    assert parse(write(schedule), NOW + HOUR // 2) == schedule == restore(write(schedule))


def test_all_listed_zones_can_be_read() -> None:
    assert len(zones.names()) > 500
    for name in sorted(zones.names()):
        assert zones.zone(name).key == name
