"""The worker of call-backs and the check of signatures."""

from __future__ import annotations

import json
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_api import answer, refusal

import punctual
from punctual import Worker, retrying, verify_signature, worker

URL, TOKEN = "https://api.example.com/api/v1/jobs/01A", "attempt-token"
HEADERS = {"punctual-callback-url": URL, "Punctual-Callback-Token": TOKEN}


class Api:
    """The three routes of call-backs. `answers` replaces the next answers; `beaten` is set by each heartbeat."""

    def __init__(self, *answers: httpx.Response | Exception, cancel: bool = False, lease: float = 30) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.beaten = threading.Event()
        self.shown = threading.Event()  # a heartbeat with progress has come
        self.cancel, self.lease = cancel, lease

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}" and str(request.url).startswith(URL)
        self.calls.append((request.url.path.rsplit("/", 1)[1], json.loads(request.content)))
        found = self.answers.pop(0) if self.answers else None
        if isinstance(found, Exception):
            raise found
        if found is not None:
            return found
        if self.calls[-1][0] != "heartbeat":
            return answer({"id": "01A", "status": "succeeded" if self.calls[-1][0] == "complete" else "scheduled"})
        until = (datetime.now(timezone.utc) + timedelta(seconds=self.lease)).isoformat()
        self.beaten.set()
        if self.calls[-1][1]:
            self.shown.set()
        return answer({"lease_until": until, "cancel_requested": self.cancel})

    @property
    def reports(self) -> list[tuple[str, dict[str, Any]]]:
        """The calls except the heartbeats, one of which may be under way when the work reports."""
        return [call for call in self.calls if call[0] != "heartbeat"]

    def working(self) -> Worker:
        return Worker.from_headers(HEADERS, transport=httpx.MockTransport(self))


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_HEARTBEAT_SECONDS", 0.01)
    monkeypatch.setattr(worker, "LEAST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(retrying, "BASE_SECONDS", 0.001)


def test_the_end_of_the_block_reports_success() -> None:
    api = Api(lease=0.03)  # heartbeats follow one another at once
    with api.working() as work:
        work.progress(0.4, "page 4")
        assert api.shown.wait(60)
    assert ("heartbeat", {"progress": 0.4, "message": "page 4"}) in api.calls
    assert api.reports == [("complete", {})]


def test_an_output_is_reported_once() -> None:
    api = Api()
    with api.working() as work:
        assert work.complete({"rows": 42}).status == "succeeded"
    assert api.reports == [("complete", {"output": {"rows": 42}})]


def test_an_exception_reports_a_failure_and_is_raised() -> None:
    api = Api()
    with pytest.raises(ValueError, match="disk full"), api.working():
        raise ValueError("disk full")
    assert api.reports == [("fail", {"message": "ValueError: disk full", "kind": "retryable"})]


def test_a_failure_has_a_kind_and_a_pause() -> None:
    api = Api()
    with api.working() as work:
        work.fail("bad input", permanent=True, retry_after=60)
    assert api.reports == [("fail", {"message": "bad input", "kind": "permanent", "retry_after_seconds": 60})]


def test_a_request_to_cancel_reaches_the_work() -> None:
    api = Api(cancel=True)
    with api.working() as work:
        assert work.cancel_requested.wait(60)
        work.fail("cancelled")
    assert [call[0] for call in api.reports] == ["fail"]


@pytest.mark.parametrize("status", [401, 409])
def test_an_attempt_that_is_over_stops_the_work(status: int) -> None:
    api = Api(refusal(status))
    with pytest.raises(punctual.CallbackEnded), api.working() as work:
        assert work.ended.wait(60)
        work.progress(0.5)
    assert {call[0] for call in api.calls} == {"heartbeat"}


def test_a_report_is_repeated_until_it_arrives() -> None:
    api = Api(refusal(503), refusal(429), httpx.ReadTimeout("lost"))
    work = api.working()
    assert work.complete("done").id == "01A"
    assert api.calls == [("complete", {"output": "done"})] * 4


@pytest.mark.parametrize("cut", ["", '{"success": true, "data": {"id": "01A", "st', "[]", '{"success": true}', "<html>"])
def test_a_report_whose_answer_was_cut_is_repeated(cut: str) -> None:
    api = Api(httpx.Response(200, text=cut))
    assert api.working().complete("done").id == "01A"
    assert api.calls == [("complete", {"output": "done"})] * 2
    api = Api(*[httpx.Response(200, text=cut)] * 2, lease=0.01)
    with api.working():
        assert api.beaten.wait(60), "the heartbeats go on"


def test_a_report_that_never_arrives_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "REPORT_SECONDS", 0.0)
    with pytest.raises(punctual.NoAnswer, match=r"jobs/01A/complete: no answer after 1 tries: lost"):
        Api(httpx.ReadTimeout("lost")).working().complete()
    with pytest.raises(punctual.InvalidRequest):
        Api(refusal(422)).working().complete()
    with pytest.raises(punctual.Unavailable, match="html"):
        Api(httpx.Response(502, text="<html>")).working().complete()


def test_finished_work_whose_report_is_lost_is_not_reported_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "REPORT_SECONDS", 0.0)
    api = Api(*[httpx.ReadTimeout("lost")] * 50, lease=600)
    monkeypatch.setattr(worker, "FIRST_HEARTBEAT_SECONDS", 60)
    with pytest.raises(punctual.NoAnswer), api.working() as work:
        work.complete("done")
    assert {call[0] for call in api.calls} == {"complete"}


def test_an_output_that_the_api_refuses_is_reported_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_HEARTBEAT_SECONDS", 60)
    api = Api(refusal(413))
    with pytest.raises(punctual.InvalidRequest), api.working() as work:
        work.complete("x" * 2_000_000)
    assert [call[0] for call in api.calls] == ["complete", "fail"]


def test_heartbeats_go_on_after_a_failed_one() -> None:
    api = Api(refusal(422), lease=0.01)
    with api.working():
        assert api.beaten.wait(60)
    assert [call[0] for call in api.calls[:2]] == ["heartbeat", "heartbeat"]


@pytest.mark.parametrize(
    "made",
    [
        lambda: Worker.from_event({"punctual": {"callback": {"url": URL, "token": TOKEN}}}),
        lambda: Worker.from_event({"detail-type": "x", "detail": {"punctual": {"callback": {"url": URL, "token": TOKEN}}}}),
        lambda: Worker.from_message({"MessageAttributes": {worker.URL: {"StringValue": URL}, worker.TOKEN: {"StringValue": TOKEN}}}),
        lambda: Worker.from_message({"messageAttributes": {worker.URL: {"stringValue": URL}, worker.TOKEN: {"stringValue": TOKEN}}}),
        lambda: Worker.from_message(
            {"Body": json.dumps({"MessageAttributes": {worker.URL: {"Type": "String", "Value": URL}, worker.TOKEN: {"Value": TOKEN}}})}
        ),
    ],
)
def test_address_and_token_come_from_every_kind_of_target(made: Any) -> None:
    found = made()
    assert (found.url, found._token) == (URL, TOKEN)


@pytest.mark.parametrize(
    "made", [lambda: Worker.from_headers({}), lambda: Worker.from_event({}), lambda: Worker.from_message({"Body": "x"})]
)
def test_a_job_without_a_callback_is_recognized(made: Any) -> None:
    with pytest.raises(punctual.UnexpectedAnswer, match="has the job a `callback`"):
        made()


# Signatures

NOW = 1_800_000_000
SIGNATURES = json.loads(Path(__file__).with_name("signatures.json").read_text())  # the TypeScript client has the same cases


@pytest.mark.parametrize("case", SIGNATURES, ids=[case["name"] for case in SIGNATURES])
def test_a_signature_is_accepted_or_refused_with_its_reason(case: dict[str, Any]) -> None:
    for body in (case["body"], case["body"].encode()):
        if case["error"] is None:
            verify_signature(case["headers"], body, case["secret"], now=case["now"])
        else:
            with pytest.raises(punctual.InvalidSignature, match=case["error"]):
                verify_signature(case["headers"], body, case["secret"], now=case["now"])


DEEP = "[" * 200_000


@pytest.mark.parametrize(
    "event", [{"punctual": 5}, {"detail": None}, {"punctual": {"callback": [1]}}, {"punctual": {"callback": {"url": 1, "token": 2}}}]
)
def test_an_event_of_another_sender_is_no_job(event: dict[str, Any]) -> None:
    with pytest.raises(punctual.PunctualError, match="has the job a `callback`"):
        Worker.from_event(event)


@pytest.mark.parametrize(
    "message",
    [
        {"Body": "[1]"},
        {"Body": "5"},
        {"Body": DEEP},
        {"Body": 5},
        {"MessageAttributes": [1]},
        {"MessageAttributes": {"punctual-callback-url": 1}},
    ],
)
def test_a_message_of_another_sender_is_no_job(message: dict[str, Any]) -> None:
    with pytest.raises(punctual.PunctualError, match="has the job a `callback`"):
        Worker.from_message(message)


def test_a_secret_that_is_no_text_is_refused() -> None:
    with pytest.raises(punctual.InvalidSignature, match="environment variable"):
        punctual.verify_signature({}, b"", None)  # type: ignore[arg-type]
