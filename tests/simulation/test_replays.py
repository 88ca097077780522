"""Replays in virtual time: one new job for each request or match, and originals that stay as they are."""

from collections.abc import Callable

import pytest

from lab.world.faults import ROUGH
from tests.simulation.replays import replayed, replayed_by_dying_steps, replayed_in_trouble
from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.world import World


@pytest.mark.parametrize("scene", [replayed, replayed_by_dying_steps, replayed_in_trouble])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))])
def test_each_match_is_replayed_once_and_counted_right(scene: Callable[[int], World], seed: int) -> None:
    report = scene(seed).report
    assert report.violations == {}, report.examples


def test_owners_replay_jobs_in_the_default_worlds() -> None:
    report = World(3, ROUGH).run(300, 10, tasks=2, ordered=30, wind_down=95)
    assert report.violations == {}, report.examples
    assert report.faults["replays"] > 5


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "oracle"),
    [("random id", "replayed_twice"), ("waits for the jobs", "replay_kept"), ("at the time of the step", "replayed_twice")],
)
def test_the_simulation_notices_a_removed_guard_of_replays(name: str, oracle: str) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name and "replay" in each.name]
    found = find(removed, range(removed.seed, removed.seed + 4))
    assert found is not None and found.oracle == oracle
