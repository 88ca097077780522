"""The counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.counters import Counted, CounterEntry


class Counters(Protocol):
    """Sums written from streams; each change is counted once. `scheduler.insight.counting` defines the rows."""

    def add(self, shard: str, entries: Sequence[CounterEntry]) -> None:
        """Add each entry that was not added before.

        The entries of one shard arrive in the order of their sequences; the stream may deliver again from any of them on.
        Raises Unavailable: some entries may be added; the caller repeats all of them.
        """

    def read(self, partition: str, low: str, high: str) -> list[Counted]:
        """Return the rows of a partition with `low <= name < high`, by name. Eventually consistent."""

    def forget(self, partition: str, rows: Sequence[Counted]) -> None:
        """Delete these rows. Only for rows that no stream changes now. Idempotent."""
