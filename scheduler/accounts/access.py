"""Who may do what: the roles of people, the scopes of programs, and the needs of routes. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a person is. Each may do what those before it may."""

    USER = "user"  # has tasks and jobs of their own
    OPERATOR = "operator"  # sees everybody's
    ADMINISTRATOR = "administrator"  # changes everybody's, users and the system


class Scope(StrEnum):
    """What a machine client was given at deploy time. Each stands for itself."""

    JOBS_READ = "jobs:read"  # see its own
    JOBS_WRITE = "jobs:write"  # make and change its own
    ADMIN = "admin"  # all that an administrator may


class Need(StrEnum):
    """What a route asks of its caller."""

    OPEN = "open"  # nothing: no token, or one that is not of a sign-in
    SIGNED_IN = "signed in"  # any token
    PERSON = "person"  # the token of a person, not of a machine client
    READ = "read"  # to see what is one's own
    WRITE = "write"  # to make and change what is one's own
    OVERSEE = "oversee"  # to see what is everybody's
    ADMINISTER = "administer"  # to change what is everybody's


_OF_USERS = {Need.SIGNED_IN, Need.PERSON, Need.READ, Need.WRITE}
BY_ROLE = {
    Role.USER: frozenset(_OF_USERS),
    Role.OPERATOR: frozenset(_OF_USERS | {Need.OVERSEE}),
    Role.ADMINISTRATOR: frozenset(_OF_USERS | {Need.OVERSEE, Need.ADMINISTER}),
}
BY_SCOPE = {
    Scope.JOBS_READ: frozenset({Need.SIGNED_IN, Need.READ}),
    Scope.JOBS_WRITE: frozenset({Need.SIGNED_IN, Need.WRITE}),
    Scope.ADMIN: frozenset(Need) - {Need.OPEN, Need.PERSON},
}
REFUSALS = {
    Need.SIGNED_IN: "This machine client has none of the scopes jobs:read, jobs:write and admin.",
    Need.PERSON: "Only people may do this, not machine clients.",
    Need.READ: "This needs the scope jobs:read.",
    Need.WRITE: "This needs the scope jobs:write.",
    Need.OVERSEE: "Only operators and administrators may do this.",
    Need.ADMINISTER: "Only administrators may do this.",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose token a request carries: a person with a role, or a machine client with scopes."""

    id: str
    name: str
    role: Role | None = None  # None: a machine client
    scopes: frozenset[Scope] = frozenset()

    def may(self, need: Need) -> bool:
        if need is Need.OPEN:
            return True
        if self.role is not None:
            return need in BY_ROLE[self.role]
        return any(need in BY_SCOPE[scope] for scope in self.scopes)


def need_of_foreign(method: str) -> Need:
    """What it takes to name somebody else in a request: to see is for operators, to change for administrators."""
    return Need.OVERSEE if method == "GET" else Need.ADMINISTER
