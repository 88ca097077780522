"""Worlds in which calls raise any error, batches are answered in part, and ticks come late a second time."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler.storage.ports import Written
from tests.simulation.unexpected import Surprising, UnexpectedWorld


@pytest.mark.parametrize("seeds", [[2], pytest.param([1, 3, 4, 5, 6, 7], marks=pytest.mark.long)], ids=["one", "several"])
def test_no_error_and_no_answer_in_part_loses_a_job(seeds: list[int]) -> None:
    faults: Counter[str] = Counter()
    for seed in seeds:
        report = UnexpectedWorld(seed).run(200, 10, tasks=2, ordered=30, wind_down=95)
        assert report.violations == {}, report.examples
        assert report.accepted > 150
        faults.update(report.faults)
    assert min(faults[name] for name in ("unexpected", "ended by an unexpected error", "partly", "old event")) >= len(seeds)


class Table:
    """Applies every change that it receives."""

    def __init__(self) -> None:
        self.applied: list[int] = []

    def change(self, changes: Sequence[int]) -> list[Written]:
        self.applied += changes
        return [Written.YES] * len(changes)

    def publish(self, messages: Sequence[int]) -> list[int]:
        self.applied += messages
        return [3]


def partly(name: str, seed: int) -> tuple[Any, list[int]]:
    """Return the answers of a call of ten entries that is answered in part, and the entries of which it had an effect."""
    table, world = Table(), SimpleNamespace(chance=Random(seed))
    answers = Surprising(table, world)._partly(name, getattr(table, name), list(range(10)))  # type: ignore[arg-type]
    return answers, table.applied


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_in_part_names_an_entry_as_done_only_if_it_is(seed: int) -> None:
    answers, applied = partly("change", seed)
    assert len(answers) == 10 and 0 < answers.count(Written.REFUSED) < 10
    assert {number for number, answer in enumerate(answers) if answer is Written.YES} <= set(applied)


@pytest.mark.parametrize("seed", range(8))
def test_a_publish_in_part_returns_every_message_that_was_not_sent(seed: int) -> None:
    refused, applied = partly("publish", seed)
    assert 3 in refused and len(set(refused)) == len(refused)
    assert set(range(10)) - set(applied) <= set(refused)
