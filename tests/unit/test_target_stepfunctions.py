"""The `stepfunctions` target: one execution per job, and waiting for its end."""

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


def test_an_execution_is_named_after_the_job_and_not_waited_for() -> None:
    calls = FakeCalls()
    assert machine.run({"state_machine": MACHINE, "input": {"order": 7}}, context(calls)).output == EXECUTION
    (request,) = calls.asked
    assert (request.parameters["stateMachineArn"], request.parameters["name"]) == (MACHINE, "01JOB")
    assert json.loads(request.parameters["input"]) == {"order": 7, "punctual": {"job_id": "01JOB", "idempotency_key": "01JOB"}}


def test_waiting_ends_with_the_execution_and_tells_its_output() -> None:
    calls = scripted("RUNNING", "RUNNING", "SUCCEEDED")
    assert machine.run(WAITING, context(calls)) == Result(output='{"paid": true}')
    looks = [each.parameters for each in calls.asked if each.operation == "describe_execution"]
    assert looks == [{"executionArn": EXECUTION}] * 3


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_an_execution_that_ends_badly_fails_the_job_for_good(status: str) -> None:
    """Another attempt would find the very same execution."""
    failure = machine.run(WAITING, context(scripted("RUNNING", status))).failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("permanent", f"the execution ended as {status}: Broke: because")


def test_a_look_that_is_refused_for_now_is_done_again() -> None:
    throttled = Refused("ThrottlingException", retryable=True)
    assert machine.run(WAITING, context(scripted(throttled, "SUCCEEDED"))).failure is None


def test_a_look_that_is_refused_for_good_fails_the_job() -> None:
    failure = machine.run(WAITING, context(scripted(Refused("AccessDeniedException", "no", retryable=False)))).failure
    assert failure is not None and (failure.kind, failure.message) == ("permanent", "AccessDeniedException: no")


def test_waiting_ends_at_the_deadline_and_no_look_comes_after() -> None:
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
