"""The numbers a deployment may set, as the services see them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.model.job import Lane
from scheduler.model.lifecycle import Retention


@dataclass(frozen=True, slots=True)
class Rules:
    """One record for all services; each reads what concerns it."""

    shards: int = 16  # slots per minute
    units: int = 1  # dispatchers per minute
    hold_ms: int = 5_000  # how long before its instant an executor may claim a job and wait with it
    lead_ms: int = 500  # how far ahead a job leaves while no latency was measured yet
    overdue_units: int = 4  # dispatchers at work on past minutes at once: a backlog is worked off in order, at a bounded rate
    max_backlog: int = 1_000  # waiting messages from which on a lane is behind
    windows: Mapping[Lane, int] = field(  # what a lane holds when all its executors are busy; a lane without one is never held back
        default_factory=lambda: {Lane.ONE_TIME: 1_000, Lane.RECURRING: 1_000}
    )
    direct_burst: int = 200  # jobs of a user that one process hands over directly at once ...
    direct_rate: int = 100  # ... and a second after that; what is beyond goes to the intake
    retention: Retention = field(default_factory=Retention)
