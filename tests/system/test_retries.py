"""Jobs whose target fails or throttles: on the deployed stack over HTTP."""

import itertools
from typing import Any

from punctual import Punctual

from scheduler.model.instants import parse
from tests.system.conftest import System, ended, until


def call(system: System, path: str) -> dict[str, Any]:
    return {"method": "POST", "url": system.receiver.url(path)}


def waits(job: dict[str, Any]) -> list[float]:
    """Return the seconds from the end of each attempt to the start of the next one."""
    return [(parse(b["started_at"]) - parse(a["ended_at"])) / 1000 for a, b in itertools.pairwise(job["attempts"])]


def test_retries_keep_the_declared_waits(system: System, client: Punctual) -> None:
    policy = {"base_seconds": 2, "jitter": "equal"}
    posted = client.jobs.create("http", call(system, "/fail-twice/declared"), retry=policy).raw
    assert posted["retry"] == {"base_seconds": 2, "cap_seconds": 900, "jitter": "equal", "max_elapsed_seconds": None, "on_timeout": True}
    (job,) = ended(client, [posted], 60)
    assert job["status"] == "succeeded"
    assert [attempt["outcome"] for attempt in job["attempts"]] == ["failed", "failed", "succeeded"]
    first, second = waits(job)
    assert 1 <= first < 2 + 5 and 2 <= second < 4 + 5, (first, second)  # a busy machine may start late, never early
    assert [made.status for made in system.receiver.calls("/fail-twice/declared")] == [500, 500, 200]


def test_a_throttled_job_is_retried_when_its_target_allows_it(system: System, client: Punctual) -> None:
    (job,) = ended(client, [client.jobs.create("http", call(system, "/throttled/7/once"), max_attempts=1).raw], 60)
    assert job["status"] == "succeeded"
    refused = job["attempts"][0]["failure"]
    assert (refused["kind"], refused["retry_after_seconds"]) == ("throttled", 7)
    assert 7 <= waits(job)[0] < 7 + 5
    one, other = system.receiver.calls("/throttled/7/once")
    assert other.at - one.at >= 7_000


def test_a_time_out_is_retried(client: Punctual) -> None:
    long = {"message": "long", "sleep_seconds": 30}
    (job,) = ended(client, [client.jobs.create("log", long, timeout_seconds=1, max_attempts=2).raw], 60)
    assert (job["status"], [attempt["outcome"] for attempt in job["attempts"]]) == ("killed", ["killed", "killed"])


def test_an_answer_that_is_cut_is_no_success(system: System, client: Punctual) -> None:
    """The end of these answers is the close of the connection, so a cut must not be taken for it."""
    own = client.jobs.create("http", {**call(system, "/stream/60/own"), "timeout_seconds": 1}, max_attempts=1).raw
    late = client.jobs.create("http", call(system, "/stream/60/late"), timeout_seconds=1, max_attempts=1).raw
    unwanted = client.jobs.create("http", call(system, "/stream/60/unwanted"), max_attempts=1).raw
    whole = client.jobs.create("http", call(system, "/stream/1/whole"), max_attempts=1).raw
    until(300, lambda: system.receiver.calls("/stream/60/unwanted"))
    client.jobs.cancel(unwanted["id"])
    jobs = ended(client, [own, late, unwanted, whole], 60)
    assert [job["status"] for job in jobs] == ["failed", "killed", "cancelled", "succeeded"]
    assert [job["attempts"][0]["failure"]["kind"] for job in jobs[:2]] == ["retryable", "timeout"]
    assert [job["response"] for job in jobs[:3]] == [None] * 3 and "working" in jobs[3]["response"]["body"]
