"""`stepfunctions`: starts an execution of a state machine, and waits for its end if asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, Predicate

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import aws_call
from scheduler.targets.base import Context
from scheduler.targets.calls import Calls, Execution, Refused

RESOURCE = "state_machine"
CALLS_BACK = 0
_is_machine = aws_call.is_arn("states", r"stateMachine:[A-Za-z0-9_-]{1,80}", "the ARN of a state machine, without version or alias")

PAUSES = (0.5, 1.0, 2.0, 5.0)  # seconds between two looks; the last one again and again
OPEN = ("RUNNING", "PENDING_REDRIVE")


@dataclass(frozen=True, slots=True)
class Payload:
    """An execution."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    state_machine: Annotated[str, MaxLen(300), Predicate(_is_machine)]
    """The ARN of the state machine."""
    input: Annotated[dict[str, Any], Predicate(aws_call.is_open)] = field(default_factory=dict)
    """A JSON object; the scheduler adds its field `punctual` with the job's ids."""
    wait: bool = False
    """Whether to wait for its end, within the job's time-out. Standard state machines only."""


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """One execution, named after the job: another attempt starts no second one, it finds the first. If it reports by call-back it is
    named after the attempt, for it is asked for because the one before has failed.

    The output is its ARN or, after waiting, its output. One that has ended badly is not worth another try for that reason.
    """
    wanted = Payload(**payload)
    given = aws_call.with_ids(wanted.input, context)

    def call(calls: Calls) -> Result:
        arn = calls.start(wanted.state_machine, context.unique, given, left=context.left)
        return _watched(calls, arn, context) if wanted.wait else Result(output=arn)

    return aws_call.attempt("stepfunctions", payload, context, call)


def _watched(calls: Calls, arn: str, context: Context) -> Result:
    """How the execution ended; who asked has gone when the deadline passes or `stop` is set."""
    looks = 0
    while True:
        try:
            found = calls.look(arn, left=context.left)
        except Refused as refused:
            if not refused.retryable:
                raise
        else:
            if found.status not in OPEN:
                return _judged(found)
        pause = PAUSES[min(looks, len(PAUSES) - 1)]
        looks += 1
        context.stop.wait(min(pause, context.left()))
        if not context.left():
            return Result(failure=Failure(FailureKind.TIMEOUT, aws_call.STOPPED))


def _judged(found: Execution) -> Result:
    if found.status == "SUCCEEDED":
        return Result(output=found.output or None)
    why = ": ".join(part for part in (found.error, found.cause) if part)
    return Result(failure=Failure(FailureKind.PERMANENT, f"the execution ended as {found.status}{f': {why}' if why else ''}"[:500]))
