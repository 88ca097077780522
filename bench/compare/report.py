"""The tables and the picture of a comparison. Pure."""

from collections.abc import Mapping, Sequence
from math import log10
from typing import Any
from xml.sax.saxutils import escape

from bench.compare.work import QUANTILES
from local.plot import LEFT, RIGHT, TOP, WIDTH

Records = Mapping[str, Mapping[str, Any]]  # the records of one contestant, by workload

FIGURES = (("p50", "p50"), ("p99", "p99"), ("most", "max"))
COLOURS = (
    "#d1242f",
    "#1f6feb",
    "#2da44e",
    "#8250df",
    "#bf8700",
    "#0a7f8a",
    "#a0527a",
    "#57606a",
    "#e16f24",
    "#4b3fae",
    "#6e7781",
    "#afb8c1",
)
PANEL, GAP, DECADES = 230, 60, (0.1, 100_000.0)


def table(key: str, found: Mapping[str, Records], titles: Mapping[str, str], skipped: Mapping[str, str]) -> list[str]:
    """Return the Markdown table of a workload: a row for each contestant, the median of its runs, and their range in brackets."""
    lines = [
        "| | start delay p50, ms | p99, ms | max, ms | lost | CPU ms a job | memory, MB | created a second |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, records in found.items():
        if key not in records:
            lines.append(f"| {titles[name]} | {skipped.get(f'{name}.{key}', 'not run')} | | | | | | |")
            continue
        record = records[key]
        cells = [_cell(record.get(figure)) for figure, _ in FIGURES]
        cells += [
            f"{record['lost']:,}",
            _cell(record.get("cpu_ms_per_job")),
            _cell(record.get("memory_mb")),
            _cell(record.get("created_per_s")),
        ]
        lines.append(f"| {titles[name]} | {' | '.join(cells)} |")
    return lines


def ratio_table(ratios: Mapping[str, Mapping[str, Any]], works: Mapping[str, str]) -> list[str]:
    lines = ["| workload | figure | Punctual, ms | best peer | its, ms | ratio |", "|---|---|--:|---|--:|--:|"]
    for key, figures in ratios.items():
        for figure, each in figures.items():
            lines.append(
                f"| {works[key]} | {figure} | {number(each['ours'])} | {each['best']} | {number(each['its'])} | {each['ratio']:.2f} |"
            )
    return lines


def _cell(summary: Mapping[str, float] | None) -> str:
    if summary is None:
        return "–"
    middle, least, most = (number(summary[name]) for name in ("median", "least", "most"))
    return middle if least == most else f"{middle} ({least}–{most})"


def number(value: float) -> str:
    """Return a figure with three digits at most after its first.

    >>> [number(value) for value in (0.0312, 4.26, 31.5, 1234.5)]
    ['0.03', '4.3', '32', '1,234']
    """
    return f"{value:.2f}" if 0 < value < 1 else f"{value:.1f}".removesuffix(".0") if value < 10 else f"{value:,.0f}"


def picture(found: Mapping[str, Records], titles: Mapping[str, str], works: Mapping[str, str]) -> str:
    """Return the start delays of each workload as cumulative shares of its jobs over a logarithmic axis of milliseconds, as SVG."""
    shown = [key for key in works if any(key in records for records in found.values())]
    height = TOP + len(shown) * (PANEL + GAP) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="16">Share of the jobs that had started, by start delay</text>',
    ]
    for number_, key in enumerate(shown):
        lines += _panel(key, works[key], TOP + number_ * (PANEL + GAP), found, titles)
    return "\n".join([*lines, "</svg>", ""])


def _panel(key: str, title: str, top: int, found: Mapping[str, Records], titles: Mapping[str, str]) -> list[str]:
    right, bottom = WIDTH - RIGHT - 30, top + PANEL
    lines = [f'<text x="{LEFT}" y="{top - 6}" font-weight="bold">{escape(title)}</text>']
    for share in (0, 25, 50, 75, 100):
        y = bottom - PANEL * share / 100
        lines.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share} %</text>')
    decade = DECADES[0]
    while decade <= DECADES[1]:
        x = _x(decade, right)
        lines.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="#eee"/>')
        lines.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{decade:,.6g} ms</text>')
        decade *= 10
    row = 0
    for index, (name, records) in enumerate(found.items()):
        quantiles: Sequence[float] = _middle_run(records[key])["quantiles"] if key in records else ()
        if not quantiles:
            continue
        colour = COLOURS[index % len(COLOURS)]
        points = " ".join(
            f"{_x(delay, right):.1f},{bottom - PANEL * share / 100:.1f}" for share, delay in zip(QUANTILES, quantiles, strict=True)
        )
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{2.5 if index == 0 else 1.2}" points="{points}"/>')
        lines.append(f'<text x="{right + 10}" y="{top + 12 + 16 * row}" fill="{colour}">{escape(titles[name].replace("`", ""))}</text>')
        row += 1
    return lines


def _middle_run(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the run with the median p50; runs without starts come last."""
    runs = sorted(record["runs"], key=lambda run: float("inf") if run["p50"] is None else run["p50"])
    middle: Mapping[str, Any] = runs[(len(runs) - 1) // 2]
    return middle


def _x(delay: float, right: int) -> float:
    low, high = (log10(end) for end in DECADES)
    at = (log10(min(max(delay, DECADES[0]), DECADES[1])) - low) / (high - low)
    return LEFT + (right - LEFT) * at
