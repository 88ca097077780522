"""Keys that owners choose, over HTTP: put, get and cancel jobs and tasks by them; and delays."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from lambdas.rest import job_answers, shapes, task_models
from scheduler.model import own_keys
from scheduler.model.instants import FUTURE_LIMIT, render
from scheduler.model.job import Claim, Job, JobKey
from tests.lambdas.gateway import NOW, Answered, World, send

JOB = "/jobs/by-key/order:17"
TASK = "/tasks/by-key/nightly"
HOUR = 3_600_000
LATER: dict[str, Any] = {"message": "m", "delay": "1h"}
NIGHTLY: dict[str, Any] = {"name": "n", "message": "m", "schedule": {"cron": "30 2 * * *"}}


def put(path: str = JOB, **fields: Any) -> Answered:
    answered = send("PUT", path, json_body=LATER | fields)
    if answered.status < 300:
        shapes.Answer[job_answers.PutJobShape].model_validate(answered.body)
    return answered


def stored(world: World, job_id: str) -> Job:
    return world.jobs.rows[JobKey("sub-ann", job_id)]


def change(world: World, job_id: str, **fields: Any) -> None:
    job = stored(world, job_id)
    world.jobs.rows[job.key] = replace(job, **fields)


def claim(world: World, job_id: str) -> None:
    """Let an executor take the job, which then is about to start or has started."""
    change(world, job_id, claim=Claim("m", "n", NOW, True))


# put


def test_a_put_creates_the_job_of_a_key(world: World) -> None:
    made = put()
    assert (made.status, made.data["outcome"], made.data["follows"]) == (201, "created", None)
    assert made.headers["Location"] == f"/api/v1/jobs/{made.data['id']}"
    assert (made.data["key"], made.data["task_key"], made.data["scheduled_at"]) == ("order:17", None, render(NOW + HOUR))
    assert stored(world, made.data["id"]).spec.key == "order:17"


def test_a_put_replaces_time_and_content_of_a_job_that_has_not_started(world: World) -> None:
    first = put(tags=["a"], max_attempts=7, expires_at=render(NOW + 9 * HOUR)).data
    again = put(message="other", delay="2h", ordering_key="line").data
    assert (again["outcome"], again["id"], again["scheduled_at"]) == ("replaced", first["id"], render(NOW + 2 * HOUR))
    assert (again["payload"], again["tags"], again["max_attempts"], again["expires_at"]) == ({"message": "other"}, [], 3, None)
    assert (again["ordering_key"], again["key"], len(world.jobs.rows)) == ("line", "order:17", 1)


def test_a_put_of_another_type_replaces_the_type(world: World) -> None:
    put()
    payload = {"method": "POST", "url": "https://example.com/orders/17"}
    answered = send("PUT", JOB, json_body={"type": "http", "payload": payload, "delay": "2h"})
    assert (answered.data["outcome"], answered.data["type"]) == ("replaced", "http")


def test_keep_leaves_the_job_as_it_is(world: World) -> None:
    first = put().data
    kept = put(message="other", delay="2h", on_conflict="keep")
    assert (kept.status, kept.data) == (200, first | {"outcome": "kept"})


def test_extend_moves_only_the_time(world: World) -> None:
    first = put(tags=["a"]).data
    moved = put(message="other", delay="3h", on_conflict="extend")
    assert (moved.status, moved.data["outcome"], moved.data["scheduled_at"]) == (200, "extended", render(NOW + 3 * HOUR))
    assert (moved.data["id"], moved.data["payload"], moved.data["tags"]) == (first["id"], {"message": "m"}, ["a"])


def test_a_job_that_has_started_is_never_replaced(world: World) -> None:
    first = put(delay="0s").data
    claim(world, first["id"])
    before = stored(world, first["id"])
    for rule in ("replace", "extend"):
        refused = put(message="other", on_conflict=rule)
        assert refused.status == 409 and "it has started" in refused.error["message"] and first["id"] in refused.error["message"]
    assert put(on_conflict="keep").data["outcome"] == "kept"
    assert stored(world, first["id"]) == before and len(world.jobs.rows) == 1


@pytest.mark.parametrize("rule", ["replace", "keep", "extend"])
def test_a_new_job_follows_a_started_one_if_requested(world: World, rule: str) -> None:
    first = put(delay="0s").data
    claim(world, first["id"])
    follower = put(on_conflict=rule, on_started="follow")
    assert (follower.status, follower.data["outcome"], follower.data["follows"]) == (201, "created", first["id"])
    assert send("GET", JOB).data["id"] == follower.data["id"] != first["id"]
    assert put(on_started="follow").data["outcome"] == "replaced"


def test_a_job_that_is_about_to_start_or_is_being_cancelled_is_not_changed(world: World) -> None:
    first = put(delay="2s").data
    claim(world, first["id"])
    assert "it is about to start" in put().error["message"]
    change(world, first["id"], cancel_requested_at=NOW)
    refused = put(on_conflict="keep")
    assert refused.status == 409 and "it is being cancelled" in refused.error["message"]


def test_a_put_replaces_a_claimed_job_until_its_executor_fixes_it(world: World) -> None:
    first = put(delay="2s").data
    change(world, first["id"], claim=Claim("m", "n", NOW, True, revocable=True))
    again = put(message="other", delay="2s").data
    assert (again["outcome"], again["id"], again["status"], again["puts"]) == ("replaced", first["id"], "scheduled", 2)


def test_a_debounce_moves_the_start_up_to_the_longest_wait(world: World) -> None:
    rule: dict[str, Any] = {"delay": None, "debounce": "5s", "max_wait": "8s"}
    first = put(**rule)
    assert (first.status, first.data["outcome"], first.data["scheduled_at"]) == (201, "created", render(NOW + 5_000))
    world.clock.at = NOW + 4_000
    moved = put(**rule, message="other").data
    assert (moved["outcome"], moved["scheduled_at"], moved["puts"]) == ("replaced", render(NOW + 8_000), 2)
    world.clock.at = NOW + 8_000
    over = put(**rule)
    assert (over.status, over.data["follows"], over.data["scheduled_at"]) == (201, first.data["id"], render(NOW + 13_000))


def test_a_throttle_answers_the_job_that_won(world: World) -> None:
    first = put(delay=None, throttle="10m").data
    claim(world, first["id"])
    world.clock.at = NOW + 599_999
    kept = put(delay=None, throttle="10m", message="other")
    assert (kept.status, kept.data["outcome"], kept.data["id"], kept.data["puts"]) == (200, "throttled", first["id"], 1)
    world.clock.at = NOW + 600_000
    assert put(delay=None, throttle="10m").data["follows"] == first["id"]


def test_a_singleton_answers_its_open_job(world: World) -> None:
    first = put(singleton=True).data
    claim(world, first["id"])
    world.clock.at = NOW + 2 * HOUR
    again = put(singleton=True)
    assert (again.status, again.data["outcome"], again.data["id"]) == (200, "kept", first["id"])


def test_a_put_may_be_repeated_with_its_idempotency_key(world: World) -> None:
    body = {"message": "m", "execute_at": render(NOW + 1_000), "expires_at": render(NOW + 60_000)}

    def once(key: str = "a", **more: Any) -> Answered:
        return send("PUT", JOB, json_body=body | more, headers={"idempotency-key": key})

    first = once()
    assert first.status == 201 and "Idempotency-Replayed" not in first.headers
    claim(world, first.data["id"])
    world.clock.at = NOW + HOUR  # the job has started, and nobody may ask for this expiry any more
    again = once()
    assert (again.status, again.headers["Idempotency-Replayed"], again.data["id"]) == (201, "true", first.data["id"])
    assert again.headers["Location"] == first.headers["Location"] and len(world.jobs.rows) == 1
    assert once("b").status == 400 and once(message="other").status == 400  # these are other requests
    assert once("").status == 400 and "Idempotency-Key" in once("").fields
    assert once("b", execute_at=render(NOW + 2 * HOUR), expires_at=None).status == 409


def test_the_key_of_an_ended_or_removed_job_is_free(world: World) -> None:
    ids = set[str]()
    for fields in ({"slot": None, "completed_at": NOW}, {"slot": None, "failed_at": NOW}, None):
        made = put().data
        assert made["outcome"] == "created"
        ids.add(made["id"])
        if fields is not None:
            change(world, made["id"], **fields)
        else:
            del world.jobs.rows[JobKey("sub-ann", made["id"])]
    assert put().data["outcome"] == "created" and len(ids) == 3


def test_a_redriven_job_has_its_key_again_or_is_refused(world: World) -> None:
    first = put().data["id"]
    change(world, first, slot=None, failed_at=NOW)
    assert send("POST", f"/jobs/{first}/retry").status == 200
    assert put().data["id"] == first
    change(world, first, slot=None, failed_at=NOW)
    second = put().data["id"]
    refused = send("POST", f"/jobs/{first}/retry")
    assert refused.status == 409 and "order:17" in refused.fields["key"] and second in refused.fields["key"]
    assert send("GET", JOB).data["id"] == second != first
    change(world, second, slot=None, completed_at=NOW)
    assert send("POST", f"/jobs/{first}/retry").data["key"] == "order:17"
    assert send("GET", JOB).data["id"] == first


# POST with a key, get, cancel


def test_a_posted_job_takes_a_free_key_and_no_other(world: World) -> None:
    first = send("POST", "/jobs", json_body=LATER | {"key": "order:17"})
    assert (first.status, first.data["key"]) == (201, "order:17")
    refused = send("POST", "/jobs", json_body=LATER | {"key": "order:17"})
    assert refused.status == 409 and first.data["id"] in refused.fields["key"]
    assert send("GET", JOB).data["id"] == first.data["id"] and len(world.jobs.rows) == 1
    change(world, first.data["id"], slot=None, completed_at=NOW)
    assert send("POST", "/jobs", json_body=LATER | {"key": "order:17"}).status == 201


def test_in_a_batch_the_first_job_of_a_key_takes_it(world: World) -> None:
    put()
    items = [LATER, *({"message": str(number), "delay": "1h", "key": key} for number, key in enumerate(["a", "a", "order:17", "b"]))]
    answered = send("POST", "/jobs/batch", json_body={"jobs": items})
    accepted = ["job" in each for each in answered.data["results"]]
    assert (answered.status, accepted) == (207, [True, True, False, False, True])
    errors = [each["error"] for each in answered.data["results"] if "error" in each]
    assert [(error["code"], error["details"][0]["field"]) for error in errors] == [("conflict", "jobs[2].key"), ("conflict", "jobs[3].key")]
    assert send("GET", "/jobs/by-key/a").data["payload"] == {"message": "0"}
    assert send("GET", "/jobs/by-key/b").data["scheduled_at"] == render(NOW + HOUR)


def test_a_repeated_post_with_both_keys_has_the_same_answer(world: World) -> None:
    sent: dict[str, Any] = {"json_body": LATER | {"key": "order:17"}, "headers": {"Idempotency-Key": "k"}}
    first, world.clock.at = send("POST", "/jobs", **sent), NOW + 60_000
    again = send("POST", "/jobs", **sent)
    assert (again.status, again.data["id"], again.data["scheduled_at"]) == (201, first.data["id"], first.data["scheduled_at"])
    assert again.headers["Idempotency-Replayed"] == "true" and len(world.jobs.rows) == 1


def test_a_job_is_cancelled_by_its_key(world: World) -> None:
    made = put().data["id"]
    for _ in range(2):
        cancelled = send("POST", f"{JOB}/cancel")
        assert (cancelled.status, cancelled.data["id"], cancelled.data["status"]) == (200, made, "cancelled")
    assert send("GET", JOB).data["status"] == "cancelled"
    assert put().data["outcome"] == "created"


def test_a_key_that_was_never_used_has_no_job_and_no_task(world: World) -> None:
    answers = [send("GET", JOB), send("POST", f"{JOB}/cancel"), send("GET", TASK)]
    assert [each.status for each in answers] == [404] * 3


def test_both_paths_lead_to_the_same_job(world: World) -> None:
    made = put("/jobs/by-key/order:17").data
    assert put(JOB).data["id"] == made["id"] == send("GET", "/jobs/by-key/order:17").data["id"]
    assert send("POST", "/jobs/by-key/order:17/cancel").data["status"] == "cancelled"


def test_two_owners_may_choose_the_same_key(world: World) -> None:
    mine = put().data["id"]
    assert send("GET", JOB, user="sub-bob").status == 404
    theirs = send("PUT", JOB, json_body=LATER, user="sub-bob").data
    assert (theirs["outcome"], theirs["id"] == mine) == ("created", False)


@pytest.mark.parametrize("key", ["order 17 (é)", "a:b@c|d~e!$&'()*+,;=<>[]{}^", "x" * 255, "by-key", "next", "cancel", "日本"])
@pytest.mark.parametrize("encode", [quote, str])
def test_a_key_may_have_any_printable_character_that_a_path_can_carry(world: World, key: str, encode: Any) -> None:
    path = encode(key)
    assert put(f"/jobs/by-key/{path}").data["key"] == key
    assert send("GET", f"/jobs/by-key/{path}").data["key"] == key
    assert send("POST", f"/jobs/by-key/{path}/cancel").status == 200
    assert send("PUT", f"/tasks/by-key/{path}", json_body=NIGHTLY).data["key"] == key
    assert send("GET", f"/tasks/by-key/{path}").data["key"] == key


@pytest.mark.parametrize(
    "key", ["", "a/b", "a?b", "a#b", "a%b", "a\\b", 'a"b', "a`b", "tab\t", "x" * 256, " a", "a ", ".", "..", "a\u200b", 7]
)
def test_an_invalid_key_is_refused_with_the_rule(world: World, key: Any) -> None:
    rule = own_keys.RULE if isinstance(key, str) else "must be a string"
    for path, body in (("/jobs", LATER), ("/tasks", NIGHTLY)):
        answered = send("POST", path, json_body=body | {"key": key})
        assert (answered.status, answered.fields["key"]) == (400, rule)
    assert not world.jobs.rows and not world.tasks.rows


@pytest.mark.parametrize("key", ["tab%09", "tab\t", "a\nb", "a%0Ab", "a/b", 'a"b', "a%25b", "%20a", "..", "x" * 256])
def test_an_invalid_key_in_a_path_is_refused_with_the_rule(world: World, key: str) -> None:
    for method, path, body in (("PUT", "jobs", LATER), ("GET", "jobs", None), ("PUT", "tasks", NIGHTLY), ("GET", "tasks", None)):
        answered = send(method, f"/{path}/by-key/{key}", json_body=body)
        assert (answered.status, answered.fields) == (400, {"key": own_keys.RULE})


@pytest.mark.parametrize(
    ("fields", "field", "rule"),
    [
        ({"on_conflict": "drop"}, "on_conflict", "replace"),
        ({"on_started": "wait"}, "on_started", "follow"),
        ({"on_conflict": "extend", "delay": None}, "on_conflict", "must not be extend without execute_at, delay or delay_seconds"),
        ({"key": "order:18"}, "key", "must be the key in the path, or absent"),
        ({"debounce": "5s"}, "debounce", "must be absent beside delay: debounce is the delay"),
        ({"delay": None, "debounce": "0.9s"}, "debounce", "must be at least 1s"),
        ({"delay": None, "debounce": "soon"}, "debounce", "30m"),
        ({"max_wait": "5s"}, "max_wait", "needs debounce"),
        ({"throttle": "5m", "max_wait": "5s"}, "max_wait", "needs debounce"),
        ({"delay": None, "debounce": "5s", "max_wait": "4.9s"}, "max_wait", "must be at least the time of debounce"),
        ({"throttle": "0s"}, "throttle", "must be at least 1s"),
        ({"throttle": "31d"}, "throttle", "must be at most 30d, for which ended jobs are kept"),
        ({"delay": None, "debounce": "5s", "throttle": "5s"}, "throttle", "must be absent beside debounce"),
        ({"throttle": "5s", "singleton": True}, "singleton", "must be absent beside throttle"),
        ({"singleton": True, "on_conflict": "keep"}, "on_conflict", "must be absent beside singleton"),
        ({"throttle": "5s", "on_started": "refuse"}, "on_started", "must be absent beside throttle"),
    ],
)
def test_an_invalid_put_changes_nothing(world: World, fields: dict[str, Any], field: str, rule: str) -> None:
    first = put().data
    refused = put(message="other", **fields)
    assert refused.status == 400 and rule in refused.fields[field]
    assert send("GET", JOB).data == {name: value for name, value in first.items() if name not in ("outcome", "follows")}


def test_an_extended_job_must_not_start_after_its_expiry(world: World) -> None:
    put(expires_at=render(NOW + 2 * HOUR))
    refused = put(delay="3h", on_conflict="extend")
    assert refused.status == 400 and "execute_at" in refused.fields
    assert put(delay="3h", expires_at=render(NOW + 4 * HOUR), on_conflict="extend").data["outcome"] == "extended"


# tasks


def put_task(**fields: Any) -> Answered:
    answered = send("PUT", TASK, json_body=NIGHTLY | fields)
    if answered.status < 300:
        shapes.Answer[task_models.PutTaskShape].model_validate(answered.body)
    return answered


def test_a_put_creates_then_updates_the_task_of_a_key(world: World) -> None:
    made = put_task()
    assert (made.status, made.data["outcome"], made.data["key"], made.data["generation"]) == (201, "created", "nightly", 1)
    assert made.headers["Location"] == f"/api/v1/tasks/{made.data['id']}"
    same = put_task()
    assert (same.status, same.data) == (200, made.data | {"outcome": "unchanged"})
    changed = put_task(message="other", schedule={"cron": "45 2 * * *"})
    assert (changed.status, changed.data["outcome"], changed.data["generation"]) == (200, "updated", 2)
    assert (changed.data["id"], changed.data["key"], changed.data["payload"]) == (made.data["id"], "nightly", {"message": "other"})
    assert send("GET", TASK).data["id"] == made.data["id"] and len(world.tasks.rows) == 1


@pytest.mark.parametrize(
    ("schedule", "other"),
    [
        ({"rate": "rate(5 minutes)"}, {"rate": "10 minutes"}),
        ({"rate": "5 minutes", "jitter_seconds": 3}, {"rate": "5 minutes"}),
        ({"at": "2026-11-20T12:00:00+01:00"}, {"at": "2026-12-20T12:00:00+01:00"}),
        ({"cron": "30 2 * * *", "time_zone": "Europe/Berlin"}, {"cron": "30 2 * * *"}),
        (None, {"cron": "30 2 * * *"}),
    ],
)
def test_a_schedule_that_is_put_again_later_keeps_its_rhythm(world: World, schedule: Any, other: Any) -> None:
    made = put_task(schedule=schedule).data
    world.clock.at = NOW + 3 * 24 * HOUR
    again = put_task(schedule=schedule).data
    assert (again["outcome"], again["schedule"], again["generation"]) == ("unchanged", made["schedule"], 1)
    send("POST", f"/tasks/{made['id']}/pause", json_body={})
    assert put_task(schedule=schedule).data["outcome"] == "unchanged"
    assert put_task(schedule=other).data["outcome"] == "updated"


def test_the_runs_of_a_task_carry_its_key(world: World) -> None:
    made = put_task().data
    run = send("GET", f"/tasks/{made['id']}/jobs", query={"upcoming": "true"}).data["items"][0]
    assert (run["key"], run["task_key"]) == (None, "nightly")
    assert send("GET", "/jobs/by-key/nightly").status == 404


def test_a_deleted_task_frees_its_key(world: World) -> None:
    first = put_task().data["id"]
    assert send("POST", "/tasks", json_body=NIGHTLY | {"key": "nightly"}).fields.keys() == {"key"}
    send("DELETE", f"/tasks/{first}")
    assert send("GET", TASK).status == 404
    second = send("POST", "/tasks", json_body=NIGHTLY | {"key": "nightly"})
    assert (second.status, second.data["key"]) == (201, "nightly") and second.data["id"] != first
    assert put_task().data["outcome"] == "unchanged"


def test_the_entry_of_a_deleted_task_does_not_keep_its_key(world: World) -> None:
    first = put_task().data["id"]
    world.tasks.rows.clear()
    made = put_task()
    assert (made.status, made.data["outcome"]) == (201, "created") and made.data["id"] != first


def test_a_task_that_was_read_by_its_key_may_be_put_back(world: World) -> None:
    put_task(schedule={"rate": "5 minutes"}, tags=["a"])
    read = send("GET", TASK)
    again = send("PUT", TASK, json_body=read.data)
    assert (again.status, again.data["outcome"], again.headers["ETag"]) == (200, "unchanged", read.headers["ETag"])
    assert send("PUT", TASK, json_body=again.data | {"message": "other", "payload": None, "type": None}).data["generation"] == 2
    assert send("PUT", TASK, json_body=read.data).status == 409


def test_the_key_of_a_task_never_changes(world: World) -> None:
    made = put_task().data
    refused = send("PUT", f"/tasks/{made['id']}", json_body=NIGHTLY | {"key": "other"})
    assert refused.status == 400 and "cannot be changed" in refused.fields["key"]
    for body in (NIGHTLY, NIGHTLY | {"key": "nightly"}):
        assert send("PUT", f"/tasks/{made['id']}", json_body=body).data["key"] == "nightly"


# delays


@pytest.mark.parametrize(
    ("fields", "ms"),
    [
        ({"delay": "30m"}, 1_800_000),
        ({"delay": "1h30m"}, 5_400_000),
        ({"delay": "2d"}, 172_800_000),
        ({"delay": "1.5s"}, 1_500),
        ({"delay": "PT30M"}, 1_800_000),
        ({"delay": "P1DT2H3M4.005S"}, 93_784_005),
        ({"delay_seconds": 90}, 90_000),
        ({"delay_seconds": 0.0004}, 1),
        ({"delay_seconds": 0}, 0),
        ({"delay": "3653d"}, FUTURE_LIMIT),
    ],
)
def test_a_delay_counts_from_the_request(world: World, fields: dict[str, Any], ms: int) -> None:
    assert send("POST", "/jobs", json_body={"message": "m"} | fields).data["scheduled_at"] == render(NOW + ms)


@pytest.mark.parametrize(
    ("fields", "field", "rule"),
    [
        ({"delay": "soon"}, "delay", "must be a duration such as 30m"),
        ({"delay": ""}, "delay", "must be a duration such as 30m"),
        ({"delay": "P"}, "delay", "must be a duration such as 30m"),
        ({"delay": "PT"}, "delay", "must be a duration such as 30m"),
        ({"delay": "-5m"}, "delay", "must be a duration such as 30m"),
        ({"delay": "5m1h"}, "delay", "must be a duration such as 30m"),
        ({"delay": 30}, "delay", "must be a duration such as 30m"),
        ({"delay": "3654d"}, "delay", "must not be longer than ten years"),
        ({"delay_seconds": -1}, "delay_seconds", "must be at least 0"),
        ({"delay_seconds": FUTURE_LIMIT / 1_000 + 1}, "delay_seconds", "must be at most"),
        ({"delay_seconds": "9"}, "delay_seconds", "must be a number"),
        ({"delay": "30m", "execute_at": render(NOW)}, "delay", "must be absent beside execute_at"),
        ({"delay_seconds": 9, "execute_at": render(NOW)}, "delay_seconds", "must be absent beside execute_at"),
        ({"delay_seconds": 9, "delay": "30m"}, "delay_seconds", "must be absent beside delay"),
        ({"delay": "2h", "expires_at": render(NOW + HOUR)}, "expires_at", "must be later than its start"),
    ],
)
def test_an_invalid_delay_is_refused(world: World, fields: dict[str, Any], field: str, rule: str) -> None:
    answered = send("POST", "/jobs", json_body={"message": "m"} | fields)
    assert answered.status == 400 and rule in answered.fields[field]
    (result,) = send("POST", "/jobs/batch", json_body={"jobs": [{"message": "m"} | fields]}).data["results"]
    assert [each["field"] for each in result["error"]["details"]] == [f"jobs[0].{field}"]
    assert not world.jobs.rows


def test_a_repeated_request_with_a_delay_is_the_same_request(world: World) -> None:
    sent: dict[str, Any] = {"json_body": {"message": "m", "delay": "30m"}, "headers": {"Idempotency-Key": "k"}}
    first, world.clock.at = send("POST", "/jobs", **sent), NOW + HOUR
    again = send("POST", "/jobs", **sent)
    assert (again.data["id"], again.data["scheduled_at"]) == (first.data["id"], render(NOW + HOUR // 2))
    assert len(world.jobs.rows) == 1


@pytest.mark.parametrize(("before", "after"), [(True, 1), (1, 1.0), (False, 0), ([0], [False])])
def test_a_task_whose_body_changes_between_equal_values_is_updated(world: World, before: Any, after: Any) -> None:
    """Python's 1 == True == 1.0; a receiver sees the difference."""

    def body(value: Any) -> dict[str, Any]:
        return {
            "name": "n",
            "schedule": {"cron": "30 2 * * *"},
            "type": "http",
            "payload": {"url": "https://example.org", "body": {"on": value}},
        }

    assert send("PUT", TASK, json_body=body(before)).data["outcome"] == "created"
    assert send("PUT", TASK, json_body=body(before)).data["outcome"] == "unchanged"
    changed = send("PUT", TASK, json_body=body(after)).data
    assert changed["outcome"] == "updated" and repr(changed["payload"]["body"]["on"]) == repr(after)
