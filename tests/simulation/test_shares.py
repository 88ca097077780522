"""What one user does stops no other user: executor time, the direct path of many processes, the retry lane."""

import pytest

from tests.simulation.shares import AT, LONG_MS, SCENES, long_jobs


@pytest.mark.parametrize("scene", ["retries", *(pytest.param(name, marks=pytest.mark.long) for name in SCENES if name != "retries")])
def test_the_jobs_of_another_user_start_within_a_second(scene: str) -> None:
    made, _ = SCENES[scene]
    world = made()
    assert world.latest() <= 1_000
    assert not world.report.violations


@pytest.mark.long
@pytest.mark.parametrize("scene", SCENES)
def test_without_the_bound_they_are_late(scene: str) -> None:
    made, without = SCENES[scene]
    with without():
        assert made().latest() > 5_000


@pytest.mark.parametrize("apart_ms", [300, 6_000])
def test_the_bound_holds_however_far_apart_long_jobs_start(apart_ms: int) -> None:
    assert long_jobs(apart_ms).latest() <= 1_000


@pytest.mark.long
def test_a_job_over_the_bound_starts_soon_after_an_end_with_few_claims() -> None:
    world = long_jobs(count=60)
    world.run_until(AT + LONG_MS + 20_000)
    starts = [at - AT for at in world.starts_of("anton")]
    assert len(starts) == 60 and max(starts) <= LONG_MS + 15_000, starts
    assert sum(at < LONG_MS for at in starts) > 20, "the others wait for an end"
    assert max(world.claims_of("anton")) <= 4
