"""The product speaks plain technical English, also in its names, and its tests have names that fit on a line."""

import ast
import re

import pytest

from tests import language
from tests.language import ROOT, of_python
from tests.test_architecture import SOURCES, parsed

LONGEST_TEST_NAME = 70  # characters

BAD = [
    ("AWAY_MS = 1  # who is given back comes no sooner", "headless sentence"),
    ('def seat():\n    """To who has no place."""', "phrase"),
    ('class Login:\n    """Who wants in."""', "headless sentence"),
    ('log.warning("not looked whose turn it is; the slots are the net")', "phrase"),
    ("SAME_LOOK_MS = 1  # so long what was read for one lane tells what is outstanding", "phrase"),
    ('def room():\n    """What the lane holds of jobs of which the first is due then."""', "headless sentence"),
    ('raise Refused(f"After a refusal of {it}: who takes a place finds it.")', "headless sentence"),
    ('"""Settings.\n\nThose that count, the current one first."""', "headless sentence"),
    ("# The job is sent\n# again. Whoever claims it, runs it.", "headless sentence"),
    ('"""How long final jobs are stored."""', "headless sentence"),
    ('"""It may see nobody else\'s jobs, and for nobody\'s sake."""', "phrase"),
    ('"""A second call is as good as once."""', "phrase"),
    ('raise Invalid("The caller is told which fields are wrong.")', "phrase"),
    ("held = 1", "identifier"),
    ("looks = 1  # is allowed only as the field of a record", "identifier"),
    ("class LookAgain:\n    pass", "identifier"),
    ("def take_turns(): ...", "identifier"),
    ("def read(*, kept_days): ...", "identifier"),
    ("self._asked_at = 1", "identifier"),
    ("for index, (wanted, _) in enumerate(pairs): ...", "identifier"),
    ("import scheduler.ports as world", "identifier"),
    ("try:\n    pass\nexcept ValueError as told:\n    pass", "identifier"),
    ("match 1:\n    case given:\n        pass", "identifier"),
]
GOOD = [
    "MIN_REQUEUE_MS = 1  # Requeued jobs are not delivered again sooner than this.",
    'def answer():\n    """Answer a job that does not hold a concurrency slot yet."""',
    'log.warning("could not read ordering queues; their jobs are picked up from their slots")',
    '"""The users who have no weight are omitted. What happens to their jobs? They start last."""',
    "# The lists are so long that a page holds only a part of them.",
    'PATTERN = "#who"; COLOUR = "#fff"  # the colour of a job that failed',
    'KEY = "who"',
    "WAIT_S = 5  # how long a worker waits",
    '"""How late is a job? That follows from two instants."""',
    "lookup, threshold, returns, always, heartbeat = 1, 2, 3, 4, 5",
    "class Job:\n    looks: int = 0  # a stored attribute",
    "found = options.given(held=other.wanted)  # names that another file defines",
]


@pytest.mark.parametrize(("source", "rule"), BAD)
def test_a_sentence_that_breaks_a_rule_is_found(source: str, rule: str) -> None:
    assert rule in [finding.rule for finding in of_python(ast.parse(source), source)]


@pytest.mark.parametrize("source", GOOD)
def test_plain_english_passes(source: str) -> None:
    assert of_python(ast.parse(source), source) == []


def test_comments_and_strings_of_toml_are_texts_for_users() -> None:
    source = '# Who gets the alarms.\ncolour = "#who"\n[project]\nname = "one" # the answer tells it\ntext = "It is kept for ever"\n'
    found = language.of_toml(source)
    assert [(each.line, each.rule) for each in sorted(found)] == [(1, "headless sentence"), (4, "phrase"), (5, "phrase")]
    assert language.of_toml('# The address of the operators.\n# email = "ops@example.org"\n') == []


def test_every_word_that_no_name_may_contain_has_an_advice() -> None:
    source = "\n".join(f"{word} = 1" for word in language.WORDS)
    found = of_python(ast.parse(source), source)
    assert [each.excerpt for each in found] == list(language.WORDS) and all(each.advice for each in found)


def test_a_finding_has_its_line_and_an_advice() -> None:
    source = '"""One.\n\nTwo. The\nwhole anew."""\n\nX = 1\n# three\n# for ever\n'
    found = of_python(ast.parse(source), source)
    assert [(each.line, each.excerpt) for each in found] == [(4, "The whole anew."), (8, "three for ever")]
    assert all(each.advice for each in found)


def test_the_product_speaks_plain_english() -> None:
    """`python -m tests.language FILE` prints the findings of a file."""
    names = {path.relative_to(ROOT).as_posix(): path for path in language.files()}
    found = {
        name: language.of_file(path) if path.suffix == ".toml" else of_python(parsed(path), path.read_text())
        for name, path in names.items()
    }
    assert [f"{name}:{each.line}: {each.rule}: {each.excerpt}" for name in found for each in found[name]] == []


def test_the_name_of_a_test_fits_on_a_line() -> None:
    texts = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    names = [name for text in texts for name in re.findall(r"^ *def (test_\w+)", text, re.MULTILINE)]
    assert [name for name in names if len(name) > LONGEST_TEST_NAME] == [] and len(names) > 1_000


def test_the_lint_covers_every_folder_of_the_product() -> None:
    assert {*SOURCES, ROOT / "app.py"} < set(language.files())
