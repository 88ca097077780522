"""The trace context over HTTP: a valid one is stored with the job, a header that is not valid costs nothing, a wrong field is refused."""

from typing import Any

import pytest

from scheduler.model import trace
from scheduler.model.job import Job, JobKey
from scheduler.model.rules import Rules
from tests.lambdas.gateway import World, send
from tests.lambdas.test_api_dead_letters import dead
from tests.unit.test_trace import GOOD

OTHER = f"00-{'a' * 32}-{'b' * 16}-00"
HEADERS = {"traceparent": GOOD, "tracestate": "vendor=1"}
HELLO = {"message": "hello"}
BAD = [
    "",
    "nonsense",
    "00-0-0-0",
    GOOD.upper(),
    GOOD.replace("00-", "ff-", 1),
    f"{GOOD}, {GOOD}",
    f"00-{'0' * 32}-{'b' * 16}-01",
    "x" * 8_000,
]


def stored(world: World, id: str) -> Job:
    job = world.jobs.get(JobKey("sub-ann", id))
    assert job is not None
    return job


def test_a_job_has_the_context_of_its_request(world: World) -> None:
    made = send("POST", "/jobs", json_body=HELLO, headers=HEADERS).data
    assert made["traceparent"] == GOOD == send("GET", f"/jobs/{made['id']}").data["traceparent"]
    assert stored(world, made["id"]).trace == f"{GOOD} vendor=1"
    assert send("POST", "/jobs", json_body=HELLO).data["traceparent"] is None


@pytest.mark.parametrize("header", BAD)
def test_a_header_that_is_not_valid_is_ignored(world: World, header: str) -> None:
    made = send("POST", "/jobs", json_body=HELLO, headers={"traceparent": header})
    assert made.status == 201 and stored(world, made.data["id"]).trace is None


def test_a_bad_tracestate_costs_the_tracestate_alone(world: World) -> None:
    made = send("POST", "/jobs", json_body=HELLO, headers={"traceparent": GOOD, "tracestate": "=" * 9_000}).data
    assert stored(world, made["id"]).trace == GOOD


def test_an_item_of_a_batch_has_its_own_context_or_that_of_the_request(world: World) -> None:
    jobs: list[Any] = [HELLO, HELLO | {"traceparent": OTHER, "tracestate": "a=1"}]
    results = send("POST", "/jobs/batch", json_body={"jobs": jobs}, headers=HEADERS).data["results"]
    assert [stored(world, each["job"]["id"]).trace for each in results] == [f"{GOOD} vendor=1", f"{OTHER} a=1"]


@pytest.mark.parametrize(("field", "text"), [("traceparent", "nonsense"), ("tracestate", "=" * 600), ("tracestate", "A=1")])
def test_a_wrong_field_of_an_item_is_refused_by_its_name(world: World, field: str, text: str) -> None:
    answered = send("POST", "/jobs/batch", json_body={"jobs": [HELLO, HELLO | {"traceparent": GOOD} | {field: text}]})
    good, bad = answered.data["results"]
    assert answered.status == 207 and "job" in good and bad["error"]["details"][0]["field"] == f"jobs[1].{field}"
    assert "traceparent" in bad["error"]["details"][0]["rule"] or "tracestate" in bad["error"]["details"][0]["rule"]


def test_a_repeated_request_has_the_first_context(world: World) -> None:
    """A client that tries again has another span, and is the same request."""
    for path, body in (("/jobs", HELLO), ("/jobs/batch", {"jobs": [HELLO]})):
        first, again = (
            send("POST", path, json_body=body, headers={"traceparent": each, "idempotency-key": "k1"}).data for each in (GOOD, OTHER)
        )
        one, two = (each if path == "/jobs" else each["results"][0]["job"] for each in (first, again))
        assert one["id"] == two["id"] and stored(world, one["id"]).trace == GOOD and two.get("traceparent", GOOD) == GOOD
    item = {"idempotency_key": "k2"} | HELLO
    ids = {
        send("POST", "/jobs/batch", json_body={"jobs": [item | {"traceparent": each}]}).data["results"][0]["job"]["id"]
        for each in (GOOD, OTHER)
    }
    assert len(ids) == 1


def test_a_put_and_a_group_take_the_context_too(world: World) -> None:
    put = send("PUT", "/jobs/by-key/k", json_body=HELLO | {"delay": "1h"}, headers=HEADERS).data
    assert put["traceparent"] == GOOD
    again = send("PUT", "/jobs/by-key/k", json_body=HELLO | {"delay": "2h"}, headers={"traceparent": OTHER}).data
    assert (again["id"], again["traceparent"]) == (put["id"], GOOD), "it is the job of the first request"
    group = send("POST", "/groups", json_body={"jobs": [HELLO]}, headers=HEADERS).data
    assert stored(world, group["results"][0]["job"]["id"]).trace == f"{GOOD} vendor=1"


def test_a_replay_links_to_its_original_only_if_spans_are_exported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = dead(world, 0, type="log", payload=HELLO)
    assert stored(world, send("POST", f"/jobs/{job.id}/replay").data["id"]).links_to is None
    monkeypatch.setattr(world, "rules", Rules(traces=True))
    made = stored(world, send("POST", f"/jobs/{job.id}/replay", headers=HEADERS).data["id"])
    assert made.links_to == trace.last(job, 1).parent and made.trace == f"{GOOD} vendor=1"


def test_the_run_of_a_task_has_no_context(world: World) -> None:
    task = {"name": "n", "type": "log", "payload": HELLO, "schedule": {"cron": "0 * * * *"}}
    made = send("POST", "/tasks", json_body=task, headers=HEADERS).data
    run = send("POST", f"/tasks/{made['id']}/run", json_body={}, headers=HEADERS).data
    assert stored(world, run["id"]).trace is None
