"""`sqs`: sends a message to a queue."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, MinLen, Predicate

from scheduler.model.job import Result
from scheduler.model.texts import as_line
from scheduler.targets import arns, aws_call
from scheduler.targets.base import Context
from scheduler.targets.calls import Calls, Request
from scheduler.targets.job_context import as_url_part
from scheduler.targets.target_type import Permission, Resource, TargetType

RESOURCE = Resource(
    "queue",
    service="sqs",
    form=r"[A-Za-z0-9_-]{1,80}(\.fifo)?",
    noun="the ARN of an SQS queue, or its URL at amazonaws.com",
    permissions=(Permission("sqs:SendMessage"),),
)

AttributeName = Annotated[str, MinLen(1), MaxLen(256), Predicate(aws_call.is_attribute)]
AttributeValue = Annotated[str, MinLen(1), MaxLen(8_192)]


@dataclass(frozen=True, slots=True)
class Payload:
    """A message to a queue."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    queue: Annotated[str, MaxLen(300), Predicate(RESOURCE.is_arn)]
    """Its ARN, or its URL."""
    body: Any
    """A string is sent as it is, anything else as JSON."""
    attributes: Annotated[dict[AttributeName, AttributeValue], MaxLen(8)] = field(default_factory=dict)
    """Message attributes, at most 8: SQS accepts 10, and the scheduler adds two. At most 7 leave room for Punctual-Context."""
    group: Annotated[str, MinLen(1), MaxLen(128)] | None = None
    """The message group; a FIFO queue needs one."""

    def __post_init__(self) -> None:
        if self.body == "":
            raise ValueError("body must not be empty: SQS accepts no empty message")
        if self.queue.endswith(".fifo") and self.group is None:
            raise ValueError("group is required: this is a FIFO queue")


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Send one message. The output is its id."""
    request = Payload(**payload)
    arn = arns.queue(request.queue)
    body = request.body if isinstance(request.body, str) else json.dumps(request.body, ensure_ascii=False)
    envelope = aws_call.envelope(body, request.attributes, request.group, context, is_fifo=arn.endswith(".fifo"))
    message = {"QueueUrl": arns.queue_url(arn), "MessageBody": body, **envelope}

    def call(calls: Calls) -> Result:
        answer = calls.send(Request("sqs", "send_message", message, arns.region(arn)), left=context.left)
        return Result(output=str(answer["MessageId"]))

    return aws_call.attempt("sqs", payload, context, call)


TYPE = TargetType(
    payload=Payload,
    run=run,
    content=("body", "attributes", "group"),
    resource=RESOURCE,
    calls_back=True,
    callback_attributes=6,
    encodings={"attributes": as_line, "group": as_url_part},
)
