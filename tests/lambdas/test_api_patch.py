"""Changing a job before it starts, over HTTP."""

from dataclasses import replace
from types import NoneType
from typing import Any, get_args

import pytest

from docs_build.expanded import expanded
from lambdas.rest import job_answers, shapes
from lambdas.rest.models import JobChange
from scheduler.model.instants import DAY, render
from scheduler.model.job import Job, JobKey, Lane
from tests.lambdas.gateway import GROWN, NOW, Answered, World, growing, send

pytestmark = pytest.mark.usefixtures("world")

LATER = render(NOW + 2 * DAY)
CALL = {"url": "https://example.com/x", "method": "POST"}


def posted(**fields: Any) -> str:
    body = {"execute_at": render(NOW + DAY)} | ({"message": "old"} if "type" not in fields else {}) | fields
    answered = send("POST", "/jobs", json_body=body)
    assert answered.status == 201, answered.text
    job_id: str = answered.data["id"]
    return job_id


def patch(job_id: str, body: Any, **rest: Any) -> Answered:
    return send("PATCH", f"/jobs/{job_id}", json_body=body, **rest)


def stored(world: World, job_id: str) -> Job:
    job: Job = world.jobs.get(JobKey("sub-ann", job_id))
    return job


def test_a_postponed_job_keeps_its_id_and_is_listed_at_its_new_time(world: World) -> None:
    moved, other = posted(), posted(execute_at=render(NOW + DAY + 1))
    answered = patch(moved, {"execute_at": LATER})
    shapes.Answer[job_answers.JobShape].model_validate(answered.body)
    assert (answered.status, answered.data["id"], answered.data["scheduled_at"], answered.data["due_at"]) == (200, moved, LATER, LATER)
    assert send("GET", f"/jobs/{moved}").data == answered.data
    assert [job["id"] for job in send("GET", "/jobs", query={"upcoming": "true"}).data["items"]] == [other, moved]


def test_a_job_moved_to_now_is_enqueued(world: World) -> None:
    job = posted()
    assert patch(job, {"execute_at": render(NOW)}).data["status"] == "queued"
    assert [queued.message.key.id for queued in world.lanes.queues[Lane.ONE_TIME].values()] == [job]


def test_given_fields_change_and_absent_fields_stay(world: World) -> None:
    job = posted(tags=["a"], max_attempts=7, expires_at=render(NOW + 2 * DAY))
    assert patch(job, {"message": "new", "timeout_seconds": 5}).data["payload"] == {"message": "new"}
    kept = stored(world, job)
    assert (kept.spec.timeout_ms, kept.spec.max_attempts, kept.spec.tags, kept.start_by) == (5_000, 7, ("a",), NOW + 2 * DAY)
    assert patch(job, {"max_attempts": 1, "tags": ["b", "c"], "expires_at": None}).status == 200
    kept = stored(world, job)
    assert (kept.spec.timeout_ms, kept.spec.max_attempts, kept.spec.tags, kept.start_by) == (5_000, 1, ("b", "c"), None)
    assert (kept.spec.payload, kept.scheduled_at) == ({"message": "new"}, NOW + DAY)
    assert patch(job, {"tags": [], "expires_at": LATER}).status == 200
    assert (stored(world, job).spec.tags, stored(world, job).start_by) == ((), NOW + 2 * DAY)


def test_a_retry_policy_is_replaced_as_a_whole() -> None:
    job = posted(retry={"base_seconds": 5, "on_timeout": False})
    assert patch(job, {"max_attempts": 2}).data["retry"]["base_seconds"] == 5
    changed = patch(job, {"retry": {"jitter": "none"}}).data["retry"]
    assert (changed["base_seconds"], changed["jitter"], changed["on_timeout"]) == (1, "none", True)


def test_a_payload_is_replaced_whole_and_checked_by_the_jobs_type(world: World) -> None:
    job = posted(type="http", payload=CALL | {"body": {"a": 1}})
    assert patch(job, {"payload": CALL}).data["payload"] == CALL
    assert patch(job, {"payload": {"url": "ftp://a", "headers": {"Host": "b"}}}).fields.keys() == {"payload.url", "payload.headers.Host"}
    assert patch(job, {"payload": {}}).fields.keys() == {"payload.url"}
    assert patch(job, {"message": "m"}).fields.keys() == {"message"}
    assert stored(world, job).spec.payload == CALL


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"body"}),
        ({"execute_at": None}, {"execute_at"}),
        ({"execute_at": "tomorrow"}, {"execute_at"}),
        ({"execute_at": render(NOW - DAY - 1)}, {"execute_at"}),
        ({"execute_at": render(NOW + 3_654 * DAY)}, {"execute_at"}),
        ({"message": None}, {"message"}),
        ({"message": ""}, {"message"}),
        ({"payload": None}, {"payload"}),
        ({"payload": {"message": 5}}, {"payload.message"}),
        ({"message": "m", "payload": {"message": "m"}}, {"body"}),
        ({"max_attempts": 26}, {"max_attempts"}),
        ({"retry": None}, {"retry"}),
        ({"retry": {"base_seconds": 0}}, {"retry.base_seconds"}),
        ({"timeout_seconds": None}, {"timeout_seconds"}),
        ({"tags": None}, {"tags"}),
        ({"tags": ["a", "a"]}, {"tags"}),
        ({"expires_at": render(NOW + DAY)}, {"expires_at"}),
        ({"type": "http"}, {"type"}),
        ({"status": "cancelled", "colour": 1}, {"status", "colour"}),
    ],
)
def test_an_invalid_change_changes_nothing(world: World, body: Any, fields: set[str]) -> None:
    job = posted()
    before = stored(world, job)
    answered = patch(job, body)
    assert (answered.status, answered.error["code"], set(answered.fields)) == (400, "validation_failed", fields)
    assert stored(world, job) == before


def test_a_finished_job_is_a_conflict() -> None:
    job = posted()
    assert send("POST", f"/jobs/{job}/cancel").status == 200
    answered = patch(job, {"message": "new"})
    assert (answered.status, answered.error["code"], answered.error["message"]) == (409, "conflict", "it has already ended: cancelled")


def test_unknown_and_other_users_jobs_are_not_found(world: World) -> None:
    job = posted()
    assert patch(job, {"message": "new"}, user="sub-bob").status == 404
    assert patch("0" * 26, {"message": "new"}).status == patch("nonsense", {"message": "new"}).status == 404
    assert stored(world, job).spec.payload == {"message": "old"}


def test_the_document_of_a_change_has_nullable_fields_and_no_defaults() -> None:
    shape = expanded(send("GET", "/openapi.json", user=None).body)["components"]["schemas"]["JobChange"]["properties"]
    nullable = [name for name, field in JobChange.model_fields.items() if NoneType in get_args(field.annotation)]
    assert {"expires_at", "notifications"} <= {*nullable}
    assert [name for name, rule in shape.items() if {"type": "null"} in rule.get("anyOf", [])] == nullable
    assert [name for name, rule in shape.items() if "default" in rule] == []


def test_a_change_that_grows_beyond_the_table_is_refused(world: World) -> None:
    job = posted(type="http", payload=CALL)
    answered = send("PATCH", f"/jobs/{job}", body=growing({"payload": GROWN}))
    assert (answered.status, answered.error["code"]) == (413, "payload_too_large")
    assert "at most 307,200 (300 KB)" in answered.error["message"] and stored(world, job).spec.payload["url"] == CALL["url"]
    assert stored(world, job).fence == 1


def test_a_job_larger_than_the_limit_may_move_to_another_time(world: World) -> None:
    job = posted()
    before = stored(world, job)
    world.jobs.rows[before.key] = replace(before, spec=replace(before.spec, payload={"message": "x" * 310_000}))
    assert patch(job, {"execute_at": LATER}).status == 200
    assert patch(job, {"max_attempts": 2}).status == 413
