"""Dates of calendars: from ICS files, of public holidays, and the commands that put them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
from test_cli import OPERATION, api, done, page

from punctual import calendars
from punctual.errors import InvalidArgument

HEAD = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//EN\r\n"


def ics(*events: str) -> bytes:
    bodies = (f"BEGIN:VEVENT\r\nUID:{n}\r\n" + event.replace("\n", "\r\n") + "\r\nEND:VEVENT\r\n" for n, event in enumerate(events))
    return (HEAD + "".join(bodies) + "END:VCALENDAR\r\n").encode()


def read(*events: str) -> list[str]:
    pytest.importorskip("icalendar")
    return [str(day) for day in calendars.read_ics(ics(*events), first=2027, last=2028).dates]


@pytest.mark.parametrize(
    ("event", "dates"),
    [
        ("DTSTART;VALUE=DATE:20271224", ["2027-12-24"]),
        ("DTSTART;VALUE=DATE:20271224\nDTEND;VALUE=DATE:20271227", ["2027-12-24", "2027-12-25", "2027-12-26"]),
        ("DTSTART;VALUE=DATE:20271224\nDURATION:P2D", ["2027-12-24", "2027-12-25"]),
        ("DTSTART:20271224T220000Z\nDTEND:20271225T020000Z", ["2027-12-24", "2027-12-25"]),
        ("DTSTART:20271224T080000\nDTEND:20271225T000000", ["2027-12-24"]),
        ("DTSTART;VALUE=DATE:20271224\nSTATUS:CANCELLED", []),
        ("DTSTART;VALUE=DATE:20101224\nRRULE:FREQ=YEARLY", ["2026-12-24", "2027-12-24", "2028-12-24"]),
        ("DTSTART;VALUE=DATE:20101224\nRRULE:FREQ=YEARLY;UNTIL=20271224", ["2026-12-24", "2027-12-24"]),
        ("DTSTART;VALUE=DATE:20101224\nRRULE:FREQ=YEARLY\nEXDATE;VALUE=DATE:20271224", ["2026-12-24", "2028-12-24"]),
        ("DTSTART;VALUE=DATE:20271224\nRDATE;VALUE=DATE:20271226", ["2027-12-24", "2027-12-26"]),
        ("DTSTART;VALUE=DATE:20251231\nDTEND;VALUE=DATE:20260103", ["2026-01-01", "2026-01-02"]),
        ("DTSTART;VALUE=DATE:20300101", []),
        ('X-ODD;FOO="a:b":1\nDTSTART;VALUE=DATE:20271224\nSUMMARY:a\n  folded line', ["2027-12-24"]),
    ],
)
def test_the_dates_of_an_event(event: str, dates: list[str]) -> None:
    assert read(event) == dates


def test_all_events_are_read_with_source_and_end() -> None:
    pytest.importorskip("icalendar")
    found = calendars.read_ics(ics("DTSTART;VALUE=DATE:20271225", "DTSTART;VALUE=DATE:20271224"), first=2027, last=2028, source="s.ics")
    assert found == calendars.Dates([date(2027, 12, 24), date(2027, 12, 25)], "s.ics", date(2028, 12, 31))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no calendar", "is no ICS file"),
        (ics("DTSTART:20270101T000000\nRRULE:FREQ=SECONDLY;BYMONTHDAY=30;BYMONTH=2"), "only yearly, monthly, weekly, daily repeats"),
        (ics("DTSTART;VALUE=DATE:20270101\nRRULE:FREQ=DAILY;BYHOUR=1"), "only yearly, monthly, weekly, daily repeats"),
        (b"x" * (calendars.MOST_BYTES + 1), "at most 5000000 bytes"),
    ],
)
def test_a_bad_file_is_refused(content: bytes, message: str) -> None:
    pytest.importorskip("icalendar")
    with pytest.raises(InvalidArgument, match=message):
        calendars.read_ics(content, first=2027, last=2028)


def test_too_many_dates_are_refused() -> None:
    pytest.importorskip("icalendar")
    with pytest.raises(InvalidArgument, match="more than 5000 dates"):
        calendars.read_ics(ics("DTSTART;VALUE=DATE:20200101\nRRULE:FREQ=DAILY"), first=2027, last=2047)


def test_holidays_include_those_that_another_year_observes() -> None:
    pytest.importorskip("holidays")
    found = calendars.holidays("US", first=2022, last=2022)
    assert date(2021, 12, 31) in found.dates, "the New Year of 2022 is a Saturday"
    assert date(2021, 12, 31) in calendars.holidays("US", first=2021, last=2021).dates
    assert found.covers_until == date(2022, 12, 31) and max(found.dates) <= found.covers_until
    assert found.source.endswith(": US, 2022 to 2022")


def test_holidays_of_a_region() -> None:
    pytest.importorskip("holidays")
    assert date(2027, 1, 6) in calendars.holidays("DE", "BY", first=2027, last=2028).dates
    assert date(2027, 1, 6) not in calendars.holidays("DE", "BE", first=2027, last=2028).dates
    for country, region in (("XX", None), ("DE", "XX")):
        with pytest.raises(InvalidArgument):
            calendars.holidays(country, region, first=2027, last=2027)
    with pytest.raises(InvalidArgument, match="the years must be in order"):
        calendars.holidays("DE", first=2028, last=2027)


# Commands

DE: dict[str, Any] = {"name": "de", "source": "typed", "covers_until": "2027-12-31", "size": 2, "updated_at": "2026-11-20T09:00:00.000Z"}
WHOLE = DE | {"dates": ["2026-11-01", "2026-12-24"]}
PUT = WHOLE | {"outcome": "created", "operation": None}


@pytest.mark.usefixtures("signed_in")
def test_calendars_are_listed_and_shown() -> None:
    cli = api({"GET /calendars": page(DE), "GET /calendars/de": WHOLE})
    assert done(cli("calendars", "list")).split("\t") == ["de", "2", "2027-12-31", "typed\n"]
    shown = done(cli("calendars", "show", "de"))
    assert "2026-12-24" in shown and "2026-11-01" not in shown, "a past date"


@pytest.mark.usefixtures("signed_in")
def test_dates_are_put_and_the_operation_is_named(tmp_path: Path) -> None:
    (tmp_path / "dates.txt").write_text("2026-12-24\n2026-12-31\n")
    cli = api({"PUT /calendars/de": PUT | {"outcome": "updated", "operation": OPERATION}})
    said = done(cli("calendars", "put", "de", f"@{tmp_path / 'dates.txt'}", "2027-01-01", "--covers-until", "2027-12-31"))
    assert said == "Calendar de is updated: 2 dates. The future runs of its tasks are replaced: punctual operations watch 01OP\n"
    assert cli.api.last[3] == {"dates": ["2026-12-24", "2026-12-31", "2027-01-01"], "covers_until": "2027-12-31"}


@pytest.mark.usefixtures("signed_in")
def test_holidays_and_files_are_put(tmp_path: Path) -> None:
    pytest.importorskip("holidays")
    pytest.importorskip("icalendar")
    cli = api({"PUT /calendars/de": PUT})
    done(cli("calendars", "holidays", "de", "DE", "--region", "BY", "--years", "2027"))
    sent = cli.api.last[3]
    assert "2027-01-06" in sent["dates"] and sent["covers_until"] == "2027-12-31" and sent["source"].endswith(": DE-BY, 2027 to 2027")
    (tmp_path / "school.ics").write_bytes(ics("DTSTART;VALUE=DATE:20271224"))
    done(cli("calendars", "import", "de", str(tmp_path / "school.ics")))
    assert cli.api.last[3] == {"dates": ["2027-12-24"], "source": "school.ics", "covers_until": "2028-12-31"}


@pytest.mark.usefixtures("signed_in")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("holidays", "de", "XX"), "error: COUNTRY: "),
        (("holidays", "de", "DE", "--years", "soon"), "error: --years: must be a year or two, such as 2026-2028, not 'soon'"),
        (("import", "de", "absent.ics"), "error: FILE: absent.ics cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_command_sends_nothing(words: tuple[str, ...], said: str) -> None:
    pytest.importorskip("holidays")
    cli = api({})
    result = cli("calendars", *words)
    assert result.exit_code == 2 and said in result.stderr and not cli.api.sent


@pytest.mark.usefixtures("signed_in")
def test_a_calendar_is_deleted_after_a_question() -> None:
    cli = api({"DELETE /calendars/de": {"name": "de"}})
    assert cli("calendars", "delete", "de").exit_code == 2 and not cli.api.sent
    assert done(cli("calendars", "delete", "de", "--yes")) == "Calendar de is deleted.\n"
