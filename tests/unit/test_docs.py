"""The documents match the code."""

import re
from pathlib import Path

import pytest

from scheduler.model.job import Status
from scheduler.model.lifecycle import FINAL_TIMES, TRANSITIONS, Event

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
INTERNALS = DOCS / "internals"
LIFECYCLE = (INTERNALS / "lifecycle.md").read_text()


def test_the_drawing_of_the_lifecycle_is_the_transition_table() -> None:
    drawn = set(re.findall(r"^    (\w+) --> (\w+): (\w+)$", LIFECYCLE, re.MULTILINE))
    assert drawn == {(before, after, event) for event, arrows in TRANSITIONS.items() for before, after in arrows.items()}
    assert set(re.findall(r"^    (\w+) --> \[\*\]$", LIFECYCLE, re.MULTILINE)) == set(FINAL_TIMES)


def rows(title: str) -> list[str]:
    table = LIFECYCLE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_every_state_and_event_has_its_line() -> None:
    assert rows("States") == list(Status)
    assert rows("Events") == list(Event)


def glossary() -> list[str]:
    return re.findall(r"^\| \*\*([a-z -]+)\*\* \|", (INTERNALS / "glossary.md").read_text(), re.MULTILINE)


def test_each_table_of_the_glossary_is_sorted_and_no_term_is_twice() -> None:
    tables = (INTERNALS / "glossary.md").read_text().split("\n## ")[1:]
    terms = [re.findall(r"^\| \*\*([a-z -]+)\*\* \|", table, re.MULTILINE) for table in tables]
    assert all(table == sorted(table) for table in terms) and [term for table in terms for term in table] == glossary()
    assert len(glossary()) == len(set(glossary())) and 25 < len(glossary()) < 60


@pytest.mark.parametrize("term", glossary())
def test_a_term_of_the_glossary_is_used(term: str) -> None:
    """By the code, or by another document."""
    texts = [path.read_text() for folder in ("scheduler", "lambdas", "infra") for path in (ROOT / folder).rglob("*.py")]
    texts += [path.read_text() for path in DOCS.rglob("*.md") if path.name != "glossary.md"]
    spellings = term.replace("-", "[-_ ]?").replace(" ", "[-_ ]?")
    assert any(re.search(rf"(?<![a-z]){spellings}(?:s|es|d|ed|ing)?(?![a-z])", text, re.IGNORECASE) for text in texts)


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.relative_to(DOCS).as_posix())
def test_every_file_that_a_document_names_exists(path: Path) -> None:
    named = re.findall(r"`((?:scheduler|lambdas|infra|local|tests|docs)/[\w/.]+)`", path.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_architecture_begins_with_the_life_of_a_job_in_eight_steps() -> None:
    text = (INTERNALS / "architecture.md").read_text()
    first = text.partition("\n## ")[2].partition("\n## ")[0]
    assert text.startswith("# Architecture\n\n## The life of a job in eight steps\n")
    steps = re.findall(r"^\| (\d) \| (\w+) \|.*\| `(scheduler/[\w/]+\.py)` \|$", first, re.MULTILINE)
    assert [int(number) for number, _, _ in steps] == list(range(1, 9))
    assert [file for _, _, file in steps if not (ROOT / file).is_file()] == []


def decisions() -> list[str]:
    pages = sorted((INTERNALS / "decisions").glob("*.md"))
    return [part for page in pages for part in re.split(r"^## ", page.read_text(), flags=re.MULTILINE)[1:]]


def test_decisions_are_numbered_dated_and_complete() -> None:
    parts = decisions()
    assert [int(part.partition(".")[0]) for part in parts] == list(range(1, len(parts) + 1))
    for part in parts:
        assert re.search(r"^2\d{3}-\d{2}-\d{2}$", part, re.MULTILINE)
        assert all(f"**{word}.**" in part for word in ("Context", "Choice", "Consequence"))


def test_the_index_of_decisions_has_the_heading_of_each() -> None:
    """A page has fifteen decisions, by number, so that it stays a few screens long."""
    index = (INTERNALS / "decisions.md").read_text()
    listed = re.findall(r"^\| \[((\d+)\. .+)\]\(decisions/(\d+)-(\d+)\.md#[\w-]+\) \|$", index, re.MULTILINE)
    assert [heading for heading, *_ in listed] == [part.partition("\n")[0] for part in decisions()]
    assert all(int(first) <= int(number) <= int(last) == int(first) + 14 for _, number, first, last in listed)


def test_every_test_that_the_findings_about_the_api_name_exists() -> None:
    named = re.findall(r"`(test_\w+)`", (INTERNALS / "api-findings.md").read_text())
    code = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert named and [name for name in named if f"def {name}(" not in code] == []
