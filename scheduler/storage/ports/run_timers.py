"""The timers of watched runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduler.model.run_timer import RunTimer

PARTS = 2  # partitions of the timers


class RunTimers(Protocol):
    """The timers of runs whose tasks have alerts: at most one per run. Each write of a timer is one write unit."""

    def arm(self, timers: Sequence[RunTimer]) -> None:
        """Store the timers, each in place of an earlier one of its run. Raises Unavailable if any was refused: the caller repeats all."""

    def move(self, before: RunTimer, after: RunTimer) -> bool:
        """Set a timer to its next deadline; it keeps its place. False: it was armed again since it was read, or is gone."""

    def drop(self, timer: RunTimer) -> bool:
        """Delete a timer. False: it was armed again since it was read. Deleting a timer that is gone succeeds."""

    def timers(self, part: int, after: tuple[int, str], until: int, limit: int) -> list[RunTimer]:
        """Return up to `limit` timers of a partition, by the first deadline and the run. Eventually consistent.

        They come after this `RunTimer.position`, and their first deadline is until the instant `until` (inclusive).
        """
