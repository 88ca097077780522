"""Single sign-on: from the groups at the identity provider to the role in the stage. Pure, except `sign_in`.

Each right of a person has a source. The role that an administrator gave is never changed here. The role by groups is computed again at
each single sign-on, so that a group that was removed takes its role away. The higher role applies.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Self

from scheduler.accounts import people
from scheduler.model.account import Role, Subject
from scheduler.model.errors import Unauthorized
from scheduler.storage.ports import IdpClaims, Ports, Session

LOOPBACK_PORTS = (8251, 8252, 8253)  # at one of which `punctual login --sso` waits: the app client allows only exact addresses
REFUSED = "The sign-in failed. Start it again."


@dataclass(frozen=True, slots=True)
class Sso:
    """The option `[sso]`, as the API needs it. `groups` are names of groups at the identity provider."""

    provider: str  # its name in the user pool, and the issuer of its subjects
    name: str  # for people
    url: str  # of the pool's sign-in pages; `{endpoint}` is replaced by the address of the local AWS
    client_id: str
    client_secret: str
    administrators: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    passwords: bool = True  # false: only the accounts of `break_glass` sign in with a password
    break_glass: tuple[str, ...] = ()
    sign_out_url: str = ""  # of the identity provider; empty: the one of the console

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the setting that `infra` writes. Raises ValueError, TypeError."""
        values: dict[str, Any] = json.loads(text)
        known = {each.name for each in fields(cls)}
        chosen: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in values.items() if name in known
        }
        return cls(**chosen)

    @property
    def with_passwords(self) -> frozenset[str] | None:
        """The user names, in small letters, that may sign in with a password; None: all of them."""
        return None if self.passwords else frozenset(name.casefold() for name in self.break_glass)

    def role_of(self, claims: IdpClaims) -> Role:
        """The role by groups. No claim about groups is no group."""
        groups = claims.groups or frozenset()
        if groups & set(self.administrators):
            return Role.ADMINISTRATOR
        return Role.OPERATOR if groups & set(self.operators) else Role.USER


@lru_cache
def of_setting(text: str) -> Sso | None:
    """The single sign-on of a stage; None without one."""
    return Sso.parse(text) if text else None


def groups_of(claim: object) -> frozenset[str] | None:
    """The groups in a claim: a list, or one of the texts `["a","b"]`, `[a, b]`, `a,b` and `a`. None if there is no claim.

    >>> sorted(groups_of("[jobs admins, ops]") or ())
    ['jobs admins', 'ops']
    """
    if claim is None:
        return None
    if isinstance(claim, str):
        text = claim.strip()
        if text.startswith("[") and text.endswith("]"):
            try:
                return groups_of(json.loads(text))
            except ValueError:
                text = text[1:-1]
        claim = text.split(",")
    parts: Sequence[object] = claim if isinstance(claim, list) else ()
    return frozenset(part.strip() for part in parts if isinstance(part, str) and part.strip())


def subject_at(username: str, provider: str) -> str | None:
    """The subject at the provider in a user name of the pool, in small letters; None for the name of an account with a password."""
    prefix, _, subject = username.partition("_")
    return subject.casefold() if subject and prefix.casefold() == provider.casefold() else None


def sign_in(sso: Sso, code: str, verifier: str, redirect_uri: str, ports: Ports) -> Session:
    """Complete a single sign-on. Raises Unauthorized, also for a disabled person.

    A person who signs in for the first time is created, unless an administrator has linked the identity to a person before. An e-mail
    address links nobody: an owner of the same address at the provider would take over the person.
    """
    session, claims = ports.identity.exchange(code, verifier, redirect_uri)
    if claims.provider != sso.provider:
        raise Unauthorized(REFUSED)
    person = people.person_of(Subject(claims.provider, claims.subject), claims.name or claims.email or claims.subject, ports)
    if ports.users.profiles([person])[person].disabled_at is not None:
        if session.refresh_token is not None:
            ports.identity.revoke(session.refresh_token)
        raise Unauthorized(REFUSED)
    ports.owners.set_sso_role(person, sso.role_of(claims))
    return session
