"""The page of errors has every code, with its status, and every kind of failure."""

import re
from collections.abc import Iterator
from pathlib import Path

from lambdas import api
from lambdas.rest import envelope
from scheduler.model.errors import SchedulerError
from scheduler.model.job import FailureKind

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/errors.md").read_text()


def kinds(of: type[SchedulerError]) -> Iterator[type[SchedulerError]]:
    yield of
    for each in of.__subclasses__():
        yield from kinds(each)


def _status(kind: type[SchedulerError]) -> int:
    return next((envelope.STATUS[each] for each in kind.__mro__ if each in envelope.STATUS), 500)


def test_every_code_has_its_row_and_section_with_the_status() -> None:
    assert api.app, "the routes define errors of their own"
    product = ("scheduler", "lambdas")
    statuses = {each.code: _status(each) for each in kinds(SchedulerError) if each.__module__.startswith(product)}
    shown = {code: status for code, status in statuses.items() if status != 500 or code == SchedulerError.code}
    assert dict(re.findall(r"^### (\w+)\n\nStatus (\d+)\.", PAGE, re.MULTILINE)) == {code: str(status) for code, status in shown.items()}
    assert dict(re.findall(r"^\| \[`(\w+)`\]\(#\w+\) \| (\d+) \|", PAGE, re.MULTILINE)) == {c: str(s) for c, s in shown.items()}


def test_every_link_of_the_table_leads_to_a_section() -> None:
    links = re.findall(r"\[`(\w+)`\]\(#(\w+)\)", PAGE)
    assert links and all(code == anchor for code, anchor in links)


def test_every_kind_of_failure_has_its_row() -> None:
    table = PAGE.partition("## Failures of attempts\n")[2]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [kind.value for kind in FailureKind]
