"""Ordering keys over HTTP: jobs with a key, the state of a queue, and resume."""

from dataclasses import replace
from typing import Any

import pytest

from lambdas.rest import models, shapes
from scheduler.admission import ordering
from scheduler.model.job import JobKey, OrderKey
from scheduler.model.spec import OnFailure, Ordering
from tests.lambdas.gateway import NOW, Answered, World, send

KEY = OrderKey("sub-ann", "customer:17")
PATH = "/ordering-keys/customer:17"


def posted(**fields: Any) -> Any:
    return send("POST", "/jobs", json_body={"message": "m", "ordering_key": KEY.key} | fields).data


def shown(answered: Answered) -> Any:
    """The ordering queue in an answer, which must have the documented shape."""
    shapes.Answer[models.OrderingKeyShape].model_validate(answered.body)
    return answered.data


def fail(world: World, job_id: str) -> None:
    """Let the job fail."""
    job = world.jobs.rows[JobKey("sub-ann", job_id)]
    world.jobs.rows[job.key] = replace(job, slot=None, failed_at=NOW, charged=3)


def test_a_job_shows_its_ordering_key_and_joins_the_queue(world: World) -> None:
    job = posted(on_failure="pause")
    assert (job["ordering_key"], job["on_failure"]) == (KEY.key, "pause")
    stored = world.jobs.rows[JobKey("sub-ann", job["id"])]
    assert stored.spec.ordering == Ordering(KEY.key, OnFailure.PAUSE)
    assert world.orders.lines([KEY], limit=9)[KEY].entries == (ordering.entry_of(stored),)
    assert posted()["on_failure"] == "continue"
    plain = send("POST", "/jobs", json_body={"message": "m"}).data
    assert (plain["ordering_key"], plain["on_failure"]) == (None, None)


@pytest.mark.parametrize(
    ("fields", "field", "rule"),
    [
        ({"ordering_key": ""}, "ordering_key", "must be 1 to 128 letters, digits or any of - _ . : @"),
        ({"ordering_key": "a/b"}, "ordering_key", "must be 1 to 128 letters, digits or any of - _ . : @"),
        ({"ordering_key": "a" * 129}, "ordering_key", "must be 1 to 128 letters, digits or any of - _ . : @"),
        ({"ordering_key": 7}, "ordering_key", "must be a string"),
        ({"on_failure": "stop"}, "on_failure", "'continue' or 'pause'"),
        ({"ordering_key": None, "on_failure": "pause"}, "on_failure", "requires an ordering_key"),
    ],
)
def test_an_invalid_ordering_key_is_refused(world: World, fields: dict[str, Any], field: str, rule: str) -> None:
    answered = send("POST", "/jobs", json_body={"message": "m", "ordering_key": "k"} | fields)
    assert answered.status == 400 and rule in answered.fields[field]
    assert not world.jobs.rows and not any(world.orders.entries.values())


def test_jobs_of_one_call_are_queued_in_the_order_of_the_call(world: World) -> None:
    items = [{"message": str(number), "ordering_key": KEY.key} for number in range(60)]
    for keyed in ({}, {"Idempotency-Key": "k1"}):
        made = send("POST", "/jobs/batch", json_body={"jobs": items}, headers=keyed).data
        standing = [marker.job for marker in world.orders.lines([KEY], limit=200)[KEY].entries]
        mine = [result["job"]["id"] for result in made["results"]]
        assert [job for job in standing if job in mine] == mine and len(set(mine)) == 60


def test_an_ordering_key_is_fixed_and_a_new_time_moves_the_entry(world: World) -> None:
    job = posted(execute_at="2026-11-20T11:00:00Z")
    refused = send("PATCH", f"/jobs/{job['id']}", json_body={"ordering_key": "other"})
    assert refused.fields == {"ordering_key": "is not a known field"}
    assert send("PATCH", f"/jobs/{job['id']}", json_body={"execute_at": "2026-11-20T12:00:00Z"}).status == 200
    (marker,) = world.orders.lines([KEY], limit=9)[KEY].entries
    assert marker == ordering.entry_of(world.jobs.rows[JobKey("sub-ann", job["id"])])


def test_a_queue_shows_its_jobs_and_block_and_is_resumed_once(world: World) -> None:
    assert shown(send("GET", PATH)) == {
        "ordering_key": KEY.key,
        "job_id": None,
        "paused_by": None,
        "paused_at": None,
        "waiting": 0,
        "more": False,
    }
    first, second = posted(on_failure="pause")["id"], posted()["id"]
    first, second = sorted([first, second], key=lambda each: ordering.entry_of(world.jobs.rows[JobKey("sub-ann", each)]).position)
    line = shown(send("GET", PATH))
    assert (line["waiting"], line["paused_by"]) == (2, None)
    for job in list(world.jobs.rows.values()):
        world.jobs.rows[job.key] = replace(job, spec=replace(job.spec, ordering=Ordering(KEY.key, OnFailure.PAUSE)))
    assert send("POST", f"{PATH}/resume").status == 409
    fail(world, first)
    paused = shown(send("GET", PATH))
    assert (paused["waiting"], paused["paused_by"], paused["paused_at"]) == (1, first, "2026-11-20T10:00:00.500Z")
    resumed = shown(send("POST", f"{PATH}/resume"))
    assert (resumed["waiting"], resumed["paused_by"]) == (1, None)
    assert send("POST", f"{PATH}/resume").error["code"] == "conflict" and second in str(world.jobs.rows)


def test_queues_belong_to_their_owners_and_bad_keys_are_refused(world: World) -> None:
    posted()
    assert shown(send("GET", PATH, user="sub-eve"))["waiting"] == 0
    for method, path in (("GET", ""), ("POST", "/resume")):
        refused = send(method, f"/ordering-keys/{'a' * 129}{path}")
        assert (refused.status, list(refused.fields)) == (400, ["ordering_key"])


def test_a_task_passes_its_ordering_key_on_to_its_runs(world: World) -> None:
    body = {"name": "t", "message": "m", "schedule": {"rate": "rate(5 minutes)"}, "ordering_key": KEY.key, "on_failure": "pause"}
    task = send("POST", "/tasks", json_body=body).data
    assert (task["ordering_key"], task["on_failure"]) == (KEY.key, "pause")
    runs = list(world.jobs.rows.values())
    assert runs and all(run.spec.ordering == Ordering(KEY.key, OnFailure.PAUSE) for run in runs)
    markers = world.orders.lines([KEY], limit=100)[KEY].entries
    assert [marker.job for marker in markers] == sorted(run.id for run in runs)
    by_hand = send("POST", f"/tasks/{task['id']}/run", json_body={}).data
    assert by_hand["ordering_key"] == KEY.key and by_hand["id"] in str(world.orders.entries)
    assert send("POST", f"/tasks/{task['id']}/pause", json_body={}).status == 200
    left = [marker.job for marker in world.orders.lines([KEY], limit=100)[KEY].entries]
    assert left == [job.id for job in sorted(world.jobs.rows.values(), key=lambda job: job.id)], "the withdrawn runs left their line"
