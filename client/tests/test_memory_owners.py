"""Teams, API keys and principals of the client against the API in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import punctual
from punctual import Punctual
from punctual.testing import Memory


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory(users={"bob": "user"}) as made:
        yield made


def program(memory: Memory, key: str | None) -> Punctual:
    return Punctual(memory.url, key=key, transport=memory.transport)


def test_members_work_for_their_team_by_its_role(memory: Memory) -> None:
    ada, bob = memory.client, memory.sign_in("bob")
    team = ada.teams.create("Billing")
    job = ada.jobs.create(message="m", delay="1h", owner=team.id)
    assert job.id not in [each.id for each in ada.jobs.list(upcoming=True)]
    with pytest.raises(punctual.NotAllowed):
        bob.jobs.get(job.id, owner=team.id)
    invitation = ada.teams.invite(team.id, "viewer", expires_in_days=2)
    assert invitation.token is not None and bob.teams.accept(invitation.token).role == "viewer"
    assert [(each.name, each.role) for each in bob.me().teams] == [("Billing", "viewer")] and list(ada.teams.invitations(team.id)) == []
    bob.owner = team.id
    assert bob.jobs.get(job.id).id == job.id and bob.status().well
    with pytest.raises(punctual.NotAllowed):
        bob.jobs.cancel(job.id)
    assert ada.teams.set_member(team.id, bob.me().id, "editor").role == "editor"
    assert bob.jobs.cancel(job.id).status == "cancelled"
    assert bob.tasks.put("nightly", name="Nightly", message="m", rate="10 minutes").outcome == "created"
    assert bob.jobs.create_many([{"message": "a", "delay": "2h"}]).accepted == 1
    assert {each.username for each in bob.teams.members(team.id)} == {"bob", ada.me().username}
    bob.tasks.delete(key="nightly")
    ada.teams.remove_member(team.id, bob.me().id)
    assert list(bob.teams.list()) == [] and ada.teams.rename(team.id, "Payments").name == "Payments"
    ada.teams.delete(team.id)
    assert list(ada.teams.list(all=True)) == []


def test_a_key_does_what_its_scopes_allow_until_it_is_revoked(memory: Memory) -> None:
    ada = memory.client
    team = ada.teams.create("Imports")
    made = ada.keys.create("ci", ["jobs:*"], expires_in_days=3, owner=team.id)
    assert made.key is not None and made.owner == team.id and made.scopes == ("jobs:read", "jobs:write")
    assert [each.key for each in ada.keys.list(owner=team.id)] == [None] and ada.keys.get(made.id, owner=team.id).name == "ci"
    with program(memory, made.key) as service:
        me = service.me()
        assert (me.kind, me.owner, me.role, service.health().status) == ("key", team.id, None, "ok")
        job = service.jobs.create(message="m", delay="1h")
        assert ada.jobs.get(job.id, owner=team.id).id == job.id
        with pytest.raises(punctual.NotAllowed):
            service.tasks.create("Nightly", message="m")
    ada.keys.revoke(made.id, owner=team.id)
    assert list(ada.keys.list(owner=team.id)) == []


def test_a_leaked_key_revokes_itself(memory: Memory) -> None:
    made = memory.client.keys.create("leaked", ["jobs:read"])
    with program(memory, made.key) as service:
        service.keys.revoke_leaked(str(made.key))
    assert made.id not in [each.id for each in memory.client.keys.list()]


def test_principals_are_created_changed_and_deleted(memory: Memory) -> None:
    principals, owner = memory.client.principals, memory.client.me().id
    made = principals.create("arn:aws:iam::123456789012:role/importer", owner, ["jobs:write"])
    assert [each.id for each in principals.list()] == [made.id] and principals.get(made.id).owner == owner
    assert principals.update(made.id, scopes=["jobs:read"]).scopes == ("jobs:read",)
    principals.delete(made.id)
    assert list(principals.list()) == []
