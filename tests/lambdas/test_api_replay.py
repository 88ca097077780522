"""Replays over HTTP: one ended job again, or many by a filter."""

from dataclasses import replace
from typing import Any

import pytest

from lambdas._settings import Settings
from lambdas.rest import job_answers, operation_models, shapes
from lambdas.rest.replay_models import LONGEST_FOR_ALL
from scheduler.model import ids
from scheduler.model.instants import render
from scheduler.model.job import Job, JobKey, Overlap, RunInfo
from scheduler.model.spec import Ordering
from tests.lambdas.gateway import NOW, World, send, work_off
from tests.lambdas.test_api_dead_letters import dead
from tests.lambdas.test_api_targets import ADMIN, INVOICES

HELLO = {"type": "log", "payload": {"message": "hello"}}


def stored(world: World, id: str) -> Job:
    job = world.jobs.get(JobKey("sub-ann", id))
    assert job is not None
    return job


def log_job(world: World, number: int = 0, **fields: Any) -> Job:
    """A job of type log that has failed."""
    return dead(world, number, **{"type": "log", "payload": {"message": "hello"}} | fields)


def test_an_ended_job_is_replayed_as_it_was(world: World) -> None:
    job = log_job(world, tags=("a",), max_attempts=5, key="mine", ordering=Ordering("line"))
    answered = send("POST", f"/jobs/{job.id}/replay")
    shapes.Answer[job_answers.JobShape].model_validate(answered.body)
    new = answered.data
    assert (answered.status, answered.headers["Location"]) == (201, f"/api/v1/jobs/{new['id']}")
    assert (new["replay_of"], new["status"], new["redrives"], new["attempts"]) == (job.id, "queued", 0, [])
    assert (new["payload"], new["tags"], new["max_attempts"]) == ({"message": "hello"}, ["a"], 5)
    assert (new["key"], new["ordering_key"], new["scheduled_at"]) == (None, None, render(NOW))
    assert new["nominal_at"] == render(job.scheduled_at) and stored(world, job.id) == job
    assert send("GET", f"/jobs/{new['id']}").data["replay_of"] == job.id
    assert send("GET", f"/jobs/{job.id}").data["replay_of"] is None


def test_a_replay_has_another_payload_and_time(world: World) -> None:
    job = log_job(world, ordering=Ordering("line"))
    body = {"payload": {"message": "{{nominal_at}}"}, "delay": "1h", "keep_ordering": True}
    new = send("POST", f"/jobs/{job.id}/replay", json_body=body).data
    assert (new["payload"], new["scheduled_at"], new["ordering_key"]) == (body["payload"], render(NOW + 3_600_000), "line")
    assert stored(world, new["id"]).spec.placeholders


def test_a_replay_of_a_run_belongs_to_no_task(world: World) -> None:
    run = log_job(world, origin=RunInfo(ids.new(NOW, 5), 1, NOW - 99_000, Overlap.SKIP))
    new = send("POST", f"/jobs/{run.id}/replay").data
    assert (new["task_id"], new["lane"], new["nominal_at"]) == (None, "one-time", render(NOW - 99_000))


def test_an_open_job_is_not_replayed(world: World) -> None:
    made = send("POST", "/jobs", json_body={"message": "m", "delay": "1h"}).data
    answered = send("POST", f"/jobs/{made['id']}/replay")
    assert (answered.status, answered.error["message"]) == (409, "the job has not ended: it is scheduled")
    assert len(world.jobs.rows) == 1


@pytest.mark.parametrize("job_id", ["nonsense", ids.new(NOW, 99)])
def test_a_replay_of_an_unknown_job_is_not_found(world: World, job_id: str) -> None:
    assert send("POST", f"/jobs/{job_id}/replay").status == 404


def test_a_job_that_only_the_archive_has_is_not_replayed(world: World) -> None:
    world.settings = Settings(stage="test", archive_database="punctual_test")
    answered = send("POST", f"/jobs/{ids.new(NOW - 400 * 86_400_000, 9)}/replay")
    assert answered.status == 404 and "archive" in answered.error["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"payload": {"message": "m", "colour": "red"}}, "payload.colour"),
        ({"payload": {"message": "{{unknown}}"}}, "payload.message"),
        ({"payload": "hello"}, "payload"),
        ({"execute_at": "yesterday"}, "execute_at"),
        ({"execute_at": render(NOW - 100_000_000)}, "execute_at"),
        ({"execute_at": render(NOW), "delay": "1h"}, "delay"),
        ({"delay": "soon"}, "delay"),
        ({"type": "http"}, "type"),
        ({"keep_ordering": 1}, "keep_ordering"),
    ],
)
def test_an_invalid_replay_is_refused_and_changes_nothing(world: World, body: dict[str, Any], field: str) -> None:
    job = log_job(world)
    answered = send("POST", f"/jobs/{job.id}/replay", json_body=body)
    assert (answered.status, list(answered.fields)) == (400, [field]) and list(world.jobs.rows) == [job.key]


def test_a_repeated_request_returns_the_same_replay(world: World) -> None:
    job, headers = log_job(world), {"Idempotency-Key": "once"}
    first = send("POST", f"/jobs/{job.id}/replay", headers=headers)
    send("POST", f"/jobs/{job.id}/retry")  # it is open again, and yet the repeat gets the answer of then
    again = send("POST", f"/jobs/{job.id}/replay", headers=headers)
    assert (again.status, again.data["id"], again.headers["Idempotency-Replayed"]) == (201, first.data["id"], "true")
    other = send("POST", f"/jobs/{job.id}/replay", json_body={"delay": "1h"}, headers=headers)
    assert other.status == 409 and len(world.jobs.rows) == 2


def test_work_that_its_target_no_longer_takes_is_refused_with_the_reason(world: World) -> None:
    job = log_job(world, target="gone")
    answered = send("POST", f"/jobs/{job.id}/replay")
    assert answered.status == 409 and answered.fields == {"target": "the target gone no longer exists"}
    assert send("POST", "/targets", json_body=INVOICES | {"name": "gone"}, role=ADMIN).status == 201
    kind = send("POST", f"/jobs/{job.id}/replay")
    assert kind.status == 409 and kind.fields == {"target": "the target gone is of kind http now, not log"}


def test_raw_http_is_not_replayed_in_a_stage_without_it(world: World) -> None:
    job = dead(world)
    world.rules = replace(world.rules, raw_http=False)
    answered = send("POST", f"/jobs/{job.id}/replay")
    assert answered.status == 409 and list(answered.fields) == ["type"]


def test_an_administrator_replays_the_job_of_another_user(world: World) -> None:
    job = log_job(world)
    assert send("POST", f"/jobs/{job.id}/replay", user="sub-eve").status == 404
    query = {"owner": "sub-ann"}
    assert send("POST", f"/jobs/{job.id}/replay", user="sub-eve", query=query).status == 403
    new = send("POST", f"/jobs/{job.id}/replay", user="sub-root", role=ADMIN, query=query)
    assert new.status == 201 and stored(world, new.data["id"]).replay_of == job.id


# Many jobs


def test_jobs_are_replayed_by_a_filter(world: World) -> None:
    jobs = [log_job(world, number, tags=("a",)) for number in range(3)]
    log_job(world, 3)
    body = {"tag": "a", "status": ["failed", "killed"], "rate": 1_000}
    counted = send("POST", "/jobs/replay", json_body=body | {"dry_run": True})
    assert (counted.status, counted.data["matched"], counted.data["action"], len(world.jobs.rows)) == (200, 3, "replay_jobs", 4)
    answered = send("POST", "/jobs/replay", json_body=body)
    shapes.Answer[operation_models.OperationShape].model_validate(answered.body)
    made = answered.data
    assert (answered.status, answered.headers["Location"]) == (202, f"/api/v1/operations/{made['id']}")
    work_off(world)
    assert send("GET", f"/operations/{made['id']}").data["done"] == 3
    found = sorted(job.replay_of for job in world.jobs.rows.values() if job.replay_of is not None)
    assert found == [job.id for job in jobs]


def test_a_payload_for_all_is_stored_with_the_operation(world: World) -> None:
    log_job(world)
    assert send("POST", "/jobs/replay", json_body=HELLO | {"payload": {"message": "again"}}).status == 202
    work_off(world)
    (new,) = (job for job in world.jobs.rows.values() if job.replay_of is not None)
    assert new.spec.payload == {"message": "again"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "all"),
        ({"all": True, "tag": "a"}, "all"),
        ({"status": "scheduled"}, "status.0"),
        ({"all": True, "payload": {"message": "m"}}, "type"),
        ({"type": "nonsense", "payload": {"message": "m"}}, "type"),
        ({"type": "log", "payload": {"colour": "red"}}, "payload.colour"),
        ({"type": "log", "payload": {"message": "m" * LONGEST_FOR_ALL}}, "payload"),
        ({"type": "log", "rate": 1_001}, "rate"),
        ({"task": "x"}, "task"),
        ({"from": render(NOW), "to": render(NOW)}, "to"),
    ],
)
def test_an_invalid_filter_is_refused_field_by_field(world: World, body: dict[str, Any], field: str) -> None:
    answered = send("POST", "/jobs/replay", json_body=body)
    assert answered.status == 400 and field in answered.fields and world.operations.running() == []
