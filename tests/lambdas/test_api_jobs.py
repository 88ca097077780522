"""Posting, reading, listing and cancelling jobs over HTTP."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lambdas._settings import Settings
from lambdas.rest import job_answers, models, shapes
from scheduler.model import ids, lifecycle, paging
from scheduler.model.instants import DAY, render
from scheduler.model.job import Attempt, Claim, Failure, FailureKind, Job, JobKey, Lane, Misfire, Outcome, Overlap, Result, RunInfo
from scheduler.model.spec import Jitter, JobSpec, RetryPolicy
from tests.conftest import with_spec
from tests.lambdas.gateway import NOW, TOO_LONG, World, send

pytestmark = pytest.mark.usefixtures("world")


def stored(world: World, at: int = NOW, *, owner: str = "sub-ann", number: int = 0, **changes: Any) -> Job:
    """A scheduled job of ann in the table."""
    job = Job(
        owner=owner,
        id=ids.new(at, number),
        spec=JobSpec("log", {"message": f"at {at}"}),
        scheduled_at=at,
        due_at=at,
        created_at=min(at, NOW),
        slot="2026-11-20T10:09#07",
    )
    job = replace(job, **with_spec(changes, job.spec))
    world.jobs.put(job)
    return job


def claimed(job: Job, at: int) -> Job:
    return lifecycle.claim(job, claim=Claim("message", "nonce", at, True))


def succeeded(job: Job) -> Job:
    result = Result(output="done", response={"status": 200, "headers": {"a": "b"}, "body": "x"})
    return lifecycle.succeed(claimed(job, job.due_at), job.due_at + 40, started_at=job.due_at + 3, result=result)


def failed(job: Job) -> Job:
    result = Result(failure=Failure(FailureKind.PERMANENT, "HTTP 404"))
    return lifecycle.fail(claimed(job, job.due_at), job.due_at + 40, started_at=job.due_at, result=result)


# Post


def test_a_posted_job_is_stored_for_its_owner_and_returned(world: World) -> None:
    answered = send("POST", "/jobs", json_body={"execute_at": "2026-11-21T11:00:00.25+01:00", "message": "hello"})
    job = answered.data
    assert answered.status == 201
    assert answered.headers["Location"] == f"/api/v1/jobs/{job['id']}"
    assert (job["type"], job["payload"], job["status"], job["lane"]) == ("log", {"message": "hello"}, "scheduled", "one-time")
    assert (job["scheduled_at"], job["due_at"], job["created_at"]) == ("2026-11-21T10:00:00.250Z",) * 2 + ("2026-11-20T10:00:00.500Z",)
    assert (job["late"], job["max_attempts"], job["timeout_seconds"], job["attempts"]) == (False, 3, 300, [])
    kept = world.jobs.get(JobKey("sub-ann", job["id"]))
    assert kept is not None and kept.slot is not None and job["shard_id"] == int(kept.slot[-2:])
    assert send("GET", f"/jobs/{job['id']}").data == job


def test_a_job_without_a_time_is_due_now_and_enqueued(world: World) -> None:
    job = send("POST", "/jobs", json_body={"message": "now"}).data
    assert (job["scheduled_at"], job["status"], job["late"]) == ("2026-11-20T10:00:00.500Z", "queued", False)
    assert [queued.message.key.id for queued in world.lanes.queues[Lane.ONE_TIME].values()] == [job["id"]]


def test_a_job_for_the_past_is_due_now_and_marked_late(world: World) -> None:
    job = send("POST", "/jobs", json_body={"execute_at": render(NOW - 60_000), "message": "m"}).data
    assert (job["scheduled_at"], job["due_at"], job["late"]) == (render(NOW - 60_000), render(NOW), True)


def test_fractions_finer_than_a_millisecond_round_up() -> None:
    job = send("POST", "/jobs", json_body={"execute_at": "2026-11-21T10:00:00.0000001Z", "message": "m"}).data
    assert job["scheduled_at"] == "2026-11-21T10:00:00.001Z"


def test_an_http_job_keeps_its_payload_unchanged() -> None:
    payload = {"url": "https://example.com/x", "method": "POST", "body": {"n": [1, 2.5, None, "é"]}}
    body = {"type": "http", "payload": payload, "max_attempts": 25, "timeout_seconds": 840}
    job = send("POST", "/jobs", json_body=body).data
    assert (job["type"], job["payload"], job["max_attempts"], job["timeout_seconds"]) == ("http", payload, 25, 840)


USUAL = {"base_seconds": 1, "cap_seconds": 900, "jitter": "full", "max_elapsed_seconds": None, "on_timeout": True}
CHOSEN = {"base_seconds": 0.5, "cap_seconds": 60, "jitter": "equal", "max_elapsed_seconds": 7_200, "on_timeout": False}


def test_a_retry_policy_is_shown_in_full_and_may_be_posted_again(world: World) -> None:
    assert send("POST", "/jobs", json_body={"message": "m"}).data["retry"] == USUAL
    assert send("POST", "/jobs", json_body={"message": "m", "retry": None}).data["retry"] == USUAL
    assert send("POST", "/jobs", json_body={"message": "m", "retry": {"jitter": "none"}}).data["retry"] == USUAL | {"jitter": "none"}
    for policy in (USUAL, CHOSEN):
        job = send("POST", "/jobs", json_body={"message": "m", "retry": policy}).data
        assert job["retry"] == policy == send("GET", f"/jobs/{job['id']}").data["retry"]
        shapes.Answer[job_answers.JobShape].model_validate(send("GET", f"/jobs/{job['id']}").body)
    assert world.jobs.get(JobKey("sub-ann", job["id"])).spec.retry == RetryPolicy(500, 60_000, Jitter.EQUAL, 7_200_000, False)


def test_the_documents_list_fields_and_defaults_of_a_retry_policy() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs/reference"
    assert json.dumps(USUAL) in (docs / "jobs.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|[^|]*\|$", (docs / "retries.md").read_text(), re.MULTILINE)
    told = {name: bounds.strip() for name, bounds in rows if name in USUAL}
    fields = models.RetryRequest.model_json_schema()["properties"]
    for name, schema in fields.items():
        limits = next((each for each in schema.get("anyOf", [schema]) if "minimum" in each), None)
        assert told.pop(name) == ("" if limits is None else f"{limits['minimum']:g}–{int(limits['maximum']):,}")
    assert not told


def test_an_attempt_shows_the_retry_after_of_its_target(world: World) -> None:
    posted = send("POST", "/jobs", json_body={"message": "m"}).data
    stored = world.jobs.get(JobKey("sub-ann", posted["id"]))
    failed = Attempt(1, NOW, NOW, NOW + 5, Outcome.FAILED, Failure(FailureKind.THROTTLED, "HTTP 429", 7_000))
    world.jobs.rows[stored.key] = replace(stored, attempts=(failed,))
    answered = send("GET", f"/jobs/{posted['id']}")
    shapes.Answer[job_answers.JobShape].model_validate(answered.body)
    assert answered.data["attempts"][0]["failure"] == {"kind": "throttled", "message": "HTTP 429", "retry_after_seconds": 7}


def test_tags_are_stored_unchanged(world: World) -> None:
    tags = ["b", "env:prod", "Team_1/a.b-c", "x" * 32]
    job = send("POST", "/jobs", json_body={"message": "m", "tags": tags}).data
    assert job["tags"] == tags and world.jobs.rows[JobKey("sub-ann", job["id"])].spec.tags == tuple(tags)


@pytest.mark.parametrize(("shift", "status"), [(-DAY, 201), (-DAY - 1, 400), (3_653 * DAY, 201), (3_653 * DAY + 1, 400)])
def test_a_start_is_at_most_a_day_past_and_ten_years_ahead(world: World, shift: int, status: int) -> None:
    answered = send("POST", "/jobs", json_body={"execute_at": render(NOW + shift), "message": "m"})
    assert answered.status == status
    if status == 400:
        assert "execute_at" in answered.fields and not world.jobs.rows


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"type": "give exactly one of: message alone; type with its payload; target with its payload"}),
        (
            {"message": "m", "type": "log", "payload": {"message": "m"}},
            {"type": "give exactly one of: message alone; type with its payload; target with its payload"},
        ),
        ({"message": "m", "payload": {}}, {"payload": "requires type or target instead of message"}),
        ({"message": ""}, {"message": "must not be empty"}),
        ({"message": 5}, {"message": "must be a string"}),
        (
            {"type": "lamda"},
            {"type": "there is no such type; known types: aws, ecs, email, eventbridge, http, lambda, log, sns, sqs, stepfunctions"},
        ),
        ({"type": "log"}, {"payload.message": "is required"}),
        ({"type": "log", "payload": [1]}, {"payload": "must be an object"}),
        ({"type": "log", "payload": {"message": "m", "sleep_seconds": 601}}, {"payload.sleep_seconds": "must be at most 600"}),
        ({"type": "log", "payload": {"message": "m", "sleep_seconds": "3"}}, {"payload.sleep_seconds": "must be a number"}),
        (
            {"message": "m", "prio": 1, "when": 2},
            {"prio": "is not a known field", "when": "is not a known field; did you mean execute_at?"},
        ),
        ({"message": "m", "max_attempts": 0}, {"max_attempts": "must be at least 1"}),
        ({"message": "m", "timeout_seconds": 841}, {"timeout_seconds": TOO_LONG}),
        (
            {"type": "http", "payload": {"url": "https://example.com", "timeout_seconds": 0.05}},
            {"payload.timeout_seconds": "must be at least 0.1"},
        ),
        ({"message": "m", "max_attempts": "3"}, {"max_attempts": "must be a whole number"}),
        ({"message": "m", "max_attempts": True}, {"max_attempts": "must be a whole number"}),
        ({"message": "m", "timeout_seconds": 1.5}, {"timeout_seconds": "must be a whole number"}),
        ({"message": "m", "retry": 3}, {"retry": "must be an object"}),
        ({"message": "m", "retry": {"base_seconds": 0.05}}, {"retry.base_seconds": "must be at least 0.1"}),
        ({"message": "m", "retry": {"base_seconds": "1"}}, {"retry.base_seconds": "must be a number"}),
        ({"message": "m", "retry": {"base_seconds": 901}}, {"retry.cap_seconds": "must be at least base_seconds; it is 900"}),
        ({"message": "m", "retry": {"base_seconds": 9, "cap_seconds": 8}}, {"retry.cap_seconds": "must be at least base_seconds; it is 8"}),
        ({"message": "m", "retry": {"cap_seconds": 86_401}}, {"retry.cap_seconds": "must be at most 86400"}),
        ({"message": "m", "retry": {"jitter": "some"}}, {"retry.jitter": "must be one of 'full', 'equal' or 'none'"}),
        ({"message": "m", "retry": {"max_elapsed_seconds": 0}}, {"retry.max_elapsed_seconds": "must be at least 1"}),
        (
            {"message": "m", "retry": {"on_timeout": 1}},
            {"retry.on_timeout": "must be true or false"},
        ),
        ({"message": "m", "tags": "a"}, {"tags": "must be a list"}),
        ({"message": "m", "tags": ["a", "b", "a"]}, {"tags": "names a twice"}),
        ({"message": "m", "tags": [str(number) for number in range(11)]}, {"tags": "must have at most 10 entries"}),
        ({"message": "m", "tags": ["a", "b c"]}, {"tags.1": "must be 1 to 32 letters, digits or any of - _ . : /"}),
        ({"message": "m", "tags": [""]}, {"tags.0": "must be 1 to 32 letters, digits or any of - _ . : /"}),
        ({"message": "m", "tags": ["a" * 33]}, {"tags.0": "must be 1 to 32 letters, digits or any of - _ . : /"}),
        ({"message": "m", "tags": [1]}, {"tags.0": "must be a string"}),
    ],
)
def test_invalid_jobs_are_refused_field_by_field(world: World, body: dict[str, Any], fields: dict[str, str]) -> None:
    answered = send("POST", "/jobs", json_body=body)
    assert (answered.status, answered.error["code"]) == (400, "validation_failed")
    assert answered.fields == fields
    assert all(field in answered.error["message"] for field in fields)
    assert not world.jobs.rows


def test_one_answer_lists_all_violations_also_in_the_payload() -> None:
    payload = {"url": "ftp://a", "method": "get", "headers": {"Host": "b"}, "colour": "red"}
    body = {"execute_at": "tomorrow", "type": "http", "payload": payload, "max_attempts": 99, "colour": "blue"}
    fields = set(send("POST", "/jobs", json_body=body).fields)
    assert fields == {"execute_at", "payload.url", "payload.method", "payload.headers.Host", "payload.colour", "max_attempts", "colour"}


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20T10:00:00",
        "2026-11-20",
        "10:00",
        "",
        "now",
        "2026-11-20T10:00Z",
        "2026-02-30T10:00:00Z",
        "2026-11-20T24:00:00Z",
        "2026-11-20 10:00:00Z",
        "2026-11-20T10:00:00+25:00",
        "0000-01-01T00:00:00Z",
        "٢٠٢٦-11-20T10:00:00Z",
        1795168800,
        True,
        ["x"],
    ],
)
def test_a_start_must_be_rfc_3339_with_an_offset(text: Any) -> None:
    answered = send("POST", "/jobs", json_body={"execute_at": text, "message": "m"})
    assert answered.status == 400 and "RFC 3339 instant with an offset" in answered.fields["execute_at"]


# Read


def test_a_finished_job_shows_its_times_attempts_output_and_response(world: World) -> None:
    job = stored(world, NOW - 5_000)
    world.jobs.rows[job.key] = succeeded(job)
    shown = send("GET", f"/jobs/{job.id}").data
    picked, started, ended = (render(NOW - 5_000 + shift) for shift in (0, 3, 40))
    assert (shown["status"], shown["shard_id"], shown["output"]) == ("succeeded", None, "done")
    assert (shown["picked_at"], shown["started_at"], shown["completed_at"], shown["failed_at"]) == (picked, started, ended, None)
    assert (shown["start_delay_ms"], shown["response"]) == (3, {"status": 200, "headers": {"a": "b"}, "body": "x"})
    expected = {"number": 1, "picked_at": picked, "started_at": started, "ended_at": ended, "outcome": "succeeded", "failure": None}
    assert shown["attempts"] == [expected | {"output": "done", "log": None, "output_kept": "whole"}]


def test_a_job_shows_that_its_messages_reached_a_dead_letter_queue(world: World) -> None:
    job = stored(world, NOW - 5_000)
    world.jobs.rows[job.key] = replace(job, buried=2)
    assert "reached the dead-letter queue 2 times" in send("GET", f"/jobs/{job.id}").data["reason"]
    world.jobs.rows[job.key] = replace(job, buried=2, reason="its lane is paused")
    assert send("GET", f"/jobs/{job.id}").data["reason"] == "its lane is paused"


def test_a_claimed_job_shows_its_start_only_once_it_is_due(world: World) -> None:
    job = stored(world, NOW + 1_000)
    world.jobs.rows[job.key] = claimed(job, NOW - 500)
    held = send("GET", f"/jobs/{job.id}").data
    assert (held["status"], held["picked_at"], held["started_at"]) == ("queued", render(NOW - 500), None)
    world.clock.at = NOW + 1_500
    running = send("GET", f"/jobs/{job.id}").data
    assert (running["status"], running["started_at"], running["start_delay_ms"]) == ("running", render(NOW + 1_000), 0)


OF_NO_TASK = dict.fromkeys(["task_id", "generation", "nominal_at", "overlap", "misfire"])


def test_a_job_without_a_task_shows_its_expiry_and_no_task_fields(world: World) -> None:
    plain, expiring = stored(world, NOW + DAY), stored(world, NOW + DAY, number=1, start_by=NOW + 2 * DAY)
    shown = send("GET", f"/jobs/{plain.id}").data
    assert {name: shown[name] for name in OF_NO_TASK} == OF_NO_TASK and (shown["expires_at"], shown["tags"]) == (None, [])
    assert send("GET", f"/jobs/{expiring.id}").data["expires_at"] == render(NOW + 2 * DAY)


def test_a_run_shows_the_fields_of_its_task(world: World) -> None:
    origin = RunInfo(ids.new(NOW, 7), 3, NOW + DAY - 5, Overlap.SKIP, Misfire.RUN_LATEST)
    run = stored(world, NOW + DAY, origin=origin, start_by=NOW + 2 * DAY, lane=Lane.RECURRING, tags=("a",))
    shown = send("GET", f"/jobs/{run.id}").data
    assert {name: shown[name] for name in OF_NO_TASK} == {
        "task_id": origin.task,
        "generation": 3,
        "nominal_at": render(NOW + DAY - 5),
        "overlap": "skip",
        "misfire": "run_latest",
    }
    assert (shown["expires_at"], shown["tags"], shown["lane"]) == (None, ["a"], "recurring")  # its misfire rule is no expiry


def test_a_run_by_hand_has_no_nominal_time_and_no_misfire_rule(world: World) -> None:
    shown = send("GET", f"/jobs/{stored(world, origin=RunInfo('T', 1)).id}").data
    assert (shown["nominal_at"], shown["misfire"], shown["overlap"]) == (None, None, "allow")


@pytest.mark.parametrize("method", ["get", "cancel"])
@pytest.mark.parametrize("job_id", [ids.new(NOW, 5), "nonsense", "0" * 26, "é", "..", "x" * 300])
def test_an_unknown_job_and_a_malformed_id_get_the_same_answer(method: str, job_id: str) -> None:
    answered = send("GET", f"/jobs/{job_id}") if method == "get" else send("POST", f"/jobs/{job_id}/cancel")
    assert (answered.status, answered.error["code"], answered.error["message"]) == (404, "not_found", "there is no such job")


def test_another_users_job_is_answered_like_an_unknown_one(world: World) -> None:
    job = stored(world, NOW + DAY, owner="sub-bob")
    unknown = ids.new(NOW + DAY, 99)
    assert send("GET", f"/jobs/{job.id}").text == send("GET", f"/jobs/{unknown}").text
    assert send("POST", f"/jobs/{job.id}/cancel").text == send("POST", f"/jobs/{unknown}/cancel").text
    assert world.jobs.get(job.key) == job
    assert send("GET", "/jobs", query={"upcoming": "true"}).data["items"] == []
    assert send("GET", f"/jobs/{job.id}", user="sub-bob").status == 200


# Cancel


def test_a_waiting_job_is_cancelled_at_once_and_repeats_are_no_error(world: World) -> None:
    job = stored(world, NOW + DAY)
    first, second = (send("POST", f"/jobs/{job.id}/cancel") for _ in range(2))
    assert (first.status, first.data["status"], first.data["cancelled_at"]) == (200, "cancelled", render(NOW))
    assert second.data == first.data


def test_cancelling_a_running_job_requests_its_stop(world: World) -> None:
    job = stored(world, NOW - 1_000)
    world.jobs.rows[job.key] = claimed(job, NOW - 1_000)
    shown = send("POST", f"/jobs/{job.id}/cancel").data
    assert (shown["status"], shown["cancel_requested_at"]) == ("running", render(NOW))


def test_a_finished_job_cannot_be_cancelled(world: World) -> None:
    job = stored(world, NOW - 1_000)
    world.jobs.rows[job.key] = succeeded(job)
    answered = send("POST", f"/jobs/{job.id}/cancel")
    assert (answered.status, answered.error["code"]) == (409, "conflict")


# List


def listed(**query: str) -> list[str]:
    return [job["payload"]["message"] for job in send("GET", "/jobs", query=query).data["items"]]


def test_lists_are_newest_first_and_upcoming_lists_soonest_first(world: World) -> None:
    for shift in (-2, -1, 0, 1, 2):
        stored(world, NOW + shift)
    assert listed() == [f"at {NOW + shift}" for shift in (0, -1, -2)]
    assert listed(upcoming="true") == [f"at {NOW + shift}" for shift in (1, 2)]


def test_pages_follow_the_cursor_without_gaps(world: World) -> None:
    for number in range(45):
        stored(world, NOW - number, number=number)
    seen, query = [], {"limit": "20"}
    for expected in (20, 20, 5):
        page = send("GET", "/jobs", query=query).data
        assert len(page["items"]) == expected
        seen += [job["id"] for job in page["items"]]
        query = {"limit": "20", "cursor": page["cursor"]}
    assert page["cursor"] is None
    assert len(set(seen)) == 45 and seen == sorted(seen, reverse=True)


def test_a_time_range_includes_its_start_and_not_its_end(world: World) -> None:
    for shift in (-3_000, -2_000, -1_000):
        stored(world, NOW + shift)
    assert listed(**{"from": render(NOW - 3_000), "to": render(NOW - 1_000)}) == [f"at {NOW - 2_000}", f"at {NOW - 3_000}"]
    assert listed(**{"upcoming": "true", "from": render(NOW - DAY)}) == []


def test_an_instant_whose_plus_became_a_space_is_accepted(world: World) -> None:
    stored(world, NOW - 1_000)
    for sign in ("+", " "):
        assert len(listed(**{"from": f"2026-11-20T10:59:59{sign}01:00"})) == 1
        assert len(listed(**{"from": f"2026-11-20T11:00:00{sign}01:00"})) == 0


@pytest.mark.parametrize(("status", "expected"), [("succeeded", 30), ("failed", 2), ("queued", 1), ("cancelled", 0), ("killed", 0)])
def test_the_status_filter_skips_jobs_that_do_not_match(world: World, status: str, expected: int) -> None:
    for number in range(30):
        job = stored(world, NOW - 1_000 - number)
        world.jobs.rows[job.key] = succeeded(job)
    for number in range(2):
        job = stored(world, NOW - 90_000 - number)
        world.jobs.rows[job.key] = failed(job)
    stored(world, NOW - 100_000)
    page = send("GET", "/jobs", query={"status": status, "limit": "100"}).data
    assert len(page["items"]) == expected and {job["status"] for job in page["items"]} <= {status}
    assert page["cursor"] is None


def test_failures_are_found_without_reading_the_successes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = stored(world, NOW - DAY)
    world.jobs.rows[job.key] = failed(job)
    dead = world.jobs.failures("sub-ann", since=None, until=None, after=None, limit=10)
    monkeypatch.setattr(world.jobs, "failures", lambda *args, **kwargs: dead)
    monkeypatch.setattr(world.jobs, "history", lambda *args, **kwargs: pytest.fail("read the history"))
    assert [job["status"] for job in send("GET", "/jobs", query={"status": "failed"}).data["items"]] == ["failed"]


def test_the_type_filter_keeps_the_order_across_pages(world: World) -> None:
    for number in range(10):
        stored(world, NOW - number, type="http" if number % 3 == 0 else "log")
    first = send("GET", "/jobs", query={"type": "http", "limit": "3"}).data
    rest = send("GET", "/jobs", query={"type": "http", "limit": "3", "cursor": first["cursor"]}).data
    messages = [job["payload"]["message"] for job in first["items"] + rest["items"]]
    assert messages == [f"at {NOW - number}" for number in (0, 3, 6, 9)] and rest["cursor"] is None


def test_the_tag_filter_finds_jobs_with_more_tags_too(world: World) -> None:
    for number, tags in enumerate([("a",), ("b",), ("b", "a"), ("ab",), ()]):
        stored(world, NOW - number, tags=tags)
    assert listed(tag="a") == [f"at {NOW}", f"at {NOW - 2}"]
    assert listed(tag="c") == []


TASK, OTHER = ids.new(NOW - DAY, 1), ids.new(NOW - DAY, 2)


def test_the_task_filter_finds_the_runs_of_that_task(world: World) -> None:
    for number, task in enumerate([TASK, OTHER, TASK, None]):
        for at in (NOW - number, NOW + DAY + number):
            stored(world, at, origin=task and RunInfo(task, 1), tags=("a",) if number == 2 else ())
    stored(world, NOW - 9, owner="sub-bob", origin=RunInfo(TASK, 1))
    assert listed(task=TASK) == [f"at {NOW}", f"at {NOW - 2}"]
    assert listed(task=TASK, upcoming="true") == [f"at {NOW + DAY}", f"at {NOW + DAY + 2}"]
    assert listed(task=TASK, tag="a") == [f"at {NOW - 2}"]
    assert listed(task=ids.new(NOW, 3)) == []


def test_the_failures_of_one_task_are_found(world: World) -> None:
    for number, task in enumerate([TASK, OTHER, TASK]):
        job = stored(world, NOW - 1_000 - number, origin=RunInfo(task, 1))
        world.jobs.rows[job.key] = failed(job)
    stored(world, NOW - 2_000, origin=RunInfo(TASK, 1))
    assert listed(task=TASK, status="failed") == [f"at {NOW - 1_000}", f"at {NOW - 1_002}"]


def test_the_cursor_of_a_rescheduled_job_is_its_new_place(world: World) -> None:
    moved = replace(stored(world, NOW - 5_000, number=9), scheduled_at=NOW - 1)
    world.jobs.rows[moved.key] = moved
    for number in (2, 3, 4):
        stored(world, NOW - number, tags=("a",))
    world.jobs.rows[moved.key] = replace(moved, spec=replace(moved.spec, tags=("a",), payload={"message": "moved"}))
    seen, query = [], {"tag": "a", "limit": "1"}
    for _ in range(4):
        page = send("GET", "/jobs", query=query).data
        seen += [job["payload"]["message"] for job in page["items"]]
        query["cursor"] = page["cursor"]
    assert seen == ["moved", *(f"at {NOW - number}" for number in (2, 3, 4))]


def test_a_selective_filter_reads_a_bounded_amount_per_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "CHUNK", 2)
    monkeypatch.setattr(paging, "READS", 3)
    for number in range(8):
        stored(world, NOW - number, type="http" if number == 7 else "log")
    first = send("GET", "/jobs", query={"type": "http"}).data
    assert first["items"] == [] and first["cursor"] is not None
    second = send("GET", "/jobs", query={"type": "http", "cursor": first["cursor"]}).data
    assert len(second["items"]) == 1 and second["cursor"] is None


@pytest.mark.parametrize("message", ["x" * 250_000, '"' * 125_000])
def test_a_page_fits_the_limit_of_lambda(world: World, message: str) -> None:
    for number in range(30):
        stored(world, NOW - number, payload={"message": message})
    pages = [send("GET", "/jobs", query={"limit": "100"})]
    while cursor := pages[-1].data["cursor"]:
        pages.append(send("GET", "/jobs", query={"limit": "100", "cursor": cursor}))
    assert all(len(json.dumps({"body": page.text})) < 6_000_000 and page.data["items"] for page in pages)
    assert 1 < len(pages) < 6 and sum(len(page.data["items"]) for page in pages) == 30


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "é"}, "cursor"),
        ({"cursor": "////"}, "cursor"),
        ({"cursor": ""}, "cursor"),
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "many"}, "limit"),
        *(({"limit": text}, "limit") for text in ("1_0", "5 ", " 5", "+5", "10.0", "1e1", "٣", "-1", "", "1,2", "0x1")),
        ({"status": "dead"}, "status"),
        ({"upcoming": "perhaps"}, "upcoming"),
        ({"from": "yesterday"}, "from"),
        ({"to": "2026-11-20T10:00:00"}, "to"),
        ({"from": "2026-11-20T10:00:00Z", "to": "2026-11-20T10:00:00Z"}, "to"),
        ({"stauts": "failed"}, "stauts"),
        ({"task": "nightly"}, "task"),
        ({"task": ""}, "task"),
    ],
)
def test_invalid_parameters_are_refused_by_name(query: dict[str, str], field: str) -> None:
    answered = send("GET", "/jobs", query=query)
    assert answered.status == 400 and set(answered.fields) == {field}


def test_a_filter_for_scheduled_jobs_alone_lists_those_ahead(world: World) -> None:
    ahead, waiting, done = stored(world, NOW + DAY), stored(world, NOW - 9_000), stored(world, NOW - 8_000)
    world.jobs.rows[waiting.key] = replace(waiting, due_at=NOW + 60_000)  # it waits for a retry
    world.jobs.rows[done.key] = succeeded(done)

    def listed(**query: str) -> list[str]:
        return [job["id"] for job in send("GET", "/jobs", query=query).data["items"]]

    assert listed(status="scheduled") == [ahead.id]
    assert listed(status="scheduled", upcoming="false") == [waiting.id]
    assert listed(status="scheduled,succeeded") == [done.id, waiting.id]
    assert listed(status="succeeded") == [done.id] and listed() == [done.id, waiting.id]


def test_a_repeated_number_is_refused_as_such() -> None:
    assert send("GET", "/jobs", query={"limit": "1,2"}).fields == {"limit": "is given more than once"}


def test_every_answer_has_its_documented_shape(world: World) -> None:
    waiting, done, dead = stored(world, NOW + DAY), stored(world, NOW - 9_000), stored(world, NOW - 8_000)
    world.jobs.rows[done.key], world.jobs.rows[dead.key] = succeeded(done), failed(dead)
    for job in (waiting, done, dead):
        shapes.Answer[job_answers.JobShape].model_validate(send("GET", f"/jobs/{job.id}").body)
    shapes.Answer[job_answers.PageShape].model_validate(send("GET", "/jobs").body)
    shapes.ErrorAnswer.model_validate(send("GET", "/jobs/unknown").body)


def test_an_id_older_than_the_retention_is_answered_with_the_archive(world: World) -> None:
    old, young = ids.new(NOW - 31 * 86_400_000, 1), ids.new(NOW - 86_400_000, 1)
    assert "archive" not in send("GET", f"/jobs/{old}").error["message"], "this stage has none"
    world.settings = Settings(stage="test", archive_database="punctual_test")
    assert send("GET", f"/jobs/{young}").error["message"] == "there is no such job"
    answered = send("GET", f"/jobs/{old}")
    assert answered.status == 404 and "punctual_test.jobs, day = '2026-10-20'" in answered.error["message"]


GUESSES = [
    ("/jobs", {"message": "m", "at": "2026-12-01T08:00:00Z"}, "at", "execute_at"),
    ("/jobs", {"message": "m", "retries": 3}, "retries", "max_attempts"),
    ("/jobs", {"url": "https://example.com"}, "url", "payload.url with type http"),
    ("/jobs", {"http": {"url": "https://example.com"}}, "http", "payload with type http"),
    ("/jobs", {"message": "m", "dealy": "5m"}, "dealy", "delay"),
    ("/jobs", {"message": "m", "retry": {"base_secs": 2}}, "retry.base_secs", "base_seconds"),
    ("/jobs", {"type": "http", "payload": {"uri": "https://example.com"}}, "payload.uri", "url"),
    ("/tasks", {"name": "a", "message": "m", "execute_at": "2026-12-01T08:00:00Z"}, "execute_at", "schedule.at"),
    ("/tasks", {"name": "a", "message": "m", "cron": "@daily"}, "cron", "schedule.cron"),
    ("/tasks", {"name": "a", "message": "m", "schedule": {"cron": "@daily"}, "overlaps": "skip"}, "overlaps", "overlap"),
    ("/tasks", {"name": "a", "message": "m", "schedule": {"cron": "@daily", "timezone": "UTC"}}, "schedule.timezone", "time_zone"),
]


@pytest.mark.parametrize(("path", "body", "field", "meant"), GUESSES)
def test_an_unknown_field_is_answered_with_a_hint(path: str, body: Any, field: str, meant: str) -> None:
    assert send("POST", path, json_body=body).fields[field] == f"is not a known field; did you mean {meant}?"


def test_an_unknown_field_of_an_item_is_answered_with_a_hint() -> None:
    (item,) = send("POST", "/jobs/batch", json_body={"jobs": [{"message": "m", "at": "x"}]}).data["results"]
    assert item["error"]["details"] == [{"field": "jobs[0].at", "rule": "is not a known field; did you mean execute_at?"}]


def test_a_job_is_moved_by_a_delay() -> None:
    job = send("POST", "/jobs", json_body={"message": "m", "delay": "1h"}).data
    moved = send("PATCH", f"/jobs/{job['id']}", json_body={"delay": "2h"}).data
    assert moved["scheduled_at"] == render(NOW + 7_200_000)
    both = send("PATCH", f"/jobs/{job['id']}", json_body={"delay": "2h", "execute_at": render(NOW + 1)})
    assert (both.status, both.fields) == (400, {"body": "give either execute_at or delay"})
