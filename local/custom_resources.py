"""Custom resources of CloudFormation in the local AWS: their function sees the ARN that the template names, as on AWS.

MiniStack hands the function the ARN of the version behind an alias.
https://docs.aws.amazon.com/lambda/latest/dg/python-context.html
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ministack.services import lambda_svc
from ministack.services.cloudformation import custom_resource

Record = dict[str, Any]

_called: ContextVar[str] = ContextVar("called", default="")  # the ARN of the custom resource that is being carried out


def noting(invoke: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the call of a custom resource's function: note the ARN."""

    def wrapped(request: str, resource: str, properties: Record, *rest: Any, **named: Any) -> Any:
        token = _called.set(str(properties.get("ServiceToken", "")))
        try:
            return invoke(request, resource, properties, *rest, **named)
        finally:
            _called.reset(token)

    return wrapped


def by_alias(record_of: Callable[[Record, Record], Record]) -> Callable[[Record, Record], Record]:
    """Wrap the choice of what runs: its ARN is the noted one."""

    def wrapped(function: Record, config: Record) -> Record:
        called = _called.get()
        return record_of(function, {**config, "FunctionArn": called} if called.startswith("arn:") else config)

    return wrapped


def install() -> None:
    """Change MiniStack."""
    custom_resource.invoke_custom_resource = noting(custom_resource.invoke_custom_resource)
    lambda_svc._execution_record_for_config = by_alias(lambda_svc._execution_record_for_config)
