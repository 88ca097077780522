"""Nothing is dropped without a record, and nothing runs twice, when tasks are changed while plan is away."""

import pytest

from tests.simulation.behind import changed_behind
from tests.simulation.sabotage import SABOTAGES, find


@pytest.mark.parametrize("seed", range(1, 6))
def test_each_time_has_its_run_or_its_record(seed: int) -> None:
    report = changed_behind(seed).report
    assert report.violations == {}, report.examples


@pytest.mark.long
def test_each_time_has_its_run_or_its_record_in_many_worlds() -> None:
    for seed in range(6, 80):
        report = changed_behind(seed).report
        assert report.violations == {}, report.examples


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("an edit drops missed runs", "run_missing"),
        ("a pause records no missed runs", "run_missing"),
        ("runs of an earlier generation planned again", "missed_run_twice"),
    ],
)
def test_it_notices_a_removed_guard_of_missed_runs(name: str, oracle: str) -> None:
    (removed,) = [each for each in SABOTAGES if each.name == name]
    found = find(removed, [removed.seed])
    assert found is not None and found.oracle == oracle
