"""Executors that die before they start their jobs end none of them; a job that kills its executors ends."""

from tests.simulation.dying import JOBS, POISON, dying
from tests.simulation.seeds import each


@each([1, 2], range(3, 5), range(5, 40))
def test_jobs_start_once_executors_live_again_and_poison_ends(seed: int) -> None:
    world = dying(seed)
    assert world.report.violations == {}, world.report.examples
    assert len(world.begun) == JOBS + POISON
