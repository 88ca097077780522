"""The pollers of the lanes' event source mappings (provisioned mode)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scheduler.model.job import Lane
from scheduler.storage.aws import errors

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient


class LambdaFunctions:
    """The port `Functions`. A lane without a mapping here never keeps pollers ready.

    While a mapping keeps pollers ready, `most_pollers` limits its executors, otherwise `concurrency`: AWS refuses to have both. Each call
    sets one and removes the other, which an empty structure does.
    """

    def __init__(
        self,
        client: "LambdaClient",
        *,
        mappings: Mapping[Lane, str],
        most_pollers: Mapping[Lane, int],
        concurrency: Mapping[Lane, int],
    ) -> None:
        self._client = client
        self._mappings, self._most, self._concurrency = mappings, most_pollers, concurrency

    def pollers(self, lane: Lane) -> int:
        if lane not in self._mappings:
            return 0
        with errors.translated():
            found: Any = self._client.get_event_source_mapping(UUID=self._mappings[lane])
        return int(found.get("ProvisionedPollerConfig", {}).get("MinimumPollers", 0))

    def keep_pollers(self, lane: Lane, count: int) -> None:
        if lane not in self._mappings:
            return
        provisioned: Any = {"MinimumPollers": count, "MaximumPollers": self._most[lane]} if count else {}
        alone: Any = {} if count else {"MaximumConcurrency": self._concurrency[lane]}
        with errors.translated():
            self._client.update_event_source_mapping(UUID=self._mappings[lane], ProvisionedPollerConfig=provisioned, ScalingConfig=alone)
