"""The alerts of a task: requested, validated, stored, changed, and the timers of its runs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lambdas import _runtime
from scheduler.model.alerts import Alerts
from scheduler.model.job import TaskKey
from scheduler.targets.base import Reach
from scheduler.tasks import watch
from tests.lambdas.gateway import Answered, World, send, work_off
from tests.unit.stage import Wrapped

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


RULES = {"late_after_seconds": 60, "max_duration_seconds": 3_600, "missed": True}


def put_default(rules: Any, **options: Any) -> Answered:
    return send("PUT", "/default-alerts", json_body=rules, **options)


def timers(world: World) -> dict[str, int]:
    """The timers of the stored runs, by the seconds from the run to its deadline."""
    found = {timer.run: timer.next_at for timer in world.run_timers.armed.values()}
    return {key.id: (found[key] - job.scheduled_at) // 1_000 for key, job in world.jobs.rows.items() if key in found}


def test_default_alerts_are_put_and_read(world: World) -> None:
    never = {"late_after_seconds": None, "max_duration_seconds": None, "missed": False, "updated_at": None}
    assert send("GET", "/default-alerts").data == never
    assert put_default({}).data == never | {"outcome": "unchanged", "operation": None}
    made = put_default(RULES).data
    assert (made["outcome"], made["operation"]["action"]) == ("created", "apply_alerts")
    read = send("GET", "/default-alerts").data
    assert {name: read[name] for name in RULES} == RULES and read["updated_at"] is not None
    again = put_default(made).data
    assert (again["outcome"], again["operation"]) == ("unchanged", None), "an answer may be sent back"
    assert put_default({"missed": True}).data["outcome"] == "updated"


def test_a_repeated_put_starts_the_operation_that_was_aborted(world: World) -> None:
    first = put_default(RULES).data["operation"]["id"]
    send("POST", f"/operations/{first}/abort", json_body={})
    again = put_default(RULES).data
    assert again["outcome"] == "unchanged" and again["operation"]["id"] != first


@pytest.mark.parametrize(
    ("rules", "field"), [({"late_after_seconds": 9}, "late_after_seconds"), ({"done_by": "07:00"}, "done_by"), ({"missed": 1}, "missed")]
)
def test_bad_default_alerts_are_refused(world: World, rules: Any, field: str) -> None:
    answered = put_default(rules)
    assert (answered.status, [each["field"] for each in answered.error["details"]]) == (400, [field])


def test_tasks_without_own_alerts_have_the_default_ones(world: World) -> None:
    put_default(RULES)
    made = post(None).data
    assert made["alerts"] is None and all(watched(world))
    assert set(timers(world).values()) == {62} and len(timers(world)) == len(world.jobs.rows)


def test_own_alerts_replace_the_default_ones_whole(world: World) -> None:
    put_default(RULES)
    post({"max_duration_seconds": 600})
    assert set(timers(world).values()) == {603}


@pytest.mark.parametrize("fields", [{"alerts": {}}, {"notifications": None}])
def test_a_task_can_do_without_the_default_alerts(world: World, fields: dict[str, Any]) -> None:
    put_default(RULES)
    made = send("POST", "/tasks", json_body=body(None) | fields).data
    assert made["alerts"] == fields.get("alerts") and not any(watched(world)) and not timers(world)
    if made["notifications"] is not None:
        assert send("PATCH", f"/tasks/{made['id']}", json_body={"alerts": None}).data["alerts"] is None
        assert set(timers(world).values()) == {62}
        assert send("PATCH", f"/tasks/{made['id']}", json_body={"alerts": {}}).data["alerts"] == {}
        assert not any(watched(world))


def test_default_alerts_of_another_owner_do_not_apply(world: World) -> None:
    put_default(RULES, user="bob")
    post(None)
    assert world.jobs.rows and not any(watched(world))


def test_changed_default_alerts_reach_the_future_runs_of_all_tasks(world: World) -> None:
    plain, own, paused, silent = post(None).data, post({"missed": True}).data, post(None).data, post({}).data
    send("POST", f"/tasks/{paused['id']}/pause", json_body={})
    operation = put_default({"late_after_seconds": 120}).data["operation"]
    work_off(world)
    assert send("GET", f"/operations/{operation['id']}").data["status"] == "done"
    assert {job.origin.task for key, job in world.jobs.rows.items() if key.id in timers(world)} == {plain["id"]}
    assert set(timers(world).values()) == {122}
    generations = [send("GET", f"/tasks/{each['id']}").data["generation"] for each in (plain, own, paused, silent)]
    assert generations == [2, 1, 2, 1]
    send("POST", f"/tasks/{paused['id']}/resume", json_body={})
    assert {job.origin.task for key, job in world.jobs.rows.items() if key.id in timers(world)} == {plain["id"], paused["id"]}
    put_default({})
    work_off(world)
    assert not any(job.origin.watched for job in world.jobs.rows.values() if job.origin.task in (plain["id"], paused["id"]))


def test_a_manual_run_has_the_default_alerts(world: World) -> None:
    put_default({"late_after_seconds": 60})
    made = post(None, schedule=None).data
    run = send("POST", f"/tasks/{made['id']}/run", json_body={}).data
    assert timers(world)[run["id"]] == 62


def test_alerts_are_read_once_for_each_owner_and_page(world: World) -> None:
    put_default({"late_after_seconds": 60})
    reads = list[set[str]]()
    tasks = [world.tasks.get(TaskKey("sub-ann", post(alerts).data["id"])) for alerts in (None, None, {"missed": True})]
    of = world.owner_alerts.of
    world.owner_alerts = Wrapped(world.owner_alerts, of=lambda verb, owners: (reads.append(set(owners)), verb(owners))[1])
    assert set(watch.rules(tasks, world)) == {task.key for task in tasks} and reads == [{"sub-ann"}]
    assert not watch.rules([replace(task, alerts=Alerts()) for task in tasks], world) and reads == [{"sub-ann"}]
    assert of(["sub-ann"])
