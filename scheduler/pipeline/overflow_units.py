"""The units of the overflow and of the waiting rooms: which slots they have, and how a process marks one as wanted."""

from dataclasses import replace

from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Unit, UnitKey
from scheduler.storage.ports import Ports

WIDTH = 8  # shards of one unit
WANT_TRIES = 5


def unit_of(slot: str, shards: int) -> Unit:
    """The unit to which a slot of the overflow or of a waiting room belongs, not leased yet; `shards` is the number of shards."""
    part = int(slot.rpartition("#")[2]) // WIDTH
    return Unit(UnitKey(slots.minute(slot), part), part * WIDTH, min((part + 1) * WIDTH, max(shards, part * WIDTH + 1)) - 1)


def units_of(name: str, shards: int) -> list[Unit]:
    """All units of the overflow, or of the waiting room of this name."""
    return [unit_of(f"{name}#{shard:02d}", shards) for shard in range(0, shards, WIDTH)]


def open_unit(unit: Unit, ports: Ports, now: int) -> None:
    """Create a unit of the overflow that is wanted. Idempotent. Raises Unavailable."""
    ports.ledger.open_unit(replace(unit, opened_at=now, next_at=now))


def want(unit: Unit, ports: Ports, now: int) -> bool:
    """Mark a unit of the overflow as wanted, unless a dispatcher stays there; return whether one does.

    A process does this before it puts jobs there: else no tick would send its work. A dispatcher that only looks may leave before the jobs
    are there, so it loses its lease. Raises Unavailable.
    """
    for _ in range(WANT_TRIES):
        found = ports.ledger.unit(unit.key)
        if found is None:
            open_unit(unit, ports, now)
            return False
        if found.handed_out_at is None and found.lease_until > now:
            return True
        if found.handed_out_at is None and found.next_at <= now:
            return False  # another process has marked it
        # With a new epoch: a worker that has read the unit before does not lease it as one that nobody wants.
        after = replace(found, epoch=found.epoch + 1, lease_until=0, next_at=now, handed_out_at=None)
        if ports.ledger.change_unit(found, after):
            return False
    raise Unavailable(f"the unit {unit.key} changes all the time")
