"""Long queues: a limited target never stands idle while a job for it is due, and a waiting job lies still."""

from collections.abc import Callable

import pytest

from scheduler.model import lifecycle
from tests.simulation.queues import BACKLOG, SCENES, QueuesWorld, crashed, removed
from tests.simulation.sabotage import SABOTAGES, find


@pytest.mark.parametrize("scene", SCENES)
def test_a_queue_is_work_conserving_and_lies_still(scene: Callable[[int], QueuesWorld]) -> None:
    report = scene(1).report
    assert report.violations == {}, report.examples


def test_a_removed_limit_lets_all_waiting_jobs_start() -> None:
    world = removed(1)
    assert sum(not lifecycle.is_open(job) for job in world.jobs.rows.values()) == BACKLOG + 1


@pytest.mark.long
@pytest.mark.parametrize("limit", [{"rate": 2.0}, {"concurrency": 2}])
def test_a_queue_recovers_from_a_crash_after_any_effect(limit: dict[str, float]) -> None:
    for fatal in range(1, 16):
        world = crashed(fatal, **limit)
        left = [job.id for job in world.jobs.rows.values() if lifecycle.is_open(job)]
        assert left == [] and not world.report.violations.keys() - {"idle_target", "claimed_in_queue"}, (fatal, world.report.examples)
        assert world.report.violations["idle_target"] < 60, "a lost step is requested again within a minute"


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("release steps that do not come again", "idle_target"),
        ("expired jobs take starts", "idle_target"),
        ("users of a target queue do not take turns", "waited_beside"),
        ("a job that reports by call-back frees its slot", "more_at_once"),
        ("released jobs queue again", "claimed_in_queue"),
        ("every job of an ordering queue is checked soon", "claimed_in_queue"),
    ],
)
def test_it_notices_a_removed_guard_of_the_queues(name: str, oracle: str) -> None:
    (removed_guard,) = [each for each in SABOTAGES if each.name == name]
    found = find(removed_guard, [removed_guard.seed])
    assert found is not None and found.oracle == oracle
