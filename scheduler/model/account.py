"""Owners and those who act for them: persons, teams, API keys and AWS principals; their roles, scopes, quotas and tallies."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

# A password that the user pool's policy may accept; Cognito refuses any other text as a bad parameter.
# https://docs.aws.amazon.com/cognito-user-identity-pools/latest/APIReference/API_AdminSetUserPassword.html
PASSWORD = r"\S{1,256}"


class Role(StrEnum):
    """The role of a person in the stage. Each role includes the permissions of those before it."""

    USER = "user"  # has tasks and jobs of their own
    OPERATOR = "operator"  # also sees the tasks and jobs of all users
    ADMINISTRATOR = "administrator"  # also changes them, and manages users and the system


class TeamRole(StrEnum):
    """The role of a person in a team. Each role includes the permissions of those before it."""

    VIEWER = "viewer"  # sees the tasks and jobs of the team
    EDITOR = "editor"  # also creates and changes them
    MANAGER = "manager"  # also manages the members, the invitations and the API keys of the team


class Scope(StrEnum):
    """A permission of an API key or of an AWS principal. No scope includes another one, except `admin`."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"  # create and change
    TASKS_READ = "tasks:read"
    TASKS_WRITE = "tasks:write"
    ADMIN = "admin"  # all permissions of an administrator, except those that only people have


class OwnerKind(StrEnum):
    """The kind of an owner of tasks and jobs is."""

    PERSON = "person"
    TEAM = "team"


class Subject(NamedTuple):
    """A person, as an issuer of tokens names them.

    `issuer`: `COGNITO` for the accounts of the user pool, else the name of the identity provider. `id`: unique within the issuer.
    """

    issuer: str
    id: str


COGNITO = "cognito"


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
    """The record of an owner. An owner of whom only the quotas, the weight or the state are stored has no name."""

    id: str
    quotas: Quotas = field(default_factory=Quotas)
    disabled_at: int | None = None
    stock: Stock = field(default_factory=Stock)
    sessions_since: int | None = None  # tokens of an earlier sign-in are refused
    freed: int = 0  # jobs that were cancelled or withdrawn since the stock was first counted
    weight: float | None = None  # None: `fair_queue.DEFAULT_WEIGHT`
    kind: OwnerKind = OwnerKind.PERSON
    name: str | None = None  # of a person: the user name; erased when the owner is deleted
    role: Role = Role.USER  # of a person, set by an administrator
    sso_role: Role | None = None  # of a person, by the groups of the identity provider at the last sign-in
    account: str | None = None  # of a person: the subject of the account in the user pool that has the password
    created_at: int = 0
    managers: int = 0  # of a team

    @property
    def highest_role(self) -> Role:
        """The role that applies: the higher one of those of both sources."""
        return max((self.role, self.sso_role or Role.USER), key=list(Role).index)


@dataclass(frozen=True, slots=True)
class Membership:
    """A person in a team."""

    team: str
    person: str
    role: TeamRole
    since: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """An offer to become a member of a team. It is used once. `digest`: the SHA-256 of its token, in hexadecimal digits."""

    id: str
    team: str
    role: TeamRole
    digest: str
    made_by: str
    created_at: int
    expires_at: int


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key, without its secret. `digest`: the SHA-256 of the whole key, in hexadecimal digits."""

    id: str
    owner: str
    maker: str  # the id of the person
    name: str
    scopes: frozenset[Scope]
    digest: str
    created_at: int
    expires_at: int | None = None
    used_at: int | None = None  # at most an hour before the last use


@dataclass(frozen=True, slots=True)
class Principal:
    """An AWS role, or a pattern of roles, and the owner for whom it acts. `unique_id`: the role's `AROA…`, by which SQS names a sender."""

    id: str
    arn: str
    owner: str
    scopes: frozenset[Scope]
    made_by: str
    created_at: int
    unique_id: str | None = None


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
