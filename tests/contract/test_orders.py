"""The port Orders: ordering queues."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from scheduler.model import ids
from scheduler.model.job import OrderingQueue, OrderKey, QueueEntry, QueueHead
from scheduler.storage.ports import OrderingQueues, Written
from tests.contract.make import NOW

_numbers = itertools.count(1)


def a_key(**fields: str) -> OrderKey:
    return OrderKey(fields.get("owner", "ada"), f"order:{next(_numbers)}@x")


def a_marker(order: OrderKey, place: int, **fields: int) -> QueueEntry:
    at = NOW + place
    return QueueEntry(order, ids.new(at, next(_numbers)), at, fields.get("created_at", NOW - 9), fields.get("life", 0), NOW - 7)


def test_an_unused_queue_is_empty(orders: OrderingQueues) -> None:
    keys = [a_key(), a_key()]
    assert orders.lines(keys, limit=5) == {key: OrderingQueue() for key in keys}
    assert orders.lines([], limit=5) == {} and orders.enqueue([]) == [] and orders.set_heads([]) == []
    orders.leave([])


def test_entries_are_read_in_order_with_their_instants(orders: OrderingQueues) -> None:
    key = a_key()
    a, b, c = (letter * 26 for letter in "ABC")
    same = [QueueEntry(key, job, NOW + 5, created, life) for created, job, life in [(1, b, 0), (2, a, 0), (2, a, 1), (2, c, 0)]]
    made = [a_marker(key, -5), a_marker(key, 0), *same, a_marker(key, 1_000_000_000_000)]
    assert orders.enqueue([*reversed(made)]) == [Written.YES] * 7
    line = orders.lines([key], limit=10)[key]
    assert line == OrderingQueue(None, tuple(made), False) and line.entries[0].at == NOW - 7


def test_a_long_queue_is_read_up_to_a_limit_and_reports_more(orders: OrderingQueues) -> None:
    key = a_key()
    made = [a_marker(key, place) for place in range(30)]
    assert orders.enqueue(made) == [Written.YES] * 30
    for turn in (None, QueueHead(key, "j", NOW)):
        if turn is not None:
            assert orders.set_heads([(None, turn)]) == [Written.YES]
        assert orders.lines([key], limit=29)[key] == OrderingQueue(turn, tuple(made[:29]), True)
        assert orders.lines([key], limit=30)[key] == OrderingQueue(turn, tuple(made), False)
        assert orders.lines([key], limit=31)[key] == OrderingQueue(turn, tuple(made), False)


def test_an_existing_entry_is_not_overwritten(orders: OrderingQueues) -> None:
    key = a_key()
    marker, other = a_marker(key, 1), a_marker(key, 2)
    assert orders.enqueue([marker]) == [Written.YES]
    assert orders.enqueue([replace(marker, at=NOW), other]) == [Written.NO, Written.YES]
    assert [each.at for each in orders.lines([key], limit=5)[key].entries] == [NOW - 7] * 2


def test_leaving_a_queue_twice_succeeds(orders: OrderingQueues) -> None:
    key = a_key()
    made = [a_marker(key, place) for place in range(60)]
    orders.enqueue(made)
    orders.leave([*made[:55], made[0], a_marker(key, 99)])
    orders.leave(made[:3])
    assert orders.lines([key], limit=60)[key].entries == tuple(made[55:])


def test_queues_of_other_owners_and_keys_are_separate(orders: OrderingQueues) -> None:
    mine, other = a_key(), a_key()
    eve = OrderKey("eve", mine.key)
    orders.enqueue([a_marker(key, 1) for key in (mine, other, eve)])
    assert orders.set_heads([(None, QueueHead(mine, "j", NOW))]) == [Written.YES]
    lines = orders.lines([mine, other, eve, mine], limit=5)
    assert [len(lines[key].entries) for key in (mine, other, eve)] == [1, 1, 1]
    assert lines[mine].head is not None and lines[eve].head is None and lines[other].head is None


def test_a_turn_changes_only_from_its_last_version(orders: OrderingQueues) -> None:
    key = a_key()
    first = QueueHead(key, "a", NOW)
    second = QueueHead(key, "b", NOW + 1, 2)
    assert orders.set_heads([(None, first)]) == [Written.YES]
    assert orders.set_heads([(None, replace(first, job="z"))]) == [Written.NO]
    assert orders.set_heads([(first, second)]) == [Written.YES]
    assert orders.set_heads([(first, replace(second, job="z"))]) == [Written.NO]
    assert orders.set_heads([(None, first)]) == [Written.NO], "it was, and is no longer"
    assert orders.set_heads([(first, second)]) == [Written.YES], "as if the first answer had been lost"
    assert orders.lines([key], limit=1)[key].head == second
    missing = QueueHead(a_key(), "a", NOW)
    assert orders.set_heads([(missing, replace(missing, version=2))]) == [Written.NO]


def test_turns_of_one_call_change_independently_in_order(orders: OrderingQueues) -> None:
    made = [QueueHead(a_key(), "a", NOW) for _ in range(30)]
    assert orders.set_heads([(None, turn) for turn in made]) == [Written.YES] * 30
    stale = [(replace(turn, version=9), replace(turn, version=10)) for turn in made[:2]]
    good = [(turn, replace(turn, job="b", version=2)) for turn in made[2:]]
    assert orders.set_heads([*stale, *good]) == [Written.NO, Written.NO, *([Written.YES] * 28)]


def test_one_of_the_executors_that_race_for_a_turn_wins(orders: OrderingQueues) -> None:
    racers = 4
    ready = threading.Barrier(racers)

    def race(before: QueueHead | None, wanted: QueueHead) -> Written:
        ready.wait(60)
        (held,) = orders.set_heads([(before, wanted)])
        return held

    stands: QueueHead | None = None
    key = a_key()
    with ThreadPoolExecutor(racers) as threads:
        for number in range(8):
            wanted = [QueueHead(key, f"{number}-{racer}", NOW, number + 1) for racer in range(racers)]
            won = list(threads.map(race, [stands] * racers, wanted))
            assert [won.count(each) for each in Written] == [1, racers - 1, 0]
            stands = wanted[won.index(Written.YES)]
            assert orders.lines([key], limit=1)[key].head == stands
