"""Ticks with wrong clocks delay no job, and clocks that differ end no lease of a worker early."""

import pytest

from tests.simulation.sabotage import skewed
from tests.simulation.seeds import each
from tests.simulation.wrong_clocks import wrong_ticks


@each([1], range(2, 4), range(4, 40))
def test_no_job_is_late_by_a_tick_with_a_wrong_clock(seed: int) -> None:
    report = wrong_ticks(seed).report
    assert report.violations == {}, report.examples
    assert report.starts > 400


@pytest.mark.long
@each([1], range(2, 4), range(4, 20))
def test_no_worker_loses_its_lease_by_clocks_that_differ_by_five_seconds(seed: int) -> None:
    report = skewed(seed).report
    assert report.violations == {}, report.examples
    assert report.faults["call-back rescued"] > 20
