"""Of several runs of a task that come at once, none waits for a run lock that nobody has."""

from collections.abc import Sequence

import pytest

from scheduler.model.job import Overlap
from tests.simulation.overlaps import at_once
from tests.simulation.seeds import many


@pytest.mark.parametrize("overlap", Overlap)
def test_no_run_waits_for_nobody(overlap: Overlap) -> None:
    for seed in (1, 2):
        world = at_once(seed, overlap)
        assert world.report.violations == {}, world.report.examples
        assert world.counts.keys() <= {"succeeded", "skipped", "cancelled"}


@many(range(3, 5), range(5, 60))
@pytest.mark.parametrize("overlap", Overlap)
def test_no_run_waits_for_nobody_in_many_worlds(overlap: Overlap, seeds: Sequence[int]) -> None:
    for seed in seeds:
        world = at_once(seed, overlap)
        assert world.report.violations == {}, world.report.examples
