"""The lag of the scheduler, and of plan."""

from dataclasses import dataclass, replace

from scheduler.admission.lane_state import paused_lanes
from scheduler.model import slots
from scheduler.model.job import Lane
from scheduler.storage.ports import Ledger


@dataclass(frozen=True, slots=True)
class Lag:
    """The oldest minute that is not closed, opened or not, and for how long it has been over (ms; 0 while it is not).

    The minute of the oldest job in the overflow is included.

    Minutes that wait only for paused lanes are left out: `resting` is the number of their units, `paused` lists the lanes.
    """

    minute: str | None
    ms: int
    paused: tuple[Lane, ...] = ()
    resting: int = 0


FIRST_MINUTES = 15  # a new ledger starts this far back; the sweep finds older jobs
SHORT_MS = 60_000  # a lag below this is an ordinary one: the minute before is closed while the next one runs
PLAN_SETTLED_MS = 180_000  # plan is done with an empty minute that ended this long ago: apart from rare lags, the index is complete
NEVER_MS = 3_600_000  # the lag of a plan that never ran


def plan_lag(ledger: Ledger, now: int) -> int:
    """Return for how long (ms) plan has been late with its oldest minute; 0 while it runs every minute and keeps up.

    It is derived from the ledger, so that a plan that does not run is noticed as well.
    """
    cursor = ledger.plan_cursor()
    if cursor is None:
        return NEVER_MS
    return max(0, now - slots.start_of(cursor) - slots.MINUTE - PLAN_SETTLED_MS - slots.MINUTE)


def lag(ledger: Ledger, now: int) -> Lag:
    """Return the scheduler's lag. Without a tick the ledger's cursor does not move, so its age is included."""
    cursor, units, states = ledger.cursor(), ledger.open_units(), ledger.watched().lanes
    awake = [unit.key.minute for unit in units if not unit.resting]
    waiting = [slots.minute_of(unit.progress) for unit in ledger.overflow_units() if unit.progress]
    minutes = awake[:1] + ([cursor.minute] if cursor else []) + waiting
    paused = tuple(lane for lane in Lane if lane in paused_lanes(states))
    if not minutes:
        return Lag(None, 0, paused, len(units))
    oldest = min(minutes)
    return Lag(oldest, max(0, now - slots.start_of(oldest) - slots.MINUTE), paused, len(units) - len(awake))


def known_lag(ledger: Ledger, now: int) -> Lag:
    """Return the lag for people: none while a new stage closes the past minutes that its first tick opened, in which it had no job."""
    found = lag(ledger, now)
    return found if found.ms < SHORT_MS or ledger.mark() > FIRST_MINUTES else replace(found, minute=None, ms=0)
