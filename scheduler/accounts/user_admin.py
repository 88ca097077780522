"""The operations of administrators on users: create, find, change, disable, enable, delete, set a password."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.accounts import sessions
from scheduler.model.account import Account, Profile, Quotas, Role
from scheduler.model.errors import Conflict, NotFound
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.ports import Ports


@dataclass(frozen=True, slots=True)
class KnownUser:
    """A user: account and profile."""

    account: Account
    profile: Profile


def create(username: str, password: str, role: Role, weight: float, quotas: Quotas, ports: Ports) -> KnownUser:
    """Create a user. Raises Conflict for a name in use, Invalid for a password that breaks the policy."""
    account = replace(ports.identity.create(username, password, role), job_weight=weight)
    ports.users.set_weight(account.id, weight)
    if quotas != Quotas():
        ports.users.set_quotas(account.id, quotas)
    return KnownUser(account, Profile(account.id, quotas))


def find(id: str, ports: Ports) -> KnownUser:
    """Find a person, or a machine client in the form of one. Raises NotFound."""
    account = _client(id, ports) or ports.identity.get(id)
    if account is None:
        raise NotFound("there is no such user")
    return _known([account], ports)[0]


def page(cursor: str | None, limit: int, ports: Ports) -> tuple[list[KnownUser], str | None]:
    """A page of all users, and the cursor of the next page."""
    accounts, after = ports.identity.page(cursor, limit)
    return _known(accounts, ports), after


def change(id: str, changes: Mapping[str, Any], by: str, ports: Ports) -> KnownUser:
    """Change `role`, `job_weight` and `quotas`, if given. A lower role ends all sessions, whose tokens have the rights of the old one.

    Raises NotFound, and Conflict if administrators change their own role.
    """
    known = find(id, ports)
    if "role" in changes:
        _check_person(known, ports)
        if id == by and changes["role"] is not known.account.role:
            raise Conflict("you cannot change your own role")
        _set_role(known.account, changes["role"], ports)
    if "job_weight" in changes:
        ports.users.set_weight(id, changes["job_weight"])
    if "quotas" in changes:
        ports.users.set_quotas(id, changes["quotas"])
    account = replace(known.account, **{name: changes[name] for name in ("role", "job_weight") if name in changes})
    return KnownUser(account, replace(known.profile, quotas=changes.get("quotas", known.profile.quotas)))


def _set_role(account: Account, role: Role, ports: Ports) -> None:
    ranks = list(Role)  # each includes those before it
    if ranks.index(role) >= ranks.index(account.role):
        ports.identity.set_role(account.id, role)
        return
    sessions.refuse_earlier(account.id, ports)  # first: a repeated request no longer sees that the role was higher
    ports.identity.set_role(account.id, role)
    sessions.end_all(account.id, ports)


def disable(id: str, by: str, ports: Ports) -> KnownUser:
    """Disable a user: within half a minute the API refuses the user's tokens, and the user cannot sign in. Idempotent.

    After a minute no job of the user starts; the jobs wait until the user is enabled.

    Raises NotFound, and Conflict if administrators disable themselves.
    """
    known = find(id, ports)
    if id == by:
        raise Conflict("you cannot disable yourself")
    at = known.profile.disabled_at or ports.clock.now()
    ports.users.set_disabled(id, at)  # first: this also blocks tokens that were issued before
    if id not in ports.identity.clients:
        ports.identity.set_enabled(id, False)
    return KnownUser(replace(known.account, enabled=False), replace(known.profile, disabled_at=at))


def enable(id: str, ports: Ports) -> KnownUser:
    """Enable a user again, and wake the user's jobs. Idempotent. Raises NotFound.

    The jobs leave the user's waiting room within seconds. If the message that wakes them is lost, the next tick wakes them.
    """
    known = find(id, ports)
    if id not in ports.identity.clients:
        ports.identity.set_enabled(id, True)
    ports.users.set_disabled(id, None)
    ports.work.send([WorkItem(WorkKind.RESUME)])
    return KnownUser(replace(known.account, enabled=True), replace(known.profile, disabled_at=None))


def delete(id: str, by: str, ports: Ports) -> KnownUser:
    """Delete a user. After a minute no job of the user starts; each is cancelled when it is due, and plan ends the tasks.

    Jobs that are due already, in the waiting room of a disabled user, are cancelled within seconds.

    Raises NotFound, and Conflict if administrators delete themselves, or for a machine client. It may be repeated after a failure.
    """
    known = find(id, ports)
    if id in ports.identity.clients:
        raise Conflict("a machine client cannot be deleted: disable it, or remove it from the options of the deployment")
    if id == by:
        raise Conflict("you cannot delete yourself")
    at = known.profile.disabled_at or ports.clock.now()
    ports.users.delete(id, at)  # first: this also blocks tokens that were issued before
    ports.identity.delete(id)
    ports.work.send([WorkItem(WorkKind.RESUME)])
    return KnownUser(replace(known.account, enabled=False), replace(known.profile, disabled_at=at))


def set_password(id: str, password: str, ports: Ports) -> KnownUser:
    """Set a forgotten password, and end all sessions of the user. Raises NotFound, Invalid, and Conflict for a machine client."""
    known = find(id, ports)
    _check_person(known, ports)
    ports.identity.set_password(id, password)
    sessions.end_all(id, ports)
    return known


def _check_person(known: KnownUser, ports: Ports) -> None:
    if known.account.id in ports.identity.clients:
        raise Conflict("a machine client has neither a role nor a password: the deployment sets its scopes and its secret")


def _client(id: str, ports: Ports) -> Account | None:
    return Account(id, ports.identity.clients[id]) if id in ports.identity.clients else None


def _known(accounts: list[Account], ports: Ports) -> list[KnownUser]:
    ids = [account.id for account in accounts]
    profiles, weights = ports.users.profiles(ids), ports.users.weights(ids)
    found = []
    for account in accounts:
        profile, weight = profiles[account.id], weights.get(account.id, account.job_weight)
        enabled = account.enabled and profile.disabled_at is None
        found.append(KnownUser(replace(account, job_weight=weight, enabled=enabled), profile))
    return found
