"""Reports of workers, with the token of their attempt and no other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scheduler.callbacks.reports import Addresses
from scheduler.model import lifecycle
from scheduler.model.errors import Unavailable
from scheduler.model.instants import render
from scheduler.model.job import Claim, Job, JobKey, Result, Status
from scheduler.model.spec import CallBack
from scheduler.storage.memory.stores import MemorySecrets
from scheduler.targets.base import Reach
from tests.conftest import a_job
from tests.lambdas.gateway import NOW, Answered, World, send
from tests.unit.fake_calls import QUEUE

LEASE = 60_000
VERBS = ("heartbeat", "complete", "fail")
BODIES: dict[str, Any] = {"heartbeat": {}, "complete": {"output": "42 rows"}, "fail": {"message": "no"}}


def accepted(world: World, **fields: Any) -> Job:
    claim = Claim("m1", "n1", NOW - 500, True)
    job = a_job(owner="sub-ann", due_at=NOW - 500, callback=CallBack(LEASE, 600_000), claim=claim, **fields)
    answer = Result("queued", {"status": 202, "headers": {}, "body": ""})
    until = NOW + LEASE
    job = lifecycle.accept(job, started_at=NOW - 500, result=answer, lease_until=until, slot="2026-11-20T10:05#00")
    world.jobs.put(job)
    return job


def token(job: Job, *, key: bytes = b"key", at: int = NOW) -> str:
    return Addresses("", MemorySecrets(signing=[key])).of(job, at).token


def report(job: Job, verb: str, body: Any = None, *, bearer: str | None = None, job_id: str | None = None) -> Answered:
    """Report as a worker does, without signing in."""
    headers = {"Authorization": f"Bearer {token(job) if bearer is None else bearer}"}
    chosen = BODIES[verb] if body is None else body
    return send("POST", f"/jobs/{job_id or job.id}/{verb}", json_body=chosen, user=None, headers=headers)


def shown(job: Job) -> Any:
    return send("GET", f"/jobs/{job.id}").data


def test_a_heartbeat_extends_the_lease_and_its_progress_is_shown(world: World) -> None:
    job = accepted(world)
    assert (shown(job)["lease_until"], shown(job)["progress"], shown(job)["heartbeat_at"]) == (render(NOW + LEASE), None, None)
    world.clock.advance(20_000)
    answered = report(job, "heartbeat", {"progress": 0.4, "message": "page 4 of 10"})
    assert (answered.status, answered.data) == (200, {"lease_until": render(NOW + 20_000 + LEASE), "cancel_requested": False})
    told = shown(job)
    assert (told["status"], told["progress"]) == ("running", {"fraction": 0.4, "message": "page 4 of 10"})
    assert (told["heartbeat_at"], told["lease_until"]) == (render(NOW + 20_000), render(NOW + 20_000 + LEASE))
    assert told["callback"] == {"lease_seconds": 60, "max_seconds": 600}
    assert (told["started_at"], told["start_delay_ms"]) == (render(NOW - 500), 0)


@pytest.mark.parametrize("headers", [{"a\r\nb": "c"}, {"a": "b\r\nc: d"}, {"": "c"}, {"a b": "c"}, {"a": "\0"}])
def test_reported_headers_are_headers(world: World, headers: dict[str, str]) -> None:
    job = accepted(world)
    refused = report(job, "complete", {"response": {"status": 200, "headers": headers}})
    assert refused.status == 400 and all(field.startswith("response.headers.") for field in refused.fields), refused.text
    assert report(job, "complete", {"response": {"status": 200, "headers": {"X-Rows": "42 \t ü"}}}).status == 200


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("body", ['{"nope": 1}', "[]", "no JSON", '{"message": ""}', "{" * 5_000])
def test_a_report_without_a_valid_token_learns_nothing_about_reports(world: World, verb: str, body: str) -> None:
    job = accepted(world)
    for headers in ({}, {"authorization": f"Bearer {token(job)[:-1]}"}):
        assert send("POST", f"/jobs/{job.id}/{verb}", body=body, user=None, headers=headers).status == 401
    assert send("POST", f"/jobs/{job.id}/{verb}", body=body, user=None, headers={"authorization": f"Bearer {token(job)}"}).status == 400


def test_a_heartbeat_needs_no_body(world: World) -> None:
    job = accepted(world)
    headers = {"authorization": f"bearer {token(job)}"}
    assert send("POST", f"/jobs/{job.id}/heartbeat", user=None, headers=headers).status == 200


def test_a_heartbeat_reports_a_cancel_request(world: World) -> None:
    job = accepted(world)
    assert send("POST", f"/jobs/{job.id}/cancel").data["cancel_requested_at"] == render(NOW)
    assert report(job, "heartbeat").data == {"lease_until": render(NOW + 30_000), "cancel_requested": True}


def test_a_completed_job_succeeds_and_a_repeat_is_answered_alike(world: World) -> None:
    job = accepted(world)
    first = report(job, "complete", {"output": {"rows": 42}})
    assert (first.status, first.data) == (200, {"id": job.id, "status": "succeeded"})
    world.clock.advance(5_000)
    assert report(job, "complete", {"output": {"rows": 42}}).data == first.data
    told = shown(job)
    assert (told["status"], told["output"], told["response"]["status"]) == ("succeeded", '{"rows": 42}', 202)
    assert told["completed_at"] == render(NOW) and len(told["attempts"]) == 1 and told["lease_until"] is None


def test_a_workers_response_replaces_the_targets_and_long_output_is_cut(world: World) -> None:
    job = accepted(world)
    report(job, "complete", {"output": "x" * 5_000, "response": {"status": 200, "headers": {"a": "b"}, "body": "done"}})
    told = shown(job)
    assert (len(told["output"]), told["response"]) == (4_096, {"status": 200, "headers": {"a": "b"}, "body": "done"})


def test_a_failure_is_retried_by_the_rules_of_the_job(world: World) -> None:
    job = accepted(world)
    answered = report(job, "fail", {"message": "disk full", "retry_after_seconds": 600})
    assert (answered.status, answered.data["status"]) == (200, "scheduled")
    told = shown(job)
    assert (told["due_at"], told["lane"]) == (render(NOW + 600_000), "retry")
    assert told["attempts"][0]["failure"] == {"kind": "retryable", "message": "disk full", "retry_after_seconds": 600}
    assert report(job, "fail", {"message": "disk full", "retry_after_seconds": 600}).status == 200


def test_a_permanent_failure_ends_the_job(world: World) -> None:
    assert report(accepted(world), "fail", {"message": "no", "kind": "permanent"}).data["status"] == "failed"


# Access


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda job: "",
        lambda job: "nonsense",
        lambda job: token(job)[:-2],
        lambda job: token(job, key=b"another"),
        lambda job: token(job, at=NOW - 3_600_000),
        lambda job: token(a_job(owner="sub-ann", callback=CallBack())),
    ],
    ids=["none", "nonsense", "cut", "of a foreign key", "expired", "of another job"],
)
def test_a_report_without_a_valid_token_changes_nothing(world: World, verb: str, wrong: Callable[[Job], str]) -> None:
    job = accepted(world)
    answered = report(job, verb, bearer=wrong(job))
    assert (answered.status, answered.error["code"]) == (401, "unauthorized")
    assert world.jobs.get(job.key) == job


@pytest.mark.parametrize("verb", VERBS)
def test_a_token_reaches_only_its_owners_job_of_that_id(world: World, verb: str) -> None:
    job = accepted(world)
    answered = report(replace(job, owner="sub-bob"), verb)
    assert (answered.status, answered.error["code"]) == (404, "not_found") and world.jobs.get(job.key) == job


@pytest.mark.parametrize("verb", VERBS)
def test_the_token_of_an_ended_attempt_is_refused(world: World, verb: str) -> None:
    job = accepted(world)
    after = lifecycle.take_back(job, NOW, slot="2026-11-20T10:05#00")
    world.jobs.rows[job.key] = after
    answered = report(job, verb)
    assert answered.status == 409 and "attempt has ended" in answered.error["message"]
    assert world.jobs.get(job.key) == after


def test_a_failure_of_a_cancelled_job_may_be_reported_again(world: World) -> None:
    job = accepted(world)
    ended = lifecycle.cancel(job, NOW, reason="asked for", started_at=NOW)
    world.jobs.rows[job.key] = ended
    answered = report(job, "fail")
    assert answered.status == 200 and answered.data["status"] == "cancelled"
    assert world.jobs.get(job.key) == ended


@pytest.mark.parametrize("verb", sorted({*VERBS} - {"fail"}))
def test_a_report_on_a_job_that_has_ended_otherwise_is_a_conflict(world: World, verb: str) -> None:
    job = accepted(world)
    ended = lifecycle.cancel(job, NOW, reason="asked for", started_at=NOW)
    world.jobs.rows[job.key] = ended
    answered = report(job, verb)
    assert answered.status == 409 and answered.error["message"] == "the job has already ended: cancelled"
    assert world.jobs.get(job.key) == ended


def test_the_token_of_a_user_is_no_token_for_reports(world: World) -> None:
    job = accepted(world)
    assert send("POST", f"/jobs/{job.id}/complete", json_body={}).status == 401
    assert lifecycle.state(world.jobs.rows[job.key]) is Status.RUNNING


def test_reports_are_a_503_while_the_signing_keys_are_unreadable(world: World) -> None:
    job = accepted(world)

    class Refusing:
        def keys(self, now: int, *, newest: bool = False) -> list[bytes]:
            raise Unavailable

    world.secrets = Refusing()
    assert report(job, "complete").status == 503


# Validation


@pytest.mark.parametrize(
    ("verb", "body", "fields"),
    [
        ("heartbeat", {"progress": 1.1}, {"progress": "must be at most 1"}),
        ("heartbeat", {"progress": -0.1}, {"progress": "must be at least 0"}),
        ("heartbeat", {"progress": "half"}, {"progress": "must be a number"}),
        ("heartbeat", {"message": "x" * 201}, {"message": "must have at most 200 characters"}),
        ("heartbeat", {"message": ""}, {"message": "must not be empty"}),
        ("heartbeat", {"state": 1}, {"state": "is not a known field"}),
        ("complete", {"result": 1}, {"result": "is not a known field"}),
        ("complete", {"response": {"status": 99}}, {"response.status": "must be at least 100"}),
        ("complete", {"response": {}}, {"response.status": "is required"}),
        ("complete", {"response": {"status": 200, "headers": {"a": 1}}}, {"response.headers.a": "must be a string"}),
        ("complete", {"response": {"status": 200, "body": "x" * 4_097}}, {"response.body": "must have at most 4096 characters"}),
        ("fail", {}, {"message": "is required"}),
        ("fail", {"message": ""}, {"message": "must not be empty"}),
        ("fail", {"message": "x" * 1_001}, {"message": "must have at most 1000 characters"}),
        ("fail", {"message": "no", "kind": "throttled"}, {"kind": "must be one of 'retryable' or 'permanent'"}),
        ("fail", {"message": "no", "retry_after_seconds": 3_601}, {"retry_after_seconds": "must be at most 3600"}),
    ],
)
def test_invalid_reports_are_refused_field_by_field(world: World, verb: str, body: Any, fields: dict[str, str]) -> None:
    job = accepted(world)
    answered = report(job, verb, body)
    assert (answered.status, answered.fields) == (400, fields)
    assert world.jobs.get(job.key) == job


# Jobs with call-backs

HTTP = {"type": "http", "payload": {"url": "https://example.com"}}


def test_a_job_has_a_call_back_policy_only_if_posted_with_one(world: World) -> None:
    assert send("POST", "/jobs", json_body=HTTP).data["callback"] is None
    made = send("POST", "/jobs", json_body=HTTP | {"callback": {}}).data
    assert made["callback"] == {"lease_seconds": 300, "max_seconds": 86_400}
    assert world.jobs.rows[JobKey("sub-ann", made["id"])].spec.callback == CallBack()
    chosen = {"lease_seconds": 10, "max_seconds": 30 * 86_400}
    (done,) = send("POST", "/jobs/batch", json_body={"jobs": [HTTP | {"callback": chosen}]}).data["results"]
    assert send("GET", f"/jobs/{done['job']['id']}").data["callback"] == chosen


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (HTTP | {"callback": True}, {"callback": "must be an object"}),
        (HTTP | {"callback": {"lease_seconds": 9}}, {"callback.lease_seconds": "must be at least 10"}),
        (HTTP | {"callback": {"lease_seconds": 86_401}}, {"callback.lease_seconds": "must be at most 86400"}),
        (HTTP | {"callback": {"max_seconds": 30 * 86_400 + 1}}, {"callback.max_seconds": "must be at most 2592000"}),
        (HTTP | {"callback": {"max_seconds": 299}}, {"callback.max_seconds": "must be at least lease_seconds; it is 300"}),
        (HTTP | {"callback": {"every": 5}}, {"callback.every": "is not a known field"}),
        ({"message": "m", "callback": {}}, {"callback": "is not possible for type log: its jobs have no worker"}),
        (
            {"type": "sqs", "payload": {"queue": QUEUE, "body": "b", "attributes": {f"a{n}": "x" for n in range(7)}}, "callback": {}},
            {"callback": "requires at most 6 attributes in the payload: two more carry the call-back address"},
        ),
        (
            {"type": "http", "payload": {"url": "https://example.com", "headers": {"punctual-callback-token": "x"}}},
            {"payload.headers.punctual-callback-token": "is set by the scheduler and cannot be given"},
        ),
    ],
)
def test_an_impossible_or_too_long_call_back_is_refused(world: World, body: Any, fields: dict[str, str]) -> None:
    world.reach = Reach((QUEUE,))
    answered = send("POST", "/jobs", json_body=body)
    assert (answered.status, answered.fields) == (400, fields) and not world.jobs.rows


def test_the_headers_of_a_reported_response_are_cut(world: World) -> None:
    job = accepted(world)
    headers = {f"name-{number:02d}": "v" * 2_000 for number in range(50)}
    assert report(job, "complete", {"response": {"status": 200, "headers": headers, "body": "done"}}).status == 200
    assert shown(job)["response"] == {"status": 200, "headers": dict(list(headers.items())[:2]), "body": "done"}
