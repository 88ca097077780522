"""`eventbridge`: puts an event on a bus."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from annotated_types import MaxLen, MinLen, Predicate

from scheduler.model.job import Failure, FailureKind, Result
from scheduler.targets import arns, aws_call
from scheduler.targets.base import Context
from scheduler.targets.calls import Calls, Request
from scheduler.targets.target_type import Permission, Resource, TargetType

RESOURCE = Resource(
    "bus",
    service="events",
    form=r"event-bus/[A-Za-z0-9._/-]{1,256}",
    noun="the ARN of an EventBridge event bus",
    permissions=(Permission("events:PutEvents"),),
)


def _is_source(text: str) -> bool:
    if text.startswith("aws."):
        raise ValueError("must not begin with aws., which is reserved for AWS")
    if text == "punctual":
        raise ValueError("must not be punctual, which is the source of the events of this stage")
    return True


@dataclass(frozen=True, slots=True)
class Payload:
    """An event."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "use_attribute_docstrings": True}

    bus: Annotated[str, MaxLen(400), Predicate(RESOURCE.is_arn)]
    """The ARN of the bus."""
    source: Annotated[str, MinLen(1), MaxLen(256), Predicate(_is_source)]
    """The source of the event, such as com.example.orders; rules match it."""
    detail_type: Annotated[str, MinLen(1), MaxLen(128)]
    """The type of the event; rules match it."""
    detail: Annotated[dict[str, Any], Predicate(aws_call.is_open)] = field(default_factory=dict)
    """The event itself, a JSON object; the scheduler adds its field `punctual` with the job's ids and context."""


def run(payload: Mapping[str, Any], context: Context) -> Result:
    """Put one event. The output is its id. It succeeds if the bus accepts the event, whether a rule matches or not."""
    request = Payload(**payload)
    try:
        _is_source(request.source)  # it may have had placeholders
    except ValueError as error:
        return Result(failure=Failure(FailureKind.PERMANENT, f"source: {error}"))
    detail = aws_call.with_ids(request.detail, context)
    event = {"EventBusName": request.bus, "Source": request.source, "DetailType": request.detail_type, "Detail": detail}

    def call(calls: Calls) -> Result:
        answer = calls.send(Request("events", "put_events", {"Entries": [event]}, arns.region(request.bus)), left=context.left)
        return Result(output=str(answer["Entries"][0]["EventId"]))

    return aws_call.attempt("eventbridge", payload, context, call)


TYPE = TargetType(payload=Payload, run=run, content=("detail",), resource=RESOURCE, calls_back=True)
