"""The rows of the first hour on AWS: which run, which are only asked for, and what a report may contain."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from prove import answers, first_hour, guided
from prove.cleanup import Cleanup
from prove.first_hour import Check, Hour, Outcome, Seen, not_run, passed
from prove.place import Place
from prove.report import FILE, Result, line, save
from tests.language import ROOT

ALL = (*answers.CHECKS, *guided.CHECKS)
AWS = Place("dev", "eu-west-1", {}, "https://api.example.com", lambda *_: None)
PAGE = (ROOT / "docs/get-started/aws.md").read_text()


def hour(*said: str, place: Place = AWS) -> Hour:
    replies = iter(said)
    return Hour(place, "punctual-prove-1", Cleanup(), (lambda _question: next(replies)) if said else None)


def outcomes(hour: Hour, *checks: Check) -> list[Seen]:
    return [seen for _, seen in first_hour.run(checks, hour)]


def test_guided_rows_are_never_run_unasked() -> None:
    row = Check("x", "does", "expects", lambda _hour: pytest.fail("it ran"), "Deploy.")
    assert outcomes(hour(), row) == [not_run("it needs you: add --guided")]
    assert outcomes(hour("s"), row) == [not_run("skipped")]
    local = Place("local", "us-east-1", {}, "", lambda *_: None)
    assert outcomes(hour("", place=local), row) == [not_run("only on AWS")]


def test_a_guided_row_runs_after_its_question() -> None:
    assert outcomes(hour("", "y"), Check("x", "does", "expects", guided.answered, "Deploy.")) == [passed(True)]
    assert outcomes(hour("", "n"), Check("x", "does", "expects", guided.answered, "Deploy.")) == [passed(False)]


def test_only_rows_that_make_things_of_their_own_run_by_themselves() -> None:
    assert all(check.instruction for check in guided.CHECKS) and not any(check.instruction for check in answers.CHECKS)
    assert len({check.key for check in ALL}) == len(ALL)


@pytest.mark.parametrize(("code", "outcome"), [("AccessDeniedException", Outcome.NOT_RUN), ("ValidationException", Outcome.FAIL)])
def test_an_error_ends_its_row_only(code: str, outcome: Outcome) -> None:
    def refused(_hour: Hour) -> Seen:
        raise ClientError({"Error": {"Code": code, "Message": "so"}}, "CreateTable")

    found = outcomes(hour(), Check("x", "does", "expects", refused), Check("y", "does", "expects", lambda _hour: passed(True)))
    assert [seen.outcome for seen in found] == [outcome, Outcome.PASS]


MAPPING = {"FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:punctual-dev-Announce:live", "State": "Enabled"}


@pytest.mark.parametrize(
    ("mapping", "outcome"),
    [
        (MAPPING, Outcome.PASS),
        (MAPPING | {"LastProcessingResult": "PROBLEM: Function call failed"}, Outcome.FAIL),
        (MAPPING | {"State": "Disabled"}, Outcome.FAIL),
        (MAPPING | {"FunctionArn": "arn:aws:lambda:eu-west-1:123456789012:function:punctual-prod-Announce"}, Outcome.FAIL),
    ],
)
def test_the_mappings_of_the_stage_are_judged(mapping: dict[str, str], outcome: Outcome) -> None:
    class Functions:
        def get_paginator(self, _operation: str) -> "Functions":
            return self

        def paginate(self) -> list[dict[str, Any]]:
            return [{"EventSourceMappings": [mapping]}]

    place = Place("dev", "eu-west-1", {}, "", lambda *_: Functions())
    assert answers.mappings(hour(place=place)).outcome is outcome


PRIVATE = (
    "User: arn:aws:sts::123456789012:assumed-role/Admin/ada@example.org is denied (arn:aws-us-gov:sqs:us-gov-west-1:123456789012:q)",
    "account 123456789012, sent by ada.lovelace@mail.example.org",
    'call to "https://abc123.execute-api.eu-west-1.amazonaws.com/api" failed in /home/lovelace/punctual',
)


def test_a_report_names_no_account_person_or_address(tmp_path: Path) -> None:
    rows = [(ALL[0], Seen(Outcome.FAIL, text)) for text in PRIVATE]
    result = Result({"stage": "dev", "region": "eu-west-1"}, [], PRIVATE, PRIVATE, rows[:1])
    for text in (save(result, tmp_path).read_text(), line(result)):
        json.loads(text)
        assert not re.search(r"\d{12}|arn:|@|lovelace|ada|abc123", text), text
    assert json.loads((tmp_path / FILE).read_text())["first_hour"]["remove"]["outcome"] == "fail"


def test_the_page_has_every_row_and_what_it_expects() -> None:
    for check in ALL:
        (found,) = re.findall(rf"^\| \d+ \| (.*) \| (.*) \| `{check.key}`(, asks)? \|$", PAGE, re.MULTILINE)
        assert found == (check.does, check.expects, ", asks" if check.instruction else "")
