"""The rows of the first hour on AWS: which run, which are only asked for, and what a report may contain."""

import json
import re
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import httpx
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
PAGE = (ROOT / "docs/internals/first-hour.md").read_text()


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


class Sts:
    """Of the account 123456789012; gives its role a token, or raises an error."""

    def __init__(self, error: str = "", caller: str = "assumed-role/Ops/ann") -> None:
        self.error, self.caller = error, caller

    def get_caller_identity(self) -> dict[str, str]:
        return {"Account": "123456789012", "Arn": f"arn:aws:sts::123456789012:{self.caller}"}

    def get_web_identity_token(self, **_request: Any) -> dict[str, str]:
        if self.error:
            raise ClientError({"Error": {"Code": self.error, "Message": "so"}}, "GetWebIdentityToken")
        claims = urlsafe_b64encode(b'{"sub": "arn:aws:iam::123456789012:role/Ops", "exp": 1}').decode()
        return {"WebIdentityToken": f"h.{claims}.s"}


@pytest.mark.parametrize(
    ("accounts", "error", "status", "outcome", "note"),
    [
        ("210987654321 123456789012", "", 201, Outcome.PASS, "read with 200"),
        ("", "", 201, Outcome.NOT_RUN, "the option aws_issuers of the stage lacks"),
        ("123456789012", "", 403, Outcome.NOT_RUN, "no principal has the role"),
        ("123456789012", "", 401, Outcome.FAIL, "the API answered 401"),
        ("123456789012", "OutboundWebIdentityFederationDisabledException", 201, Outcome.NOT_RUN, "enable-outbound-web-identity-federation"),
    ],
)
def test_a_role_signs_in_by_its_token(
    monkeypatch: pytest.MonkeyPatch, accounts: str, error: str, status: int, outcome: Outcome, note: str
) -> None:
    calls = list[str]()

    def answer(request: httpx.Request) -> httpx.Response:
        calls.append(f"{request.method} {request.url.path}")
        assert request.headers["Authorization"].startswith("Bearer h.")
        return httpx.Response(status if len(calls) == 1 else 200, json={"data": {"id": "01A"}})

    made = httpx.Client
    monkeypatch.setattr(answers.httpx, "Client", lambda **options: made(transport=httpx.MockTransport(answer), **options))
    place = Place("dev", "eu-west-1", {"AwsAccounts": accounts}, "https://api.example.com", lambda *_: Sts(error))
    seen = answers.role_token(hour(place=place))
    assert seen.outcome is outcome and note in seen.note
    base = "/api/v1/aws/123456789012/jobs"
    if outcome is Outcome.PASS:
        assert calls == [f"POST {base}", f"GET {base}/01A", f"POST {base}/01A/cancel"]


def test_a_user_has_no_token_of_a_role() -> None:
    place = Place("dev", "eu-west-1", {"AwsAccounts": "123456789012"}, "", lambda *_: Sts(caller="user/ann"))
    seen = answers.role_token(hour(place=place))
    assert seen.outcome is Outcome.NOT_RUN and "of a user" in seen.note


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
