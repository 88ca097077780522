"""Schedules as code against the deployed stack, by the command `punctual`: apply, export, and what EventBridge Scheduler had."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import punctual
import pytest
import yaml
from click.testing import Result
from punctual import Punctual
from punctual.cli import build
from punctual.cli.apply import CHANGES_AHEAD
from punctual.plan import schema, tasks
from typer.testing import CliRunner

from infra.settings import SAMPLE
from local.aws import ADMIN, REGION
from local.stack import BUSY_S
from tests.system.conftest import System

pytestmark = pytest.mark.system


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(build(), list(words), input=stdin)


@pytest.fixture
def sign_in(system: System, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Sign the command in as a new user of this name; returns the client of that user."""
    made: list[Punctual] = []
    monkeypatch.setattr(punctual, "Punctual", partial(Punctual, timeout=BUSY_S))  # of the command, too: eight cold functions at once

    def sign_in(name: str) -> Punctual:
        password = system.create_user(name)
        config = str(tmp_path / "profiles.json")
        settings = {"URL": system.address, "USERNAME": name, "PASSWORD": password, "CONFIG": config}
        for field, value in settings.items():
            monkeypatch.setenv(f"PUNCTUAL_{field}", value)
        made.append(Punctual())
        return made[-1]

    yield sign_in
    for client in made:
        client.close()


def two_hundred() -> list[dict[str, Any]]:
    """Tasks whose first run is in months, so that none runs in this test."""
    when = datetime.now(UTC) + timedelta(days=90)
    return [
        {
            "key": f"job-{number:03}",
            "name": f"Job {number}",
            "schedule": {"cron": f"{number % 60} {number // 60} {when.day % 28 + 1} {when.month} *", "time_zone": "Europe/Berlin"},
            "type": "http",
            "payload": {"url": f"https://example.com/{number}", "body": {"number": number}},
            "tags": ["load"],
        }
        for number in range(200)
    ]


def test_two_hundred_tasks_are_applied_changed_pruned_and_moved(sign_in: Any, tmp_path: Path) -> None:
    client = sign_in("ann-of-files")
    file, items = tmp_path / "tasks.yaml", two_hundred()

    def write() -> None:
        file.write_text(yaml.safe_dump({"label": "shop", "tasks": items}, sort_keys=False))

    write()
    assert client.tasks.create(name="by hand", message="m", schedule={"cron": "0 0 1 1 *"}).key is None
    ahead = run("tasks", "apply", "-f", str(file), "--dry-run")
    assert ahead.exit_code == CHANGES_AHEAD and "Plan: 200 to create, 0 to change, 0 to delete, 0 unchanged." in ahead.stdout, ahead.stderr
    assert not list(tasks(client, "shop"))
    applied = run("tasks", "apply", "-f", str(file), "--yes")
    assert applied.exit_code == 0 and "Done: 200 created, 0 changed, 0 deleted." in applied.stdout, applied.stderr
    again = run("tasks", "apply", "-f", str(file), "--yes")
    assert again.exit_code == 0 and again.stdout == "Plan: 0 to create, 0 to change, 0 to delete, 200 unchanged.\n"

    items[17]["schedule"]["cron"] = "1 2 3 4 *"
    write()
    edited = run("tasks", "apply", "-f", str(file), "--yes")
    assert "0 to create, 1 to change, 0 to delete, 199 unchanged" in edited.stdout and '→ "1 2 3 4 *"' in edited.stdout
    del items[150:]
    write()
    pruned = run("tasks", "apply", "-f", str(file), "--prune", "--yes")
    assert "Done: 0 created, 0 changed, 50 deleted." in pruned.stdout, pruned.stderr
    assert [task["name"] for task in tasks(client) if task["key"] is None] == ["by hand"]

    exported = run("tasks", "export", "--label", "shop").stdout

    def settings(of: Punctual) -> dict[str, Any]:
        return {task["key"]: {name: task.get(name) for name in schema.fields()} for task in tasks(of, "shop")}

    before = settings(client)
    empty = sign_in("bob-of-files")
    moved = run("tasks", "apply", "-f", "-", "--yes", stdin=exported)
    assert "Done: 150 created, 0 changed, 0 deleted." in moved.stdout, moved.stderr
    assert settings(empty) == before


# The next runs of an EventBridge expression, by this file's own reading of its documentation.


def days(field: str, names: tuple[str, ...], low: int, high: int) -> set[int]:
    """The values of a field: lists, ranges, steps and names."""
    found: set[int] = set()
    for part in field.split(","):
        bounds, _, step = part.partition("/")
        begin, _, end = bounds.partition("-")
        open_ended = begin in ("*", "?") or bool(step and not end)
        first, last = (
            names.index(each) + low if each in names else int(each or 0) for each in (begin.strip("*?"), end or begin.strip("*?"))
        )
        first, last = low if begin in ("*", "?") else first, high if open_ended else last
        found |= set(range(first, last + 1, int(step or 1)))
    return found


MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def is_day(at: date, day: str, weekday: str) -> bool:
    last = (at.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    number = at.isoweekday() % 7 + 1  # 1 is Sunday
    if day == "L":
        return at == last
    if day.startswith("L-"):
        return at == last - timedelta(days=int(day[2:]))
    if day.endswith("W"):
        meant = last if day == "LW" else at.replace(day=int(day[:-1]))
        near = sorted((meant + timedelta(days=n) for n in range(-2, 3)), key=lambda each: abs(each - meant))
        return at == next(each for each in near if each.month == at.month and each.weekday() < 5)
    if weekday.endswith("L"):
        return number in days(weekday[:-1], DAYS, 1, 7) and at.day > last.day - 7
    if "#" in weekday:
        which, nth = weekday.split("#")
        return number in days(which, DAYS, 1, 7) and (at.day - 1) // 7 + 1 == int(nth)
    return at.day in days(day, (), 1, 31) and number in days(weekday, DAYS, 1, 7)


def runs(expression: str, zone: str, after: datetime, created: datetime) -> Iterator[datetime]:
    kind, inner = expression.rstrip(")").split("(")
    local = ZoneInfo(zone)
    if kind == "at":
        yield datetime.fromisoformat(inner).replace(tzinfo=local).astimezone(UTC)
    elif kind == "rate":
        count, unit = inner.split()
        every = timedelta(**{unit.removesuffix("s") + "s": int(count)})
        at = created.replace(microsecond=0)
        while True:
            at += every
            if at > after:
                yield at
    else:
        minute, hour, day, month, weekday, year = inner.split()
        for number in range(3_000):
            at = after.astimezone(local).date() + timedelta(days=number)
            in_year = year == "*" or at.year in days(year, (), 1970, 2199)
            if not in_year or at.month not in days(month, MONTHS, 1, 12) or not is_day(at, day, weekday):
                continue
            hours, minutes = sorted(days(hour, (), 0, 23)), sorted(days(minute, (), 0, 59))
            for clock in (datetime(at.year, at.month, at.day, h, m) for h in hours for m in minutes):
                instant = clock.replace(tzinfo=local).astimezone(UTC)
                exists = instant.astimezone(local).replace(tzinfo=None) == clock
                if exists and instant > after:
                    yield instant


EXPRESSIONS = [
    ("rate(5 minutes)", "UTC"),
    ("rate(36 hours)", "Europe/Berlin"),
    ("rate(7 days)", "UTC"),
    ("cron(30 2 * * ? *)", "Europe/Berlin"),
    ("cron(0/15 9-17 ? * MON-FRI *)", "America/New_York"),
    ("cron(5/20 2/6 3/7 1/3 ? *)", "UTC"),
    ("cron(0 9 ? * 2,4,6 *)", "Asia/Kolkata"),
    ("cron(0 9 ? * 6#3 *)", "Europe/Berlin"),
    ("cron(0 9 ? * 5L *)", "UTC"),
    ("cron(59 23 L * ? *)", "Europe/Berlin"),
    ("cron(0 0 1 JAN,JUL ? 2027-2029)", "Europe/Berlin"),
    ("cron(15 12 ? * 1-3 *)", "UTC"),
    ("cron(0 0 15W * ? *)", "UTC"),
    ("cron(30 6 LW * ? *)", "Asia/Kolkata"),
    ("cron(0 12 L-3 * ? *)", "Europe/Berlin"),
    ("at(2030-06-01T10:00:00)", "America/New_York"),
]


def test_schedules_of_eventbridge_run_at_the_same_instants(
    system: System, sign_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = system.aws("scheduler")
    scheduler.create_schedule_group(Name="imported")
    queue = f"arn:aws:sqs:{REGION}:000000000000:{SAMPLE}-queue"
    target = {"Arn": queue, "RoleArn": "arn:aws:iam::000000000000:role/none", "Input": '{"a": 1}'}
    for number, (expression, zone) in enumerate(EXPRESSIONS):
        scheduler.create_schedule(
            Name=f"s{number}",
            GroupName="imported",
            ScheduleExpression=expression,
            ScheduleExpressionTimezone=zone,
            FlexibleTimeWindow={"Mode": "OFF"},
            Target=target,
        )
    scheduler.create_schedule(
        Name="weekday",
        GroupName="imported",
        ScheduleExpression="cron(0 0 ? * 2#1,3#2 *)",
        FlexibleTimeWindow={"Mode": "OFF"},
        Target=target,
    )
    names = [f"s{number}" for number in range(len(EXPRESSIONS))]
    created = {name: scheduler.get_schedule(Name=name, GroupName="imported")["CreationDate"].astimezone(UTC) for name in names}
    client = sign_in("cai-of-files")
    for name, value in {**ADMIN, "NO_PROXY": "127.0.0.1"}.items():
        monkeypatch.setenv(name, value)
    imported = run("import", "eventbridge", "--group", "imported", "--endpoint-url", system.stack.aws.endpoint, "--region", REGION)
    assert imported.exit_code == 1 and "left out: imported/weekday has # in a list" in imported.stderr, imported.stderr
    items = {item["key"]: item for item in yaml.safe_load(imported.stdout)["tasks"]}
    assert len(items) == len(EXPRESSIONS)
    file = tmp_path / "tasks.yaml"
    file.write_text(imported.stdout)
    ahead = run("tasks", "apply", "-f", str(file), "--dry-run", "--json")
    assert len(json.loads(ahead.stdout)["changes"]) == len(EXPRESSIONS), ahead.stderr

    for number, (expression, zone) in enumerate(EXPRESSIONS):
        form = items[f"imported:s{number}"]["schedule"]
        # In March and in October the clocks change in Europe and in New York.
        for after in (datetime.now(UTC), datetime(2027, 3, 12, 12, tzinfo=UTC), datetime(2027, 10, 30, 12, tzinfo=UTC)):
            previewed = client.schedules.preview(**form, count=20, after=after)
            ours = [run.at for run in previewed if run.at is not None]
            theirs = list(islice(runs(expression, zone, after, created[f"s{number}"]), 20))
            assert ours == theirs, (expression, zone, after, form)


@pytest.mark.skipif("PUNCTUAL_URL" in os.environ, reason="the environment names a stage")
def test_a_command_without_a_sign_in_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PUNCTUAL_CONFIG", str(tmp_path / "none.json"))
    file = tmp_path / "tasks.yaml"
    file.write_text("tasks: [{key: a, name: A, message: m}]")
    refused = run("tasks", "apply", "-f", str(file))
    assert refused.exit_code == 3 and "punctual login" in refused.stderr
