"""The result of a run: a table, a line of JSON, and a block for an issue. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from prove.first_hour import Check, Seen

COLUMNS = ("jobs", "p50 ms", "p99 ms", "max ms", "lost", "early", "twice", "dollars")
FILE = "prove-report.json"
HIDDEN = (  # in this order: what is hidden whole comes before its parts
    (re.compile(r"\barn:[\w-]+:[^\s,;\"')\]]+"), "<arn>"),
    (re.compile(r"\bhttps?://[^\s,;\"')\]]+"), "<address>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w"), "<e-mail>"),
    (re.compile(r"(?<=/home/)[\w.-]+|(?<=/Users/)[\w.-]+"), "<user>"),
    (re.compile(r"(?<!\d)\d{12}(?!\d)"), "<account>"),
)
SHOWN = 20  # complaints that are printed; the JSON has all of them


@dataclass(frozen=True)
class Row:
    """The figures of one part, or of a peer. None: not measured; `note` says why, or what else was seen."""

    key: str
    title: str
    jobs: int
    p50_ms: int | None = None
    p99_ms: int | None = None
    max_ms: int | None = None
    lost: int | None = None
    early: int | None = None
    twice: int | None = None
    dollars: float | None = None
    note: str = ""

    def cells(self) -> list[str]:
        """Return the texts of the figures, in the order of `COLUMNS`."""
        figures = [self.jobs, self.p50_ms, self.p99_ms, self.max_ms, self.lost, self.early, self.twice]
        return ["" if figure is None else f"{figure:,}" for figure in figures] + ["" if self.dollars is None else f"{self.dollars:.5f}"]


@dataclass(frozen=True)
class Result:
    """All figures of a run, and a complaint for each broken promise."""

    context: Mapping[str, Any]  # stage, region, versions, commit ...
    rows: Sequence[Row]
    complaints: Sequence[str] = ()
    not_deleted: Sequence[str] = field(default=())
    first_hour: Sequence[tuple[Check, Seen]] = field(default=())

    @property
    def dollars(self) -> float:
        return sum(row.dollars or 0.0 for row in self.rows)


def table(rows: Iterable[Row]) -> Table:
    picture = Table(box=box.SIMPLE_HEAD)
    picture.add_column("part", no_wrap=True)
    for title in COLUMNS:
        picture.add_column(title, justify="right")
    for row in rows:
        picture.add_row(row.title, *row.cells())
    return picture


def notes(rows: Iterable[Row]) -> list[str]:
    """Return the notes of the rows, for the lines below the table."""
    return [f"{row.title}: {row.note}" for row in rows if row.note]


def summary(result: Result) -> dict[str, Any]:
    """Return the content of the line of JSON."""
    return {
        **result.context,
        "parts": {row.key: _record(row) for row in result.rows},
        "dollars": round(result.dollars, 4),
        "not_kept": list(result.complaints),
        "not_deleted": list(result.not_deleted),
        "first_hour": {
            check.key: {"does": check.does, "expects": check.expects, "outcome": seen.outcome, "note": seen.note}
            for check, seen in result.first_hour
        },
    }


def line(result: Result) -> str:
    """Return the result as one line of JSON, which names no account, person or address."""
    return json.dumps(_cleaned(summary(result)))


def save(result: Result, folder: Path) -> Path:
    """Write the result into a file that can be sent to others."""
    path = folder / FILE
    path.write_text(json.dumps(_cleaned(summary(result)), indent=2) + "\n")
    return path


def _cleaned(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _cleaned(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return anonymous(value) if isinstance(value, str) else value


def _record(row: Row) -> dict[str, Any]:
    figures = {name: value for name, value in asdict(row).items() if name != "key"}
    return figures | {"dollars": None if row.dollars is None else round(row.dollars, 7)}


def block(result: Result) -> str:
    """Return the result as Markdown for an issue, which names no account, person or address."""
    lines = [", ".join(f"{name} {value}" for name, value in result.context.items()), ""]
    lines += ["| " + " | ".join(("part", *COLUMNS, "note")) + " |", "|---" + "|--:" * len(COLUMNS) + "|---|"]
    lines += ["| " + " | ".join((row.title, *row.cells(), row.note)) + " |" for row in result.rows]
    lines += ["", f"Together {result.dollars:.4f} dollars. Promises that were broken: {len(result.complaints) or 'none'}."]
    lines += [f"- {text}" for text in shown(result.complaints)]
    lines += ["", "| first hour | outcome | note |", "|---|---|---|"] if result.first_hour else []
    lines += [f"| {check.key} | {seen.outcome} | {seen.note} |" for check, seen in result.first_hour]
    return anonymous("\n".join(lines))


def shown(complaints: Sequence[str]) -> list[str]:
    """Return the first complaints, and how many more there are."""
    more = len(complaints) - SHOWN
    return [*complaints[:SHOWN], *([f"and {more} more"] if more > 0 else [])]


def anonymous(text: str) -> str:
    """Return the text without account ids, ARNs, addresses, e-mail addresses and names of users.

    >>> anonymous("arn:aws:sqs:eu-west-1:123456789012:a, at 1795168800000")
    '<arn>, at 1795168800000'
    """
    for pattern, word in HIDDEN:
        text = pattern.sub(word, text)
    return text
