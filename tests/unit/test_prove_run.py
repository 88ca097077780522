"""Around a run of `make prove`: its arguments, the question before it, and its end."""

import argparse
import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from punctual import ApiError, Conflict

from local.failure import Trouble
from prove import __main__ as command
from prove import course, first_hour
from prove.cleanup import Cleanup
from prove.course import OpenJobs
from prove.place import Place
from prove.plan import FULL, PARTS, planned
from prove.report import Result, Row

PLACE = Place("dev", "eu-west-1", {}, "https://api.example.com", lambda *_: None)
RUN = planned(1_795_168_800_000, FULL, PARTS)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--only", "warm"], "there is no part warm"),
        (["--only", "peers,http"], "peers are compared with spread and warm-burst"),
        (["--only", "peers"], "name at least one of cold"),
        (["--only", ""], "name at least one of cold"),
        (["--minutes", "6"], "must be 1 to 5, not 6"),
        (["--minutes", "0"], "must be 1 to 5, not 0"),
    ],
)
def test_a_bad_argument_is_named_with_its_rule(arguments: list[str], rule: str) -> None:
    with pytest.raises(Trouble, match=rule):
        command._options(["--stage", "dev", *arguments])


def test_without_a_terminal_a_run_on_aws_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False)
    with pytest.raises(Trouble, match="add --yes"):
        command.agree(RUN, PLACE, yes=False)
    command.agree(RUN, PLACE, yes=True)


@pytest.mark.parametrize(("answer", "begins"), [("y", True), (" YES ", True), ("", False), ("n", False)])
def test_a_run_on_aws_begins_after_a_yes(monkeypatch: pytest.MonkeyPatch, answer: str, begins: bool) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    if begins:
        return command.agree(RUN, PLACE, yes=False, ask=lambda _question: answer)
    with pytest.raises(Trouble, match="Nothing was created"):
        command.agree(RUN, PLACE, yes=False, ask=lambda _question: answer)


def test_the_question_names_jobs_minutes_dollars_and_things() -> None:
    text = command.estimate(RUN, PLACE)
    assert f"{RUN.jobs:,} jobs to the stage dev in eu-west-1" in text
    assert "about 14 minutes" in text and "about $0.04" in text
    assert "1,100 schedules" in text and "a user" in text


def options(**values: Any) -> argparse.Namespace:
    return argparse.Namespace(
        **{"stage": "local", "only": ["http"], "short": True, "keep": False, "yes": True, "minutes": 2, "guided": False} | values
    )


LOCAL = Place("local", "us-east-1", {}, "", lambda *_: None)


@pytest.mark.parametrize("end", [None, KeyboardInterrupt, ApiError(503, "unavailable", "...")])
def test_whatever_ends_a_run_its_things_are_deleted(monkeypatch: pytest.MonkeyPatch, end: Any) -> None:
    deleted: list[str] = []

    def run(_place: Place, _plan: Any, name: str, cleanup: Cleanup) -> tuple[list[Row], list[str]]:
        cleanup.later("the user", lambda: deleted.append(name))
        if end:
            raise end
        return [], []

    monkeypatch.setattr(course, "run", run)
    monkeypatch.setattr(first_hour, "run", lambda *_: [])
    if end:
        with pytest.raises(end if isinstance(end, type) else ApiError):
            command.proved(LOCAL, options())
    else:
        command.proved(LOCAL, options())
    assert len(deleted) == 1


def test_with_keep_nothing_is_deleted_and_all_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_place: Place, _plan: Any, _name: str, cleanup: Cleanup) -> tuple[list[Row], list[str]]:
        cleanup.later("the user x", lambda: pytest.fail("deleted"))
        return [], []

    monkeypatch.setattr(course, "run", run)
    monkeypatch.setattr(first_hour, "run", lambda *_: [])
    assert command.proved(LOCAL, options(keep=True)).not_deleted == ["the user x"]


@pytest.mark.parametrize(("complaints", "code"), [([], 0), (["steady: lost"], 1)])
def test_a_broken_promise_changes_the_exit_code(capsys: pytest.CaptureFixture[str], complaints: list[str], code: int) -> None:
    row = Row("steady", "50 a second", 10, 0, 1, 2, 0, 0, 0, 0.1)
    assert command.printed(Result({"stage": "local"}, [row], complaints)) == code
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert said["not_kept"] == complaints


def test_things_are_deleted_in_reverse_whatever_fails() -> None:
    cleanup, done = Cleanup(), list[str]()

    def fail() -> None:
        raise ValueError("why")

    def absent() -> None:
        raise ClientError({"Error": {"Code": "NoSuchEntity", "Message": "gone"}}, "DeleteRole")

    cleanup.later("first", lambda: done.append("first"))
    cleanup.later("stuck", fail)
    cleanup.later("never made", absent)
    cleanup.later("last", lambda: done.append("last"))
    assert cleanup.run() == ["stuck: why"]
    assert done == ["last", "first"]
    assert cleanup.run() == []


class Api:
    """The listing and the cancel of jobs, as `client.jobs`."""

    def __init__(self, *ended: str) -> None:
        self.jobs = self
        self.cancelled: list[str] = []
        self.ended = ended  # after the listing

    def list(self, *, upcoming: bool = False, **_query: Any) -> list[SimpleNamespace]:
        listed = {"ahead": "scheduled"} if upcoming else {"late": "queued", "done": "succeeded"}
        return [SimpleNamespace(id=id, status=status) for id, status in listed.items()]

    def cancel(self, id: str) -> None:
        if id in self.ended:
            raise Conflict(409, "conflict", "the job is finished")
        self.cancelled.append(id)


def open_jobs(api: Any) -> OpenJobs:
    return OpenJobs(api, RUN)


def test_an_interrupted_run_cancels_the_jobs_that_have_not_ended() -> None:
    api = Api()
    open_jobs(api).cancel()
    assert sorted(api.cancelled) == ["ahead", "late"]


def test_a_job_that_ended_after_the_listing_is_left() -> None:
    api = Api("late")
    open_jobs(api).cancel()
    assert api.cancelled == ["ahead"]


def test_a_finished_run_has_nothing_to_cancel() -> None:
    api = Api()
    jobs = open_jobs(api)
    jobs.none = True
    jobs.cancel()
    assert api.cancelled == []
