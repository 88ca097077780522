"""Dispatchers that stay for minutes leave steps to the minutes that begin, and give theirs to others that wait."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model import slots
from scheduler.model.job import Lane, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.work import WorkItem
from scheduler.pipeline import publisher
from scheduler.pipeline.step_sharing import ASK_MS, OTHERS, PAUSE_MS, PLENTY, SPLIT_PARTS, TIME_SLICE_MS, may_begin, most_parts, must_leave
from scheduler.pipeline.unit_lease import LEASE_MS
from tests.conftest import NOW, a_job
from tests.unit.stage import Stage, Wrapped, refuse

NEW = slots.minute_of(NOW)
STAY_MS = 20_000  # of a dispatcher that nobody follows
PAST = [slots.minute_of(NOW - number * slots.MINUTE) for number in (5, 4, 3, 2)]


def a_unit(minute: str, part: int = 0, *, at_work: bool = True, **given: object) -> Unit:
    fields = {"opened_at": NOW - 600_000, "next_at": NOW - 1_000, "lease_until": NOW + LEASE_MS if at_work else 0}
    fields |= {"progress": NOW - 5_000} if slots.is_always_open(minute) else {}
    return replace(Unit(UnitKey(minute, part), part, part, opened_at=0, next_at=0), **(fields | given))


def staged(*units: Unit, steps: int = OTHERS + 3) -> Stage:
    stage = Stage(rules=Rules(shards=2, steps=steps))
    stage.clock.at = NOW
    for unit in units:
        stage.ledger.open_unit(unit)
    return stage


@pytest.mark.parametrize(("steps", "most"), [(1, 1), (2, 1), (3, 2), (5, 3), (50, 48)])
def test_dispatchers_of_the_past_and_the_overflow_leave_two_steps(steps: int, most: int) -> None:
    at_work = [a_unit(slots.OVERFLOW), *(a_unit(PAST[0], part) for part in range(most - 1))]
    late, new = a_unit(PAST[1], at_work=False), a_unit(NEW, at_work=False)
    stage = staged(*at_work, late, new, steps=steps)
    assert not may_begin(late, stage, NOW) and may_begin(new, stage, NOW)
    one_less = staged(*at_work[1:], late, steps=steps)
    assert may_begin(late, one_less, NOW)


def test_a_minute_that_is_over_and_published_takes_no_turn() -> None:
    stage = staged(*(a_unit(PAST[0], part, handed_out_at=NOW - 60_000) for part in range(4)), late := a_unit(PAST[1], at_work=False))
    assert may_begin(late, stage, NOW)
    assert may_begin(replace(late, handed_out_at=NOW), staged(*(a_unit(PAST[0], part) for part in range(4))), NOW)


def test_a_dispatcher_of_the_overflow_without_jobs_soon_ends() -> None:
    at_work = [a_unit(slots.OVERFLOW, part, progress=0) for part in range(4)]
    assert may_begin(a_unit(PAST[0], at_work=False), staged(*at_work), NOW)


def test_parts_of_a_new_minute_do_not_wait_for_the_past() -> None:
    part = a_unit(NEW, SPLIT_PARTS + 4, at_work=False)
    assert may_begin(part, staged(*(a_unit(PAST[0], number) for number in range(3))), NOW)
    others = [a_unit(NEW, SPLIT_PARTS + number) for number in range(3)]
    assert not may_begin(part, staged(*others), NOW), "but for each other"


def test_if_too_many_are_at_work_those_of_the_oldest_minutes_leave() -> None:
    units = [a_unit(slots.OVERFLOW, 0), a_unit(slots.OVERFLOW, 1), a_unit(PAST[2]), a_unit(PAST[1]), a_unit(PAST[0])]
    stage = staged(*units)
    assert [must_leave(unit, stage, NOW, NOW) for unit in units] == [False, False, False, True, True]
    parts = [a_unit(NEW, SPLIT_PARTS + number) for number in range(2)]
    stage = staged(*units, *parts)
    assert [must_leave(unit, stage, NOW, NOW) for unit in [*units, *parts]] == [False, True, True, True, True, False, False]


@pytest.mark.parametrize(
    ("waiting", "began_ms", "leaves"),
    [
        ({}, TIME_SLICE_MS, True),
        ({}, TIME_SLICE_MS - 1, False),
        ({"next_at": NOW + 1}, TIME_SLICE_MS, False),
        ({"resting": NOW - 1}, TIME_SLICE_MS, False),
        ({"handed_out_at": NOW - 1}, TIME_SLICE_MS, False),
    ],
)
def test_a_dispatcher_gives_its_step_to_one_that_waits(waiting: dict[str, int], began_ms: int, leaves: bool) -> None:
    at_work = [a_unit(PAST[0], part) for part in range(3)]
    other = a_unit(PAST[1], at_work=False, **waiting)
    assert must_leave(at_work[0], staged(*at_work, other), NOW, NOW - began_ms) is leaves
    assert not must_leave(at_work[0], staged(*at_work), NOW, NOW - began_ms), "nobody waits"
    assert not must_leave(at_work[0], staged(*at_work[:2], other), NOW, NOW - began_ms), "a step is free"


@pytest.mark.parametrize("part", [0, SPLIT_PARTS + 1])
def test_the_turn_of_a_minute_begins_at_its_end(part: int) -> None:
    end = slots.start_of(PAST[0]) + slots.MINUTE
    units = [a_unit(PAST[0], part + number, lease_until=end + TIME_SLICE_MS + LEASE_MS) for number in range(3)]
    stage = staged(*units, a_unit(PAST[0], part + 9, at_work=False, next_at=end))
    seen = [must_leave(units[0], stage, end + after, end - 60_000) for after in (1, TIME_SLICE_MS - 1, TIME_SLICE_MS)]
    assert seen == [False, False, True]


def test_of_many_steps_nobody_is_asked() -> None:
    stage = staged(*(a_unit(PAST[0], part) for part in range(PLENTY)), last := a_unit(PAST[1]), steps=PLENTY)
    stage.ledger = Wrapped(stage.ledger, open_units=refuse, overflow_units=refuse)
    assert may_begin(last, stage, NOW) and not must_leave(last, stage, NOW, NOW - TIME_SLICE_MS)


def test_a_ledger_that_refuses_lets_a_dispatcher_stay() -> None:
    stage = staged(*(units := [a_unit(PAST[0], part) for part in range(5)]))
    stage.ledger = Wrapped(stage.ledger, open_units=refuse)
    assert not must_leave(units[-1], stage, NOW, NOW - TIME_SLICE_MS)


def test_a_dispatcher_without_a_turn_asks_again() -> None:
    late = a_unit(PAST[1], at_work=False)
    stage = staged(*(a_unit(PAST[0], part) for part in range(3)), late)
    stage.work.send([WorkItem.of_unit(late.key)])
    (result,) = stage.work_off()
    assert result.next_at == NOW + ASK_MS and stage.ledger.unit(late.key) == late


def test_a_past_minute_whose_lane_is_full_gives_its_step_to_the_next() -> None:
    first, second = (a_unit(minute, at_work=False, last_shard=1) for minute in PAST[:2])
    stage = staged(first, second, steps=1)
    stage.rules = replace(stage.rules, windows={Lane.ONE_TIME: 1})
    for minute in PAST[:2]:
        for number in range(3):
            stage.jobs.put(a_job(due_at=slots.start_of(minute) + number))
    stage.lanes = Wrapped(stage.lanes, backlog=lambda verb, lane: 1_000)
    leased: list[tuple[UnitKey, int]] = []

    def change_unit(verb: Any, before: Unit, after: Unit) -> bool:
        if after.epoch > before.epoch:
            leased.append((after.key, stage.clock.now() - NOW))
        return verb(before, after)

    stage.ledger = Wrapped(stage.ledger, change_unit=change_unit)
    stage.work.send([WorkItem.of_unit(first.key), WorkItem.of_unit(second.key)])
    stage.work_off(until=NOW + 3 * TIME_SLICE_MS)
    assert leased[:3] == [(first.key, 0), (second.key, TIME_SLICE_MS), (first.key, 2 * TIME_SLICE_MS)]


@pytest.mark.parametrize("minute", [PAST[0], slots.OVERFLOW])
def test_a_dispatcher_that_has_left_asks_after_one_that_waits(minute: str) -> None:
    stage = staged(leaver := a_unit(minute, at_work=False, last_shard=1, progress=0), a_unit(PAST[1], at_work=False), steps=1)
    stage.rules = replace(stage.rules, windows={Lane.ONE_TIME: 1})
    for number in range(3):
        stage.jobs.put(a_job(due_at=slots.start_of(PAST[0]) + number, slot=f"{minute}#00"))
    stage.lanes = Wrapped(stage.lanes, backlog=lambda verb, lane: 1_000)
    stage.work.send([WorkItem.of_unit(leaver.key)])
    (result,) = stage.work_off()
    assert ASK_MS < PAUSE_MS == (result.next_at or 0) - stage.clock.now()
    assert TIME_SLICE_MS <= stage.clock.now() - NOW <= TIME_SLICE_MS + 5_000


@pytest.mark.parametrize("minute", [PAST[0], slots.OVERFLOW])
def test_a_dispatcher_that_leaves_to_nobody_is_followed_at_once(minute: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "STAY_MS", STAY_MS)
    stage = staged(leaver := a_unit(minute, at_work=False, last_shard=1, progress=0), steps=1)
    stage.rules = replace(stage.rules, windows={Lane.ONE_TIME: 1})
    for number in range(3):
        stage.jobs.put(a_job(due_at=slots.start_of(PAST[0]) + number, slot=f"{minute}#00"))
    stage.lanes = Wrapped(stage.lanes, backlog=lambda verb, lane: 1_000)
    stage.work.send([WorkItem.of_unit(leaver.key)])
    (result,) = stage.work_off(until=NOW)
    assert STAY_MS <= stage.clock.now() - NOW <= STAY_MS + 5_000
    assert result.next_at == stage.clock.now()


@pytest.mark.parametrize(("steps", "parts"), [(2, 1), (3, 2), (5, 3), (20, 18), (PLENTY, 16)])
def test_all_parts_of_a_minute_can_be_at_work_at_once(steps: int, parts: int) -> None:
    stage = staged(whole := a_unit(NEW, last_shard=15), part := a_unit(NEW, SPLIT_PARTS + 4, first_shard=4, last_shard=15), steps=steps)
    assert most_parts(whole, stage) == parts
    assert most_parts(part, stage) == (1 if steps < PLENTY else 12)
