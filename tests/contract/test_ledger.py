"""The port Ledger."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model import slots
from scheduler.model.backlog import Backlog, Demand
from scheduler.model.errors import Unavailable
from scheduler.model.job import Cursor, Lane, LaneState, LaterCheck, Unit, UnitKey
from scheduler.pipeline import dispatch
from scheduler.sharing.pins import PERIOD_MS
from scheduler.storage.aws import items, keys
from scheduler.storage.aws.ledger import DynamoLedger, _unit
from scheduler.storage.ports import Ledger
from tests.contract import tables
from tests.contract.wire import Wire

AT = 1_795_000_000_000


def unit(minute: str = "2026-11-20T10:01", part: int = 0) -> Unit:
    return Unit(UnitKey(minute, part), 0, 15, opened_at=AT)


def look(of: Unit, number: int = 0, at: int = AT) -> LaterCheck:
    return LaterCheck(of, number, at)


def test_the_cursor_moves_only_from_its_last_epoch(ledger: Ledger) -> None:
    first, second = Cursor("2026-11-20T10:00", 16), Cursor("2026-11-20T10:01", 32, epoch=1)
    assert ledger.cursor() is None
    assert ledger.advance(None, first)
    assert not ledger.advance(None, replace(first, minute="2026-11-20T09:00"))
    assert ledger.advance(first, second)
    assert not ledger.advance(first, replace(second, minute="2026-11-20T10:02"))
    assert ledger.cursor() == second


def test_a_unit_is_opened_once(ledger: Ledger) -> None:
    assert ledger.open_unit(unit())
    assert not ledger.open_unit(replace(unit(), first_shard=3))
    assert ledger.unit(unit().key) == unit()
    assert ledger.unit(UnitKey("2026-11-20T10:01", 1)) is None


def test_open_units_are_listed_oldest_first(ledger: Ledger) -> None:
    made = [unit(minute, part) for minute in ("2026-11-20T09:59", "2026-11-20T10:00") for part in range(3)]
    for one in reversed(made):
        assert ledger.open_unit(one)
    assert ledger.open_units() == made


def test_a_unit_changes_only_from_its_last_version(ledger: Ledger) -> None:
    before = unit()
    after = replace(before, epoch=1, lease_until=AT + 20_000, progress=AT - 1, handed_out_at=AT)
    ledger.open_unit(before)
    assert ledger.change_unit(before, after)
    assert not ledger.change_unit(before, replace(after, lease_until=0))
    assert ledger.unit(before.key) == after
    assert not ledger.change_unit(unit(part=9), unit(part=9))
    assert ledger.unit(unit(part=9).key) is None


def test_a_unit_remembers_what_was_published_early(ledger: Ledger) -> None:
    before, after = unit(), replace(unit(), early=(0, 17, 2**32 - 1))
    ledger.open_unit(before)
    assert ledger.change_unit(before, after)
    assert (ledger.unit(before.key), ledger.open_units()) == (after, [after])


def test_a_unit_with_the_most_early_entries_is_one_write_unit() -> None:
    key, full = UnitKey("2026-11-20T10:01", 1_015), tuple(range(2**32 - dispatch.SPARSE, 2**32))
    last = Unit(key, 15, 31, 99, AT, AT, AT, AT, AT, AT, "5f1d7e3c-6a90-4b7e-9d4e-0d6c2f7a1b58", full)
    assert items.size(keys.open_unit(key) | _unit(last)) <= 1_024


def test_a_renewed_lease_is_not_taken_over(ledger: Ledger) -> None:
    seen = replace(unit(), epoch=1, lease_until=AT)
    renewed = replace(seen, lease_until=AT + 15_000)
    ledger.open_unit(seen)
    assert ledger.change_unit(seen, renewed)
    assert not ledger.change_unit(seen, replace(seen, epoch=2, lease_until=AT + 20_000))
    assert ledger.change_unit(renewed, replace(renewed, epoch=2, lease_until=AT + 40_000))


def test_closing_a_unit_stores_its_first_check(ledger: Ledger) -> None:
    ledger.open_unit(unit())
    assert ledger.close_unit(unit(), AT, look(unit(), at=AT + 5))
    assert ledger.unit(unit().key) is None and ledger.open_units() == []
    assert ledger.later_checks(AT + 5) == [look(unit(), at=AT + 5)]


def test_closing_with_an_old_epoch_changes_nothing(ledger: Ledger) -> None:
    ledger.open_unit(replace(unit(), epoch=1))
    assert not ledger.close_unit(unit(), AT, look(unit()))
    assert ledger.open_units() == [replace(unit(), epoch=1)]
    assert ledger.later_checks(AT) == []
    assert not ledger.close_unit(unit(part=4), AT, look(unit(part=4)))


def test_a_closed_unit_can_be_opened_again(ledger: Ledger) -> None:
    ledger.open_unit(unit())
    ledger.close_unit(unit(), AT, look(unit()))
    assert ledger.unit(unit(part=1).key) is None
    assert ledger.open_unit(unit())
    assert ledger.unit(unit().key) == unit() and ledger.open_units() == [unit()]


def test_a_closed_unit_leaves_a_record_for_thirty_days(request: pytest.FixtureRequest) -> None:
    client = tables.on_moto(request, "ledger", tables.LEDGER)
    ledger, leased = DynamoLedger(client, "ledger"), replace(unit(), epoch=1)
    key: Any = keys.closed_unit(unit().key)
    ledger.open_unit(leased)
    assert not ledger.close_unit(unit(), AT, look(unit()))
    assert "Item" not in client.get_item(TableName="ledger", Key=key)
    assert ledger.close_unit(leased, AT, look(leased))
    record = client.get_item(TableName="ledger", Key=key)["Item"]
    assert record == key | {"at": {"N": str(AT)}, "expires": {"N": str(AT // 1000 + 30 * 86_400)}}


def test_checks_are_listed_in_order_of_their_instants(ledger: Ledger) -> None:
    late, soon = replace(unit(part=1), epoch=2, handed_out_at=AT), unit(part=2)
    for one, at in ((late, AT + 9), (soon, AT + 3)):
        ledger.open_unit(one)
        ledger.close_unit(one, AT, look(one, at=at))
    assert ledger.later_checks(AT + 2) == []
    assert ledger.later_checks(AT + 3) == [look(soon, at=AT + 3)]
    assert ledger.later_checks(AT + 99) == [look(soon, at=AT + 3), look(late, at=AT + 9)]


def test_a_check_is_replaced_by_the_following_one_or_none(ledger: Ledger) -> None:
    first, second = look(unit()), look(unit(), 1, AT + 900_000)
    ledger.open_unit(unit())
    ledger.close_unit(unit(), AT, first)
    ledger.replace_check(first, second)
    ledger.replace_check(first, second)
    assert ledger.later_checks(AT + 900_000) == [second]
    ledger.replace_check(second, None)
    ledger.replace_check(second, None)
    assert ledger.later_checks(AT + 900_000) == []
    ledger.replace_check(first, second)  # late, by a worker that was frozen
    assert ledger.later_checks(AT + 900_000) == [second]


@pytest.mark.parametrize("refused", ["PutItem", "DeleteItem"])
def test_a_check_that_is_not_replaced_is_due_again(request: pytest.FixtureRequest, refused: str) -> None:
    client = tables.on_moto(request, "ledger", tables.LEDGER)
    ledger, first, second = DynamoLedger(client, "ledger"), look(unit()), look(unit(), 1, AT + 900_000)
    ledger.open_unit(unit())
    ledger.close_unit(unit(), AT, first)
    Wire(client).refuse(refused, "ThrottlingException")
    with pytest.raises(Unavailable):
        ledger.replace_check(first, second)
    assert first in ledger.later_checks(AT)


def test_the_state_of_a_lane_is_the_last_one_set(ledger: Ledger) -> None:
    paused = LaneState(Lane.RETRY, paused_at=AT, reason="too loud", paused_by="u1", paused_by_name="olga")
    resumed = LaneState(Lane.RECURRING, resumed_at=AT + 5)
    assert ledger.watched().lanes == {}
    for state in (replace(paused, paused_at=1, resumed_at=2, reason="an old one"), paused, resumed):
        ledger.set_lane_state(state)
    assert ledger.watched().lanes == {Lane.RETRY: paused, Lane.RECURRING: resumed}
    assert ledger.latency(Lane.RETRY, 0) is None, "beside the latencies"


def test_the_cursor_of_plan_moves_only_from_its_last_value(ledger: Ledger) -> None:
    assert ledger.plan_cursor() is None
    assert not ledger.set_plan_cursor("2026-11-20T10:00", "2026-11-20T10:01")
    assert ledger.set_plan_cursor(None, "2026-11-20T10:00")
    assert not ledger.set_plan_cursor(None, "2026-11-20T09:00")
    assert ledger.set_plan_cursor("2026-11-20T10:00", "2026-11-20T10:01")
    assert not ledger.set_plan_cursor("2026-11-20T10:00", "2026-11-20T10:02")
    assert ledger.plan_cursor() == "2026-11-20T10:01"
    assert ledger.cursor() is None


def test_the_executors_that_are_ready_are_the_last_ones_reported(ledger: Ledger) -> None:
    assert ledger.ready(Lane.ONE_TIME, 0) == 0
    ledger.report_ready(Lane.ONE_TIME, 1_120, AT)
    ledger.report_ready(Lane.ONE_TIME, 900, AT + 10)
    ledger.report_ready(Lane.RECURRING, 20, AT)
    assert (ledger.ready(Lane.ONE_TIME, AT + 10), ledger.ready(Lane.RECURRING, AT)) == (900, 20)
    assert ledger.ready(Lane.ONE_TIME, AT + 11) == 0


def test_the_latency_of_a_lane_is_the_largest_recent_report(ledger: Ledger) -> None:
    assert ledger.latency(Lane.ONE_TIME, AT) is None
    ledger.report_latency(Lane.ONE_TIME, "a", 120, AT)
    ledger.report_latency(Lane.ONE_TIME, "b", 80, AT + 10)
    ledger.report_latency(Lane.RETRY, "a", 999, AT + 10)
    assert ledger.latency(Lane.ONE_TIME, AT) == 120
    assert ledger.latency(Lane.ONE_TIME, AT + 1) == 80
    assert ledger.latency(Lane.ONE_TIME, AT + 11) is None


def test_the_latency_of_delayed_messages_is_stored_apart(ledger: Ledger) -> None:
    ledger.report_latency(Lane.ONE_TIME, "a", 900, AT)
    ledger.report_latency(Lane.ONE_TIME, "a", 40, AT, delayed=True)
    assert (ledger.latency(Lane.ONE_TIME, AT), ledger.latency(Lane.ONE_TIME, AT, delayed=True)) == (900, 40)
    assert ledger.latency(Lane.RETRY, AT, delayed=True) is None


def test_the_latency_of_another_deployment_is_none(ledger: Ledger) -> None:
    ledger.report_latency(Lane.ONE_TIME, "a", 120, AT, deployment="before")
    assert (ledger.latency(Lane.ONE_TIME, AT, deployment="before"), ledger.latency(Lane.ONE_TIME, AT)) == (120, None)
    assert ledger.latency(Lane.ONE_TIME, AT, deployment="after") is None
    ledger.report_latency(Lane.ONE_TIME, "b", 80, AT, deployment="after")
    assert ledger.latency(Lane.ONE_TIME, AT, deployment="after") == 80


def test_a_new_latency_replaces_the_reporters_old_one(ledger: Ledger) -> None:
    ledger.report_latency(Lane.ONE_TIME, "a", 500, AT)
    ledger.report_latency(Lane.ONE_TIME, "a", 50, AT + 1)
    assert ledger.latency(Lane.ONE_TIME, AT) == 50


def backlog(minute: str = "2026-11-20T10:01", lane: Lane = Lane.ONE_TIME, at: int = AT, **users: int) -> Backlog:
    return Backlog(UnitKey(minute, 3), lane, at, 7, 12.5, {name: Demand(2.5, count) for name, count in users.items()})


def test_fresh_backlogs_are_listed_by_lane(ledger: Ledger) -> None:
    mine, other, old = backlog(ann=3, ben=4), backlog("intake", cyd=5), backlog("2026-11-20T10:00", at=AT - 1)
    for one in (backlog(ann=9), mine, other, old, backlog(lane=Lane.RECURRING)):
        ledger.report_backlog(one)
    assert sorted(ledger.backlogs(Lane.ONE_TIME, AT), key=lambda found: found.unit) == [mine, other]
    assert old in ledger.backlogs(Lane.ONE_TIME, AT - 1)


def test_a_dropped_backlog_is_gone(ledger: Ledger) -> None:
    ledger.report_backlog(backlog(ann=3))
    ledger.drop_backlog(backlog().unit, Lane.RECURRING)
    assert len(ledger.backlogs(Lane.ONE_TIME, 0)) == 1
    ledger.drop_backlog(backlog().unit, Lane.ONE_TIME)
    ledger.drop_backlog(backlog().unit, Lane.ONE_TIME)
    assert ledger.backlogs(Lane.ONE_TIME, 0) == []


@pytest.mark.parametrize("name", [slots.OVERFLOW, slots.room_of(Lane.RETRY), slots.room_of_owner("ann")])
def test_a_unit_that_has_no_minute_is_no_unit_of_a_minute(ledger: Ledger, name: str) -> None:
    overflow = Unit(UnitKey(name, 0), 0, 15)
    ledger.open_unit(unit())
    assert ledger.open_unit(overflow) and not ledger.open_unit(overflow)
    leased = replace(overflow, epoch=1, lease_until=AT)
    assert ledger.change_unit(overflow, leased) and ledger.unit(overflow.key) == leased
    assert ledger.open_units() == [unit()]


def test_units_of_the_overflow_and_of_waiting_rooms_are_listed_apart(ledger: Ledger) -> None:
    parts = [Unit(UnitKey(slots.OVERFLOW, part), part * 4, part * 4 + 3, next_at=AT) for part in range(2)]
    parts += [Unit(UnitKey(slots.room_of(Lane.ONE_TIME), 0), 0, 7, next_at=AT)]
    assert ledger.overflow_units() == []
    for one in [unit(), *reversed(parts)]:
        ledger.open_unit(one)
    assert ledger.overflow_units() == parts
    leased = replace(parts[1], epoch=1, lease_until=AT, message_id="w7")
    assert ledger.change_unit(parts[1], leased)
    assert ledger.overflow_units() == [parts[0], leased, parts[2]]


def test_the_unit_of_the_waiting_room_of_a_user_can_be_closed(ledger: Ledger) -> None:
    room = Unit(UnitKey(slots.room_of_owner("ann"), 1), 8, 15, next_at=AT)
    ledger.open_unit(room)
    assert ledger.close_unit(room, AT, look(room, at=AT + 5))
    assert (ledger.overflow_units(), ledger.later_checks(AT + 5)) == ([], [look(room, at=AT + 5)])
    assert ledger.open_unit(room) and ledger.overflow_units() == [room]


def test_a_unit_keeps_its_next_step_its_rest_and_its_message(ledger: Ledger) -> None:
    driven = replace(unit(), epoch=3, next_at=AT + 9, resting=AT - 5, message_id="0f9e-w1")
    ledger.open_unit(unit())
    assert ledger.change_unit(unit(), driven)
    assert ledger.unit(unit().key) == driven and ledger.open_units() == [driven]
    assert ledger.close_unit(driven, AT, look(driven, at=AT + 5))
    assert ledger.later_checks(AT + 5) == [look(driven, at=AT + 5)]


@pytest.mark.parametrize("minute", ["2026-11-20T10:01", slots.OVERFLOW])
def test_a_unit_that_cannot_be_read_hides_no_other(request: pytest.FixtureRequest, minute: str) -> None:
    client = tables.on_moto(request, "ledger", tables.LEDGER)
    ledger, good = DynamoLedger(client, "ledger"), unit(minute, 1)
    client.put_item(TableName="ledger", Item=keys.open_unit(UnitKey(minute, 0)) | {"epoch": {"N": "1"}})
    ledger.open_unit(good)
    assert ledger.open_units() + ledger.overflow_units() == [good]


def test_the_sweep_continues_where_it_was_stored(ledger: Ledger) -> None:
    assert ledger.sweep_cursor() is None
    for cursor in ("a", '{"pk": {"S": "x"}}', None, None, "b"):
        ledger.set_sweep_cursor(cursor)
        assert ledger.sweep_cursor() == cursor
    assert ledger.cursor() is None and ledger.plan_cursor() is None


def test_shards_can_be_required_once_there_is_a_cursor(ledger: Ledger) -> None:
    assert ledger.require_shards(16) == 0
    ledger.advance(None, Cursor("2026-11-20T10:00", 16))
    assert [ledger.require_shards(shards) for shards in (16, 4, 32, 16)] == [16, 16, 32, 32]
    cursor = ledger.cursor()
    assert cursor is not None and (cursor.minute, cursor.shards) == ("2026-11-20T10:00", 32)


def test_required_shards_fence_a_tick_that_read_the_cursor_before(ledger: Ledger) -> None:
    """The tick would open its next minute with too few shards."""
    ledger.advance(None, before := Cursor("2026-11-20T10:00", 16))
    assert ledger.require_shards(32) == 32
    assert not ledger.advance(before, Cursor("2026-11-20T10:01", 16, epoch=1))
    after = ledger.cursor()
    assert after is not None and ledger.advance(after, replace(after, minute="2026-11-20T10:01", epoch=after.epoch + 1))
    assert ledger.require_shards(0) == 32


@pytest.mark.parametrize("in_the_way", [32, 64])
def test_shards_are_required_again_if_another_process_moves_the_cursor(request: pytest.FixtureRequest, in_the_way: int) -> None:
    client = tables.on_moto(request, "ledger", tables.LEDGER)
    ledger, other = DynamoLedger(client, "ledger"), DynamoLedger(client, "ledger")
    other.advance(None, first := Cursor("2026-11-20T10:00", 16))
    reads = iter([lambda: other.advance(first, Cursor("2026-11-20T10:01", in_the_way, epoch=1))])

    def cursor() -> Cursor | None:
        found = other.cursor()
        next(reads, lambda: True)()
        return found

    ledger.cursor = cursor  # type: ignore[method-assign]  # another process writes between its read and its write
    assert ledger.require_shards(48) == max(in_the_way, 48)
    assert (stored := other.cursor()) is not None and (stored.minute, stored.shards) == ("2026-11-20T10:01", max(in_the_way, 48))


def test_the_mark_is_the_highest_number_noted(ledger: Ledger) -> None:
    assert ledger.mark() == 0
    for number in (9, 10, 2):
        ledger.set_mark(number)
    assert ledger.mark() == 10


def test_pins_are_counted_by_lane_user_and_period(ledger: Ledger) -> None:
    ledger.set_lane_state(LaneState(Lane.RETRY, paused_at=AT))
    for lane, owner, period, by in (
        (Lane.RETRY, "ann", 7, 1),
        (Lane.RETRY, "ann", 7, 1),
        (Lane.RETRY, "ann", 8, 1),
        (Lane.ONE_TIME, "ben", 8, 3),
    ):
        ledger.pin(lane, owner, period, by)
    ledger.pin(Lane.RETRY, "ann", 7, -1)
    found = ledger.watched()
    assert {(pin.lane, pin.owner, pin.period): pin.executors for pin in found.pins} == {
        (Lane.RETRY, "ann", 7): 1,
        (Lane.RETRY, "ann", 8): 1,
        (Lane.ONE_TIME, "ben", 8): 3,
    }
    assert list(found.lanes) == [Lane.RETRY] and found.breakers == {}


def test_a_pin_expires_after_its_period(request: pytest.FixtureRequest) -> None:
    client = tables.on_moto(request, "ledger", tables.LEDGER)
    DynamoLedger(client, "ledger").pin(Lane.RETRY, "ann", 7, 1)
    (item,) = client.scan(TableName="ledger")["Items"]
    assert int(item["expires"]["N"]) * 1_000 > 9 * PERIOD_MS
