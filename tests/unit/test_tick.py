"""A tick opens minutes ahead, keeps dispatchers at work, proves that slots are empty, closes units and checks them later."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, Lane, LaterCheck, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.pipeline import leftover
from scheduler.pipeline.tick import FIRST_MINUTES, following, units
from scheduler.storage.ports import Written
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times

MINUTE = slots.minute_of(NOW)
UNIT = UnitKey(MINUTE, 0)


@given(st.integers(1, 99), st.integers(1, 99))
def test_the_units_of_a_minute_cover_all_shards_exactly_once_and_evenly(shards: int, count: int) -> None:
    made = units(MINUTE, shards, count, NOW)
    covered = [shard for unit in made for shard in range(unit.first_shard, unit.last_shard + 1)]
    assert covered == list(range(shards))
    sizes = [len(unit.slots) for unit in made]
    assert len(made) == min(shards, count) and max(sizes) - min(sizes) <= 1


def test_the_checks_of_a_closed_unit_follow_its_closing() -> None:
    look: LaterCheck | None = LaterCheck(Unit(UNIT, 0, 1), 0, NOW + leftover.LOOKS[0])
    seen = []
    while look is not None:
        seen.append(look.at - NOW)
        look = following(look)
    assert tuple(seen) == leftover.LOOKS


def opened(stage: Stage) -> list[str]:
    return [unit.key.minute for unit in stage.ledger.open_units()]


def at_minute(offset: int) -> str:
    return slots.minute_of(NOW + offset * slots.MINUTE)


def fresh() -> Stage:
    """A stage whose ledger is up to date: nothing before this minute is open."""
    stage = Stage()
    stage.ledger.advance(None, Cursor(MINUTE, 2))
    return stage


def test_a_new_ledger_opens_from_15_minutes_back_to_2_ahead() -> None:
    stage = Stage()
    stage.tick()
    assert opened(stage) == [at_minute(offset) for offset in range(-FIRST_MINUTES, 3)]
    assert stage.ledger.cursor().minute == at_minute(3)


def test_a_new_ledger_starts_at_the_oldest_slot_in_the_index_a4() -> None:
    """The ledger alone was lost or restored: the waiting jobs are days old."""
    stage = Stage()
    stage.jobs.put(a_job(due_at=NOW - 3 * 3_600_000))
    stage.tick()
    assert opened(stage)[0] == at_minute(-180)


def test_jobs_posted_long_before_the_first_tick_are_published_a4() -> None:
    stage = Stage()
    job = stage.submit()
    stage.receive()  # its message is lost
    stage.clock.advance(400_000)
    pool = ScriptedPool(stage.clock)
    for _ in range(5):  # empty minutes first, a few at once
        stage.started.clear()
        stage.tick()
        for unit in stage.started:
            stage.dispatch(unit)
        stage.execute(stage.receive(), pool=pool)
    assert [started.key for started, _ in pool.starts] == [job.key]


def test_a_tick_that_comes_late_opens_every_minute_in_between() -> None:
    stage = Stage()
    stage.tick()
    stage.clock.at = NOW + 20 * slots.MINUTE
    stage.tick()
    assert set(opened(stage)) >= {at_minute(offset) for offset in range(3, 23)}


def test_two_ticks_open_each_minute_once() -> None:
    stage = Stage()
    first, second = stage.tick(), stage.tick()
    assert second.opened == 1  # it is a minute later
    assert first.opened + second.opened == len(opened(stage)) == len(set(opened(stage)))


def test_a_tick_that_lost_the_cursor_opens_no_more_minutes() -> None:
    stage = Stage()
    stage.tick()
    stage.clock.advance(3 * slots.MINUTE)

    def other_was_first(verb: Any, before: Cursor, after: Cursor) -> bool:
        assert verb(before, after)
        return False

    stage.ledger = Wrapped(stage.ledger, advance=times(1, other_was_first))
    before = len(opened(stage))
    stage.tick()
    assert len(opened(stage)) == before + 1


def test_a_minute_is_opened_before_the_cursor_passes_it() -> None:
    """If a tick dies in between, the next one opens the minute again; a cursor moved first would skip the minute."""
    stage = Stage()
    stage.ledger = Wrapped(stage.ledger, open_unit=refuse)
    with pytest.raises(Unavailable):
        stage.tick()
    assert stage.ledger.cursor().minute == at_minute(-FIRST_MINUTES)


def test_shards_only_grow_a4() -> None:
    stage = Stage(rules=Rules(shards=8))
    stage.tick()
    stage.rules = Rules(shards=2)
    stage.clock.advance(slots.MINUTE)
    stage.tick()
    assert {unit.last_shard for unit in stage.ledger.open_units()} == {7}
    stage.rules = Rules(shards=16)
    stage.clock.advance(slots.MINUTE)
    stage.tick()
    assert stage.ledger.open_units()[-1].last_shard == 15 and stage.ledger.cursor().shards == 16


def test_every_unit_without_a_lease_gets_a_dispatcher() -> None:
    stage = fresh()
    stage.tick()
    assert set(stage.started) == {unit.key for unit in stage.ledger.open_units()}
    live = stage.ledger.unit(UNIT)
    stage.ledger.change_unit(live, replace(live, epoch=1, lease_until=stage.clock.now() + 30_000))
    stage.started.clear()
    began = stage.clock.now()
    stage.tick()
    assert UNIT in stage.started  # once its lease had run out, within this very tick
    assert stage.clock.now() - began < 60_000


def test_a_new_dispatcher_has_time_to_take_its_lease() -> None:
    stage = fresh()
    stage.tick()
    assert 55_000 // 5_000 >= stage.started.count(UNIT) >= 2


def test_a_backlog_is_worked_off_in_order_at_a_bounded_rate() -> None:
    stage = Stage(rules=Rules(shards=2, overdue_units=2))
    stage.jobs.put(a_job(due_at=NOW - 3_600_000))
    stage.tick()
    past = {unit.minute for unit in stage.started if unit.minute < MINUTE}
    assert past - {at_minute(-1)} == {at_minute(-60), at_minute(-59)}  # the minute just ending is not overdue


def test_a_refused_dispatcher_stops_no_other() -> None:
    stage = fresh()
    asked: list[UnitKey] = []

    def start(unit: UnitKey) -> None:
        asked.append(unit)
        raise Unavailable

    stage.functions.start_dispatch = start
    stage.tick()
    assert set(asked) == {unit.key for unit in stage.ledger.open_units()}


# closing


def handed_out(*, at: int = NOW, entries: int = 0) -> Stage:
    """A stage whose one open unit was handed out at `at`; the cursor is far enough to open nothing else."""
    stage = Stage(rules=Rules(shards=1))
    for _ in range(entries):
        stage.jobs.put(a_job(due_at=NOW))
    stage.jobs.put_canary(UNIT, f"{MINUTE}#00", NOW)
    stage.ledger.open_unit(Unit(UNIT, 0, 0, handed_out_at=at))
    stage.ledger.advance(None, Cursor("2026-11-21T00:00", 1))
    return stage


@pytest.mark.parametrize(("now", "closed"), [(NOW + 59_999, 0), (NOW + 60_000, 1)])
def test_an_empty_minute_closes_as_soon_as_it_is_over(now: int, closed: int) -> None:
    stage = handed_out()
    stage.clock.at = now
    assert stage.tick().closed == closed


def test_closing_drops_the_canary_and_plans_the_first_check() -> None:
    stage, closed = handed_out(), list[tuple[UnitKey, int]]()

    def close(verb: Any, unit: Unit, at: int, look: LaterCheck) -> bool:
        closed.append((unit.key, at))
        return bool(verb(unit, at, look))

    stage.ledger = Wrapped(stage.ledger, close_unit=close)
    stage.clock.at = NOW + 60_000
    stage.tick()
    assert stage.ledger.open_units() == [] and closed == [(UNIT, NOW + 60_000)]
    assert not stage.jobs.canary_visible(UNIT, f"{MINUTE}#00")
    assert [look.at for look in stage.ledger.looks(NOW + 10**9)] == [NOW + 60_000 + leftover.LOOKS[0]]


def test_no_minute_closes_while_its_canary_is_not_visible_b5() -> None:
    stage = handed_out()
    stage.clock.at = NOW + 60_000
    stage.jobs = Wrapped(stage.jobs, canary_visible=lambda verb, *args: False)
    assert stage.tick().closed == 0


def test_a_minute_without_its_canary_gets_another_and_closes() -> None:
    """A frozen tick opened it again after its closing, and the later check dropped the canary."""
    stage = handed_out()
    stage.jobs.drop_canary(UNIT)
    stage.clock.at = NOW + 60_000 + leftover.RECHECK_AFTER
    assert (stage.tick().closed, stage.tick().closed) == (0, 1)


def test_a_canary_seen_after_the_slots_were_read_proves_nothing_b5() -> None:
    stage = handed_out(entries=1)
    stage.clock.at = NOW + 600_000
    shown = [False]

    def due(verb: Any, *args: Any, **more: Any) -> Any:
        if shown[0]:
            return verb(*args, **more)
        shown[0] = True  # the index catches up right after it was read
        return [], None

    stage.jobs = Wrapped(stage.jobs, due=due, canary_visible=lambda verb, *args: shown[0] and verb(*args))
    assert stage.tick().closed == 0


def test_a_minute_with_jobs_left_is_reconciled_and_closes() -> None:
    stage = handed_out(entries=2)
    stage.clock.at = NOW + 60_000 + leftover.RECHECK_AFTER - 1
    early = stage.tick()
    assert (early.rechecked, early.closed) == (0, 0)
    stage.clock.at = NOW + 60_000 + leftover.RECHECK_AFTER
    done = stage.tick()
    assert (done.rechecked, done.closed) == (2, 1)
    assert len(stage.waiting(Lane.ONE_TIME)) == 2


def test_a_minute_stays_open_if_its_jobs_cannot_be_moved() -> None:
    stage = handed_out(entries=1)
    stage.clock.at = NOW + 600_000
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED] * len(changes))
    assert stage.tick().closed == 0
    assert len(stage.ledger.open_units()) == 1


def test_an_index_entry_of_a_job_that_left_keeps_no_minute_open() -> None:
    stage = handed_out(entries=1)
    (entry,), _ = stage.jobs.due(f"{MINUTE}#00")
    stage.jobs.rows[entry.key] = replace(stage.jobs.rows[entry.key], slot=None, completed_at=NOW)
    stage.clock.at = NOW + 60_000
    assert stage.tick().closed == 1


def test_a_unit_that_changed_meanwhile_is_not_closed() -> None:
    stage = handed_out()
    stage.clock.at = NOW + 60_000

    def stale(verb: Any) -> list[Unit]:
        return [replace(unit, epoch=unit.epoch - 1) for unit in verb()]

    stage.ledger = Wrapped(stage.ledger, open_units=stale)
    assert stage.tick().closed == 0


def test_a_refusal_while_closing_stops_that_unit_only() -> None:
    stage = handed_out()
    stage.ledger.open_unit(Unit(UnitKey(at_minute(-1), 0), 0, 0, handed_out_at=NOW))
    stage.jobs.put_canary(UnitKey(at_minute(-1), 0), f"{at_minute(-1)}#00", NOW)
    stage.clock.at = NOW + 60_000
    stage.jobs = Wrapped(stage.jobs, due=times(1))
    assert stage.tick().closed == 1


# later checks


def test_a_later_check_finds_a_job_that_the_index_hid_b5() -> None:
    stage = Stage(rules=Rules(shards=1))
    stage.ledger.advance(None, Cursor("2026-11-21T00:00", 1))
    stage.ledger.open_unit(Unit(UNIT, 0, 0))
    stage.ledger.close_unit(Unit(UNIT, 0, 0), NOW, LaterCheck(Unit(UNIT, 0, 0), 0, NOW + leftover.LOOKS[0]))
    hidden = a_job(due_at=NOW)
    stage.jobs.put(hidden)
    stage.clock.at = NOW + leftover.LOOKS[0] - 1
    assert stage.tick().looks == 0
    stage.clock.at = NOW + leftover.LOOKS[0]
    assert stage.tick().looks == 1
    assert stage.waiting(Lane.ONE_TIME) == [hidden.id] and stage.stored(hidden).slot != hidden.slot
    assert [(look.number, look.at) for look in stage.ledger.looks(NOW + 10**9)] == [(1, NOW + leftover.LOOKS[1])]


def test_no_check_follows_the_last_one() -> None:
    stage = Stage(rules=Rules(shards=1))
    stage.ledger.advance(None, Cursor("2026-11-21T00:00", 1))
    unit = Unit(UNIT, 0, 0)
    stage.ledger.open_unit(unit)
    assert stage.ledger.close_unit(unit, NOW - 1, LaterCheck(unit, len(leftover.LOOKS) - 1, NOW))
    assert stage.tick().looks == 1
    assert stage.ledger.looks(NOW + 10**9) == []


def test_the_lag_is_the_age_of_the_oldest_open_minute() -> None:
    stage = handed_out(entries=1)
    stage.clock.at = NOW + 60_000 + 90_000
    assert stage.tick().lag_ms == 90_000
    assert Stage().tick().lag_ms > 0
