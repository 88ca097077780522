"""The pollers of the lanes' event source mappings (provisioned mode)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scheduler.insight import scaling
from scheduler.model.job import Lane
from scheduler.storage.aws import errors

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class LambdaFunctions:
    """The port `Functions`. A lane without a mapping here keeps no pollers ready; `most_pollers` limits each of the others."""

    def __init__(
        self,
        client: "LambdaClient",
        *,
        mappings: Mapping[Lane, str] | None = None,
        most_pollers: int = 0,
    ) -> None:
        self._client = client
        self._mappings, self._most = mappings or {}, most_pollers

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
