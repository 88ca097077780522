"""The port Counters."""

import random
from collections import Counter

import pytest

from scheduler.model.counters import Counted, CounterEntry, Row
from scheduler.storage.aws.counters import MOST_NAMES
from scheduler.storage.ports import Counters

ROW = Row("load#ada", "2026-11-20T10")


def entry(number: int, row: Row = ROW, **amounts: int) -> CounterEntry:
    return CounterEntry(row, f"{number:040d}", amounts or {"05#log": 1})


def amounts(counters: Counters, row: Row = ROW) -> dict[str, int]:
    found = counters.read(row.partition, row.name, row.name + "~")
    return dict(found[0].amounts) if found else {}


def test_entries_of_all_shards_add_up(counters: Counters) -> None:
    counters.add("a", [entry(1), entry(2, other=5), entry(3, other=-2)])
    counters.add("b", [entry(1), entry(2)])
    assert amounts(counters) == {"05#log": 3, "other": 3}


def test_a_repeated_batch_adds_nothing(counters: Counters) -> None:
    batch = [entry(1), entry(4), entry(9)]
    for _ in range(3):
        counters.add("a", batch)
    assert amounts(counters) == {"05#log": 3}


def test_only_the_new_entries_of_a_grown_batch_count(counters: Counters) -> None:
    counters.add("a", [entry(1), entry(2)])
    counters.add("a", [entry(1), entry(2), entry(3), entry(10)])
    assert amounts(counters) == {"05#log": 4}


def test_amounts_that_cancel_out_are_not_returned(counters: Counters) -> None:
    counters.add("a", [entry(1)])
    counters.add("b", [entry(1, **{"05#log": -1})])
    assert amounts(counters) == {}


def test_rows_are_read_by_a_half_open_range_of_names(counters: Counters) -> None:
    hours = [Row("load#ada", f"2026-11-20T{hour:02d}") for hour in range(8, 13)]
    counters.add("a", [entry(1, row, n=number + 1) for number, row in enumerate(hours)])
    counters.add("b", [entry(1, hours[2], n=10), entry(1, Row("load#eve", "2026-11-20T10"))])
    assert counters.read("load#ada", "2026-11-20T09", "2026-11-20T11") == [
        Counted("2026-11-20T09", {"n": 2}),
        Counted("2026-11-20T10", {"n": 13}),
    ]
    assert counters.read("load#bob", "0", "~") == []


def test_a_row_returns_its_description(counters: Counters) -> None:
    counters.add("a", [entry(1, Row("recurring#ada", "ab12", None, '["a cron"]'), tasks=1)])
    assert counters.read("recurring#ada", "0", "~") == [Counted("ab12", {"tasks": 1}, '["a cron"]')]


@pytest.mark.long
def test_a_batch_beyond_one_write_is_counted_completely_and_once(counters: Counters) -> None:
    batch = [entry(number, **{f"{number % 60:02d}#type{number // 60}": 1}) for number in range(3 * MOST_NAMES)]
    counters.add("a", batch[:170])
    counters.add("a", batch)
    assert amounts(counters) == dict(Counter(name for each in batch for name in each.amounts))


def test_forgotten_rows_are_gone(counters: Counters) -> None:
    for shard in ("a", "b"):
        counters.add(shard, [entry(1), entry(1, Row("load#ada", "2026-11-20T11"))])
    (first, second) = counters.read("load#ada", "2026", "3")
    counters.forget("load#ada", [first])
    assert counters.read("load#ada", "2026", "3") == [second]


@pytest.mark.parametrize("seed", range(5))
def test_everything_counts_once_despite_cuts_repeats_and_deaths(counters: Counters, seed: int) -> None:
    """A shard arrives in batches from its checkpoint; a failed batch is repeated in halves while its first call may still be writing."""
    chance = random.Random(seed)
    rows = [Row("load#ada", f"2026-11-20T{hour:02d}") for hour in range(4)]
    stream = [entry(number, chance.choice(rows)) for number in range(1, 80)]

    def half_done(batch: list[CounterEntry]) -> None:
        """Some rows were written when the call failed: each of them with all its entries of the batch."""
        written = chance.sample(rows, chance.randint(0, 3))
        counters.add("a", [each for each in batch if each.row in written])

    done, size = 0, 0
    stale: list[list[CounterEntry]] = []
    while done < len(stream):
        size = size or chance.randint(1, 20)
        batch = stream[done : done + size]
        if chance.random() < 0.5:
            half_done(batch)
            stale.append(batch)
            size = max(1, size // 2) if chance.random() < 0.7 else size
            continue
        if stale and chance.random() < 0.5:
            half_done(stale[-1])  # the abandoned call is still running
        counters.add("a", batch)
        done, size = done + len(batch), 0
    expected = Counter(each.row.name for each in stream)
    assert {row.name: row.amounts["05#log"] for row in counters.read("load#ada", "2026", "3")} == dict(expected)
