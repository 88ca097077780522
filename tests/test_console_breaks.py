"""The table of `tests.system.console_breaks` matches the console: every story has one break, and the code of each break exists."""

import re
from collections import Counter

import pytest

from local.failure import Trouble
from local.home import REPOSITORY
from tests.system.console_breaks import BREAKS, POLICY, Break, broken, verdicts
from tests.system.test_console import CONSOLE, DARK


def titles() -> list[str]:
    """Return the titles of the stories, as Vitest prints them."""
    text = (CONSOLE / "browser/console.test.ts").read_text()
    plain = re.findall(r"^ *test\('(.+?)',", text, re.MULTILINE)
    tables = re.findall(r"test\.each\(\[(.+?)\]\)\('(.+?)%s',", text, re.DOTALL)
    return plain + [title + row for rows, title in tables for row in re.findall(r"\['(.+?)',", rows)]


def test_every_story_has_one_break_and_every_break_a_story() -> None:
    assert Counter(each.story for each in BREAKS) == Counter(titles())


def test_one_story_is_left_to_the_soak() -> None:
    assert len([title for title in titles() if DARK in title]) == 1


@pytest.mark.parametrize("each", [each for each in BREAKS if each.file != POLICY], ids=lambda each: each.what)
def test_the_code_of_each_break_is_in_the_console(each: Break) -> None:
    source = (CONSOLE / "src" / each.file).read_text()
    assert broken(source, each) != source


def test_the_documentation_has_the_table() -> None:
    page = (REPOSITORY / "docs/internals/console.md").read_text()
    table = page[page.index("| story | is broken by |") :].splitlines()[2:]
    assert table == [f"| {each.story} | {each.what} |" for each in BREAKS]


def test_a_break_without_its_code_is_reported() -> None:
    with pytest.raises(Trouble, match="does not have this once"):
        broken("nothing of it", BREAKS[0])


def test_a_story_is_red_only_if_it_fails_because_of_its_break() -> None:
    breaks = [Break(story, "what", "the place", "a.ts") for story in ("noticed", "overlooked", "elsewhere", "gone")]
    found = verdicts(breaks, {"noticed": "waited for the place", "overlooked": None, "elsewhere": "waited for another", "new": None})
    assert [(story, verdict.split(":")[0]) for story, _, verdict in found] == [
        ("noticed", "red"),
        ("overlooked", "green"),
        ("elsewhere", "failed elsewhere"),
        ("gone", "did not run"),
        ("new", "has no break"),
    ]
