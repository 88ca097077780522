"""Figures and their budgets: an upper limit or a lower one."""

import io

import pytest
from rich.console import Console

from bench.figures import Figure, picture, summary

SLOW = Figure("slow", "rate", 99, "/s", budget=100, at_least=True)
DEAR = Figure("dear", "cost", 101, "$", budget=100)


@pytest.mark.parametrize(("value", "within", "reaches"), [(99, True, False), (100, True, True), (101, False, True)])
def test_a_budget_is_the_most_or_the_least(value: float, within: bool, reaches: bool) -> None:
    assert Figure("key", "what", value, budget=100).ok is within
    assert Figure("key", "what", value, budget=100, at_least=True).ok is reaches


def test_without_a_budget_nothing_is_judged() -> None:
    assert Figure("key", "what", 5).ok is None
    assert Figure("key", "what", 5).record() == {"value": 5, "unit": ""}


def test_the_record_shows_the_direction_of_the_budget() -> None:
    assert SLOW.record() == {"value": 99, "unit": "/s", "budget": 100, "ok": False, "at_least": True}
    assert DEAR.record() == {"value": 101, "unit": "$", "budget": 100, "ok": False}


def test_the_summary_names_figures_that_miss_their_budget() -> None:
    assert summary([SLOW, DEAR, Figure("fine", "what", 1, budget=2)])["over"] == ["slow", "dear"]


def test_the_table_shows_the_direction_of_each_budget() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(picture([SLOW, DEAR]))
    rate, cost = console.export_text().strip().splitlines()[-2:]
    assert rate.split() == ["rate", "99", "/s", "≥", "100", "under"]
    assert cost.split() == ["cost", "101", "$", "≤", "100", "over"]
