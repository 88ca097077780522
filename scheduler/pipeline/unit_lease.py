"""The lease of a unit: while a worker carries out a step, no other one does, and the message that drives the unit stays hidden."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from scheduler.model.job import Unit
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

    def beat(self) -> None:
        """Renew the lease when it is time. Raises LeaseLost once another worker has the unit."""
        if self.is_due() and not self.renew():
            raise LeaseLost

    def leave(self, next_at: int, **fields: Any) -> bool:
        """Release the lease and write these fields: another worker continues at `next_at`. False once another worker has the unit."""
        return self.change(lease_until=0, next_at=next_at, **fields)

    def change(self, **fields: Any) -> bool:
        """Write these fields of the unit. False if another worker has it."""
        after = replace(self.unit, **fields)
        held = self.ports.ledger.change_unit(self.unit, after)
        if held:
            self.unit = after
        return held
