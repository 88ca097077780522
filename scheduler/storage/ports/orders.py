"""The ordering queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from scheduler.model.job import OrderingQueue, OrderKey, QueueEntry, QueueHead
from scheduler.storage.ports.results import Written


class OrderingQueues(Protocol):
    """The ordering queues, one for each ordering key: an entry for each open job, and the head.

    `scheduler.admission.ordering` defines them.
    """

    def enqueue(self, entries: Sequence[QueueEntry]) -> list[Written]:
        """Insert each of these different entries. NO: the entry exists, and is unchanged. REFUSED: it may or may not be stored."""

    def lines(self, orders: Sequence[OrderKey], *, limit: int) -> dict[OrderKey, OrderingQueue]:
        """Return the beginning of each ordering queue: its head and at most `limit` entries, sorted by position (strongly consistent).

        Every queue of `orders` is in the mapping, an empty one as an empty `OrderingQueue`.
        """

    def set_heads(self, changes: Sequence[tuple[QueueHead | None, QueueHead]]) -> list[Written]:
        """Replace the heads of different queues, each if the stored head has the version of the pair's first element (None: no head is
        stored).

        NO: it has another version. YES also if an earlier try, whose answer was lost, applied it.
        """

    def leave(self, entries: Sequence[QueueEntry]) -> None:
        """Delete these entries. Idempotent. Raises Unavailable if the deletion of any was refused."""
