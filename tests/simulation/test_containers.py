"""Short runs with jobs that wait for containers, and the removal of each guard. `python -m tests.simulation.containers` runs more."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from unittest.mock import patch

import pytest

from lab.world.faults import CALM, ROUGH
from scheduler.model import callback_lease, lifecycle
from scheduler.model.job import Job
from scheduler.model.spec import Limit
from scheduler.pipeline import leftover, reconcile
from scheduler.pipeline.execute import Execution
from scheduler.targets import awaited_ends
from tests.simulation.seeds import each
from tests.simulation.world import Report, World


def run(seed: int, jobs: int = 150) -> Report:
    return World(seed, ROUGH, awaited=True).run(jobs, 15, wind_down=250)


@each([17], range(1, 4), range(4, 9))
def test_no_container_starts_twice_or_ends_its_job_wrongly(seed: int) -> None:
    report = run(seed)
    assert report.violations == {}, report.examples
    assert report.faults["container"] > 100 and report.faults["start repeated"] and report.faults["container stopped"]


@pytest.mark.long
def test_a_thousand_containers_need_no_function_while_they_run() -> None:
    """They run for ten minutes. Each is checked seven times, which takes 0.1 s, and each job ends within 2 s of its event."""
    world = World(1, CALM, awaited=True)
    containers = world.containers
    assert containers is not None
    containers.faithful = True
    containers.share, containers.takes, containers.timeouts, containers.fails = 1.0, (600_000,), (7_200_000,), (0,)
    world.limited.keys = {"many": Limit("many", 50)}  # a key for one job at a time would take ten minutes a job
    report = world.run(1_000, 1, wind_down=60)
    assert report.violations == {} and report.statuses == {"succeeded": 1_000}
    assert len(containers.late_ms) == 1_000 and max(containers.late_ms) <= 2_000
    assert report.faults["check"] <= 7_000 and report.faults["event ended a job"] >= 990


def _deciding(instead: leftover.Decision) -> AbstractContextManager[object]:
    """Reconciling decides otherwise about a job whose check is lost."""
    decide = leftover.decide

    def other(job: Job | None, slot: str, now: int, *rest: object, **options: object) -> leftover.Decision:
        found = decide(job, slot, now, *rest, **options)  # type: ignore[arg-type]
        awaits = job is not None and job.slot == slot and job.awaited is not None and lifecycle.waits(job)
        return instead if awaits and now >= callback_lease.ends_at(job) else found  # type: ignore[arg-type]

    return patch.object(reconcile.leftover, "decide", other)


def _cut_checks() -> AbstractContextManager[object]:
    """An executor that lets its jobs go settles checks, too, as if their work had ended with it."""
    let_go = Execution._let_go

    def all_of_them(self: Execution, *rest: object) -> None:
        with patch.object(lifecycle, "waits", lambda job: False):
            let_go(self, *rest)  # type: ignore[arg-type]

    return patch.object(Execution, "_let_go", all_of_them)


SABOTAGES = {
    "a start that is unclear gets a new token": (lambda: patch.object(lifecycle, "_still_open", lambda job, **_: None), "started_twice"),
    "a stop is judged by the exit code": (lambda: patch.object(awaited_ends, "stopped_by_us", lambda reason: None), "ended_wrongly"),
    "a lost check is not sent again": (lambda: _deciding(leftover.Leave()), "never_ended"),
    "a job whose check is lost is taken back": (lambda: _deciding(leftover.TakeBack()), "ended_wrongly"),
    "a check that is cut ends its job": (_cut_checks, "ended_wrongly"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", SABOTAGES)
def test_a_removed_guard_is_noticed(name: str) -> None:
    remove, oracle = SABOTAGES[name]
    with remove():
        assert oracle in next(_found(), {}), f"no seed shows {oracle}"


def _found() -> Iterator[dict[str, int]]:
    """The violations of the first runs that have some."""
    for seed in range(1, 30):
        if violations := run(seed).violations:
            yield dict(violations)
