"""One measured figure and its budget; the table and the last line of `make bench`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `key` names it in the JSON. A figure without a budget is for comparison with its neighbour."""

    key: str
    what: str
    value: float
    unit: str = ""
    budget: float | None = None  # the largest allowed value ...
    at_least: bool = False  # ... or, for a speed, the smallest

    @property
    def ok(self) -> bool | None:
        if self.budget is None:
            return None
        return self.value >= self.budget if self.at_least else self.value <= self.budget

    def record(self) -> dict[str, Any]:
        judged = {} if self.budget is None else {"budget": self.budget, "ok": self.ok}
        return {"value": self.value, "unit": self.unit} | judged | ({"at_least": True} if self.at_least else {})


def picture(figures: Sequence[Figure]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("figure")
    for title in ("value", "budget"):
        table.add_column(title, justify="right")
    table.add_column("")
    for figure in figures:
        budget = "" if figure.budget is None else f"{'≥' if figure.at_least else '≤'} {_number(figure.budget)}"
        table.add_row(figure.what, f"{_number(figure.value)} {figure.unit}".strip(), budget, _word(figure))
    return table


def summary(figures: Sequence[Figure], **context: Any) -> dict[str, Any]:
    """Return the content of the last line, for programs that compare runs."""
    return {
        **context,
        "figures": {figure.key: figure.record() for figure in figures},
        "over": [figure.key for figure in figures if figure.ok is False],
    }


def _word(figure: Figure) -> str:
    return {None: "", True: "[green]ok[/]", False: f"[red]{'under' if figure.at_least else 'over'}[/]"}[figure.ok]


def _number(value: float) -> str:
    """Return the number with three significant digits; whole numbers unchanged.

    >>> [_number(value) for value in (0.1234, 12.345, 1500.0, 3.0, 0)]
    ['0.123', '12.3', '1500', '3', '0']
    """
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
