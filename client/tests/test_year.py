"""The months of a task and the crowded minutes, in Python and at a terminal."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import httpx
import pytest
from fake_api import Flavor, answer
from test_cli import TASK, api, done, plain

DAY: dict[str, Any] = {"planned": 1, "runs": None, "clock_change": False, "excluded": None, "moved_to": None, "moved_from": []}
YEAR: dict[str, Any] = {
    "time_zone": "Europe/Berlin",
    "today": "2026-11-20",
    "first_day": "2026-11-01",
    "last_day": "2026-12-31",
    "days": [
        {**DAY, "date": "2026-11-19", "planned": 0, "runs": {"succeeded": 20, "failed": 4}},
        {**DAY, "date": "2026-11-21", "planned": 86_400},
        {**DAY, "date": "2026-12-25", "planned": 0, "excluded": "excluded by de", "moved_to": "2026-12-28"},
        {**DAY, "date": "2026-12-26", "planned": 0, "excluded": "excluded by de"},
        {**DAY, "date": "2026-12-28", "planned": 2, "moved_from": ["2026-12-25"]},
        {**DAY, "date": "2026-12-29", "clock_change": True},
    ],
    "counted_from": "2026-11-19T00:00:00.000Z",
    "warnings": ["the calendar de is known until 2026-12-26, and runs are later"],
}
MINUTE = {"at": "2026-11-20T11:00:00.000Z", "runs": 30, "task_count": 22, "tasks": [{"id": TASK["id"], "name": "Nightly", "runs": 30}]}
CROWDED = {
    "since": "2026-11-20T10:00:00.000Z",
    "until": "2026-11-21T10:00:00.000Z",
    "minutes": [MINUTE],
    "by_minute": [0] * 60,
    "tasks": 30,
    "complete": True,
}
CALENDAR = f"GET /tasks/{TASK['id']}/calendar"

pytestmark = pytest.mark.usefixtures("signed_in")


def test_months_are_a_grid_with_a_legend() -> None:
    cli = api({CALENDAR: YEAR})
    shown = done(cli("tasks", "calendar", TASK["id"], "--months", "2"))
    assert cli.api.last[2] == {"from": "2026-11-01", "days": "61"}
    lines = shown.splitlines()
    assert lines[0] == "November 2026  Europe/Berlin"
    assert lines[1] == "Mon      Tue      Wed      Thu      Fri      Sat      Sun"
    assert lines[2] == " " * 54 + " 1 ·"
    assert lines[5] == "16 ·     17 ·     18 ·     19 24!   20 ·     21 86k   22 ·"
    assert "28 2+    29 1~    30 ·     31 ·" in lines and "21 ·     22 ·     23 ·     24 ·     25 0>    26 0x    27 ·" in lines
    for line in (
        "!  a run failed",
        "x  excluded: nothing runs",
        ">  excluded: its runs are moved",
        "+  has runs that were moved to it",
        "~  the clock changes",
        "Thu 2026-11-19  4 failed",
        "Fri 2026-12-25  excluded by de, moved to 2026-12-28",
        "Sat 2026-12-26  excluded by de",
        "Mon 2026-12-28  has the runs of 2026-12-25",
        "Tue 2026-12-29  the clock changes",
        "Runs before 2026-11-19 00:00 UTC are not counted: there are too many.",
        "Warning: the calendar de is known until 2026-12-26, and runs are later.",
    ):
        assert line in lines


def test_a_terminal_shows_the_same_in_colours() -> None:
    cli = api({CALENDAR: YEAR})
    coloured = done(cli("tasks", "calendar", TASK["id"], "--months", "2", terminal=True))
    assert "\x1b[" in coloured
    assert plain(coloured) == done(cli("tasks", "calendar", TASK["id"], "--months", "2"))
    assert "\x1b[" not in done(cli("tasks", "calendar", TASK["id"]))


def test_a_calendar_is_json_or_dates_for_programs() -> None:
    cli = api({CALENDAR: YEAR, "GET /tasks/by-key/nightly": TASK})
    assert json.loads(done(cli("tasks", "calendar", "--key", "nightly", "--json"))) == YEAR
    assert done(cli("tasks", "calendar", TASK["id"], "--quiet")).splitlines()[0] == "2026-11-19"


def test_twelve_months_begin_at_the_requested_one() -> None:
    cli = api({CALENDAR: {**YEAR, "days": [], "warnings": [], "counted_from": None}})
    shown = done(cli("tasks", "calendar", TASK["id"], "--from", "2027-03", "--months", "12"))
    assert cli.api.last[2] == {"from": "2027-03-01", "days": "366"}
    assert "February 2028" in shown and "It has no runs in these months." in shown


@pytest.mark.parametrize("wrong", [(), ("x", "--key", "k"), ("x", "--from", "soon"), ("x", "--from", "2027-13"), ("x", "--months", "13")])
def test_a_bad_calendar_command_sends_nothing(wrong: tuple[str, ...]) -> None:
    cli = api({})
    assert cli("tasks", "calendar", *wrong).exit_code == 2 and not cli.api.sent


def test_crowded_minutes_are_listed_with_their_tasks() -> None:
    cli = api({"GET /forecast/crowded": CROWDED})
    assert done(cli("tasks", "crowded", "--days", "2", "-n", "5")) == "Fri 2026-11-20 11:00\t30\tNightly and 21 more\n"
    assert cli.api.last[2] == {"days": "2", "limit": "5"}
    assert json.loads(done(cli("tasks", "crowded", "--json"))) == CROWDED
    assert "Nightly" in done(cli("tasks", "crowded", terminal=True))
    alone = api({"GET /forecast/crowded": {**CROWDED, "minutes": []}})
    assert "No two runs begin" in done(alone("tasks", "crowded", terminal=True))


def test_a_long_preview_is_read_by_pages(flavor: Flavor) -> None:
    run = {"nominal": "2026-11-21T01:30:00.000Z", "at": "2026-11-21T01:30:00.000Z", "local_at": "2026-11-21T02:30:00.000+01:00"}
    bodies: list[Any] = []

    def handle(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        skipped = [{**run, "at": None}] if len(bodies) == 1 else []
        cursor = "c" if len(bodies) < 3 else None
        return answer({"runs": [run] * bodies[-1]["count"] + skipped, "warnings": [], "cursor": cursor})

    found = flavor.run(handle, lambda c: c.schedules.preview(cron="0 * * * *", count=2_500, days=366))
    assert len(found) == 2_501
    sent = [(body["count"], body.get("cursor"), body["days"]) for body in bodies]
    assert sent == [(1_000, None, 366), (1_000, "c", 366), (500, "c", 366)]


def test_a_year_has_dates() -> None:
    from punctual.records import Year

    year = Year.from_json(YEAR)
    assert (year.first_day, year.days[2].moved_to, year.days[4].moved_from) == (
        date(2026, 11, 1),
        date(2026, 12, 28),
        (date(2026, 12, 25),),
    )
