"""What a command prints: tables for people, lines of tabs for pipes, JSON for programs."""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

T = TypeVar("T")
STYLES = {
    "scheduled": "cyan",
    "queued": "yellow",
    "running": "bold yellow",
    "succeeded": "green",
    "done": "green",
    "active": "green",
    "ok": "green",
    "failed": "bold red",
    "fail": "bold red",
    "killed": "red",
    "aborted": "red",
    "warn": "yellow",
    "inactive": "yellow",
    "cancelled": "dim",
    "skipped": "dim",
    "ended": "dim",
}


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table: its heading, and the text of an entry. An `essential` one is never shortened."""

    heading: str
    text: Callable[[T], object]
    essential: bool = False
    right: bool = False


@dataclass
class Output:
    """The output of one command.

    Results go to `stdout`. Remarks, questions and progress go to `stderr`, and only if that is a terminal; errors always.
    """

    as_json: bool = False
    quiet: bool = False
    out: Console = field(default_factory=lambda: Console(file=sys.stdout, highlight=False, soft_wrap=True))
    err: Console = field(default_factory=lambda: Console(file=sys.stderr, highlight=False, soft_wrap=True))

    @property
    def live(self) -> bool:
        """Whether to show progress and pictures that change: for a person at a terminal, who wants neither JSON nor quiet."""
        return self.out.is_terminal and not self.as_json and not self.quiet

    def document(self, data: Any) -> None:
        """Print one JSON document, indented."""
        self.raw(json.dumps(data, indent=2, ensure_ascii=False))

    def line(self, data: Any) -> None:
        """Print one JSON document in one line."""
        self.raw(json.dumps(data, ensure_ascii=False, separators=(",", ":")))

    def raw(self, text: str) -> None:
        """Print a text as it is."""
        self.out.file.write(text if text.endswith("\n") else text + "\n")
        self.out.file.flush()

    def say(self, text: str, style: str | None = None) -> None:
        """Print a sentence for people; nothing with `--json` or `--quiet`."""
        if not self.as_json and not self.quiet:
            self.out.print(Text(text, style or ""))

    def remark(self, text: str) -> None:
        """Print something that is no result, such as a next step; for people at a terminal only."""
        if self.err.is_terminal and not self.as_json and not self.quiet:
            self.err.print(Text(text, "dim"))

    def result(self, data: Any, sentence: str, quiet: str | None = None) -> None:
        """Print the result of a command: the document, or what identifies it (`quiet`), or a sentence."""
        if self.as_json:
            self.document(data)
        elif self.quiet:
            if quiet is not None:
                self.raw(quiet)
        else:
            self.say(sentence)

    def details(self, data: Any, pairs: Iterable[tuple[str, object]], quiet: str) -> None:
        """Print one record: the document, or its id, or its fields in two columns; empty ones are left out."""
        if self.as_json:
            self.document(data)
        elif self.quiet:
            self.raw(quiet)
        else:
            known = [(name, str(value)) for name, value in pairs if value not in (None, "", (), [], {})]
            width = max((len(name) for name, _ in known), default=0)
            for name, value in known:
                first, *rest = value.splitlines() or [""]
                self.out.print(Text.assemble((f"{name:<{width}}  ", "dim"), (first, STYLES.get(first, ""))))
                for each in rest:
                    self.out.print(Text(" " * (width + 2) + each))

    def entries(
        self, entries: Iterable[T], shown: Sequence[Column[T]], raw: Callable[[T], Mapping[str, Any]], none: str, id: Callable[[T], str]
    ) -> int:
        """Print a list, and return how many entries it has.

        JSON: one line for each entry. Quiet: one id a line. A terminal: a table, or `none`. Else: fields between tabs, uncut
        and without headings.
        """
        if self.as_json or self.quiet or not self.out.is_terminal:
            count = 0
            for entry in entries:
                count += 1
                if self.as_json:
                    self.line(raw(entry))
                else:
                    self.raw(id(entry) if self.quiet else "\t".join(" ".join(str(column.text(entry)).split()) for column in shown))
            return count
        listed = list(entries)
        if listed:
            self.out.print(table(listed, shown), soft_wrap=False)
        else:
            self.say(none, "dim")
        return len(listed)


def table(entries: Iterable[T], shown: Sequence[Column[T]]) -> Table:
    """Return the entries as a table without lines; a column that is empty everywhere is left out."""
    rows = [[str(column.text(entry) or "") for column in shown] for entry in entries]
    filled = [index for index in range(len(shown)) if any(row[index] for row in rows)]
    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="dim")
    for index in filled:
        column = shown[index]
        found.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="fold" if column.essential else "ellipsis",
            min_width=max(len(row[index]) for row in rows) if column.essential else None,
        )
    for row in rows:
        found.add_row(*(Text(row[index], STYLES.get(row[index], "")) for index in filled))
    return found
