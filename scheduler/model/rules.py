"""The settings of a deployment that the services read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.model.job import Lane
from scheduler.model.lifecycle import Retention


@dataclass(frozen=True, slots=True)
class Rules:
    """One record for all services; each reads the fields that concern it."""

    shards: int = 16  # slots per minute
    units: int = 1  # dispatchers per minute
    hold_ms: int = 5_000  # how long before its instant an executor may claim a job and let it wait
    lead_ms: int = 500  # how long before its instant a job is published while no latency was measured yet
    overdue_units: int = 4  # dispatchers that work on past minutes at once: a backlog is processed in order, at a bounded rate
    max_backlog: int = 1_000  # a lane with more waiting messages than this is behind
    windows: Mapping[Lane, int] = field(  # jobs in a lane when all its executors are busy; a lane not listed is unbounded
        default_factory=lambda: {Lane.ONE_TIME: 1_000, Lane.RECURRING: 1_000}
    )
    direct_burst: int = 200  # jobs of a user that one process enqueues directly at once ...
    direct_rate: int = 100  # ... and per second after that; the jobs beyond go to the overflow slots
    retention: Retention = field(default_factory=Retention)
