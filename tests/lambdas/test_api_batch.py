"""Posting many jobs in one call."""

import json
from typing import Any

import pytest

from docs_build.expanded import expanded
from lambdas.rest import models, shapes
from lambdas.rest.request_body import LARGE
from scheduler.model import item_limit
from scheduler.model.errors import Unavailable
from scheduler.model.instants import DAY, render
from scheduler.model.job import Job, JobKey, Lane
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import Written
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")


def post(*jobs: Any, **rest: Any) -> Answered:
    answered = send("POST", "/jobs/batch", json_body={"jobs": list(jobs)}, **rest)
    if answered.status < 400:
        shapes.Answer[models.BatchShape].model_validate(answered.body)
        assert [result["index"] for result in answered.data["results"]] == list(range(len(jobs)))
        assert all(("job" in result) != ("error" in result) for result in answered.data["results"])
    return answered


def errors(answered: Answered) -> dict[int, dict[str, str]]:
    """The broken rules by item and field."""
    refused = [result for result in answered.data["results"] if "error" in result]
    return {result["index"]: {each["field"]: each["rule"] for each in result["error"]["details"]} for result in refused}


def test_valid_jobs_are_accepted_in_order(world: World) -> None:
    later = render(NOW + DAY)
    payload = {"url": "https://example.com/x", "method": "POST"}
    answered = post({"message": "now"}, {"message": "later", "execute_at": later}, {"type": "http", "payload": payload, "max_attempts": 7})
    assert (answered.status, answered.data["accepted"], answered.data["refused"]) == (200, 3, 0)
    now, then, call = (result["job"] for result in answered.data["results"])
    assert (now["status"], now["scheduled_at"]) == ("queued", render(NOW))
    assert (then["status"], then["scheduled_at"]) == ("scheduled", later)
    shown = send("GET", f"/jobs/{call['id']}").data
    assert (shown["type"], shown["payload"], shown["max_attempts"]) == ("http", payload, 7)
    assert {queued.message.key.id for queued in world.lanes.queues[Lane.ONE_TIME].values()} == {now["id"], call["id"]}


def test_an_invalid_item_is_reported_and_leaves_the_others_alone(world: World) -> None:
    answered = post(
        {"message": "first"},
        {"message": "m", "execute_at": "tomorrow"},
        {"message": "m", "execute_at": render(NOW - DAY - 1)},
        {"type": "http", "payload": {"url": "ftp://a", "headers": {"Host": "b"}}},
        {"message": "m", "max_attempts": 0, "colour": "red"},
        {"message": "last"},
    )
    assert (answered.status, answered.data["accepted"], answered.data["refused"]) == (207, 2, 4)
    found = errors(answered)
    assert {index: set(fields) for index, fields in found.items()} == {
        1: {"jobs[1].execute_at"},
        2: {"jobs[2].execute_at"},
        3: {"jobs[3].payload.url", "jobs[3].payload.headers.Host"},
        4: {"jobs[4].max_attempts", "jobs[4].colour"},
    }
    assert "RFC 3339" in found[1]["jobs[1].execute_at"] and "more than a day" in found[2]["jobs[2].execute_at"]
    for result in answered.data["results"]:
        if "error" in result:
            assert result["error"]["code"] == "validation_failed"
            assert all(field in result["error"]["message"] for field in found[result["index"]])
    kept = {result["job"]["id"] for result in answered.data["results"] if "job" in result}
    assert {key.id for key in world.jobs.rows} == kept and {job.spec.payload["message"] for job in world.jobs.rows.values()} == {
        "first",
        "last",
    }


@pytest.mark.parametrize("item", [None, 5, "job", [], [{"message": "m"}], True])
def test_only_an_item_that_is_no_object_is_refused(world: World, item: Any) -> None:
    answered = post({"message": "a"}, item)
    assert (answered.status, errors(answered)) == (207, {1: {"jobs[1]": "must be an object"}})
    assert len(world.jobs.rows) == 1


def test_if_all_items_are_invalid_nothing_is_stored(world: World) -> None:
    answered = post({}, {"message": ""})
    assert (answered.status, answered.data["accepted"], answered.data["refused"]) == (207, 0, 2)
    assert not world.jobs.rows


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"jobs": "is required"}),
        ({"jobs": []}, {"jobs": "must have at least 1 entry"}),
        ({"jobs": [{"message": "m"}] * 1_001}, {"jobs": "must have at most 1000 entries"}),
        ({"jobs": {"message": "m"}}, {"jobs": "must be a list"}),
        ({"jobs": [{"message": "m"}], "job": 1}, {"job": "is not a known field; did you mean jobs?"}),
    ],
)
def test_an_empty_or_too_long_batch_is_refused_as_a_whole(world: World, body: Any, fields: dict[str, str]) -> None:
    answered = send("POST", "/jobs/batch", json_body=body)
    assert (answered.status, answered.error["code"], answered.fields) == (400, "validation_failed", fields)
    assert not world.jobs.rows


def test_a_thousand_jobs_are_accepted_under_different_ids(world: World) -> None:
    answered = post(*({"message": f"{number}", "execute_at": render(NOW + DAY)} for number in range(1_000)))
    made = [world.jobs.get(JobKey("sub-ann", result["job"]["id"])) for result in answered.data["results"]]
    assert [job and job.spec.payload["message"] for job in made] == [f"{number}" for number in range(1_000)]
    assert len(world.jobs.rows) == 1_000


def sized(size: int) -> str:
    """A batch of this size in bytes."""
    frame = '{"jobs": [{"message": "m"}, {"message": "m"}]}'
    return frame + " " * (size - len(frame))


def test_a_batch_of_2_mb_is_accepted_and_a_larger_one_refused(world: World) -> None:
    assert send("POST", "/jobs/batch", body=sized(2_048_000)).status == 200
    answered = send("POST", "/jobs/batch", body=sized(2_048_001))
    assert (answered.status, answered.error["code"]) == (413, "payload_too_large")
    assert "2,048,000 (2,000 KB)" in answered.error["message"] and len(world.jobs.rows) == 2


@pytest.mark.parametrize("text", ['"', "\\", "\n", "é", "時", "😀"])
def test_the_largest_batch_fits_into_an_invocation_whatever_its_text_is(text: str) -> None:
    """Else API Gateway would answer in our place: it wraps the body as a JSON string, in which it may escape whatever is no ASCII."""
    body = text * (LARGE // len(text.encode()))
    headers = {"authorization": "Bearer " + '"' * 10_240}  # API Gateway accepts 10,240 bytes
    context = {"http": {"path": "/api/v1/jobs/batch"}, "authorizer": {"jwt": {"claims": "x" * 10_240}}}
    event = {"version": "2.0", "headers": headers, "cookies": ['"' * 10_240], "requestContext": context, "body": body}
    assert len(json.dumps(event, ensure_ascii=True)) <= 6 * 1_024 * 1_024


def test_an_item_may_not_be_larger_than_a_single_job(world: World) -> None:
    frame = len('{"message":""}')
    answered = post(
        {"message": "x" * (262_144 - frame)},
        {"message": "x" * (262_145 - frame)},
        {"type": "http", "payload": {"url": "http://a.example", "body": [1e15] * 20_000}},
    )
    assert [result.get("error", {}).get("code") for result in answered.data["results"]] == [None] + ["payload_too_large"] * 2
    assert "262,145 bytes" in errors(answered)[1]["jobs[1]"] and len(world.jobs.rows) == 1


class Throttled(MemoryJobs):
    """A table that accepts every other job of a batch."""

    def put_many(self, jobs: Any) -> list[Written]:
        return [Written.of(self.put(job)) if number % 2 else Written.REFUSED for number, job in enumerate(jobs)]


def test_jobs_that_the_table_refuses_are_reported_as_not_accepted(world: World) -> None:
    world.jobs = Throttled()
    answered = post({"message": "a"}, {}, {"message": "b"}, {"message": "c"})
    assert (answered.status, answered.data["accepted"], answered.data["refused"]) == (207, 1, 3)
    codes = [result.get("error", {}).get("code") for result in answered.data["results"]]
    assert codes == ["unavailable", "validation_failed", None, "unavailable"]
    assert set(errors(answered)[0]) == {"jobs[0]"} and set(errors(answered)[3]) == {"jobs[3]"}
    assert [job.spec.payload["message"] for job in world.jobs.rows.values()] == ["b"]


def test_a_table_that_refuses_all_jobs_is_a_503(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(jobs: list[Job]) -> list[Written]:
        raise Unavailable

    monkeypatch.setattr(world.jobs, "put_many", refuse)
    answered = post({"message": "a"}, {"message": "b"})
    assert (answered.status, answered.error["code"], answered.headers["Retry-After"]) == (503, "unavailable", "2")


def test_a_batch_of_one_refused_job_reports_it_in_its_result(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(job: Job) -> bool:
        raise Unavailable

    monkeypatch.setattr(world.jobs, "put", refuse)
    answered = post({"message": "a"})
    assert (answered.status, answered.data["accepted"], answered.data["refused"]) == (207, 0, 1)
    assert answered.data["results"][0]["error"]["code"] == "unavailable"


@pytest.mark.long
@pytest.mark.parametrize(("name", "count"), [("f", 190), ("é" * 350, 2), ("😀" * 190, 2), ("😀" * 450, 1)])
def test_an_answer_with_many_errors_fits_the_limit_of_lambda(name: str, count: int) -> None:
    items = [{f"{name}{number}": 1 for number in range(count)}] * 1_000
    answered = send("POST", "/jobs/batch", body=json.dumps({"jobs": items}, ensure_ascii=False))
    assert answered.data["refused"] == 1_000
    assert len(answered.text.encode()) < 5_000_000  # Lambda allows 6 MB, and escapes quotes
    assert all(len(fields) <= 5 for fields in errors(answered).values())


def test_a_batch_needs_a_token(world: World) -> None:
    answered = post({"message": "a"}, user=None)
    assert (answered.status, answered.error["code"]) == (401, "unauthorized") and not world.jobs.rows


def test_a_batch_is_described_by_the_job_request() -> None:
    document = expanded(send("GET", "/openapi.json", user=None).body)
    jobs = document["components"]["schemas"]["BatchRequest"]["properties"]["jobs"]
    assert (jobs["items"], jobs["maxItems"]) == ({"$ref": "#/components/schemas/BatchItem"}, 1_000)
    item, single = (document["components"]["schemas"][name]["properties"] for name in ("HttpBatchItem", "HttpJobRequest"))
    assert {name: item[name] for name in single} == single and set(item) - set(single) == {"idempotency_key", "traceparent", "tracestate"}
    assert {"200", "207", "413"} <= set(document["paths"]["/api/v1/jobs/batch"]["post"]["responses"])


def test_a_job_too_large_for_the_table_is_refused_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_limit, "LIMIT", 250_000)  # the body of one job is limited below the real one
    answered = post({"message": "a"}, {"message": "x" * 260_000}, {"message": "b"})
    assert answered.status == 207
    codes = [result.get("error", {}).get("code") for result in answered.data["results"]]
    assert codes == [None, "payload_too_large", None] and len(world.jobs.rows) == 2
    assert "261,038 bytes in the table; at most 250,000" in errors(answered)[1]["jobs[1]"]
