"""`stepfunctions`: starts an execution of a state machine, and waits for its end if asked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, Predicate

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import arns, aws_call
from scheduler.targets.base import Context
from scheduler.targets.calls import Calls, Refused, Request
from scheduler.targets.target_type import Permission, Resource, TargetType


def _executions(machine: str) -> str:
    """The executions of a machine, or of the machines of a pattern."""
    return f"{machine.replace(':stateMachine:', ':execution:')}:*" if ":stateMachine:" in machine else machine


RESOURCE = Resource(
    "state_machine",
    service="states",
    form=r"stateMachine:[A-Za-z0-9_-]{1,80}",
    noun="the ARN of a state machine, without version or alias",
    permissions=(Permission("states:StartExecution"), Permission("states:DescribeExecution", on=_executions)),
)

PAUSES = (0.5, 1.0, 2.0, 5.0)  # seconds between two polls; the last one repeats
OPEN = ("RUNNING", "PENDING_REDRIVE")
EXISTS = "ExecutionAlreadyExists"


@dataclass(frozen=True, slots=True)
class Payload:
    """An execution."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    state_machine: Annotated[str, MaxLen(300), Predicate(RESOURCE.is_arn)]
    """The ARN of the state machine."""
    input: Annotated[dict[str, Any], Predicate(aws_call.is_open)] = field(default_factory=dict)
    """A JSON object; the scheduler adds its field `punctual` with the job's ids and context."""
    wait: bool = False
    """Whether to wait for its end, within the job's time-out. Standard state machines only."""


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Start one execution, named after the job: another attempt starts no second execution, it finds the first.

    A job that reports by call-back names the execution after the attempt, because each further attempt follows a failed execution.
    The output is its ARN or, after waiting, its output. A failed execution is a permanent failure: another attempt would find it again.
    """
    request = Payload(**payload)
    sent = aws_call.with_ids(request.input, context, equal_attempts=True)

    def call(calls: Calls) -> Result:
        arn = _start(calls, request.state_machine, sent, context)
        return _poll(calls, arn, context) if request.wait else Result(output=arn)

    return aws_call.attempt("stepfunctions", payload, context, call)


def _start(calls: Calls, machine: str, sent: str, context: Context) -> str:
    """Return the ARN of the execution, also if one with the same name and input exists already. Raises Refused."""
    name = context.unique
    parameters = {"stateMachineArn": machine, "name": name, "input": sent}
    try:
        request = Request("stepfunctions", "start_execution", parameters, arns.region(machine))
        return str(calls.send(request, left=context.left)["executionArn"])
    except Refused as refused:
        if refused.code != EXISTS:
            raise
    arn = f"{machine.replace(':stateMachine:', ':execution:', 1)}:{name}"
    if _own(_describe(calls, arn, context).get("input", "")) != _own(sent):
        raise Refused(EXISTS, f"there is an execution {name} with another input", retryable=False)
    return arn


def _own(text: str) -> Any:
    """The input without the scheduler's field: another version may have written that, and a task may have got another name since."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return {name: value for name, value in found.items() if name != aws_call.FIELD} if isinstance(found, dict) else None


def _describe(calls: Calls, arn: str, context: Context) -> Mapping[str, Any]:
    """Return the description of an execution. Raises Refused."""
    return calls.send(Request("stepfunctions", "describe_execution", {"executionArn": arn}, arns.region(arn)), left=context.left)


def _poll(calls: Calls, arn: str, context: Context) -> Result:
    """Poll until the execution has ended, the deadline passes or `stop` is set."""
    polls = 0
    while True:
        try:
            found = _describe(calls, arn, context)
        except Refused as refused:
            if not refused.retryable:
                raise
        else:
            if found["status"] not in OPEN:
                return _judged(found)
        pause = PAUSES[min(polls, len(PAUSES) - 1)]
        polls += 1
        context.stop.wait(min(pause, context.left()))
        if not context.left():
            return Result(failure=Failure(FailureKind.TIMEOUT, context.cut()))


def _judged(found: Mapping[str, Any]) -> Result:
    if found["status"] == "SUCCEEDED":
        return Result(output=found.get("output") or None)
    why = ": ".join(part for part in (found.get("error"), found.get("cause")) if part)
    return Result(failure=Failure(FailureKind.PERMANENT, f"the execution ended as {found['status']}{f': {why}' if why else ''}"[:500]))


TYPE = TargetType(payload=Payload, run=run, content=("input",), resource=RESOURCE, calls_back=True, equal_attempts=True)
