"""The lease of a unit: while a worker carries out a step, no other one does, and the message that drives the unit stays hidden."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane, LaneState, Unit
from scheduler.pipeline import leftover
from scheduler.storage.ports import Ports

LEASE_MS = 15_000
RENEW_MS = 5_000


class LeaseLost(Exception):
    """Another worker has the unit by now."""


@dataclass(slots=True)
class UnitLease:
    """A unit that is leased to this worker; `unit` is the unit as the worker last wrote it.

    `hide` renews the visibility of the unit's message.
    """

    unit: Unit
    ports: Ports
    hide: Callable[[], None] = lambda: None
    renew_at: int = field(init=False)

    def __post_init__(self) -> None:
        self.renew_at = self.ports.clock.now() + RENEW_MS

    def is_due(self) -> bool:
        """Return whether it is time to renew the lease."""
        return self.ports.clock.now() >= self.renew_at

    def renew(self, **fields: Any) -> bool:
        """Renew the lease, and write these fields of the unit with it. False once another worker has the unit."""
        now = self.ports.clock.now()
        self.renew_at = now + RENEW_MS
        self.hide()
        return self.change(lease_until=now + LEASE_MS, **fields)

    def renew_if_due(self) -> None:
        """Renew the lease when it is time. Raises LeaseLost once another worker has the unit."""
        if self.is_due() and not self.renew():
            raise LeaseLost

    def leave(self, next_at: int, **fields: Any) -> bool:
        """Release the lease and write these fields: another worker continues at `next_at`. False once another worker has the unit."""
        return self.change(lease_until=0, next_at=next_at, **fields)

    def rest(self, next_at: int, resting: int, **fields: Any) -> bool:
        """Release the lease like `leave`; `resting`: since when (ms) the unit waits for paused lanes only, or 0.

        A resume finds a leased unit taken, and sends no work. So the states are read again after the release: if a lane was resumed, the
        unit is due at once. If the ledger refuses the read, the next tick finds the unit.
        """
        now = self.ports.clock.now()
        if not self.leave(next_at, resting=resting, **fields):
            return False
        if resting and leftover.is_resumed(resting, self._lane_states(), now):
            self._write(woken(self.unit, now))
        return True

    def _lane_states(self) -> Mapping[Lane, LaneState]:
        try:
            return self.ports.ledger.watched().lanes
        except Unavailable:
            return {}

    def change(self, **fields: Any) -> bool:
        """Write these fields of the unit. False if another worker has it."""
        return self._write(replace(self.unit, **fields))

    def _write(self, after: Unit) -> bool:
        is_written = self.ports.ledger.change_unit(self.unit, after)
        if is_written:
            self.unit = after
        return is_written


def woken(unit: Unit, now: int) -> Unit:
    """The unit with its next step due now, for any message. Jobs of a resumed lane are published like those of any other past minute."""
    awake = replace(unit, next_at=now, resting=0, message_id="")
    return replace(awake, handed_out_at=None, progress=0) if unit.resting and unit.handed_out_at is not None else awake
