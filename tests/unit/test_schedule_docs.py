"""docs/schedules.md says what the code does."""

import re

import pytest

from scheduler import cron
from tests.unit.schedule_examples import BEGIN, END, PAGE, table

TEXT = PAGE.read_text()


def test_the_table_of_examples_is_what_the_code_answers() -> None:
    assert TEXT.split(BEGIN)[1].split(END)[0] == table(), "run python -m tests.unit.schedule_examples"


def test_the_words_are_those_the_code_knows() -> None:
    words = next(line for line in TEXT.splitlines() if line.startswith("| words"))
    assert set(re.findall(r"@[a-z]+", words)) == set(cron.WORDS)


REFUSED = TEXT.split("| refused | because |")[1].split("\n\n")[0]
ROWS = [re.findall(r"`([^`]+)`", row.split("|")[1]) + [row] for row in REFUSED.splitlines() if row.startswith("| `")]


@pytest.mark.parametrize(("item", "row"), [(item, row[-1]) for row in ROWS for item in row[:-1]])
def test_what_it_calls_refused_is_refused_in_every_field_it_could_stand_in(item: str, row: str) -> None:
    whole = " " in item or item.startswith("@")
    expressions = [item] if whole else [" ".join(["*"] * field + [item] + ["*"] * (4 - field)) for field in range(5)]
    if item == "L":
        expressions = ["* * * * L"]
    if item == "*/90":
        expressions = ["*/90 * * * *"]
    for expression in expressions:
        with pytest.raises(ValueError, match="."):
            cron.read(expression)


@pytest.mark.parametrize("item", ["0,30", "1-5", "*/10", "8-18/2", "22-23,0-2", "5-59/15"])
def test_the_items_it_shows_are_accepted(item: str) -> None:
    assert item in TEXT
    cron.read(f"{item} * * * *")
