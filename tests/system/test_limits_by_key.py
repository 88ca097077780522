"""Limits by key on the deployed stack: crowds of many keys at one instant, a rate, and executors that are killed."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from punctual import Punctual

from local import process
from local.receiver import Call, Receiver
from local.samples import rfc3339
from tests.system.conftest import FINAL, System, until

AT_ONCE = 2
TAKES_S = 0.2
PATIENCE_S = 600  # each release step of a crowd may start a process of its own, which takes long on a busy machine


@contextmanager
def most_at_once(receiver: Receiver) -> Iterator[Counter[str]]:
    """Count the most calls of each key that were open at one time. The key is the fourth part of the path."""
    most, before = Counter[str](), receiver.watch

    def watch(call: Call) -> None:
        before(call)
        parts = call.path.split("/")
        if len(parts) > 4 and parts[3] == "keyed":
            key = parts[4]
            most[key] = max(most[key], sum(f"/keyed/{key}/" in each.path for each in receiver.open_calls()))

    receiver.watch = watch
    try:
        yield most
    finally:
        receiver.watch = before


def crowd(receiver: Receiver, keys: int, each: int, tag: str, at: str, takes_s: float = TAKES_S) -> list[dict[str, Any]]:
    return [
        {
            "type": "http",
            "payload": {"method": "POST", "url": receiver.url(f"/slow/{takes_s:g}/keyed/{tag}-{key}/{number}")},
            "limit": {"key": f"{tag}-{key}", "concurrency": AT_ONCE},
            "tags": [tag],
            "execute_at": at,
        }
        for number in range(each)
        for key in range(keys)
    ]


def in_seconds(seconds: float) -> str:
    return rfc3339(datetime.fromtimestamp(time.time() + seconds, UTC))


def called(receiver: Receiver, tag: str) -> int:
    """The number of jobs that have called the receiver: listing a thousand jobs again and again would keep the API busy."""
    return len({call.path for call in receiver.calls() if f"/keyed/{tag}-" in call.path})


def left(client: Punctual, tag: str) -> int:
    """The number of jobs that have not ended; those that are due are in the list of the past."""
    return sum(job.status not in FINAL for upcoming in (False, True) for job in client.jobs.list(tag=tag, upcoming=upcoming))


@pytest.mark.parametrize(("keys", "each"), [(10, 8), pytest.param(50, 20, marks=pytest.mark.soak)])
def test_a_receiver_never_sees_three_calls_of_one_key(deployed: System, keys: int, each: int) -> None:
    client, tag, jobs = deployed.client(), f"crowds-of-{keys}-keys", keys * each
    with most_at_once(deployed.receiver) as most:
        posted = client.jobs.create_many(crowd(deployed.receiver, keys, each, tag, in_seconds(20))).all_jobs()
        waiting = until(60, lambda: next((job for job in client.jobs.list(tag=tag) if (job.reason or "").startswith("limit:")), None))
        until(PATIENCE_S, lambda: called(deployed.receiver, tag) == jobs)
        until(60, lambda: left(client, tag) == 0)
    assert len(posted) == jobs and len(most) == keys and max(most.values()) == AT_ONCE
    assert f"waits for key {tag}-" in (waiting.reason or "") and " since 20" in (waiting.reason or "")
    assert Counter(job.status for job in client.jobs.list(tag=tag)) == {"succeeded": jobs}


def test_a_second_limit_of_a_key_in_use_is_refused(deployed: System) -> None:
    client = deployed.client()
    limit = {"key": "two-limits", "rate": 10, "period": "1m"}
    client.jobs.create("log", {"message": "m"}, delay="1h", limit=limit)
    status = client.send("POST", "/jobs", b'{"message": "m", "limit": {"key": "two-limits", "concurrency": 1}}').status_code
    assert status == 409


@pytest.mark.apart  # it kills executors, which run the jobs of other tests
def test_limits_of_keys_survive_killed_executors(deployed: System) -> None:
    client, tag, kills = deployed.client(), "killed-keys", 0
    with most_at_once(deployed.receiver) as most:
        client.jobs.create_many(crowd(deployed.receiver, 5, 20, tag, in_seconds(10), takes_s=1)).all_jobs()
        until(60, lambda: most)
        for _ in range(5):
            for worker in deployed.workers("ExecuteOneTimeFunction")[:2]:
                process.kill(worker)
                kills += 1
            time.sleep(2)
        until(PATIENCE_S, lambda: left(client, tag) == 0)
    assert kills and max(most.values()) <= AT_ONCE + kills, "a receiver may still answer the call of a killed executor"
    assert Counter(job.status for job in client.jobs.list(tag=tag)) == {"succeeded": 100}
