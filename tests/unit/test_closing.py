"""Closing a unit: it closes once its slots are proved empty; until then, the remaining jobs are reconciled in pieces."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, Lane, LaterCheck, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline import closing, leftover
from scheduler.pipeline.closing import Closing
from scheduler.pipeline.unit_lease import LEASE_MS, LeaseLost, UnitLease
from scheduler.storage.ports import Written
from tests.conftest import NOW, a_job
from tests.unit.stage import Stage, Wrapped, refuse

MINUTE = slots.minute_of(NOW)
UNIT = UnitKey(MINUTE, 0)
SLOT = f"{MINUTE}#00"
END = NOW + slots.MINUTE
RECHECK = END + leftover.RECHECK_AFTER


def handed_out(*, at: int = NOW, entries: int = 0) -> Stage:
    """A stage whose one open unit was handed out at `at`; the cursor is far enough to open nothing else."""
    stage = Stage(rules=Rules(shards=1))
    for _ in range(entries):
        stage.jobs.put(a_job(due_at=NOW))
    stage.jobs.put_canary(UNIT, SLOT, NOW)
    stage.ledger.open_unit(Unit(UNIT, 0, 0, handed_out_at=at))
    stage.ledger.advance(None, Cursor("2026-11-21T00:00", 1))
    return stage


def step(stage: Stage, now: int, hide: Any = lambda: None) -> Closing:
    """One step of the unit at this instant."""
    stage.clock.at = max(stage.clock.at, now)
    unit = stage.ledger.unit(UNIT)
    leased = replace(unit, epoch=unit.epoch + 1, lease_until=stage.clock.at + LEASE_MS)
    assert stage.ledger.change_unit(unit, leased)
    made = Closing(UnitLease(leased, stage, hide))
    made.run()
    return made


def test_an_empty_minute_closes_as_soon_as_it_is_over() -> None:
    assert step(handed_out(), END).closed


def test_closing_drops_the_canary_and_plans_the_first_check() -> None:
    stage, closed = handed_out(), list[tuple[UnitKey, int]]()

    def close(verb: Any, unit: Unit, at: int, look: LaterCheck) -> bool:
        closed.append((unit.key, at))
        return bool(verb(unit, at, look))

    stage.ledger = Wrapped(stage.ledger, close_unit=close)
    step(stage, END)
    assert stage.ledger.open_units() == [] and closed == [(UNIT, END)]
    assert not stage.jobs.canary_visible(UNIT, SLOT)
    assert [look.at for look in stage.ledger.later_checks(NOW + 10**9)] == [END + leftover.CHECKS_MS[0]]


def test_no_minute_closes_while_its_canary_is_not_visible_b5() -> None:
    stage = handed_out()
    stage.jobs = Wrapped(stage.jobs, canary_visible=lambda verb, *args: False)
    assert not step(stage, END).closed
    unit = stage.ledger.unit(UNIT)
    assert unit.lease_until == 0 and END < unit.next_at <= END + slots.MINUTE


def test_a_minute_without_its_canary_gets_another_and_closes() -> None:
    """The tick could not store it; or a frozen tick opened the unit again after its closing."""
    stage = handed_out()
    stage.jobs.drop_canary(UNIT)
    assert [step(stage, END).closed, step(stage, END + 15_000).closed] == [False, True]


def test_a_canary_seen_after_the_slots_were_read_proves_nothing_b5() -> None:
    stage = handed_out(entries=1)
    shown = [False]

    def due(verb: Any, *args: Any, **more: Any) -> Any:
        if shown[0]:
            return verb(*args, **more)
        shown[0] = True  # the index catches up right after it was read
        return [], None

    stage.jobs = Wrapped(stage.jobs, due=due, canary_visible=lambda verb, *args: shown[0] and verb(*args))
    assert not step(stage, NOW + 600_000).closed


def test_a_minute_with_jobs_left_is_reconciled_and_closes() -> None:
    stage = handed_out(entries=2)
    early = step(stage, RECHECK - 1)
    assert (early.rechecked, early.closed) == (0, False) and stage.ledger.unit(UNIT).next_at == RECHECK
    done = step(stage, RECHECK)
    assert (done.rechecked, done.closed) == (2, True)
    assert len(stage.waiting(Lane.ONE_TIME)) == 2


def test_a_minute_stays_open_if_its_jobs_cannot_be_moved() -> None:
    stage = handed_out(entries=1)
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED] * len(changes))
    assert not step(stage, NOW + 600_000).closed
    assert len(stage.ledger.open_units()) == 1


def test_an_index_entry_of_a_job_that_left_keeps_no_minute_open() -> None:
    stage = handed_out(entries=1)
    (entry,), _ = stage.jobs.due(SLOT)
    stage.jobs.rows[entry.key] = replace(stage.jobs.rows[entry.key], slot=None, completed_at=NOW)
    assert step(stage, END).closed


def test_a_unit_that_changed_meanwhile_is_not_closed() -> None:
    stage = handed_out()

    def taken(verb: Any, *args: Any) -> Any:
        unit = stage.ledger.unit(UNIT)
        stage.ledger.change_unit(unit, replace(unit, epoch=unit.epoch + 1))
        return verb(*args)

    stage.jobs = Wrapped(stage.jobs, canary_visible=taken)
    with pytest.raises(LeaseLost):
        step(stage, END)
    assert stage.ledger.unit(UNIT) is not None


def test_a_minute_is_reconciled_in_pieces() -> None:
    stage, sizes = handed_out(entries=2 * leftover.PIECE + 1), list[int]()
    stage.jobs = Wrapped(stage.jobs, outlines=lambda verb, keys: (sizes.append(len(keys)), verb(keys))[1])
    assert step(stage, RECHECK).closed
    assert sizes == [leftover.PIECE, leftover.PIECE, 1]


def test_reconciling_out_of_time_goes_on_in_the_next_step() -> None:
    stage = handed_out(entries=3 * leftover.PIECE)

    def slow(verb: Any, keys: Any) -> Any:
        stage.clock.advance(closing.STEP_MS // 2 + 1)
        return verb(keys)

    stage.jobs = Wrapped(stage.jobs, outlines=slow)
    first = step(stage, RECHECK)
    assert (first.rechecked, first.closed) == (2 * leftover.PIECE, False)
    assert stage.ledger.unit(UNIT).next_at == stage.clock.now()  # at once
    second = step(stage, stage.clock.now())
    assert (second.rechecked, second.closed) == (leftover.PIECE, True)


def test_a_slow_step_renews_its_lease_and_keeps_its_message_hidden() -> None:
    stage, hidden, leases = handed_out(entries=5 * leftover.PIECE), list[int](), list[int]()

    def slow(verb: Any, keys: Any) -> Any:
        leases.append(stage.ledger.unit(UNIT).lease_until - stage.clock.now())
        stage.clock.advance(6_000)
        return verb(keys)

    stage.jobs = Wrapped(stage.jobs, outlines=slow)
    step(stage, RECHECK, lambda: hidden.append(stage.clock.now()))
    assert len(hidden) == 4 and min(leases) >= LEASE_MS - 6_000


def test_a_step_whose_lease_was_taken_stops() -> None:
    stage = handed_out(entries=3 * leftover.PIECE)

    def slow(verb: Any, keys: Any) -> Any:
        stage.clock.advance(LEASE_MS)
        unit = stage.ledger.unit(UNIT)
        stage.ledger.change_unit(unit, replace(unit, epoch=unit.epoch + 1))
        return verb(keys)

    stage.jobs = Wrapped(stage.jobs, outlines=slow)
    with pytest.raises(LeaseLost):
        step(stage, RECHECK)
    assert len(stage.waiting(Lane.ONE_TIME)) == leftover.PIECE


def test_an_unreadable_item_is_set_aside_and_found_again() -> None:
    stage = handed_out(entries=2)
    bad, good = list(stage.jobs.rows)
    stage.jobs.unreadable[bad] = "another version"
    assert not step(stage, END).closed
    assert step(stage, RECHECK).closed
    assert stage.waiting(Lane.ONE_TIME) == [good.id]
    slot = stage.jobs.rows[bad].slot
    assert slots.start_of(slots.minute(slot)) >= RECHECK + leftover.UNREADABLE_AGAIN_MS - slots.MINUTE
    stage.jobs.unreadable.clear()  # an update reads it
    (entry,), _ = stage.jobs.due(slot)
    assert entry.key == bad


def test_a_refusal_leaves_the_unit_as_it_was() -> None:
    stage = handed_out(entries=1)
    stage.jobs = Wrapped(stage.jobs, due=refuse)
    with pytest.raises(Unavailable):
        step(stage, RECHECK)
    assert stage.ledger.unit(UNIT).handed_out_at == NOW
