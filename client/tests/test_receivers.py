"""Calls of Punctual in programs of FastAPI, Flask, Django and AWS Lambda."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from receiving import BODY, KEY, NOW, OTHER, PROGRAMS, SECRET, Clock, Handler, Program, Sent, signed

from punctual.errors import InvalidArgument
from punctual.receivers import Call, CallReceiver, MemoryStore, Permanent, Retry

pytestmark = pytest.mark.filterwarnings("ignore:There is no current event loop:DeprecationWarning")
PATIENCE = 60.0  # seconds, for a thread that hangs


class Shop:
    """A program of one framework. It remembers the calls that ran, and does what `does` says."""

    def __init__(self, framework: str, **options: Any) -> None:
        self.ran: list[Call] = []
        self.does: Handler = lambda call: {"run": len(self.ran)}
        self.clock = Clock()
        self.store = MemoryStore(self.clock)
        self.receiver = CallReceiver(**{"secret": SECRET, "store": self.store, "now": self.clock} | options)
        self.send: Program = PROGRAMS[framework](self.receiver, self._run)

    def _run(self, call: Call) -> dict[str, Any]:
        self.ran.append(call)
        return self.does(call)


@pytest.fixture(params=PROGRAMS)
def framework(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(framework: str) -> Shop:
    return Shop(framework)


def raising(error: Exception) -> Handler:
    def does(call: Call) -> dict[str, Any]:
        raise error

    return does


def test_a_call_has_the_context_of_its_job_with_types(shop: Shop) -> None:
    answer = shop.send(signed(Punctual_Attempt="3", Punctual_Task_Name="Gr%C3%BC%C3%9Fe", Punctual_Job_Key="order:17"))
    assert (answer.status, answer.json()) == (200, {"run": 1}) and "idempotent-replayed" not in answer.headers
    (call,) = shop.ran
    assert (call.job_id, call.idempotency_key, call.attempt, call.json()) == (KEY, KEY, 3, {"order": 17})
    assert call.scheduled_at == datetime(2026, 11, 20, 10, 0, 0, 250_000, timezone.utc) and call.sent_at == datetime.fromtimestamp(
        NOW, timezone.utc
    )
    assert (call.task_name, call.job_key, call.task_id) == ("Grüße", "order:17", None)
    assert call.headers["user-agent"] == "Punctual/1" and call.body == BODY


def test_a_call_that_arrives_twice_runs_once_and_gets_the_same_answer(shop: Shop) -> None:
    first, second = shop.send(signed()), shop.send(signed(Punctual_Attempt="2", at=NOW + 60))
    assert len(shop.ran) == 1 and (first.status, first.body) == (second.status, second.body)
    assert second.headers["idempotent-replayed"] == "true" and second.headers["content-type"] == first.headers["content-type"]
    assert shop.send(signed(key="01KBBQ5V3M8R0W2Y4Z6A8C0E2H")).json() == {"run": 2}


def test_a_call_that_arrives_while_it_runs_is_repeated_later(shop: Shop) -> None:
    began, may_end = threading.Event(), threading.Event()

    def wait(call: Call) -> dict[str, Any]:
        began.set()
        assert may_end.wait(PATIENCE)
        return {"order": "expired"}

    shop.does = wait
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(shop.send, signed())
        try:
            assert began.wait(PATIENCE)
            second = shop.send(signed())
        finally:
            may_end.set()
        assert first.result(PATIENCE).json() == {"order": "expired"}
    assert (second.status, second.headers["retry-after"], second.json()["error"]) == (503, "10", "still_running")
    assert shop.send(signed()).json() == {"order": "expired"} and len(shop.ran) == 1


def test_a_handler_that_raises_runs_again_in_the_next_attempt(shop: Shop) -> None:
    shop.does = raising(RuntimeError("the database is down"))
    failed = shop.send(signed())
    assert failed.status >= 500 and b"database" not in failed.body
    shop.does = lambda call: {"order": "expired"}
    assert shop.send(signed(Punctual_Attempt="2")).json() == {"order": "expired"} and len(shop.ran) == 2


def test_a_retry_is_answered_with_503_and_its_wait(shop: Shop) -> None:
    shop.does = raising(Retry("the payment is not decided", after=59.2))
    later = shop.send(signed())
    assert (later.status, later.headers["retry-after"]) == (503, "60")
    assert later.json() == {"error": "retry", "message": "the payment is not decided"}
    shop.does = raising(Retry())
    soon = shop.send(signed())
    assert soon.status == 503 and "retry-after" not in soon.headers and len(shop.ran) == 2


def test_a_permanent_failure_has_a_message_and_is_not_remembered(shop: Shop) -> None:
    shop.does = raising(Permanent("there is no order 17"))
    failed = shop.send(signed())
    assert (failed.status, failed.json()) == (422, {"error": "permanent", "message": "there is no order 17"})
    shop.does = lambda call: {"order": "expired"}
    assert shop.send(signed(Punctual_Attempt="2")).status == 200  # the job was redriven


TAMPERED = {
    "another body": replace(signed(), body=b'{"order":18}'),
    "an old signature": signed(at=NOW - 301),
    "a signature of the future": signed(at=NOW + 301),
    "another secret": signed(by=(OTHER,)),
    "no signature": Sent({"Idempotency-Key": KEY, "Content-Type": "application/json"}, BODY),
    "another key": signed(Idempotency_Key="01KBBQ5V3M8R0W2Y4Z6A8C0E2H"),
    "an empty signature": signed(webhook_signature="v1,"),
}


@pytest.mark.parametrize("reason", TAMPERED)
def test_a_request_without_a_valid_signature_gets_401_without_the_reason(shop: Shop, reason: str) -> None:
    answer = shop.send(TAMPERED[reason])
    assert (
        answer.status == 401
        and shop.ran == []
        and answer.json()
        == {
            "error": "signature",
            "message": "the signature is missing, invalid or too old: the log of the receiver has the reason",
        }
    )
    assert shop.send(signed()).status == 200  # a refused request claims nothing


def test_the_log_has_the_reason_of_a_refusal(caplog: pytest.LogCaptureFixture) -> None:
    Shop("flask").send(TAMPERED["an old signature"])
    assert "a call was refused with 401: the signature is 301 s old" in caplog.text


def test_another_method_gets_405_and_a_function_401(shop: Shop, framework: str) -> None:
    answer = shop.send(Sent({}, b"", "GET"))
    assert answer.status == (401 if framework == "lambda" else 405) and shop.ran == []


def test_a_call_whose_process_died_runs_again_after_its_lease(framework: str) -> None:
    shop = Shop(framework, lease=20)
    shop.receiver.once.claim(Call(KEY)).take()  # of a process that has died
    assert shop.send(signed()).status == 503
    shop.clock.now += 19
    assert shop.send(signed(at=shop.clock.now)).status == 503 and shop.ran == []
    shop.clock.now += 1
    assert shop.send(signed(at=shop.clock.now)).json() == {"run": 1}


def test_a_success_is_forgotten_after_the_time_to_keep_it(framework: str) -> None:
    shop = Shop(framework, lease=60, keep=600)
    shop.send(signed())
    shop.clock.now += 599
    assert shop.send(signed(at=shop.clock.now)).json() == {"run": 1}
    shop.clock.now += 1
    assert shop.send(signed(at=shop.clock.now)).json() == {"run": 2}


def test_each_attempt_with_a_call_back_runs_once(shop: Shop) -> None:
    callback = {"Punctual_Callback_Url": "https://api.example.com/callbacks/1"}
    first, again = (signed(Punctual_Callback_Token="t1", **callback) for _ in range(2))
    next_attempt = signed(Punctual_Callback_Token="t2", Punctual_Attempt="2", **callback)
    assert [shop.send(each).json()["run"] for each in (first, again, next_attempt)] == [1, 1, 2]
    assert shop.ran[1].worker().url == "https://api.example.com/callbacks/1"


@pytest.mark.parametrize("secret", [(OTHER, SECRET), lambda: [SECRET, OTHER], lambda: SECRET])
def test_several_secrets_and_a_function_are_secrets(framework: str, secret: Any) -> None:
    assert Shop(framework, secret=secret).send(signed()).status == 200
    assert Shop(framework, secret=SECRET).send(signed(by=(OTHER, SECRET))).status == 200  # the server rotates


def test_without_a_store_every_delivery_runs(framework: str) -> None:
    shop = Shop(framework, store=None)
    assert [shop.send(signed()).json()["run"] for _ in range(2)] == [1, 2]


def test_a_secret_that_signs_nothing_is_refused_at_the_start() -> None:
    for secret, reason in (("", "is empty"), ("short", "at least 24"), (None, "is no text"), ([], "no signing secret")):
        with pytest.raises(InvalidArgument, match=reason):
            CallReceiver(secret, store=None)  # type: ignore[arg-type]


def test_a_function_without_a_secret_is_a_fault_of_the_program(framework: str) -> None:
    shop = Shop(framework, secret=lambda: "")
    assert shop.send(signed()).status >= 500 and shop.ran == []  # Punctual repeats it; a 401 would end the job


class Broken(MemoryStore):
    """A store whose server fails for some of its methods."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            setattr(self, name, self._fail)

    def _fail(self, *arguments: Any) -> Any:
        raise ConnectionError("the store is down")


def test_a_store_that_is_down_runs_nothing(framework: str) -> None:
    shop = Shop(framework, store=Broken("add"))
    assert shop.send(signed()).status >= 500 and shop.ran == []


def test_work_that_is_done_is_a_success_though_the_store_is_down(framework: str, caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop(framework, store=Broken("set"))
    assert shop.send(signed()).status == 200 and "the store could not remember it" in caplog.text


def test_a_failure_stays_a_failure_though_the_store_is_down(framework: str, caplog: pytest.LogCaptureFixture) -> None:
    shop = Shop(framework, store=Broken("delete"))
    shop.does = raising(Permanent("there is no order 17"))
    assert shop.send(signed()).status == 422 and "the store could not release" in caplog.text


def test_facts_that_are_not_signed_may_be_nonsense(shop: Shop) -> None:
    assert shop.send(signed(Punctual_Attempt="many", Punctual_Scheduled_At="soon")).status == 200
    assert (shop.ran[0].attempt, shop.ran[0].scheduled_at) == (1, None)


def test_a_body_that_is_no_json_ends_the_job(shop: Shop, framework: str) -> None:
    shop.does = lambda call: {"order": call.json()}
    answer = shop.send(signed(b"{", Content_Type="text/plain"))
    assert answer.status in (400, 422) and (framework == "fastapi" or "no JSON" in answer.json()["message"])


def test_an_answer_of_a_late_run_does_not_release_the_claim_of_another() -> None:
    shop = Shop("flask", lease=20)
    late = shop.receiver.once.claim(Call(KEY))
    late.take()
    shop.clock.now += 21
    other = shop.receiver.once.claim(Call(KEY))
    assert other.take() is None
    late.release()
    assert shop.send(signed(at=shop.clock.now)).status == 503


def test_long_answers_are_remembered_without_their_body(shop: Shop) -> None:
    shop.does = lambda call: {"text": "x" * 70_000}
    assert len(shop.send(signed()).body) > 70_000
    again = shop.send(signed())
    assert (again.status, again.body, len(shop.ran)) == (200, b"", 1)


def test_exceptions_check_what_punctual_would_do() -> None:
    for status in (200, 408, 425, 429, 500):
        with pytest.raises(InvalidArgument, match="Punctual repeats"):
            Permanent("no", status=status)
    assert Permanent("gone", status=410).status == 410
    with pytest.raises(InvalidArgument, match="more than 0"):
        Retry(after=0)
    assert Retry(after=100_000).after == 3_600
    with pytest.raises(InvalidArgument, match="lease"):
        CallReceiver(SECRET, store=None, lease=10, keep=5)


def test_an_event_that_no_job_sent_is_refused() -> None:
    for event in ({}, {"punctual": "x"}, {"punctual": {"idempotency_key": ""}}):
        with pytest.raises(InvalidArgument, match=r"no punctual\.idempotency_key"):
            Call.from_event(event)
    call = Call.from_event({"order": 17, "punctual": {"idempotency_key": KEY, "attempt": 2, "scheduled_at": "2026-11-20T10:00:00.250Z"}})
    assert (call.job_id, call.attempt, json.loads(call.body)) == (KEY, 2, {"order": 17}) and call.scheduled_at is not None
