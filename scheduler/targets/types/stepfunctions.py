"""`stepfunctions`: starts an execution of a state machine, and waits for its end if asked."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, Predicate

from scheduler.model import lifecycle
from scheduler.model.job import Awaited, Failure, FailureKind, Job, JobKey, Result
from scheduler.targets import arns, awaited_ends, aws_call
from scheduler.targets.awaited_ends import AwaitedEnds, Detail, Started
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
    permissions=(
        Permission("states:StartExecution"),
        Permission("states:DescribeExecution", on=_executions),
        Permission("states:StopExecution", on=_executions),
    ),
)

OPEN = ("RUNNING", "PENDING_REDRIVE")
ENDED = ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]
EXISTS, MISSING = "ExecutionAlreadyExists", "ExecutionDoesNotExist"


@dataclass(frozen=True, slots=True)
class Payload:
    """An execution."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    state_machine: Annotated[str, MaxLen(300), Predicate(RESOURCE.is_arn)]
    """The ARN of the state machine."""
    input: Annotated[dict[str, Any], Predicate(aws_call.is_open)] = field(default_factory=dict)
    """A JSON object; the scheduler adds its field `punctual` with the job's ids and context."""
    wait: bool = False
    """Whether the job runs until the execution has ended, and fails if it does. Standard state machines only."""


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Start one execution, named after the job: another attempt starts no second execution, it finds the first.

    A job that waits for its end, or reports by call-back, names the execution after the attempt, because each further attempt follows a
    failed execution. The output is the ARN of the execution; of a job that waits, it is the output of the execution.
    """
    request, awaited = Payload(**payload), context.awaited
    sent = aws_call.with_ids(request.input, context, equal_attempts=True)
    if request.wait and awaited is None:
        return Result(failure=Failure(FailureKind.RETRYABLE, "the execution could not be prepared; the log of the executor has the reason"))
    name = context.unique if awaited is None else f"{context.job_id}-{awaited.fence}_{context.owner}"

    def call(calls: Calls) -> Result:
        arn = _start(calls, request.state_machine, sent, name, context, is_ours=request.wait)
        return Result(output=arn) if awaited is None or not request.wait else awaited_ends.goes_on(replace(awaited, id=arn))

    if awaited is None:
        return aws_call.attempt("stepfunctions", payload, context, call)
    return aws_call.started("stepfunctions", payload, context, call)


def _start(calls: Calls, machine: str, sent: str, name: str, context: Context, *, is_ours: bool) -> str:
    """Return the ARN of the execution, also if one with the same name and input exists already. Raises Refused.

    `is_ours`: no one else has this name, so one with another input is an earlier try, before the job was edited.
    """
    parameters = {"stateMachineArn": machine, "name": name, "input": sent}
    try:
        request = Request("stepfunctions", "start_execution", parameters, arns.region(machine))
        return str(calls.send(request, left=context.left)["executionArn"])
    except Refused as refused:
        if refused.code != EXISTS:
            raise
    arn = f"{machine.replace(':stateMachine:', ':execution:', 1)}:{name}"
    if not is_ours and _own(_describe(calls, arn, context).get("input", "")) != _own(sent):
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


def check_end(job: Job, context: Context, now: int) -> Result:
    """Describe the execution; stop it if the job must stop."""
    awaited = job.awaited
    assert awaited is not None and awaited.id is not None
    arn, why = awaited.id, context.must_stop

    def call(calls: Calls) -> Result:
        try:
            ended = judged(_describe(calls, arn, context), awaited)
        except Refused as refused:
            if refused.code != MISSING:
                raise
            return awaited_ends.unknown(job, awaited, "the execution", now, lifecycle.started_at(job))
        if ended is not None:
            return ended
        if why is None:
            return awaited_ends.goes_on(awaited)
        stop = {"executionArn": arn, "error": f"Punctual.{why.kind}", "cause": awaited_ends.stop_reason(why)}
        calls.send(Request("stepfunctions", "stop_execution", stop, arns.region(arn)), left=context.left)
        return awaited_ends.goes_on(replace(awaited, stopping=f"the execution is being stopped: {why.message}"))

    return aws_call.checked(job, context, now, call)


def _link(execution: str) -> str:
    return f"{arns.console(execution)}/states/home?region={arns.region(execution)}#/v2/executions/details/{execution}"


def _started_by(detail: Detail) -> Started | None:
    found = re.fullmatch(r"([0-9A-Z]{26})-(\d+)_(.+)", detail.get("name") or "")
    return None if found is None else Started(JobKey(found[3], found[1]), int(found[2]), str(detail.get("executionArn")))


def _pattern(allowed: Sequence[str]) -> Mapping[str, Sequence[Any]]:
    """The events name no starter: all ends of the state machines that jobs may start."""
    return {"status": ENDED, "stateMachineArn": [{"wildcard": each} if "*" in each else each for each in allowed]}


def judged(found: Detail, awaited: Awaited) -> Result | None:
    """The result of an execution by its description, or by an event of it; None: it goes on, or an event leaves its output out."""
    status = found["status"]
    if status in OPEN:
        return None
    if status == "SUCCEEDED":
        is_left_out = found.get("output") is None and (found.get("outputDetails") or {}).get("included") is False
        return None if is_left_out else Result(output=found.get("output") or None)
    if (by_us := awaited_ends.stopped_by_us(found.get("cause"))) is not None and status == "ABORTED":
        return Result(failure=by_us)
    why = ": ".join(part for part in (found.get("error"), found.get("cause")) if part)
    kind = FailureKind.PERMANENT if status == "ABORTED" else FailureKind.RETRYABLE
    return Result(failure=Failure(kind, f"the execution ended as {status}{f': {why}' if why else ''}"[:500]))


TYPE = TargetType(
    payload=Payload,
    run=run,
    content=("input",),
    resource=RESOURCE,
    calls_back=True,
    equal_attempts=True,
    ends=AwaitedEnds(
        are_awaited=lambda payload: bool(payload.get("wait")),
        request=lambda payload, job, context: None,  # the name of the execution is enough
        check=check_end,
        source="aws.states",
        detail_type="Step Functions Execution Status Change",
        pattern=_pattern,
        started_by=_started_by,
        link=_link,
        judged=judged,
    ),
)
