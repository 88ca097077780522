"""The commands for API keys, teams, principals and the intake."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_api import JOB, KEY, SECRET, TEAM, URL, refusal
from test_cli import ME, STATUS, USER, Terminal, api, done, page, plain

from punctual import profiles
from punctual.profiles import Profile

AT = JOB["created_at"]
API_KEY: dict[str, Any] = {"id": "k2" * 8, "name": "ci", "owner": "u1", "maker": "u1", "scopes": ["jobs:read"], "created_at": AT}
BILLING = {"id": TEAM, "name": "billing", "role": "manager", "created_at": AT}
MEMBER = {"user_id": "u2", "username": "shop", "role": "viewer", "since": AT}
INVITATION = {"id": "01INV", "team": TEAM, "role": "editor", "made_by": "u1", "created_at": AT, "expires_at": "2026-11-27T10:00:00.000Z"}
PRINCIPAL = {
    "id": "p-1",
    "arn": "arn:aws:iam::123456789012:role/x",
    "owner": TEAM,
    "scopes": ["jobs:write"],
    "made_by": "u9",
    "created_at": AT,
}
LETTER = {"message_id": "m-1", "queue": "orders", "sender": "AROAX:importer", "owner": "u1", "accepted": 0, "received": 1, "cut": False}
LETTER |= {"sent_at": AT, "refused_at": AT, "errors": [{"field": "payload", "rule": "is missing"}]}
MINE = {**ME, "teams": [{"id": TEAM, "name": "billing", "role": "manager"}]}
pytestmark = pytest.mark.usefixtures("signed_in")


# Sign in with a key


def test_login_with_a_key_reads_it_from_the_standard_input() -> None:
    cli = api({"GET /key/me": {**ME, "role": None, "kind": "key", "username": "ci", "scopes": ["jobs:read"]}})
    result = cli("login", URL, "--profile", "ci", "--key", input=f"{KEY}\n")
    assert "Signed in to https://api.example.com as ci (API key with jobs:read). Profile: ci." in done(result)
    assert SECRET not in result.output and profiles.load().all["ci"].key == KEY
    assert profiles.path().stat().st_mode & 0o777 == 0o600
    shown = cli("profiles", "--json").output + cli("profiles", terminal=True).output + cli("whoami", terminal=True).output
    assert "an API key" in shown and SECRET not in shown
    assert "The API key stays valid" in done(cli("logout", "--profile", "ci"))


@pytest.mark.parametrize("text", [KEY[:-1], SECRET, "t0k3n"])
def test_what_is_no_key_is_refused_and_stores_nothing(text: str) -> None:
    cli = api({})
    result = cli("login", URL, "--profile", "ci", "--key", input=f"{text}\n")
    assert result.exit_code == 2 and "the key: is none: an API key has the form" in result.stderr and text not in result.output
    assert cli.api.sent == [] and "ci" not in profiles.load().all


def test_a_key_as_an_argument_is_refused_and_not_shown() -> None:
    for words in (("login", "--key", KEY), ("login", KEY), ("keys", "show", KEY), ("keys", "revoke", KEY, "--yes"), ("jobs", "show", KEY)):
        cli = api({})
        result = cli(*words)
        assert result.exit_code == 2 and "API key" in result.stderr and SECRET not in result.output and cli.api.sent == []


def test_a_refused_key_is_not_stored() -> None:
    result = api({"GET /key/me": refusal(401, "unauthorized", "no")})("login", URL, "--profile", "ci", "--key", input=KEY)
    assert result.exit_code == 3 and SECRET not in result.output and "ci" not in profiles.load().all


def test_the_traceback_of_a_defect_has_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    profiles.save(Profile("default", URL, key=KEY))
    cli = api({"GET /key/status": STATUS | {"late": None}})
    for debug in ("", "1"):
        monkeypatch.setenv("PUNCTUAL_DEBUG", debug)
        result = cli("status")
        assert result.exit_code != 0 and SECRET not in result.output + repr(result.exception)


# Keys


def test_a_key_is_created_and_printed_once() -> None:
    cli = api({"POST /keys": {**API_KEY, "key": KEY, "expires_at": "2026-12-20T10:00:00.000Z"}})
    shown = done(cli("keys", "create", "ci", "--scope", "jobs:read", "--scope", "tasks:*", "--expires-in-days", "30"))
    assert cli.api.last == ("POST", "/keys", {}, {"name": "ci", "scopes": ["jobs:read", "tasks:*"], "expires_in_days": 30})
    assert "Store it now, it is not shown again" in shown and shown.endswith(f"{KEY}\n")
    assert done(cli("keys", "create", "ci", "--scope", "jobs:read", "--quiet")) == f"{KEY}\n"
    assert json.loads(done(cli("keys", "create", "ci", "--scope", "jobs:read", "--json", "--owner", TEAM)))["key"] == KEY
    assert cli.api.last[2] == {"owner": TEAM}
    result = cli("keys", "create", "ci")
    assert result.exit_code == 2 and "--scope: is missing" in result.stderr


def test_keys_are_listed_shown_and_revoked() -> None:
    cli = api({"GET /keys": page(API_KEY), f"GET /keys/{API_KEY['id']}": API_KEY, f"DELETE /keys/{API_KEY['id']}": None})
    assert done(cli("keys", "list")).startswith(f"{API_KEY['id']}\tci\tjobs:read\t")
    assert "jobs:read" in done(cli("keys", "show", API_KEY["id"], terminal=True))
    result = cli("keys", "revoke", API_KEY["id"])
    assert result.exit_code == 2 and "needs a confirmation" in result.stderr and cli.api.last[0] == "GET"
    assert done(cli("keys", "revoke", API_KEY["id"], "--yes")) == f"The key {API_KEY['id']} is revoked.\n"
    assert cli.api.last[:2] == ("DELETE", f"/keys/{API_KEY['id']}")
    empty = api({"GET /keys": page()})
    assert "Create one: punctual keys create NAME --scope jobs:write" in plain(done(empty("keys", "list", terminal=True)))


def test_a_leaked_key_is_revoked_by_itself() -> None:
    cli = api({"POST /keys/revoke": None})
    result = cli("keys", "revoke", "--leaked", input=KEY)
    assert done(result) == "The key is revoked.\n" and cli.api.last[3] == {"key": KEY}
    assert cli("keys", "revoke").exit_code == 2 and cli("keys", "revoke", "a", "--leaked").exit_code == 2


# Teams


def test_teams_are_listed_with_a_star_at_the_chosen_one() -> None:
    cli = api({"GET /teams": page(BILLING), "GET /me": MINE})
    assert done(cli("teams", "list")).split("\t")[:3] == ["", "billing", "manager"]
    assert "Commands are about the objects of billing" in done(cli("teams", "use", "billing"))
    assert done(cli("teams", "list")).startswith("*\tbilling")
    assert (profiles.load().all["default"].owner, profiles.load().all["default"].owner_name) == (TEAM, "billing")
    assert "owner" in done(cli("whoami", terminal=True)) and "billing (manager)" in done(cli("whoami", terminal=True))
    assert "your own objects now" in done(cli("teams", "use", "--mine"))
    assert profiles.load().all["default"].owner is None and profiles.load().all["default"].token == "t0"
    assert "Create one: punctual teams create NAME" in plain(done(api({"GET /teams": page()})("teams", "list", terminal=True)))


def test_a_team_is_chosen_only_for_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    cli = api({"GET /me": MINE})
    result = cli("teams", "use", "payments")
    assert result.exit_code == 4 and "there is no team 'payments' among yours" in result.stderr
    assert cli("teams", "use").exit_code == 2 and cli("teams", "use", "billing", "--mine").exit_code == 2
    monkeypatch.setenv("PUNCTUAL_TOKEN", "t")
    result = cli("teams", "use", "billing")
    assert result.exit_code == 2 and "PUNCTUAL_OWNER" in result.stderr and profiles.load().all["default"].owner is None


def test_a_second_login_keeps_the_chosen_team() -> None:
    profiles.choose_owner("default", TEAM, "billing")
    session = {"token": "t1", "expire": "2026-11-20T11:00:00.000Z", "refresh_token": "r1", "user": {}}
    cli = api({"POST /auth/login": session, "GET /me": ME})
    done(cli("login", input="s3cret\n"))
    assert (profiles.load().all["default"].owner, profiles.load().all["default"].token) == (TEAM, "t1")
    done(cli("login", "--username", "bob", input="s3cret\n"))
    assert profiles.load().all["default"].owner is None


@pytest.mark.parametrize(
    ("words", "request_", "said"),
    [
        ("create billing", ("POST", "/teams", {"name": "billing"}), f"Team billing is created: {TEAM}."),
        ("rename billing payments", ("PATCH", f"/teams/{TEAM}", {"name": "payments"}), "The team is called billing now."),
        ("delete billing --yes", ("DELETE", f"/teams/{TEAM}", None), "Team billing is deleted."),
        ("set-member billing shop --role editor", ("PUT", f"/teams/{TEAM}/members/u2", {"role": "editor"}), "shop is viewer of billing."),
        ("remove-member billing shop --yes", ("DELETE", f"/teams/{TEAM}/members/u2", None), "shop is no member of billing any more."),
        ("withdraw billing 01INV", ("DELETE", f"/teams/{TEAM}/invitations/01INV", None), "The invitation 01INV is withdrawn."),
    ],
)
def test_a_team_is_changed(words: str, request_: tuple[str, str, Any], said: str) -> None:
    cli = api(
        {
            "GET /me": MINE,
            "POST /teams": BILLING,
            f"PATCH /teams/{TEAM}": BILLING,
            f"DELETE /teams/{TEAM}": None,
            f"GET /teams/{TEAM}/members": page(MEMBER),
            f"PUT /teams/{TEAM}/members/u2": MEMBER,
            f"DELETE /teams/{TEAM}/members/u2": None,
            f"DELETE /teams/{TEAM}/invitations/01INV": None,
        }
    )
    assert said in done(cli("teams", *words.split()))
    method, path, query, body = cli.api.last
    assert (method, path, body) == request_ and query == {}


@pytest.mark.parametrize("words", ["delete billing", "remove-member billing shop"])
def test_a_team_loses_nothing_without_a_confirmation(words: str) -> None:
    cli = api({"GET /me": MINE, f"GET /teams/{TEAM}/members": page(MEMBER)})
    assert cli("teams", *words.split()).exit_code == 2 and {method for method, *_ in cli.api.sent} == {"GET"}


def test_an_invitation_is_created_listed_and_accepted() -> None:
    cli = api(
        {
            "GET /me": MINE,
            f"POST /teams/{TEAM}/invitations": {**INVITATION, "token": "in-v1te"},
            f"GET /teams/{TEAM}/invitations": page(INVITATION),
            "POST /invitations/accept": {**BILLING, "role": "editor"},
        }
    )
    shown = done(cli("teams", "invite", "billing", "--role", "editor", "--expires-in-days", "3"))
    assert cli.api.last[3] == {"role": "editor", "expires_in_days": 3} and shown.endswith("in-v1te\n")
    assert "in-v1te" not in done(cli("teams", "invitations", "billing", "--json"))
    assert done(cli("teams", "accept", input="in-v1te\n")) == "You are editor of billing.\n"
    assert cli.api.last[3] == {"token": "in-v1te"}
    assert cli("teams", "invite", "billing", "--role", "owner").exit_code == 2
    result = cli("teams", "accept")
    assert result.exit_code == 2 and "the token is missing" in result.stderr


def test_members_are_added_by_operators_by_name_and_by_others_by_id() -> None:
    person = "00000000-0000-4000-8000-000000000001"
    routes = {f"GET /teams/{TEAM}/members": page(), f"PUT /teams/{TEAM}/members/u1": MEMBER, f"PUT /teams/{TEAM}/members/{person}": MEMBER}
    operator = api({**routes, "GET /me": {**MINE, "id": "u9", "username": "olaf", "role": "operator"}, "GET /users": page(USER)})
    done(operator("teams", "set-member", "billing", "ann", "--role", "viewer"))
    member = api({**routes, "GET /me": {**MINE, "id": "u9", "username": "bob"}})
    done(member("teams", "set-member", "billing", person, "--role", "viewer"))
    assert (operator.api.last[1], member.api.last[1]) == (f"/teams/{TEAM}/members/u1", f"/teams/{TEAM}/members/{person}")
    result = member("teams", "set-member", "billing", "ann", "--role", "viewer")
    assert result.exit_code == 4 and "there is no user 'ann' among yours" in result.stderr


# Principals


def test_principals_are_created_listed_changed_and_deleted() -> None:
    cli: Terminal = api(
        {
            "GET /me": MINE,
            "POST /principals": PRINCIPAL,
            "GET /principals": page(PRINCIPAL),
            "GET /principals/p-1": PRINCIPAL,
            "PATCH /principals/p-1": PRINCIPAL,
            "DELETE /principals/p-1": None,
        }
    )
    arn = PRINCIPAL["arn"]
    assert "acts for billing" in done(cli("principals", "create", str(arn), "--owner", "billing", "--scope", "jobs:write"))
    assert cli.api.last[2:] == ({}, {"arn": arn, "owner": TEAM, "scopes": ["jobs:write"]})
    assert done(cli("principals", "list")) == f"p-1\t{arn}\t{TEAM}\tjobs:write\t\n"
    assert str(arn) in done(cli("principals", "show", "p-1", terminal=True))
    done(cli("principals", "update", "p-1", "--scope", "jobs:*", "--owner", TEAM))
    assert cli.api.last == ("PATCH", "/principals/p-1", {}, {"owner": TEAM, "scopes": ["jobs:*"]})
    assert cli("principals", "update", "p-1").exit_code == 2 and cli("principals", "create", str(arn), "--owner", TEAM).exit_code == 2
    assert cli("principals", "delete", "p-1").exit_code == 2 and cli.api.last[0] == "PATCH"
    assert done(cli("principals", "delete", "p-1", "--yes")) == "Principal p-1 is deleted.\n"
    assert "Create one: punctual principals create ARN" in plain(
        done(api({"GET /principals": page()})("principals", "list", terminal=True))
    )


# Intake


def test_dead_letters_of_the_intake_are_listed_retried_and_deleted() -> None:
    cli = api(
        {
            "GET /intake/dead-letters": page(LETTER),
            "GET /intake/dead-letters/m-1": LETTER,
            "POST /intake/dead-letters/m-1/retry": {"accepted": 1, "refused": 0, "results": []},
            "DELETE /intake/dead-letters/m-1": None,
        }
    )
    assert done(cli("intake", "list")) == "m-1\t2026-11-20T09:00:00.000+00:00\torders\tAROAX:importer\tpayload: is missing\n"
    assert "payload: is missing" in done(cli("intake", "show", "m-1", terminal=True))
    assert done(cli("intake", "retry", "m-1", "--owner", TEAM)) == "Message m-1: 1 job created.\n"
    assert cli.api.last[2:] == ({"owner": TEAM}, {})
    done(cli("intake", "retry", "m-1", "--body", '{"message": "m"}'))
    assert cli.api.last[3] == {"body": {"message": "m"}}
    assert cli("intake", "delete", "m-1").exit_code == 2 and cli.api.last[0] == "POST"
    assert done(cli("intake", "delete", "m-1", "-y", "-q")) == "m-1\n"
    empty = api({"GET /intake/dead-letters": page()})
    assert "There are no dead letters of the intake." in plain(done(empty("intake", "list", terminal=True)))


def test_a_retry_with_refused_jobs_is_a_failure() -> None:
    cli = api({"POST /intake/dead-letters/m-1/retry": {"accepted": 2, "refused": 1, "results": []}})
    result = cli("intake", "retry", "m-1")
    assert result.exit_code == 1 and "Message m-1: 2 jobs created. 1 were refused" in result.stdout
    result = cli("intake", "retry", "m-1", "m-2", "--body", "{}")
    assert result.exit_code == 2 and "--body: goes with one message" in result.stderr


def test_letters_of_unknown_senders_are_of_no_owner() -> None:
    profiles.choose_owner("default", TEAM, "billing")
    cli = api({"GET /intake/dead-letters": page({**LETTER, "owner": None})})
    done(cli("intake", "list"))
    done(cli("intake", "list", "--unknown"))
    assert [query.get("owner") for _, _, query, _ in cli.api.sent] == [TEAM, None]
    assert cli.api.last[2]["unknown"] == "true"


def test_the_second_factor_of_a_user_is_reset_after_a_question() -> None:
    cli = api({"GET /users": page(USER), "DELETE /users/u1/totp": {"possible": True, "enabled": False}})
    assert cli("users", "reset-second-factor", "ann").exit_code == 2 and cli.api.last[0] == "GET"
    assert done(cli("users", "reset-second-factor", "ann", "--yes")) == "User ann has no second factor any more.\n"
