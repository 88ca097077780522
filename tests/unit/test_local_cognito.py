"""Cognito of the local AWS, made as strict as AWS."""

import base64
import hashlib
import json
from typing import Any
from urllib.parse import urlencode

import pytest
from ministack.services import cognito

from local import cognito as strict

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
BACK = "http://127.0.0.1:8251/signed-in"


@pytest.fixture(autouse=True)
def one_sign_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An app client with a secret, and no codes of before."""
    client = {"ClientId": "sso", "ClientSecret": "hidden"}
    monkeypatch.setattr(cognito, "_auth_codes", {})
    monkeypatch.setattr(cognito, "_find_pool_by_client_id", lambda id: ("pool", {}, client if id == "sso" else None))
    monkeypatch.setattr(strict, "_sessions", {})


def redirecting(**query: str) -> Any:
    return 302, {"Location": f"https://somewhere/?{urlencode(query)}"}, b""


def signed_on(**challenge: str) -> None:
    """Begin a single sign-on and let the identity provider answer: the code is `code`."""

    def authorize(query: Any) -> Any:
        cognito._auth_codes["relay"] = {"type": "relay"}
        return redirecting(state="relay")

    def respond(method: str, body: bytes, query: Any) -> Any:
        del cognito._auth_codes["relay"]
        cognito._auth_codes["code"] = {"type": "code"}
        return redirecting(code="code", state="mine")

    strict.remembering_pkce(authorize)({"redirect_uri": BACK, **challenge})
    strict.carrying_pkce(respond, lambda method, body, query: strict.sent(query, body, "state"))("GET", b"", {"state": "relay"})


def exchange(**form: str) -> Any:
    taken = strict.checking_pkce(lambda data, query, raw, headers: (200, {}, b"tokens"))
    sent = {"grant_type": "authorization_code", "code": "code", "client_id": "sso", "client_secret": "hidden"} | form
    return taken({}, {}, urlencode(sent).encode(), {})


@pytest.mark.parametrize(("verifier", "status"), [(VERIFIER, 200), ("w" * 43, 400), ("", 400)])
def test_the_code_of_a_single_sign_on_needs_its_verifier(verifier: str, status: int) -> None:
    signed_on(code_challenge=CHALLENGE, code_challenge_method="S256")
    answer = exchange(code_verifier=verifier)
    assert answer[0] == status and (status == 200 or json.loads(answer[2])["error"] == "invalid_grant")


def test_a_challenge_is_hashed_or_refused_at_once() -> None:
    answer = strict.remembering_pkce(lambda query: pytest.fail("it went on"))(
        {"redirect_uri": BACK, "code_challenge": VERIFIER, "code_challenge_method": "plain"}
    )
    assert answer[0] == 302 and "error=invalid_request" in answer[1]["Location"]


def test_without_a_challenge_none_is_checked() -> None:
    signed_on()
    assert exchange()[0] == 200


def test_a_client_without_its_secret_gets_no_tokens() -> None:
    signed_on()
    assert json.loads(exchange(client_secret="wrong")[2])["error"] == "invalid_client"


def test_arrays_of_claims_become_texts() -> None:
    claims = {"groups": ["a", "b"], "none": [], "name": "Ann", "n": 1}
    assert strict.with_texts(lambda token: claims)("token") == {"groups": "[a, b]", "none": "[]", "name": "Ann", "n": 1}


def respond(session: str, username: str = "ann", name: str = "SOFTWARE_TOKEN_MFA", status: int = 200) -> int:
    answered = strict.checking_sessions(lambda data: (status, {}, b"tokens"))
    return int(answered({"ChallengeName": name, "Session": session, "ChallengeResponses": {"USERNAME": username}})[0])


def challenge() -> str:
    made = strict.remembering_sessions(lambda pool, user, *rest: {"Session": "s", "ChallengeParameters": {}})
    return str(made({}, {"Username": "ann"}, "pool", "ann@example.org")["Session"])


def test_a_challenge_is_answered_once_by_its_user() -> None:
    session = challenge()
    assert respond("made up") == 400 and respond(session, "eve") == 400
    assert respond(session, status=400) == 400, "a wrong code may be corrected"
    assert [respond(session, "ANN"), respond(session)] == [200, 400]


def test_other_challenges_have_no_session_here() -> None:
    assert respond("", name="NEW_PASSWORD_REQUIRED") == 200


def test_a_challenge_ends_after_three_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    session = challenge()
    ends = strict._sessions[session][1]
    monkeypatch.setattr(strict.time, "time", lambda: ends)
    assert respond(session) == 400


def test_the_metadata_of_a_refresh_reaches_the_trigger() -> None:
    seen: list[Any] = []
    trigger = strict.with_metadata(lambda **arguments: seen.append(arguments["client_metadata"]))
    refresh = strict.noting_metadata(lambda data: trigger(token_type="access"))
    refresh({"ClientMetadata": {"purpose": "second-factor"}})
    refresh({})
    trigger(client_metadata={"purpose": "own"})
    assert seen == [{"purpose": "second-factor"}, None, {"purpose": "own"}]


def test_a_refresh_token_of_a_confidential_client_needs_its_secret() -> None:
    act = strict.confidential(lambda data: (200, {}, b""))
    assert [act({"ClientId": id, "ClientSecret": secret})[0] for id, secret in (("sso", "hidden"), ("sso", "x"), ("other", ""))] == [
        200,
        400,
        200,
    ]
    assert act({"ClientId": "sso"})[0] == 400


def test_every_changed_function_exists() -> None:
    before = {name: getattr(cognito, name) for name in vars(cognito) if name.startswith("_")}
    try:
        strict.be_strict()
        changed = {name for name, function in before.items() if getattr(cognito, name) is not function}
        assert len(changed) == 10
    finally:
        for name, function in before.items():
            setattr(cognito, name, function)
