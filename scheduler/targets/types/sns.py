"""`sns`: publishes a message to a topic."""

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
from scheduler.targets.job_context import as_header, as_url_part
from scheduler.targets.target_type import Permission, Resource, TargetType

RESOURCE = Resource(
    "topic",
    service="sns",
    form=r"[A-Za-z0-9_-]{1,256}(\.fifo)?",
    noun="the ARN of an SNS topic",
    permissions=(Permission("sns:Publish"),),
)

AttributeName = Annotated[str, MinLen(1), MaxLen(256), Predicate(aws_call.is_attribute)]
AttributeValue = Annotated[str, MinLen(1), MaxLen(8_192)]


def _is_subject(text: str) -> bool:
    if not (text.isascii() and text.isprintable() and text[:1].strip()):
        raise ValueError("must be printable ASCII on one line, and not begin with a blank")
    return True


@dataclass(frozen=True, slots=True)
class Payload:
    """A message to a topic."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    topic: Annotated[str, MaxLen(400), Predicate(RESOURCE.is_arn)]
    """Its ARN."""
    message: Any
    """A string is sent as it is, anything else as JSON."""
    subject: Annotated[str, MinLen(1), MaxLen(100), Predicate(_is_subject)] | None = None
    """For subscribers by e-mail."""
    attributes: Annotated[dict[AttributeName, AttributeValue], MaxLen(8)] = field(default_factory=dict)
    """Message attributes, at most 8: subscriptions filter by them. At most 7 leave room for Punctual-Context."""
    group: Annotated[str, MinLen(1), MaxLen(128)] | None = None
    """The message group; a FIFO topic needs one."""

    def __post_init__(self) -> None:
        if self.message == "":
            raise ValueError("message must not be empty: SNS accepts no empty message")
        if self.topic.endswith(".fifo") and self.group is None:
            raise ValueError("group is required: this is a FIFO topic")


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Publish one message. The output is its id."""
    request = Payload(**payload)
    body = request.message if isinstance(request.message, str) else json.dumps(request.message, ensure_ascii=False)
    envelope = aws_call.envelope(body, request.attributes, request.group, context, is_fifo=request.topic.endswith(".fifo"))
    subject = {"Subject": request.subject} if request.subject is not None else {}
    message = {"TopicArn": request.topic, "Message": body, **envelope, **subject}

    def call(calls: Calls) -> Result:
        answer = calls.send(Request("sns", "publish", message, arns.region(request.topic)), left=context.left)
        return Result(output=str(answer["MessageId"]))

    return aws_call.attempt("sns", payload, context, call)


TYPE = TargetType(
    payload=Payload,
    run=run,
    content=("message", "subject", "attributes", "group"),
    resource=RESOURCE,
    calls_back=True,
    callback_attributes=6,
    encodings={"subject": as_header, "attributes": as_line, "group": as_url_part},
)
