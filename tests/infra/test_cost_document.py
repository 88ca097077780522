"""The write units in the documentation equal the counted ones."""

import re
from pathlib import Path

import pytest

from bench import operations, units

DOCUMENT = Path(__file__).parents[2] / "docs/concepts/cost.md"
SECTION = DOCUMENT.read_text().partition("## Write units")[2].partition("\n## ")[0]
CLAIMED = {name: float(count) for name, count in re.findall(r"^\| ([\w -]+?) \| ([\d.]+) \|$", SECTION, re.MULTILINE)}


@pytest.mark.long
@pytest.mark.parametrize("name", CLAIMED)
def test_the_document_has_the_counted_figures(name: str) -> None:
    assert operations.per_job(units.SCENARIOS[name]) == CLAIMED[name]


def test_the_document_names_every_scenario() -> None:
    assert CLAIMED.keys() == units.SCENARIOS.keys()
