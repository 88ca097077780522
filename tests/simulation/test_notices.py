"""Notices in virtual time: receivers that hang delay no other owner's notices."""

import pytest

from tests.simulation.notices import (
    FAILS,
    HANGS,
    SLOW,
    Crowd,
    NoticeWorld,
    beside_a_hanging_receiver,
    beside_several,
    with_a_receiver_that_throttles,
    with_recoveries,
)
from tests.simulation.sabotage import SABOTAGES, find
from tests.simulation.seeds import each


@each([1], range(2, 4), range(4, 8))
def test_notices_are_punctual_beside_receivers_that_hang(seed: int) -> None:
    report = beside_a_hanging_receiver(seed).report
    assert report.violations == {} and report.calls["anton"] > 50, report


@each([1], range(2, 4), range(4, 8))
def test_notices_are_punctual_and_complete_beside_all_kinds_of_receivers(seed: int) -> None:
    report = beside_several(seed).report
    assert report.violations == {} and report.most_receives < 100, report


@each([1], range(2, 4), range(4, 8))
def test_no_receiver_gets_a_failure_after_its_recovery(seed: int) -> None:
    report = with_recoveries(seed).report
    assert report.violations == {} and report.most_receives < 100, report


@pytest.mark.long
@each([1], range(2, 4), range(4, 8))
def test_a_receiver_that_throttles_gets_every_notice_and_few_calls(seed: int) -> None:
    report = with_a_receiver_that_throttles(seed).report
    assert report.violations == {} and report.calls["ina"] < 900, report


@pytest.mark.long
@pytest.mark.parametrize("processes", [2, 5])
@pytest.mark.parametrize("crowd", [Crowd("anton", 1_000, 1, HANGS), Crowd("anton", 1_000, 1, FAILS), Crowd("anton", 300, 1, SLOW)])
def test_notices_are_punctual_beside_a_large_crowd(crowd: Crowd, processes: int) -> None:
    report = NoticeWorld(1, [crowd], processes=processes, minutes=15).run()
    assert report.violations == {}, report


@pytest.mark.long
@pytest.mark.parametrize("name", ["wait for their receivers", "take all places", "no further messages", "until an invocation ends"])
def test_the_simulation_notices_a_removed_guard_of_notices(name: str) -> None:
    (removed,) = [each for each in SABOTAGES if name in each.name]
    found = find(removed, range(1, 4))
    assert found is not None and found.oracle == "late"


@pytest.mark.long
def test_the_simulation_notices_a_receiver_that_is_not_paced() -> None:
    (removed,) = [each for each in SABOTAGES if "is not paced" in each.name]
    found = find(removed, range(1, 3))
    assert found is not None and found.oracle == "lost"


def test_the_simulation_notices_recoveries_that_do_not_wait() -> None:
    (removed,) = [each for each in SABOTAGES if "recoveries do not wait" in each.name]
    found = find(removed, range(1, 4))
    assert found is not None and found.oracle == "after its recovery"
