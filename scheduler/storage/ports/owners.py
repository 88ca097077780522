"""Persons and teams, and those who act for them: subjects, members, invitations, API keys and AWS principals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from scheduler.model.account import ApiKey, Invitation, Membership, Principal, Profile, Role, Subject, TeamRole

MOST_KEYS = 100  # API keys of one owner: a list reads them all
MOST_PRINCIPALS = 1_000  # of a stage: each process of the API reads them all


class Owners(Protocol):
    """The records of persons and teams beside those of `Users`. All reads are strongly consistent.

    A method that returns a bool returns False if the write's condition was false; then nothing was written.
    """

    def person_of(self, subject: Subject) -> str | None:
        """Return the id of the person that signs in as this subject; None if nobody does."""

    def add_person(self, profile: Profile, subject: Subject) -> bool:
        """Store a new person with the first subject. False if the subject has a person or the id is taken."""

    def subjects(self, person: str) -> list[Subject]:
        """Return the subjects as which a person signs in."""

    def link(self, subject: Subject, person: str) -> bool:
        """Let a person sign in as this subject too. False if another person does, or if there is no such person. Idempotent."""

    def unlink(self, subject: Subject, person: str) -> bool:
        """Take a subject away from a person. False if it is not theirs."""

    def set_role(self, person: str, role: Role) -> None:
        """Set the role that administrators gave. The person exists."""

    def set_sso_role(self, person: str, role: Role | None) -> None:
        """Set the role by the groups of the identity provider. The person exists."""

    def people(self, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        """Return a page of the ids of all persons, and the cursor of the next page: the last id of this one."""

    def erase_person(self, person: str, memberships: Sequence[Membership]) -> None:
        """Delete all of a person but the profile's state: the name, the role, the keys, these memberships, the subjects at providers.

        The subject of an account stays: a token that the deleted account has left must not make a new person. Idempotent.
        """

    def add_team(self, profile: Profile, manager: str) -> bool:
        """Store a new team with its first manager. False if the id is taken."""

    def teams(self, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
        """Return a page of the ids of all teams, likewise."""

    def rename(self, team: str, name: str) -> bool:
        """Set the name of a team. False if there is no such team."""

    def delete_team(self, team: str) -> None:
        """Delete a team's members, invitations and keys, and its name. Idempotent."""

    def members(self, team: str) -> list[Membership]:
        """Return the members of a team."""

    def add_member(self, member: Membership) -> bool:
        """Add a member. False if the person is one already, or if the team or the person does not exist."""

    def set_member_role(self, before: Membership, role: TeamRole) -> bool:
        """Change a member's role. False if `before` is outdated, or if this would take away the last manager."""

    def remove_member(self, before: Membership) -> bool:
        """Remove a member. False if `before` is outdated, or if this would take away the last manager."""

    def add_invitation(self, invitation: Invitation) -> None:
        """Store a new invitation."""

    def invitation(self, team: str, id: str) -> Invitation | None:
        """Return an invitation, also an expired one; None if it was used or withdrawn."""

    def invitations(self, team: str) -> list[Invitation]:
        """Return the invitations of a team that were neither used nor withdrawn."""

    def accept(self, invitation: Invitation, member: Membership) -> bool:
        """Use an invitation: it is gone, and the person is a member. False if it is gone already, or as for `add_member`."""

    def delete_invitation(self, team: str, id: str) -> bool:
        """Withdraw an invitation. False if there is none."""

    def add_key(self, key: ApiKey) -> None:
        """Store a new API key."""

    def key(self, id: str) -> ApiKey | None:
        """Return an API key, also an expired one; None if it was revoked or never existed."""

    def keys(self, owner: str) -> list[ApiKey]:
        """Return the API keys of an owner."""

    def delete_key(self, key: ApiKey) -> bool:
        """Revoke an API key. False if it is revoked already."""

    def note_key_use(self, id: str, at: int) -> None:
        """Store when a key was used. Nothing is stored for a revoked key."""

    def principals(self) -> list[Principal]:
        """Return all AWS principals, in no order."""

    def put_principal(self, principal: Principal, *, new: bool) -> bool:
        """Store a principal by its ARN. False if it is stored (`new`), or if it is not."""

    def delete_principal(self, arn: str) -> bool:
        """Delete a principal. False if there is none."""
