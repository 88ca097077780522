"""Redrives in virtual time: in the order of their ordering keys, one open job of a key, each job counted once."""

from collections.abc import Callable

import pytest

from tests.simulation.redrives import redriven, redriven_by_dying_steps, redriven_in_trouble
from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.world import World


@pytest.mark.parametrize("scene", [redriven, redriven_by_dying_steps, redriven_in_trouble])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3, 4))])
def test_redrives_keep_the_order_of_keys_and_count_right(scene: Callable[[int], World], seed: int) -> None:
    report = scene(seed).report
    assert report.violations == {}, report.examples


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("newest first", "redriven_out_of_order"),
        ("order of their ids", "redriven_out_of_order"),
        ("no job waits for an earlier one", "redriven_out_of_order"),
        ("open job has its key", "redriven_beside"),
        ("without storing what", "miscounted"),
    ],
)
def test_the_simulation_notices_a_removed_guard_of_redrives(name: str, oracle: str) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name]
    found = find(removed, range(removed.seed, removed.seed + 4))
    assert found is not None and found.oracle == oracle
