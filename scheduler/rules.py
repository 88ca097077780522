"""The numbers a deployment may set, as the services see them."""

from dataclasses import dataclass, field

from scheduler.lifecycle import Retention


@dataclass(frozen=True, slots=True)
class Rules:
    """One record for all services; each reads what concerns it."""

    shards: int = 16  # slots per minute
    units: int = 1  # dispatchers per minute
    hold_ms: int = 5_000  # how long before its instant an executor may claim a job and wait with it
    lead_ms: int = 500  # how far ahead a job leaves while no latency was measured yet
    overdue_units: int = 4  # dispatchers at work on past minutes at once: a backlog is worked off in order, at a bounded rate
    max_backlog: int = 1_000  # waiting messages from which on a lane is behind
    retention: Retention = field(default_factory=Retention)
