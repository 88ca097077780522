"""Killed work and killed executors: a short form of the drills of `make drill`."""

import pytest
from punctual import Punctual

from lab.scenarios import executors
from local import process
from tests.system.conftest import System, ended


def test_overdue_work_is_killed_and_cancelled_work_stops(client: Punctual) -> None:
    seen = executors.kill(client, count=2)
    assert not seen.complaints, seen


@pytest.mark.apart  # on a stack of its own: it takes three minutes, and no start has to be in time
def test_killed_executors_lose_no_job_and_a_poison_job_harms_no_other(deployed: System) -> None:
    def workers() -> list[process.Process]:
        return [*deployed.workers("ExecuteOneTimeFunction"), *deployed.workers("ExecuteRetryFunction")]

    seen = executors.crash(deployed.client(), deployed.receiver, workers, count=30, seconds=10)
    assert not seen.complaints, seen


def test_a_long_output_and_its_log_are_stored_in_full(client: Punctual) -> None:
    (job,) = ended(client, [client.jobs.create("log", {"message": "m" * 10_000, "sleep_seconds": 0.1}).raw], 40)
    assert job["output"] == "m" * len(job["output"]) and len(job["output"]) < 4_096
    (attempt,) = job["attempts"]
    assert attempt["output_kept"] == "whole" and attempt["log"].endswith("m" * 1_000)
    whole = client.request("GET", f"/jobs/{job['id']}/attempts/1/output")
    assert whole == {"number": 1, "text": "m" * 10_000, "complete": True}
    assert client.request("GET", f"/jobs/{job['id']}/attempts/1/log")["text"].startswith("process ")
