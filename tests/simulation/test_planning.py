"""Nothing is dropped without a record, and nothing runs twice, when tasks are changed while plan is away; and plan keeps up."""

from collections.abc import Sequence

import pytest

from tests.simulation.behind import changed_behind
from tests.simulation.catching_up import catching_up
from tests.simulation.many_tasks import many_tasks
from tests.simulation.seeds import many


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
def test_each_time_has_its_run_or_its_record(seed: int) -> None:
    report = changed_behind(seed).report
    assert report.violations == {}, report.examples


@many(range(6, 10), range(10, 100))
def test_each_time_has_its_run_or_its_record_in_many_worlds(seeds: Sequence[int]) -> None:
    for seed in seeds:
        report = changed_behind(seed).report
        assert report.violations == {}, report.examples


@pytest.mark.long
def test_plan_keeps_a_hundred_thousand_minutely_tasks_in_runs() -> None:
    report = many_tasks(1).report
    assert report.violations == {}, report.examples


@pytest.mark.parametrize("seed", range(1, 4))
def test_no_run_is_skipped_while_late_ones_catch_up(seed: int) -> None:
    report = catching_up(seed).report
    assert report.violations == {}, report.examples
