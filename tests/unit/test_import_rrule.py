"""Recurrence rules of RFC 5545, imported and run by the product, against dateutil's reading."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from random import Random
from typing import Any

import pytest
from dateutil import rrule as dateutil
from punctual.plan import crontab, icalendar, rrule
from punctual.plan.aws_cron import NoEqual
from punctual.plan.zones import zone

from scheduler.tasks import calendar_form, schedule_form
from scheduler.tasks.preview import preview
from scheduler.tasks.schedule import after

NOW = datetime(2026, 11, 27, 23, 0, 30, tzinfo=UTC)
MONDAY = datetime(2026, 12, 7, 9, 0)
SIGHT = timedelta(days=4 * 366)
DAYS = "MO TU WE TH FR SA SU".split()


def ms(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def form_of(rule: str, local: datetime = MONDAY, place: str = "Europe/Berlin", *, floating: bool = False) -> Any:
    return rrule.form(rule, rrule.Begin(local, place, zone(place), floating), NOW)


def differs(rule: str, local: datetime, place: str = "Europe/Berlin") -> str | None:
    """None if the local times of four years are those of dateutil, or if the rule is refused or never runs."""
    try:
        form = form_of(rule, local, place)
    except NoEqual:
        return None
    expected = dateutil.rrulestr(rule, dtstart=local).between(local - timedelta(minutes=1), local + SIGHT)[:80]
    if not expected:
        return None
    assert preview(form, count=1, after=None, now=ms(NOW))
    runs = after(schedule_form.parse(form, ms(NOW)), ms(NOW))
    found = [run.local[:16] for run in islice(runs, len(expected))]
    right = [each.isoformat(timespec="minutes") for each in expected]
    return None if found == right else f"{rule} from {local}: {form}: {sorted({*found} ^ {*right})[:4]}"


# Of RFC 5545, 3.8.5.3, without those that have no equal; the times of the examples are 09:00.
OF_THE_RFC = (
    *("FREQ=DAILY;COUNT=10", "FREQ=DAILY", "FREQ=DAILY;INTERVAL=2", "FREQ=DAILY;INTERVAL=10;COUNT=5", "FREQ=DAILY;BYMONTH=1"),
    *("FREQ=YEARLY;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA", "FREQ=WEEKLY;COUNT=10", "FREQ=WEEKLY;INTERVAL=2;WKST=SU"),
    *("FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH", "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=MO,WE,FR", "FREQ=MONTHLY;COUNT=10;BYDAY=1FR"),
    *("FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", "FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU"),
    *("FREQ=MONTHLY;BYMONTHDAY=-3", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1"),
    *(
        "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
        "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
        "FREQ=MINUTELY;INTERVAL=90",
    ),
    *(
        "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
        "FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
        "FREQ=MINUTELY;INTERVAL=20;BYHOUR=9,10",
    ),
    *("FREQ=HOURLY;INTERVAL=3", "FREQ=MINUTELY;INTERVAL=32", "FREQ=MONTHLY;BYDAY=MO,2TU", "FREQ=HOURLY;BYDAY=MO;BYMINUTE=0,30"),
    *("FREQ=MINUTELY;INTERVAL=15;COUNT=6", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO"),
    *("FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;WKST=SU"),
)


@pytest.mark.parametrize("rule", OF_THE_RFC)
def test_the_examples_of_the_rfc_have_an_equal(rule: str) -> None:
    assert form_of(rule, place="UTC")
    assert differs(rule, MONDAY, "UTC") is None


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3", "runs every 2 years"),
        ("FREQ=YEARLY;INTERVAL=3;BYYEARDAY=1,100,200", "chooses by BYYEARDAY=1,100,200"),
        ("FREQ=YEARLY;BYDAY=20MO", "has BYDAY=20MO beside FREQ=YEARLY"),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "chooses by BYWEEKNO=20"),
        ("FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "has -2MO in BYDAY"),
        ("FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10", "runs every 18 months"),
        ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "has BYDAY and BYMONTHDAY, which must both match"),
        ("FREQ=MONTHLY;BYDAY=SA,SU;BYSETPOS=1", "has BYSETPOS=1 among BYDAY=SA,SU"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=3", "has BYSETPOS=3 among"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1;BYHOUR=9,10", "has BYSETPOS beside several times a day"),
        ("FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "has weeks that begin on SUN, with days on both sides of Monday"),
        ("FREQ=WEEKLY;INTERVAL=2;BYMONTH=1", "has BYMONTH=1 beside FREQ=WEEKLY;INTERVAL=2"),
        ("FREQ=WEEKLY;BYDAY=1MO", "has BYDAY=1MO beside FREQ=WEEKLY"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "has BYMONTHDAY=1 beside FREQ=WEEKLY"),
        ("FREQ=WEEKLY;INTERVAL=53", "has an interval of more than 52 weeks"),
        ("FREQ=DAILY;INTERVAL=2;BYDAY=MO", "has BYDAY=MO beside FREQ=DAILY;INTERVAL=2"),
        ("FREQ=DAILY;INTERVAL=367", "has an interval of more than 366 days"),
        ("FREQ=DAILY;BYSECOND=0,30", "runs at seconds within a minute"),
        ("FREQ=SECONDLY", "runs at seconds within a minute"),
        ("FREQ=HOURLY;INTERVAL=5", "has an interval that does not divide a day (5)"),
        ("FREQ=MINUTELY;INTERVAL=7", "has an interval that does not divide a day (7)"),
        ("FREQ=HOURLY;INTERVAL=6;BYHOUR=4", "never runs: no time of the day is left"),
        ("FREQ=MONTHLY;INTERVAL=3;BYMONTH=1", "never runs: no month is left"),
        ("FREQ=DAILY;INTERVAL=2;BYHOUR=1,2,3,4,5;BYMINUTE=0,10,20,30,40", "has more than 24 times a day"),
        ("FREQ=DAILY;COUNT=5;UNTIL=20270101T000000Z", "has UNTIL and COUNT"),
        ("FREQ=DAILY;UNTIL=20270101", "has an UNTIL without a time of the day"),
        ("FREQ=DAILY;UNTIL=20270101T000000", "has an UNTIL that RFC 5545 wants in UTC, as its DTSTART has a zone"),
        ("FREQ=DAILY;UNTIL=20271301T000000Z", "has an UNTIL that does not exist"),
        ("FREQ=DAILY;UNTIL=20260101T000000Z", "has ended at 2026-01-01T00:00:00Z"),
        ("FREQ=DAILY;UNTIL=20261201T000000Z", "never runs: it ends before it starts"),
        ("FREQ=DAILY;COUNT=0", "has a COUNT that is no number from 1 on"),
        ("FREQ=DAILY;INTERVAL=-1", "has a INTERVAL that is no number from 1 on"),
        ("FREQ=DAILY;FREQ=DAILY", "has a part twice"),
        ("FREQ=DAILY;RSCALE=GREGORIAN", "that RFC 5545 does not define: 'RSCALE=GREGORIAN'"),
        ("FREQ=FORTNIGHTLY", "has no FREQ that RFC 5545 defines: 'FORTNIGHTLY'"),
        ("INTERVAL=2", "has no FREQ"),
        ("FREQ=WEEKLY;WKST=XX", "has a WKST that is no weekday"),
        ("FREQ=WEEKLY;BYDAY=MON", "has a weekday in BYDAY that RFC 5545 does not define: 'MON'"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "has a number in BYMONTHDAY that RFC 5545 does not allow"),
        ("FREQ=MONTHLY;BYMONTHDAY=32", "has a number in BYMONTHDAY"),
        ("FREQ=DAILY;BYHOUR=24", "has a number in BYHOUR"),
        ("", "has a part twice, without a value"),
    ],
)
def test_a_rule_without_an_equal_is_refused_with_the_reason(rule: str, reason: str) -> None:
    with pytest.raises(NoEqual) as refused:
        form_of(rule)
    assert reason in str(refused.value)


def random_rule(random: Random) -> str:
    frequency = random.choice(["DAILY", "WEEKLY", "WEEKLY", "MONTHLY", "MONTHLY", "YEARLY"])
    parts = [f"FREQ={frequency}", f"INTERVAL={random.choice([1, 1, 2, 3, 4, 6])}"]
    if random.random() < 0.6:
        days = random.sample(DAYS, random.choice([1, 2, 3, 5, 7]))
        if random.random() < 0.4:
            days = DAYS[:5]
        ordinals = ["", "", "1", "2", "-1", "5"] if frequency in ("MONTHLY", "YEARLY") and random.random() < 0.5 else [""]
        parts.append("BYDAY=" + ",".join(random.choice(ordinals) + day for day in days))
    if random.random() < 0.3:
        parts.append("BYMONTHDAY=" + ",".join(str(random.choice([1, 15, 28, 30, 31, -1, -2, -30])) for _ in range(random.randint(1, 3))))
    if random.random() < 0.3:
        parts.append("BYMONTH=" + ",".join(map(str, random.sample(range(1, 13), random.randint(1, 4)))))
    if random.random() < 0.2:
        parts.append(f"BYSETPOS={random.choice([1, 2, -1, -3])}")
    if random.random() < 0.3:
        parts.append("BYHOUR=" + ",".join(map(str, random.sample(range(5, 22), random.randint(1, 3)))))
    if random.random() < 0.5:
        parts.append(f"WKST={random.choice(DAYS)}")
    if random.random() < 0.2:
        parts.append(f"COUNT={random.randint(1, 30)}")
    return ";".join(parts)


def disagreement(seed: int) -> str | None:
    random = Random(seed)
    local = datetime(2026, 12, 1, 6) + timedelta(days=random.randrange(60), hours=random.randrange(14), minutes=random.choice([0, 5, 30]))
    return differs(random_rule(random), local, random.choice(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]))


@pytest.mark.long
def test_three_thousand_random_rules_run_when_dateutil_says_or_are_refused() -> None:
    assert [found for seed in range(3_000) if (found := disagreement(seed))] == []


def test_many_random_rules_have_an_equal() -> None:
    """The comparison is no proof if most rules are refused."""

    def is_equal(seed: int) -> bool:
        try:
            return bool(form_of(random_rule(Random(seed))))
        except NoEqual:
            return False

    assert sum(map(is_equal, range(500))) > 150


def test_a_rule_keeps_its_local_time_over_a_change_of_the_clock() -> None:
    form = form_of("FREQ=WEEKLY;INTERVAL=2", datetime(2027, 3, 21, 23, 30), "America/New_York")
    runs = islice(after(schedule_form.parse(form, ms(NOW)), ms(NOW)), 2)
    assert [run.local for run in runs] == ["2027-03-21T23:30-04:00", "2027-04-04T23:30-04:00"]


def test_a_start_in_a_gap_runs_at_its_end() -> None:
    form = form_of("FREQ=DAILY", datetime(2027, 3, 28, 2, 30))
    first = next(after(schedule_form.parse(form, ms(NOW)), ms(NOW)))
    assert (first.local, first.odd) == ("2027-03-28T03:00+02:00", "gap: 02:30 does not exist, runs 03:00")


def test_a_run_at_until_is_the_last_one() -> None:
    form = form_of("FREQ=DAILY;UNTIL=20261209T080000Z")
    assert [run.local[:16] for run in after(schedule_form.parse(form, ms(NOW)), ms(NOW))] == [f"2026-12-0{day}T09:00" for day in (7, 8, 9)]
    local = form_of("FREQ=DAILY;UNTIL=20261208T090000", floating=True)
    assert local["end"] == "2026-12-08T08:00:01Z"


def test_a_rate_in_utc_counts_from_its_dtstart() -> None:
    assert form_of("FREQ=SECONDLY;INTERVAL=10", place="UTC") == {"rate": "10 seconds", "start": "2026-12-07T09:00:00Z"}
    assert form_of("FREQ=HOURLY;INTERVAL=5", place="UTC") == {"rate": "5 hours", "start": "2026-12-07T09:00:00Z"}


def test_a_count_from_the_past_is_refused_and_another_rule_starts_now() -> None:
    past = datetime(2026, 11, 2, 9)
    assert form_of("FREQ=DAILY", past) == {"cron": "0 9 * * *", "time_zone": "Europe/Berlin"}
    assert form_of("FREQ=DAILY;INTERVAL=2", past)["start"] == "2026-11-02T08:00:00Z"
    with pytest.raises(NoEqual, match="counts its runs"):
        form_of("FREQ=DAILY;COUNT=99", past)
    for far in (datetime(2040, 1, 1, 9), datetime(1969, 1, 1, 9)):
        with pytest.raises(NoEqual, match="and a task starts"):
            form_of("FREQ=DAILY", far)


CALENDAR = """BEGIN:VCALENDAR
BEGIN:VTIMEZONE
TZID:Europe/Berlin
BEGIN:DAYLIGHT
DTSTART:19810329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
END:DAYLIGHT
END:VTIMEZONE
BEGIN:VEVENT
UID:1@x
DTSTART;TZID=Europe/Berlin:20261207T090000
DURATION:PT1H
RRULE:FREQ=WEEKLY;
 INTERVAL=2
SUMMARY:Pay\\, and {{tell}}\\neverybody
LOCATION;ALTREP="cid:a:b":Room
BEGIN:VALARM
TRIGGER:-PT5M
DTSTART:20000101T000000
END:VALARM
END:VEVENT
BEGIN:VEVENT
DTSTART;VALUE=DATE:20261207
RRULE:FREQ=YEARLY
SUMMARY:All day
END:VEVENT
BEGIN:VEVENT
DTSTART:20261207T090000Z
SUMMARY:Once
END:VEVENT
END:VCALENDAR
"""


def read(text: str, time_zone: str | None = None) -> icalendar.Found:
    return icalendar.read(text, crontab.to_url("https://x.test"), time_zone=time_zone, now=NOW)


@pytest.mark.parametrize("text", [CALENDAR, CALENDAR.replace("\n", "\r\n")])
def test_the_recurring_events_of_a_calendar_become_tasks(text: str) -> None:
    found = read(text)
    (entry,) = found.entries
    assert entry.body == {
        "key": "pay,-and-{{tell}}-everybody",
        "name": "Pay, and {{tell}} everybody",
        "schedule": {
            "every": "2 weeks",
            "times": "09:00",
            "weekdays": "MON",
            "time_zone": "Europe/Berlin",
            "start": "2026-12-07T08:00:00Z",
        },
        "type": "http",
        "payload": {"method": "POST", "url": "https://x.test", "body": {"event": "Pay, and {{{{tell}} everybody", "uid": "1@x"}},
    }
    assert entry.comments == ["line 9: RRULE:FREQ=WEEKLY;INTERVAL=2", "Not taken over: DURATION, LOCATION."]
    assert found.refused == [
        (22, "All day", "has a DTSTART without a time of the day, or of another form: '20261207'"),
        (27, "Once", "has no RRULE: it takes place once"),
    ]


def test_plain_lines_with_dtstart_and_rrule_are_read() -> None:
    found = read("DTSTART:20261207T090000\nRRULE:FREQ=DAILY\n\nDTSTART:20261207T100000Z\nRRULE:FREQ=DAILY\nSUMMARY:b", "Asia/Kolkata")
    assert [each.body["schedule"] for each in found.entries] == [
        {"cron": "0 9 * * *", "time_zone": "Asia/Kolkata", "start": "2026-12-07T03:30:00Z"},
        {"cron": "0 10 * * *", "start": "2026-12-07T10:00:00Z"},
    ]
    assert [each.body["name"] for each in found.entries] == ["line 1", "b"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("RRULE:FREQ=DAILY", "has no DTSTART"),
        ("DTSTART:20261207T090000\nRRULE:FREQ=DAILY", "is in local time without a zone: give --time-zone"),
        ("DTSTART;TZID=W. Europe Standard Time:20261207T090000\nRRULE:FREQ=DAILY", "has a time zone that is unknown here"),
        ("DTSTART:00010101T000000\nRRULE:FREQ=DAILY", "is in local time without a zone"),
        ("DTSTART;TZID=Asia/Tokyo:00010101T000000\nRRULE:FREQ=DAILY", "has a date that is not within the years 1 to 9999"),
        ("DTSTART:20261207T090000Z\nRRULE:FREQ=DAILY;UNTIL=99991231T235959Z", "has a date that is not within the years 1 to 9999"),
        ("DTSTART:20261307T090000Z\nRRULE:FREQ=DAILY", "has a DTSTART that does not exist"),
        ("DTSTART:20261207T090000Z\nEXDATE:20261208T090000Z\nRRULE:FREQ=DAILY;COUNT=3", "leaves out dates (EXDATE) that it counts (COUNT)"),
        ("DTSTART:20261207T090000Z\nEXDATE:20261208T090000Z\nRRULE:FREQ=DAILY;BYHOUR=9,17", "leaves out one of several times of a day"),
        ("DTSTART:20261207T090000Z\nEXDATE:20261208T090000Z\nRRULE:FREQ=HOURLY", "leaves out one of several times of a day (EXDATE)"),
        ("DTSTART:20261207T090000Z\nEXDATE;VALUE=DATE:20261208\nRRULE:FREQ=DAILY", "has an EXDATE without a time of the day"),
        ("DTSTART:20261207T090000Z\nEXDATE:20261240T090000Z\nRRULE:FREQ=DAILY", "has an EXDATE that does not exist: 20261240T090000Z"),
        ("DTSTART:20261207T090000Z\nEXDATE;TZID=Mars/X:20261208T090000\nRRULE:FREQ=DAILY", "has a time zone that is unknown here"),
        ("DTSTART:20261207T090000Z\nRDATE:20261208T100000Z\nRRULE:FREQ=DAILY", "has further dates (RDATE)"),
        ("DTSTART:20261207T090000Z\nEXRULE:FREQ=WEEKLY\nRRULE:FREQ=DAILY", "leaves out the times of another rule (EXRULE)"),
        ("DTSTART:20261207T090000Z\nSTATUS:CANCELLED\nRRULE:FREQ=DAILY", "is cancelled"),
        ("DTSTART:20261207T090000Z\nRRULE:FREQ=DAILY\nRECURRENCE-ID:20261208T090000Z", "changes one run of another event"),
    ],
)
def test_an_event_without_an_equal_is_left_out_with_the_reason(lines: str, reason: str) -> None:
    ((_, _, found),) = read(lines).refused
    assert reason in found


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY",
        "FREQ=DAILY;BYHOUR=17;BYMINUTE=30",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE",
        "FREQ=MONTHLY;BYDAY=-1FR",
        "FREQ=DAILY;INTERVAL=3",
    ],
)
def test_dates_that_an_event_leaves_out_are_those_of_dateutil(rule: str) -> None:
    expected = dateutil.rruleset()
    expected.rrule(dateutil.rrulestr(rule, dtstart=MONDAY))
    left_out = [expected[number] for number in (1, 4, 5)]
    for each in (*left_out, MONDAY.replace(hour=3, year=2027)):  # at the last one there is no run
        expected.exdate(each)
    berlin = zone("Europe/Berlin")
    written = [f"{left_out[0]:%Y%m%dT%H%M%S},{left_out[1]:%Y%m%dT%H%M%S}", f"{MONDAY:2027%m%dT03%M%S}"]
    in_utc = left_out[2].replace(tzinfo=berlin).astimezone(UTC)
    lines = [f"DTSTART;TZID=Europe/Berlin:{MONDAY:%Y%m%dT%H%M%S}", *(f"EXDATE;TZID=Europe/Berlin:{each}" for each in written)]
    (entry,) = read("\n".join([*lines, f"EXDATE:{in_utc:%Y%m%dT%H%M%SZ}", f"RRULE:{rule}"])).entries
    runs = after(schedule_form.parse(entry.body["schedule"], ms(NOW)), ms(NOW))
    assert [run.local[:16] for run in islice(runs, 40)] == [each.isoformat(timespec="minutes") for each in islice(expected, 40)]


def test_an_event_leaves_out_as_many_dates_as_a_schedule_takes() -> None:
    assert icalendar.MOST_EXCLUDED == calendar_form.MOST_ENTRIES
    dates = [f"{MONDAY + timedelta(days=number):%Y%m%dT%H%M%SZ}" for number in range(1, icalendar.MOST_EXCLUDED + 2)]
    begin = f"DTSTART:{MONDAY:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=DAILY\nEXDATE:"
    (entry,) = read(begin + ",".join(dates[1:])).entries
    assert len(entry.body["schedule"]["exclude"]) == icalendar.MOST_EXCLUDED
    ((_, _, reason),) = read(begin + ",".join(dates)).refused
    assert "leaves out 101 dates (EXDATE)" in reason


def test_two_rules_of_one_event_are_refused() -> None:
    text = "BEGIN:VEVENT\nDTSTART:20261207T090000Z\nRRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY\nEND:VEVENT"
    assert read(text).refused == [(1, "line 1", "has two rules: make a task for each")]


@pytest.mark.parametrize(
    "text", ["", "END:VEVENT\nBEGIN", "BEGIN:VEVENT", "\x00;:\n ;", "BEGIN:VEVENT\n" * 2_000, ":" * 50_000, ";a=" * 20_000]
)
def test_junk_is_no_task(text: str) -> None:
    assert read(text).entries == []
