"""Users: their accounts, profiles and quotas, and the ports for both."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from scheduler.accounts.access import Role


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of one user. None: the limit of the deployment's settings."""

    max_jobs: int | None = None  # jobs that wait for their time
    creates_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Stock:
    """The number of jobs of a user that waited for their time when they were last counted."""

    count: int = 0
    total: int = 0  # the `total` of the user's tally at that time: jobs counted since may have been added
    at: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """The record that the scheduler itself stores for a user, beside the weight."""

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
    total: int  # since the tally was created

    def level(self, now: int, per_second: float) -> float:
        """The level of a leaky bucket that was filled with this count and leaks `per_second`."""
        return self.count - per_second * max(now - self.since, 0) / 1000


class Directory(Protocol):
    """The people who may sign in: Cognito's business."""

    def create(self, username: str, password: str, role: Role, weight: float) -> Account:
        """Raises Conflict for a name that is taken, Invalid for a password that the policy refuses."""

    def get(self, id: str) -> Account | None: ...

    def page(self, cursor: str | None, limit: int) -> tuple[list[Account], str | None]:
        """Some of all, in no order, and the next page's cursor. Raises Invalid for a cursor that is none."""

    def set_role(self, id: str, role: Role) -> None:
        """Counts from the next sign-in or refresh on."""

    def set_weight(self, id: str, weight: float) -> None:
        """What sign-in tells of it; what counts is `Users.set_weight`."""

    def set_enabled(self, id: str, enabled: bool) -> None:
        """A disabled account neither signs in nor refreshes."""

    def set_password(self, id: str, password: str) -> None:
        """For good, and signs out everywhere. Raises Invalid for one that the policy refuses."""


class Profiles(Protocol):
    """What the users table holds beside the weights."""

    def get_many(self, ids: Sequence[str]) -> dict[str, Profile]:
        """Of all that are asked for; who has nothing of his own has the defaults."""

    def set_quotas(self, id: str, quotas: Quotas) -> None: ...

    def set_disabled(self, id: str, at: int | None) -> None: ...

    def set_stock(self, id: str, stock: Stock) -> None: ...


class Tallies(Protocol):
    """Counts that many processes share, by name."""

    def add(self, name: str, number: int, now: int) -> Tally:
        """Add it; the tally as it is after that. One that nobody has added to for a month begins anew."""

    def restart(self, name: str, seen: Tally, number: int, now: int) -> bool:
        """Count from `number` since `now` on, if it still counts since `seen.since`; `total` stays."""
