"""Every type sends the call-back address beside the ids; without a call-back policy it sends none."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from scheduler.targets import registry
from scheduler.targets.base import CallBackAddress, Context, NotAllowed
from scheduler.targets.calls import Request
from scheduler.targets.job_context import JobContext
from scheduler.targets.types.http import Payload, _headers
from tests.unit.fake_calls import BUS, FUNCTION, MACHINE, QUEUE, TOPIC, FakeCalls, attributes, context
from tests.unit.test_target_aws import json_of

ADDRESS = CallBackAddress("https://api.example.com/api/v1/jobs/01JOB", "v1.a.b", 2)
REPORTING = ("eventbridge", "http", "lambda", "sns", "sqs", "stepfunctions")
TOLD = {"Punctual-Callback-Url": ADDRESS.url, "Punctual-Callback-Token": ADDRESS.token}


def asked(name: str, payload: dict[str, Any]) -> Request:
    """The request to AWS for an attempt that reports by call-back."""
    calls = FakeCalls()
    assert registry.load(name).run(payload, replace(context(calls), callback=ADDRESS)).failure is None
    return calls.asked[0]


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("lambda", {"function": FUNCTION, "event": {"order": 7}}),
        ("eventbridge", {"bus": BUS, "source": "shop", "detail_type": "Paid", "detail": {"order": 7}}),
        ("stepfunctions", {"state_machine": MACHINE, "input": {"order": 7}}),
    ],
)
def test_json_carries_the_callback_address_beside_the_ids(name: str, payload: dict[str, Any]) -> None:
    ids = {"job_id": "01JOB", "idempotency_key": "01JOB"}
    assert json_of(asked(name, payload)) == {"order": 7, "punctual": ids | {"callback": {"url": ADDRESS.url, "token": ADDRESS.token}}}


@pytest.mark.parametrize(("name", "payload"), [("sqs", {"queue": QUEUE, "body": "b"}), ("sns", {"topic": TOPIC, "message": "m"})])
def test_messages_carry_the_callback_address_as_attributes(name: str, payload: dict[str, Any]) -> None:
    sent = asked(name, payload).parameters["MessageAttributes"]
    assert sent == attributes(**{"Idempotency-Key": "01JOB", "Punctual-Job-Id": "01JOB"}, **TOLD)


def test_requests_carry_the_callback_address_as_headers() -> None:
    plain = Context(JobContext("01JOB"), time.monotonic() + 60, threading.Event())
    request = Payload("https://example.com")
    assert _headers(request, replace(plain, callback=ADDRESS)) == _headers(request, plain) | TOLD


def test_each_callback_attempt_has_its_own_execution_and_fifo_message() -> None:
    """If the previous worker has fallen silent, the same name or message id would be dropped as a duplicate."""
    assert asked("stepfunctions", {"state_machine": MACHINE}).parameters["name"] == "01JOB-2"
    message = asked("sqs", {"queue": QUEUE + ".fifo", "body": "b", "group": "g"}).parameters
    assert message["MessageDeduplicationId"] == "01JOB-2"
    assert message["MessageAttributes"]["Idempotency-Key"]["StringValue"] == "01JOB"


def test_types_without_a_worker_accept_no_callback() -> None:
    refused = []
    for name in registry.names():
        try:
            registry.check_callback(name, {})
        except NotAllowed:
            refused.append(name)
    assert sorted({*registry.names()} - {*refused}) == sorted(REPORTING)


@pytest.mark.parametrize("name", ["sqs", "sns"])
def test_a_callback_leaves_room_for_six_attributes(name: str) -> None:
    registry.check_callback(name, {"attributes": dict.fromkeys("abcdef", "x")})
    with pytest.raises(NotAllowed):
        registry.check_callback(name, {"attributes": dict.fromkeys("abcdefg", "x")})
