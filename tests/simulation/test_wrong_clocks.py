"""Ticks with wrong clocks delay no job, and clocks that differ end no lease of a worker early."""

import pytest

from tests.simulation.sabotage import SABOTAGES, find, skewed
from tests.simulation.seeds import each
from tests.simulation.wrong_clocks import wrong_ticks


@each([1], range(2, 4), range(4, 40))
def test_no_job_is_late_by_a_tick_with_a_wrong_clock(seed: int) -> None:
    report = wrong_ticks(seed).report
    assert report.violations == {}, report.examples
    assert report.starts > 400


@each([1], range(2, 4), range(4, 20))
def test_no_worker_loses_its_lease_by_clocks_that_differ_by_five_seconds(seed: int) -> None:
    report = skewed(seed).report
    assert report.violations == {}, report.examples
    assert report.faults["call-back rescued"] > 20


@pytest.mark.soak  # the long tests try each guard, with any oracle
@pytest.mark.parametrize(
    ("name", "oracle"),
    [("whatever time", "late_though_free"), ("planned too late", "late_though_free"), ("by one clock", "rescued_early")],
)
def test_it_notices_a_removed_guard_of_wrong_clocks(name: str, oracle: str) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name]
    found = find(removed, [removed.seed])
    assert found is not None and found.oracle == oracle
