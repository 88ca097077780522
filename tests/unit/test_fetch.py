"""`http` jobs through the function `fetch`: its event, the wait for the instant, its answer; against a real server on loopback."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from lambdas import _fetching, fetch
from lambdas._clock import SystemClock
from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import fetch_call
from scheduler.targets.base import CallBackAddress, Context, Reach
from scheduler.targets.call_limit import ALL_BUSY
from scheduler.targets.calls import Refused, Request
from scheduler.targets.job_context import JobContext
from scheduler.targets.types import http
from tests.unit.fake_calls import FUNCTION, FakeCalls, raising
from tests.unit.test_target_http import Receiver, serving

PLAIN = Reach(plain_http=True)


class ByFunction(FakeCalls):
    """The port `Calls` with the function `fetch` in this process; events and answers are text, as on AWS."""

    def __init__(self, reach: Reach = PLAIN, **answers: Callable[[], Any]) -> None:
        super().__init__(**answers)
        self.at = _fetching.Fetch(SystemClock(), reach, True)
        self.events: list[dict[str, Any]] = []

    def send(self, request: Request, *, left: Any) -> Mapping[str, Any]:
        assert (request.parameters["FunctionName"], request.waits) == (FUNCTION, True)
        if "invoke" in self.answers:
            return super().send(request, left=left)
        event = request.parameters["Payload"]
        self.events.append(json.loads(event))
        return {"Payload": json.dumps(fetch.handler(json.loads(event), None)).encode()}


@pytest.fixture
def port() -> Iterator[int]:
    with serving() as number:
        yield number


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> ByFunction:
    made = ByFunction()
    monkeypatch.setattr(_fetching, "fetch", lambda: made.at)
    return made


def context(calls: FakeCalls, *, seconds: float = 60.0, fetcher: str = FUNCTION, **fields: Any) -> Context:
    fields = {"stop": threading.Event(), "allow_private": True, "reach": PLAIN} | fields
    return Context(JobContext("01JOB", 2), deadline=time.monotonic() + seconds, calls=lambda: calls, fetcher=fetcher, **fields)


def without_times(result: Result) -> tuple[Any, ...]:
    return result.response, result.failure, (result.log or "").partition(" after ")[0], result.output, result.preview


@pytest.mark.parametrize(
    "path", ["/echo?a=1", "/status/404", "/status/500", "/status/302", "/busy/429?7", "/busy/503?7", "/text", "/big", "/reset"]
)
def test_a_call_by_fetch_ends_like_one_by_the_executor(port: int, calls: ByFunction, path: str) -> None:
    payload = {"url": f"http://127.0.0.1:{port}{path}", "method": "POST", "body": {"a": "é"}, "headers": {"X-One": "1"}}
    apart, here = (http.run(payload, context(calls, fetcher=fetcher)) for fetcher in (FUNCTION, ""))
    assert without_times(apart) == without_times(here)
    first, second = Receiver.seen
    assert first == second
    assert apart.began_at is not None and here.began_at is not None


def test_the_callback_address_is_sent_to_fetch(port: int, calls: ByFunction) -> None:
    callback = CallBackAddress("https://api.example.com/jobs/01JOB", "the token", 3)
    http.run({"url": f"http://127.0.0.1:{port}/echo"}, context(calls, callback=callback))
    headers = Receiver.seen[0]["headers"]
    assert (headers["Punctual-Callback-Url"], headers["Punctual-Callback-Token"]) == (callback.url, callback.token)


def test_the_event_of_fetch_contains_only_what_the_call_needs(port: int, calls: ByFunction) -> None:
    http.run({"url": f"http://127.0.0.1:{port}/echo", "bearer_secret": "token"}, context(calls, secrets=lambda name: ["the value of it"]))
    (event,) = calls.events
    assert set(event) == {"payload", "secret", "job_id", "attempt", "callback", "not_before", "not_after", "timeout_seconds", "until"}
    assert event["payload"] == {"url": f"http://127.0.0.1:{port}/echo"}
    assert event["secret"] == {"Authorization": "Bearer the value of it"}


@pytest.mark.real_clock
def test_fetch_waits_for_the_instant_and_reports_when_it_began(port: int, calls: ByFunction) -> None:
    at = time.time_ns() // 1_000_000 + 120
    result = http.run({"url": f"http://127.0.0.1:{port}/echo"}, context(calls, not_before=at))
    assert result.failure is None and result.began_at is not None and result.began_at >= at


def test_every_answer_fits_into_lambda_s_limit_and_round_trips() -> None:
    worst = Result(response={"status": 200, "headers": {}, "body": "\x00" * 1_048_576})
    answer = json.dumps(fetch_call.encode_answer(worst, 5))
    assert len(answer) < 6 * 1_048_576
    back = fetch_call.decode_answer(json.loads(answer))
    assert (back.response, back.began_at) == (worst.response, 5)


@pytest.mark.parametrize("path", ["hang", "drip"])
def test_fetch_ends_a_call_at_the_job_s_deadline(port: int, calls: ByFunction, path: str) -> None:
    event = json.loads(
        fetch_call.encode_event({"url": f"http://127.0.0.1:{port}/{path}"}, {}, context(calls, seconds=0.2, timeout_seconds=30.0))
    )
    answer = fetch_call.decode_answer(fetch.handler(event, None))
    assert answer.failure == Failure(FailureKind.TIMEOUT, "no answer within the job's time-out of 30 s")


@pytest.mark.parametrize("ended", ["deadline", "stop"])
def test_an_executor_waits_for_fetch_until_its_deadline_or_a_stop(port: int, calls: ByFunction, ended: str) -> None:
    stop = threading.Event()
    if ended == "stop":
        threading.Timer(0.1, stop.set).start()
    seconds = 0.3 if ended == "deadline" else 600
    failure = http.run({"url": f"http://127.0.0.1:{port}/hang"}, context(calls, seconds=seconds, stop=stop)).failure
    assert failure is not None and failure.kind is FailureKind.TIMEOUT


def test_a_dead_fetch_is_retryable_and_its_message_is_hidden(calls: ByFunction) -> None:
    calls.answers["invoke"] = lambda: {"Payload": b'{"errorMessage": "with Bearer secret"}', "FunctionError": "Unhandled"}
    failure = http.run({"url": "https://example.com"}, context(calls)).failure
    assert failure is not None and failure.kind is FailureKind.RETRYABLE and "secret" not in failure.message


WHOLE = json.dumps(fetch_call.encode_answer(Result(response={"status": 200, "headers": {"a": "b"}, "body": "text"}), 5)).encode()


def test_an_answer_of_fetch_that_is_cut_anywhere_is_retryable(calls: ByFunction) -> None:
    for size in range(len(WHOLE) + 1):
        calls.answers["invoke"] = lambda size=size: {"Payload": WHOLE[:size]}
        failure = http.run({"url": "https://example.com"}, context(calls)).failure
        assert (failure is None) == (size == len(WHOLE)) and (failure is None or failure.kind is FailureKind.RETRYABLE)


@pytest.mark.parametrize(
    "changed",
    [
        {"response": None},
        {"response": {}},
        {"response": {"status": 200, "headers": {}}},
        {"response": {"status": 200, "headers": {}, "body": None}},
        {"response": {"status": 200, "headers": {}, "body": "no base64"}},
        {"response": {"status": 404, "headers": {}, "body": ""}},
        {"response": [200]},
        {"failure": []},
        {"began_at": None},
    ],
)
def test_a_malformed_answer_of_fetch_is_retryable(calls: ByFunction, changed: dict[str, Any]) -> None:
    calls.answers["invoke"] = lambda: {"Payload": json.dumps(json.loads(WHOLE) | changed).encode()}
    failure = http.run({"url": "https://example.com"}, context(calls)).failure
    assert failure is not None and (failure.kind, failure.message) == (
        "retryable",
        "the answer of the function that calls URLs is not whole",
    )


@pytest.mark.parametrize("answer", [b"", b"{}", b"null", b"[]", b"7", b'"text"', b"\xff"])
def test_an_answer_of_fetch_that_is_none_is_retryable(calls: ByFunction, answer: bytes) -> None:
    calls.answers["invoke"] = lambda: {"Payload": answer}
    failure = http.run({"url": "https://example.com"}, context(calls)).failure
    assert failure is not None and failure.kind is FailureKind.RETRYABLE


@pytest.mark.long
def test_an_answer_that_is_cut_is_no_success_by_fetch(port: int, calls: ByFunction) -> None:
    for answer in ("HTTP/1.1 200", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"):
        result = http.run({"url": f"http://127.0.0.1:{port}/raw", "method": "POST", "body": answer}, context(calls))
        assert result.failure is not None and result.failure.kind is FailureKind.RETRYABLE and result.response is None
    for given, kind in (({"timeout_seconds": 0.1}, "retryable"), ({}, "timeout")):
        payload = {"url": f"http://127.0.0.1:{port}/stream", **given}
        event = json.loads(fetch_call.encode_event(payload, {}, context(calls, seconds=0.5)))
        failure = fetch_call.decode_answer(fetch.handler(event, None)).failure
        assert failure is not None and failure.kind == kind


@pytest.mark.real_clock
def test_fetch_makes_no_call_after_its_latest_start(port: int, calls: ByFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was starting, or waited for a free instance, while the job's clearance became too old."""
    monkeypatch.setattr(fetch_call, "LATE_MS", 60_000)
    now = time.time_ns() // 1_000_000
    for late, called in ((fetch_call.LATE_MS + 50, False), (0, True)):
        result = http.run({"url": f"http://127.0.0.1:{port}/echo"}, context(calls, not_before=now, not_after=now - late))
        assert (result.unstarted, bool(Receiver.seen)) == (not called, called)
        assert called or (result.failure is not None and result.failure.kind is FailureKind.THROTTLED)


@pytest.mark.parametrize("code", fetch_call.BUSY)
def test_a_call_that_lambda_refuses_is_not_charged(calls: ByFunction, code: str) -> None:
    calls.answers["invoke"] = raising(Refused(code, "rate exceeded", retryable=True))
    result = http.run({"url": "https://example.com"}, context(calls))
    assert result.unstarted and result.failure is not None
    assert (result.failure.kind, result.failure.message, result.failure.retry_after_ms) == ("throttled", ALL_BUSY, 1_000)
    assert len(calls.asked) == 1, "the pool sends it again"


@pytest.mark.parametrize(("retryable", "kind"), [(True, "retryable"), (False, "permanent")])
def test_another_refusal_of_lambda_is_reported(calls: ByFunction, retryable: bool, kind: str) -> None:
    calls.answers["invoke"] = raising(Refused("AccessDeniedException", "no", retryable=retryable))
    failure = http.run({"url": "https://example.com"}, context(calls)).failure
    assert failure is not None and (failure.kind, failure.message) == (kind, "AccessDeniedException: no")


def test_fetch_checks_the_reach_of_its_stage_itself(port: int, calls: ByFunction) -> None:
    calls.at = _fetching.Fetch(SystemClock(), Reach(), False)
    for url in (f"http://127.0.0.1:{port}/echo", "https://127.0.0.1/", "https://[::ffff:169.254.169.254]/"):
        event = json.loads(fetch_call.encode_event({"url": url}, {}, context(calls)))
        failure = fetch_call.decode_answer(fetch.handler(event, None)).failure
        assert failure is not None and failure.kind is FailureKind.PERMANENT, url
    assert not Receiver.seen


def test_a_bug_in_fetch_is_reported_without_its_message(calls: ByFunction, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any) -> Result:
        raise LookupError("Bearer secret")

    event = json.loads(fetch_call.encode_event({"url": "https://example.com"}, {}, context(calls)))
    monkeypatch.setattr(http, "fetch", broken)
    failure = fetch_call.decode_answer(fetch.handler(event, None)).failure
    assert failure is not None and (failure.kind, failure.message) == ("retryable", "the call could not be made: LookupError")


def test_an_empty_event_only_warms_fetch(calls: ByFunction) -> None:
    assert fetch.handler({}, None) == {}
