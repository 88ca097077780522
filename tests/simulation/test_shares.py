"""What one user does stops no other user: executor time, the direct path of many processes, the retry lane."""

from collections.abc import Sequence
from functools import partial

import pytest

from tests.simulation.shares import AT, LONG_MS, SCENES, late, long_jobs


def seeds_of(scene: str) -> Sequence[int]:
    """A few of Berta's retries are late in any case, and how many differs with the seed."""
    return (1, 2, 3) if "retries" in scene else (1,)


@pytest.mark.parametrize("scene", ["retries", *(pytest.param(name, marks=pytest.mark.long) for name in SCENES if name != "retries")])
def test_the_jobs_of_another_user_start_within_a_second(scene: str) -> None:
    made, _ = SCENES[scene]
    assert late(made, seeds_of(scene)) <= 1_000


@pytest.mark.long
@pytest.mark.parametrize("scene", SCENES)
def test_without_the_bound_they_are_late(scene: str) -> None:
    made, without = SCENES[scene]
    with without():
        assert late(made, seeds_of(scene)) > 5_000


@pytest.mark.parametrize("apart_ms", [300, 6_000])
def test_the_bound_holds_however_far_apart_long_jobs_start(apart_ms: int) -> None:
    assert late(partial(long_jobs, apart_ms=apart_ms), [1]) <= 1_000


@pytest.mark.long
def test_a_job_over_the_bound_starts_soon_after_an_end_with_few_claims() -> None:
    world = long_jobs(count=60)
    world.run_until(AT + LONG_MS + 20_000)
    starts = [at - AT for at in world.starts_of("anton")]
    assert len(starts) == 60 and max(starts) <= LONG_MS + 15_000, starts
    assert sum(at < LONG_MS for at in starts) > 20, "the others wait for an end"
    assert max(world.claims_of("anton")) <= 4
