"""What administrators do with users: create, look, change, disable, enable, set a password."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.accounts.access import Role
from scheduler.accounts.model import Account, Directory, Profile, Profiles, Quotas
from scheduler.model.errors import Conflict, NotFound
from scheduler.storage.ports import Clock, Users


@dataclass(frozen=True, slots=True)
class World:
    """The ports that the verbs of this module need. `clients`: the machine clients of the deployment, by id."""

    directory: Directory
    profiles: Profiles
    users: Users
    clock: Clock
    clients: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Known:
    """All that is known of a user."""

    account: Account
    profile: Profile


def create(username: str, password: str, role: Role, weight: float, quotas: Quotas, world: World) -> Known:
    """Raises Conflict for a name that is taken, Invalid for a password that the policy refuses."""
    account = world.directory.create(username, password, role, weight)
    world.users.set_weight(account.id, weight)
    if quotas != Quotas():
        world.profiles.set_quotas(account.id, quotas)
    return Known(account, Profile(account.id, quotas))


def find(id: str, world: World) -> Known:
    """A person, or a machine client as one. Raises NotFound."""
    account = _client(id, world) or world.directory.get(id)
    if account is None:
        raise NotFound("there is no such user")
    return _known([account], world)[0]


def page(cursor: str | None, limit: int, world: World) -> tuple[list[Known], str | None]:
    """Some of all, and the next page's cursor."""
    accounts, after = world.directory.page(cursor, limit)
    return _known(accounts, world), after


def change(id: str, wanted: Mapping[str, Any], by: str, world: World) -> Known:
    """Change `role`, `job_weight`, `quotas`: those that are given. Raises NotFound, and Conflict for what would lock oneself out."""
    known = find(id, world)
    if "role" in wanted:
        _check_person(known, world)
        if id == by and wanted["role"] is not known.account.role:
            raise Conflict("nobody changes their own role")
        world.directory.set_role(id, wanted["role"])
    if "job_weight" in wanted:
        world.users.set_weight(id, wanted["job_weight"])
        if id not in world.clients:
            world.directory.set_weight(id, wanted["job_weight"])
    if "quotas" in wanted:
        world.profiles.set_quotas(id, wanted["quotas"])
    account = replace(known.account, **{name: wanted[name] for name in ("role", "job_weight") if name in wanted})
    return Known(account, replace(known.profile, quotas=wanted.get("quotas", known.profile.quotas)))


def disable(id: str, by: str, world: World) -> Known:
    """No token of the user's counts any more, within half a minute; nor does it sign in. Idempotent. Raises NotFound, Conflict."""
    known = find(id, world)
    if id == by:
        raise Conflict("nobody disables themselves")
    at = known.profile.disabled_at or world.clock.now()
    world.profiles.set_disabled(id, at)  # first: it also holds back the tokens that are out
    if id not in world.clients:
        world.directory.set_enabled(id, False)
    return Known(replace(known.account, enabled=False), replace(known.profile, disabled_at=at))


def enable(id: str, world: World) -> Known:
    """Idempotent. Raises NotFound."""
    known = find(id, world)
    if id not in world.clients:
        world.directory.set_enabled(id, True)
    world.profiles.set_disabled(id, None)
    return Known(replace(known.account, enabled=True), replace(known.profile, disabled_at=None))


def set_password(id: str, password: str, world: World) -> Known:
    """For who has forgotten it; signs out everywhere. Raises NotFound, Invalid, and Conflict for a machine client."""
    known = find(id, world)
    _check_person(known, world)
    world.directory.set_password(id, password)
    return known


def _check_person(known: Known, world: World) -> None:
    if known.account.id in world.clients:
        raise Conflict("a machine client has neither a role nor a password: its scopes and its secret come with the deployment")


def _client(id: str, world: World) -> Account | None:
    return Account(id, world.clients[id]) if id in world.clients else None


def _known(accounts: list[Account], world: World) -> list[Known]:
    ids = [account.id for account in accounts]
    profiles, weights = world.profiles.get_many(ids), world.users.weights(ids)
    found = []
    for account in accounts:
        profile, weight = profiles[account.id], weights.get(account.id, account.job_weight)
        enabled = account.enabled and profile.disabled_at is None
        found.append(Known(replace(account, job_weight=weight, enabled=enabled), profile))
    return found
