"""`sns`: publishes a message to a topic."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, MinLen, Predicate

from scheduler.model.job import Result
from scheduler.targets import aws_call
from scheduler.targets.base import Context
from scheduler.targets.calls import Calls, Message

RESOURCE = "topic"
CALLS_BACK = 6
_is_topic = aws_call.is_arn("sns", r"[A-Za-z0-9_-]{1,256}(\.fifo)?", "the ARN of an SNS topic")

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

    topic: Annotated[str, MaxLen(400), Predicate(_is_topic)]
    """Its ARN."""
    message: Any
    """A string is sent as it is, anything else as JSON."""
    subject: Annotated[str, MinLen(1), MaxLen(100), Predicate(_is_subject)] | None = None
    """For subscribers by e-mail."""
    attributes: Annotated[dict[AttributeName, AttributeValue], MaxLen(8)] = field(default_factory=dict)
    """Message attributes, at most 8: subscriptions filter by them, and two are the scheduler's."""
    group: Annotated[str, MinLen(1), MaxLen(128)] | None = None
    """The message group; a FIFO topic needs one."""

    def __post_init__(self) -> None:
        if self.message == "":
            raise ValueError("message must not be empty: SNS takes no empty message")
        if self.topic.endswith(".fifo") and self.group is None:
            raise ValueError("group is required: this is a FIFO topic")


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """One message. The output is its id."""
    wanted = Payload(**payload)
    message = Message(
        body=wanted.message if isinstance(wanted.message, str) else json.dumps(wanted.message, ensure_ascii=False),
        attributes=wanted.attributes | aws_call.ids(context),
        subject=wanted.subject,
        group=wanted.group,
        unique=context.unique if wanted.topic.endswith(".fifo") else None,
    )

    def call(calls: Calls) -> Result:
        return Result(output=calls.publish(wanted.topic, message, left=context.left))

    return aws_call.attempt("sns", payload, context, call)
