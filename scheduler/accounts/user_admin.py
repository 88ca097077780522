"""The operations of administrators on persons: create, find, change, disable, enable, delete, set a password, link an identity."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from scheduler.accounts import people, sessions
from scheduler.accounts.people import new_id
from scheduler.admission import lane_state
from scheduler.model.account import COGNITO, OwnerKind, Profile, Quotas, Role, Subject
from scheduler.model.errors import Conflict, NotFound, SchedulerError
from scheduler.model.work import WorkItem, WorkKind
from scheduler.notify import receivers
from scheduler.storage.ports import Ports


def create(username: str, password: str, role: Role, weight: float, quotas: Quotas, ports: Ports) -> Profile:
    """Create a person with an account. Raises Conflict for a name in use, Invalid for a password that breaks the policy."""
    account = ports.identity.create(username, password)
    subject = Subject(COGNITO, account)
    made = Profile(new_id(), quotas, weight=weight, name=username, role=role, account=account, created_at=ports.clock.now())
    try:
        stored = ports.owners.add_person(made, subject)
    except SchedulerError:
        ports.identity.delete(account)  # the user name stays free: the request may be repeated
        raise
    if not stored:
        raise Conflict("this user signed in meanwhile: change the user instead")
    return made


def find(id: str, ports: Ports) -> Profile:
    """Find a person. Raises NotFound, also for a deleted one."""
    profile = ports.users.profiles([id])[id]
    if profile.kind is not OwnerKind.PERSON or profile.name is None:
        raise NotFound("there is no such user")
    return profile


def page(cursor: str | None, limit: int, ports: Ports) -> tuple[list[Profile], str | None]:
    """A page of all persons, and the cursor of the next page."""
    ids, after = ports.owners.people(cursor, limit)
    profiles = ports.users.profiles(ids)
    return [profiles[id] for id in ids if profiles[id].name is not None], after


def change(id: str, changes: Mapping[str, Any], by: str, ports: Ports) -> Profile:
    """Change `role`, `job_weight` and `quotas`, if given: each process of the API applies them within half a minute.

    A lower role ends all sessions. Raises NotFound, and Conflict if administrators change their own role.
    """
    known = find(id, ports)
    if "role" in changes:
        if id == by and changes["role"] is not known.role:
            raise Conflict("you cannot change your own role")
        _set_role(known, changes["role"], ports)
        known = replace(known, role=changes["role"])
    if "job_weight" in changes:
        ports.users.set_weight(id, changes["job_weight"])
        known = replace(known, weight=changes["job_weight"])
    if "quotas" in changes:
        ports.users.set_quotas(id, changes["quotas"])
        known = replace(known, quotas=changes["quotas"])
    return known


def _set_role(known: Profile, role: Role, ports: Ports) -> None:
    ranks = list(Role)  # each includes those before it
    is_lower = ranks.index(role) < ranks.index(known.role)
    if is_lower:
        sessions.refuse_earlier(known.id, ports)  # first: a repeated request no longer sees that the role was higher
    ports.owners.set_role(known.id, role)
    if is_lower:
        sessions.end_all(known.id, ports)


def disable(id: str, by: str, ports: Ports) -> Profile:
    """Disable a person: within half a minute the API refuses their tokens and keys, and they cannot sign in. Idempotent.

    After a minute no job of theirs starts; the jobs wait until the person is enabled.

    Raises NotFound, and Conflict if administrators disable themselves.
    """
    known = find(id, ports)
    if id == by:
        raise Conflict("you cannot disable yourself")
    at = known.disabled_at or ports.clock.now()
    ports.users.set_disabled(id, at)  # first: this also blocks tokens that were issued before
    if known.account is not None:
        ports.identity.set_enabled(known.account, False)
    return replace(known, disabled_at=at)


def enable(id: str, ports: Ports) -> Profile:
    """Enable a person again, and wake their jobs. Idempotent. Raises NotFound.

    The jobs leave the owner's waiting room within seconds. If the message that wakes them is lost, the next tick wakes them.
    """
    known = find(id, ports)
    if known.account is not None:
        ports.identity.set_enabled(known.account, True)
    ports.users.set_disabled(id, None)
    ports.work.send([WorkItem(WorkKind.RESUME)])
    return replace(known, disabled_at=None)


def delete(id: str, by: str, ports: Ports) -> Profile:
    """Delete a person, and erase the name everywhere; the id stays. Teams and what they own stay as they are.

    After a minute no job of the person starts; each is cancelled when it is due, and plan ends the tasks.
    Jobs that are due already, in the waiting room of a disabled person, are cancelled within seconds.

    Raises NotFound, and Conflict if administrators delete themselves. It may be repeated after a failure.
    """
    known = find(id, ports)
    if id == by:
        raise Conflict("you cannot delete yourself")
    at = known.disabled_at or ports.clock.now()
    ports.users.delete(id, at)  # first: this also blocks tokens that were issued before
    for account in people.accounts_of(id, ports):
        ports.identity.delete(account)
    lane_state.forget_author(id, ports.ledger)
    receivers.delete_all(id, ports)
    ports.owner_alerts.delete(id)
    ports.owners.erase_person(id, ports.users.owner(id).memberships)
    ports.work.send([WorkItem(WorkKind.RESUME)])
    return replace(known, disabled_at=at)


def set_password(id: str, password: str, ports: Ports) -> Profile:
    """Set a forgotten password, and end all sessions. Raises NotFound, Invalid, and Conflict for a person without an account."""
    known = find(id, ports)
    ports.identity.set_password(sessions.own_account(id, ports), password)
    sessions.end_all(id, ports)
    return known


def link(id: str, subject: Subject, ports: Ports) -> Profile:
    """Let a person sign in as this subject of an identity provider too: tasks and jobs stay theirs.

    Raises NotFound, and Conflict if the subject belongs to another person: a person who has signed in by it has objects of their own.
    """
    known = find(id, ports)
    if not ports.owners.link(subject, id):
        raise Conflict("another user signs in as this subject")
    return known


def unlink(id: str, provider: str, ports: Ports) -> Profile:
    """Take the subject of an identity provider away from a person, and end all sessions. Raises NotFound."""
    known = find(id, ports)
    found = [subject for subject in ports.owners.subjects(id) if subject.issuer == provider]
    if not found:
        raise NotFound("the user has no identity of this provider")
    for subject in found:
        ports.owners.unlink(subject, id)
    ports.owners.set_sso_role(id, None)
    sessions.end_all(id, ports)
    return known
