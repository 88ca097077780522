"""The collector of spans in memory."""

from collections.abc import Mapping, Sequence
from typing import Any


class MemoryTraces:
    """The port `Traces`. While it is `away`, it takes no span."""

    def __init__(self) -> None:
        self.spans: list[Mapping[str, Any]] = []
        self.away = False

    def export(self, spans: Sequence[Mapping[str, Any]], now: int) -> int:
        if self.away:
            return 0
        self.spans += spans
        return len(spans)
