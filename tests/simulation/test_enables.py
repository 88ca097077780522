"""Jobs of a disabled user wait without being polled, and start at once when the user is enabled, whatever kind of job they are."""

from collections import Counter
from collections.abc import Sequence

import pytest

from lab.world.faults import ROUGH
from tests.simulation.enables import MOST_CLAIMS, disabled_often
from tests.simulation.seeds import many

KINDS = {"planned", "direct", "run", "run now", "retry", "ordering key", "limited target", "call-back", "silent worker"}


@pytest.mark.long
def test_a_job_of_a_disabled_user_starts_after_the_enable() -> None:
    world = disabled_often(1)
    assert world.report.violations == {}, world.report.examples
    assert 0 < world.most_claims <= MOST_CLAIMS


@pytest.mark.long
def test_jobs_of_every_kind_start_after_each_enable() -> None:
    waited: Counter[str] = Counter()
    for seed in range(1, 4):
        world = disabled_often(seed)
        assert world.report.violations == {}, world.report.examples
        assert 0 < world.most_claims <= MOST_CLAIMS
        waited += world.waited
    assert KINDS <= waited.keys()


@many(range(7, 8), range(8, 100))
def test_jobs_of_every_kind_start_after_each_enable_in_many_worlds(seeds: Sequence[int]) -> None:
    for seed in seeds:
        world = disabled_often(seed)
        assert world.report.violations == {}, world.report.examples


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
def test_under_all_faults_jobs_may_be_late_and_no_promise_is_broken(seed: int) -> None:
    report = disabled_often(seed, ROUGH).report
    assert report.violations.keys() <= {"late_after_enable", "polled"}, report.examples
