"""The spans of a simulated world: each attempt passes its own on, no id stands for two, and each trace is one tree."""

from collections.abc import Callable

import pytest

from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.traced import TracedWorld, traced, traced_in_trouble

pytestmark = pytest.mark.long


@pytest.mark.parametrize("scene", [traced, traced_in_trouble])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_attempt_passes_its_span_on_and_the_spans_are_trees(scene: Callable[[int], TracedWorld], seed: int) -> None:
    world = scene(seed)
    assert world.report.violations == {}, world.report.examples
    names = [span["name"].split()[0] for _, span in world.exported.values()]
    assert all(names.count(name) > 100 for name in ("create", "wait", "process")) and len(world.passed) > 100


@pytest.mark.parametrize(
    ("name", "oracle"),
    [("all attempts have one span", "span_of_two_things"), ("attempts pass the wait on", "passed_other_span")],
)
def test_the_simulation_notices_a_wrong_span(name: str, oracle: str) -> None:
    (removed,) = [each for each in SABOTAGES if each.name == name]
    found = find(removed, range(removed.seed, removed.seed + 4))
    assert found is not None and found.oracle == oracle
