"""The port `RunTimers`: over both implementations."""

from dataclasses import replace

from bench.operations import Recorder
from scheduler.model.job import JobKey
from scheduler.model.run_timer import RunTimer
from scheduler.storage.aws.run_timers import DynamoRunTimers
from scheduler.storage.ports import RunTimers
from scheduler.storage.ports.run_timers import PARTS
from scheduler.tasks.run_timers import START, item_of
from tests.contract.test_write_units import made, recorder

__all__ = ["recorder"]

NOW = 1_800_000_000_000


def timer(number: int = 1, at: int = NOW) -> RunTimer:
    return RunTimer(at, JobKey("ann", f"run-{number}"), NOW - 5, at)


def stored(run_timers: RunTimers, until: int = NOW) -> list[RunTimer]:
    return [each for part in range(PARTS) for each in run_timers.timers(part, START, until, 100)]


def test_timers_are_read_by_their_first_deadline(run_timers: RunTimers) -> None:
    armed = [timer(number, NOW + number % 3) for number in range(30)]
    run_timers.arm(armed)
    run_timers.arm([])
    assert sorted(stored(run_timers, NOW + 2), key=lambda each: each.position) == sorted(armed, key=lambda each: each.position)
    assert {each.at for each in stored(run_timers, NOW + 1)} == {NOW, NOW + 1}


def test_a_page_goes_on_behind_a_timer(run_timers: RunTimers) -> None:
    run_timers.arm([timer(number) for number in range(30)])
    for part in range(PARTS):
        found = run_timers.timers(part, START, NOW, 100)
        assert run_timers.timers(part, found[2].position, NOW, 2) == found[3:5]
        assert {item_of(each).part for each in found} == {str(part)}


def test_a_moved_timer_keeps_its_place(run_timers: RunTimers) -> None:
    first = timer()
    run_timers.arm([first])
    moved = replace(first, next_at=NOW + 9_000, judged_until=NOW)
    assert run_timers.move(first, moved) and run_timers.move(moved, moved)
    assert stored(run_timers) == [moved]


def test_a_timer_that_was_armed_again_is_neither_moved_nor_dropped(run_timers: RunTimers) -> None:
    first, again = timer(), replace(timer(), armed_at=NOW)
    run_timers.arm([first])
    run_timers.arm([again])
    assert not run_timers.move(first, replace(first, next_at=NOW + 1)) and not run_timers.drop(first)
    assert stored(run_timers) == [again]


def test_a_timer_that_is_gone_is_dropped_again_but_not_moved(run_timers: RunTimers) -> None:
    run_timers.arm([timer()])
    assert run_timers.drop(timer()) and run_timers.drop(timer())
    assert not run_timers.move(timer(), timer()) and stored(run_timers) == []


def test_a_watched_run_costs_three_write_units(recorder: Recorder) -> None:
    """Its timer is armed, set to its second deadline, and dropped. A run that ends before its first deadline costs two."""
    run_timers = DynamoRunTimers(recorder.client, made(recorder, "ledger"))
    run_timers.arm([timer()])
    moved = replace(timer(), next_at=NOW + 9_000, judged_until=NOW)
    run_timers.move(timer(), moved)
    run_timers.drop(moved)
    assert recorder.total() == 3
