"""Limits of keys: never more than a key allows, no key stands idle, no other job is delayed, and nothing is left of an idle key."""

from collections.abc import Callable

import pytest

from scheduler.model.spec import Limit
from tests.simulation.key_limits import OWNER, PLAIN, SCENES, KeysWorld, crashed, even, many, raised
from tests.simulation.sabotage import SABOTAGES, find


@pytest.mark.parametrize("scene", SCENES)
def test_a_key_keeps_its_limit_and_never_stands_idle(scene: Callable[[int], KeysWorld]) -> None:
    world = scene(1)
    assert world.report.violations == {}, world.report.examples
    assert world.left == 0


def test_ten_a_minute_are_ten_a_minute() -> None:
    starts = sorted(even(1).delays[OWNER])
    assert len(starts) == 100 and 0.9 <= 99 * 6_000 / starts[-1] <= 1.1
    assert all(sum(at <= other < at + 60_000 for other in starts) <= 11 for at in starts)


def test_a_raised_limit_applies_within_a_second_and_a_half() -> None:
    world = raised(1)
    soon = [at for at in sorted(world.delays[OWNER]) if 60_000 <= at < 61_500]
    assert len(soon) >= 4, "five at once instead of one"


def p99(delays: list[int]) -> int:
    return sorted(delays)[len(delays) * 99 // 100]


def judge(keys: int) -> None:
    world, without = many(keys), many(keys, limited=False)
    assert world.report.violations == {}, world.report.examples
    assert world.left == 0 and len(world.delays[OWNER]) == keys * 20 and max(world.claims.values()) <= 4
    assert p99(world.delays[PLAIN]) <= 2 * p99(without.delays[PLAIN])


@pytest.mark.long
def test_jobs_without_a_limit_start_as_soon_beside_200_full_keys() -> None:
    judge(200)


@pytest.mark.soak
def test_jobs_without_a_limit_start_as_soon_beside_1000_full_keys() -> None:
    judge(1_000)


@pytest.mark.long
@pytest.mark.parametrize("limit", [Limit("k", 2), Limit("k", None, 120, 60_000), Limit("k", 1, 120, 60_000)], ids=str)
def test_a_key_recovers_from_a_crash_after_any_effect(limit: Limit) -> None:
    for fatal in range(1, 16):
        world = crashed(fatal, limit)
        assert world.left == 0 and not world.report.violations.keys() - {"idle_key", "claimed_in_queue"}, (fatal, world.report.examples)
        assert world.report.violations["idle_key"] < 60, "two leases"


GUARDS = [
    ("jobs of a key start without its limit", "more_at_once"),
    ("the end of a job of a key requests no step", "idle_key"),
    ("steps of a key come seldom", "idle_key"),
    ("a job takes a start while its key is full", "start_wasted"),
    ("keys leave their queues", "left_of_key"),
    ("records of keys stay", "left_of_key"),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "oracle"), GUARDS)
def test_it_notices_a_removed_guard_of_keys(name: str, oracle: str) -> None:
    (removed_guard,) = [each for each in SABOTAGES if each.name == name]
    found = find(removed_guard, [removed_guard.seed])
    assert found is not None and found.oracle == oracle
