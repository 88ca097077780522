"""Schedules as users write them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.errors import Invalid
from scheduler.model.instants import render
from scheduler.model.schedule import Cron, Every, Once, Rate, Schedule
from scheduler.tasks import zones
from scheduler.tasks.schedule import next_runs
from scheduler.tasks.schedule_form import LONGEST_RATE, parse, restore, with_start_of, write
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


def test_a_list_is_stored_in_one_order_and_each_meaning_once() -> None:
    for expressions in (["0 9  * * MON", "@midnight", "00 09 * * 1", "@daily"], ["@daily", "00 09 * * 1", "0 9 * * MON"]):
        schedule = parse({"cron": expressions}, NOW)
        assert schedule.spec == Cron("0 9 * * MON", more=("@daily",))
        assert write(schedule) == {"cron": ["0 9 * * MON", "@daily"]}


def test_a_list_of_one_is_its_item() -> None:
    assert parse({"cron": ["@daily", " @daily "]}, NOW) == parse({"cron": "@daily"}, NOW)
    assert write(parse({"cron": ["@daily"]}, NOW)) == {"cron": "@daily"}
    form = {"every": "1 week", "times": ["09:00"], "weekdays": ["Mon", "MON"]}
    assert write(parse(form, NOW)) == {"every": "1 week", "times": "09:00", "weekdays": "MON", "start": "2026-11-23T00:00:00.000Z"}


@pytest.mark.parametrize(
    ("form", "spec"),
    [
        ({"every": "3 days", "times": "09:00"}, Every(3, NOW + 14 * HOUR, (540,))),  # it is 10:00: from tomorrow on
        ({"every": "1 Day", "times": ["18:00", "09:30"]}, Every(1, NOW - 10 * HOUR, (570, 1080))),
        ({"every": "2 weeks", "times": "10:30"}, Every(2, NOW - 10 * HOUR, (630,), (4,))),  # a Friday
        ({"every": "2 weeks", "times": "09:00", "weekdays": ["wed", "mon"]}, Every(2, NOW + 62 * HOUR, (540,), (0, 2))),
        ({"every": "2 weeks", "times": "09:00", "start": render(NOW + DAY)}, Every(2, NOW + DAY, (540,), (5,))),
        (
            {
                "every": "52 weeks",
                "times": "00:15",
                "weekdays": "SUN",
                "time_zone": "Asia/Kolkata",
                "dst_gap": "skip",
                "dst_overlap": "both",
            },
            Every(52, NOW + 32 * HOUR + HOUR // 2, (15,), (6,), "Asia/Kolkata", "skip", "both"),
        ),
    ],
)
def test_every_counts_from_its_next_run_or_its_start(form: dict[str, Any], spec: Every) -> None:
    assert parse(form, NOW) == Schedule(spec)


def test_the_first_run_of_every_is_the_next_such_time() -> None:
    form = {"every": "2 weeks", "times": "09:00", "weekdays": ["MON", "WED"], "time_zone": "Europe/Berlin"}
    runs = next_runs(parse(form, NOW), NOW, 5)
    assert [run.local[5:16] for run in runs] == ["11-23T09:00", "11-25T09:00", "12-07T09:00", "12-09T09:00", "12-21T09:00"]


def test_a_form_without_start_keeps_the_days_of_the_schedule() -> None:
    form = {"every": "2 weeks", "times": "09:00", "weekdays": "MON", "time_zone": "Europe/Berlin"}
    schedule, later = parse(form, NOW), NOW + 10 * DAY
    assert parse(with_start_of(schedule, form), later) == schedule
    edited = parse(with_start_of(schedule, {**form, "times": "08:00", "weekdays": ["MON", "TUE"]}), later)
    assert [run.local[5:16] for run in next_runs(edited, later, 2)] == ["12-07T08:00", "12-08T08:00"]
    moved = parse(with_start_of(schedule, {**form, "time_zone": "America/New_York"}), later)
    assert [run.local for run in next_runs(moved, later, 1)] == ["2026-12-07T09:00-05:00"]


@pytest.mark.parametrize(
    "changed", [{"every": "3 weeks"}, {"every": "2 days"}, {"every": 5}, {"start": "2027-01-01T00:00:00Z"}, {"time_zone": "Mars/Olympus"}]
)
def test_another_period_does_not_keep_the_start(changed: dict[str, Any]) -> None:
    schedule = parse({"every": "2 weeks", "times": "09:00"}, NOW)
    form = {"every": "2 weeks", "times": "09:00", **changed}
    assert with_start_of(schedule, form) == form


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
        ({}, "schedule", "must have one of at, rate, cron, every"),
        ({"cron": []}, "cron", "must have 1 to 10 items, or be one item without a list"),
        ({"cron": ["@daily"] * 11}, "cron", "must have 1 to 10 items"),
        ({"cron": ["@daily", "* * * *"]}, "cron.1", "must have five fields"),
        ({"cron": ["@daily", None]}, "cron.1", "must be a text"),
        ({"cron": {"a": 1}}, "cron", "must be a text"),
        ({"cron": "@daily", "every": "2 days"}, "every", "must be absent beside cron"),
        ({"cron": "@daily", "times": "09:00"}, "times", "must be absent beside cron"),
        ({"rate": "1 day", "weekdays": "MON"}, "weekdays", "must be absent beside rate"),
        ({"at": "2026-11-20T12:00:00Z", "times": "09:00"}, "times", "must be absent beside at"),
        ({"every": "2 days"}, "times", "is required beside every: must be a time of the day such as 09:00"),
        ({"every": "2 days", "times": []}, "times", "must have 1 to 24 items"),
        ({"every": "2 days", "times": ["09:00", "24:00"]}, "times.1", "must be a time of the day such as 09:00"),
        ({"every": "2 days", "times": "9:00"}, "times", "must be a time of the day"),
        ({"every": "2 days", "times": "09:00:00"}, "times", "must be a time of the day"),
        ({"every": "2 days", "times": 540}, "times", "must be a time of the day"),
        ({"every": "2 days", "times": "09:00", "weekdays": "MON"}, "weekdays", "requires a number of weeks in every"),
        ({"every": "2 weeks", "times": "09:00", "weekdays": []}, "weekdays", "must have 1 to 7 items"),
        ({"every": "2 weeks", "times": "09:00", "weekdays": "MON-FRI"}, "weekdays", "must be one of MON, TUE"),
        ({"every": "2 weeks", "times": "09:00", "weekdays": ["MON", 2]}, "weekdays.1", "must be one of MON, TUE"),
        ({"every": "0 days", "times": "09:00"}, "every", "must be a whole number of days up to 366, or of weeks up to 52"),
        ({"every": "367 days", "times": "09:00"}, "every", "must be a whole number of days up to 366"),
        ({"every": "53 weeks", "times": "09:00"}, "every", "must be a whole number of days up to 366"),
        ({"every": "2 months", "times": "09:00"}, "every", "must be a whole number of days up to 366"),
        ({"every": {"every": 2, "unit": "days"}, "times": "09:00"}, "every", "must be a whole number of days up to 366"),
        ({"every": "2 days", "times": "09:00", "dst_gap": "jump"}, "dst_gap", "must be one of shift, skip"),
        ({"every": "9 days", "times": "09:00", "end": render(NOW + HOUR)}, "every", "has no run between its start and its end"),
        ({"cron": None}, "schedule", "must have one of"),
        ({"cron": "* * * * *", "rate": "1 day"}, "cron", "must be absent beside rate"),
        ({"cron": "* * * * *", "timezone": "UTC"}, "timezone", "is not a field of a schedule; the fields are at, rate, cron, every, times"),
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
        st.sampled_from([(), ("@hourly",), ("0 9 LW * *", "@monthly")]),
    ),
    st.builds(
        Every,
        st.integers(1, 52),
        INSTANTS,
        st.sets(st.integers(0, 1439), min_size=1, max_size=24).map(lambda found: tuple(sorted(found))),
        st.sets(st.integers(0, 6)).map(lambda found: tuple(sorted(found))),
        ZONES,
        st.sampled_from(["shift", "skip"]),
        st.sampled_from(["first", "second", "both"]),
    ),
)


def schedules(spec: st.SearchStrategy[Any], *, start: bool) -> st.SearchStrategy[Schedule]:
    most_runs = st.none() | st.integers(1, 1_000_000_000)
    jitter = st.integers(0, 86_400).map(lambda seconds: seconds * 1_000)
    return st.builds(Schedule, spec, st.none() | INSTANTS if start else st.none(), st.none() | INSTANTS, most_runs, jitter)


@given(schedules(SPECS[0] | SPECS[1] | SPECS[3], start=False) | schedules(SPECS[2], start=True))
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
        {"cron": ["0 9 15W,L-3 * *", "*/5 1 LW * *"], "dst_overlap": "both"},
        {"every": "2 weeks", "times": ["09:00", "18:30"], "weekdays": ["MON", "SUN"], "time_zone": "Europe/Berlin", "dst_gap": "skip"},
        {"every": "3 days", "times": "09:00", "start": render(NOW - HOUR)},
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
