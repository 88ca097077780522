"""Jobs whose workers report by call-back, on the deployed stack with IAM enforced. A worker has only the data of its request."""

import time
from dataclasses import dataclass
from typing import Any

import httpx
from punctual import Punctual

from local.receiver import Call
from scheduler.model.instants import parse
from tests.system.conftest import System, ended, until


@dataclass
class Worker:
    """The worker that received the request of a job."""

    call: Call

    def report(self, verb: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        address, token = (self.call.headers[f"Punctual-Callback-{name}"] for name in ("Url", "Token"))
        answer = httpx.post(f"{address}/{verb}", json=body, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False)
        return answer.status_code, answer.json()


def posted(system: System, client: Punctual, path: str, **policy: int) -> dict[str, Any]:
    job: dict[str, Any] = client.jobs.create("http", {"method": "POST", "url": system.receiver.url(path)}, callback=policy).raw
    return job


def worker(system: System, path: str, number: int = 1) -> Worker:
    """Wait for the worker of the `number`-th attempt."""
    return Worker(until(60, lambda: system.receiver.calls(path)[number - 1 : number] or None)[0])


def test_a_worker_sends_heartbeats_with_progress_and_completes(system: System, client: Punctual) -> None:
    job = posted(system, client, "/ok/reporting", lease_seconds=15)
    working = worker(system, "/ok/reporting")
    until(60, lambda: client.jobs.get(job["id"]).lease_until)
    for beat, fraction in enumerate((0.2, 0.4, 0.6, 0.8)):
        status, answered = working.report("heartbeat", {"progress": fraction, "message": f"part {beat + 1} of 5"})
        assert (status, answered["data"]["cancel_requested"]) == (200, False)
        found = client.jobs.get(job["id"]).raw
        assert found["status"] == "running" and found["progress"] == {"fraction": fraction, "message": f"part {beat + 1} of 5"}
        assert found["lease_until"] == answered["data"]["lease_until"]
        # All heartbeats together take longer than a lease.
        until(60, lambda: parse(client.jobs.get(job["id"]).raw["lease_until"]) - time.time() * 1000 < 11_000)
    assert working.report("complete", {"output": {"rows": 42}})[0] == 200
    assert working.report("complete", {"output": {"rows": 42}})[0] == 200
    assert working.report("heartbeat", {})[0] == 409
    (done,) = ended(client, [job], 5)
    assert (done["status"], done["output"], done["response"]["status"]) == ("succeeded", '{"rows": 42}', 200)
    assert [attempt["outcome"] for attempt in done["attempts"]] == ["succeeded"]
    assert len(system.receiver.calls("/ok/reporting")) == 1


def test_a_job_with_a_silent_worker_is_retried_and_fails_the_second_time(system: System, client: Punctual) -> None:
    job = posted(system, client, "/ok/silent", lease_seconds=10)
    first = worker(system, "/ok/silent")
    second = worker(system, "/ok/silent", 2)
    assert first.report("complete", {})[0] == 409
    assert second.call.headers["Idempotency-Key"] == first.call.headers["Idempotency-Key"] == job["id"]
    (done,) = ended(client, [job], 60)
    assert (done["status"], done["reason"]) == ("failed", "no heartbeat within 10 s each time")
    assert {(each["outcome"], each["failure"]["message"]) for each in done["attempts"]} == {("crashed", "no heartbeat within 10 s")}
    best = min((parse(each["ended_at"]) - parse(each["started_at"])) / 1000 for each in done["attempts"])
    assert 10 <= best < 10 + 6, "the better one of two counts, since the machine is shared"
    assert len(system.receiver.calls("/ok/silent")) == 2


def test_the_next_heartbeat_reports_a_cancel(system: System, client: Punctual) -> None:
    job = posted(system, client, "/ok/stopping", lease_seconds=600)
    working = worker(system, "/ok/stopping")
    until(60, lambda: client.jobs.get(job["id"]).lease_until)
    client.jobs.cancel(job["id"])
    assert working.report("heartbeat", {})[1]["data"]["cancel_requested"] is True
    assert working.report("fail", {"message": "stopped"})[0] == 200
    assert client.jobs.get(job["id"]).status == "cancelled"


def test_a_report_without_the_token_is_refused(system: System, client: Punctual) -> None:
    job = posted(system, client, "/ok/foreign", lease_seconds=60)
    working = worker(system, "/ok/foreign")
    token = working.call.headers["Punctual-Callback-Token"]
    forged = Worker(Call(**{**working.call.__dict__, "headers": {**working.call.headers, "Punctual-Callback-Token": token[:-4] + "AAAA"}}))
    assert forged.report("complete", {})[0] == 401
    assert client.jobs.get(job["id"]).status == "running"
    assert working.report("complete", {})[0] == 200
