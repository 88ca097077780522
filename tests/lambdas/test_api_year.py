"""The year of a schedule or a task over HTTP: runs by date, and the dates that are odd."""

from dataclasses import replace
from typing import Any

import pytest

from lambdas.rest import shapes, year_models
from scheduler.model import lifecycle
from scheduler.model.account import Scope
from scheduler.model.instants import parse
from scheduler.model.job import Claim, Result
from scheduler.tasks import year_view
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")

HOUR = 3_600_000
NIGHTLY = {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "dst_gap": "skip"}
PLAIN = {"clock_change": False, "excluded": None, "moved_to": None, "moved_from": []}


def of_schedule(**body: Any) -> Answered:
    return send("POST", "/schedules/calendar", json_body=body)


def of_task(task: Any, **options: Any) -> Answered:
    return send("GET", f"/tasks/{task['id']}/calendar", **options)


def shown(answered: Answered) -> Any:
    shapes.Answer[year_models.YearShape].model_validate(answered.body)
    return answered.data


def days(answered: Answered) -> dict[str, Any]:
    return {each.pop("date"): each for each in shown(answered)["days"]}


def created(**schedule: Any) -> Any:
    answered = send("POST", "/tasks", json_body={"name": "t", "message": "m", "schedule": schedule})
    assert answered.status == 201, answered.text
    return answered.data


def end_due(world: World, wanted: str = "succeed") -> int:
    """End the stored runs that are due. Returns their number."""
    now = world.clock.now()
    due = [job for job in world.jobs.rows.values() if job.scheduled_at <= now and lifecycle.is_open(job)]
    for job in due:
        claimed = replace(job, claim=Claim("m", "n", job.scheduled_at, True))
        end = getattr(lifecycle, wanted)
        world.jobs.rows[job.key] = end(claimed, job.scheduled_at + 5, started_at=job.scheduled_at + 1, result=Result("r"))
    return len(due)


def test_the_year_of_a_schedule_has_the_dates_with_runs_and_odd_dates() -> None:
    answered = of_schedule(**NIGHTLY, exclude=["2026-12-24"])
    data = shown(answered)
    assert (data["time_zone"], data["today"], data["first_day"], data["last_day"]) == (
        "Europe/Berlin",
        "2026-11-20",
        "2026-11-20",
        "2027-11-20",
    )
    assert (data["counted_from"], data["warnings"]) == (None, [])
    found = days(answered)
    assert next(iter(found)) == "2026-11-21" and len(found) == 365
    assert found["2026-11-21"] == {"planned": 1, "runs": None, **PLAIN}
    assert found["2026-12-24"] == {"planned": 0, "runs": None, **PLAIN, "excluded": "excluded by its dates"}
    assert found["2027-03-28"] == {"planned": 0, "runs": None, **PLAIN, "clock_change": True}
    assert found["2027-10-31"] == {"planned": 1, "runs": None, **PLAIN, "clock_change": True}


def test_moved_runs_name_both_dates() -> None:
    found = days(of_schedule(cron="0 9 25 * *", exclude=["2026-12-25"], on_excluded="next_day", days=40))
    assert found["2026-12-25"] == {"planned": 0, "runs": None, **PLAIN, "excluded": "excluded by its dates", "moved_to": "2026-12-28"}
    assert found["2026-12-28"] == {"planned": 1, "runs": None, **PLAIN, "moved_from": ["2026-12-25"]}


def test_a_span_begins_at_the_requested_date() -> None:
    data = shown(of_schedule(cron="@daily", days=2, first_day="2027-02-28"))
    assert [each["date"] for each in data["days"]] == ["2027-02-28", "2027-03-01"]


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        ({}, "body", "must have one of at, rate, cron, every"),
        ({"cron": "x"}, "cron", "must have five fields"),
        ({"cron": "@daily", "days": 0}, "days", "must be at least 1"),
        ({"cron": "@daily", "days": 367}, "days", "must be at most 366"),
        ({"cron": "@daily", "first_day": "tomorrow"}, "first_day", "must be a date from 1970-01-01"),
        ({"cron": "@daily", "first_day": "2031-11-26"}, "first_day", "must be within 1830 days of today, 2026-11-20"),
        ({"cron": "@daily", "count": 5}, "count", "is not a known field"),
    ],
)
def test_a_bad_year_of_a_schedule_is_refused_with_field_and_rule(body: dict[str, Any], field: str, rule: str) -> None:
    answered = of_schedule(**body)
    assert answered.status == 400 and answered.fields[field].startswith(rule), answered.text


@pytest.mark.parametrize(
    ("query", "field", "rule"),
    [
        ({"from": "2026-13-01"}, "from", "must be a date from 1970-01-01"),
        ({"from": "1990-01-01"}, "from", "must be within 1830 days of today, 2026-11-20"),
        ({"days": "367"}, "days", "must be at most 366"),
        ({"days": "x"}, "days", "must be a whole number"),
        ({"until": "2027-01-01"}, "until", "is not a known parameter"),
    ],
)
def test_a_bad_year_of_a_task_is_refused_with_field_and_rule(query: dict[str, str], field: str, rule: str) -> None:
    answered = of_task(created(cron="@daily"), query=query)
    assert answered.status == 400 and answered.fields[field].startswith(rule), answered.text


def test_the_year_of_a_task_has_planned_and_real_runs(world: World) -> None:
    task = created(cron="0 */6 * * *")
    world.clock.at = parse("2026-11-20T18:30:00Z")
    assert end_due(world) == 2
    world.clock.at = parse("2026-11-21T01:00:00Z")
    assert end_due(world, "fail") == 1
    found = days(of_task(task, query={"from": "2026-11-19", "days": "4"}))
    assert found == {
        "2026-11-20": {"planned": 0, "runs": {"succeeded": 2}, **PLAIN},
        "2026-11-21": {"planned": 3, "runs": {"failed": 1}, **PLAIN},
        "2026-11-22": {"planned": 4, "runs": {}, **PLAIN},
    }


def test_a_task_with_bounded_runs_shows_those_that_are_left(world: World) -> None:
    task = created(cron="0 * * * *", max_runs=30)
    world.clock.at = NOW + 5 * HOUR
    assert sum(each["planned"] for each in days(of_task(task)).values()) == 25


def test_a_paused_task_and_a_task_without_schedule_have_no_planned_runs(world: World) -> None:
    task = created(cron="0 * * * *")
    send("POST", f"/tasks/{task['id']}/pause")
    assert days(of_task(task)) == {}
    once = send("POST", "/tasks", json_body={"name": "t", "message": "m"}).data
    world.clock.at = NOW + HOUR
    assert days(of_task(once)) == {"2026-11-20": {"planned": 0, "runs": {"queued": 1}, **PLAIN}}


def test_real_runs_are_counted_up_to_a_bound(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    task = created(cron="*/5 * * * *")
    world.clock.at = parse("2026-11-20T10:40:00Z")
    whole = shown(of_task(task))
    assert (whole["counted_from"], whole["days"][0]["runs"]) == (None, {"queued": 8})
    monkeypatch.setattr(year_view, "MOST_READ", 4)
    monkeypatch.setattr(year_view, "CHUNK", 2)
    bounded = shown(of_task(task))
    assert (bounded["counted_from"], bounded["days"][0]["runs"]) == ("2026-11-20T10:25:00.000Z", {"queued": 4})


def test_real_runs_need_the_right_to_see_jobs(world: World) -> None:
    task = created(cron="0 * * * *")
    world.clock.at = NOW + 2 * HOUR
    only_tasks = world.key([Scope.TASKS_READ])
    assert {each["runs"] is None for each in days(of_task(task, key=only_tasks)).values()} == {True}
    both = world.key([Scope.TASKS_READ, Scope.JOBS_READ])
    assert days(of_task(task, key=both))["2026-11-20"]["runs"] == {"queued": 2}
    assert of_task(task, key=world.key([Scope.JOBS_READ])).status == 403


def test_only_the_owner_and_staff_see_the_year_of_a_task() -> None:
    task = created(cron="0 * * * *")
    assert of_task(task, user="sub-bob").status == 404
    assert of_task(task, user="sub-bob", query={"owner": "sub-ann"}).status == 403
    assert of_task(task, user="sub-bob", role="operator", query={"owner": "sub-ann"}).status == 200
    assert send("GET", "/tasks/nothing/calendar").status == 404
