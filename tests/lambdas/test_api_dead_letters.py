"""Dead letters over HTTP: retries of one job, counts by error, and redrives of many at a rate."""

from dataclasses import replace
from typing import Any

import pytest

from lambdas.rest import dead_letter_models, job_answers, shapes
from scheduler.model import ids
from scheduler.model.fingerprint import of_job
from scheduler.model.instants import render
from scheduler.model.job import Attempt, Failure, FailureKind, Job, Outcome
from scheduler.model.spec import JobSpec
from tests.conftest import with_spec
from tests.lambdas.gateway import NOW, Answered, World, send, work_off

NO_FINGERPRINT = "0123456789ab"


def dead(world: World, number: int = 0, message: str = "HTTP 404", owner: str = "sub-ann", **fields: Any) -> Job:
    at = NOW - 60_000 + number * 1_000
    failure = Attempt(1, at, at, at + 5, Outcome.FAILED, Failure(FailureKind.PERMANENT, message))
    chosen = {"attempts": (failure,), "failed_at": at + 5, "expires": 9, "delay_ms": 0} | fields
    job = Job(
        owner,
        ids.new(at, number),
        scheduled_at=at,
        due_at=at,
        created_at=at,
        slot=None,
        **with_spec(chosen, JobSpec("http", {"url": "http://a"})),
    )
    job = replace(job, fingerprint=of_job(job))
    world.jobs.put(job)
    return job


def shown(answered: Answered) -> Any:
    """The redrive in an answer, which must have the documented shape."""
    shapes.Answer[dead_letter_models.RedriveShape].model_validate(answered.body)
    return answered.data


def test_a_dead_job_is_retried_and_returned(world: World) -> None:
    job = dead(world)
    before = send("GET", f"/jobs/{job.id}").data
    assert (before["status"], before["fingerprint"], before["redrives"], before["redriven_at"]) == ("failed", job.fingerprint, 0, None)
    answered = send("POST", f"/jobs/{job.id}/retry")
    shapes.Answer[job_answers.JobShape].model_validate(answered.body)
    again = answered.data
    assert (answered.status, again["status"], again["lane"], again["failed_at"]) == (200, "queued", "retry", None)
    assert (again["fingerprint"], again["redrives"], again["redriven_at"], again["due_at"]) == (None, 1, render(NOW), render(NOW))
    assert [attempt["failure"]["message"] for attempt in again["attempts"]] == ["HTTP 404"]
    second = send("POST", f"/jobs/{job.id}/retry")
    assert (second.status, second.error["code"]) == (409, "conflict")


@pytest.mark.parametrize("job_id", ["nonsense", ids.new(NOW, 99)])
def test_a_retry_of_an_unknown_job_is_not_found(world: World, job_id: str) -> None:
    assert send("POST", f"/jobs/{job_id}/retry").status == 404


def test_dead_letters_of_another_user_are_out_of_reach(world: World) -> None:
    job = dead(world, owner="sub-eve")
    assert send("POST", f"/jobs/{job.id}/retry").status == 404
    assert send("GET", "/dead-letters").data["items"] == []
    assert send("GET", f"/dead-letters/{job.fingerprint}/jobs").data["items"] == []
    send("POST", "/dead-letters/redrive", json_body={"all": True})
    work_off(world)
    assert world.jobs.get(job.key) == job


def test_errors_are_counted_with_a_sample(world: World) -> None:
    for number, message in enumerate(["order 1 is gone", "order 22 is gone", "no answer"]):
        dead(world, number, message)
    answered = send("GET", "/dead-letters")
    shapes.Answer[dead_letter_models.OverviewShape].model_validate(answered.body)
    assert (answered.data["scanned"], answered.data["complete"]) == (3, True)
    first, second = answered.data["items"]
    assert (first["count"], first["types"], first["task_ids"]) == (2, ["http"], [])
    assert first["calls"] == "a"
    assert first["error"] == {"kind": "permanent", "message": "order 22 is gone", "retry_after_seconds": None}
    assert (first["first_at"], first["last_at"]) == (render(NOW - 60_000 + 5), render(NOW - 59_000 + 5))
    assert second["count"] == 1
    listed = send("GET", f"/dead-letters/{first['fingerprint']}/jobs", query={"limit": "1"}).data
    assert [job["id"] for job in listed["items"]] == [first["job_id"]] and listed["cursor"]
    rest = send("GET", f"/dead-letters/{first['fingerprint']}/jobs", query={"limit": "1", "cursor": listed["cursor"]}).data
    assert len(rest["items"]) == 1 and rest["items"][0]["id"] != first["job_id"]


@pytest.mark.parametrize(
    ("query", "counted"),
    [
        ({"type": "http"}, 2),
        ({"type": "log"}, 0),
        ({"from": render(NOW - 59_500)}, 1),
        ({"to": render(NOW - 59_500)}, 1),
        ({"task": ids.new(NOW, 5)}, 0),
    ],
)
def test_the_overview_is_filtered(world: World, query: dict[str, str], counted: int) -> None:
    dead(world, 0)
    dead(world, 1)
    assert sum(group["count"] for group in send("GET", "/dead-letters", query=query).data["items"]) == counted


@pytest.mark.parametrize("path", ["/dead-letters", f"/dead-letters/{NO_FINGERPRINT}/jobs"])
@pytest.mark.parametrize("query", [{"task": "x"}, {"colour": "red"}, {"from": render(NOW), "to": render(NOW)}, {"from": "yesterday"}])
def test_invalid_filters_are_refused(world: World, path: str, query: dict[str, str]) -> None:
    assert send("GET", path, query=query).status == 400


def test_a_text_that_is_no_fingerprint_is_not_found(world: World) -> None:
    assert send("GET", "/dead-letters/xyz/jobs").status == 404


def test_a_redrive_is_started_polled_and_completed(world: World) -> None:
    for number in range(5):
        dead(world, number)
    answered = send("POST", "/dead-letters/redrive", json_body={"type": "http", "to": render(NOW - 56_000), "rate": 1_000})
    made = shown(answered)
    assert (answered.status, answered.headers["Location"]) == (202, f"/api/v1/dead-letters/redrives/{made['id']}")
    assert (made["status"], made["matched"], made["rate"], made["limit"], len(world.work.queued)) == ("running", 0, 1_000, None, 1)
    assert made["filter"] == {"task": None, "type": "http", "fingerprint": None, "from": None, "to": render(NOW - 56_000)}
    work_off(world)
    done = shown(send("GET", f"/dead-letters/redrives/{made['id']}"))
    assert (done["status"], done["matched"], done["redriven"], done["skipped"]) == ("done", 4, 4, 0)
    assert done["ended_at"] is not None
    assert send("POST", f"/dead-letters/redrives/{made['id']}/abort").status == 409


def test_aborting_a_redrive_twice_succeeds(world: World) -> None:
    job = dead(world)
    made = shown(send("POST", "/dead-letters/redrive", json_body={"fingerprint": job.fingerprint}))
    for _ in range(2):
        assert shown(send("POST", f"/dead-letters/redrives/{made['id']}/abort"))["status"] == "aborted"
    work_off(world)
    assert world.jobs.get(job.key) == job


@pytest.mark.parametrize(("method", "end"), [("GET", ""), ("POST", "/abort")])
def test_an_unknown_or_another_users_redrive_is_not_found(world: World, method: str, end: str) -> None:
    made = shown(send("POST", "/dead-letters/redrive", json_body={"all": True}))
    assert send(method, f"/dead-letters/redrives/{made['id']}{end}", user="sub-eve").status == 404
    assert send(method, f"/dead-letters/redrives/nonsense{end}").status == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rate": 0, "all": True}, "rate"),
        ({"rate": 1_001, "all": True}, "rate"),
        ({"limit": 0, "all": True}, "limit"),
        ({"fingerprint": "XYZ"}, "fingerprint"),
        ({"task": "x"}, "task"),
        ({"from": "yesterday"}, "from"),
        ({"since": render(NOW), "all": True}, "since"),
        ({"from": render(NOW), "to": render(NOW)}, "to"),
        ({}, "all"),
        ({"rate": 5, "limit": 5}, "all"),
        ({"type": None}, "all"),
        ({"all": False}, "all"),
        ({"all": 1}, "all"),
        ({"all": True, "type": "log"}, "all"),
        ({"colour": "red", "all": True}, "colour"),
    ],
)
def test_invalid_redrives_are_refused_field_by_field(world: World, body: dict[str, Any], field: str) -> None:
    answered = send("POST", "/dead-letters/redrive", json_body=body)
    assert answered.status == 400 and list(answered.fields) == [field]
    assert world.operations.running() == []
