"""The simulation notices each guard that is taken away."""

import pytest

from tests.simulation.sabotage import SABOTAGES, Sabotage, find


@pytest.mark.long
@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda each: each.name)
def test_the_simulation_notices(sabotage: Sabotage) -> None:
    assert find(sabotage, [sabotage.seed]) is not None


def test_it_notices_a_start_100_ms_ahead() -> None:
    (early,) = [each for each in SABOTAGES if "ahead" in each.name]
    found = find(early, [1], jobs=50, minutes=3, tasks=0, ordered=0)
    assert found is not None and found.oracle == "early"
