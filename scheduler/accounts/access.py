"""Access rules: the needs of routes, and the rights of people, API keys and AWS principals. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from scheduler.model.account import Role, Scope, TeamRole


class Need(StrEnum):
    """The permission that a route requires of its caller."""

    OPEN = "open"  # none: the request has no token, or one that is not from a sign-in
    SIGNED_IN = "signed in"  # any valid credential
    PERSON = "person"  # a person, neither an API key nor a principal
    JOBS_READ = "jobs:read"  # to see an owner's jobs
    JOBS_WRITE = "jobs:write"
    TASKS_READ = "tasks:read"
    TASKS_WRITE = "tasks:write"
    MANAGE = "manage"  # to manage who acts for an owner: only people may
    OVERSEE = "oversee"  # to see the objects of all owners
    ADMINISTER = "administer"  # to change the objects of all owners


READS = frozenset({Need.JOBS_READ, Need.TASKS_READ})
WRITES = frozenset({Need.JOBS_WRITE, Need.TASKS_WRITE})
_ALWAYS = frozenset({Need.OPEN, Need.SIGNED_IN})
_OF_PEOPLE = frozenset({Need.PERSON, Need.MANAGE})
BY_TEAM_ROLE = {
    TeamRole.VIEWER: READS,
    TeamRole.EDITOR: READS | WRITES,
    TeamRole.MANAGER: READS | WRITES | {Need.MANAGE},
}
OF_STAGE = {
    Role.USER: frozenset[Need](),
    Role.OPERATOR: frozenset({Need.OVERSEE}),
    Role.ADMINISTRATOR: frozenset({Need.OVERSEE, Need.ADMINISTER}),
}
BY_SCOPE = {
    Scope.JOBS_READ: frozenset({Need.JOBS_READ}),
    Scope.JOBS_WRITE: frozenset({Need.JOBS_WRITE}),
    Scope.TASKS_READ: frozenset({Need.TASKS_READ}),
    Scope.TASKS_WRITE: frozenset({Need.TASKS_WRITE}),
    Scope.ADMIN: frozenset(Need) - _OF_PEOPLE,
}
REFUSALS = {
    Need.SIGNED_IN: "This needs a sign-in, an API key or an AWS role.",
    Need.PERSON: "Only people may do this, no API keys or AWS roles.",
    Need.JOBS_READ: "You may not see jobs here: this needs the scope jobs:read, or a role in the team.",
    Need.JOBS_WRITE: "You may not change jobs here: this needs the scope jobs:write, or the role editor in the team.",
    Need.TASKS_READ: "You may not see tasks here: this needs the scope tasks:read, or a role in the team.",
    Need.TASKS_WRITE: "You may not change tasks here: this needs the scope tasks:write, or the role editor in the team.",
    Need.MANAGE: "Only managers of the team may do this.",
    Need.OVERSEE: "Only operators and administrators may do this.",
    Need.ADMINISTER: "Only administrators may do this.",
}


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a person at present: as the owner of their own objects, in teams, and in the stage."""

    person: str
    role: Role = Role.USER
    teams: Mapping[str, TeamRole] = field(default_factory=dict)

    def may(self, need: Need, owner: str) -> bool:
        """Whether the person may do this with objects of the owner."""
        if need in _ALWAYS or need is Need.PERSON or need in OF_STAGE[self.role]:
            return True
        if owner == self.person:
            return need in BY_TEAM_ROLE[TeamRole.MANAGER]
        return owner in self.teams and need in BY_TEAM_ROLE[self.teams[owner]]


@dataclass(frozen=True, slots=True)
class Caller:
    """The maker of a request: a person; an API key, with its scopes and the rights of its maker; or an AWS principal, with its scopes.

    `id` is the actor: the id of the person (of a key: of its maker), or the ARN of the principal. `owner`: of a request that names none.
    """

    id: str
    name: str
    owner: str
    rights: Rights | None = None  # None: a principal
    scopes: frozenset[Scope] | None = None  # None: a person
    key: str | None = None  # the id of the API key

    @property
    def role(self) -> Role | None:
        """The stage role of a person; None for a key or principal."""
        return self.rights.role if self.rights is not None and self.scopes is None else None

    def may(self, need: Need, owner: str | None = None) -> bool:
        """Whether the caller may do this with objects of the owner (by default the caller's)."""
        of = self.owner if owner is None else owner
        if self.rights is not None and not self.rights.may(need, of):
            return False
        if self.scopes is None or need in _ALWAYS:
            return True
        if need in _OF_PEOPLE:
            return False
        if Scope.ADMIN in self.scopes and (self.rights is None or self.rights.role is Role.ADMINISTRATOR):
            return True
        return of == self.owner and any(need in BY_SCOPE[scope] for scope in self.scopes - {Scope.ADMIN})

    def may_as_staff(self, need: Need, owner: str) -> bool:
        """Whether the caller's role in the stage allows this with the objects of an owner to whom the caller does not belong."""
        return self.may(need_of_foreign(need), owner) and (need not in _OF_PEOPLE or self.scopes is None)

    def sees(self, owner: str) -> bool:
        """Whether the owner is the caller's own, or a team of the caller."""
        return owner == self.owner or (self.scopes is None and self.rights is not None and owner in self.rights.teams)


def need_of_foreign(need: Need) -> Need:
    """The need of a request for the objects of an owner to whom the caller does not belong.

    Operators may read them, administrators may change them.
    """
    return Need.OVERSEE if need in READS else Need.ADMINISTER
