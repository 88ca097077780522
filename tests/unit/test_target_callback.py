"""Where a worker reports to reaches it beside the ids, whatever the type; without the policy nothing of it is sent."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest

from scheduler.targets import registry
from scheduler.targets.base import CallBackAddress, Context, NotAllowed
from scheduler.targets.calls import Request
from scheduler.targets.types.http import Payload, _headers
from tests.unit.fake_calls import BUS, FUNCTION, MACHINE, QUEUE, TOPIC, FakeCalls, attributes, context
from tests.unit.test_target_aws import json_of

ADDRESS = CallBackAddress("https://api.example.com/api/v1/jobs/01JOB", "v1.a.b", 2)
REPORTING = ("eventbridge", "http", "lambda", "sns", "sqs", "stepfunctions")
TOLD = {"Punctual-Callback-Url": ADDRESS.url, "Punctual-Callback-Token": ADDRESS.token}


def asked(name: str, payload: dict[str, Any]) -> Request:
    """What the target asks of AWS for an attempt that reports by call-back."""
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
def test_json_has_it_in_the_field_of_the_ids(name: str, payload: dict[str, Any]) -> None:
    ids = {"job_id": "01JOB", "idempotency_key": "01JOB"}
    assert json_of(asked(name, payload)) == {"order": 7, "punctual": ids | {"callback": {"url": ADDRESS.url, "token": ADDRESS.token}}}


@pytest.mark.parametrize(("name", "payload"), [("sqs", {"queue": QUEUE, "body": "b"}), ("sns", {"topic": TOPIC, "message": "m"})])
def test_messages_have_it_as_attributes(name: str, payload: dict[str, Any]) -> None:
    sent = asked(name, payload).parameters["MessageAttributes"]
    assert sent == attributes(**{"Idempotency-Key": "01JOB", "Punctual-Job-Id": "01JOB"}, **TOLD)


def test_requests_have_it_as_headers() -> None:
    plain = Context("01JOB", 1, time.monotonic() + 9, threading.Event())
    request = Payload("https://example.com")
    assert _headers(request, replace(plain, callback=ADDRESS)) == _headers(request, plain) | TOLD


def test_each_attempt_has_an_execution_and_a_fifo_message_of_its_own() -> None:
    """Where the worker before has fallen silent, the name or the message of the job would be taken for a copy."""
    assert asked("stepfunctions", {"state_machine": MACHINE}).parameters["name"] == "01JOB-2"
    message = asked("sqs", {"queue": QUEUE + ".fifo", "body": "b", "group": "g"}).parameters
    assert message["MessageDeduplicationId"] == "01JOB-2"
    assert message["MessageAttributes"]["Idempotency-Key"]["StringValue"] == "01JOB"


def test_types_without_a_worker_take_none() -> None:
    refused = []
    for name in registry.names():
        try:
            registry.check_callback(name, {})
        except NotAllowed:
            refused.append(name)
    assert sorted({*registry.names()} - {*refused}) == sorted(REPORTING)


@pytest.mark.parametrize("name", ["sqs", "sns"])
def test_ten_attributes_are_all_that_a_queue_takes(name: str) -> None:
    registry.check_callback(name, {"attributes": dict.fromkeys("abcdef", "x")})
    with pytest.raises(NotAllowed):
        registry.check_callback(name, {"attributes": dict.fromkeys("abcdefg", "x")})
