"""The ledger of minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from scheduler.model.job import Cursor, Lane, LaneState, LaterCheck, Unit, UnitKey

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.backlog import Backlog
    from scheduler.model.breaker import Breaker, Circuit
    from scheduler.model.pin import Pin


class Ledger(Protocol):
    """The ledger of minutes: cursor, open units, later checks; lane states, breakers, and the figures that processes report about lanes."""

    def cursor(self) -> Cursor | None:
        """Return the cursor, None before the first tick (strongly consistent)."""

    def advance(self, before: Cursor | None, after: Cursor) -> bool:
        """Replace the cursor if the stored one still has the epoch of `before` (None: no cursor is stored). `after.epoch` is one more."""

    def open_unit(self, unit: Unit) -> bool:
        """Add an open unit. False if a unit of this key is open already."""

    def open_units(self) -> list[Unit]:
        """Return all open units of minutes, oldest minute first (strongly consistent). Those of `overflow_units` are left out."""

    def overflow_units(self) -> list[Unit]:
        """Return the units of the overflow and of the waiting rooms (strongly consistent). Only those of the rooms of users close."""

    def unit(self, key: UnitKey) -> Unit | None:
        """Return the open unit of this key, None if it is not open (strongly consistent)."""

    def change_unit(self, before: Unit, after: Unit) -> bool:
        """Replace an open unit if the stored one has the epoch of `before`. False if it does not, or is closed.

        If `after` has another epoch (a take-over), the stored lease must be that of `before` as well: no other call renewed it.
        """

    def close_unit(self, unit: Unit, at: int, check: LaterCheck) -> bool:
        """Close the unit if it is open and has this epoch, and store its first later check, in one transaction.

        False: nothing was changed.
        """

    def later_checks(self, by: int) -> list[LaterCheck]:
        """Return the later checks planned for the instant `by` or earlier, the earliest first (strongly consistent)."""

    def replace_check(self, check: LaterCheck, following: LaterCheck | None) -> None:
        """Store the `following` check, if any, then delete the one that is done.

        A late repeat may store the following check again, which then finds nothing.
        """

    def set_lane_state(self, state: LaneState) -> None:
        """Store the state of a lane, paused or resumed. Unconditional: the last writer wins."""

    def watched(self) -> Watched:
        """Return the stored lane states, breakers and pins in one read (strongly consistent)."""

    def pin(self, lane: Lane, owner: str, period: int, by: int) -> None:
        """Add `by` to the number of the lane's executors that the long jobs of this user keep busy in this period.

        A call that is repeated after a lost answer counts twice, until the period has passed. Raises Unavailable.
        """

    def set_breaker(self, before: Breaker | None, after: Breaker | None) -> bool:
        """Open, change or close (`after` None) a breaker if the stored one has the version of `before` (None: no breaker is stored).

        False: another process changed it.
        """

    def mark(self) -> int:
        """Return the number that the jobs table was last marked with, as far as the ledger knows; 0: never (strongly consistent)."""

    def set_mark(self, number: int) -> None:
        """Note the number that the jobs table was marked with, unless a higher one is noted. Idempotent."""

    def sweep_cursor(self) -> str | None:
        """Return where the sweep of the due index continues; None: at the beginning (strongly consistent)."""

    def set_sweep_cursor(self, cursor: str | None) -> None:
        """Store where the sweep continues. Unconditional: the last writer wins."""

    def require_shards(self, shards: int) -> int:
        """Raise the number of shards of all minutes that are not open yet to at least `shards`, and return it; 0: there is no cursor."""

    def plan_cursor(self) -> str | None:
        """Return the first minute of the replenish index that plan has not processed; None: plan never ran (strongly consistent)."""

    def set_plan_cursor(self, before: str | None, after: str) -> bool:
        """Replace plan's cursor if the stored one is `before`. False if it is not."""

    def report_latency(self, lane: Lane, reporter: str, p99_ms: int, at: int, *, deployment: str = "", delayed: bool = False) -> None:
        """Store an executor's recent p99 from publishing to claim, in milliseconds, over the earlier value of this lane and reporter.

        `deployment`: of the executor. `delayed`: from the end of the delay to the claim, of messages that SQS has delayed; stored apart.
        """

    def latency(self, lane: Lane, since: int, *, deployment: str = "", delayed: bool = False) -> int | None:
        """Return the largest p99 (ms) that executors of `deployment` reported for the lane at `since` or later; None if there is none.

        `delayed`: of its delayed messages.
        """

    def report_ready(self, lane: Lane, executors: int, at: int) -> None:
        """Store how many executors the lane's pollers can call at once since `at`. Raises Unavailable."""

    def ready(self, lane: Lane, since: int) -> int:
        """Return the executors reported ready for the lane at `since` or later; 0 if there is no such report. Raises Unavailable."""

    def report_backlog(self, backlog: Backlog) -> None:
        """Store the backlog of one dispatcher for one lane, over the earlier one of this unit and lane."""

    def drop_backlog(self, unit: UnitKey, lane: Lane) -> None:
        """Delete the backlog of this unit and lane. Idempotent."""

    def backlogs(self, lane: Lane, since: int) -> list[Backlog]:
        """Return the lane's backlogs reported at `since` or later, in no order (strongly consistent)."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The lane states, breakers and pins that long-running processes poll every second.

    Lanes never paused, closed breakers and users without long jobs are absent; pins of passed periods may still be there.
    """

    lanes: dict[Lane, LaneState]
    breakers: dict[Circuit, Breaker]
    pins: Sequence[Pin] = ()
