"""Ticks with wrong clocks delay no job."""

import pytest

from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.wrong_clocks import wrong_ticks


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 40))])
def test_no_job_is_late_by_a_tick_with_a_wrong_clock(seed: int) -> None:
    report = wrong_ticks(seed).report
    assert report.violations == {}, report.examples
    assert report.starts > 400


@pytest.mark.parametrize("name", ["whatever clock", "planned too late"])
def test_it_notices_a_removed_guard_of_wrong_clocks(name: str) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name]
    found = find(removed, [removed.seed])
    assert found is not None and found.oracle == "late_though_free"
