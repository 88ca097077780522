"""The marked parts of the docs are those of the recorded runs."""

import json
from typing import Any

import pytest

from bench import pages
from bench.pages import PARTS, Part
from bench.results import RESULTS, read, run_of_today

RUN = {"run": {"day": "2026-11-25", "commit": "abc", "machine": "2 cores", "python": "3.11", "load": 0.1}}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_a_part_of_the_docs_is_current(part: Part) -> None:
    page = pages.page_of(part).read_text()
    assert pages.current(page, part) == page, "run python -m bench.pages"


@pytest.mark.parametrize("name", sorted({part.run for part in PARTS}))
def test_a_recorded_run_names_its_machine_load_commit_and_day(name: str) -> None:
    if not (RESULTS / f"{name}.json").exists():
        pytest.skip("not recorded yet")
    assert read(name)["run"].keys() >= {"day", "commit", "machine", "python", "load"}


def test_the_pictures_of_scale_are_current() -> None:
    assert {file.name for file, content in pages.pictures().items() if file.read_text() != content} == set(), "run python -m bench.pages"


def test_a_changed_figure_is_noticed() -> None:
    part = Part("concepts/benchmarks.md", "start delays", "bench", lambda record: ["other"])
    page = pages.page_of(part).read_text()
    assert pages.current(page, part) != page


def test_a_page_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="has the marks of 'start delays' 0 times"):
        pages.current("no marks", PARTS[0])


def test_a_run_that_is_not_recorded_is_said_so() -> None:
    assert "This run is not recorded yet." in pages.text(Part("concepts/benchmarks.md", "x", "no such run", pages.baseline))


def test_start_delays_over_their_budget_are_marked() -> None:
    names = {"p50_ms": 1, "p95_ms": 2, "p99_ms": 9, "max_ms": 20, "early": 0, "lost": 0, "duplicated": 0}
    measured: dict[str, Any] = {f"delay.burst.{name}": {"value": value, "unit": "ms"} for name, value in names.items()}
    measured["delay.burst.p99_ms"] |= {"budget": 5, "ok": False}
    rows = pages.delays(("burst", "a burst"), ("steady", "a stream"))(RUN | {"figures": measured})
    assert rows[-2:] == ["| a burst | 1 ms | 2 ms | 9 ms | 20 ms | 0, 0, 0 | p99 ≤ 5: over |", "| a stream | not run | | | | | |"]


def test_the_record_of_today_is_json_with_the_commit() -> None:
    today = json.loads(json.dumps(run_of_today()))
    assert today["commit"] and today["machine"].startswith(str(today["machine"].split()[0]))
