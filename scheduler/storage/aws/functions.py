"""The scheduler's own functions: asynchronous Lambda invocations, and the pollers of the lanes' event source mappings (provisioned mode).

The event of a dispatcher is its unit: `{"minute": "2026-11-20T10:01", "part": 0}`. The event of a redrive is empty.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scheduler.insight import scaling
from scheduler.model.errors import Invalid
from scheduler.model.job import Lane, UnitKey
from scheduler.storage.aws import errors

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class LambdaFunctions:
    """The port `Functions`. A lane without a mapping here keeps no pollers ready; `most_pollers` limits each of the others."""

    def __init__(
        self,
        client: "LambdaClient",
        *,
        dispatch: str = "",
        redrive: str = "",
        mappings: Mapping[Lane, str] | None = None,
        most_pollers: int = 0,
    ) -> None:
        self._client = client
        self._dispatch, self._redrive = dispatch, redrive
        self._mappings, self._most = mappings or {}, most_pollers

    def start_dispatch(self, unit: UnitKey) -> None:
        self._start(self._dispatch, json.dumps(unit._asdict()))

    def start_redrive(self) -> None:
        self._start(self._redrive, "{}")

    def pollers(self, lane: Lane) -> int:
        if lane not in self._mappings:
            return scaling.LEAST
        with errors.translated():
            found: Any = self._client.get_event_source_mapping(UUID=self._mappings[lane])
        return int(found.get("ProvisionedPollerConfig", {}).get("MinimumPollers", scaling.LEAST))

    def keep_pollers(self, lane: Lane, count: int) -> None:
        if lane in self._mappings:
            config: Any = {"MinimumPollers": count, "MaximumPollers": max(count, self._most)}
            with errors.translated():
                self._client.update_event_source_mapping(UUID=self._mappings[lane], ProvisionedPollerConfig=config)

    def _start(self, function: str, event: str) -> None:
        with errors.translated():
            self._client.invoke(FunctionName=function, InvocationType="Event", Payload=event)


def unit(event: Mapping[str, Any]) -> UnitKey:
    """The unit that an event of `start_dispatch` names. Raises Invalid for any other event."""
    try:
        minute, part = event["minute"], event["part"]
    except (LookupError, TypeError):
        raise Invalid("not a unit of dispatch: minute and part are missing") from None
    if not isinstance(minute, str) or type(part) is not int:
        raise Invalid("not a unit of dispatch: minute is a text and part a whole number")
    return UnitKey(minute, part)
