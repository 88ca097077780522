"""Users at the limit of their quotas create as many jobs as they may: not fewer, and hardly more."""

from collections.abc import Sequence

import pytest

from tests.simulation.quotas import at_the_quota
from tests.simulation.seeds import many


@pytest.mark.parametrize("seed", range(1, 5))
def test_as_many_jobs_are_admitted_as_the_quotas_allow(seed: int) -> None:
    report = at_the_quota(seed).report
    assert report.violations == {}, report.examples


@many(range(5, 9), range(9, 200))
def test_as_many_jobs_are_admitted_as_the_quotas_allow_in_many_worlds(seeds: Sequence[int]) -> None:
    for seed in seeds:
        report = at_the_quota(seed).report
        assert report.violations == {}, report.examples
