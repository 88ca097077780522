"""The scenarios of `make demo` and `make burst`, their jobs, their promises and their judge, in virtual time."""

from datetime import timedelta
from typing import Any

import pytest
from punctual.testing import Call, Memory

from lab.judge import Verdict
from lab.scenarios import burst, demo
from local import receiver


class Recorded:
    """The part of `local.receiver.Receiver` that the scenario uses, over the calls of a memory."""

    earlier, copies = 0, 1

    def __init__(self) -> None:
        self.memory = Memory(answer=self._answer, now="2026-11-20T10:00:00Z")

    def _answer(self, call: Call) -> int:
        return receiver.answer(call.path, len(self.memory.calls_to(call.path)) - 1)

    def url(self, path: str) -> str:
        return f"https://receiver.example.com{path}"

    def calls(self, path: str | None = None) -> list[receiver.Call]:
        chosen = self.memory.calls if path is None else self.memory.calls_to(path)
        seen = [(call, round(call.at.timestamp() * 1000) - self.earlier) for call in chosen]
        made = [receiver.Call(call.method, call.path, at, call.headers, call.body, call.status or 0, 0) for call, at in seen]
        return made * self.copies


def verdict(recorded: Any, skew: tuple[int, int] = (0, 1)) -> Verdict:
    """Run the scenario, and judge it by calls that are `skew` other than they were: earlier (ms), and as often."""
    memory = recorded.memory
    start = memory.clock.now + demo.LEAD
    plan = list(demo.jobs(recorded, start))
    task = demo.regular_task(recorded, start).create(memory.client)
    ids = demo.post(memory.client, plan)
    memory.clock.advance("1m")
    recorded.earlier, recorded.copies = skew
    return demo.judged(memory.client, recorded, task, plan, ids, lambda text: None, memory.clock.advance)[0]


def test_the_jobs_of_the_demo_keep_their_promises_in_virtual_time() -> None:
    found = verdict(Recorded())
    assert found.complaints == [] and found.jobs == found.succeeded == 60 + demo.RUNS
    assert (found.early, found.lost, found.duplicated, found.late_p99_ms) == (0, 0, 0, 0)


def test_the_judge_sees_what_is_broken() -> None:
    found = verdict(Recorded(), (1, 2))
    assert found.early >= 9 and found.duplicated >= 9 and found.lost == 0


def test_jobs_that_the_engine_does_not_run_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "PATIENCE", -39)
    recorded = Recorded()
    recorded.memory.client.system.pause(all=True)
    found = verdict(recorded)
    assert found.lost == found.jobs == 60 + demo.RUNS


def burst_of(count: int, *, until: timedelta) -> Verdict:
    """Run the scenario of `make burst` until this time after its instant."""
    with Memory(now="2026-11-20T10:00:00Z") as memory:
        instant = memory.clock.now + timedelta(seconds=12)
        ids = burst.post(memory.client, count, instant)
        memory.clock.move_to(instant + until)
        return burst.judged(memory.client, ids, instant, lambda text: None, memory.clock.advance if until > timedelta() else lambda _: None)


def test_a_burst_starts_at_its_instant_in_virtual_time() -> None:
    found = burst_of(200, until=timedelta(seconds=3))
    assert found.complaints == [] and (found.succeeded, found.late_p99_ms) == (200, 0)


def test_a_burst_whose_instant_does_not_come_is_lost() -> None:
    assert burst_of(3, until=timedelta(seconds=-1)).lost == 3
