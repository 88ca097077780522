"""`python -m bench.pages`: writes the marked parts of the docs from the recorded runs in `bench/results`.

A part stands between `<!-- NAME: begin -->` and `<!-- NAME: end -->`; `PARTS` lists the pages and the content of each. A test checks that
all are current. A part whose run is not recorded says so.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import ratios, scale
from bench.results import RESULTS, read
from compare import report
from local.home import REPOSITORY

DOCS = REPOSITORY / "docs"
RUN = "| machine | Python | commit | day | load before |\n|---|---|---|---|---|\n| {machine} | {python} | `{commit}` | {day} | {load} |"


class Part(NamedTuple):
    """A marked part: its page below `docs`, its name, the recorded run, and the Markdown made of it."""

    page: str
    name: str
    run: str
    content: Callable[[Mapping[str, Any]], Sequence[str]]


def run_of(record: Mapping[str, Any]) -> str:
    """Return the table of where, when and on what a run took place."""
    return RUN.format(**record["run"])


def figures(*rows: tuple[str, str]) -> Callable[[Mapping[str, Any]], Sequence[str]]:
    """Return a maker of the table of a run of `make bench`, with a row for each (key, title)."""

    def content(record: Mapping[str, Any]) -> Sequence[str]:
        lines = [run_of(record), "", "| figure | measured | budget |", "|---|--:|--:|"]
        for key, title in rows:
            figure = record["figures"].get(key)
            if figure is None:
                lines.append(f"| {title} | not run | |")
                continue
            sign, over = ("≥", "under") if figure.get("at_least") else ("≤", "over")
            budget = "" if "budget" not in figure else f"{sign} {figure['budget']:g}{'' if figure['ok'] else f': {over}'}"
            lines.append(f"| {title} | {report.number(figure['value'])} {figure['unit']} | {budget} |")
        return lines

    return content


def delays(*parts: tuple[str, str]) -> Callable[[Mapping[str, Any]], Sequence[str]]:
    """Return a maker of the table of start delays, with a row for each (part of the section `delay`, title)."""

    def content(record: Mapping[str, Any]) -> Sequence[str]:
        lines = [run_of(record), "", "| work | p50 | p95 | p99 | max | early, lost, doubled | budgets |", "|---|--:|--:|--:|--:|---|---|"]
        for part, title in parts:
            found = {name.rpartition(".")[2]: each for name, each in record["figures"].items() if name.startswith(f"delay.{part}.")}
            if not found:
                lines.append(f"| {title} | not run | | | | | |")
                continue
            values = [f"{report.number(found[name]['value'])} ms" for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")]
            counts = ", ".join(report.number(found[name]["value"]) for name in ("early", "lost", "duplicated"))
            limits = [(name, found[f"{name}_ms"]) for name in ("p50", "p99") if "budget" in found[f"{name}_ms"]]
            budgets = ", ".join(f"{name} ≤ {each['budget']:g}" + ("" if each["ok"] else ": over") for name, each in limits)
            lines.append(f"| {title} | {' | '.join(values)} | {counts} | {budgets} |")
        return lines

    return content


def comparison_summary(record: Mapping[str, Any]) -> Sequence[str]:
    """Return where a run of `make compare` took place, and Punctual beside the best peer of each workload."""
    return [run_of(record), "", f"Rounds: {record['rounds']}.", "", *report.ratio_table(record["ratios"], record["works"])]


def comparison_tables(record: Mapping[str, Any]) -> Sequence[str]:
    """Return a table of all contestants for each workload of a run of `make compare`."""
    lines = [run_of(record)]
    for key, title in record["works"].items():
        lines += ["", f"### {title}", "", *report.table(key, record["records"], record["titles"], record["skipped"])]
    skipped = [f"- {name}: {reason}" for name, reason in record["skipped"].items() if "." not in name]
    return [*lines, *(["", "Skipped:", "", *skipped] if skipped else [])]


def comparison_settings(record: Mapping[str, Any]) -> Sequence[str]:
    """Return the table of the versions and the settings of all contestants of a run of `make compare`."""
    lines = ["| | versions | settings |", "|---|---|---|"]
    for key, settings in record["settings"].items():
        numbers = ", ".join(f"{name} {number}" for name, number in record["versions"][key].items())
        lines.append(f"| {record['titles'][key]} | {numbers} | {settings} |")
    return lines


def baseline(record: Mapping[str, Any]) -> Sequence[str]:
    lines = [run_of(record), "", "| ratio | median | range over the rounds | fails above |", "|---|--:|---|--:|"]
    for name, each in record["ratios"].items():
        lines.append(
            f"| `{name}` | {each['median']:.3g} | {each['least']:.3g} to {each['most']:.3g} | {each['median'] * ratios.WORSE:.3g} |"
        )
    return lines


DELAY_PARTS = (
    ("direct_steady", "50 jobs/s for a minute, posted shortly before"),
    ("steady", "50 jobs/s for a minute, through dispatch"),
    ("steady_stored", "the same with jobs stored for later"),
    ("direct_burst", "1,000 for one instant, posted one by one shortly before"),
    ("burst", "1,000 for one instant, through dispatch"),
    ("now", "for now, one by one: from the call"),
)
CPU_ROWS = (
    ("cpu.dispatch_ms", "dispatch, a minute of 5,000 jobs"),
    ("cpu.dispatch-floor_ms", "its floor: boto3 alone"),
    ("cpu.execute_ms", "execute, full batches of `log`"),
    ("cpu.execute-runs_ms", "the same, runs of recurring tasks"),
    ("cpu.execute-held_ms", "the same, held for their instant and read again"),
    ("cpu.execute-batch-floor_ms", "its floor: three calls of boto3 a batch"),
    ("cpu.plan_ms", "plan, top-ups of hourly tasks, six runs each"),
    ("cpu.api_ms", "api, `POST /jobs`"),
    ("cpu.batch_ms", "api, `POST /jobs/batch`, 1,000 jobs a call"),
    *((f"cpu.cold_{verb}_ms", f"import and first clients of {verb}") for verb in ("execute", "worker", "tick", "fetch", "api")),
)
PARTS = [
    Part("concepts/benchmarks.md", "start delays", "bench", delays(*DELAY_PARTS)),
    Part("internals/measurements.md", "processor", "bench", figures(*CPU_ROWS)),
    Part("internals/measurements.md", "ratios", "ratios", baseline),
    Part("concepts/comparison.md", "compare summary", "compare", comparison_summary),
    Part("concepts/comparison-results.md", "compare", "compare", comparison_tables),
    Part("concepts/comparison-results.md", "compare again", "compare-again", comparison_summary),  # a second whole run
    Part("concepts/comparison-method.md", "compare settings", "compare", comparison_settings),
    *(Part("concepts/scale.md", run, run, scale.part(run)) for run in scale.RUNS),
]


def text(part: Part) -> str:
    """Return the content of a part, with the lines of its marks."""
    if (RESULTS / f"{part.run}.json").exists():
        lines = part.content(read(part.run))
    else:
        lines = ["This run is not recorded yet."]
    return "\n".join([f"<!-- {part.name}: begin -->", "", *lines, "", f"<!-- {part.name}: end -->"])


def page_of(part: Part) -> Path:
    """Return the file of a part's page."""
    return DOCS / part.page


def current(page: str, part: Part) -> str:
    """Return the page with this part as it must be. Raises ValueError if the page does not have its marks once."""
    begin, end = (re.escape(f"<!-- {part.name}: {word} -->") for word in ("begin", "end"))
    made, count = re.subn(f"{begin}.*?{end}", lambda _: text(part), page, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"{part.page} has the marks of {part.name!r} {count} times")
    return made


def pictures() -> dict[Path, str]:
    """Return the content of each picture of the page of scale whose run is recorded."""
    recorded = [run for run in scale.RUNS if (RESULTS / f"{run}.json").exists()]
    return {DOCS / "images" / f"{run}.svg": scale.picture(run, read(run)) for run in recorded}


def main() -> None:
    for file, content in pictures().items():
        file.write_text(content)
    for part in PARTS:
        page = page_of(part)
        page.write_text(current(page.read_text(), part))
        print(f"wrote {part.name} into {page.relative_to(REPOSITORY)}")


if __name__ == "__main__":
    main()
