"""Draws curves as a plain SVG, without a library: panels one below the other, over the same time axis. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 900, 170, 70, 150, 50, 46
COLOURS = ("#1f6feb", "#d1242f", "#2da44e", "#8250df")
LONGEST_GAP = 15  # between two points that a line connects
TICKS = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Curve:
    """A named curve. `points`: (time, value), by time."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    title: str
    curves: Sequence[Curve]


def svg(title: str, panels: Sequence[Panel], unit: str = "s") -> str:
    """Return the picture. All panels share the time axis from the first point to the last, labelled in `unit`."""
    moments = [at for panel in panels for curve in panel.curves for at, _ in curve.points] or [0.0]
    first, last = min(moments), max(max(moments), min(moments) + 1)
    height = TOP + len(panels) * (PANEL + GAP) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="16">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        lines += _panel(panel, TOP + number * (PANEL + GAP), first, last, unit)
    return "\n".join([*lines, "</svg>", ""])


def _panel(panel: Panel, top: int, first: float, last: float, unit: str) -> list[str]:
    right, bottom = WIDTH - RIGHT, top + PANEL
    most = nice(max((value for curve in panel.curves for _, value in curve.points), default=1))
    lines = [f'<text x="{LEFT}" y="{top - 6}" font-weight="bold">{escape(panel.title)}</text>']
    for step in range(5):
        y, value = bottom - PANEL * step / 4, most * step / 4
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.6g}</text>')
    for step in range(7):
        x, value = LEFT + (right - LEFT) * step / 6, first + (last - first) * step / 6
        lines.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:.0f} {unit}</text>')
    for number, curve in enumerate(panel.curves):
        colour = COLOURS[number % len(COLOURS)]
        for points in _unbroken(curve.points):
            at = [(LEFT + (right - LEFT) * (moment - first) / (last - first), bottom - PANEL * value / most) for moment, value in points]
            if len(at) == 1:
                lines.append(f'<circle cx="{at[0][0]:.1f}" cy="{at[0][1]:.1f}" r="3" fill="{colour}"/>')
            else:
                line = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
                lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{line}"/>')
        lines.append(f'<text x="{right + 10}" y="{top + 14 + 18 * number}" fill="{colour}">{escape(curve.name)}</text>')
    return lines


def _unbroken(points: Sequence[tuple[float, float]]) -> Iterator[Sequence[tuple[float, float]]]:
    """Split the points at gaps longer than `LONGEST_GAP`: a line across a gap would show values that were not measured."""
    begin = 0
    for number in range(1, len(points) + 1):
        if number == len(points) or points[number][0] - points[number - 1][0] > LONGEST_GAP:
            yield points[begin:number]
            begin = number


def nice(most: float) -> float:
    """Return a round end for an axis up to `most`.

    >>> [nice(value) for value in (0, 0.7, 12, 240, 9_999)]
    [1, 1.0, 20.0, 250.0, 10000.0]
    """
    size = 1.0
    while size * 10 <= most:
        size *= 10
    while size > most > 0:
        size /= 10
    return next(tick * size for tick in TICKS if tick * size >= most) if most > 0 else 1
