"""After each resume, what fell due in the pause starts at once, whatever kind of job it is."""

from collections import Counter

import pytest

from tests.simulation.resumes import resumed_often

KINDS = {"planned", "direct", "run", "run now", "retry", "ordering key", "limited target", "call-back", "silent worker"}


def test_jobs_of_every_kind_start_after_each_resume() -> None:
    waited: Counter[str] = Counter()
    for seed in range(5, 9):
        world = resumed_often(seed)
        assert world.report.violations == {}, world.report.examples
        waited += world.waited
    assert KINDS <= waited.keys()


@pytest.mark.long
def test_jobs_of_every_kind_start_after_each_resume_in_many_worlds() -> None:
    for seed in (*range(1, 5), *range(9, 60)):
        world = resumed_often(seed)
        assert world.report.violations == {}, world.report.examples
