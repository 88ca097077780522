"""The outputs of attempts, and the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from scheduler.model.job import JobKey

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.attempt_output import FullOutput


class Outputs(Protocol):
    """The full output and log of attempts, where the job's item cannot hold them; and the archive of jobs that have left their table."""

    def put(self, key: JobKey, fence: int, whole: FullOutput) -> None:
        """Store the full output and log of the attempt that ran under `fence`. Idempotent."""

    def get(self, key: JobKey, fence: int) -> FullOutput | None:
        """Return the stored texts of that attempt; None if there are none, or if they have expired."""

    def archive(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Append these records of jobs that have left their table to the archive. Not idempotent: a repeated record is archived twice.

        Raises Unavailable: some records may be archived; the caller repeats all of them.
        """
