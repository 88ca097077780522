"""Users, quotas and the audit trail over HTTP, as administrators and users see them."""

from dataclasses import replace
from typing import Any

import pytest

from lambdas.rest import access
from scheduler.accounts.audit import HIDDEN
from scheduler.model.account import Quotas, Scope
from scheduler.model.errors import Unauthorized, Unavailable
from scheduler.model.work import WorkKind
from tests.lambdas.gateway import Answered, World, send
from tests.unit.stage import Wrapped

ADMIN = {"role": "administrator"}
NEW = {"username": "eve", "password": "Correct-horse-1"}
PEOPLE = ["sub-ann"]  # ann, who sends the request


def create(**more: Any) -> Answered:
    return send("POST", "/users", json_body=NEW | more, **ADMIN)


def test_a_created_user_is_returned_with_their_settings(world: World) -> None:
    made = create(role="operator", job_weight=2.5, quotas={"max_jobs": 7})
    assert made.status == 201 and made.headers["Location"] == f"/api/v1/users/{made.data['id']}"
    told = {name: made.data[name] for name in ("username", "role", "enabled", "job_weight", "quotas", "effective_quotas")}
    assert told == {
        "username": "eve",
        "role": "operator",
        "enabled": True,
        "job_weight": 2.5,
        "quotas": {"max_jobs": 7, "creates_per_second": None},
        "effective_quotas": {"max_jobs": 7, "creates_per_second": 1_000.0},
    }
    assert send("GET", f"/users/{made.data['id']}", **ADMIN).data == made.data
    assert world.users.weights([made.data["id"]]) == {made.data["id"]: 2.5}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"username": "a b"}, "username"),
        ({"username": "eve@example.com"}, "username"),
        ({"username": "0b9a3f52-6f0e-4d3c-9b61-0a2f5f1d9c11"}, "username"),
        ({"password": ""}, "password"),
        ({"password": "short"}, "password"),
        ({"password": "Correct horse 1-"}, "password"),
        ({"password": "Correct-horse-1\n"}, "password"),
        ({"password": "aA1-" * 65}, "password"),
        ({"role": "king"}, "role"),
        ({"job_weight": 0}, "job_weight"),
        ({"job_weight": 0.009}, "job_weight"),
        ({"job_weight": 1_001}, "job_weight"),
        ({"quotas": {"max_jobs": -1}}, "quotas.max_jobs"),
        ({"quotas": {"creates_per_second": 0}}, "quotas.creates_per_second"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_an_invalid_user_is_refused_by_field_and_not_created(world: World, wrong: dict[str, Any], field: str) -> None:
    refused = create(**wrong)
    assert refused.status == 400 and list(refused.fields) == [field]
    assert list(world.identity.rows) == list(world.users.rows) == PEOPLE


def test_a_user_name_is_unique(world: World) -> None:
    create()
    assert create(username="EVE").status == 409
    assert [each.username for each in world.identity.rows.values()] == ["ann", "eve"]


def test_only_the_given_fields_of_a_user_change(world: World) -> None:
    id = create(job_weight=3.0, quotas={"creates_per_second": 5}).data["id"]
    changed = send("PATCH", f"/users/{id}", json_body={"role": "administrator"}, **ADMIN).data
    assert (changed["role"], changed["job_weight"], changed["quotas"]["creates_per_second"]) == ("administrator", 3.0, 5.0)
    changed = send("PATCH", f"/users/{id}", json_body={"job_weight": 0.5, "quotas": {}}, **ADMIN).data
    assert (changed["role"], changed["job_weight"], changed["quotas"]["creates_per_second"]) == ("administrator", 0.5, None)
    assert send("GET", f"/users/{id}", **ADMIN).data == changed
    assert world.users.weights([id]) == {id: 0.5}


@pytest.mark.parametrize("body", [{}, {"role": None}, {"job_weight": "2"}, {"username": "x"}])
def test_an_empty_change_or_one_of_fixed_fields_is_refused(world: World, body: dict[str, Any]) -> None:
    id = create().data["id"]
    assert send("PATCH", f"/users/{id}", json_body=body, **ADMIN).status == 400


@pytest.mark.parametrize("id", ["nobody", "00000000-0000-4000-8000-999999999999", "a%23b", "a#user"])
def test_an_unknown_user_is_not_found(world: World, id: str) -> None:
    assert send("GET", f"/users/{id}", **ADMIN).status == 404
    assert send("PATCH", f"/users/{id}", json_body={"job_weight": 1.0}, **ADMIN).status == 404
    assert send("POST", f"/users/{id}/disable", **ADMIN).status == 404
    assert list(world.users.rows) == PEOPLE


def test_administrators_cannot_lock_themselves_out(world: World) -> None:
    id = create(role="administrator").data["id"]
    assert send("POST", f"/users/{id}/disable", user=id, **ADMIN).status == 409
    assert send("PATCH", f"/users/{id}", json_body={"role": "user"}, user=id, **ADMIN).status == 409
    assert send("PATCH", f"/users/{id}", json_body={"role": "administrator"}, user=id, **ADMIN).status == 200


def test_the_tokens_of_a_disabled_user_end_within_half_a_minute(world: World) -> None:
    id = create().data["id"]
    assert send("GET", "/jobs", user=id).status == 200
    world.users.set_disabled(id, world.clock.at)  # by another process
    world.clock.advance(30_000)
    refused = send("GET", "/jobs", user=id)
    assert (refused.status, refused.error["message"]) == (403, "This account is disabled.")
    assert send("POST", f"/users/{id}/enable", **ADMIN).data["enabled"] is True
    assert send("GET", "/jobs", user=id).status == 200


def account_of(id: str, world: World) -> str:
    """The subject of a person's account, which is not the person's id."""
    (subject,) = world.owners.subjects(id)
    assert subject.id != id
    return subject.id


def other_processes_know(world: World) -> None:
    """Another process of the API has read the profile shortly before: it reads the change within half a minute."""
    world.clock.advance(30_000)


CHANGE = {"current_password": "right", "new_password": "Another-right-1"}
BEARER = {"headers": {"authorization": "Bearer token"}}


def test_a_changed_password_ends_all_sessions_and_begins_a_new_one(world: World) -> None:
    before = world.clock.at
    assert send("GET", "/jobs", signed_in=before).status == 200
    changed = send("POST", "/auth/password", json_body=CHANGE, signed_in=before, **BEARER).data
    assert (changed["changed"], changed["token"], changed["refresh_token"]) == (True, "token", "fresh")
    assert world.identity.signed_out == ["sub-ann"]
    new = world.clock.at
    for path in ("/jobs", "/me", "/types"):
        refused = send("GET", path, signed_in=before)
        assert (refused.status, refused.error["message"]) == (401, "This session has ended. Sign in again.")
        assert send("GET", path, signed_in=new).status == 200
    assert send("GET", "/jobs", user="sub-ben", signed_in=before).status == 200


def test_a_token_of_the_second_in_which_the_password_changed_is_refused(world: World) -> None:
    send("POST", "/auth/password", json_body=CHANGE, **BEARER)
    assert send("GET", "/me").status == 401, "the token has no time of sign-in: the time at which it was issued counts"


def test_a_wrong_current_password_ends_no_session(world: World) -> None:
    assert send("POST", "/auth/password", json_body=CHANGE | {"current_password": "wrong"}, **BEARER).status == 400
    assert world.identity.signed_out == [] and send("GET", "/me").status == 200


def test_a_password_that_is_changed_without_a_new_session_is_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    login = world.identity.login

    def refuses(username: str, password: str) -> Any:
        if password != "right":
            raise Unauthorized
        return login(username, password)

    monkeypatch.setattr(world.identity, "login", refuses)
    changed = send("POST", "/auth/password", json_body=CHANGE, **BEARER)
    assert changed.data == {"changed": True, "token": None, "expire": None, "refresh_token": None}


def test_a_password_set_by_an_administrator_ends_the_sessions(world: World) -> None:
    id, before = create().data["id"], world.clock.at
    assert send("GET", "/jobs", user=id, signed_in=before).status == 200
    assert send("PUT", f"/users/{id}/password", json_body={"password": "Correct-horse-2"}, **ADMIN).status == 200
    assert world.identity.signed_out == [account_of(id, world)]
    assert send("GET", "/jobs", user=id, signed_in=world.clock.at).status == 200, "a sign-in right after the answer"
    other_processes_know(world)
    assert send("GET", "/jobs", user=id, signed_in=before).status == 401
    assert send("GET", "/jobs", user=id, signed_in=world.clock.at).status == 200


@pytest.mark.parametrize(
    ("before", "after", "ends"),
    [
        ("administrator", "user", True),
        ("administrator", "operator", True),
        ("operator", "user", True),
        ("user", "administrator", False),
        ("operator", "operator", False),
    ],
)
def test_a_lower_role_ends_the_sessions(before: str, after: str, ends: bool, world: World) -> None:
    id, signed_in = create(role=before).data["id"], world.clock.at
    assert send("PATCH", f"/users/{id}", json_body={"role": after}, **ADMIN).data["role"] == after
    assert world.identity.signed_out == ([account_of(id, world)] if ends else [])
    other_processes_know(world)
    assert send("GET", "/jobs", user=id, signed_in=signed_in, role=None).status == (401 if ends else 200)
    assert send("GET", "/jobs", user=id, signed_in=world.clock.at).status == 200


def test_a_lower_role_ends_the_sessions_even_if_the_sign_out_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    id, signed_in = create(role="administrator").data["id"], world.clock.at

    def refuses(id: str) -> None:
        raise Unavailable

    monkeypatch.setattr(world.identity, "sign_out", refuses)
    assert send("PATCH", f"/users/{id}", json_body={"role": "user"}, **ADMIN).status == 503
    other_processes_know(world)
    assert send("POST", "/users", json_body=NEW, user=id, signed_in=signed_in, **ADMIN).status == 401


def test_another_process_refuses_ended_sessions_within_half_a_minute(world: World) -> None:
    assert send("GET", "/me").status == 200
    world.users.set_sessions_since("sub-ann", world.clock.at + 500)  # by another process
    other_processes_know(world)
    assert send("GET", "/me").status == 401


def test_signing_out_ends_all_sessions_of_the_caller(world: World) -> None:
    before = world.clock.at
    assert send("POST", "/auth/logout", signed_in=before).data == {"signed_out": True}
    assert world.identity.signed_out == ["sub-ann"]
    assert [send("GET", "/me", signed_in=at).status for at in (before, world.clock.at)] == [401, 200]
    assert send("POST", "/auth/logout", key=world.key([Scope.ADMIN])).status == 403


def cookie_of(answered: Answered) -> dict[str, str]:
    """The header with which a browser sends the cookie of an answer back."""
    (cookie,) = answered.cookies
    value, *options = cookie.split("; ")
    assert options[0] == "Path=/api/v1/auth" and options[2:] == ["HttpOnly", "Secure", "SameSite=Strict"]
    assert options[1] == ("Max-Age=0" if value == "punctual-refresh=" else "Max-Age=2592000")
    return {"cookie": f"other=1; {value}"}


def test_the_refresh_token_of_a_browser_is_in_a_cookie_only(world: World) -> None:
    credentials = {"username": "ann", "password": "right"}
    assert send("POST", "/auth/login", json_body=credentials, user=None).cookies == []
    signed_in = send("POST", "/auth/login", json_body=credentials | {"cookie": True}, user=None)
    headers = cookie_of(signed_in)
    assert (signed_in.data["token"], signed_in.data["refresh_token"]) == ("token", "") and '"fresh"' not in signed_in.text
    refreshed = send("POST", "/auth/refresh", json_body={}, user=None, headers=headers)
    assert refreshed.data["token"] == "token2" and cookie_of(refreshed) == headers and '"fresh"' not in refreshed.text
    changed = send("POST", "/auth/password", json_body=CHANGE, headers=headers | BEARER["headers"])
    assert (changed.data["token"], changed.data["refresh_token"]) == ("token", None) and cookie_of(changed) == headers


def test_a_refresh_token_in_the_body_moves_into_the_cookie_on_request(world: World) -> None:
    moved = send("POST", "/auth/refresh", json_body={"refresh_token": "fresh", "cookie": True}, user=None)
    assert cookie_of(moved) == {"cookie": "other=1; punctual-refresh=fresh"} and "refresh_token" not in moved.data
    assert send("POST", "/auth/refresh", json_body={"refresh_token": "fresh"}, user=None).cookies == []


@pytest.mark.parametrize("cookie", ["", "punctual-refresh=", "punctual-refresh=made-up", "other=fresh", "=;;\0=,"])
def test_a_cookie_without_a_refresh_token_is_refused(world: World, cookie: str) -> None:
    assert send("POST", "/auth/refresh", json_body={}, user=None, headers={"cookie": cookie}).status == 401


def test_one_session_can_be_ended_alone(world: World) -> None:
    one = {"everywhere": False}
    assert list(send("POST", "/auth/logout", json_body=one).fields) == ["refresh_token"]
    ended = send("POST", "/auth/logout", json_body=one, headers={"cookie": "punctual-refresh=fresh"})
    assert ended.status == 200 and cookie_of(ended) == {"cookie": "other=1; punctual-refresh="}
    assert send("POST", "/auth/logout", json_body=one | {"refresh_token": "fresh"}).status == 200
    assert world.identity.revoked == ["fresh", "fresh"] and world.identity.signed_out == []
    assert "'fresh'" not in repr(world.trail.rows)
    assert send("GET", "/me").status == 200


def test_disabling_is_idempotent(world: World) -> None:
    id = create().data["id"]
    first = send("POST", f"/users/{id}/disable", **ADMIN)
    at = world.users.rows[id].disabled_at
    world.clock.advance(5)
    assert send("POST", f"/users/{id}/disable", **ADMIN).data == first.data and first.data["enabled"] is False
    assert world.users.rows[id].disabled_at == at and not world.identity.rows[account_of(id, world)].enabled


@pytest.mark.parametrize("refused", [False, True])
def test_an_enable_and_a_deletion_wake_the_jobs_that_waited(world: World, refused: bool) -> None:
    id = create().data["id"]
    world.work = Wrapped(world.work, send=lambda verb, items, **_: items) if refused else world.work
    send("POST", f"/users/{id}/disable", **ADMIN)
    answers = [send("POST", f"/users/{id}/enable", **ADMIN).status, send("DELETE", f"/users/{id}", **ADMIN).status]
    assert answers == [200, 200]
    assert [each.item.kind for each in world.work.queued.values()] == [WorkKind.RESUME] * (0 if refused else 2)


def test_a_deleted_user_is_gone_and_its_name_is_free(world: World) -> None:
    id = create().data["id"]
    account = account_of(id, world)
    assert send("GET", "/jobs", user=account, role=None).status == 200
    gone = send("DELETE", f"/users/{id}", **ADMIN)
    assert (gone.status, gone.data["enabled"]) == (200, False) and account not in world.identity.rows
    assert world.users.barred().deleted == {id}
    assert send("GET", "/jobs", user=account, role=None).status == 403, "a token that is still out"
    assert [send(method, f"/users/{id}{part}", **ADMIN).status for method, part in (("DELETE", ""), ("POST", "/enable"))] == [404, 404]
    assert create().status == 201


def test_administrators_cannot_delete_themselves(world: World) -> None:
    id = create(role="administrator").data["id"]
    assert send("DELETE", f"/users/{id}", user=id, **ADMIN).status == 409
    assert world.users.barred().deleted == frozenset()


def test_a_delete_that_failed_half_way_may_be_repeated(world: World) -> None:
    id = create().data["id"]
    account = account_of(id, world)
    world.users.delete(id, world.clock.at)  # the account itself was not deleted
    assert send("DELETE", f"/users/{id}", **ADMIN).status == 200 and account not in world.identity.rows


@pytest.mark.parametrize("claims", [{"token_use": "id"}, {"token_use": None}])
def test_an_id_token_is_no_access_token(world: World, claims: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from lambdas import api
    from tests.lambdas.gateway import event

    made = event("GET", "/api/v1/jobs")
    made["requestContext"]["authorizer"]["jwt"]["claims"] |= claims
    assert api.handler(made, None)["statusCode"] == 401


@pytest.mark.parametrize("named", ["bob#x", "a,b", "", "x" * 65, "ünïcode"])
def test_the_owner_parameter_must_be_an_id(world: World, named: str) -> None:
    refused = send("GET", "/jobs", query={"owner": named}, **ADMIN)
    assert refused.status == 400 and list(refused.fields) == ["owner"]


def test_a_request_beyond_the_quota_is_a_429_with_retry_after(world: World) -> None:
    world.users.set_quotas("sub-ann", Quotas(creates_per_second=0.5))
    statuses = [send("POST", "/jobs", json_body={"message": "m"}) for _ in range(8)]
    assert [each.status for each in statuses[:5]] == [201] * 5 and statuses[-1].status == 429
    assert statuses[-1].error["code"] == "too_many_requests" and "at most 0.5 jobs a second" in statuses[-1].error["message"]
    assert 1 <= int(statuses[-1].headers["Retry-After"]) <= 4
    assert len(world.jobs.rows) == sum(each.status == 201 for each in statuses)
    assert send("POST", "/tasks", json_body={"name": "n", "message": "m"}).status == 429
    assert send("POST", "/jobs/batch", json_body={"jobs": [{"message": "m"}]}).status == 429
    for path in ("/dead-letters/redrive", "/jobs/cancel", "/tasks/pause", "/tasks/resume", "/tasks/delete"):
        assert send("POST", path, json_body={"all": True}).status == 429
    assert not world.operations.rows
    assert send("GET", "/jobs").status == 200
    assert send("POST", "/jobs", json_body={"message": "m"}, user="sub-ben").status == 201


@pytest.mark.parametrize(
    ("path", "quota", "rate", "used"),
    [
        ("/dead-letters/redrive", 20, 500, 20),
        ("/dead-letters/redrive", 20, 5, 5),
        ("/dead-letters/redrive", 0.5, 5, 1),
        ("/tasks/resume", 50, 100, 5),
        ("/tasks/resume", 2, 100, 1),
        ("/tasks/delete", 2, 100, 100),
    ],
)
def test_an_operation_makes_jobs_at_most_at_the_rate_of_its_owner(path: str, quota: float, rate: int, used: int, world: World) -> None:
    world.users.set_quotas("sub-ann", Quotas(creates_per_second=quota))
    assert send("POST", path, json_body={"all": True, "rate": rate}).data["rate"] == used


def trail(path: str = "/me/audit", **options: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = send("GET", path, **options).data["items"]
    return entries


def test_a_change_leaves_an_entry_with_its_outcome(world: World) -> None:
    made = send("POST", "/tasks", json_body={"name": "n", "message": "secret words", "schedule": {"cron": "0 0 * * *"}}).data
    world.clock.advance(1_000)
    send("POST", f"/tasks/{made['id']}/pause", json_body={"reason": "no more"})
    paused, created = trail()
    assert (created["action"], created["object"], created["status"]) == ("task.create", made["id"], 201)
    assert created["changes"] == {"name": "n", "message": HIDDEN, "schedule": {"cron": "0 0 * * *"}}
    assert (paused["action"], paused["object"], paused["changes"]) == ("task.pause", made["id"], {"reason": "no more"})
    assert (paused["actor"], paused["actor_name"], paused["owner"]) == ("sub-ann", "ann", "sub-ann")
    assert (paused["at"], paused["address"], paused["request_id"]) == ("2026-11-20T10:00:01.500Z", "192.0.2.1", "request-1")
    assert "secret words" not in repr(world.trail.rows)


def test_refused_changes_leave_an_entry_and_invalid_requests_none(world: World) -> None:
    send("POST", "/jobs/01JD4Q8XKZ38W2M5R7T9V1C4FH/cancel")
    send("POST", "/tasks", json_body={"name": ""})
    (entry,) = trail()
    assert (entry["action"], entry["object"], entry["status"]) == ("job.cancel", "01JD4Q8XKZ38W2M5R7T9V1C4FH", 404)


def test_creating_jobs_and_reading_leave_no_entry(world: World) -> None:
    id = send("POST", "/jobs", json_body={"message": "m"}).data["id"]
    send("GET", f"/jobs/{id}")
    assert not world.trail.rows


def test_the_trail_never_contains_passwords(world: World) -> None:
    id = create().data["id"]
    send("PUT", f"/users/{id}/password", json_body={"password": "Another-horse-2"}, **ADMIN)
    change = {"current_password": "right", "new_password": "Third-horse-33"}
    send("POST", "/auth/password", json_body=change, headers={"authorization": "Bearer token"})
    assert len(world.trail.rows) == 3
    assert "horse" not in repr(world.trail.rows) and "right" not in repr(world.trail.rows)


def test_a_user_sees_only_the_entries_on_their_own_objects(world: World) -> None:
    id = create().data["id"]
    world.clock.advance(1)
    send("PATCH", f"/users/{id}", json_body={"job_weight": 9.0}, user="sub-root", **ADMIN)
    (entry,) = trail(user=id)
    assert (entry["action"], entry["actor"], entry["changes"]) == ("user.change", "sub-root", {"job_weight": 9.0})
    assert trail(user="sub-ben") == []
    assert [entry["action"] for entry in trail("/audit", **ADMIN)] == ["user.change", "user.create"]
    assert [entry["action"] for entry in trail(query={"owner": id}, **ADMIN)] == ["user.change"]


def test_the_trail_is_filtered_and_paged(world: World) -> None:
    ids = [send("POST", "/tasks", json_body={"name": f"n{number}", "message": "m"}).data["id"] for number in range(3)]
    world.clock.advance(1_000)
    send("DELETE", f"/tasks/{ids[0]}")
    assert [entry["action"] for entry in trail(query={"object": ids[0]})] == ["task.delete", "task.create"]
    assert len(trail(query={"action": "task.create"})) == 3 and len(trail(query={"action": "task"})) == 4
    assert trail(query={"action": "tas"}) == [] and trail(query={"actor": "sub-ben"}) == []
    assert len(trail(query={"to": "2026-11-20T10:00:01Z"})) == 3
    first = send("GET", "/me/audit", query={"limit": "3"}).data
    rest = send("GET", "/me/audit", query={"limit": "3", "cursor": first["cursor"]}).data
    assert len(first["items"]) == 3 and len(rest["items"]) == 1 and rest["cursor"] is None
    assert send("GET", "/me/audit", query={"cursor": "nonsense"}).status == 400
    assert send("GET", "/me/audit", query={"from": "2026-11-21T00:00:00Z", "to": "2026-11-20T00:00:00Z"}).status == 400


def test_a_change_whose_entry_cannot_be_written_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    id = send("POST", "/jobs", json_body={"message": "m", "execute_at": "2026-12-01T00:00:00Z"}).data["id"]

    def refuse(entry: object) -> None:
        raise Unavailable

    monkeypatch.setattr(world.trail, "write", refuse)
    assert send("POST", f"/jobs/{id}/cancel").status == 503
    assert next(iter(world.jobs.rows.values())).cancelled_at is None


def test_a_change_stays_if_its_entry_cannot_be_completed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    id = send("POST", "/jobs", json_body={"message": "m", "execute_at": "2026-12-01T00:00:00Z"}).data["id"]
    write = world.trail.write

    def once(entry: Any) -> None:
        if entry.status is not None:
            raise Unavailable
        write(entry)

    monkeypatch.setattr(world.trail, "write", once)
    assert send("POST", f"/jobs/{id}/cancel").status == 200
    assert [entry["status"] for entry in trail()] == [None]


def test_every_changing_route_is_in_the_trail_or_a_known_exception() -> None:
    """The exceptions: sign-in, creating jobs and groups and putting jobs by key (they name their owner), previews, workers, pings.

    Workers and pings have no account. `POST /keys/revoke` writes its entry itself, since only the key in its body names an actor.
    """
    silent = {route for route, rule in access.RULES.items() if rule.action is None and not route.startswith("GET ")}
    assert silent == {
        "POST /groups",
        "POST /auth/login",
        "POST /auth/challenge",
        "POST /auth/sso",
        "POST /auth/refresh",
        "POST /keys/revoke",
        "POST /jobs/<job_id>/heartbeat",
        "POST /jobs/<job_id>/complete",
        "POST /jobs/<job_id>/fail",
        "POST /jobs",
        "POST /jobs/batch",
        "PUT /jobs/by-key/<key>",
        "POST /schedules/preview",
        "POST /schedules/calendar",
        "POST /ping/<token>",
        "POST /ping/<token>/<signal>",
    }


def test_a_route_without_a_rule_answers_no_request(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "RULES", {route: rule for route, rule in access.RULES.items() if route != "GET /jobs"})
    assert send("GET", "/jobs", **ADMIN).status == 500


def test_a_forbidden_caller_learns_no_validation_rules(world: World) -> None:
    refused = send("POST", "/users", body="{not json")
    assert refused.status == 403 and refused.error["details"] == []
    assert replace(refused).error["code"] == "forbidden"
