"""Users: their accounts, roles, profiles, quotas and tallies."""

from dataclasses import dataclass, field
from enum import StrEnum

# A password that the user pool's policy may accept; Cognito refuses any other text as a bad parameter.
# https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_AdminSetUserPassword.html
PASSWORD = r"\S{1,256}"


class Role(StrEnum):
    """The role of a person. Each role includes the permissions of those before it."""

    USER = "user"  # has tasks and jobs of their own
    OPERATOR = "operator"  # also sees the tasks and jobs of all users
    ADMINISTRATOR = "administrator"  # also changes them, and manages users and the system


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of one user. None: the limit of the deployment's settings."""

    max_jobs: int | None = None  # jobs that have not ended
    creates_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Stock:
    """The number of jobs of a user that had not ended at the last count."""

    count: int = 0
    total: int = 0  # the `total` of the user's tally at that time: jobs counted since may have been added
    at: int = 0
    freed: int = 0  # the `freed` of the user's profile at that time: jobs freed since have left the stock


@dataclass(frozen=True, slots=True)
class Profile:
    """The record that the scheduler itself stores for a user, beside the weight."""

    id: str
    quotas: Quotas = field(default_factory=Quotas)
    disabled_at: int | None = None
    stock: Stock = field(default_factory=Stock)
    sessions_since: int | None = None  # tokens of an earlier sign-in are refused
    freed: int = 0  # jobs that were cancelled or withdrawn since the stock was first counted


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

    count: int = 0  # since `since`
    since: int = 0  # 0: the tally is not stored
    total: int = 0  # since the tally was created

    def level(self, now: int, per_second: float) -> float:
        """The level of a leaky bucket that was filled with this count and leaks `per_second`."""
        return self.count - per_second * max(now - self.since, 0) / 1000


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that a tally may contain if something is to be added to it. None: any number."""

    since: int  # the tally counts since this instant; 0: it is not stored
    count: int | None = None
    total: int | None = None
