"""The `stepfunctions` target: one execution per job, and the wait for its end."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.model.job import FailureKind, Result
from scheduler.targets import registry
from scheduler.targets.calls import Refused
from scheduler.targets.types import stepfunctions
from tests.unit.fake_calls import EXECUTION, MACHINE, FakeCalls, context

machine = registry.load("stepfunctions")
WAITING = {"state_machine": MACHINE, "input": {"order": 7}, "wait": True}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepfunctions, "PAUSES", (0.0,))


def scripted(*found: Any) -> FakeCalls:
    script: Iterator[Any] = iter(found)

    def look() -> Any:
        each = next(script)
        if isinstance(each, Exception):
            raise each
        return {"status": each, "input": "{}", "output": '{"paid": true}', "error": "Broke", "cause": "because"}

    return FakeCalls(describe_execution=look)


def test_an_execution_is_named_after_the_job() -> None:
    calls = FakeCalls()
    assert machine.run({"state_machine": MACHINE, "input": {"order": 7}}, context(calls)).output == EXECUTION
    (request,) = calls.asked
    assert (request.parameters["stateMachineArn"], request.parameters["name"]) == (MACHINE, "01JOB")
    assert json.loads(request.parameters["input"]) == {"order": 7, "punctual": {"job_id": "01JOB", "idempotency_key": "01JOB"}}


def test_waiting_returns_the_output_of_the_execution() -> None:
    calls = scripted("RUNNING", "RUNNING", "SUCCEEDED")
    assert machine.run(WAITING, context(calls)) == Result(output='{"paid": true}')
    looks = [each.parameters for each in calls.asked if each.operation == "describe_execution"]
    assert looks == [{"executionArn": EXECUTION}] * 3


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_a_failed_execution_is_a_permanent_failure(status: str) -> None:
    """Another attempt would find the same execution."""
    failure = machine.run(WAITING, context(scripted("RUNNING", status))).failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("permanent", f"the execution ended as {status}: Broke: because")


def test_a_poll_that_is_refused_for_now_is_repeated() -> None:
    throttled = Refused("ThrottlingException", retryable=True)
    assert machine.run(WAITING, context(scripted(throttled, "SUCCEEDED"))).failure is None


def test_a_poll_that_is_refused_permanently_fails_the_job() -> None:
    failure = machine.run(WAITING, context(scripted(Refused("AccessDeniedException", "no", retryable=False)))).failure
    assert failure is not None and (failure.kind, failure.message) == ("permanent", "AccessDeniedException: no")


def test_waiting_ends_at_the_deadline_without_another_poll() -> None:
    stop = threading.Event()
    looks = []

    def look() -> Any:
        looks.append(1)
        if len(looks) == 3:
            stop.set()
        return {"status": "RUNNING", "input": "{}"}

    failure = machine.run(WAITING, context(FakeCalls(describe_execution=look), seconds=60, stop=stop)).failure
    assert failure is not None and failure.kind is FailureKind.TIMEOUT
    assert len(looks) == 3
