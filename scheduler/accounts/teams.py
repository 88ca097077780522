"""Teams: owners whose members see and change the same tasks and jobs. A member who leaves loses access, and nothing else happens."""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduler.accounts import api_keys
from scheduler.accounts.api_keys import ID_LETTERS, Choose
from scheduler.model.account import Invitation, Membership, OwnerKind, Profile, TeamRole
from scheduler.model.errors import Conflict, Forbidden, NotFound
from scheduler.model.instants import DAY
from scheduler.model.work import WorkItem, WorkKind
from scheduler.notify import receivers
from scheduler.storage.ports import Ports

INVITATION_DAYS = 7
MOST_MEMBERS = 500  # of a team: a list reads them all
MOST_TEAMS = 50  # of a person: each is read with the person


@dataclass(frozen=True, slots=True)
class Invited:
    """A new invitation and its token, which is stored nowhere."""

    invitation: Invitation
    token: str


def create(name: str, by: str, ports: Ports, choose: Choose = secrets.choice) -> Profile:
    """Make a team whose manager is this person. Raises Conflict if the person has `MOST_TEAMS`."""
    _check_room(by, ports)
    team = Profile(
        f"team-{api_keys.random_text(ID_LETTERS, 20, choose)}", kind=OwnerKind.TEAM, name=name, created_at=ports.clock.now(), managers=1
    )
    if not ports.owners.add_team(team, by):
        raise Conflict("this id is taken: try again")
    return team


def find(id: str, ports: Ports) -> Profile:
    """Raises NotFound, also for a deleted team."""
    profile = ports.users.profiles([id])[id]
    if profile.kind is not OwnerKind.TEAM or profile.name is None:
        raise NotFound("there is no such team")
    return profile


def rename(id: str, name: str, ports: Ports) -> Profile:
    """Raises NotFound."""
    team = find(id, ports)
    if not ports.owners.rename(id, name):
        raise NotFound("there is no such team")
    return replace(team, name=name)


def invite(team: str, role: TeamRole, days: int, by: str, ports: Ports, choose: Choose = secrets.choice) -> Invited:
    """Make an invitation. It is used once, and expires after `days`."""
    now = ports.clock.now()
    id, secret = api_keys.random_text(ID_LETTERS, 12, choose), api_keys.random_text(ID_LETTERS, 32, choose)
    token = f"{team}.{id}.{secret}"
    invitation = Invitation(id, team, role, api_keys.digest(token), by, now, now + days * DAY)
    ports.owners.add_invitation(invitation)
    return Invited(invitation, token)


def accept(token: str, person: str, ports: Ports) -> Membership:
    """Become a member. Raises NotFound for a wrong, used or withdrawn token, Forbidden for an expired one, Conflict for a member."""
    team, _, rest = token.partition(".")
    invitation = ports.owners.invitation(team, rest.partition(".")[0]) if token.isascii() else None
    if invitation is None or not hmac.compare_digest(invitation.digest, api_keys.digest(token)):
        raise NotFound("there is no such invitation: it was used or withdrawn, or the token is wrong")
    now = ports.clock.now()
    if now >= invitation.expires_at:
        raise Forbidden("This invitation has expired. Ask a manager of the team for another one.")
    member = Membership(team, person, invitation.role, now)
    if _member(team, person, ports) is not None:
        raise Conflict("you are a member of this team already")
    _check_room(person, ports)
    _check_size(team, ports)
    if not ports.owners.accept(invitation, member):
        raise NotFound("there is no such invitation: it was used or withdrawn")
    return member


def add(team: str, person: str, role: TeamRole, ports: Ports) -> Membership:
    """Add a person without an invitation, for administrators. Raises NotFound for an unknown person, Conflict for a member."""
    member = Membership(team, person, role, ports.clock.now())
    _check_size(team, ports)
    if not ports.owners.add_member(member):
        if _member(team, person, ports) is not None:
            raise Conflict("this person is a member already")
        raise NotFound("there is no such user")
    return member


def member(team: str, person: str, ports: Ports) -> Membership:
    """Raises NotFound."""
    found = _member(team, person, ports)
    if found is None:
        raise NotFound("there is no such member")
    return found


def set_role(team: str, person: str, role: TeamRole, ports: Ports) -> Membership:
    """Raises NotFound, and Conflict for the last manager."""
    before = member(team, person, ports)
    if before.role is role:
        return before
    if not ports.owners.set_member_role(before, role):
        raise _refusal(before, ports)
    return replace(before, role=role)


def remove(team: str, person: str, ports: Ports) -> None:
    """Remove a member, who loses access within half a minute; tasks and jobs of the team go on. Raises NotFound, Conflict likewise."""
    before = member(team, person, ports)
    if not ports.owners.remove_member(before):
        raise _refusal(before, ports)


def delete(team: str, has_active_tasks: bool, ports: Ports) -> None:
    """Delete a team, its members, invitations, keys and receivers. Its jobs stay in the history. Raises Conflict while a task is active.

    After a minute no job of the team starts: each is cancelled when it is due. It may be repeated after a failure.
    """
    if has_active_tasks:
        raise Conflict("the team has active tasks: pause or delete them first")
    ports.users.delete(team, ports.clock.now())  # first: no key of the team works from now on
    receivers.delete_all(team, ports)
    ports.owner_alerts.delete(team)
    ports.owners.delete_team(team)
    ports.work.send([WorkItem(WorkKind.RESUME)])


def _member(team: str, person: str, ports: Ports) -> Membership | None:
    return next((each for each in ports.users.owner(person).memberships if each.team == team), None)


def _refusal(before: Membership, ports: Ports) -> Exception:
    """The reason why a member could not be changed."""
    stored = _member(before.team, before.person, ports)
    if stored == before and before.role is TeamRole.MANAGER:
        return Conflict("the team needs a manager: make another member one first")
    return Conflict("the member was changed meanwhile: try again")


def _check_room(person: str, ports: Ports) -> None:
    if len(ports.users.owner(person).memberships) >= MOST_TEAMS:
        raise Conflict(f"a person is in at most {MOST_TEAMS} teams")


def _check_size(team: str, ports: Ports) -> None:
    if len(ports.owners.members(team)) >= MOST_MEMBERS:
        raise Conflict(f"a team has at most {MOST_MEMBERS} members")


def of_caller(memberships: Sequence[Membership], ports: Ports) -> list[tuple[Profile, TeamRole]]:
    """The teams of a person, by name, with the person's roles."""
    profiles = ports.users.profiles([each.team for each in memberships])
    known = [(profiles[each.team], each.role) for each in memberships if profiles[each.team].name is not None]
    return sorted(known, key=lambda each: (each[0].name or "", each[0].id))
