"""The screen of a terminal after the output of a program, and an SVG that plays its changes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_TOKEN = re.compile(r"\x1b\[(?P<numbers>[\d;?]*)(?P<order>[A-Za-z])|\x1b\][^\x07]*\x07|(?P<control>[\r\n\b])|(?P<text>[^\x1b\r\n\b]+)|\x1b")
COLOURS = {
    "31": "#ff7b72",
    "32": "#7ee787",
    "33": "#e3b341",
    "36": "#76e3ea",
}
INK, PAPER = "#e6edf3", "#0d1117"
CHARACTER, LINE, MARGIN, BAR = 8.4, 18, 16, 30  # pixels; the bar is the title's
LAST = 4.0  # seconds for which the last screen stays


@dataclass(frozen=True)
class Cell:
    """One character and how it is drawn."""

    text: str = " "
    colour: str = INK
    bold: bool = False
    dim: bool = False


BLANK = Cell()


class Screen:
    """The lines of a terminal. It knows the sequences that the command line writes: colours, and those that redraw a table."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self.lines: list[list[Cell]] = [[]]
        self._row = self._column = 0
        self._style = BLANK

    def write(self, output: str) -> None:
        """Show the output of a program."""
        for token in _TOKEN.finditer(output):
            if token["text"]:
                self._print(token["text"])
            elif token["control"]:
                self._move(token["control"])
            elif token["order"]:
                self._obey(token["order"], token["numbers"])

    def _print(self, text: str) -> None:
        while text:
            if self._column == self._columns:
                self._move("\n")
            room = self._columns - self._column
            self._put(text[:room])
            text = text[room:]

    def _put(self, text: str) -> None:
        line = self.lines[self._row]
        line += [BLANK] * (self._column + len(text) - len(line))
        style = self._style
        line[self._column : self._column + len(text)] = [Cell(each, style.colour, style.bold, style.dim) for each in text]
        self._column += len(text)

    def _move(self, control: str) -> None:
        if control == "\n":
            self._row += 1
            self._column = 0
            if self._row == len(self.lines):
                self.lines.append([])
        else:
            self._column = 0 if control == "\r" else max(0, self._column - 1)

    def _obey(self, order: str, numbers: str) -> None:
        if order == "m":
            for number in numbers.split(";"):
                self._set(number)
        elif order == "A":
            self._row = max(0, self._row - int(numbers or 1))
        elif order == "K":
            self.lines[self._row][0 if numbers == "2" else self._column :] = []

    def _set(self, number: str) -> None:
        style = self._style
        if number in ("", "0"):
            self._style = BLANK
        elif number in COLOURS:
            self._style = Cell(" ", COLOURS[number], style.bold, style.dim)
        elif number in ("1", "2"):
            self._style = Cell(" ", style.colour, style.bold or number == "1", style.dim or number == "2")

    def snapshot(self) -> "Frame":
        return tuple(tuple(line) for line in self.lines)


Frame = tuple[tuple[Cell, ...], ...]


def svg(frames: Sequence[tuple[float, Frame]], title: str, columns: int) -> str:
    """Return a picture that shows each frame from its instant (seconds) on, and begins again after the last one.

    Readers that want no motion see the last frame.
    """
    rows = max(len(frame) for _, frame in frames)
    width, height = columns * CHARACTER + 2 * MARGIN, BAR + rows * LINE + MARGIN
    total = frames[-1][0] + LAST
    starts = [at for at, _ in frames]
    rules, groups = list[str](), list[str]()
    for number, ((_, frame), begin, end) in enumerate(zip(frames, starts, [*starts[1:], total], strict=True)):
        last = number == len(frames) - 1
        rules.append(_rule(number, begin / total * 100, end / total * 100))
        groups.append(f'<g class="frame{" last" if last else ""}" style="animation-name:f{number}">{"".join(_lines(frame))}</g>')
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}">',
            "<style>",
            "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}",
            f".frame{{opacity:0;animation-duration:{total:.1f}s;animation-iteration-count:infinite;animation-timing-function:step-end}}",
            *rules,
            "@media (prefers-reduced-motion:reduce){.frame{animation:none}.last{opacity:1}}",
            "</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>',
            f'<text x="50%" y="20" text-anchor="middle" fill="{INK}" opacity="0.6">{escape(title)}</text>',
            *groups,
            "</svg>\n",
        )
    )


def _rule(number: int, begin: float, end: float) -> str:
    """The times of a frame as shares of the whole, in percent."""
    hidden = "0%{opacity:0}" if begin > 0 else ""
    over = f"{end:.2f}%{{opacity:0}}" if end < 100 else ""
    return f"@keyframes f{number}{{{hidden}{begin:.2f}%{{opacity:1}}{over}}}"


def _lines(frame: Frame) -> Iterator[str]:
    for row, line in enumerate(frame):
        spans = "".join(_span(text, style) for text, style in _runs(line))
        if spans:
            yield f'<text x="{MARGIN}" y="{BAR + (row + 1) * LINE - 5}" xml:space="preserve">{spans}</text>'


def _runs(line: Sequence[Cell]) -> Iterator[tuple[str, Cell]]:
    """Neighbours that are drawn in the same way, as one text."""
    text, style = "", BLANK
    for cell in line:
        if text and (cell.colour, cell.bold, cell.dim) != (style.colour, style.bold, style.dim):
            yield text, style
            text = ""
        text, style = text + cell.text, cell
    if text.strip():
        yield text, style


def _span(text: str, style: Cell) -> str:
    bold = ' font-weight="bold"' if style.bold else ""
    dim = ' opacity="0.6"' if style.dim else ""
    return f'<tspan fill="{style.colour}"{bold}{dim}>{escape(text)}</tspan>'
