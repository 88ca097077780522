"""A tick opens minutes ahead, sends their work, and sends unfinished work again. It reads no slot and no job."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.admission.lane_state import paused_lanes, resume
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, Lane, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.work import WorkItem, WorkKind
from scheduler.pipeline.lag import FIRST_MINUTES, NEVER_MS
from scheduler.pipeline.tick import LOST_MS, READY_MS, units
from tests.conftest import NOW, FixedClock, ScriptedPool, a_job
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


def opened(stage: Stage) -> list[str]:
    return [unit.key.minute for unit in stage.ledger.open_units()]


def at_minute(offset: int) -> str:
    return slots.minute_of(NOW + offset * slots.MINUTE)


def fresh() -> Stage:
    """A stage whose ledger is up to date: nothing before this minute is open."""
    stage = Stage()
    stage.ledger.advance(None, Cursor(MINUTE, 2))
    return stage


def test_a_new_ledger_opens_from_15_minutes_back_to_3_ahead() -> None:
    stage = Stage()
    stage.tick()
    assert opened(stage) == [at_minute(offset) for offset in range(-FIRST_MINUTES, 4)]
    assert stage.ledger.cursor().minute == at_minute(4)


def test_jobs_posted_long_before_the_first_tick_are_published_a4() -> None:
    stage = Stage()
    job = stage.submit()
    stage.receive()  # its message is lost
    stage.clock.advance(400_000)
    pool = ScriptedPool(stage.clock)
    for _ in range(6):
        stage.tick()
        stage.work_off(until=stage.clock.now() + slots.MINUTE)
        stage.execute(stage.receive(), pool=pool)
    assert [started.key for started, _ in pool.starts] == [job.key]


def test_a_late_tick_opens_every_minute_in_between() -> None:
    stage = Stage()
    stage.tick()
    stage.clock.at = NOW + 20 * slots.MINUTE
    stage.tick()
    assert set(opened(stage)) >= {at_minute(offset) for offset in range(4, 24)}


def test_two_ticks_open_each_minute_once() -> None:
    stage = Stage()
    first, second = stage.tick(), stage.tick()
    assert second.opened == 0
    assert first.opened == len(opened(stage)) == len(set(opened(stage)))


@pytest.mark.parametrize("raced", [1, 3])
def test_a_tick_that_lost_the_cursor_opens_no_more_minutes(raced: int) -> None:
    stage = Stage()
    stage.tick()
    stage.clock.advance(3 * slots.MINUTE)

    def other_was_first(verb: Any, before: Cursor, after: Cursor) -> bool:
        assert verb(before, after)
        return False

    stage.ledger = Wrapped(stage.ledger, advance=times(raced, other_was_first))
    before = len(opened(stage))
    stage.tick()
    assert len(opened(stage)) == before + 1


def test_a_minute_is_opened_before_the_cursor_passes_it() -> None:
    """If a tick dies in between, the next one opens the minute again; a cursor moved first would skip the minute."""
    stage = Stage()
    stage.ledger = Wrapped(stage.ledger, open_unit=refuse)
    assert stage.tick().failed == 1
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


@pytest.mark.parametrize("phase", range(999, slots.MINUTE, 1_000))
def test_two_missed_ticks_cost_nothing_at_any_phase_of_the_minute(phase: int) -> None:
    stage = fresh()
    stage.clock.at = NOW + phase
    seen: dict[str, int] = {}
    for passed in (0, 3, 3, 3):  # minutes since the last tick
        stage.clock.advance(passed * slots.MINUTE)
        stage.tick()
        seen |= {minute: stage.clock.now() for minute in opened(stage) if minute not in seen}
    ahead = {minute: slots.start_of(minute) - at for minute, at in seen.items() if slots.start_of(minute) > NOW + phase + slots.OPEN_AHEAD}
    assert len(ahead) == 9 and min(ahead.values()) >= READY_MS
    assert max(ahead.values()) <= slots.OPEN_AHEAD < slots.HORIZON


def test_the_message_of_a_unit_is_visible_just_before_its_minute() -> None:
    stage = fresh()
    stage.tick()
    comes = {each.item: each.visible_at for each in stage.work.queued.values() if each.item.kind is WorkKind.UNIT}
    for unit in stage.ledger.open_units():
        due_at = max(slots.start_of(unit.key.minute) - READY_MS, NOW)
        assert comes.pop(WorkItem.of_unit(unit.key)) == unit.next_at == due_at
    assert not comes


def test_a_tick_reads_no_slot_and_no_job() -> None:
    stage = fresh()
    stage.jobs.put(a_job(due_at=NOW))
    unread = dict.fromkeys(("due", "sweep", "get", "get_many", "outlines", "count"), refuse)
    stage.jobs = Wrapped(stage.jobs, **unread)
    for _ in range(5):
        assert stage.tick().failed == 0
        stage.clock.advance(slots.MINUTE)


def test_unfinished_work_is_sent_again_after_30_s() -> None:
    stage = fresh()
    stage.tick()
    stage.work.queued.clear()  # the messages are lost
    for now, sent in ((NOW + LOST_MS, False), (NOW + LOST_MS + 1, True)):
        stage.clock.at = now
        stage.tick()
        assert (WorkItem.of_unit(UNIT) in stage.asked) is sent


@pytest.mark.parametrize("fields", [{"lease_until": NOW + 400_000}, {"next_at": NOW + 400_000}])
def test_work_that_is_done_or_not_due_is_not_sent_again(fields: dict[str, int]) -> None:
    stage = fresh()
    stage.tick()
    unit = stage.ledger.unit(UNIT)
    stage.ledger.change_unit(unit, replace(unit, handed_out_at=NOW, **fields))
    stage.work.queued.clear()
    stage.clock.at = NOW + 300_000
    stage.tick()
    assert WorkItem.of_unit(UNIT) not in stage.asked


def test_a_resting_unit_whose_message_was_lost_is_looked_at_again() -> None:
    stage = fresh()
    stage.tick()
    unit = stage.ledger.unit(UNIT)
    stage.ledger.change_unit(unit, replace(unit, handed_out_at=NOW, resting=NOW, next_at=NOW + 3_600_000))
    stage.work.queued.clear()
    stage.clock.at = NOW + 3_600_000 + LOST_MS + 1
    stage.tick()
    assert WorkItem.of_unit(UNIT) in stage.asked


def test_a_backlog_is_worked_off_in_order_at_a_bounded_rate() -> None:
    stage = Stage(rules=Rules(shards=2, overdue_units=2))
    stage.tick()
    past = [item.of for item in stage.asked if item.kind is WorkKind.UNIT and item.of < at_minute(-1)]
    assert past == [at_minute(-FIRST_MINUTES), at_minute(-FIRST_MINUTES + 1)]
    stage.work_off()  # each finished unit sends the next one
    assert all(unit.handed_out_at is not None for unit in stage.ledger.open_units() if unit.key.minute < at_minute(-1))


# One part fails, the others are carried out


def test_a_refused_canary_delays_no_unit() -> None:
    stage = fresh()
    stage.jobs = Wrapped(stage.jobs, put_canary=refuse)
    assert (stage.tick().opened, len(opened(stage))) == (4, 4)
    assert WorkItem.of_unit(UNIT) in stage.asked


def test_the_next_tick_sends_a_refused_message_again_before_its_minute() -> None:
    stage = fresh()
    stage.work = Wrapped(stage.work, send=lambda verb, items, **delay: list(items))
    stage.tick()
    stage.work = stage.work._port
    stage.clock.advance(slots.MINUTE)
    stage.tick()
    assert WorkItem.of_unit(UnitKey(at_minute(3), 0)) in stage.asked


def test_a_refused_message_stops_no_other() -> None:
    stage = fresh()
    stage.work = Wrapped(stage.work, send=times(1, lambda verb, items, **delay: list(items)))
    stage.tick()
    kinds = [item.kind for item in stage.asked]
    assert kinds.count(WorkKind.UNIT) == 3 and WorkKind.CHECKS in kinds
    stage.clock.at = NOW + LOST_MS + 1
    stage.tick()
    assert WorkItem.of_unit(UNIT) in stage.asked


@pytest.mark.parametrize("error", [Unavailable, ValueError, KeyError])
@pytest.mark.parametrize("port, verb", [("jobs", "mark"), ("ledger", "advance"), ("ledger", "overflow_units"), ("operations", "running")])
def test_a_part_that_fails_in_any_way_stops_no_other(port: str, verb: str, error: type[Exception]) -> None:
    stage = fresh()
    stage.tick()
    stage.work.queued.clear()
    stage.clock.at = NOW + LOST_MS + slots.MINUTE

    def fails(verb: Any, *args: Any) -> Any:
        raise error

    setattr(stage, port, Wrapped(getattr(stage, port), **{verb: times(1, fails)}))
    assert stage.tick().failed == 1
    assert {WorkItem.of_unit(UNIT), WorkItem(WorkKind.CHECKS)} <= {*stage.asked}


def test_a_tick_without_the_ledger_fails() -> None:
    stage = fresh()
    stage.ledger = Wrapped(stage.ledger, cursor=refuse)
    with pytest.raises(Unavailable):
        stage.tick()


# A restored jobs table


@pytest.mark.parametrize(("behind", "pauses"), [(0, False), (1, True), (1_500, True)])
def test_all_lanes_are_paused_after_the_jobs_table_was_restored(behind: int, pauses: bool) -> None:
    stage = fresh()
    stage.jobs.set_mark(2_000)
    stage.tick()
    stage.jobs._mark -= behind
    stage.tick()
    states = stage.ledger.watched().lanes
    assert (paused_lanes(states) == {*Lane}) is pauses
    if pauses:
        assert f"about {behind:,} minutes before" in str(states[Lane.ONE_TIME].reason)
        resume(tuple(Lane), None, stage)
        stage.tick()
        assert not paused_lanes(stage.ledger.watched().lanes), "a resume is not undone by the next tick"


@pytest.mark.parametrize("wrong_ms", [0, 3_600_000, -3_600_000])
def test_a_restored_table_is_noticed_after_a_tick_with_a_wrong_clock(wrong_ms: int) -> None:
    stage = fresh()
    stage.clock.advance(wrong_ms)
    stage.tick()
    stage.clock.advance(-wrong_ms)
    backup = stage.jobs.mark()
    for _ in range(3):
        stage.clock.advance(slots.MINUTE)
        stage.tick()
    assert not stage.ledger.watched().lanes
    stage.jobs._mark = backup
    stage.tick()
    assert paused_lanes(stage.ledger.watched().lanes) == {*Lane}


@pytest.mark.parametrize("port", ["jobs", "ledger"])
def test_a_table_that_was_away_is_no_restored_table(port: str) -> None:
    stage = fresh()
    stage.tick()
    away = stage.but(**{port: Wrapped(getattr(stage, port), set_mark=refuse)})
    for _ in range(20):
        stage.clock.advance(slots.MINUTE)
        away.tick()
    stage.tick()
    assert not stage.ledger.watched().lanes


def test_a_frozen_tick_is_no_restored_table() -> None:
    stage = fresh()
    stage.tick()

    def late(verb: Any, number: int) -> None:
        stage.clock.advance(slots.MINUTE)
        stage.tick()  # the next one overtakes it ...
        verb(number)
        raise Unavailable  # ... and it dies before it has marked the ledger, too

    still = stage.but(clock=FixedClock(stage.clock.now()), jobs=Wrapped(stage.jobs, set_mark=late))
    still.tick()
    stage.tick()
    assert not stage.ledger.watched().lanes


def test_a_pause_of_the_ticks_is_no_restored_table() -> None:
    stage = fresh()
    stage.tick()
    stage.clock.advance(24 * 3_600_000)
    for _ in range(3):
        stage.tick()
    assert not stage.ledger.watched().lanes


def test_the_lag_is_the_age_of_the_oldest_open_minute() -> None:
    stage = fresh()
    stage.ledger.open_unit(Unit(UNIT, 0, 1, handed_out_at=NOW))
    stage.clock.at = NOW + 60_000 + 90_000
    assert stage.tick().lag_ms == 90_000
    assert Stage().tick().lag_ms > 0


def test_a_plan_that_does_not_run_is_late_by_the_age_of_its_cursor() -> None:
    stage = fresh()
    assert stage.tick().plan_lag_ms == NEVER_MS
    stage.ledger.set_plan_cursor(None, slots.minute_of(NOW))
    ages = [0, 240_000, 300_000, 300_001, 900_000]  # from the beginning of the minute at the cursor
    late = []
    for age in ages:
        stage.clock.at = slots.start_of(slots.minute_of(NOW)) + age
        late.append(stage.tick().plan_lag_ms)
    assert late == [0, 0, 0, 1, 600_000]
