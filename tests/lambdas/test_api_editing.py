"""Editing over HTTP: PUT and PATCH accept an answer of GET; merge patches of tasks; entity tags."""

from datetime import UTC, datetime
from typing import Any

import pytest

from lambdas.rest import job_answers, shapes, task_models
from local.samples import sample_tasks
from scheduler.model.instants import DAY, render
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import RetryPolicy
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")

HOURLY = {"name": "Hourly", "message": "m", "schedule": {"cron": "0 * * * *"}}
CALL = {"url": "https://example.com/x"}
EVERYTHING = {
    "name": "Everything",
    "description": "d",
    "target": "reports",
    "payload": {"message": "m"},
    "schedule": {"rate": "rate(5 minutes)", "time_zone": "Europe/Berlin", "jitter_seconds": 10, "end": render(NOW + 9 * DAY)},
    "tags": ["a", "b"],
    "max_attempts": 4,
    "retry": {"base_seconds": 2, "on_timeout": False},
    "timeout_seconds": 20,
    "ordering_key": "k",
    "on_failure": "pause",
    "overlap": "queue_one",
    "misfire": "run_all",
    "misfire_threshold_seconds": 30,
    "max_catch_up": 7,
    "notifications": {"webhooks": [{"url": "https://example.com/hook", "signing_secret": "s"}], "on": ["killed"]},
}
SAMPLES: dict[str, Any] = {
    **{name: example["value"] for name, example in task_models.EXAMPLES.items()},
    **{
        task.name: {"name": task.name, "type": task.type, "payload": task.payload, "schedule": task.schedule}
        for task in sample_tasks(datetime.fromtimestamp(NOW / 1_000, UTC))
    },
    "once": HOURLY | {"schedule": {"at": render(NOW + DAY)}},
    "callback": HOURLY | {"message": None, "type": "http", "payload": CALL | {"body": {"a": 1}}, "callback": {}},
    "everything": EVERYTHING,
}
READ_ONLY = ("updated_at", "generation")


@pytest.fixture(autouse=True)
def target(world: World) -> None:
    world.targets.put(None, NamedTarget("reports", "log", NOW, NOW, "ada", "ada", defaults={"sleep_seconds": 1}))


def created(body: Any = HOURLY) -> Any:
    answered = send("POST", "/tasks", json_body=body)
    assert answered.status == 201, answered.text
    return answered.data


def got(task: Any) -> Answered:
    answered = send("GET", f"/tasks/{task['id']}")
    shapes.Answer[task_models.TaskShape].model_validate(answered.body)
    return answered


def change(method: str, task: Any, body: Any, **rest: Any) -> Answered:
    return send(method, f"/tasks/{task['id']}", json_body=body, **rest)


def without(task: Any, *names: str) -> Any:
    return {name: value for name, value in task.items() if name not in (*READ_ONLY, *names)}


# Round trips


@pytest.mark.parametrize("name", SAMPLES)
def test_put_accepts_what_get_answered_and_changes_nothing(name: str, world: World) -> None:
    task = got(created(SAMPLES[name])).data
    world.clock.advance(1)
    answered = change("PUT", task, task)
    assert answered.status == 200, answered.text
    assert without(answered.data, "status", "next_runs") == without(task, "status", "next_runs")
    assert answered.data["generation"] == task["generation"] + 1


@pytest.mark.parametrize("name", SAMPLES)
def test_patch_accepts_what_get_answered_and_changes_one_field(name: str) -> None:
    task = got(created(SAMPLES[name])).data
    same = change("PATCH", task, task)
    assert (same.status, same.data) == (200, task)
    answered = change("PATCH", task, task | {"description": "new"})
    assert answered.status == 200, answered.text
    assert without(answered.data, "next_runs", "status") == without(task, "next_runs", "status") | {"description": "new"}


def test_put_accepts_an_entry_of_the_list() -> None:
    created(EVERYTHING)
    (task,) = send("GET", "/tasks").data["items"]
    assert change("PUT", task, task).status == 200


def test_put_still_refuses_a_field_that_no_answer_has() -> None:
    assert change("PUT", created(), HOURLY | {"colour": "red"}).fields == {"colour": "is not a known field"}


def test_a_target_and_its_own_type_are_accepted_together() -> None:
    assert change("PUT", created(EVERYTHING), EVERYTHING | {"type": "log"}).status == 200
    refused = change("PUT", created(EVERYTHING), EVERYTHING | {"type": "http"})
    assert refused.fields == {"type": "must be the kind of the target reports: log"}
    assert send("POST", "/jobs", json_body={"target": "reports", "type": "log", "payload": {"message": "m"}}).status == 201


# Merge patches


def test_a_patch_changes_the_given_fields_only() -> None:
    task = got(created(EVERYTHING)).data
    answered = change("PATCH", task, {"tags": ["c"], "retry": {"base_seconds": 3}, "description": None})
    assert answered.status == 200, answered.text
    changed = {"tags": ["c"], "description": None, "retry": task["retry"] | {"base_seconds": 3}}
    assert without(answered.data, "next_runs") == without(task, "next_runs") | changed
    assert answered.headers["ETag"] == f'"{task["generation"] + 1}"' == got(task).headers["ETag"]


def test_a_kind_of_schedule_takes_the_place_of_the_other() -> None:
    task = created(HOURLY | {"schedule": {"cron": "0 * * * *", "time_zone": "Europe/Berlin"}, "misfire": "run_all", "max_catch_up": 3})
    rated = change("PATCH", task, {"schedule": {"rate": "rate(5 minutes)"}}).data
    assert (rated["schedule"]["rate"], "cron" in rated["schedule"], rated["schedule"]["time_zone"]) == (
        "rate(5 minutes)",
        False,
        "Europe/Berlin",
    )
    assert (rated["misfire"], rated["max_catch_up"]) == ("run_all", 3)
    once = change("PATCH", task, {"schedule": {"at": render(NOW + DAY), "start": None}})
    assert (once.status, once.data["misfire"], once.data["max_catch_up"]) == (200, None, None), once.text


def test_a_patch_of_every_keeps_the_day_from_which_it_counts() -> None:
    schedule = {"every": "2 weeks", "weekdays": "MON", "times": "09:00", "time_zone": "Europe/Berlin"}
    task = created(HOURLY | {"schedule": schedule})
    before = task["schedule"]
    assert before == schedule | {"start": "2026-11-22T23:00:00.000Z"}
    later = change("PATCH", task, {"schedule": {"times": ["08:00", "07:30"]}}).data["schedule"]
    assert later == before | {"times": ["07:30", "08:00"]}
    away = change("PATCH", task, {"schedule": {"time_zone": "America/New_York"}}).data
    assert away["schedule"]["start"] == "2026-11-23T05:00:00.000Z" and away["next_runs"][1]["local_at"] == "2026-11-23T08:00:00-05:00"
    assert change("PATCH", task, {"schedule": {"time_zone": None}}).data["schedule"]["start"] == "2026-11-23T00:00:00.000Z"
    moved = change("PATCH", task, {"schedule": {"start": "2026-11-30T00:00:00Z", "time_zone": "Europe/Berlin"}}).data["schedule"]
    assert moved["start"] == "2026-11-30T00:00:00.000Z"
    assert change("PATCH", task, {"schedule": {"time_zone": "Mars/Olympus"}}).fields.keys() == {"schedule.time_zone"}


def test_another_kind_takes_the_place_of_every_with_its_times_and_days() -> None:
    task = created(HOURLY | {"schedule": {"every": "2 weeks", "weekdays": ["MON"], "times": "09:00"}})
    several = change("PATCH", task, {"schedule": {"cron": ["@daily", "0 9 LW * *"], "start": None}}).data["schedule"]
    assert several == {"cron": ["0 9 LW * *", "@daily"]}
    assert change("PATCH", task, {"schedule": {"cron": ["@hourly"]}}).data["schedule"] == {"cron": "@hourly"}
    assert change("PATCH", task, {"schedule": {"cron": ["@hourly", "x"]}}).fields.keys() == {"schedule.cron.1"}


def test_what_the_patch_makes_meaningless_goes_with_it() -> None:
    task = created(EVERYTHING)
    assert change("PATCH", task, {"ordering_key": None}).data["on_failure"] is None
    assert change("PATCH", task, {"misfire": "skip"}).data["max_catch_up"] is None
    refused = change("PATCH", task, {"misfire": "skip", "max_catch_up": 5})
    assert refused.fields == {"max_catch_up": "requires misfire run_all, the only rule that catches up"}


def test_a_message_a_type_or_a_target_takes_the_place_of_the_other() -> None:
    task = created(EVERYTHING)
    written = change("PATCH", task, {"message": "new"}).data
    assert (written["type"], written["target"], written["payload"]) == ("log", None, {"message": "new"})
    aimed = change("PATCH", task, {"target": "reports"}).data
    assert (aimed["type"], aimed["target"]) == ("log", "reports")
    called = change("PATCH", task, {"target": None, "type": "http", "payload": CALL | {"message": None}})
    assert (called.data["type"], called.data["target"], called.data["payload"]) == ("http", None, CALL), called.text


@pytest.mark.parametrize(
    ("patch", "rules"),
    [
        ({}, {"body": "give at least one field to change"}),
        ({"id": "x", "status": "active"}, {"body": "give at least one field to change"}),
        ({"colour": "red"}, {"colour": "is not a known field"}),
        ({"name": None}, {"name": "is required"}),
        ({"name": 5}, {"name": "must be a string"}),
        ({"retry": {"colour": 1}}, {"retry.colour": "is not a known field"}),
        ({"retry": 5}, {"retry": "must be an object"}),
        ({"type": "http"}, {"payload.url": "is required", "payload.message": "is not a known field"}),
        ({"target": "nobody"}, {"target": "there is no such target; GET /targets lists them"}),
        ({"schedule": {"cron": "x"}}, None),
        ({"on_failure": "pause"}, {"on_failure": "requires an ordering_key"}),
        ({"generation": "1"}, {"generation": "must be a whole number"}),
    ],
)
def test_a_patch_whose_result_is_invalid_is_refused_and_changes_nothing(patch: Any, rules: dict[str, str] | None) -> None:
    task = got(created()).data
    answered = change("PATCH", task, patch)
    assert answered.status == 400 and (answered.fields == rules if rules else list(answered.fields) == ["schedule.cron"]), answered.text
    assert got(task).data == task


def test_a_patch_with_an_older_generation_is_a_conflict() -> None:
    task = created()
    assert change("PATCH", task, {"generation": 1, "tags": ["a"]}).status == 200
    assert change("PATCH", task, {"generation": 1, "tags": ["b"]}).status == 409


def test_a_patch_may_have_the_media_type_of_merge_patches() -> None:
    task = created()
    headers = {"content-type": "application/merge-patch+json"}
    assert change("PATCH", task, {"tags": ["a"]}, headers=headers).data["tags"] == ["a"]


# Entity tags


@pytest.mark.parametrize(("method", "body"), [("PUT", HOURLY), ("PATCH", {"tags": ["a"]}), ("DELETE", None)])
def test_a_task_changed_since_it_was_read_is_not_changed_again(method: str, body: Any) -> None:
    task = created()
    tag = got(task).headers["ETag"]
    assert change("PATCH", task, {"description": "of another user"}).status == 200
    refused = change(method, task, body, headers={"if-match": tag})
    assert (refused.status, refused.error["code"]) == (412, "precondition_failed")
    current = got(task)
    assert current.data["description"] == "of another user"
    assert change(method, task, body, headers={"if-match": f'"0", {current.headers["ETag"]}'}).status == 200


def test_any_tag_of_a_task_that_is_there_matches_a_star() -> None:
    assert change("PUT", created(), HOURLY, headers={"if-match": "*"}).status == 200


def test_a_job_changed_since_it_was_read_is_not_changed_again(world: World) -> None:
    job = send("POST", "/jobs", json_body={"message": "m", "execute_at": render(NOW + DAY)}).data["id"]
    tag = send("GET", f"/jobs/{job}").headers["ETag"]
    world.clock.advance(1_000)
    assert send("GET", f"/jobs/{job}").headers["ETag"] == tag
    answered = send("PATCH", f"/jobs/{job}", json_body={"tags": ["a"]}, headers={"if-match": tag})
    assert (answered.status, answered.headers["ETag"]) == (200, send("GET", f"/jobs/{job}").headers["ETag"])
    refused = send("PATCH", f"/jobs/{job}", json_body={"tags": ["b"]}, headers={"if-match": tag})
    assert (refused.status, send("GET", f"/jobs/{job}").data["tags"]) == (412, ["a"])


def test_a_named_target_has_a_tag_too() -> None:
    admin = {"role": "administrator"}
    tag = send("GET", "/targets/reports", **admin).headers["ETag"]
    assert send("PUT", "/targets/reports", json_body={"kind": "log"}, headers={"if-match": tag}, **admin).status == 200
    assert send("PUT", "/targets/reports", json_body={"kind": "log"}, headers={"if-match": tag}, **admin).status == 412


# Defaults


def test_a_time_out_is_retried_unless_the_request_disables_it(world: World) -> None:
    send("POST", "/jobs", json_body={"message": "m"})
    send("POST", "/jobs", json_body={"message": "m", "retry": {"on_timeout": False}})
    assert {job.spec.retry for job in world.jobs.rows.values()} == {RetryPolicy(on_timeout=True), RetryPolicy()}


@pytest.mark.parametrize(
    ("payload", "method"),
    [
        (CALL, None),
        (CALL | {"body": "b"}, "POST"),
        (CALL | {"body": None}, None),
        (CALL | {"body": {}, "method": "GET"}, "GET"),
        (CALL | {"body": {}, "method": "PUT"}, "PUT"),
    ],
)
def test_a_call_with_a_body_is_a_post_by_default(payload: Any, method: str | None) -> None:
    body = {"type": "http", "payload": payload, "execute_at": render(NOW + DAY)}
    job = send("POST", "/jobs", json_body=body).data
    assert job["payload"].get("method") == method
    assert created(HOURLY | {"message": None, "type": "http", "payload": payload})["payload"].get("method") == method
    changed = send("PATCH", f"/jobs/{job['id']}", json_body={"payload": payload})
    assert changed.data["payload"].get("method") == method


def test_a_target_with_its_own_schema_gets_no_method(world: World) -> None:
    schema = {"type": "object", "properties": {"body": {"type": "string"}}, "additionalProperties": False}
    for name, own in (("strict", schema), ("open", None)):
        world.targets.put(None, NamedTarget(name, "http", NOW, NOW, "ada", "ada", defaults=CALL, locked=("url",), payload_schema=own))
    payloads = [send("POST", "/jobs", json_body={"target": name, "payload": {"body": "b"}}).data["payload"] for name in ("strict", "open")]
    assert payloads == [{"body": "b"}, {"method": "POST", "body": "b"}]


@pytest.mark.parametrize(("requested", "shown"), [(None, "continue"), ("continue", "continue"), ("pause", "pause")])
def test_the_rule_after_a_failure_has_one_name(requested: str | None, shown: str) -> None:
    job = send("POST", "/jobs", json_body={"message": "m", "ordering_key": "k", "on_failure": requested})
    shapes.Answer[job_answers.JobShape].model_validate(job.body)
    assert job.data["on_failure"] == shown


@pytest.mark.parametrize("value", ["stop", 5, True, "", "block", "park"])
def test_an_unknown_rule_after_a_failure_is_refused(value: Any) -> None:
    refused = send("POST", "/jobs", json_body={"message": "m", "ordering_key": "k", "on_failure": value})
    assert refused.fields == {"on_failure": "must be one of 'continue' or 'pause'"}
