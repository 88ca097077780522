"""The owner that a command names, by id or name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from punctual import NotAllowed, Punctual
from punctual.records import Me

ID = re.compile("team-[a-z2-7]{20}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # an id of an owner, which no list needs to confirm


@dataclass(frozen=True)
class Named:
    """An owner: a person or a team."""

    id: str
    name: str

    def __str__(self) -> str:
        return self.name if self.name == self.id else f"{self.name} ({self.id})"


def matches(client: Punctual, text: str) -> list[Named]:
    """Return the owners with this id or name: the caller, the caller's teams, and for operators the first user, or all teams."""
    if ID.fullmatch(text):
        return [Named(text, text)]
    me = client.me()
    near = [each for each in (Named(me.id, me.username), *_own_teams(me)) if text in (each.id, each.name)]
    if near or not _oversees(me):
        return near
    users = (Named(each.id, each.username) for each in client.users.list() if text in (each.id, each.username))
    return [user] if (user := next(users, None)) else [each for each in all_teams(client) if text in (each.id, each.name)]


def teams(client: Punctual, text: str) -> list[Named]:
    """Return the teams with this id or name: those of the caller, and for operators all."""
    if ID.fullmatch(text):
        return [Named(text, text)]
    me = client.me()
    near = [each for each in _own_teams(me) if text in (each.id, each.name)]
    return near if near or not _oversees(me) else [each for each in all_teams(client) if text in (each.id, each.name)]


def _oversees(me: Me) -> bool:
    return me.role in ("operator", "administrator") or "admin" in me.scopes


def _own_teams(me: Me) -> list[Named]:
    return [Named(each.id, each.name) for each in me.teams]


def all_teams(client: Punctual) -> Iterator[Named]:
    """Yield all teams; none for a program, which may not list them."""
    try:
        for each in client.teams.list(all=True):
            yield Named(each.id, each.name)
    except NotAllowed:
        return
