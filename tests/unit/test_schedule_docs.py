"""docs/reference/schedules.md agrees with the code."""

import json
import re

import pytest

from scheduler.tasks import cron, schedule_form
from tests.conftest import NOW
from tests.unit.schedule_examples import BEGIN, END, PAGE, table

TEXT = PAGE.read_text()


def test_the_table_of_examples_has_the_runs_of_the_code() -> None:
    assert TEXT.split(BEGIN)[1].split(END)[0] == table(), "run python -m tests.unit.schedule_examples"


def test_the_listed_words_equal_the_words_of_the_code() -> None:
    words = next(line for line in TEXT.splitlines() if line.startswith("| words"))
    assert set(re.findall(r"@[a-z]+", words)) == set(cron.WORDS)


REFUSED = TEXT.split("| refused | because |")[1].split("\n\n")[0]
ITEMS = [item for row in REFUSED.splitlines() for item in re.findall(r"`([^`]+)`", row.rpartition("|")[0].rpartition("|")[0])]
FIELD = {"L": 4, "*/90": 0}  # refused in these fields; the others in any


@pytest.mark.parametrize("item", ITEMS)
def test_the_expressions_listed_as_refused_are_refused(item: str) -> None:
    fields = [FIELD[item]] if item in FIELD else range(5)
    whole = [item] if " " in item or item.startswith("@") else [" ".join([*"*" * field, item, *"*" * (4 - field)]) for field in fields]
    for expression in whole:
        with pytest.raises(ValueError, match=r"(minute|hour|day of month|month|day of week): |never runs|none of the words"):
            cron.read(expression)


def test_all_of_the_refusals_were_found_in_the_page() -> None:
    assert {"5-5", "L-3W", "@reboot", "0 0 30 2 *", "*/90", "L"} <= set(ITEMS) and len(ITEMS) == 15


@pytest.mark.parametrize("item", ["0,30", "1-5", "*/10", "8-18/2", "22-23,0-2", "5-59/15"])
def test_the_listed_items_are_accepted(item: str) -> None:
    assert item in TEXT
    cron.read(f"{item} * * * *")


@pytest.mark.parametrize("item", ["L", "L-3", "15W", "LW", "1W", "31W"])
def test_the_listed_days_of_the_month_are_accepted(item: str) -> None:
    assert f"`{item}`" in TEXT
    cron.read(f"0 0 {item} * *")


@pytest.mark.parametrize("form", re.findall(r'^    (\{"(?:cron|every)".*\})$', TEXT, re.MULTILINE))
def test_the_shown_schedules_are_accepted(form: str) -> None:
    parsed = {name: value for name, value in json.loads(form).items() if name not in ("count", "after")}
    assert schedule_form.parse(parsed, NOW)
