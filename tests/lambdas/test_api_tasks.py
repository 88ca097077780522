"""Tasks over HTTP: create, read, list, edit, pause, resume, delete, run now, next runs, past runs."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docs_build.expanded import expanded
from lab.world.gateway import event
from lambdas import api
from lambdas.rest import form_models, job_answers, models, shapes, task_models
from scheduler.model import ids, lifecycle, own_keys
from scheduler.model.instants import DAY, FUTURE_LIMIT, parse, render
from scheduler.model.job import Claim, Failure, FailureKind, Job, JobKey, Lane, Misfire, Overlap, Result, TaskKey
from scheduler.model.spec import CallBack
from scheduler.model.task import Task
from scheduler.tasks import schedule_form
from tests.lambdas.gateway import GROWN, NOW, TOO_LONG, Answered, World, growing, send
from tests.unit.test_docs import ROOT

pytestmark = pytest.mark.usefixtures("world")

HOUR = 3_600_000
HOURLY = {"name": "Hourly", "message": "m", "schedule": {"cron": "0 * * * *"}}
UNKNOWN = ids.new(NOW, 99)
KEYED = {"idempotency-key": "k1"}


def post(user: str = "sub-ann", headers: dict[str, str] | None = None, **changes: Any) -> Answered:
    """Post the hourly task with these changes; None removes a field."""
    body = {name: value for name, value in (HOURLY | changes).items() if value is not None}
    return send("POST", "/tasks", json_body=body, user=user, headers=headers)


def created(**changes: Any) -> Any:
    answered = post(**changes)
    assert answered.status == 201, answered.text
    shapes.Answer[task_models.TaskShape].model_validate(answered.body)
    return answered.data


def put(task: Any, *, user: str = "sub-ann", **changes: Any) -> Answered:
    body = {name: value for name, value in (HOURLY | changes).items() if value is not None}
    return send("PUT", f"/tasks/{task['id']}", json_body=body, user=user)


def got(task: Any) -> Any:
    answered = send("GET", f"/tasks/{task['id']}")
    shapes.Answer[task_models.TaskShape].model_validate(answered.body)
    return answered.data


def kept(world: World, task: Any) -> Task:
    found = world.tasks.get(TaskKey("sub-ann", task["id"]))
    assert isinstance(found, Task)
    return found


def runs_of(world: World, task: Any) -> list[Job]:
    """The stored runs of a task, the soonest first."""
    return sorted(
        (job for job in world.jobs.rows.values() if job.origin is not None and job.origin.task == task["id"]), key=lambda job: job.id
    )


def nothing_stored(world: World) -> bool:
    return not world.tasks.rows and not world.jobs.rows and not world.receipts.rows


# Create


def test_a_created_task_is_returned_with_its_next_ten_runs(world: World) -> None:
    answered = post(
        description="d",
        message=None,
        type="http",
        payload={"url": "https://example.com"},
        schedule={"cron": "0  *  * * *", "time_zone": "Europe/Berlin", "dst_gap": "skip", "end": "2027-01-01T00:00:00Z"},
        tags=["a", "env:prod"],
        ordering_key="orders",
        on_failure="pause",
        overlap="queue_one",
        misfire="run_all",
        misfire_threshold_seconds=10,
        max_catch_up=5,
        max_attempts=1,
        retry={"base_seconds": 10, "on_timeout": True},
        timeout_seconds=60,
        callback={"lease_seconds": 30},
    )
    task = answered.data
    assert (answered.status, answered.headers["Location"]) == (201, f"/api/v1/tasks/{task['id']}")
    assert ids.is_job_id(task["id"]) and ids.time(task["id"]) == NOW
    runs = task.pop("next_runs")
    assert task == {
        "id": task["id"],
        "name": "Hourly",
        "description": "d",
        "status": "active",
        "type": "http",
        "target": None,
        "payload": {"url": "https://example.com"},
        "schedule": {"cron": "0 * * * *", "dst_gap": "skip", "end": "2027-01-01T00:00:00.000Z", "time_zone": "Europe/Berlin"},
        "tags": ["a", "env:prod"],
        "key": None,
        "ordering_key": "orders",
        "on_failure": "pause",
        "overlap": "queue_one",
        "misfire": "run_all",
        "misfire_threshold_seconds": 10,
        "max_catch_up": 5,
        "max_attempts": 1,
        "retry": {"base_seconds": 10, "cap_seconds": 900, "jitter": "full", "max_elapsed_seconds": None, "on_timeout": True},
        "timeout_seconds": 60,
        "callback": {"lease_seconds": 30, "max_seconds": 86_400},
        "limit": None,
        "notifications": None,
        "alerts": None,
        "generation": 1,
        "created_at": render(NOW),
        "updated_at": render(NOW),
        "inactive_at": None,
        "inactive_reason": None,
        "events": False,
        "warnings": [],
        "defaults": [
            "retry.cap_seconds",
            "retry.jitter",
            "retry.max_elapsed_seconds",
            "retry.on_timeout",
            "callback.max_seconds",
            "events",
        ],
    }
    first = parse("2026-11-20T11:00:00Z")
    assert [run["at"] for run in runs] == [render(first + number * HOUR) for number in range(10)]
    assert {run.spec.callback for run in world.jobs.rows.values()} == {CallBack(30_000, 86_400_000)}
    shown = {"nominal": render(first), "at": render(first), "local_at": "2026-11-20T12:00:00+01:00", "dst_note": None}
    assert runs[0] == shown
    assert got(task) == task | {"next_runs": runs}


def test_the_runs_of_a_new_task_are_stored_and_shown(world: World) -> None:
    task = created(tags=["a"])
    runs = send("GET", f"/tasks/{task['id']}/jobs", query={"upcoming": "true"}).data["items"]
    assert [run["scheduled_at"] for run in runs] == [run["at"] for run in task["next_runs"]]
    assert {(run["task_id"], run["generation"], run["lane"], run["type"]) for run in runs} == {(task["id"], 1, "recurring", "log")}
    assert {(run["overlap"], run["misfire"], run["expires_at"]) for run in runs} == {("skip", "run_latest", None)}
    assert all(run["nominal_at"] == run["scheduled_at"] and run["tags"] == ["a"] for run in runs)


def test_absent_fields_get_the_defaults_of_a_recurring_task() -> None:
    task = created()
    defaults = {"overlap": "skip", "misfire": "run_latest", "misfire_threshold_seconds": 60, "max_catch_up": None}
    assert {name: task[name] for name in defaults} == defaults
    assert created(misfire="run_all")["max_catch_up"] == 100


ONCE = {"at": "2026-11-21T12:00:00+01:00", "time_zone": "Europe/Berlin"}


@pytest.mark.parametrize("schedule", [ONCE, None], ids=["once", "at once"])
def test_a_task_that_does_not_recur_has_no_misfire_rule_and_may_overlap(schedule: Any) -> None:
    task = created(schedule=schedule)
    none = dict.fromkeys(["misfire", "misfire_threshold_seconds", "max_catch_up"])
    assert {name: task[name] for name in none} == none and task["overlap"] == "allow"
    assert created(schedule=schedule, overlap="skip")["overlap"] == "skip"


def test_a_one_time_task_has_one_run() -> None:
    task = created(schedule=ONCE)
    assert task["schedule"] == {"at": "2026-11-21T11:00:00.000Z", "time_zone": "Europe/Berlin"} and task["status"] == "active"
    assert [run["local_at"] for run in task["next_runs"]] == ["2026-11-21T12:00:00+01:00"]
    (run,) = send("GET", f"/tasks/{task['id']}/jobs", query={"upcoming": "true"}).data["items"]
    assert (run["scheduled_at"], run["lane"], run["misfire"], run["overlap"]) == ("2026-11-21T11:00:00.000Z", "one-time", None, "allow")


def test_a_task_without_a_schedule_runs_at_once(world: World) -> None:
    task = created(schedule=None)
    assert task["schedule"] is None
    (run,) = send("GET", f"/tasks/{task['id']}/jobs").data["items"]
    assert (run["scheduled_at"], run["status"], run["task_id"]) == (render(NOW), "queued", task["id"])
    assert [queued.message.key.id for queued in world.lanes.queues[Lane.ONE_TIME].values()] == [run["id"]]
    world.clock.advance(1)
    assert (got(task)["status"], got(task)["next_runs"]) == ("ended", [])


def test_null_equals_an_absent_field() -> None:
    absent = ["description", "type", "payload", "overlap", "misfire", "misfire_threshold_seconds", "max_catch_up"]
    answered = send("POST", "/tasks", json_body=HOURLY | dict.fromkeys(absent) | {"schedule": {"cron": "0 * * * *", "at": None}})
    assert answered.status == 201
    same = ["overlap", "misfire", "misfire_threshold_seconds", "max_catch_up", "description", "schedule", "payload"]
    task = created()
    assert {name: answered.data[name] for name in same} == {name: task[name] for name in same}


def test_an_answered_schedule_may_be_posted_again() -> None:
    for schedule in (ONCE, {"rate": {"every": 90, "unit": "minutes"}, "max_runs": 3}, {"cron": "@daily", "jitter_seconds": 60}):
        task = created(schedule=schedule)
        again = created(schedule=task["schedule"])
        assert again["schedule"] == task["schedule"]
        assert [run["nominal"] for run in again["next_runs"]] == [run["nominal"] for run in task["next_runs"]]


TAG_RULE = "must be 1 to 32 letters, digits or any of - _ . : /"
MISFIRES = "requires cron, every or rate: only recurring tasks have misfires"
CATCHES_UP = "requires misfire run_all, the only rule that catches up"
ONE_OF = "must be one of 'skip', 'queue_one', 'allow' or 'cancel_running'"

REFUSED: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"name": None}, {"name": "is required"}),
    ({"name": ""}, {"name": "must not be empty"}),
    ({"name": "  "}, {"name": "must not be blank"}),
    ({"name": "x" * 121}, {"name": "must have at most 120 characters"}),
    ({"name": 1}, {"name": "must be a string"}),
    ({"alerts": {"missed": True}}, {"alerts": "requires notifications, which has the receivers"}),
    ({"description": "x" * 1_001}, {"description": "must have at most 1000 characters"}),
    ({"message": None}, {"type": "give exactly one of: message alone; type with its payload; target with its payload"}),
    ({"type": "log"}, {"type": "give exactly one of: message alone; type with its payload; target with its payload"}),
    ({"message": ""}, {"message": "must not be empty"}),
    ({"payload": {}}, {"payload": "requires type or target instead of message"}),
    ({"events": "yes"}, {"events": "must be"}),
    ({"events": True}, {"events": "this stage has no event bus"}),
    ({"message": None, "target": "nobody"}, {"target": "there is no such target; GET /targets lists them"}),
    (
        {"message": None, "type": "lamda"},
        {"type": "there is no such type; known types: aws, ecs, email, eventbridge, http, lambda, log, sns, sqs, stepfunctions"},
    ),
    ({"message": None, "type": "http", "payload": {"url": "ftp://a"}}, {"payload.url": "must be an http:// or https:// URL with a host"}),
    ({"schedule": "daily"}, {"schedule": "must be an object"}),
    ({"schedule": []}, {"schedule": "must be an object"}),
    ({"schedule": {}}, {"schedule": "must have one of at, rate, cron"}),
    ({"schedule": {"cron": "@daily", "timezone": "UTC"}}, {"schedule.timezone": "is not a known field"}),
    ({"schedule": {"cron": "@daily", "rate": "1 day"}}, {"schedule.cron": "must be absent beside rate"}),
    ({"schedule": {"cron": "* * * *"}}, {"schedule.cron": "five fields"}),
    ({"schedule": {"rate": "often"}}, {"schedule.rate": "must be a whole number and a unit"}),
    ({"schedule": {"at": "tomorrow"}}, {"schedule.at": "must be an RFC 3339 instant"}),
    ({"schedule": {"at": render(NOW - DAY - 1)}}, {"schedule.at": "must not be more than a day in the past"}),
    ({"schedule": {"at": render(NOW + FUTURE_LIMIT + 1)}}, {"schedule.at": "must not be more than ten years ahead"}),
    ({"schedule": {"cron": "@daily", "time_zone": "Bonn"}}, {"schedule.time_zone": "must be an IANA time zone"}),
    ({"schedule": {"cron": "@daily", "end": render(NOW)}}, {"schedule.end": "must be after the start and after now"}),
    ({"schedule": {"cron": "@daily", "max_runs": 0}}, {"schedule.max_runs": "must be a whole number from 1"}),
    ({"tags": "a"}, {"tags": "must be a list"}),
    ({"tags": ["a", "a"]}, {"tags": "names a twice"}),
    ({"tags": [str(number) for number in range(11)]}, {"tags": "must have at most 10 entries"}),
    ({"tags": ["a b", "ä", "x" * 33, ""]}, {f"tags.{number}": TAG_RULE for number in range(4)}),
    ({"overlap": "never"}, {"overlap": ONE_OF}),
    ({"overlap": 1}, {"overlap": ONE_OF}),
    ({"misfire": "run_some"}, {"misfire": "must be one of 'run_latest', 'run_all' or 'skip'"}),
    ({"misfire_threshold_seconds": 9}, {"misfire_threshold_seconds": "must be at least 10"}),
    ({"misfire_threshold_seconds": 86_401}, {"misfire_threshold_seconds": "must be at most 86400"}),
    ({"misfire": "run_all", "max_catch_up": 0}, {"max_catch_up": "must be at least 1"}),
    ({"misfire": "run_all", "max_catch_up": 1_001}, {"max_catch_up": "must be at most 1000"}),
    ({"misfire": "run_all", "max_catch_up": "5"}, {"max_catch_up": "must be a whole number"}),
    ({"max_catch_up": 5}, {"max_catch_up": CATCHES_UP}),
    ({"paused": True, "schedule": None}, {"paused": "requires a schedule: a task without one runs once, when it is created"}),
    ({"paused": "yes"}, {"paused": "must be"}),
    ({"pause_reason": "r"}, {"pause_reason": "requires paused: true"}),
    ({"paused": False, "pause_reason": "r"}, {"pause_reason": "requires paused: true"}),
    ({"misfire": "skip", "max_catch_up": 5}, {"max_catch_up": CATCHES_UP}),
    ({"schedule": ONCE, "misfire": "skip"}, {"misfire": MISFIRES}),
    ({"schedule": None, "misfire": "run_latest"}, {"misfire": MISFIRES}),
    ({"schedule": None, "misfire_threshold_seconds": 60}, {"misfire_threshold_seconds": MISFIRES}),
    ({"schedule": ONCE, "misfire": "run_all", "max_catch_up": 9}, {"misfire": MISFIRES, "max_catch_up": MISFIRES}),
    ({"max_attempts": 26}, {"max_attempts": "must be at most 25"}),
    ({"retry": {"cap_seconds": 0.5}}, {"retry.cap_seconds": "must be at least base_seconds"}),
    ({"ordering_key": "a b"}, {"ordering_key": "must be 1 to 128 letters, digits or any of - _ . : @"}),
    ({"on_failure": "pause"}, {"on_failure": "requires an ordering_key"}),
    ({"key": "a/b"}, {"key": own_keys.RULE}),
    ({"limit": {"concurrency": 1}}, {"limit.key": "is required"}),
    ({"limit": {"key": "a b", "concurrency": 1}}, {"limit.key": "must be 1 to 128 letters"}),
    ({"limit": {"key": "k"}}, {"limit.period": "give concurrency, or rate and period, or all three"}),
    ({"limit": {"key": "k", "concurrency": 0}}, {"limit.concurrency": "must be at least 1"}),
    ({"limit": {"key": "k", "concurrency": 51}}, {"limit.concurrency": "must be at most 50"}),
    ({"limit": {"key": "k", "rate": 0, "period": "1m"}}, {"limit.rate": "must be at least 1"}),
    ({"limit": {"key": "k", "rate": 1}}, {"limit.period": "is required with a rate"}),
    ({"limit": {"key": "k", "concurrency": 1, "period": "1m"}}, {"limit.period": "requires a rate"}),
    ({"limit": {"key": "k", "rate": 1, "period": "0.5s"}}, {"limit.period": "must be from 1s to 7d"}),
    ({"limit": {"key": "k", "rate": 1, "period": "8d"}}, {"limit.period": "must be from 1s to 7d"}),
    ({"limit": {"key": "k", "rate": 1, "period": "often"}}, {"limit.period": "must be a duration"}),
    ({"limit": {"key": "k", "rate": 1_001, "period": "1s"}}, {"limit.period": "a key has at most 1,000 starts a second"}),
    ({"timeout_seconds": 841}, {"timeout_seconds": TOO_LONG}),
    ({"callback": {}}, {"callback": "is not possible for type log: its jobs have no worker"}),
    (
        {"notifications": {}},
        {"notifications": "give emails, webhooks or receivers: you have no default receiver (punctual receivers put NAME KIND --default)"},
    ),
    ({"execute_at": render(NOW)}, {"execute_at": "is not a known field"}),
    (
        {"name": "", "tags": [1], "max_attempts": 0},
        {"name": "must not be empty", "tags.0": "must be a string", "max_attempts": "must be at least 1"},
    ),
]


REFUSED_VALUES = [value for changes, _ in REFUSED for value in changes.values()]


def refused(answered: Answered, rules: dict[str, str]) -> None:
    assert (answered.status, answered.error["code"]) == (400, "validation_failed"), answered.text
    assert set(answered.fields) == set(rules)
    for field, rule in rules.items():
        assert rule in answered.fields[field] and field in answered.error["message"]


@pytest.mark.parametrize(("changes", "rules"), REFUSED, ids=lambda part: json.dumps(part)[:60])
def test_an_invalid_task_is_refused_with_field_and_rule(world: World, changes: dict[str, Any], rules: dict[str, str]) -> None:
    refused(post(**changes, headers=KEYED), rules)
    assert nothing_stored(world)


def test_every_field_has_a_refusal() -> None:
    told = {field.partition(".")[0] for _, rules in REFUSED for field in rules}
    assert told >= set(task_models.TaskRequest.model_fields)


@pytest.mark.parametrize("body", ["[]", '"m"', "null", "1"])
@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("PUT", "/{id}"), ("POST", "/{id}/pause"), ("POST", "/{id}/run")])
def test_a_body_that_is_no_object_is_refused(world: World, method: str, path: str, body: str) -> None:
    task = created()
    before = dict(world.tasks.rows), dict(world.jobs.rows)
    answered = send(method, f"/tasks{path}".replace("{id}", task["id"]), body=body)
    assert answered.fields == {"body": "must be a JSON object"}
    assert (world.tasks.rows, world.jobs.rows) == before


# Idempotency keys


def test_a_repeated_create_returns_the_same_task(world: World) -> None:
    first, second = post(headers=KEYED), post(headers=KEYED)
    assert (first.status, second.status) == (201, 201) and first.data == second.data
    assert first.headers["Location"] == second.headers["Location"]
    assert [answered.headers.get("Idempotency-Replayed") for answered in (first, second)] == [None, "true"]
    assert len(world.tasks.rows) == 1 and len(world.jobs.rows) == len(runs_of(world, first.data))


def test_the_same_key_for_another_task_is_a_conflict(world: World) -> None:
    post(headers=KEYED)
    answered = post(headers=KEYED, name="Another")
    assert (answered.status, answered.error["code"]) == (409, "conflict") and len(world.tasks.rows) == 1


def test_each_user_has_separate_keys(world: World) -> None:
    assert post(headers=KEYED).data["id"] != post(headers=KEYED, user="sub-bob").data["id"]
    assert {key.owner for key in world.tasks.rows} == {"sub-ann", "sub-bob"}


def test_a_repeated_run_returns_the_same_job(world: World) -> None:
    task = created()
    before = len(world.jobs.rows)
    first, second = (send("POST", f"/tasks/{task['id']}/run", headers=KEYED) for _ in range(2))
    assert (first.status, second.status) == (201, 201) and first.data == second.data
    assert [answered.headers.get("Idempotency-Replayed") for answered in (first, second)] == [None, "true"]
    assert len(world.jobs.rows) == before + 1
    other = send("POST", f"/tasks/{task['id']}/run", headers=KEYED, json_body={"overlap": "allow"})
    assert (other.status, other.error["code"]) == (409, "conflict") and len(world.jobs.rows) == before + 1


def test_an_invalid_key_is_refused_and_nothing_is_stored(world: World) -> None:
    assert list(post(headers={"idempotency-key": ""}).fields) == ["Idempotency-Key"] and nothing_stored(world)


# Access


ROUTES = [
    ("GET", ""),
    ("PUT", ""),
    ("DELETE", ""),
    ("POST", "/pause"),
    ("POST", "/resume"),
    ("POST", "/run"),
    ("GET", "/next"),
    ("GET", "/jobs"),
]


def asked_for(method: str, path: str, task_id: str, user: str | None = "sub-ann") -> Answered:
    body = json.dumps(HOURLY if path == "" else {}) if method in ("PUT", "POST") else None
    return send(method, f"/tasks/{task_id}{path}", body=body, user=user)


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("task_id", [UNKNOWN, "nonsense", "0" * 26, "é", "..", "x" * 300])
def test_an_unknown_task_and_a_malformed_id_get_the_same_answer(method: str, path: str, task_id: str) -> None:
    answered = asked_for(method, path, task_id)
    assert (answered.status, answered.error["code"], answered.error["message"]) == (404, "not_found", "there is no such task")


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_another_users_task_is_answered_like_an_unknown_one(world: World, method: str, path: str) -> None:
    task = created()
    before = dict(world.tasks.rows), dict(world.jobs.rows)
    answered = asked_for(method, path, task["id"], user="sub-bob")
    assert answered.text == asked_for(method, path, UNKNOWN, user="sub-bob").text and answered.status == 404
    assert (world.tasks.rows, world.jobs.rows) == before


def test_lists_show_only_the_callers_tasks() -> None:
    task = created()
    assert send("GET", "/tasks", user="sub-bob").data == {"items": [], "cursor": None, "has_more": False}
    for query in ({"task": task["id"]}, {"task": task["id"], "upcoming": "true"}):
        assert send("GET", "/jobs", query=query, user="sub-bob").data["items"] == []


@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("POST", None), ("GET", None)])
def test_the_routes_of_tasks_need_a_token(world: World, method: str, path: str | None) -> None:
    answered = send(method, "/tasks", body=json.dumps(HOURLY), user=None) if path is None else asked_for(method, path, UNKNOWN, user=None)
    assert answered.status == 401 and nothing_stored(world)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "", "GET, POST"),
        ("POST", "/x", "DELETE, GET, PATCH, PUT"),
        ("PUT", "/x/pause", "POST"),
        ("GET", "/x/resume", "POST"),
        ("PUT", "/x/run", "POST"),
        ("POST", "/x/next", "GET"),
        ("DELETE", "/x/jobs", "GET"),
    ],
)
def test_a_wrong_method_is_answered_with_the_allowed_ones(method: str, path: str, allowed: str) -> None:
    answered = send(method, f"/tasks{path}")
    assert (answered.status, answered.error["code"], answered.headers["Allow"]) == (405, "method_not_allowed", allowed)


# List


def names(**query: str) -> list[str]:
    answered = send("GET", "/tasks", query=query)
    shapes.Answer[task_models.TaskPageShape].model_validate(answered.body)
    return [task["name"] for task in answered.data["items"]]


def three(world: World) -> list[Any]:
    made = []
    for changes in (
        {"name": "Alpha", "tags": ["a"]},
        {"name": "Beta report", "tags": ["a", "b"], "message": None, "type": "http", "payload": {"url": "https://example.com"}},
        {"name": "Gamma REPORT", "schedule": ONCE},
    ):
        made.append(created(**changes))
        world.clock.advance(1_000)
    return made


def test_tasks_are_listed_newest_first_with_their_next_run(world: World) -> None:
    *_, last = three(world)
    shown = send("GET", "/tasks").data["items"]
    assert [task["name"] for task in shown] == ["Gamma REPORT", "Beta report", "Alpha"]
    assert [task["next_run"]["at"] for task in shown] == ["2026-11-21T11:00:00.000Z", *["2026-11-20T11:00:00.000Z"] * 2]
    assert shown[0] == {name: value for name, value in last.items() if name != "next_runs"} | {"next_run": last["next_runs"][0]}


def test_filters_of_the_list_are_combined(world: World) -> None:
    first, *_ = three(world)
    send("POST", f"/tasks/{first['id']}/pause")
    assert names(name="report") == ["Gamma REPORT", "Beta report"]
    assert names(tag="a") == ["Beta report", "Alpha"]
    assert names(type="http") == ["Beta report"]
    assert names(status="inactive") == ["Alpha"]
    assert names(status="active", name="REPORT", tag="b") == ["Beta report"]
    assert names(tag="b", type="log") == []
    world.clock.at = NOW + 2 * DAY
    assert names(status="ended") == ["Gamma REPORT"]


def test_a_task_without_future_runs_has_no_next_run(world: World) -> None:
    task = created()
    send("POST", f"/tasks/{task['id']}/pause")
    assert [each["next_run"] for each in send("GET", "/tasks").data["items"]] == [None]


@pytest.mark.parametrize("more", [{}, {"tag": "even"}])
def test_pages_of_tasks_follow_the_cursor_without_gaps(world: World, more: dict[str, str]) -> None:
    for number in range(7):
        created(name=str(number), tags=["even"] if number % 2 == 0 else [])
        world.clock.advance(1)
    seen: list[str] = []
    query = {"limit": "3"} | more
    for _ in range(5):
        page = send("GET", "/tasks", query=query).data
        assert len(page["items"]) <= 3
        seen += [task["name"] for task in page["items"]]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert page["cursor"] is None
    assert seen == (["6", "4", "2", "0"] if more else ["6", "5", "4", "3", "2", "1", "0"])


@pytest.mark.long
def test_a_page_of_tasks_fits_the_limit_of_lambda() -> None:
    ids_of = {created(schedule=ONCE, message="x" * 250_000)["id"] for _ in range(30)}
    found, cursor, pages = set[str](), None, 0
    while pages == 0 or cursor is not None:
        page = send("GET", "/tasks", query={"limit": "100"} | ({"cursor": cursor} if cursor else {}))
        assert len(page.text) < 6_000_000
        found |= {task["id"] for task in page.data["items"]}
        cursor, pages = page.data["cursor"], pages + 1
    assert found == ids_of and 1 < pages < 6


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("", {"cursor": "nonsense"}, "cursor"),
        ("", {"cursor": ""}, "cursor"),
        ("", {"limit": "0"}, "limit"),
        ("", {"limit": "101"}, "limit"),
        ("", {"status": "paused"}, "status"),
        ("", {"stauts": "active"}, "stauts"),
        ("/{id}/jobs", {"cursor": "nonsense"}, "cursor"),
        ("/{id}/jobs", {"limit": "101"}, "limit"),
        ("/{id}/jobs", {"status": "dead"}, "status"),
        ("/{id}/jobs", {"upcoming": "perhaps"}, "upcoming"),
        ("/{id}/jobs", {"from": "yesterday"}, "from"),
        ("/{id}/jobs", {"from": render(NOW), "to": render(NOW)}, "to"),
        ("/{id}/jobs", {"type": "log"}, "type"),
        ("/{id}/next", {"count": "0"}, "count"),
        ("/{id}/next", {"count": "101"}, "count"),
        ("/{id}/next", {"count": "ten"}, "count"),
        ("/{id}/next", {"n": "5"}, "n"),
    ],
)
def test_invalid_parameters_are_refused_by_name(path: str, query: dict[str, str], field: str) -> None:
    answered = send("GET", f"/tasks{path}".replace("{id}", created()["id"]), query=query)
    assert answered.status == 400 and set(answered.fields) == {field}


# Edit


def test_an_edit_replaces_the_task_and_its_future_runs(world: World) -> None:
    task = created(description="d", tags=["a"], overlap="allow", misfire="run_all", max_catch_up=5)
    world.clock.advance(1_000)
    answered = put(task, name="Daily", message="new", schedule={"cron": "0 0 * * *"})
    edited = answered.data
    assert (answered.status, edited["generation"]) == (200, 2)
    assert (edited["id"], edited["created_at"], edited["updated_at"]) == (task["id"], render(NOW), render(NOW + 1_000))
    assert (edited["name"], edited["payload"], edited["schedule"]) == ("Daily", {"message": "new"}, {"cron": "0 0 * * *"})
    absent: dict[str, Any] = {"description": None, "tags": [], "overlap": "skip", "misfire": "run_latest", "max_catch_up": None}
    assert {name: edited[name] for name in absent} == absent
    runs = runs_of(world, task)
    assert {job.origin.generation for job in runs if job.origin} == {2}
    assert [render(job.scheduled_at) for job in runs][:10] == [run["at"] for run in edited["next_runs"]]
    assert got(task) == edited


@pytest.mark.parametrize("schedule", [{"rate": "7 minutes"}, {"at": render(NOW)}], ids=["a rate", "an instant"])
def test_a_schedule_sent_back_unchanged_keeps_its_runs(world: World, schedule: Any) -> None:
    task = created(schedule=schedule)
    world.clock.advance(2 * DAY)
    expected = next_runs(task)
    assert put(task, schedule=task["schedule"]).data["next_runs"] == expected
    assert got(task)["schedule"] == task["schedule"]


def test_an_edit_of_an_old_generation_is_refused(world: World) -> None:
    task = created()
    assert put(task, name="First", generation=1).data["generation"] == 2
    late = put(task, name="Second", generation=1)
    assert (late.status, late.error["code"]) == (409, "conflict")
    assert got(task)["name"] == "First"
    assert put(task, name="Third").data["generation"] == 3  # without a generation the last edit wins


@pytest.mark.parametrize("task_class", ["create", "edit"])
def test_a_new_task_takes_no_generation(task_class: str) -> None:
    answered = post(generation=1) if task_class == "create" else put(created(), generation=0)
    assert set(answered.fields) == {"generation"}


@pytest.mark.parametrize(("changes", "rules"), REFUSED, ids=lambda part: json.dumps(part)[:60])
def test_an_invalid_edit_is_refused_and_changes_nothing(world: World, changes: dict[str, Any], rules: dict[str, str]) -> None:
    task = created()
    before = dict(world.tasks.rows), dict(world.jobs.rows)
    refused(put(task, **changes), rules)
    assert (world.tasks.rows, world.jobs.rows) == before


# Pause, resume, delete


def test_a_paused_task_shows_instant_and_reason_and_has_no_runs(world: World) -> None:
    task = created()
    world.clock.advance(1_000)
    answered = send("POST", f"/tasks/{task['id']}/pause", json_body={"reason": "too loud"})
    shown = answered.data
    shapes.Answer[task_models.TaskShape].model_validate(answered.body)
    assert (shown["status"], shown["inactive_at"], shown["inactive_reason"]) == ("inactive", render(NOW + 1_000), "too loud")
    assert shown["next_runs"] == [] and send("GET", f"/tasks/{task['id']}/next").data["runs"] == []
    assert send("GET", f"/tasks/{task['id']}/jobs", query={"upcoming": "true"}).data["items"] == []


def test_a_task_is_created_paused_with_its_reason(world: World) -> None:
    task = created(paused=True, pause_reason="was disabled before", key="k")
    assert (task["status"], task["inactive_reason"], task["next_runs"]) == ("inactive", "was disabled before", [])
    assert task["inactive_at"] == task["created_at"] and runs_of(world, task) == [] and kept(world, task).replenish is None
    assert got(task) == task
    resumed = send("POST", f"/tasks/{task['id']}/resume").data
    assert resumed["status"] == "active" and len(resumed["next_runs"]) == 10 and len(runs_of(world, task)) == 10


def test_a_repeated_creation_of_a_paused_task_has_the_same_answer(world: World) -> None:
    first = post(paused=True, headers=KEYED)
    assert first.status == 201 and post(paused=True, headers=KEYED).data == first.data
    assert post(headers=KEYED).status == 409


def test_an_edit_leaves_pauses_as_they_are() -> None:
    body = {**HOURLY, "paused": True, "pause_reason": "first"}
    made = send("PUT", "/tasks/by-key/k", json_body=body).data
    assert (made["outcome"], made["status"]) == ("created", "inactive")
    send("POST", f"/tasks/{made['id']}/resume")
    same = send("PUT", "/tasks/by-key/k", json_body=body).data
    assert (same["outcome"], same["status"]) == ("unchanged", "active")
    assert put(made, paused=True, name="Other").data["status"] == "active"


def test_a_patch_does_not_pause() -> None:
    task = created()
    answered = send("PATCH", f"/tasks/{task['id']}", json_body={"paused": True})
    assert answered.status == 400 and "POST /tasks/{id}/pause pauses it" in answered.text


def test_pausing_is_idempotent(world: World) -> None:
    task = created()
    first, second = (send("POST", f"/tasks/{task['id']}/pause") for _ in range(2))
    assert first.data == second.data and first.data["inactive_reason"] is None


@pytest.mark.parametrize(
    ("body", "rules"),
    [
        ({"reason": ""}, {"reason": "must not be empty"}),
        ({"reason": "x" * 501}, {"reason": "must have at most 500 characters"}),
        ({"reason": 1}, {"reason": "must be a string"}),
        ({"why": "x"}, {"why": "is not a known field"}),
    ],
)
def test_an_invalid_pause_is_refused(body: dict[str, Any], rules: dict[str, str]) -> None:
    task = created()
    refused(send("POST", f"/tasks/{task['id']}/pause", json_body=body), rules)
    assert got(task)["status"] == "active"


def test_a_resumed_task_runs_from_now_on(world: World) -> None:
    task = created()
    send("POST", f"/tasks/{task['id']}/pause", json_body={"reason": "r"})
    world.clock.advance(3 * HOUR)
    first, second = (send("POST", f"/tasks/{task['id']}/resume") for _ in range(2))
    assert first.data == second.data
    assert (first.data["status"], first.data["inactive_at"], first.data["inactive_reason"]) == ("active", None, None)
    assert first.data["next_runs"][0]["at"] == "2026-11-20T14:00:00.000Z"
    assert render(runs_of(world, task)[0].scheduled_at) == "2026-11-20T14:00:00.000Z"


def test_deleting_a_task_keeps_its_history(world: World) -> None:
    task = created()
    done = send("POST", f"/tasks/{task['id']}/run").data
    job = world.jobs.rows[JobKey("sub-ann", done["id"])]
    claimed = lifecycle.claim(job, claim=Claim("message", "nonce", NOW, True))
    world.jobs.rows[job.key] = lifecycle.succeed(claimed, NOW + 5, started_at=NOW, result=Result("done"))
    world.clock.advance(1_000)
    answered = send("DELETE", f"/tasks/{task['id']}")
    shapes.Answer[task_models.DeletedShape].model_validate(answered.body)
    assert (answered.status, answered.data) == (200, {"id": task["id"]})
    assert send("GET", f"/tasks/{task['id']}").status == send("DELETE", f"/tasks/{task['id']}").status == 404
    assert [each["id"] for each in send("GET", "/jobs", query={"task": task["id"]}).data["items"]] == [done["id"]]
    assert send("GET", "/jobs", query={"task": task["id"], "upcoming": "true"}).data["items"] == []


# Run now


def test_a_manual_run_is_a_job_of_the_task_outside_its_schedule(world: World) -> None:
    task = created(tags=["a"], max_attempts=2, retry={"jitter": "none"})
    assert {run["retry"]["jitter"] for run in send("GET", f"/tasks/{task['id']}/jobs", query={"upcoming": "true"}).data["items"]} == {
        "none"
    }
    ahead = [run["at"] for run in task["next_runs"]]
    answered = send("POST", f"/tasks/{task['id']}/run")
    job = answered.data
    shapes.Answer[job_answers.JobShape].model_validate(answered.body)
    assert (answered.status, answered.headers["Location"]) == (201, f"/api/v1/jobs/{job['id']}")
    assert (job["task_id"], job["generation"], job["nominal_at"], job["misfire"]) == (task["id"], 1, None, None)
    assert (job["overlap"], job["scheduled_at"], job["status"], job["tags"], job["max_attempts"]) == (
        "skip",
        render(NOW),
        "queued",
        ["a"],
        2,
    )
    assert [run["at"] for run in got(task)["next_runs"]] == ahead and got(task)["generation"] == 1
    assert send("GET", f"/jobs/{job['id']}").data == job


def test_a_manual_run_may_have_its_own_overlap_policy() -> None:
    task = created()
    assert send("POST", f"/tasks/{task['id']}/run", json_body={"overlap": "queue_one"}).data["overlap"] == "queue_one"
    refused(send("POST", f"/tasks/{task['id']}/run", json_body={"overlap": "never"}), {"overlap": ONE_OF})
    refused(send("POST", f"/tasks/{task['id']}/run", json_body={"at": "now"}), {"at": "is not a known field"})


def test_a_paused_task_cannot_be_run_manually(world: World) -> None:
    task = created()
    send("POST", f"/tasks/{task['id']}/pause")
    answered = send("POST", f"/tasks/{task['id']}/run")
    assert (answered.status, answered.error["code"]) == (409, "conflict") and runs_of(world, task) == []


# Next and past runs


def next_runs(task: Any, **query: str) -> list[Any]:
    answered = send("GET", f"/tasks/{task['id']}/next", query=query)
    shapes.Answer[form_models.PreviewShape].model_validate(answered.body)
    return list(answered.data["runs"])


def test_ten_next_runs_are_shown_by_default() -> None:
    task = created()
    assert next_runs(task) == task["next_runs"]
    assert len(next_runs(task, count="1")) == 1 and len(next_runs(task, count="100")) == 100


DAILY = {"cron": "30 2 * * *", "time_zone": "Europe/Berlin", "dst_gap": "skip"}


def test_next_runs_are_shown_as_in_a_preview(world: World) -> None:
    task = created(schedule=DAILY)
    world.clock.at = parse("2027-03-27T12:00:00Z")
    assert [(run["nominal"], run["at"] is None) for run in next_runs(task, count="1")] == [
        ("2027-03-28T01:00:00.000Z", True),
        ("2027-03-29T00:30:00.000Z", False),
    ]
    assert next_runs(task, count="5") == send("POST", "/schedules/preview", json_body=DAILY | {"count": 5}).data["runs"]


def test_skipped_times_before_the_end_are_shown_without_a_next_run(world: World) -> None:
    task = created(schedule=DAILY | {"end": "2027-03-28T01:00:01Z"})
    world.clock.at = parse("2027-03-26T12:00:00Z")
    assert [run["at"] for run in next_runs(task)] == ["2027-03-27T01:30:00.000Z", None]


def test_skipped_times_of_a_paused_task_are_not_shown(world: World) -> None:
    task = created(schedule=DAILY | {"end": "2027-04-01T00:00:00Z"})
    send("POST", f"/tasks/{task['id']}/pause")
    world.clock.at = parse("2027-03-27T12:00:00Z")
    assert next_runs(task) == []


def test_only_the_remaining_runs_of_a_task_are_shown(world: World) -> None:
    task = created(schedule={"cron": "0 * * * *", "max_runs": 3, "end": "2027-01-01T00:00:00Z"})
    assert len(next_runs(task)) == 3
    world.clock.advance(2 * HOUR)
    assert [run["at"] for run in next_runs(task)] == ["2026-11-20T13:00:00.000Z"]


def test_skipped_times_after_the_last_run_are_not_shown(world: World) -> None:
    task = created(schedule=DAILY | {"max_runs": 2, "start": "2027-03-26T00:00:00Z", "end": "2027-04-01T00:00:00Z"})
    assert [run["at"] for run in next_runs(task)] == ["2027-03-26T01:30:00.000Z", "2027-03-27T01:30:00.000Z"]


def test_the_runs_of_a_task_are_listed_like_jobs(world: World) -> None:
    task, other = created(), created()
    runs = runs_of(world, task)
    failure = Result(failure=Failure(FailureKind.PERMANENT, "HTTP 404"))
    claimed = lifecycle.claim(runs[1], claim=Claim("message", "nonce", runs[1].due_at, True))
    world.jobs.rows[runs[1].key] = lifecycle.fail(claimed, runs[1].due_at + 5, started_at=runs[1].due_at, result=failure)
    world.clock.at = runs[2].scheduled_at

    def listed(**query: str) -> list[str]:
        answered = send("GET", f"/tasks/{task['id']}/jobs", query=query)
        shapes.Answer[job_answers.PageShape].model_validate(answered.body)
        return [job["id"] for job in answered.data["items"]]

    assert listed() == [runs[2].id, runs[1].id, runs[0].id]
    assert listed(upcoming="true", limit="2") == [runs[3].id, runs[4].id]
    assert listed(status="failed") == [runs[1].id]
    assert listed(**{"from": render(runs[1].scheduled_at), "to": render(runs[2].scheduled_at)}) == [runs[1].id]
    assert not set(listed(limit="100")) & {run.id for run in runs_of(world, other)}


def test_pages_of_runs_follow_the_cursor_without_gaps(world: World) -> None:
    task = created(schedule={"cron": "* * * * *"})
    ahead = [run.id for run in runs_of(world, task)]
    seen: list[str] = []
    query = {"upcoming": "true", "limit": "4"}
    while True:
        page = send("GET", f"/tasks/{task['id']}/jobs", query=query).data
        seen += [job["id"] for job in page["items"]]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert len(ahead) >= 10 and seen == ahead


# Random input

values = st.sampled_from([*REFUSED_VALUES, "m", "log", {"message": "m"}, "run_all", "allow", 60, ["a"], "2027-01-01T00:00:00Z"])
schedules = st.dictionaries(
    st.sampled_from([*schedule_form.FIELDS, "other"]), values | st.sampled_from(["@daily", "1 hour", "UTC"]), max_size=4
)
bodies = st.dictionaries(st.sampled_from([*task_models.TaskEdit.model_fields, "other"]), values | schedules | st.text(max_size=9))
lenient = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.long
@lenient
@given(bodies, st.booleans())
def test_no_body_breaks_the_tasks(world: World, changes: dict[str, Any], whole: bool) -> None:
    body = HOURLY | changes if whole else changes
    answered = send("POST", "/tasks", json_body=body)
    assert answered.status in (201, 400), answered.text
    if answered.status == 201:
        shapes.Answer[task_models.TaskShape].model_validate(answered.body)
        assert send("PUT", f"/tasks/{answered.data['id']}", json_body=body).status == 200
        assert send("DELETE", f"/tasks/{answered.data['id']}").status == 200


@pytest.mark.long
@lenient
@given(
    st.sampled_from(["", "/{id}/jobs", "/{id}/next"]),
    st.dictionaries(st.sampled_from(["name", "tag", "type", "status", "limit", "cursor", "count", "upcoming", "x"]), st.text(max_size=30)),
)
def test_no_parameters_break_the_lists(world: World, path: str, query: dict[str, str]) -> None:
    task = next(iter(world.tasks.rows), None) or TaskKey("sub-ann", created()["id"])
    assert send("GET", f"/tasks{path}".replace("{id}", task.id), query=query).status in (200, 400)


# The document


@pytest.fixture(scope="module")
def document() -> Any:
    return expanded(json.loads(api.handler(event("GET", "/api/v1/openapi.json", user=None), None)["body"]))


def test_the_api_accepts_the_examples_of_the_document(document: Any) -> None:
    for method, path in (("post", "/api/v1/tasks"), ("put", "/api/v1/tasks/{task_id}")):
        examples = document["paths"][path][method]["requestBody"]["content"]["application/json"]["examples"]
        assert len(examples) == 3
        for example in examples.values():
            answered = send("POST", "/tasks", json_body=example["value"])
            assert answered.status == 201, answered.text


def test_the_document_shows_the_routes_that_accept_a_key(document: Any) -> None:
    keyed = {
        path
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", []))
    }
    paths = ("/jobs", "/jobs/batch", "/jobs/by-key/{key}", "/jobs/{job_id}/replay", "/groups", "/tasks", "/tasks/{task_id}/run", "/me/jobs")
    assert keyed == {f"/api/v1{path}" for path in paths}
    assert "x-keyed" not in json.dumps(document)


def test_the_document_describes_every_field_of_a_task(document: Any) -> None:
    schemas = document["components"]["schemas"]
    shown = schemas["Task"]["properties"]
    asked = set(schemas["HttpTaskRequest"]["properties"])
    assert asked - set(shown) == {"paused", "pause_reason"}  # an answer has `inactive_at` and `inactive_reason`
    assert set(schemas["HttpTaskEdit"]["properties"]) - asked == {"generation"}
    assert set(schemas["Task"]["required"]) == set(shown)
    assert schemas["Overlap"]["enum"] == list(Overlap) and schemas["Misfire"]["enum"] == list(Misfire)
    assert schemas["HttpTaskRequest"]["properties"]["tags"]["items"]["pattern"] == f"^{models.TAG}$"


def test_the_api_accepts_the_example_of_the_page_on_tasks() -> None:
    page = (ROOT / "docs/reference/tasks.md").read_text().partition("## Create\n")[2]
    body = page.partition("-d '")[2].partition("'\n")[0]
    answered = send("POST", "/tasks", body=body)
    assert (answered.status, answered.data["next_runs"][0]["local_at"]) == (201, "2026-11-21T02:30:00+01:00")


# Sizes


def test_a_task_that_grows_beyond_the_table_is_refused(world: World) -> None:
    body = growing({"name": "Hourly", "schedule": HOURLY["schedule"], "type": "http", "payload": GROWN, "ordering_key": "k"})
    answered = send("POST", "/tasks", body=body, headers=KEYED)
    assert "at most 307,200 (300 KB)" in answered.error["message"]
    assert (answered.status, answered.error["code"]) == (413, "payload_too_large")
    assert not world.tasks.rows and not world.jobs.rows and not world.receipts.rows
    task = created()
    before = kept(world, task)
    assert send("PUT", f"/tasks/{task['id']}", body=body).status == 413 and kept(world, task) == before


def test_a_run_by_hand_of_a_task_that_is_too_large_is_refused(world: World) -> None:
    task = kept(world, created(schedule={"cron": "0 0 1 1 *"}))
    runs = len(world.jobs.rows)
    world.tasks.rows[task.key] = replace(task, spec=replace(task.spec, payload={"message": "x" * 310_000}))
    answered = send("POST", f"/tasks/{task.id}/run")
    assert (answered.status, answered.error["code"]) == (413, "payload_too_large") and len(world.jobs.rows) == runs
