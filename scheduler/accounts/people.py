"""STUB, replaced when the branches are merged: the persons behind the accounts of the user pool and the identities of providers."""

from collections.abc import Sequence

from scheduler.model.account import Role
from scheduler.storage.ports import Ports


def person_of(issuer: str, subject: str, name: str, ports: Ports) -> str:
    """The id of the person whom an issuer names so; creates the person at the first sign-in. Here: the subject."""
    return subject


def is_barred(person: str, ports: Ports) -> bool:
    """Whether the person is disabled or deleted."""
    return ports.users.profiles([person])[person].disabled_at is not None


def set_sso_role(person: str, role: Role, ports: Ports) -> None:
    """Store the role by the groups of the identity provider. The role that an administrator gave stays. Here: nothing is stored."""


def account_of(person: str, ports: Ports) -> str | None:
    """The subject of the account with which the person signs in by password; None: the person has none. Here: the person's id."""
    return person


def accounts_of(person: str, ports: Ports) -> Sequence[str]:
    """The subjects of all accounts of the person in the user pool, whose sessions end together. Here: the one account."""
    return [person]
