"""The `lambda` target: the event, both modes, and a function that fails."""

import json

from scheduler.model.job import FailureKind, Result
from scheduler.targets import registry
from scheduler.targets.calls import Invoked
from tests.unit.fake_calls import FUNCTION, FakeCalls, context

lambda_ = registry.load("lambda")


def test_the_event_is_given_with_the_ids_added() -> None:
    calls = FakeCalls()
    lambda_.run({"function": f"{FUNCTION}:live", "event": {"order": 7}}, context(calls))
    ((_, function, event, wait),) = calls.asked
    assert (function, wait) == (f"{FUNCTION}:live", True)
    assert json.loads(event) == {"order": 7, "punctual": {"job_id": "01JOB", "idempotency_key": "01JOB"}}


def test_the_answer_of_the_function_is_the_output_and_what_it_wrote_the_log() -> None:
    assert lambda_.run({"function": FUNCTION}, context()).output == '{"done": 1}'
    long = FakeCalls(invoke=lambda: Invoked("x" * 10_000, log="START\nEND"))
    assert lambda_.run({"function": FUNCTION}, context(long)) == Result("x" * 10_000, log="START\nEND")


def test_a_function_that_failed_is_worth_another_try_and_tells_how() -> None:
    calls = FakeCalls(invoke=lambda: Invoked('{"errorType": "KeyError", "errorMessage": "' + "x" * 1_000 + '"}', error=True))
    result = lambda_.run({"function": FUNCTION}, context(calls))
    assert result.failure is not None and result.failure.kind is FailureKind.RETRYABLE
    assert "KeyError" in result.failure.message and len(result.failure.message) == 500


def test_an_async_call_is_not_waited_for_and_has_no_output() -> None:
    calls = FakeCalls(invoke=lambda: Invoked(""))
    assert lambda_.run({"function": FUNCTION, "mode": "async"}, context(calls)) == Result()
    assert calls.asked[0][3] is False
