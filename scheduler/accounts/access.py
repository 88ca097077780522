"""Access rules: the roles of people, the scopes of programs, and the needs of routes. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from scheduler.model.account import Role


class Scope(StrEnum):
    """A permission of a machine client, given at deploy time. No scope includes another one, except `admin`."""

    JOBS_READ = "jobs:read"  # see its own
    JOBS_WRITE = "jobs:write"  # create and change its own
    ADMIN = "admin"  # all permissions of an administrator


class Need(StrEnum):
    """The permission that a route requires of its caller."""

    OPEN = "open"  # none: the request has no token, or one that is not from a sign-in
    SIGNED_IN = "signed in"  # any token
    PERSON = "person"  # the token of a person, not of a machine client
    READ = "read"  # to see one's own objects
    WRITE = "write"  # to create and change one's own objects
    OVERSEE = "oversee"  # to see the objects of all users
    ADMINISTER = "administer"  # to change the objects of all users


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
    Need.PERSON: "Only people may do this, no machine clients.",
    Need.READ: "This needs the scope jobs:read.",
    Need.WRITE: "This needs the scope jobs:write.",
    Need.OVERSEE: "Only operators and administrators may do this.",
    Need.ADMINISTER: "Only administrators may do this.",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of a request's token: a person with a role, or a machine client with scopes."""

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
    """The need of a request for another user's objects: operators may read them, administrators may change them."""
    return Need.OVERSEE if method == "GET" else Need.ADMINISTER
