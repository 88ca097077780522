"""The port Owners: persons, teams, and those who act for them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from scheduler.model.account import (
    COGNITO,
    ApiKey,
    Invitation,
    Membership,
    OwnerKind,
    Principal,
    Profile,
    Quotas,
    Role,
    Scope,
    Subject,
    TeamRole,
)
from scheduler.storage.aws.owners import DynamoOwners
from scheduler.storage.aws.users import DynamoUsers
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.owners import MemoryOwners
from scheduler.storage.ports import Owners, Users
from tests.contract import tables
from tests.contract.make import NOW

ANN = Profile("p-ann", Quotas(10, 2.5), name="ann", weight=2.0, role=Role.OPERATOR, account="sub-ann", created_at=NOW)
BEN = Profile("p-ben", name="ben", created_at=NOW)
OF_ANN, OF_BEN, CORP = Subject(COGNITO, "sub-ann"), Subject(COGNITO, "sub-ben"), Subject("Corp", "ann#1|x")
TEAM = Profile("team-a", kind=OwnerKind.TEAM, name="Team A", created_at=NOW, managers=1)
KEY = ApiKey("abcdefgh", "p-ann", "p-ann", "ci", frozenset({Scope.JOBS_READ, Scope.ADMIN}), "f00d", NOW, NOW + 5)
INVITATION = Invitation("i1", "team-a", TeamRole.EDITOR, "beef", "p-ann", NOW, NOW + 1_000)
ROLE = Principal("principal-1", "arn:aws:iam::123456789012:role/x", "team-a", frozenset({Scope.JOBS_WRITE}), "p-ann", NOW, "AROA1")


class Stored(NamedTuple):
    owners: Owners
    users: Users

    def role_in_team(self, person: str) -> TeamRole | None:
        """The role as both partitions have it."""
        (of_person,) = [each.role for each in self.users.owner(person).memberships if each.team == "team-a"] or [None]
        assert of_person == next((each.role for each in self.owners.members("team-a") if each.person == person), None)
        return of_person


@pytest.fixture(params=["memory", "dynamodb"])
def stored(request: pytest.FixtureRequest) -> Iterator[Stored]:
    if request.param == "memory":
        users = MemoryUsers()
        yield Stored(MemoryOwners(users), users)
    else:
        client = tables.on_moto(request, "users", tables.USERS)
        yield Stored(DynamoOwners(client, "users"), DynamoUsers(client, "users"))


@pytest.fixture
def teamed(stored: Stored) -> Stored:
    """Ann manages a team."""
    assert stored.owners.add_person(ANN, OF_ANN) and stored.owners.add_person(BEN, OF_BEN)
    assert stored.owners.add_team(TEAM, "p-ann")
    return stored


def test_a_person_is_found_by_the_subject_with_all_that_was_stored(stored: Stored) -> None:
    assert stored.owners.person_of(OF_ANN) is None
    assert stored.owners.add_person(ANN, OF_ANN)
    assert (stored.owners.person_of(OF_ANN), stored.owners.subjects("p-ann")) == ("p-ann", [OF_ANN])
    assert stored.users.owner("p-ann").profile == ANN == stored.users.profiles(["p-ann"])["p-ann"]
    assert stored.users.weights(["p-ann"]) == {"p-ann": 2.0}


def test_a_subject_and_an_id_belong_to_one_person(stored: Stored) -> None:
    assert stored.owners.add_person(ANN, OF_ANN)
    assert not stored.owners.add_person(BEN, OF_ANN) and not stored.owners.add_person(ANN, OF_BEN)
    assert stored.owners.person_of(OF_BEN) is None and stored.owners.people(None, 10) == (["p-ann"], None)


def test_a_linked_subject_leads_to_the_same_person_until_it_is_unlinked(teamed: Stored) -> None:
    owners = teamed.owners
    assert not owners.link(CORP, "p-nobody")
    assert owners.link(CORP, "p-ann") and owners.link(CORP, "p-ann")
    assert not owners.link(CORP, "p-ben") and not owners.unlink(CORP, "p-ben")
    assert owners.person_of(CORP) == "p-ann" and owners.subjects("p-ann") == [CORP, OF_ANN]
    assert owners.unlink(CORP, "p-ann") and not owners.unlink(CORP, "p-ann")
    assert owners.person_of(CORP) is None and owners.subjects("p-ann") == [OF_ANN]


def test_the_higher_role_of_both_sources_applies(teamed: Stored) -> None:
    def role() -> Role:
        return teamed.users.owner("p-ann").profile.highest_role

    teamed.owners.set_sso_role("p-ann", Role.ADMINISTRATOR)
    assert role() is Role.ADMINISTRATOR
    teamed.owners.set_sso_role("p-ann", None)
    assert role() is Role.OPERATOR
    teamed.owners.set_role("p-ann", Role.USER)
    assert role() is Role.USER and teamed.users.owner("p-ann").profile.name == "ann"


def test_people_and_teams_are_listed_by_pages(stored: Stored) -> None:
    for number in range(5):
        assert stored.owners.add_person(replace(BEN, id=f"p-{number}"), Subject(COGNITO, f"s{number}"))
        assert stored.owners.add_team(replace(TEAM, id=f"team-{number}"), f"p-{number}")
    for listed, name in ((stored.owners.people, "p"), (stored.owners.teams, "team")):
        first, cursor = listed(None, 3)
        second, end = listed(cursor, 3)
        assert [*first, *second] == [f"{name}-{number}" for number in range(5)] and end is None


def test_an_erased_person_leaves_the_state_and_no_name(teamed: Stored) -> None:
    teamed.owners.link(CORP, "p-ann")
    teamed.owners.add_key(KEY)
    teamed.users.set_disabled("p-ann", NOW)
    for _ in range(2):
        teamed.owners.erase_person("p-ann", teamed.users.owner("p-ann").memberships)
    profile = teamed.users.owner("p-ann").profile
    assert (profile.name, profile.role, profile.account, profile.disabled_at) == (None, Role.USER, None, NOW)
    assert [teamed.owners.person_of(each) for each in (OF_ANN, CORP)] == ["p-ann", None]
    assert teamed.owners.people(None, 10) == (["p-ben"], None) and teamed.owners.key(KEY.id) is None
    assert teamed.owners.members("team-a") == [] and teamed.users.owner("team-a").profile.managers == 0
    assert teamed.users.owner("team-a").profile.name == "Team A"


def test_a_team_has_its_creator_as_manager(teamed: Stored) -> None:
    assert teamed.users.owner("team-a").profile == TEAM
    assert teamed.owners.members("team-a") == [Membership("team-a", "p-ann", TeamRole.MANAGER, NOW)]
    assert teamed.role_in_team("p-ann") is TeamRole.MANAGER
    assert not teamed.owners.add_team(TEAM, "p-ben")
    assert teamed.owners.rename("team-a", "B") and teamed.users.owner("team-a").profile.name == "B"
    assert not teamed.owners.rename("team-z", "B") and not teamed.owners.rename("p-ann", "B")


def test_a_member_joins_changes_and_leaves(teamed: Stored) -> None:
    member = Membership("team-a", "p-ben", TeamRole.VIEWER, NOW + 1)
    assert teamed.owners.add_member(member) and not teamed.owners.add_member(member)
    assert not teamed.owners.set_member_role(replace(member, role=TeamRole.EDITOR), TeamRole.MANAGER), "outdated"
    assert teamed.owners.set_member_role(member, TeamRole.MANAGER)
    assert teamed.role_in_team("p-ben") is TeamRole.MANAGER and teamed.users.owner("team-a").profile.managers == 2
    assert not teamed.owners.remove_member(member), "outdated"
    assert teamed.owners.remove_member(replace(member, role=TeamRole.MANAGER))
    assert teamed.role_in_team("p-ben") is None and teamed.users.owner("team-a").profile.managers == 1


def test_nobody_joins_who_or_where_nothing_exists(teamed: Stored) -> None:
    assert not teamed.owners.add_member(Membership("team-a", "p-nobody", TeamRole.VIEWER, NOW))
    assert not teamed.owners.add_member(Membership("team-z", "p-ben", TeamRole.VIEWER, NOW))
    assert teamed.users.owner("p-ben").memberships == [] and teamed.owners.members("team-z") == []


def test_the_last_manager_stays(teamed: Stored) -> None:
    ann = Membership("team-a", "p-ann", TeamRole.MANAGER, NOW)
    assert not teamed.owners.remove_member(ann) and not teamed.owners.set_member_role(ann, TeamRole.EDITOR)
    assert teamed.role_in_team("p-ann") is TeamRole.MANAGER
    ben = Membership("team-a", "p-ben", TeamRole.MANAGER, NOW)
    assert teamed.owners.add_member(ben)
    assert teamed.owners.set_member_role(ann, TeamRole.EDITOR) and not teamed.owners.set_member_role(ben, TeamRole.EDITOR)


def test_an_invitation_is_used_once(teamed: Stored) -> None:
    owners = teamed.owners
    owners.add_invitation(INVITATION)
    assert owners.invitations("team-a") == [INVITATION] == [owners.invitation("team-a", "i1")]
    assert not owners.accept(INVITATION, Membership("team-a", "p-ann", TeamRole.EDITOR, NOW)), "a member already"
    assert owners.invitation("team-a", "i1") == INVITATION
    member = Membership("team-a", "p-ben", TeamRole.EDITOR, NOW)
    assert owners.accept(INVITATION, member) and teamed.role_in_team("p-ben") is TeamRole.EDITOR
    assert owners.remove_member(member) and not owners.accept(INVITATION, member), "used"
    owners.add_invitation(INVITATION)
    assert owners.delete_invitation("team-a", "i1") and not owners.delete_invitation("team-a", "i1")
    assert not owners.accept(INVITATION, member) and teamed.role_in_team("p-ben") is None


def test_a_deleted_team_leaves_its_state_alone(teamed: Stored) -> None:
    teamed.owners.add_invitation(INVITATION)
    teamed.owners.add_key(replace(KEY, owner="team-a"))
    teamed.users.delete("team-a", NOW)
    for _ in range(2):
        teamed.owners.delete_team("team-a")
    assert teamed.owners.members("team-a") == [] and teamed.owners.invitations("team-a") == []
    assert teamed.owners.teams(None, 9) == ([], None) and teamed.owners.key(KEY.id) is None
    profile = teamed.users.owner("team-a").profile
    assert (profile.name, profile.kind, profile.disabled_at) == (None, OwnerKind.TEAM, NOW)
    assert teamed.users.owner("p-ann").memberships == []


def test_an_api_key_is_stored_used_listed_and_revoked(stored: Stored) -> None:
    owners, later = stored.owners, replace(KEY, id="zz", created_at=NOW + 1, expires_at=None)
    owners.add_key(later)
    owners.add_key(KEY)
    assert (owners.key(KEY.id), owners.keys("p-ann"), owners.keys("p-ben")) == (KEY, [KEY, later], [])
    owners.note_key_use(KEY.id, NOW + 7)
    assert owners.key(KEY.id) == replace(KEY, used_at=NOW + 7)
    assert owners.delete_key(KEY) and not owners.delete_key(KEY)
    owners.note_key_use(KEY.id, NOW + 8)
    assert owners.key(KEY.id) is None, "its use does not revive a revoked key"
    assert owners.keys("p-ann") == [later]


def test_a_principal_is_stored_by_its_arn(stored: Stored) -> None:
    owners, other = stored.owners, replace(ROLE, id="principal-2", arn=f"{ROLE.arn}/y", unique_id=None)
    assert not owners.put_principal(ROLE, new=False) and owners.put_principal(ROLE, new=True)
    assert not owners.put_principal(ROLE, new=True) and owners.put_principal(other, new=True)
    changed = replace(ROLE, scopes=frozenset({Scope.ADMIN}), owner="p-ann")
    assert owners.put_principal(changed, new=False)
    assert sorted(owners.principals(), key=lambda each: each.id) == [changed, other]
    assert owners.delete_principal(ROLE.arn) and not owners.delete_principal(ROLE.arn)
    assert owners.principals() == [other]
