"""Calendars over HTTP."""

from datetime import date, timedelta
from typing import Any

import pytest

from lambdas.rest import calendar_models, form_models, shapes, task_models
from lambdas.rest.shapes import Answer
from scheduler.model import lifecycle
from scheduler.model.instants import render
from scheduler.model.job import TaskKey
from tests.lambdas.gateway import NOW, Answered, World, send, work_off

DATES = ["2026-12-26", "2026-12-25"]
TASK: dict[str, Any] = {"name": "report", "message": "m", "schedule": {"cron": "0 9 25 12 *", "exclude": ["de"], "on_excluded": "next_day"}}


def put(name: str = "de", **body: Any) -> Answered:
    answered = send("PUT", f"/calendars/{name}", json_body={"dates": DATES} | body)
    if answered.status == 200:
        Answer[calendar_models.PutCalendarShape].model_validate(answered.body)
    return answered


def test_a_calendar_is_put_read_listed_and_deleted(world: World) -> None:
    made = put(source="typed", covers_until="2026-12-31")
    facts = {"name": "de", "source": "typed", "covers_until": "2026-12-31", "size": 2, "updated_at": render(NOW)}
    whole = facts | {"dates": sorted(DATES)}
    assert (made.status, made.data) == (200, whole | {"outcome": "created", "operation": None})
    found = send("GET", "/calendars/de")
    Answer[calendar_models.CalendarShape].model_validate(found.body)
    assert found.data == whole
    assert put(**dict(made.data.items())).data["outcome"] == "unchanged", "an answer is a request"
    listed = send("GET", "/calendars")
    Answer[calendar_models.CalendarsShape].model_validate(listed.body)
    assert listed.data == {"items": [facts], "cursor": None, "has_more": False}
    assert send("DELETE", "/calendars/de").data == {"name": "de"}
    assert send("GET", "/calendars/de").status == send("DELETE", "/calendars/de").status == 404


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        ({"dates": ["2026-02-30"]}, "dates.0", "must be a date from 1970-01-01 to 2199-12-31, such as 2026-12-24"),
        ({"dates": ["20261224"]}, "dates.0", "must be a date from 1970-01-01 to 2199-12-31, such as 2026-12-24"),
        ({"dates": [7]}, "dates.0", "must be a date from 1970-01-01 to 2199-12-31, such as 2026-12-24"),
        ({"covers_until": "2026-12-25"}, "covers_until", "must not be before the last of the dates, 2026-12-26"),
        ({"dates": ["2026-12-24"] * 5_001}, "dates", "must have at most 5000 entries"),
        ({"colour": "red"}, "colour", "is not a known field"),
    ],
)
def test_a_bad_calendar_is_refused(world: World, body: dict[str, Any], field: str, rule: str) -> None:
    answered = put(**body)
    assert answered.status == 400 and answered.fields[field].startswith(rule)
    assert send("GET", "/calendars").data["items"] == []


def test_5000_dates_fit_a_request(world: World) -> None:
    dates = [(date(2026, 1, 1) + timedelta(days=3 * n)).isoformat() for n in range(5_000)]
    assert put(dates=dates).data["size"] == 5_000


@pytest.mark.parametrize("name", ["2026-12-24", "De", "a" * 64, "a%23b"])
def test_a_name_that_could_be_a_date_is_refused(world: World, name: str) -> None:
    assert put(name).fields == {"calendar_name": "must be a letter and up to 62 of a-z, 0-9, . _ -"}


def test_a_task_shows_its_calendars_and_where_its_runs_go(world: World) -> None:
    put(covers_until="2026-12-31")
    made = send("POST", "/tasks", json_body=TASK)
    Answer[task_models.TaskShape].model_validate(made.body)
    assert made.data["schedule"] == TASK["schedule"]
    first = made.data["next_runs"][0]
    assert (first["local_at"], first["dst_note"]) == ("2026-12-28T09:00:00+00:00", "excluded by de, moved from 2026-12-25")
    assert made.data["warnings"] == ["the calendar de is known until 2026-12-31, and runs are later"]
    (listed,) = send("GET", "/tasks").data["items"]
    assert listed["warnings"] == [], "the next run is known"
    following = send("GET", f"/tasks/{made.data['id']}/next", query={"count": "1"})
    shapes.Answer[form_models.PreviewShape].model_validate(following.body)
    assert following.data == {"runs": [first], "warnings": []}


def test_a_preview_has_the_calendars_of_the_owner(world: World) -> None:
    put(covers_until="2026-12-31")
    seen = send("POST", "/schedules/preview", json_body=TASK["schedule"] | {"count": 2})
    assert seen.data["warnings"] == ["the calendar de is known until 2026-12-31, and runs are later"]
    assert seen.data["runs"][0]["local_at"] == "2026-12-28T09:00:00+00:00"
    unknown = send("POST", "/schedules/preview", json_body={"cron": "0 9 * * *", "exclude": ["fr"]})
    assert unknown.fields == {"exclude": "names fr, and there is no such calendar"}


def test_a_patch_adds_and_removes_exclusions(world: World) -> None:
    put()
    task = send("POST", "/tasks", json_body=TASK).data
    changed = send("PATCH", f"/tasks/{task['id']}", json_body={"schedule": {"on_excluded": None, "exclude": ["2026-12-25"]}})
    assert changed.data["schedule"] == {"cron": "0 9 25 12 *", "exclude": ["2026-12-25"]}
    assert send("DELETE", "/calendars/de").status == 200
    changed = send("PATCH", f"/tasks/{task['id']}", json_body={"schedule": {"exclude": None}})
    assert changed.data["schedule"] == {"cron": "0 9 25 12 *"}


def test_a_task_put_as_it_was_read_stays_unchanged(world: World) -> None:
    put()
    made = send("PUT", "/tasks/by-key/report", json_body=TASK).data
    assert made["outcome"] == "created"
    assert send("PUT", "/tasks/by-key/report", json_body=made).data["outcome"] == "unchanged"
    put(dates=["2026-12-25"])
    assert send("PUT", "/tasks/by-key/report", json_body=made).data["outcome"] == "updated", "its dates have changed"


def test_a_change_reaches_the_tasks_by_an_operation(world: World) -> None:
    put()
    tasks = [send("POST", "/tasks", json_body=TASK).data for _ in range(3)]
    made = put(dates=["2026-12-24"]).data
    assert (made["outcome"], made["operation"]["action"], made["operation"]["filter"]["calendar"]) == ("updated", "apply_calendar", "de")
    work_off(world)
    assert send("GET", f"/operations/{made['operation']['id']}").data["done"] == 3
    for task in tasks:
        stored = world.tasks.get(TaskKey("sub-ann", task["id"]))
        assert stored.generation == 2
        assert send("GET", f"/tasks/{task['id']}").data["next_runs"][0]["local_at"] == "2026-12-25T09:00:00+00:00"


@pytest.mark.long
def test_a_thousand_tasks_leave_out_a_new_date_once_the_operation_is_done(world: World) -> None:
    put()
    daily = {"name": "daily", "message": "m", "schedule": {"cron": "0 9 * * *", "exclude": ["de"]}}
    for number in range(1_000):
        assert send("POST", "/tasks", json_body=daily, headers={"Idempotency-Key": f"n{number}"}).status == 201
    runs = [job for job in world.jobs.rows.values() if render(job.scheduled_at).startswith("2026-11-23")]
    assert len(runs) == 1_000
    made = put(dates=["2026-11-23"]).data
    work_off(world)
    operation = send("GET", f"/operations/{made['operation']['id']}").data
    assert (operation["status"], operation["done"], operation["failed"]) == ("done", 1_000, 0)
    left = [job for job in world.jobs.rows.values() if render(job.scheduled_at).startswith("2026-11-23") and lifecycle.is_open(job)]
    assert left == []


def test_a_calendar_in_use_is_not_deleted_and_the_tasks_are_named(world: World) -> None:
    put()
    task = send("POST", "/tasks", json_body=TASK).data
    refused = send("DELETE", "/calendars/de")
    assert (refused.status, refused.error["message"]) == (409, f"a task uses the calendar: report ({task['id']})")


def test_calendars_of_a_team_are_its_own(world: World) -> None:
    team = send("POST", "/teams", json_body={"name": "ops"}).data["id"]
    made = send("PUT", "/calendars/de", json_body={"dates": DATES}, query={"owner": team})
    assert made.status == 200 and send("GET", "/calendars").data["items"] == []
    refused = send("POST", "/tasks", json_body=TASK)
    assert refused.fields == {"schedule.exclude": "names de, and there is no such calendar"}
    assert send("POST", "/tasks", json_body=TASK, query={"owner": team}).status == 201
    seen = send("POST", "/schedules/preview", json_body=TASK["schedule"], query={"owner": team})
    assert seen.status == 200
