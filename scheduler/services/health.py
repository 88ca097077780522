"""How far behind the scheduler is."""

from dataclasses import dataclass

from scheduler import slots
from scheduler.ports import Ledger


@dataclass(frozen=True, slots=True)
class Lag:
    """The oldest minute that is not closed, opened or not, and for how long it has been over (ms; 0 while it is not)."""

    minute: str | None
    ms: int


def lag(ledger: Ledger, now: int) -> Lag:
    """The scheduler's lag. Without a tick the ledger's cursor stands still, so its age counts as well."""
    cursor, units = ledger.cursor(), ledger.open_units()
    minutes = [unit.key.minute for unit in units[:1]] + ([cursor.minute] if cursor else [])
    if not minutes:
        return Lag(None, 0)
    oldest = min(minutes)
    return Lag(oldest, max(0, now - slots.start_of(oldest) - slots.MINUTE))
