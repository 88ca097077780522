"""The `stepfunctions` target: one execution per job, and the wait for its end."""

import json
from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.job import Awaited, Claim, Failure, FailureKind, Result
from scheduler.targets import registry
from scheduler.targets.awaited_ends import SETTLES_MS
from scheduler.targets.calls import Refused
from scheduler.targets.types import stepfunctions
from tests.conftest import NOW, a_job
from tests.unit.fake_calls import EXECUTION, MACHINE, FakeCalls, context, raising

machine = registry.load("stepfunctions")
WAITING = {"state_machine": MACHINE, "input": {"order": 7}, "wait": True}


def test_an_execution_is_named_after_the_job() -> None:
    calls = FakeCalls()
    assert machine.run({"state_machine": MACHINE, "input": {"order": 7}}, context(calls)).output == EXECUTION
    (request,) = calls.asked
    assert (request.parameters["stateMachineArn"], request.parameters["name"]) == (MACHINE, "01JOB")
    assert json.loads(request.parameters["input"]) == {"order": 7, "punctual": {"job_id": "01JOB", "idempotency_key": "01JOB"}}


def test_a_job_that_waits_names_the_execution_after_its_first_attempt() -> None:
    calls = FakeCalls()
    awaited = Awaited(3)
    result = machine.run(WAITING, replace(context(calls), owner="ann", awaited=awaited))
    assert result == Result(awaited=replace(awaited, id=EXECUTION))
    assert calls.asked[0].parameters["name"] == "01JOB-3_ann"


def test_an_execution_with_the_name_of_the_attempt_is_its_own() -> None:
    calls = FakeCalls(start_execution=raising(Refused("ExecutionAlreadyExists", retryable=False)))
    result = machine.run(WAITING, replace(context(calls), owner="ann", awaited=Awaited(1)))
    assert result.awaited is not None and result.awaited.id == f"{EXECUTION.rpartition(':')[0]}:01JOB-1_ann"


@pytest.mark.parametrize(
    ("found", "result"),
    [
        ({"status": "RUNNING"}, None),
        ({"status": "PENDING_REDRIVE"}, None),
        ({"status": "SUCCEEDED", "output": "1"}, Result(output="1")),
        ({"status": "SUCCEEDED", "output": None, "outputDetails": {"included": False}}, None),
        ({"status": "FAILED", "error": "Broke", "cause": "because"}, ("retryable", "the execution ended as FAILED: Broke: because")),
        ({"status": "TIMED_OUT"}, ("retryable", "the execution ended as TIMED_OUT")),
        ({"status": "ABORTED", "cause": "by hand"}, ("permanent", "the execution ended as ABORTED: by hand")),
        ({"status": "ABORTED", "cause": "Punctual timeout: too long"}, ("timeout", "too long")),
    ],
)
def test_the_end_of_an_execution(found: dict[str, Any], result: Result | tuple[str, str] | None) -> None:
    end = stepfunctions.judged(found, Awaited(1))
    assert end == (Result(failure=Failure(FailureKind(result[0]), result[1])) if isinstance(result, tuple) else result)


def checked(found: dict[str, Any] | Refused, *, now: int = NOW, must_stop: Failure | None = None) -> tuple[Result, FakeCalls]:
    calls = FakeCalls(describe_execution=raising(found) if isinstance(found, Refused) else lambda: found, stop_execution=dict)
    awaited = Awaited(1, id=EXECUTION)
    job = replace(a_job(type="stepfunctions", payload=WAITING), claim=Claim("m", "n", NOW, True, NOW), started_at=NOW, awaited=awaited)
    return machine.check_end(job, replace(context(calls), awaited=awaited, must_stop=must_stop), now), calls


def test_an_execution_that_must_stop_is_stopped_with_the_reason() -> None:
    why = Failure(FailureKind.CANCELLED, "cancelled by request")
    result, calls = checked({"status": "RUNNING"}, must_stop=why)
    assert result.awaited is not None and result.awaited.stopping is not None
    cause = calls.asked[-1].parameters["cause"]
    assert (end := stepfunctions.judged({"status": "ABORTED", "cause": cause}, result.awaited)) is not None and end.failure == why


@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_a_check_that_finds_a_failed_execution_ends_the_attempt(status: str) -> None:
    """Its event may be lost."""
    result, _ = checked({"status": status, "error": "Broke"})
    assert result == stepfunctions.judged({"status": status, "error": "Broke"}, Awaited(1)) and result.awaited is None


def test_an_execution_that_aws_does_not_know_is_a_crash() -> None:
    missing = Refused("ExecutionDoesNotExist", retryable=False)
    early, _ = checked(missing)
    late, _ = checked(missing, now=NOW + SETTLES_MS)
    assert early.awaited is not None and late.failure is not None and late.failure.kind is FailureKind.CRASHED
