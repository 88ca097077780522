"""Users: who they are, what they may use, and the ports through which the services see both."""

from dataclasses import dataclass, field

from scheduler.accounts.access import Role


@dataclass(frozen=True, slots=True)
class Quotas:
    """How much one user may use. None: as much as the deployment's settings say."""

    max_jobs: int | None = None  # jobs that wait for their time
    creates_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Stock:
    """How many jobs of a user waited for their time when they were last counted."""

    count: int = 0
    total: int = 0  # the `total` of the user's tally then: what it has grown by since may have come on top
    at: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """What the scheduler itself keeps of a user beside the weight."""

    id: str
    quotas: Quotas = field(default_factory=Quotas)
    disabled_at: int | None = None
    stock: Stock = field(default_factory=Stock)


@dataclass(frozen=True, slots=True)
class Account:
    """A person who may sign in."""

    id: str
    username: str
    role: Role = Role.USER
    enabled: bool = True
    job_weight: float = 1.0
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """A count that several processes share."""

    count: int  # since `since`
    since: int
    total: int  # since ever

    def level(self, now: int, per_second: float) -> float:
        """How full a bucket is into which this was poured, and which leaks so much a second."""
        return self.count - per_second * max(now - self.since, 0) / 1000
