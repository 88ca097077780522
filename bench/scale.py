"""The tables and pictures of docs/concepts/scale.md, from recorded runs of `python -m tests.simulation.limits`. Pure."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from local.plot import Curve, Panel, svg

TOP, HOUR, SECOND, OWNER, API, HTTP = "scale-top", "scale-hour", "scale-second", "scale-owner", "scale-api", "scale-http"
RUNS = (TOP, HOUR, SECOND, OWNER, API, HTTP)
Record = Mapping[str, Any]
SHARES = (0, 1, 5, *range(10, 100, 10), 95, 98, 99, 100)  # of the quantiles of a scene
DELAY_MS, BUSY, POLLERS = 2, 3, 4  # the columns of a series

NOT_RUN = "<!-- not run: takes minutes; tests/simulation/test_limits.py runs the same model with fewer jobs -->"


def table(record: Record) -> Sequence[str]:
    """Return the figures of the scenes of jobs."""
    lines = [
        "| | jobs | p50 | p99 | max | most executors | pollers | cost, dollars |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for name, seen in record["scenes"].items():
        p50, p99, most = (f"{seen[key] / 1_000:.2f} s" for key in ("p50_ms", "p99_ms", "max_ms"))
        dollars = " + ".join(f"{amount:.2f} {what}" for what, amount in seen["dollars"].items() if amount)
        cells = [f"{seen['jobs']:,}", p50, p99, most, f"{seen['most_executors']:,}", f"{seen['most_pollers']:,}", dollars]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| p99 of the parts of a delay, s | left late | waited for an executor | in the executor | longest waits, ms |"]
    lines.append("|---|--:|--:|--:|---|")
    for name, seen in record["scenes"].items():
        parts = " | ".join(f"{ms / 1_000:.2f}" for ms in seen["p99_of_its_parts_ms"].values())
        waits = ", ".join(f"{what} {ms:,}" for what, ms in seen["longest_wait_ms"].items()) or "none"
        lines.append(f"| {name} | {parts} | {waits} |")
    return lines


def requests(record: Record) -> Sequence[str]:
    """Return the figures of the scenes of requests."""
    lines = [
        "| | requests | answered | refused | p50 | p99 | p99 from second 5 on | most executions | dollars a million |",
        "|---|--:|--:|---|--:|--:|--:|--:|--:|",
    ]
    for name, seen in record["scenes"].items():
        refused = ", ".join(f"{count:,} by {what}" for what, count in seen["refused"].items()) or "none"
        cells = [f"{seen['requests']:,}", f"{seen['answered']:,}", refused]
        cells += [f"{seen[key]:,} ms" for key in ("p50_ms", "p99_ms", "p99_from_second_5_ms")]
        cells += [f"{seen['most_executions']:,}", f"{seen['dollars_a_million']:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def calls(record: Record) -> Sequence[str]:
    """Return the figures of the scenes of calls of URLs."""
    lines = [
        "| | jobs | p50 | p99 | all started after | executors | calls at once | refused calls | deferrals of a job | throttled |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for name, seen in record["scenes"].items():
        cells = [f"{seen['jobs']:,}", *(f"{seen[key] / 1_000:.1f} s" for key in ("p50_ms", "p99_ms", "all_started_after_ms"))]
        cells += [f"{seen[key]:,}" for key in ("most_executors", "most_calls", "calls_refused", "most_deferrals")]
        lines.append(f"| {name} | {' | '.join(cells)} | {', '.join(seen['throttled']) or 'nothing'} |")
    return lines


def part(run: str) -> Any:
    """Return the maker of the Markdown of a run: on what it was made, its command, its table and its picture."""
    make = {API: requests, HTTP: calls}.get(run, table)

    def content(record: Record) -> Sequence[str]:
        command = f".venv/bin/python -m tests.simulation.limits {record['arguments']}"
        on = f"Recorded on {record['run']['day']}, of `{record['run']['commit']}`:"
        return [NOT_RUN, "```sh", command, "```", "", on, "", *make(record), "", f"![{run}](../images/{run}.svg)"]

    return content


def picture(run: str, record: Record) -> str:
    """Return the picture of a run, as SVG."""
    scenes = record["scenes"]
    if run in (SECOND, OWNER, HTTP):
        curves = [
            Curve(name.removeprefix("burst, "), [(float(ms), float(share)) for share, ms in zip(SHARES, seen["quantiles_ms"], strict=True)])
            for name, seen in scenes.items()
            if run == HTTP or name.startswith("burst")
        ]
        title = (
            "Jobs of one instant that call URLs"
            if run == HTTP
            else "50,000 jobs within a second" + (", of one user" if run == OWNER else "")
        )
        return svg(title, [Panel("share of the jobs that had started, %, by start delay", curves)], "ms", gap=inf)
    if run == API:
        return svg(
            "1,000 requests a second",
            [
                Panel("p99 of the answers, ms", [_column(name, seen, 2) for name, seen in scenes.items()]),
                Panel("executions at once, at most", [_column(name, seen, 3) for name, seen in scenes.items()]),
            ],
        )
    title = {TOP: "10,000 jobs a second", HOUR: "5,000,000 jobs an hour"}[run]
    return svg(
        title,
        [
            Panel("start delay p99, ms", [_column(name, seen, DELAY_MS) for name, seen in scenes.items()]),
            Panel("executors at once, at most", [_column(name, seen, BUSY) for name, seen in scenes.items()]),
            Panel("pollers kept ready", [_column(name, seen, POLLERS) for name, seen in scenes.items()]),
        ],
    )


def _column(name: str, seen: Record, column: int) -> Curve:
    short = name.rpartition(", ")[2]
    return Curve(short, [(float(row[0]), float(row[column])) for row in seen["series"]])
