"""The output of a command: tables for people, lines of tabs for pipes, JSON for programs."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from punctual.cli import _words as words
from punctual.texts import in_json, visible

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
    "critical": "bold red",
    "warning": "yellow",
    "inactive": "yellow",
    "cancelled": "dim",
    "skipped": "dim",
    "ended": "dim",
}


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table: its heading, and the text of an entry. An `essential` one is never shortened.

    `piped` is the text for programs, if it is another one.
    """

    heading: str
    text: Callable[[T], object]
    essential: bool = False
    right: bool = False
    piped: Callable[[T], object] | None = None


def instants(heading: str, at: Callable[[T], datetime | None], now: datetime, *, essential: bool = False) -> Column[T]:
    """Return a column of instants: as people read them at `now`, and for programs in ISO 8601 with date and offset."""
    return Column(heading, lambda each: words.clock(at(each), now), essential, piped=lambda each: words.wire(at(each)))


class _Terminal(Console):
    """A console that prints no control character of a text, whichever command prints it; its own colours and movements stay."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)


@dataclass
class Output:
    """The output of one command.

    Results go to `stdout`. Remarks and questions go to `stderr`, remarks only if that is a terminal; errors always. `terminal` says that
    both are one; by default each is looked at. Colours are for terminals only, and not with NO_COLOR.
    """

    as_json: bool = False
    quiet: bool = False
    terminal: bool | None = None
    out: Console = field(init=False)
    err: Console = field(init=False)

    def __post_init__(self) -> None:
        self.out, self.err = (
            _Terminal(file=file, highlight=False, soft_wrap=True, force_terminal=file.isatty() if self.terminal is None else self.terminal)
            for file in (sys.stdout, sys.stderr)
        )

    @property
    def live(self) -> bool:
        """Whether to show progress and pictures that change: at a terminal, without `--json` and `--quiet`."""
        return self.out.is_terminal and not self.as_json and not self.quiet

    def document(self, data: Any) -> None:
        """Print one JSON document, indented."""
        self._write(in_json(data, 2))

    def line(self, data: Any) -> None:
        """Print one JSON document in one line."""
        self._write(in_json(data))

    def raw(self, text: str) -> None:
        """Print a text: at a terminal without its control characters, else as it is."""
        self._write(visible(text) if self.out.is_terminal else text)

    def _write(self, text: str) -> None:
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
                self._write(visible(quiet))
        else:
            self.say(sentence)

    def details(self, data: Any, pairs: Iterable[tuple[str, object]], quiet: str) -> None:
        """Print one record: the document, or its id, or its fields in two columns; empty ones are left out."""
        if self.as_json:
            self.document(data)
        elif self.quiet:
            self._write(visible(quiet))
        else:
            known = [(name, str(value)) for name, value in pairs if value not in (None, "", (), [], {})]
            width = max((len(name) for name, _ in known), default=0)
            for name, value in known:
                first, *rest = visible(value).split("\n")
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
                    self._write(
                        visible(id(entry)) if self.quiet else "\t".join(_cell(column.piped or column.text, entry) for column in shown)
                    )
            return count
        listed = list(entries)
        if listed:
            self.out.print(table(listed, shown, self.out.width), soft_wrap=False)
        else:
            self.say(none, "dim")
        return len(listed)


def _cell(text: Callable[[T], object], entry: T) -> str:
    return visible(" ".join(str(text(entry)).split()))


GAP = 2  # blanks between two columns
LEAST = 6  # characters of a column that was cut


def table(entries: Iterable[T], shown: Sequence[Column[T]], width: int) -> Table:
    """Return the entries as a table of at most `width` characters without lines.

    A column that is empty everywhere is left out. In a narrow terminal the last ones are left out that are not essential.
    """
    rows = [[_cell(column.text, entry) for column in shown] for entry in entries]
    filled = [index for index in range(len(shown)) if any(row[index] for row in rows)]
    natural = {index: max(len(shown[index].heading), *(cell_len(row[index]) for row in rows)) for index in filled}
    flexible = {index: natural[index] for index in filled if not shown[index].essential}
    fixed = sum(natural[index] for index in filled if shown[index].essential)
    while flexible and fixed + GAP * len(filled) + sum(min(LEAST, natural_width) for natural_width in flexible.values()) > width:
        filled.remove(max(flexible))
        del flexible[max(flexible)]
    widths = natural | shared(flexible, width - fixed - GAP * len(filled))
    found = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for index in filled:
        justify: JustifyMethod = "right" if shown[index].right else "left"
        found.add_column(shown[index].heading, justify=justify, no_wrap=True, overflow="ellipsis", width=widths[index])
    for row in rows:
        found.add_row(*(Text(row[index], STYLES.get(row[index], "")) for index in filled))
    return found


def shared(natural: Mapping[int, int], room: int) -> dict[int, int]:
    """Return widths that fit into the room: the narrow columns get what they need, the wide ones share the rest; each gets `LEAST`.

    >>> shared({0: 4, 1: 50, 2: 30}, 44)
    {0: 4, 2: 20, 1: 20}
    """
    found, left = dict[int, int](), room
    for number, (index, natural_width) in enumerate(sorted(natural.items(), key=lambda each: each[1])):
        found[index] = min(natural_width, max(LEAST, left // (len(natural) - number)))
        left -= found[index]
    return found
