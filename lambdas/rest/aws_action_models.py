"""Shapes of the operations of AWS that jobs of the type `aws` may call, as a form or a command shows them."""

from typing import Any

from lambdas.rest.parameters import Part
from lambdas.rest.shapes import Json, ListShape, Shape
from scheduler.targets import parameter_schema
from scheduler.targets.service_models import Operation


class AwsActionShape(Shape):
    """An operation of an AWS API that jobs may call."""

    name: str
    """The service and the operation, as the option `allowed_actions` has them: s3:CopyObject."""
    service: str
    """The service by the name of boto3's client, for `service` of the payload."""
    action: str
    """The operation by its name in the API, for `action` of the payload."""
    summary: str
    """A sentence about it, from boto3's model. Empty: the model has none."""
    documentation: str
    """The address of its page in AWS's reference."""
    reads_only: bool
    """Whether it changes nothing, by its name."""
    idempotent: bool
    """Whether Punctual repeats a call whose answer was lost, also if the payload has no `idempotent`."""

    @classmethod
    def of(cls, operation: Operation, **others: Any) -> Json:
        return cls.from_record(
            operation,
            name=f"{operation.service}:{operation.name}",
            action=operation.name,
            reads_only=operation.is_read_only,
            idempotent=operation.is_idempotent,
            **others,
        )


class AwsActionsShape(ListShape):
    items: list[AwsActionShape]
    """The operations by name."""

    @classmethod
    def of(cls, found: Part[Operation]) -> Json:
        return cls.page([AwsActionShape.of(each) for each in found.entries], found.cursor)


class DescribedAwsActionShape(AwsActionShape):
    """An operation of an AWS API with its parameters."""

    parameters_schema: dict[str, Any]
    """The JSON Schema of `parameters` of the payload. Texts may have placeholders instead of what it allows."""

    @classmethod
    def of(cls, operation: Operation, **others: Any) -> Json:
        """Raises NotAllowed if the operation requires a stream."""
        return super().of(operation, parameters_schema=parameter_schema.of(operation), **others)
