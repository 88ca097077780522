import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model import ids, slots
from scheduler.model.instants import DAY, parse
from tests.conftest import NOW

nows = st.integers(min_value=NOW, max_value=NOW + 400 * DAY)
offsets = st.integers(min_value=-DAY, max_value=400 * DAY) | st.integers(min_value=-600_000, max_value=600_000)
shard_counts = st.integers(min_value=1, max_value=64)
keys = st.integers(min_value=0, max_value=2**75 - 1).map(lambda random: ids.new(NOW, random))


def shard(slot: str) -> int:
    return int(slot.partition("#")[2])


@given(nows, offsets, keys, shard_counts)
def test_no_slot_is_nearer_than_the_horizon(now: int, offset: int, key: str, shards: int) -> None:
    placement = slots.place(now + offset, now, key, shards)
    assert slots.start_of(slots.minute(placement.slot)) - now >= slots.HORIZON


@given(nows, offsets, keys, shard_counts)
def test_no_slot_is_before_the_minute_of_its_due_time(now: int, offset: int, key: str, shards: int) -> None:
    placement = slots.place(now + offset, now, key, shards)
    assert slots.minute(placement.slot) >= slots.minute_of(now + offset)


@given(nows, offsets, keys, shard_counts)
def test_a_directly_enqueued_job_has_a_safety_slot_and_any_other_its_own(now: int, offset: int, key: str, shards: int) -> None:
    placement = slots.place(now + offset, now, key, shards)
    own, first = slots.minute_of(now + offset), slots.first_safe_minute(now)
    assert slots.minute(placement.slot) == (first if placement.direct else own)
    assert placement.direct == slots.is_direct(now + offset, now) == (own < first)


@given(nows, offsets, keys, shard_counts)
def test_shards_are_in_range_and_one_key_keeps_its_shard(now: int, offset: int, key: str, shards: int) -> None:
    one, other = slots.place(now + offset, now, key, shards).slot, slots.place(now, now, key, shards).slot
    assert 0 <= shard(one) < shards
    assert shard(one) == shard(other)


@given(nows)
def test_the_first_safe_minute_is_the_nearest_possible_one(now: int) -> None:
    assert slots.HORIZON <= slots.start_of(slots.first_safe_minute(now)) - now < slots.HORIZON + slots.MINUTE


@given(nows)
def test_a_minute_contains_its_instant_and_the_next_one_follows(at: int) -> None:
    minute = slots.minute_of(at)
    assert slots.start_of(minute) <= at < slots.start_of(minute) + slots.MINUTE
    assert slots.start_of(slots.following(minute)) == slots.start_of(minute) + slots.MINUTE
    assert minute < slots.following(minute)


def test_the_horizon_leaves_room_for_two_clocks_and_a_slow_put() -> None:
    assert slots.HORIZON - slots.OPEN_AHEAD >= 100_000
    assert slots.SLOW_PUT < (slots.HORIZON - slots.OPEN_AHEAD) / 2


@pytest.mark.parametrize(("ahead", "safe"), [(300_000, True), (247_500, True), (247_499, False), (195_000, False), (-60_000, False)])
def test_a_slot_is_safe_while_half_the_slack_is_left(ahead: int, safe: bool) -> None:
    assert slots.is_safe("2026-11-20T10:00#03", parse("2026-11-20T10:00:00Z") - ahead) is safe


def test_slots_sort_by_minute_over_midnight_and_new_year() -> None:
    assert slots.slot("2026-12-31T23:59", "key", 16) < slots.slot(slots.following("2026-12-31T23:59"), "key", 16)
    assert slots.following("2026-12-31T23:59") == "2027-01-01T00:00"


def test_a_direct_message_arrives_ahead_of_its_instant_but_not_too_early() -> None:
    assert 1_000 <= NOW - slots.not_before(NOW) <= 2_000


def test_the_room_of_a_user_is_always_open_and_no_room_of_a_lane() -> None:
    room = slots.room_of_owner("paused-retry")
    slot = slots.slot(room, "job", 4)
    assert slots.is_always_open(slot) and slots.is_safe(slot, 0) and slots.minute(slot) == room
    assert (slots.owner_of_room(room), slots.lane_of_room(room)) == ("paused-retry", None)
    assert slots.owner_of_room(slots.room_of("retry")) is None and slots.owner_of_room(slots.OVERFLOW) is None
