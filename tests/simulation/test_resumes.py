"""After each resume, what fell due in the pause starts at once, whatever kind of job it is."""

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.simulation.resumes import resumed_often
from tests.simulation.seeds import many

KINDS = {"planned", "direct", "run", "run now", "retry", "ordering key", "limited target", "call-back", "silent worker"}


@pytest.mark.long
def test_jobs_of_every_kind_start_after_each_resume() -> None:
    waited: Counter[str] = Counter()
    for seed in range(5, 9):
        world = resumed_often(seed)
        assert world.report.violations == {}, world.report.examples
        waited += world.waited
    assert KINDS <= waited.keys()


@many(range(1, 5), range(9, 160))
def test_jobs_of_every_kind_start_after_each_resume_in_many_worlds(seeds: Sequence[int]) -> None:
    for seed in seeds:
        world = resumed_often(seed)
        assert world.report.violations == {}, world.report.examples
