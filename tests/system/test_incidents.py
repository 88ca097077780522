"""Five incidents of an operator: the status names each within a minute, and one command mends it.

A target that was down, a body that the target refuses, a flood of one user, a task that is longer than its interval, a forgotten pause.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from punctual import Punctual

from local.receiver import FAILURES
from tests.system.conftest import System, soon, until

pytestmark = pytest.mark.soak
ROOT = Path(__file__).parents[2]
Problem = Mapping[str, Any]
A_MINUTE = 60
PAUSED_S = 4  # an executor at work starts jobs for up to 2.5 s after a pause


class Desk:
    """The place of an operator: the status of all users, and the command line."""

    def __init__(self, system: System) -> None:
        self.client = system.client()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PUNCTUAL_")},
            "PUNCTUAL_URL": system.address,
            "PUNCTUAL_TOKEN": self.client.token() or "",
            "PYTHONPATH": str(ROOT / "client/src"),
        }

    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.client.request("GET", "/status", query={"scope": "all"})
        return found

    def problem(self, kind: str, **fields: Any) -> Problem:
        """Return the problem of this kind with these fields, once the status names it; fails after a minute, and shows the status."""
        try:
            return until(A_MINUTE, lambda: next(iter(self._found(kind, fields)), None))
        except AssertionError:
            raise AssertionError(f"no {kind} with {fields}: {json.dumps(self.status())}") from None

    def mended(self, kind: str, **fields: Any) -> None:
        until(A_MINUTE, lambda: not list(self._found(kind, fields)))

    def run(self, command: str, *more: str) -> str:
        """Run a command as it is shown."""
        name, *words = shlex.split(command)
        assert name == "punctual"
        done = subprocess.run(
            [sys.executable, "-m", "punctual", *words, *more],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def _found(self, kind: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
        for each in self.status()["problems"]:
            if each["kind"] == kind and all(each[name] == value for name, value in fields.items()):
                yield each


@pytest.fixture(scope="module")
def desk(deployed: System) -> Desk:
    return Desk(deployed)


def posted(client: Punctual, url: Callable[[int], str], count: int) -> list[str]:
    jobs = [{"type": "http", "payload": {"url": url(n)}, "max_attempts": 1, "execute_at": soon(2 + n / 10)} for n in range(count)]
    return [job.id for job in client.jobs.create_many(jobs).all_jobs()]


def statuses(client: Punctual, jobs: list[str]) -> set[str]:
    return {client.jobs.get(id).status for id in jobs}


def test_a_target_that_was_down(deployed: System, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = deployed.client("shop")
    monkeypatch.setitem(FAILURES, "down", 10**6)
    jobs = posted(shop, lambda n: deployed.receiver.url(f"/down/shop-{n}"), 45)
    breaker = desk.problem("breaker_open", owner_name="shop")
    failures = desk.problem("failures", owner_name="shop")
    assert str(deployed.receiver.port) in failures["title"] and "500" in failures["title"]
    monkeypatch.setitem(FAILURES, "down", 0)
    desk.run(breaker["remedy"]["command"], "--reason", "the target is back")
    desk.mended("breaker_open", owner_name="shop")
    until(A_MINUTE, lambda: statuses(shop, jobs) <= {"failed", "succeeded"})
    for group in [each for each in desk.status()["problems"] if each["kind"] == "failures" and each["owner_name"] == "shop"]:
        desk.run(group["remedy"]["command"], "--yes")
    until(A_MINUTE, lambda: statuses(shop, jobs) == {"succeeded"})
    desk.mended("failures", owner_name="shop")


def test_a_body_that_the_target_refuses(deployed: System, desk: Desk) -> None:
    forms = deployed.client("forms")
    (job,) = posted(forms, lambda n: deployed.receiver.url("/status/422/forms"), 1)
    problem = desk.problem("failures", owner_name="forms")
    assert "422" in problem["title"] and problem["count"] == 1
    shown = desk.run(problem["inspect"])
    assert job in shown and "HTTP 422" in shown
    again = desk.run(f"punctual jobs create http POST {deployed.receiver.url('/ok/forms')} -d '{{}}' -q").strip()
    until(A_MINUTE, lambda: desk.client.jobs.get(again).status == "succeeded")


def _of_flood(desk: Desk) -> Mapping[str, Any] | None:
    return next((each for each in desk.status()["waiting"] if each["owner_name"] == "flood"), None)


def test_a_flood_of_one_user(deployed: System, desk: Desk) -> None:
    flood = deployed.client("flood")
    work = {"type": "http", "payload": {"url": deployed.receiver.url("/slow/10/flood")}}
    for _ in range(3):
        assert not flood.jobs.create_many([work] * 1_000).refused
    waits = until(A_MINUTE, lambda: _of_flood(desk))
    command, dry_run = waits["command"].rsplit(" ", 1)
    assert dry_run == "--dry-run" and desk.run(waits["command"])
    problem = desk.problem("late_jobs")
    assert "are of flood" in problem["title"] and desk.run(problem["inspect"])
    desk.run(command, "--yes")
    until(A_MINUTE, lambda: _of_flood(desk) is None)


def test_a_task_that_is_longer_than_its_interval(deployed: System, desk: Desk) -> None:
    sync = deployed.client("sync")
    slow = deployed.receiver.url("/slow/25/sync")
    task = sync.tasks.create("Sync", type="http", payload={"url": slow}, schedule={"rate": "10 seconds"}).id
    until(180, lambda: len(list(sync.tasks.jobs(task, status="skipped"))) >= 3)
    problem = desk.problem("task_skips", task=task)
    assert problem["title"].startswith("The task Sync skipped") and problem["reason"].startswith("overlap")
    desk.run(problem["remedy"]["command"])
    assert sync.tasks.get(task).overlap == "queue_one"
    sync.tasks.delete(task)


@contextmanager
def a_forgotten_pause(desk: Desk) -> Iterator[None]:
    desk.run("punctual system pause one-time --reason 'the bank is closed'", "--yes")
    try:
        yield
    finally:
        desk.client.request("POST", "/system/resume", {"all": True})


def test_a_forgotten_pause(deployed: System, desk: Desk) -> None:
    bank = deployed.client("bank")
    with a_forgotten_pause(desk):
        job = bank.jobs.create(message="balance", execute_at=soon(PAUSED_S)).id
        problem = desk.problem("lane_paused", lane="one-time", severity="critical")
        assert problem["reason"] == "the bank is closed" and problem["by_name"] and problem["count"]
        assert "lane one-time is paused" in desk.run(f"punctual jobs show {job} --owner bank")
        desk.run(problem["remedy"]["command"])
        desk.mended("lane_paused", lane="one-time")
        until(A_MINUTE, lambda: bank.jobs.get(job).status == "succeeded")


@pytest.mark.parametrize("is_busy", [False, True])
def test_jobs_start_within_two_seconds_of_a_resume(deployed: System, desk: Desk, is_busy: bool) -> None:
    waiting, others = deployed.client(f"waiting-{is_busy}"), deployed.client(f"busy-{is_busy}")
    if is_busy:
        stream = [{"message": "beside", "execute_at": soon(5 + n / 20)} for n in range(1_000)]
        assert not others.jobs.create_many(stream).refused
    with a_forgotten_pause(desk):
        planned = [{"message": f"planned {n}", "execute_at": soon(8)} for n in range(5)]
        direct = [{"message": f"soon {n}", "execute_at": soon(PAUSED_S)} for n in range(5)]
        jobs = [job.id for job in waiting.jobs.create_many(planned + direct).all_jobs()]
        until(A_MINUTE, lambda: sum(each["count"] for each in desk.status()["waiting"] if each["owner_name"] == f"waiting-{is_busy}") == 10)
        resumed_at = datetime.now(UTC)
        desk.client.request("POST", "/system/resume", {"lane": "one-time"})
        until(A_MINUTE, lambda: statuses(waiting, jobs) == {"succeeded"})
    started = [waiting.jobs.get(id).attempts[0].started_at for id in jobs]
    delays = sorted((at - resumed_at).total_seconds() for at in started if at is not None)
    assert len(delays) == 10 and delays[-1] <= 2, delays
