"""API keys, teams and AWS principals over HTTP, and the changes that end their access."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from lab.world.gateway import event
from lambdas import api
from lambdas.rest import audit_trail
from scheduler.accounts import api_keys
from scheduler.model.account import COGNITO, Role, Scope, Subject, TeamRole
from scheduler.model.instants import DAY
from scheduler.model.work import WorkKind
from scheduler.storage.memory.accounts import MemoryAccount
from scheduler.storage.ports import MOST_KEYS
from tests.lambdas.gateway import Answered, World, send

ANN: dict[str, Any] = {}
BOB: dict[str, Any] = {"user": "sub-bob", "username": "bob"}
CID: dict[str, Any] = {"user": "sub-cid", "username": "cid"}
OLGA: dict[str, Any] = {"user": "sub-olga", "username": "olga", "role": "operator"}
ROOT: dict[str, Any] = {"user": "sub-root", "username": "root", "role": "administrator"}
HALF_MINUTE = 30_000  # the longest time for which a process uses what it has read
ACCOUNT = "123456789012"
ARN = f"arn:aws:iam::{ACCOUNT}:role/orders"
JOB = {"message": "m"}
TASK = {"name": "n", "message": "m", "schedule": {"rate": "1 hours"}}


@pytest.fixture(autouse=True)
def people(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ann", "bob", "cid"):
        world.be(f"sub-{name}", name, Role.USER)
    monkeypatch.setattr(audit_trail, "_refused", {})


def make_key(*scopes: str, who: dict[str, Any] = ANN, owner: str | None = None, **more: Any) -> Answered:
    body = {"name": "ci", "scopes": scopes or ["jobs:read"], **more}
    return send("POST", "/keys", json_body=body, query={"owner": owner} if owner else {}, **who)


def key_of(*scopes: str, **options: Any) -> str:
    return str(make_key(*scopes, **options).data["key"])


def make_team(who: dict[str, Any] = ANN) -> str:
    return str(send("POST", "/teams", json_body={"name": "Payments"}, **who).data["id"])


def invite(team: str, role: str = "editor", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = send("POST", f"/teams/{team}/invitations", json_body={"role": role, **more}).data
    return made


def accept(token: str, who: dict[str, Any] = BOB) -> Answered:
    return send("POST", "/invitations/accept", json_body={"token": token}, **who)


def join(team: str, role: str = "editor", who: dict[str, Any] = BOB) -> None:
    assert accept(invite(team, role)["token"], who).status == 200


def members(team: str) -> dict[str, str]:
    return {each["user_id"]: each["role"] for each in send("GET", f"/teams/{team}/members", **ROOT).data["items"]}


def set_role(team: str, name: str, role: str, who: dict[str, Any] = ANN) -> Answered:
    return send("PUT", f"/teams/{team}/members/sub-{name}", json_body={"role": role}, **who)


def ends(world: World, request: Callable[[], Answered], allowed: int = 200) -> int:
    """The status with which the request is refused half a minute after a change by another process, while 200 requests run."""
    statuses = []
    for _ in range(200):
        world.clock.advance(HALF_MINUTE // 200)
        statuses.append(request().status)
    accepted = statuses.count(allowed)
    assert statuses == [allowed] * accepted + [statuses[-1]] * (200 - accepted) and accepted
    return statuses[-1]


# API keys


def test_a_new_key_has_the_documented_form_and_is_shown_once(world: World) -> None:
    made = make_key("jobs:read", expires_in_days=1).data
    assert api_keys.FORM.fullmatch(made["key"]) and api_keys.is_well_formed(made["key"])
    assert made["id"] == made["key"].split("_")[1] and (made["owner"], made["maker"]) == ("sub-ann", "sub-ann")
    stored = world.owners.key(made["id"])
    assert stored is not None and stored.digest == hashlib.sha256(made["key"].encode()).hexdigest()
    for path in ("/keys", f"/keys/{made['id']}"):
        assert made["key"].split("_")[2] not in send("GET", path).text


def test_all_bad_keys_get_the_same_refusal(world: World) -> None:
    good, expired, revoked = key_of(), make_key(expires_in_days=1).data["key"], make_key().data
    start, _, _ = good.rpartition("_")
    other = f"punctual_{good.split('_')[1]}_{'a' * 43}"
    wrong_secret = f"{other}_{api_keys._checksum(other)}"
    assert api_keys.is_well_formed(wrong_secret)
    send("DELETE", f"/keys/{revoked['id']}")
    world.clock.advance(DAY)
    unknown = api_keys._text(lambda letters: letters[1])
    bad = [wrong_secret, unknown, expired, revoked["key"], f"{start}_00000000", good.upper(), "x", "punctual_", "é"]
    answers = {send("GET", "/jobs", key=each).text for each in bad}
    answers |= {send("GET", "/key/jobs", user=None, headers=headers).text for headers in ({}, {"authorization": f"Basic {good}"})}
    (text,) = answers
    assert json.loads(text)["error"]["message"] == "The API key is not valid."
    assert {send("GET", "/jobs", key=each).status for each in bad} == {401}
    assert send("GET", "/jobs", key=good).status == 200


def test_a_key_is_accepted_only_in_its_header() -> None:
    key = key_of("jobs:read", "jobs:write")
    for name in ("key", "api_key", "token", "authorization"):
        assert send("GET", "/key/jobs", user=None, query={name: key}).status == 401
        assert send("POST", "/key/jobs", user=None, json_body=JOB | {name: key}).status == 401
        assert send("GET", "/key/jobs", user=None, headers={"x-api-key": key, "cookie": f"{name}={key}"}).status == 401


def test_the_last_use_is_stored_to_the_hour(world: World) -> None:
    made = make_key().data
    used = lambda: send("GET", f"/keys/{made['id']}").data["used_at"]  # noqa: E731
    assert used() is None
    for ms, expected in ((0, "10:00"), (api_keys.USE_MS - 1, "10:00"), (1, "11:00")):
        world.clock.advance(ms)
        send("GET", "/jobs", key=made["key"])
        assert used()[11:16] == expected


def test_scopes_limit_a_key_and_stars_stand_for_two() -> None:
    assert make_key("jobs:*", "tasks:read").data["scopes"] == ["jobs:read", "jobs:write", "tasks:read"]
    read, write = key_of("jobs:read"), key_of("jobs:*")
    assert [send("GET", path, key=read).status for path in ("/jobs", "/tasks", "/me")] == [200, 403, 200]
    assert [send("POST", "/jobs", json_body=JOB, key=key).status for key in (read, write)] == [403, 201]
    for method, path in (("GET", "/keys"), ("POST", "/keys"), ("POST", "/teams"), ("POST", "/auth/logout"), ("GET", "/users")):
        assert send(method, path, json_body={}, key=write).status == 403
    assert list(make_key("jobs:all").fields) == ["scopes"]


def test_a_key_cannot_name_another_owner(world: World) -> None:
    team = make_team()
    key = key_of("jobs:*")
    for owner in ("sub-bob", team, "nobody"):
        assert send("GET", "/jobs", key=key, query={"owner": owner}).status == 403
        assert send("POST", "/jobs", key=key, json_body=JOB, query={"owner": owner}).status == 403
    assert send("GET", "/jobs", key=key, query={"owner": "sub-ann"}).status == 200
    of_team = key_of("jobs:*", owner=team)
    assert send("POST", "/jobs", key=of_team, json_body=JOB).status == 201
    assert [job.owner for job in world.jobs.rows.values()] == [team]
    assert send("GET", "/jobs", key=of_team, query={"owner": "sub-ann"}).status == 403


def test_only_an_administrator_makes_a_key_with_the_scope_admin(world: World) -> None:
    assert make_key("admin").status == make_key("admin", who=OLGA).status == 403
    key = key_of("admin", who=ROOT)
    assert send("GET", "/jobs", key=key, query={"owner": "sub-ann"}).status == send("GET", "/users", key=key).status == 200
    world.owners.set_role("sub-root", Role.OPERATOR)
    assert ends(world, lambda: send("GET", "/users", key=key)) == 403


def _demote(world: World, team: str) -> None:
    (before,) = [each for each in world.owners.members(team) if each.person == "sub-bob"]
    assert world.owners.set_member_role(before, TeamRole.VIEWER)


def _remove(world: World, team: str) -> None:
    (before,) = [each for each in world.owners.members(team) if each.person == "sub-bob"]
    assert world.owners.remove_member(before)


def _delete_person(world: World, team: str) -> None:
    world.users.delete("sub-bob", world.clock.now())
    world.owners.erase_person("sub-bob", world.users.owner("sub-bob").memberships)


def _revoke(world: World, team: str) -> None:
    (key,) = world.owners.keys(team)
    assert world.owners.delete_key(key)


def _delete_team(world: World, team: str) -> None:
    world.users.delete(team, world.clock.now())
    world.owners.delete_team(team)


CHANGES: list[tuple[Callable[[World, str], Any], int]] = [
    (_demote, 403),
    (_remove, 403),
    (lambda world, team: world.users.set_disabled("sub-bob", 1), 401),
    (_delete_person, 401),
    (_revoke, 401),
    (lambda world, team: world.users.set_disabled(team, 1), 403),
    (_delete_team, 401),
]


@pytest.mark.parametrize(("change", "status"), CHANGES)
def test_a_key_loses_what_its_maker_or_its_owner_loses(world: World, change: Callable[[World, str], Any], status: int) -> None:
    team = make_team()
    join(team)
    key = key_of("jobs:*", who=BOB, owner=team)
    jobs = lambda: send("POST", "/jobs", key=key, json_body={})  # noqa: E731
    assert [jobs().status for _ in range(2)] == [400, 400], "a request that the key may send, with an invalid body"
    change(world, team)  # by another process
    assert ends(world, jobs, allowed=400) == status


def test_an_owner_has_at_most_a_hundred_keys(world: World) -> None:
    for _ in range(MOST_KEYS):
        world.key([Scope.JOBS_READ])
    assert MOST_KEYS == 100 and make_key().status == 409
    send("DELETE", f"/keys/{send('GET', '/keys').data['items'][0]['id']}")
    assert make_key().status == 201


def test_the_maker_and_the_managers_revoke_a_key_of_a_team() -> None:
    team = make_team()
    join(team), join(team, who=CID)
    query = {"owner": team}
    one, two = (make_key(who=BOB, owner=team).data for _ in range(2))
    assert send("DELETE", f"/keys/{one['id']}", query=query, **CID).status == 403
    assert send("DELETE", f"/keys/{one['id']}", **CID).status == 404, "it is none of cid's own"
    assert send("DELETE", f"/keys/{one['id']}", query=query, **BOB).status == 200
    assert send("DELETE", f"/keys/{two['id']}", query=query, **ANN).status == 200
    assert [send("GET", "/jobs", key=each["key"]).status for each in (one, two)] == [401, 401]


def test_a_viewer_makes_no_key_that_writes() -> None:
    team = make_team()
    join(team, "viewer")
    assert [make_key(scope, who=BOB, owner=team).status for scope in ("jobs:read", "jobs:write", "tasks:*")] == [201, 403, 403]
    assert make_key(who=CID, owner=team).status == 403


def test_a_found_key_is_revoked_by_anybody_and_in_the_trail(world: World) -> None:
    made = make_key().data
    revoke = lambda text: send("POST", "/keys/revoke", json_body={"key": text}, user=None)  # noqa: E731
    assert revoke(made["key"][:-1] + ("1" if made["key"].endswith("0") else "0")).status == 404
    assert send("GET", "/jobs", key=made["key"]).status == 200
    world.clock.advance(1)
    assert revoke(made["key"]).status == 200
    assert send("GET", "/jobs", key=made["key"]).status == 401 and revoke(made["key"]).status == 404
    entry, _ = send("GET", "/me/audit").data["items"]
    assert (entry["action"], entry["object"], entry["actor"], entry["key"]) == ("key.revoke", made["id"], "sub-ann", made["id"])
    assert (entry["status"], entry["changes"]) == (200, {})


def test_the_secret_of_a_key_is_in_no_answer_log_line_or_entry(world: World, logged: pytest.LogCaptureFixture) -> None:
    made = make_key("jobs:*").data
    key, secret = made["key"], made["key"].split("_")[2]
    answers = [
        send("GET", "/keys"),
        send("GET", f"/keys/{made['id']}"),
        *(send(method, path, key=key, json_body=JOB) for method, path in (("POST", "/jobs"), ("GET", "/me"), ("GET", "/users"))),
        send("GET", "/jobs", user=None, headers={"authorization": f"Bearer {key}"}),
        send("GET", f"/jobs/{key}"),
        send("GET", f"/keys/{key}"),
        send("DELETE", f"/keys/{key}"),
        send("POST", "/auth/login", user=None, json_body={"username": "ann", "password": key}),
        send("POST", "/keys/revoke", user=None, json_body={"key": f"{key}0"}),
        send("POST", "/keys/revoke", user=None, json_body={"key": key, "x": 1}),
        send("POST", "/keys/revoke", user=None, json_body={"key": key}),
        send("GET", "/jobs", key=key),
        send("GET", "/audit", **ROOT),
    ]
    shown = "".join(f"{each.text} {each.headers}" for each in answers)
    assert secret not in shown
    assert secret not in logged.text and not any(secret in repr(vars(record)) for record in logged.records)
    assert secret not in repr([*world.trail.rows.values()]) and secret not in repr(vars(world.owners))


# Teams


def test_an_invitation_makes_one_member_once(world: World) -> None:
    team = make_team()
    token = invite(team)["token"]
    assert send("GET", f"/teams/{team}", **BOB).status == 404, "strangers do not learn that the team exists"
    assert accept(token).data["role"] == "editor"
    assert accept(token).status == accept(token, CID).status == 404
    assert members(team) == {"sub-ann": "manager", "sub-bob": "editor"}
    assert accept(invite(team)["token"]).status == 409, "a member already"
    assert token.rpartition(".")[2] not in repr([*world.trail.rows.values()]) + repr(vars(world.owners))


def test_an_invitation_expires_is_withdrawn_and_is_for_one_team(world: World) -> None:
    team, other = make_team(), make_team(CID)
    old, withdrawn, good = invite(team, expires_in_days=1), invite(team), invite(team, expires_in_days=30)
    assert send("DELETE", f"/teams/{team}/invitations/{withdrawn['id']}").status == 200
    world.clock.advance(86_400_000)
    assert accept(old["token"]).status == 403 and accept(withdrawn["token"]).status == 404
    assert accept(good["token"].replace(team, other)).status == 404, "a token of another team"
    for wrong in (good["token"][:-1], f"{good['token']}a", f"{team}.{good['id']}.", good["id"], "..", "é"):
        assert accept(wrong).status == 404
    assert accept(good["token"]).status == 200


def test_a_person_who_left_may_be_invited_again() -> None:
    team = make_team()
    join(team)
    assert send("DELETE", f"/teams/{team}/members/sub-bob", **BOB).status == 200
    join(team, "viewer")
    assert members(team)["sub-bob"] == "viewer"


def test_each_role_in_a_team_includes_the_lower_ones() -> None:
    team = make_team()
    join(team, "viewer"), join(team, "editor", CID)
    query = {"owner": team}
    assert [send("GET", "/jobs", query=query, **who).status for who in (ANN, BOB, CID, {**BOB, "user": "sub-dan"})] == [200, 200, 200, 403]
    assert [send("POST", "/jobs", json_body=JOB, query=query, **who).status for who in (ANN, BOB, CID)] == [201, 403, 201]
    for who in (BOB, CID):
        assert send("POST", f"/teams/{team}/invitations", json_body={}, **who).status == 403
        assert send("PATCH", f"/teams/{team}", json_body={"name": "mine"}, **who).status == 403
        assert send("DELETE", f"/teams/{team}", **who).status == 403
        assert set_role(team, "bob", "manager", who).status == 403
        assert send("DELETE", f"/teams/{team}/members/sub-ann", **who).status == 403
    assert send("GET", "/me", **BOB).data["teams"] == [{"id": team, "name": "Payments", "role": "viewer"}]


def test_a_team_keeps_a_manager() -> None:
    team = make_team()
    assert set_role(team, "ann", "editor").status == send("DELETE", f"/teams/{team}/members/sub-ann").status == 409
    join(team, "manager")
    assert set_role(team, "ann", "editor").status == 200
    assert send("DELETE", f"/teams/{team}/members/sub-bob", **BOB).status == 409


def test_of_two_managers_who_demote_each_other_at_once_one_remains(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    team = make_team()
    join(team, "manager")
    real, first = world.owners.set_member_role, []

    def raced(*change: Any) -> bool:
        monkeypatch.setattr(world.owners, "set_member_role", real)
        first.append(set_role(team, "ann", "viewer", BOB).status)
        return real(*change)

    monkeypatch.setattr(world.owners, "set_member_role", raced)
    assert (set_role(team, "bob", "viewer").status, first) == (409, [200])
    assert members(team) == {"sub-ann": "viewer", "sub-bob": "manager"}


@pytest.mark.long
def test_a_removed_member_loses_access_and_the_tasks_go_on(world: World) -> None:
    team = make_team()
    join(team)
    query = {"owner": team}
    task = send("POST", "/tasks", json_body=TASK, query=query, **BOB).data["id"]
    _remove(world, team)  # by another process
    bob = {**BOB, "role": None}
    assert ends(world, lambda: send("GET", "/tasks", query=query, **bob)) == 403
    shown = send("GET", f"/tasks/{task}", query=query).data
    assert shown["status"] == "active" and shown["next_runs"] is not None
    assert send("POST", f"/tasks/{task}/run", query=query).status == 201


def test_a_team_with_an_active_task_cannot_be_deleted(world: World) -> None:
    team = make_team()
    query = {"owner": team}
    key = key_of("jobs:*", owner=team)
    task = send("POST", "/tasks", json_body=TASK, query=query).data["id"]
    assert send("DELETE", f"/teams/{team}").status == 409
    send("POST", f"/tasks/{task}/pause", query=query)
    send("POST", "/jobs", json_body=JOB | {"delay": "1h"}, query=query)
    world.work.queued.clear()
    assert send("DELETE", f"/teams/{team}").status == 200
    assert world.users.barred().deleted == {team}, "its jobs are cancelled when they are due"
    assert [each.item.kind for each in world.work.queued.values()] == [WorkKind.RESUME]
    assert send("GET", f"/teams/{team}").status == send("GET", f"/teams/{team}", **ROOT).status == 404
    assert send("GET", "/jobs", query=query).status == 403 and send("GET", "/jobs", key=key).status == 401
    assert not world.owners.members(team) and not world.owners.keys(team) and send("GET", "/me").data["teams"] == []


def test_an_operator_sees_all_teams_and_an_administrator_adopts_them() -> None:
    team = make_team()
    assert send("GET", "/teams", query={"all": "true"}, **BOB).status == 403
    assert [(each["id"], each["role"]) for each in send("GET", "/teams", query={"all": "true"}, **OLGA).data["items"]] == [(team, None)]
    assert send("GET", f"/teams/{team}/members", **OLGA).status == send("GET", "/jobs", query={"owner": team}, **OLGA).status == 200
    assert send("PATCH", f"/teams/{team}", json_body={"name": "x"}, **OLGA).status == 403
    assert set_role(team, "olga", "manager", OLGA).status == 403
    assert set_role(team, "root", "manager", ROOT).data["role"] == "manager"
    assert set_role(team, "nobody", "manager", ROOT).status == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/keys", {"name": "n", "scopes": ["jobs:read"], "owner": "sub-bob"}),
        ("POST", "/keys", {"name": "n", "scopes": ["jobs:read"], "maker": "sub-root"}),
        ("POST", "/keys", {"name": "n", "scopes": ["jobs:read"], "digest": "0"}),
        ("POST", "/teams", {"name": "n", "role": "manager"}),
        ("POST", "/teams", {"name": "n", "id": "team-x"}),
        ("PATCH", "/teams/{team}", {"name": "n", "managers": 0}),
        ("PUT", "/teams/{team}/members/sub-ann", {"role": "manager", "user_id": "sub-bob"}),
        ("POST", "/teams/{team}/invitations", {"role": "viewer", "team": "team-other"}),
        ("POST", "/teams/{team}/invitations", {"role": "viewer", "made_by": "sub-bob"}),
        ("POST", "/invitations/accept", {"token": "t", "role": "manager"}),
        ("POST", "/invitations/accept", {"token": "t", "person": "sub-bob"}),
        ("POST", "/principals", {"arn": ARN, "owner": "sub-ann", "scopes": ["jobs:read"], "made_by": "sub-bob"}),
        ("POST", "/principals", {"arn": ARN, "owner": "sub-ann", "scopes": ["jobs:read"], "id": "principal-x"}),
        ("POST", "/jobs", JOB | {"owner": "sub-bob"}),
        ("POST", "/tasks", TASK | {"owner": "sub-bob"}),
    ],
)
def test_no_body_sets_an_owner_a_maker_or_a_role_of_its_own(method: str, path: str, body: dict[str, Any], world: World) -> None:
    team = make_team(ROOT)
    before = repr(vars(world.owners))
    refused = send(method, path.format(team=team), json_body=body, **ROOT)
    assert refused.status == 400 and list(refused.fields) == [[*body][-1]]
    assert repr(vars(world.owners)) == before


# AWS principals


def map_role(arn: str = ARN, owner: str = "sub-ann", *scopes: str, **more: Any) -> Answered:
    body = {"arn": arn, "owner": owner, "scopes": scopes or ["jobs:*"], **more}
    return send("POST", "/principals", json_body=body, **ROOT)


def by_role(arn: str = ARN, method: str = "GET", path: str = "/jobs", *, account: str = ACCOUNT, **rest: Any) -> Answered:
    return send(method, f"/aws/{account}{path}", role_arn=arn, **rest)


def test_a_mapped_role_acts_for_its_owner_within_its_scopes(world: World) -> None:
    assert by_role().status == 403
    map_role()
    assert by_role(ARN, "POST", json_body=JOB).status == 201
    assert [job.owner for job in world.jobs.rows.values()] == ["sub-ann"]
    assert by_role(path="/tasks").status == by_role(path="/keys").status == by_role(query={"owner": "sub-bob"}).status == 403
    me = by_role(path="/me").data
    assert (me["kind"], me["scopes"]) == ("principal", ["jobs:read", "jobs:write"])


@pytest.mark.parametrize(
    ("mapped", "arn", "status"),
    [
        (ARN, ARN, 200),
        (ARN, f"arn:aws:sts::{ACCOUNT}:assumed-role/orders/session", 200),
        (ARN, f"{ARN}2", 403),
        (ARN, f"arn:aws:iam::{ACCOUNT}:role/team/orders", 403),
        (f"arn:aws:iam::{ACCOUNT}:role/team/orders", f"arn:aws:iam::{ACCOUNT}:role/team/orders", 200),
        (f"arn:aws:iam::{ACCOUNT}:role/team/orders", ARN, 403),
        (f"arn:aws:iam::{ACCOUNT}:role/order*", ARN, 200),
        (f"arn:aws:iam::{ACCOUNT}:role/order*", f"arn:aws:iam::{ACCOUNT}:role/other", 403),
        (f"arn:aws:iam::{ACCOUNT}:role/order.", ARN, 403),
        (f"arn:aws:iam::{ACCOUNT}:role/*", f"arn:aws:iam::{ACCOUNT}:role/*", 401),
        (f"arn:aws:iam::{ACCOUNT}:role/*", f"arn:aws:iam::{ACCOUNT}:user/orders", 401),
        (f"arn:aws:iam::{ACCOUNT}:role/*", "arn:aws:iam::210987654321:role/orders", 401),
        ("arn:aws:iam::210987654321:role/orders", "arn:aws:iam::210987654321:role/orders", 401),
        (f"arn:aws:iam::{ACCOUNT}:role/*", f"arn:aws:iam::{ACCOUNT}:role/orders\n", 401),
        (f"arn:aws:iam::{ACCOUNT}:role/*", "arn:aws:iam::１２３４５６７８９０１２:role/orders", 401),
    ],
)
def test_a_mapping_fits_the_role_and_no_other(mapped: str, arn: str, status: int) -> None:
    assert map_role(mapped).status == 201
    assert by_role(arn).status == status


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::*:role/orders",
        "arn:aws:iam::12345678901:role/orders",
        "arn:aws:iam::１２３４５６７８９０１２:role/orders",
        "arn:aws:iam::123456789012:user/orders",
        "arn:aws:sts::123456789012:assumed-role/orders/s",
        "arn:aws:iam::123456789012:role/",
        "arn:aws:iam::123456789012:role/a b",
        "*",
    ],
)
def test_a_mapping_names_an_account_and_a_role(arn: str, world: World) -> None:
    assert list(map_role(arn).fields) == ["arn"] and not world.owners.principals()


def test_two_mappings_that_fit_are_refused_as_none(world: World) -> None:
    unknown = by_role().text
    map_role()
    world.clock.advance(HALF_MINUTE)
    assert by_role().status == 200
    made = map_role(f"arn:aws:iam::{ACCOUNT}:role/ord*", "sub-bob").data
    assert by_role().text == unknown and json.loads(unknown)["error"]["message"] == "This AWS role may not act here."
    assert map_role().status == 409, "one mapping for each ARN"
    send("DELETE", f"/principals/{made['id']}", **ROOT)
    assert by_role().status == 200


@pytest.mark.parametrize(
    "change",
    [
        lambda world: world.owners.delete_principal(ARN),
        lambda world: world.users.set_disabled("sub-ann", 1),
        lambda world: world.users.delete("sub-ann", 1),
    ],
)
def test_a_role_loses_access_with_its_mapping_and_its_owner(world: World, change: Callable[[World], Any]) -> None:
    map_role()
    assert by_role().status == 200
    change(world)  # by another process
    assert ends(world, by_role) == 403


def claimed(path: str = f"/aws/{ACCOUNT}/jobs", **claims: str) -> int:
    """The status of a request with a role's token that has other claims."""
    of_role = event("GET", f"/api/v1/aws/{ACCOUNT}/jobs", role_arn=ARN)["requestContext"]["authorizer"]["jwt"]["claims"]
    made = event("GET", f"/api/v1{path}")
    made["requestContext"]["authorizer"] = {"jwt": {"claims": of_role | claims}}
    return int(api.handler(made, None)["statusCode"])


def test_a_token_of_another_issuer_account_or_lifetime_is_refused() -> None:
    map_role()
    assert claimed() == claimed(iat="1795168800", exp="1795169700") == 200
    assert claimed(iss="https://issuer.example/210987654321") == claimed(iss="") == 401
    assert claimed(iat="1795168800", exp="1795169701") == 401, "901 s"
    assert claimed("/aws/210987654321/jobs") == 401
    assert claimed("/aws/１２３４５６７８９０１２/jobs") in (401, 404)
    assert claimed("/aws/12345678901/jobs") in (401, 404)


# Credentials on other paths


def test_a_credential_works_on_its_own_path_only() -> None:
    map_role()
    key = key_of("jobs:*")
    assert send("GET", "/key/jobs", headers={"authorization": "Bearer token"}).status == 401, "a token of the pool"
    assert send("GET", "/jobs", user=None, headers={"authorization": f"Bearer {key}"}).status == 401
    assert claimed("/jobs") == claimed("/key/jobs") == 401, "the claims of a role"
    made = event("GET", f"/api/v1/aws/{ACCOUNT}/jobs", headers={"authorization": f"Bearer {key}"})
    assert api.handler(made, None)["statusCode"] == 401, "the claims of a person"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("GET", "/auth/sso"), ("POST", "/auth/login"), ("POST", "/auth/refresh"), ("POST", "/keys/revoke")],
)
def test_open_routes_are_not_below_the_other_paths(method: str, path: str) -> None:
    map_role()
    assert send(method, path, json_body={}, key=key_of("jobs:*")).status == 404
    assert by_role(ARN, method, path, json_body={}).status == 404


def test_a_refused_program_leaves_one_entry_a_minute(world: World) -> None:
    key = key_of("jobs:read")
    id = key.split("_")[1]
    refused = lambda: [each for each in send("GET", "/audit", **ROOT).data["items"] if each["action"] == "access.refuse"]  # noqa: E731
    for _ in range(3):
        assert send("POST", "/jobs", key=key, json_body=JOB).status == 403
        assert by_role().status == 403
    assert sorted((each["actor"], each["key"]) for each in refused()) == [(ARN, None), ("sub-ann", id)]
    world.clock.advance(audit_trail.REFUSALS_MS)
    send("POST", "/jobs", key=key, json_body=JOB)
    assert len(refused()) == 3
    send("GET", "/users", **BOB)
    assert len(refused()) == 3, "a person sees the refusal"


def test_a_key_that_is_not_valid_leaves_one_entry_a_minute(world: World) -> None:
    """It tells the caller nothing, and the owner that a program still uses an old key, or that somebody tries secrets."""
    team = make_team()
    kept, revoked = key_of(owner=team), make_key().data
    expired = make_key(expires_in_days=1).data
    send("DELETE", f"/keys/{revoked['id']}")
    start = f"{kept[:25]}_{'a' * 43}"
    world.clock.advance(DAY)
    world.trail.rows.clear()
    for text in (f"{start}_{api_keys._checksum(start)}", expired["key"], revoked["key"], kept[:-1]) * 3:
        assert send("GET", "/jobs", key=text).status == 401
    noted = {(each.actor, each.key, each.owner, each.object) for each in world.trail.rows.values()}
    assert noted == {
        ("sub-ann", kept.split("_")[1], team, None),
        ("sub-ann", expired["id"], "sub-ann", None),
        ("unknown", None, "system", revoked["id"]),
    }
    assert [(each.action, each.status) for each in world.trail.rows.values()] == [("access.refuse", 401)] * 3
    for number in range(20):
        start = f"punctual_{'abcdefghijklmnopqrst'[number] * 16}_{'a' * 43}"
        assert send("GET", "/jobs", key=f"{start}_{api_keys._checksum(start)}").status == 401
    assert len(world.trail.rows) == 3, "keys that nobody has share one entry"


def test_a_role_token_that_lasts_too_long_leaves_an_entry(world: World) -> None:
    map_role()
    assert claimed(iat="1795168800", exp="1795169701") == 401
    assert [(each.actor, each.status) for each in world.trail.rows.values() if each.action == "access.refuse"] == [(ARN, 401)]


def test_the_sessions_of_one_role_are_one_program(world: World) -> None:
    for number in range(5):
        by_role(f"arn:aws:sts::{ACCOUNT}:assumed-role/orders/session-{number}")
    assert [entry.actor for entry in world.trail.rows.values()] == [ARN]


# Deletion


def test_the_name_of_a_deleted_person_is_erased_everywhere(world: World) -> None:
    body = {"username": "Maximilian", "password": "Correct-horse-1", "role": "administrator"}
    id = send("POST", "/users", json_body=body, **ROOT).data["id"]
    max: dict[str, Any] = {"user": id, "role": None}
    team = make_team()
    send("PUT", f"/teams/{team}/members/{id}", json_body={"role": "viewer"}, **ROOT)
    send("POST", "/jobs", json_body=JOB)
    send("POST", "/system/pause", json_body={"lane": "one-time", "reason": "works"}, **max)
    names = lambda: [  # noqa: E731
        send("GET", path, query=query, **ROOT).text
        for path, query in (
            ("/users", {}),
            ("/audit", {}),
            ("/system", {}),
            ("/status", {"scope": "all"}),
            (f"/teams/{team}/members", {}),
            ("/jobs", {"owner": "sub-ann"}),
        )
    ]
    world.clock.advance(HALF_MINUTE)
    assert ["Maximilian" in text for text in names()] == [True] * 6
    assert send("DELETE", f"/users/{id}", **ROOT).status == 200
    world.clock.advance(HALF_MINUTE)
    assert ["Maximilian" in text for text in names()] == [False] * 6
    (pause,) = [each for each in send("GET", "/audit", **ROOT).data["items"] if each["action"] == "system.pause"]
    assert (pause["actor"], pause["actor_name"]) == (id, None)
    stored = [world.users.rows, world.trail.rows, vars(world.owners), world.ledger.watched(), world.identity.rows]
    assert "Maximilian" not in repr(stored)


def test_a_token_of_a_deleted_person_makes_no_new_person(world: World) -> None:
    account = world.owners.subjects("sub-bob")[0].id
    assert send("DELETE", "/users/sub-bob", **ROOT).status == 200
    for _ in range(3):
        world.clock.advance(HALF_MINUTE)
        assert send("GET", "/jobs", user=account, username="bob", role=None).status == 403
    assert world.owners.person_of(Subject(COGNITO, account)) == "sub-bob"
    assert [each["username"] for each in send("GET", "/users", **ROOT).data["items"]] == ["ann", "cid", "root"]


def test_a_team_whose_last_manager_is_deleted_is_left_to_administrators(world: World) -> None:
    team = make_team()
    join(team)
    assert send("DELETE", "/users/sub-ann", **ROOT).status == 200
    assert members(team) == {"sub-bob": "editor"}
    assert set_role(team, "bob", "manager", BOB).status == 403
    assert set_role(team, "bob", "manager", ROOT).status == 200
    assert send("PATCH", f"/teams/{team}", json_body={"name": "Ours"}, **BOB).status == 200


def test_a_linked_subject_without_an_account_keeps_no_session(world: World) -> None:
    world.owners.link(Subject("corp", "bob@example.com"), "sub-bob")
    assert send("PUT", "/users/sub-bob/password", json_body={"password": "Correct-horse-2"}, **ROOT).status == 200
    assert world.identity.signed_out == ["sub-bob"]


def test_the_accounts_of_single_sign_on_are_deleted_with_the_person(world: World) -> None:
    world.identity.rows["pool-subject"] = MemoryAccount("corp_bob@example.com", "")
    world.owners.link(Subject("corp", "bob@example.com"), "sub-bob")
    assert send("DELETE", "/users/sub-bob", **ROOT).status == 200
    assert not {"pool-subject", "sub-bob"} & world.identity.rows.keys()
    assert world.owners.person_of(Subject("corp", "bob@example.com")) is None
