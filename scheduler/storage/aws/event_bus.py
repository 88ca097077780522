"""The event bus of the stage on EventBridge."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

from scheduler.model.errors import Unavailable
from scheduler.model.event import Event
from scheduler.notify.announce import SOURCE
from scheduler.storage.aws import batches, errors

CONNECTIONS = 8


class EventBridgeBus:
    """The port `EventBus`. `bus`: its ARN."""

    def __init__(self, client: Any, bus: str) -> None:
        self._client = client
        self._bus = bus
        self._pool = ThreadPoolExecutor(CONNECTIONS, "events")

    def put(self, events: Sequence[Event]) -> list[bool]:
        return list(chain.from_iterable(self._pool.map(self._put, batches.chunks(events, batches.TEN))))

    def _put(self, ten: Sequence[Event]) -> list[bool]:
        try:
            with errors.translated():
                answer = self._client.put_events(Entries=[self._entry(event) for event in ten])
        except Unavailable:
            return [False] * len(ten)
        return ["EventId" in entry for entry in answer["Entries"]]  # in the order of the call; a refused entry has no id

    def _entry(self, event: Event) -> dict[str, Any]:
        return {
            "EventBusName": self._bus,
            "Source": SOURCE,
            "DetailType": event.detail_type,
            "Detail": json.dumps(event.detail, ensure_ascii=False),
            "Time": event.at / 1_000,
        }
