"""Monitors, their histories and their timers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scheduler.model.monitor import Monitor, MonitorEvent, MonitorTimer, PingIntake

PARTS = 2  # partitions of the timers


class Monitors(Protocol):
    """Monitors: their settings, their pulses (`scheduler.model.monitor`), histories and timers.

    All reads are strongly consistent. Each write is idempotent, unless its method says otherwise.
    """

    def get(self, owner: str, key: str) -> Monitor | None:
        """Return the monitor, None if there is none."""

    def of_tokens(self, hashes: Sequence[str]) -> Mapping[str, Monitor]:
        """Return the monitors whose tokens have these hashes, by the hash."""

    def listing(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Monitor], str | None]:
        """Return a page of an owner's monitors by their keys, beyond the key `after`, and the last key of the page if there are more."""

    def put(self, before: Monitor | None, after: Monitor) -> bool:
        """Store a monitor, or replace one that has not changed since it was read. Not idempotent.

        False: it has changed, is gone, or exists already. The version stored with its pulse is one more than that of `before`.
        """

    def delete(self, monitor: Monitor) -> None:
        """Delete the monitor. Its history expires."""

    def write_pulse(self, before: Monitor, after: Monitor) -> bool:
        """Replace the pulse, which is one write. False: it has changed since it was read, or is gone. Not idempotent.

        The version stored is one more than that of `before`.
        """

    def note(self, monitor: Monitor, events: Sequence[MonitorEvent]) -> None:
        """Add entries to the history."""

    def history(self, monitor: Monitor, limit: int) -> list[MonitorEvent]:
        """Return the last entries of the history, newest first."""

    def arm(self, timer: MonitorTimer) -> None:
        """Store a timer. There is one per monitor and instant."""

    def drop(self, timer: MonitorTimer) -> None:
        """Delete a timer."""

    def timers(self, part: int, after: tuple[int, str], until: int, limit: int) -> list[MonitorTimer]:
        """Return up to `limit` timers of a partition, by instant and hash of the token.

        They come after this instant and hash, and are due until the instant `until` (inclusive). Reading from a timer on finds those of
        the same instant, too, whether that timer is dropped or not.
        """

    def intake(self) -> PingIntake | None:
        """Return what is known of the intake of pings, None if it was never checked."""

    def set_intake(self, intake: PingIntake) -> None:
        """Store what is known of the intake."""
