"""Users at the limit of their quotas create as many jobs as they may: not fewer, and hardly more."""

from collections.abc import Sequence

import pytest

from tests.simulation.quotas import at_the_quota
from tests.simulation.sabotage import SABOTAGES, find
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


@pytest.mark.soak  # the long tests try each guard, with any oracle
@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("stay in the tally", "below_rate"),
        ("without its ceiling", "above_rate"),
        ("at the start of a block", "above_rate"),
        ("stay in the stock", "below_stock"),
        ("all freed jobs are believed", "above_stock"),
    ],
)
def test_it_notices_a_removed_guard(name: str, oracle: str) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name]
    found = find(removed, [removed.seed, *range(1, 6)])
    assert found is not None and found.oracle == oracle
