"""`lambda`: calls a Lambda function and waits for its answer, or only queues the event."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import MaxLen, Predicate

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import aws_call
from scheduler.targets.base import Context
from scheduler.targets.calls import Calls
from scheduler.targets.target_type import Permission, Resource, TargetType

RESOURCE = Resource(
    "function",
    service="lambda",
    form=r"function:[A-Za-z0-9_-]{1,64}(:[A-Za-z0-9_$-]{1,128})?",
    noun="the ARN of a Lambda function",
    permissions=(Permission("lambda:InvokeFunction"),),
)


@dataclass(frozen=True, slots=True)
class Payload:
    """A call of a function."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    function: Annotated[str, MaxLen(300), Predicate(RESOURCE.is_arn)]
    """Its ARN, with or without a version or alias."""
    event: Annotated[dict[str, Any], Predicate(aws_call.is_open)] = field(default_factory=dict)
    """The event for the function, a JSON object; the scheduler adds its field `punctual` with the job's ids and context."""
    mode: Literal["sync", "async"] = "sync"
    """sync waits for the answer, within the job's time-out; async only queues the event."""


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Call the function once. The output is its answer; an error of the function is retryable."""
    request = Payload(**payload)
    event = aws_call.with_ids(request.event, context)

    def call(calls: Calls) -> Result:
        return _judged(aws_call.invoke(calls, request.function, event, wait=request.mode == "sync", left=context.left))

    return aws_call.attempt("lambda", payload, context, call)


def _judged(answer: aws_call.Invoked) -> Result:
    output = answer.payload or None
    failure = Failure(FailureKind.RETRYABLE, f"the function failed: {answer.payload}"[:500]) if answer.error else None
    return Result(output=output, failure=failure, log=answer.log)


TYPE = TargetType(payload=Payload, run=run, content=("event",), resource=RESOURCE, calls_back=True)
