"""Jobs by keys in virtual time: at most one open job of a key, no put lost, every answer true."""

import pytest

from lab.world.faults import ROUGH
from scheduler.jobs.by_key import PutOutcome
from tests.simulation.keyed import KeyedWorld, crowded_keys
from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.seeds import each


@each([1], range(2, 5), range(5, 12))
def test_a_key_has_one_open_job_and_loses_no_put_under_faults(seed: int) -> None:
    world = KeyedWorld(seed, ROUGH)
    report = world.run(100, 10, tasks=2, ordered=20)
    assert report.violations == {}, report.examples
    assert all(world.namers.outcomes[outcome] > 20 for outcome in PutOutcome) and world.namers.outcomes["cancelled"] > 10


def test_users_who_race_for_keys_need_nothing_but_the_guards() -> None:
    report = crowded_keys(1).report
    assert report.violations == {}, report.examples


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "oracle", "seed"),
    [
        ("whoever has it", "two_open_of_a_key", 1),
        ("has not ended", "followed_unasked", 5),  # by seed 4, another oracle notices it
        ("stored or not", "put_lost", 1),
        ("put acts again", "put_again", 1),
        ("without the write that fixes it", "put_run_twice", 1),
    ],
)
def test_the_simulation_notices_a_removed_guard_of_keys(name: str, oracle: str, seed: int) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name]
    found = find(removed, range(seed, seed + 5))
    assert found is not None and found.oracle == oracle
