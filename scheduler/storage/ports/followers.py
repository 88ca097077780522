"""The records of which jobs wait for a predecessor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from scheduler.model.after import Follower, PredecessorKey
from scheduler.model.job import JobKey
from scheduler.storage.ports.results import Written


class Followers(Protocol):
    """The jobs that wait for each predecessor. `scheduler.pipeline.followers` uses them when the predecessor ends."""

    def add(self, followers: Sequence[Follower]) -> list[Written]:
        """Insert each of these different records. NO: it exists, and is unchanged. REFUSED: it may or may not be stored."""

    def of(self, predecessor: PredecessorKey, *, after: str | None, limit: int) -> tuple[list[JobKey], str | None]:
        """Return the keys of the jobs that wait for this predecessor, by id, and the cursor of the next page (strongly consistent)."""
