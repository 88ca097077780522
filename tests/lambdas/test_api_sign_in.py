"""Sign-in over HTTP: the second factor and single sign-on."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lambdas import _runtime
from scheduler.accounts.audit import HIDDEN
from scheduler.storage.memory.accounts import codes
from scheduler.storage.ports import IdpClaims
from tests.lambdas.gateway import NOW, Answered, World, send

RIGHT = {"username": "ann", "password": "right"}
SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
VERIFIER = "v" * 43
BACK = "https://console.example.com/signed-in"
SSO = {
    "provider": "corp",
    "name": "Example Corp",
    "url": "https://pages.example.com",
    "client_id": "sso-client",
    "client_secret": "hidden",
    "operators": ["ops"],
    "sign_out_url": "https://console.example.com",
}


@pytest.fixture
def with_sso(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(sso=json.dumps(SSO))
    monkeypatch.setattr(_runtime, "api", lambda: world)
    return world


def post(path: str, body: dict[str, Any], **rest: Any) -> Answered:
    return send("POST", path, json_body=body, user=None, **rest)


def now() -> str:
    return codes(SECRET, NOW)[1]


def challenged(world: World) -> str:
    world.identity.rows["sub-ann"].secret = SECRET
    answered = post("/auth/login", RIGHT)
    assert (answered.status, answered.data["challenge"], answered.cookies) == (202, "totp", [])
    assert "token" not in answered.data
    return str(answered.data["session"])


def test_a_second_factor_comes_between_password_and_session(world: World) -> None:
    session = challenged(world)
    signed_in = post("/auth/challenge", {"session": session, "code": now()})
    assert (signed_in.status, signed_in.data["token"], signed_in.data["refresh_token"]) == (200, "token", "fresh")
    assert signed_in.data["user"]["username"] == "ann"


def test_the_cookie_of_a_browser_comes_with_the_session(world: World) -> None:
    session = challenged(world)
    signed_in = post("/auth/challenge", {"session": session, "code": now(), "cookie": True})
    assert signed_in.data["refresh_token"] == "" and signed_in.cookies[0].startswith("punctual-refresh=fresh;")


def test_a_wrong_code_and_a_made_up_session_get_the_same_answer(world: World) -> None:
    session = challenged(world)
    wrong = next(each for each in map("{:06d}".format, range(9)) if each not in codes(SECRET, NOW))
    refused = [post("/auth/challenge", {"session": sent, "code": code}) for sent, code in ((session, wrong), ("made-up", now()))]
    assert [each.status for each in refused] == [401, 401] and refused[0].error["message"] == refused[1].error["message"]


@pytest.mark.parametrize("code", ["", "12345", "1234567", "12345a", "１２３４５６", 123456])
def test_a_code_has_six_digits(code: Any, world: World) -> None:
    assert list(post("/auth/challenge", {"session": "s", "code": code}).fields) == ["code"]


def test_a_second_factor_is_switched_on_and_off(world: World) -> None:
    assert send("GET", "/auth/totp").data == {"possible": True, "enabled": False}
    begun = send("POST", "/auth/totp", json_body={"current_password": "right"}).data
    assert begun["uri"] == f"otpauth://totp/Punctual:ann?secret={begun['secret']}&issuer=Punctual"
    proof = {"current_password": "right", "code": codes(begun["secret"], NOW)[1]}
    assert send("PUT", "/auth/totp", json_body=proof).data == {"possible": True, "enabled": True}
    assert send("GET", "/auth/totp").data["enabled"] is True
    assert send("POST", "/auth/totp", json_body={"current_password": "right"}).status == 409
    assert list(send("POST", "/auth/totp/disable", json_body=proof).fields) == ["code"], "a code is used once"
    again = proof | {"code": codes(begun["secret"], NOW)[2]}
    assert send("POST", "/auth/totp/disable", json_body=again).data["enabled"] is False
    assert post("/auth/login", RIGHT).status == 200


def test_the_trail_shows_changes_of_the_second_factor_without_codes(world: World) -> None:
    begun = send("POST", "/auth/totp", json_body={"current_password": "right"}).data
    send("PUT", "/auth/totp", json_body={"current_password": "right", "code": codes(begun["secret"], NOW)[1]})
    entries = sorted(world.trail.rows.values(), key=lambda entry: entry.id)
    assert {entry.action for entry in entries} == {"user.totp-begin", "user.totp-on"}
    assert all(value == HIDDEN for entry in entries for value in entry.changes.values())
    assert begun["secret"] not in repr(entries)


def test_an_administrator_resets_a_second_factor_and_nobody_else(world: World) -> None:
    world.identity.rows["sub-ann"].secret = SECRET
    assert send("DELETE", "/users/sub-ann/totp").status == 403
    assert send("DELETE", "/users/sub-ann/totp", user="sub-root", role="administrator").data["enabled"] is False
    assert world.identity.signed_out == ["sub-ann"] and post("/auth/login", RIGHT).status == 200
    assert send("DELETE", "/users/nobody/totp", user="sub-root", role="administrator").status == 404


def test_without_single_sign_on_people_have_passwords(world: World) -> None:
    assert send("GET", "/auth/sso", user=None).data == {"sso": None, "passwords": True}
    assert post("/auth/sso", {"code": "c", "verifier": VERIFIER, "redirect_uri": BACK}).status == 404


def test_the_sign_in_page_learns_where_to_go_and_no_secret(with_sso: World) -> None:
    shown = send("GET", "/auth/sso", user=None)
    assert shown.data["passwords"] is True and "hidden" not in shown.text
    sso = shown.data["sso"]
    assert (sso["name"], sso["provider"]) == ("Example Corp", "corp") and sso["loopback_ports"]
    place = urlsplit(sso["authorize_url"])
    assert f"{place.scheme}://{place.netloc}{place.path}" == "https://pages.example.com/oauth2/authorize"
    expected = {"client_id": "sso-client", "response_type": "code", "scope": "openid profile email", "identity_provider": "corp"}
    assert {name: values[0] for name, values in parse_qs(place.query).items()} == expected
    out = urlsplit(sso["sign_out_url"])
    assert out.path == "/logout" and parse_qs(out.query) == {"client_id": ["sso-client"], "logout_uri": ["https://console.example.com"]}


def test_the_code_of_the_browser_becomes_a_session(with_sso: World) -> None:
    with_sso.identity.codes["code"] = (VERIFIER, IdpClaims("corp", "ben", frozenset({"ops"}), "Ben"))
    signed_in = post("/auth/sso", {"code": "code", "verifier": VERIFIER, "redirect_uri": BACK, "cookie": True})
    assert signed_in.data["refresh_token"] == "" and signed_in.cookies[0].startswith("punctual-refresh=refresh-")
    assert post("/auth/sso", {"code": "code", "verifier": VERIFIER, "redirect_uri": BACK}).status == 401, "once"


@pytest.mark.parametrize("verifier", ["", "v" * 42, "v" * 129, "v" * 42 + "!"])
def test_a_verifier_has_the_form_of_its_standard(verifier: str, with_sso: World) -> None:
    assert list(post("/auth/sso", {"code": "c", "verifier": verifier, "redirect_uri": BACK}).fields) == ["verifier"]


def test_where_passwords_are_off_the_named_users_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    for names, status in ((["eve"], 401), (["Ann"], 200)):
        world = World(sso=json.dumps(SSO | {"passwords": False, "break_glass": names}))
        monkeypatch.setattr(_runtime, "api", lambda world=world: world)
        assert post("/auth/login", RIGHT).status == status
        assert send("GET", "/auth/sso", user=None).data["passwords"] is False
