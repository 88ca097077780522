"""The alerts of a task: requested, validated, stored, changed, and the timers of its runs."""

from collections.abc import Iterator
from typing import Any

import pytest

from lambdas import _runtime
from scheduler.targets.base import Reach
from tests.lambdas.gateway import Answered, World, send

MAIL = {"emails": ["ann@example.com"]}
ALL = {"late_after_seconds": 60, "max_duration_seconds": 3_600, "done_by": "07:30", "missed": True}
DAILY = {"cron": "0 2 * * *", "time_zone": "Europe/Berlin"}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(reach=Reach(sender="punctual@example.com"))
    monkeypatch.setattr(_runtime, "api", lambda: made)
    yield made


def body(alerts: Any, **fields: Any) -> dict[str, Any]:
    return {"name": "n", "message": "m", "schedule": DAILY, "notifications": MAIL, "alerts": alerts} | fields


def post(alerts: Any, **fields: Any) -> Answered:
    return send("POST", "/tasks", json_body=body(alerts, **fields))


def watched(world: World) -> list[bool]:
    return [job.origin.watched for job in world.jobs.rows.values()]


def test_the_answered_alerts_may_be_posted_again(world: World) -> None:
    made = post(ALL).data
    assert made["alerts"] == ALL and post(made["alerts"]).data["alerts"] == ALL
    assert send("GET", f"/tasks/{made['id']}").data["alerts"] == ALL
    assert post({"missed": True}).data["alerts"] == {"missed": True}
    assert send("POST", "/tasks", json_body=body(None)).data["alerts"] is None


def test_each_watched_run_has_a_timer(world: World) -> None:
    post(ALL)
    assert all(watched(world)) and {timer.run for timer in world.run_timers.armed.values()} == set(world.jobs.rows)


def test_runs_without_a_deadline_have_no_timer(world: World) -> None:
    post(None)
    post({"missed": True}, notifications=MAIL)
    assert world.jobs.rows and not world.run_timers.armed


def test_a_manual_run_is_watched_without_done_by(world: World) -> None:
    made = post({"done_by": "07:30", "late_after_seconds": 60}).data
    run = send("POST", f"/tasks/{made['id']}/run", json_body={}).data
    (timer,) = [timer for timer in world.run_timers.armed.values() if timer.run.id == run["id"]]
    assert timer.at == world.jobs.rows[timer.run].scheduled_at + 62_000
    post({"done_by": "07:30"})
    other = send("POST", f"/tasks/{post({'done_by': '07:30'}).data['id']}/run", json_body={}).data
    assert not [timer for timer in world.run_timers.armed.values() if timer.run.id == other["id"]]


@pytest.mark.parametrize(
    ("alerts", "field", "rule"),
    [
        ({}, "alerts", "give late_after_seconds, max_duration_seconds, done_by or missed: true"),
        ({"missed": False}, "alerts", "give late_after_seconds, max_duration_seconds, done_by or missed: true"),
        ({"late_after_seconds": 9}, "alerts.late_after_seconds", "must be at least 10"),
        ({"max_duration_seconds": 604_801}, "alerts.max_duration_seconds", "must be at most 604800"),
        ({"done_by": "7:30"}, "alerts.done_by", "must be a time of the day from 00:00 to 23:59, such as 07:30"),
        ({"done_by": "24:00"}, "alerts.done_by", "must be a time of the day from 00:00 to 23:59, such as 07:30"),
        (
            {"done_by": "01:00"},
            "alerts.done_by",
            "must come within 18 hours after each run: after the run at 2026-11-21T02:00+01:00, 01:00 comes only 23 h 00 min later",
        ),
        (
            {"done_by": "02:00"},
            "alerts.done_by",
            "must come within 18 hours after each run: after the run at 2026-11-21T02:00+01:00, 02:00 comes only 24 h 00 min later",
        ),
        ({"later": 1}, "alerts.later", "is not a known field"),
    ],
)
def test_bad_alerts_are_refused_by_field_and_rule(world: World, alerts: Any, field: str, rule: str) -> None:
    answered = post(alerts)
    assert answered.status == 400
    (detail,) = answered.error["details"]
    assert detail["field"] == field and rule in detail["rule"]


def test_alerts_need_receivers(world: World) -> None:
    answered = post(ALL, notifications=None)
    assert (answered.status, answered.error["details"][0]["field"]) == (400, "alerts")
    assert answered.error["details"][0]["rule"].endswith(
        "requires notifications, which has the receivers; empty ones are for your default receivers"
    )


def test_done_by_needs_a_schedule(world: World) -> None:
    answered = post({"done_by": "07:30"}, schedule=None)
    assert (answered.status, answered.error["details"][0]["field"]) == (400, "alerts.done_by")


def test_a_schedule_with_which_no_run_is_done_in_time_is_refused(world: World) -> None:
    made = post({"done_by": "07:30"}).data
    answered = send("PATCH", f"/tasks/{made['id']}", json_body={"schedule": {"cron": "0 8 * * *"}})
    assert (answered.status, answered.error["details"][0]["field"]) == (400, "alerts.done_by")


def test_a_patch_changes_one_rule_and_null_removes_one(world: World) -> None:
    made = post(ALL).data
    changed = send("PATCH", f"/tasks/{made['id']}", json_body={"alerts": {"late_after_seconds": 120, "done_by": None}}).data
    assert changed["alerts"] == {"late_after_seconds": 120, "max_duration_seconds": 3_600, "missed": True}
    assert send("PATCH", f"/tasks/{made['id']}", json_body={"alerts": None}).data["alerts"] is None


def test_the_alerts_go_with_the_notifications(world: World) -> None:
    made = post(ALL).data
    changed = send("PATCH", f"/tasks/{made['id']}", json_body={"notifications": None}).data
    assert changed["alerts"] is None and changed["notifications"] is None


def test_a_put_by_key_is_unchanged_or_updated(world: World) -> None:
    made = send("PUT", "/tasks/by-key/nightly", json_body=body(ALL))
    again = send("PUT", "/tasks/by-key/nightly", json_body=body(ALL))
    other = send("PUT", "/tasks/by-key/nightly", json_body=body(ALL | {"missed": False}))
    assert [each.data["outcome"] for each in (made, again, other)] == ["created", "unchanged", "updated"]
    assert "missed" not in other.data["alerts"]
