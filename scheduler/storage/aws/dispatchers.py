"""Dispatchers as asynchronous Lambda invocations. The event is the unit: `{"minute": "2026-11-20T10:01", "part": 0}`."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scheduler.model.errors import Invalid
from scheduler.model.job import UnitKey
from scheduler.storage.aws import errors

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class LambdaDispatchers:
    """The port `Dispatchers`."""

    def __init__(self, client: "LambdaClient", function: str) -> None:
        self._client = client
        self._function = function

    def start(self, unit: UnitKey) -> None:
        with errors.translated():
            self._client.invoke(FunctionName=self._function, InvocationType="Event", Payload=json.dumps(unit._asdict()))


def unit(event: Mapping[str, Any]) -> UnitKey:
    """The unit that an event of `start` names. Raises Invalid for any other event."""
    try:
        minute, part = event["minute"], event["part"]
    except (LookupError, TypeError):
        raise Invalid("not a unit of dispatch: minute and part are missing") from None
    if not isinstance(minute, str) or type(part) is not int:
        raise Invalid("not a unit of dispatch: minute is a text and part a whole number")
    return UnitKey(minute, part)
