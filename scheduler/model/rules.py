"""What a deployment may set, as the services see it. A default is written here and nowhere else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.model.job import Lane
from scheduler.model.lifecycle import Retention


@dataclass(frozen=True, slots=True)
class Rules:
    """One record for all services; each reads what concerns it. A stage says what differs (`infra/settings.py`)."""

    shards: int = 16  # slots per minute; may grow, never shrink (the ledger keeps the largest)
    units: int = 1  # dispatchers per minute
    hold_ms: int = 5_000  # how long before its instant an executor may claim a job and wait with it
    lead_ms: int = 500  # how far ahead a job leaves while no latency was measured yet
    overdue_units: int = 4  # dispatchers at work on past minutes at once: a backlog is worked off in order, at a bounded rate
    max_backlog: int = 1_000  # waiting messages from which on a lane is behind: rechecks do not add to it
    windows: Mapping[Lane, int] = field(  # what a lane holds when all its executors are busy; a lane without one is never held back
        default_factory=lambda: {Lane.ONE_TIME: 1_000, Lane.RECURRING: 1_000}
    )
    direct_burst: int = 200  # jobs of a user that one process hands over directly at once ...
    direct_rate: int = 100  # ... and a second after that; what is beyond goes to the intake
    retention: Retention = field(default_factory=Retention)
    executors: int = 100  # that there may be at once for first attempts
    most_pollers: int = 0  # of a lane, kept ready ahead of what is to come; 0: AWS scales by itself
    lag_canary: bool = False  # a job of the scheduler's own every minute, whose delay is measured; it keeps tick and dispatch at work
    max_jobs: int = 1_000_000  # of each user, that wait for their time, unless administrators say otherwise; 0: any number
    creates_per_second: int = 1_000  # jobs of each user; 0: any number
    raw_http: bool = True  # jobs may call any URL; False: named targets only
    allow_private_http: bool = False  # `http` jobs may call private and loopback addresses
    one_shard: bool = False  # events of streams name no shard, and streams have one
