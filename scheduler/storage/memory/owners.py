"""The port `Owners` in memory. It shares the profiles of the users table."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from scheduler.model.account import COGNITO, ApiKey, Invitation, Membership, OwnerKind, Principal, Profile, Role, Subject, TeamRole
from scheduler.storage.memory.accounts import MemoryUsers


class MemoryOwners:
    """Persons and teams in `users`, and those who act for them."""

    def __init__(self, users: MemoryUsers) -> None:
        self._users = users
        self._people: set[str] = set()
        self._teams: set[str] = set()
        self._persons: dict[Subject, str] = {}
        self._invitations: dict[tuple[str, str], Invitation] = {}
        self._keys: dict[str, ApiKey] = {}
        self._principals: dict[str, Principal] = {}

    def person_of(self, subject: Subject) -> str | None:
        return self._persons.get(subject)

    def add_person(self, profile: Profile, subject: Subject) -> bool:
        if subject in self._persons or profile.id in self._people:
            return False
        self._users.put(profile)
        self._people.add(profile.id)
        self._persons[subject] = profile.id
        return True

    def subjects(self, person: str) -> list[Subject]:
        return sorted(subject for subject, each in self._persons.items() if each == person)

    def link(self, subject: Subject, person: str) -> bool:
        if person not in self._people or self._persons.get(subject, person) != person:
            return False
        self._persons[subject] = person
        return True

    def unlink(self, subject: Subject, person: str) -> bool:
        if self._persons.get(subject) != person:
            return False
        del self._persons[subject]
        return True

    def set_role(self, person: str, role: Role) -> None:
        self._users.put(replace(self._profile(person), role=role))

    def set_sso_role(self, person: str, role: Role | None) -> None:
        self._users.put(replace(self._profile(person), sso_role=role))

    def people(self, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        return _page(self._people, cursor, limit)

    def erase_person(self, person: str, memberships: Sequence[Membership]) -> None:
        for each in memberships:
            self._without(each)
        self._persons = {subject: each for subject, each in self._persons.items() if each != person or subject.issuer == COGNITO}
        self._keys = {id: key for id, key in self._keys.items() if key.owner != person}
        self._users.put(replace(self._profile(person), name=None, role=Role.USER, sso_role=None, account=None))
        self._people.discard(person)

    def add_team(self, profile: Profile, manager: str) -> bool:
        if profile.id in self._users.rows:
            return False
        self._users.put(replace(profile, kind=OwnerKind.TEAM, managers=0))
        self._teams.add(profile.id)
        self._with(Membership(profile.id, manager, TeamRole.MANAGER, profile.created_at))
        return True

    def teams(self, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        return _page(self._teams, cursor, limit)

    def rename(self, team: str, name: str) -> bool:
        if team not in self._teams:
            return False
        self._users.put(replace(self._profile(team), name=name))
        return True

    def delete_team(self, team: str) -> None:
        for each in self.members(team):
            self._without(each)
        self._invitations = {key: each for key, each in self._invitations.items() if each.team != team}
        self._keys = {id: key for id, key in self._keys.items() if key.owner != team}
        self._users.put(replace(self._profile(team), name=None, managers=0))
        self._teams.discard(team)

    def members(self, team: str) -> list[Membership]:
        return sorted((each for each in self._users.memberships.values() if each.team == team), key=lambda each: each.person)

    def add_member(self, member: Membership) -> bool:
        known = (member.person, member.team) in self._users.memberships
        if known or member.team not in self._teams or member.person not in self._people:
            return False
        self._with(member)
        return True

    def set_member_role(self, before: Membership, role: TeamRole) -> bool:
        if not self._is_current(before) or (role is not TeamRole.MANAGER and self._is_last_manager(before)):
            return False
        self._without(before)
        self._with(replace(before, role=role))
        return True

    def remove_member(self, before: Membership) -> bool:
        if not self._is_current(before) or self._is_last_manager(before):
            return False
        self._without(before)
        return True

    def add_invitation(self, invitation: Invitation) -> None:
        self._invitations[invitation.team, invitation.id] = invitation

    def invitation(self, team: str, id: str) -> Invitation | None:
        return self._invitations.get((team, id))

    def invitations(self, team: str) -> list[Invitation]:
        return sorted((each for each in self._invitations.values() if each.team == team), key=lambda each: each.id)

    def accept(self, invitation: Invitation, member: Membership) -> bool:
        if self.invitation(invitation.team, invitation.id) is None or not self.add_member(member):
            return False
        return self.delete_invitation(invitation.team, invitation.id)

    def delete_invitation(self, team: str, id: str) -> bool:
        return self._invitations.pop((team, id), None) is not None

    def add_key(self, key: ApiKey) -> None:
        self._keys[key.id] = key

    def key(self, id: str) -> ApiKey | None:
        return self._keys.get(id)

    def keys(self, owner: str) -> list[ApiKey]:
        return sorted((key for key in self._keys.values() if key.owner == owner), key=lambda key: (key.created_at, key.id))

    def delete_key(self, key: ApiKey) -> bool:
        return self._keys.pop(key.id, None) is not None

    def note_key_use(self, id: str, at: int) -> None:
        if id in self._keys:
            self._keys[id] = replace(self._keys[id], used_at=at)

    def principals(self) -> list[Principal]:
        return list(self._principals.values())

    def put_principal(self, principal: Principal, *, new: bool) -> bool:
        if (principal.arn in self._principals) is new:
            return False
        self._principals[principal.arn] = principal
        return True

    def delete_principal(self, arn: str) -> bool:
        return self._principals.pop(arn, None) is not None

    def _profile(self, id: str) -> Profile:
        return self._users.rows.get(id, Profile(id))

    def _is_current(self, member: Membership) -> bool:
        stored = self._users.memberships.get((member.person, member.team))
        return stored is not None and stored.role is member.role

    def _is_last_manager(self, member: Membership) -> bool:
        return member.role is TeamRole.MANAGER and self._profile(member.team).managers <= 1

    def _with(self, member: Membership) -> None:
        self._users.memberships[member.person, member.team] = member
        self._count(member, 1)

    def _without(self, member: Membership) -> None:
        if self._users.memberships.pop((member.person, member.team), None) is not None:
            self._count(member, -1)

    def _count(self, member: Membership, added: int) -> None:
        if member.role is TeamRole.MANAGER:
            team = self._profile(member.team)
            self._users.put(replace(team, managers=team.managers + added))


def _page(ids: Iterable[str], cursor: str | None, limit: int) -> tuple[list[str], str | None]:
    after = sorted(id for id in ids if cursor is None or id > cursor)
    return after[:limit], after[limit - 1] if len(after) > limit else None
