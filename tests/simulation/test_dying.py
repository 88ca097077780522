"""Executors that die before they start their jobs end none of them; a job that kills its executors ends."""

import pytest

from tests.simulation.dying import JOBS, POISON, dying
from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.seeds import each


@each([1, 2], range(3, 5), range(5, 40))
def test_jobs_start_once_executors_live_again_and_poison_ends(seed: int) -> None:
    world = dying(seed)
    assert world.report.violations == {}, world.report.examples
    assert len(world.begun) == JOBS + POISON


@pytest.mark.soak  # the long tests try each guard, with any oracle
@pytest.mark.parametrize(("name", "oracle"), [("six crashes", "failed_unstarted"), ("no start of a job", "poison_open")])
def test_it_notices_a_removed_guard_of_dying_executors(name: str, oracle: str) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name]
    found = find(removed, [removed.seed])
    assert found is not None and found.oracle == oracle
