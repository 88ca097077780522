"""Invocations of a function of the stage by another one."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Unavailable
from scheduler.storage.aws import errors

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


def invoke(client: "LambdaClient", function: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of a function. Raises Unavailable if it was not called, or failed."""
    with errors.translated():
        answer = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
        payload = answer["Payload"].read()
    if "FunctionError" in answer:
        raise Unavailable()
    found: dict[str, Any] = json.loads(payload)
    return found
