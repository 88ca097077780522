"""The receipts of requests with an idempotency key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from scheduler.model.job import Receipt

RECEIPT_RETENTION_MS = 86_400_000


class Receipts(Protocol):
    """Receipts of requests with an idempotency key. A receipt is valid for `RECEIPT_RETENTION_MS` after its instant."""

    def keep(self, receipts: Sequence[Receipt], now: int) -> list[Receipt | None]:
        """Store each receipt unless a valid one of its owner and key exists; return the valid one for each, in order: itself or the earlier
        one.

        No two of the receipts have the same owner and key. None: refused; the receipt is probably not stored.
        """

    def find(self, owner: str, key: str, now: int) -> Receipt | None:
        """Return the receipt of this owner and key that is valid at `now`, None if there is none (strongly consistent)."""
