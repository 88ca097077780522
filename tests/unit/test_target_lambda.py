"""The `lambda` target: the event, both modes, and a function that fails."""

import base64
import json

from scheduler.model.job import FailureKind, Result
from scheduler.targets import registry
from tests.unit.fake_calls import FUNCTION, FakeCalls, context

lambda_ = registry.load("lambda")


def test_the_event_is_given_with_the_ids_added() -> None:
    calls = FakeCalls()
    lambda_.run({"function": f"{FUNCTION}:live", "event": {"order": 7}}, context(calls))
    (request,) = calls.asked
    assert (request.parameters["FunctionName"], request.parameters["InvocationType"]) == (f"{FUNCTION}:live", "RequestResponse")
    assert (request.waits, request.again, request.region) == (True, False, "eu-west-1")
    assert json.loads(request.parameters["Payload"]) == {"order": 7, "punctual": {"job_id": "01JOB", "idempotency_key": "01JOB"}}


def test_the_function_s_answer_is_the_output_and_its_log_is_kept() -> None:
    assert lambda_.run({"function": FUNCTION}, context()).output == '{"done": 1}'
    long = FakeCalls(invoke=lambda: {"Payload": b"x" * 10_000, "LogResult": base64.b64encode(b"START\nEND\n").decode()})
    assert lambda_.run({"function": FUNCTION}, context(long)) == Result("x" * 10_000, log="START\nEND")


def test_a_failed_function_is_retryable_with_its_error() -> None:
    error = b'{"errorType": "KeyError", "errorMessage": "' + b"x" * 1_000 + b'"}'
    calls = FakeCalls(invoke=lambda: {"Payload": error, "FunctionError": "Unhandled"})
    result = lambda_.run({"function": FUNCTION}, context(calls))
    assert result.failure is not None and result.failure.kind is FailureKind.RETRYABLE
    assert "KeyError" in result.failure.message and len(result.failure.message) == 500


def test_an_async_call_is_not_waited_for_and_has_no_output() -> None:
    calls = FakeCalls(invoke=lambda: {"Payload": b""})
    assert lambda_.run({"function": FUNCTION, "mode": "async"}, context(calls)) == Result()
    (request,) = calls.asked
    assert (request.parameters["InvocationType"], request.waits, request.again) == ("Event", False, False)
