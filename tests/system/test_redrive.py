"""Redrives of dead jobs, one or many at a rate: on the deployed stack over HTTP."""

import time
from collections import Counter
from datetime import datetime
from typing import Any

from punctual import Punctual

from tests.system.conftest import System, ended, until

COUNT, RATE = 40, 10
BEHIND = 1.0  # seconds: a delayed redrive may catch up by this much at once


def bury_some(client: Punctual, url: str, count: int) -> list[dict[str, Any]]:
    """Run `count` jobs that call `url` and fail."""
    calls = [{"type": "http", "payload": {"method": "POST", "url": f"{url}-{n}"}, "max_attempts": 1} for n in range(count)]
    jobs = ended(client, [job.raw for job in client.jobs.create_many(calls).all_jobs()], 90)
    assert Counter(job["status"] for job in jobs) == {"failed": count}
    return jobs


def redrive(client: Punctual, **wanted: Any) -> dict[str, Any]:
    made: dict[str, Any] = client.request("POST", "/dead-letters/redrive", wanted)
    return made


def progress(client: Punctual, made: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = client.request("GET", f"/dead-letters/redrives/{made['id']}")
    return found


def test_forty_dead_jobs_are_redriven_once_at_the_given_rate(system: System) -> None:
    client = system.client("redriver")
    dead = bury_some(client, system.receiver.url("/status/404/redriven"), COUNT)
    (group,) = until(60, lambda: [each for each in client.request("GET", "/dead-letters")["items"] if each["count"] == COUNT])
    assert {job["fingerprint"] for job in dead} == {group["fingerprint"]} and group["error"]["message"] == "HTTP 404"

    made, seen = redrive(client, fingerprint=group["fingerprint"], rate=RATE), list[int]()

    def over() -> dict[str, Any] | None:
        found = progress(client, made)
        seen.append(found["redriven"])
        return found if found["status"] == "done" else None

    done = until(90, over)
    assert (done["matched"], done["redriven"], done["skipped"]) == (COUNT, COUNT, 0)
    assert any(0 < count < COUNT for count in seen) and seen == sorted(seen)

    again = ended(client, dead, 90)
    assert {job["redrives"] for job in again} == {1}
    assert {tuple(attempt["number"] for attempt in job["attempts"]) for job in again} == {(1, 2)}
    counts = {path: count for path, count in system.receiver.counts().items() if "/redriven-" in path}
    assert len(counts) == COUNT and set(counts.values()) == {2}
    instants = sorted(datetime.fromisoformat(job["redriven_at"]).timestamp() for job in again)
    together = Counter(instants).most_common(1)[0][1]  # the jobs of a step, which does the work of a second
    assert together <= RATE and instants[-1] - instants[0] >= (COUNT - together) / RATE - BEHIND


def test_an_aborted_redrive_leaves_the_rest_dead(system: System) -> None:
    client = system.client("aborter")
    dead = bury_some(client, system.receiver.url("/status/404/aborted"), 30)
    made = redrive(client, type="http", rate=2)
    until(60, lambda: progress(client, made)["redriven"] >= 2)
    client.request("POST", f"/dead-letters/redrives/{made['id']}/abort", {})
    time.sleep(3)  # the chunk in progress at the abort still counts
    aborted = progress(client, made)
    assert aborted["status"] == "aborted" and aborted["redriven"] < 30
    jobs = ended(client, dead, 60)
    assert sum(job["redrives"] for job in jobs) == aborted["redriven"]


def test_a_dead_job_is_retried_by_hand_and_a_live_one_is_refused(system: System) -> None:
    client = system.client("retrier")
    (dead,) = bury_some(client, system.receiver.url("/status/404/retried"), 1)
    assert client.request("POST", f"/jobs/{dead['id']}/retry", {})["redrives"] == 1
    (again,) = ended(client, [dead], 60)
    assert (again["status"], len(again["attempts"])) == ("failed", 2)
