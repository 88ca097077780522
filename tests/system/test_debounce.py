"""Debounce, throttle and singleton on the deployed stack, where executors claim the jobs ahead of their instants."""

import itertools
import time
from datetime import UTC, datetime
from typing import Any

from punctual import Punctual

from tests.system.conftest import ended

BETWEEN_S = 0.3  # between two puts of a burst
BURST_S = 10
LEAST_S = 0.4  # a put that is answered nearer to the instant of the job may come too late to replace it
PUT = "/jobs/by-key/"


def put_for(client: Punctual, key: str, seconds: float, between: float, **rule: Any) -> list[dict[str, Any]]:
    """Put a numbered content again and again; return the answers. A put that took long leaves out the turns that it has missed."""
    began, answers = time.monotonic(), list[dict[str, Any]]()
    for turn in itertools.count():
        if (at := began + turn * between) >= began + seconds:
            return answers
        if at + between < time.monotonic():
            continue
        time.sleep(max(0, at - time.monotonic()))
        answer = client.request("PUT", PUT + key, {"message": f"put {len(answers)}", **rule})
        answers.append(answer | {"answered_at": datetime.now(UTC).isoformat()})
    raise AssertionError


def jobs_of(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The jobs that the answers name, each once, in the order of their creation."""
    return list({answer["id"]: answer for answer in answers}.values())


def late(answers: list[dict[str, Any]]) -> list[float]:
    """How long (s) before the instant of the job the next put was answered, for each put that a busy machine delayed past LEAST_S."""
    left = [_seconds(job["scheduled_at"]) - _seconds(put["answered_at"]) for job, put in itertools.pairwise(answers)]
    return [seconds for seconds in left if seconds < LEAST_S]


def _seconds(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()


def test_a_put_each_300_ms_with_a_delay_of_a_second_makes_one_run(client: Punctual) -> None:
    answers = put_for(client, "a-second", BURST_S, BETWEEN_S, debounce="1s")
    jobs = ended(client, jobs_of(answers), 40)
    assert len(jobs) <= 1 + len(late(answers)), f"{len(jobs)} runs, and only the late puts {late(answers)} may begin one"
    for job in jobs:
        puts = [answer for answer in answers if answer["id"] == job["id"]]
        last = puts[-1]
        assert (job["status"], job["output"], job["scheduled_at"]) == ("succeeded", last["payload"]["message"], last["scheduled_at"])
        assert job["puts"] == len(puts) and len(job["attempts"]) == 1
        assert [answer["outcome"] for answer in puts] == ["created"] + ["replaced"] * (len(puts) - 1)
        assert 0 <= job["start_delay_ms"] < 1_000


def test_a_longest_wait_starts_runs_under_steady_puts(client: Punctual) -> None:
    answers = put_for(client, "steady", 12, 0.5, debounce="2s", max_wait="4s")
    done = ended(client, jobs_of(answers), 40)
    waits = [_seconds(job["scheduled_at"]) - _seconds(job["created_at"]) for job in done]
    assert len(done) in (3, 4) and all(0 <= wait <= 4 for wait in waits) and waits[:-1] == [4.0] * (len(done) - 1)
    assert sum(job["puts"] for job in done) == len(answers)


def test_a_throttle_answers_the_job_that_won_also_after_its_end(client: Punctual) -> None:
    first = client.request("PUT", PUT + "warning", {"throttle": "1h", "message": "first"})
    assert first["outcome"] == "created"
    ended(client, [first], 40)
    again = client.request("PUT", PUT + "warning", {"throttle": "1h", "message": "second"})
    assert (again["outcome"], again["id"], again["output"]) == ("throttled", first["id"], "first")


def test_a_singleton_answers_the_job_that_has_not_ended(client: Punctual) -> None:
    first = client.request("PUT", PUT + "sync", {"singleton": True, "delay": "2s", "message": "first"})
    again = client.request("PUT", PUT + "sync", {"singleton": True, "message": "second"})
    assert (first["outcome"], again["outcome"], again["id"]) == ("created", "kept", first["id"])
    ended(client, [first], 40)
    after = client.request("PUT", PUT + "sync", {"singleton": True, "message": "third"})
    assert after["outcome"] == "created" and after["id"] != first["id"]
