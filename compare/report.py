"""The tables and the picture of a comparison. Pure."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from compare.work import QUANTILES
from local.plot import Curve, Panel, svg

Records = Mapping[str, Mapping[str, Any]]  # the records of one contestant, by workload

FIGURES = (("p50", "p50"), ("p99", "p99"), ("most", "max"))
LEAST_MS = 0.1  # of the axis


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
    panels = []
    for key, title in works.items():
        runs = {name: _middle_run(records[key])["quantiles"] for name, records in found.items() if key in records}
        if runs:
            panels.append(
                Panel(title, [_curve(titles[name], quantiles, name == next(iter(found))) for name, quantiles in runs.items() if quantiles])
            )
    return svg("Share of the jobs that had started, %, by start delay", panels, "ms", gap=inf, is_log=True)


def _curve(title: str, quantiles: Sequence[float], is_ours: bool) -> Curve:
    points = [(max(delay, LEAST_MS), float(share)) for share, delay in zip(QUANTILES, quantiles, strict=True)]
    return Curve(title.replace("`", ""), points, 2.5 if is_ours else 1.2)


def _middle_run(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the run with the median p50; runs without starts come last."""
    runs = sorted(record["runs"], key=lambda run: float("inf") if run["p50"] is None else run["p50"])
    middle: Mapping[str, Any] = runs[(len(runs) - 1) // 2]
    return middle
