"""Draws curves as a plain SVG, without a library: panels one below the other, over the same axis. Light and dark. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.sax.saxutils import escape

LEFT, WIDTH, HEIGHT, TOP, GAP = 70, 680, 170, 50, 46  # of a panel, and around it
LETTER = 7  # pixels, at most
COLOURS = "#1f6feb #d1242f #2da44e #8250df #bf8700 #0a7f8a #a0527a #57606a #e16f24 #4b3fae #6e7781 #94a0ad".split()
LONGEST_GAP = 15  # between two points in time that a line connects
TICKS = (1, 2, 2.5, 5, 10)
STYLE = """\
<style>
text{fill:#1f2328}.paper{fill:#fff}.grid{stroke:#ddd}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117}.grid{stroke:#30363d}.curve{filter:brightness(1.5)}}
</style>"""


@dataclass(frozen=True)
class Curve:
    """A named curve. `points`: (place on the axis, value), by place. It has the same colour in all panels."""

    name: str
    points: Sequence[tuple[float, float]]
    width: float = 1.5


@dataclass(frozen=True)
class Panel:
    title: str
    curves: Sequence[Curve]


@dataclass(frozen=True)
class Axis:
    """The horizontal axis of all panels, from `first` to `last`. A line ends where the next point is more than `gap` away."""

    first: float
    last: float
    unit: str
    gap: float
    is_log: bool

    def x(self, place: float) -> float:
        first, last, at = (log10(max(each, self.first)) if self.is_log else each for each in (self.first, self.last, place))
        return LEFT + WIDTH * (min(at, last) - first) / (last - first)

    def ticks(self) -> Sequence[float]:
        if self.is_log:
            return [10.0**power for power in range(round(log10(self.first)), round(log10(self.last)) + 1)]
        return [self.first + (self.last - self.first) * step / 6 for step in range(7)]


def svg(title: str, panels: Sequence[Panel], unit: str = "s", *, gap: float = LONGEST_GAP, is_log: bool = False) -> str:
    """Return the picture. All panels share the axis from the first point to the last, labelled in `unit`; `is_log`: in powers of ten."""
    curves = [curve for panel in panels for curve in panel.curves]
    places = [at for curve in curves for at, _ in curve.points if at > 0 or not is_log] or [1.0]
    first, last = min(places), max(max(places), min(places) + 1)
    if is_log:
        first, last = 10.0 ** floor(log10(first)), 10.0 ** ceil(log10(last))
    names = list(dict.fromkeys(curve.name for curve in curves))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    width = LEFT + WIDTH + 20 + LETTER * max(map(len, names), default=0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + len(panels) * (HEIGHT + GAP) + 10}" '
        'font-family="sans-serif" font-size="12">',
        STYLE,
        '<rect class="paper" width="100%" height="100%"/>',
        f'<text x="{LEFT}" y="24" font-size="16">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        lines += _panel(panel, TOP + number * (HEIGHT + GAP), Axis(first, last, unit, gap, is_log), colours)
    return "\n".join([*lines, "</svg>", ""])


def _panel(panel: Panel, top: int, axis: Axis, colours: dict[str, str]) -> Iterator[str]:
    bottom = top + HEIGHT
    most = nice(max((value for curve in panel.curves for _, value in curve.points), default=1))
    yield f'<text x="{LEFT}" y="{top - 6}" font-weight="bold">{escape(panel.title)}</text>'
    for step in range(5):
        y = bottom - HEIGHT * step / 4
        yield f'<path class="grid" d="M{LEFT} {y:.1f}h{WIDTH}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{most * step / 4:,.6g}</text>'
    for place in axis.ticks():
        label = f"{place:,.6g}" if axis.is_log else f"{place:,.0f}"
        yield f'<text x="{axis.x(place):.1f}" y="{bottom + 16}" text-anchor="middle">{label} {axis.unit}</text>'
    for number, curve in enumerate(panel.curves):
        colour = colours[curve.name]
        for points in _unbroken(curve.points, axis.gap):
            at = " ".join(f"{axis.x(place):.1f},{bottom - HEIGHT * value / most:.1f}" for place, value in points)
            if len(points) == 1:
                yield '<circle class="curve" cx="{}" cy="{}" r="3" fill="{}"/>'.format(*at.split(","), colour)
            else:
                yield f'<polyline class="curve" fill="none" stroke="{colour}" stroke-width="{curve.width}" points="{at}"/>'
        label = f'x="{LEFT + WIDTH + 10}" y="{top + 10 + 14 * number}" style="fill:{colour}"'
        yield f'<text class="curve" {label}>{escape(curve.name)}</text>'


def _unbroken(points: Sequence[tuple[float, float]], gap: float) -> Iterator[Sequence[tuple[float, float]]]:
    """Split the points at longer gaps: a line across a gap would show values that were not measured."""
    begin = 0
    for number in range(1, len(points) + 1):
        if number == len(points) or points[number][0] - points[number - 1][0] > gap:
            yield points[begin:number]
            begin = number


def nice(most: float) -> float:
    """Return a round end for an axis up to `most`.

    >>> [nice(value) for value in (0, 0.7, 12, 240, 9_999)]
    [1, 1.0, 20.0, 250.0, 10000.0]
    """
    size = 10.0 ** floor(log10(most)) if most > 0 else 1.0
    return next(tick * size for tick in TICKS if tick * size >= most)
