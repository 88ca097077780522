"""The outputs and logs of attempts, over HTTP."""

from typing import Any

import pytest

from scheduler.model import lifecycle, settlement
from scheduler.model.job import Claim, Failure, FailureKind, Finished, Job, Result
from scheduler.model.rules import Rules
from scheduler.pipeline.output_store import keep
from scheduler.storage.memory.stores import MemoryOutputs
from tests.conftest import a_job
from tests.lambdas.gateway import NOW, World, send

LONG = "o" * 10_000
AGAIN = Failure(FailureKind.RETRYABLE, "once more")


@pytest.fixture
def outputs(world: World) -> MemoryOutputs:
    found: MemoryOutputs = world.outputs
    return found


def ran(world: World, outputs: MemoryOutputs, *results: Result, owner: str = "sub-ann", **fields: Any) -> Job:
    job = a_job(owner=owner, **fields)
    for number, result in enumerate(results):
        job = lifecycle.claim(job, claim=Claim("m", f"n{number}", NOW, alone=False))
        kept = keep(job, result, lambda: outputs)
        job = settlement.settle(Finished(job, NOW, NOW, kept), NOW, Rules(shards=1))
    world.jobs.put(job)
    return job


def test_a_job_shows_output_and_log_of_each_attempt(world: World, outputs: MemoryOutputs) -> None:
    job = ran(world, outputs, Result("o" * 300, failure=AGAIN, log="log 1"), Result(LONG, log="log 2"))
    first, second = send("GET", f"/jobs/{job.id}").data["attempts"]
    assert (first["output"], first["log"], first["output_kept"]) == ("o" * 256, "log 1", "excerpt")
    assert (second["output"], second["log"], second["output_kept"]) == (job.output, "log 2", "whole")


def test_the_full_output_has_its_own_path(world: World, outputs: MemoryOutputs) -> None:
    job = ran(world, outputs, Result("first", failure=AGAIN, log="log 1"), Result(LONG, log="log 2"))
    assert send("GET", f"/jobs/{job.id}/attempts/1/output").data == {"number": 1, "text": "first", "complete": True}
    assert send("GET", f"/jobs/{job.id}/attempts/2/output").data == {"number": 2, "text": LONG, "complete": True}
    assert send("GET", f"/jobs/{job.id}/attempts/2/log").data == {"number": 2, "text": "log 2", "complete": True}


def test_a_long_body_is_cut_in_the_response_and_stored_in_full(world: World, outputs: MemoryOutputs) -> None:
    job = ran(world, outputs, Result(response={"status": 200, "headers": {}, "body": LONG}, log="GET"))
    shown = send("GET", f"/jobs/{job.id}").data
    assert shown["response"]["body"] == LONG[: 4_096 - 3] and shown["attempts"][0]["output"] is None
    assert send("GET", f"/jobs/{job.id}/attempts/1/output").data["text"] == LONG


def test_an_expired_output_is_gone(world: World, outputs: MemoryOutputs) -> None:
    job = ran(world, outputs, Result(LONG))
    outputs.rows.clear()
    answer = send("GET", f"/jobs/{job.id}/attempts/1/output")
    assert (answer.status, answer.error["code"]) == (410, "gone")
    assert "no longer stored" in answer.error["message"]


@pytest.mark.parametrize("path", ["attempts/2/output", "attempts/1/log", "attempts/9/log"])
def test_an_unknown_output_is_not_found(world: World, outputs: MemoryOutputs, path: str) -> None:
    job = ran(world, outputs, Result("done"))
    assert send("GET", f"/jobs/{job.id}/{path}").status == 404


def test_attempts_keep_their_numbers_when_earlier_ones_are_dropped(world: World, outputs: MemoryOutputs) -> None:
    results = [Result(failure=AGAIN, log=f"log {number}") for number in range(1, 8)]
    job = ran(world, outputs, *results, Result(LONG, log="log 8"), max_attempts=25, fence=30)
    shown = send("GET", f"/jobs/{job.id}").data["attempts"]
    assert [(each["number"], each["log"]) for each in shown] == [(number, f"log {number}") for number in (4, 5, 6, 7, 8)]
    assert send("GET", f"/jobs/{job.id}/attempts/4/log").data["text"] == "log 4"
    assert send("GET", f"/jobs/{job.id}/attempts/8/output").data == {"number": 8, "text": LONG, "complete": True}
    assert [send("GET", f"/jobs/{job.id}/attempts/{number}/log").status for number in (3, 9, 31)] == [404, 404, 404]


@pytest.mark.parametrize("number", ["0", "-1", "one", "1.5"])
def test_an_invalid_attempt_number_is_refused_by_name(world: World, outputs: MemoryOutputs, number: str) -> None:
    job = ran(world, outputs, Result("done"))
    answer = send("GET", f"/jobs/{job.id}/attempts/{number}/output")
    assert answer.status == 400 and list(answer.fields) == ["number"]


def test_an_output_of_another_users_job_is_not_found(world: World, outputs: MemoryOutputs) -> None:
    job = ran(world, outputs, Result(LONG), owner="sub-bob")
    assert send("GET", f"/jobs/{job.id}/attempts/1/output").status == 404
