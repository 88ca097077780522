"""The trigger of tokens, and the check of signatures."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from infra.accounts import TRIGGER
from lambdas import _tokens as trigger
from scheduler.model.errors import Unavailable
from scheduler.storage.aws import tokens
from scheduler.storage.aws.accounts import ENROLLING
from scheduler.storage.aws.tokens import AGAIN_MS, Verifier

NOW = 1_000_000
CLAIMS = {"token_use": "access", "client_id": "app", "exp": 2_000, "sub": "sub-ann", "username": "ann"}
KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
OTHER = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def encoded(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def signed(claims: Any = CLAIMS, key: rsa.RSAPrivateKey = KEY, **header: str) -> str:
    text = f"{encoded({'alg': 'RS256', 'kid': 'one'} | header)}.{encoded(claims)}"
    return f"{text}.{encoded(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def document(**keys: rsa.RSAPrivateKey) -> bytes:
    def numbers(key: rsa.RSAPrivateKey) -> dict[str, str]:
        found = key.public_key().public_numbers()
        return {"n": encoded(found.n.to_bytes(256, "big")), "e": encoded(found.e.to_bytes(3, "big"))}

    return json.dumps({"keys": [{"kty": "RSA", "kid": kid, **numbers(key)} for kid, key in keys.items()]}).encode()


class Pool:
    """The public keys of a pool. `reads` counts how often they were read."""

    def __init__(self) -> None:
        self.document, self.reads = document(one=KEY), 0
        self.verifier = Verifier(frozenset({"app"}), self.read)

    def read(self) -> bytes:
        self.reads += 1
        return self.document


def test_a_token_of_the_pool_is_valid_and_the_keys_are_read_once() -> None:
    pool = Pool()
    assert [pool.verifier.verified(signed(), NOW) for _ in range(3)] == [CLAIMS] * 3
    assert pool.reads == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "forged",
        "a.b.c",
        signed(key=OTHER),
        signed(CLAIMS | {"token_use": "id"}),
        signed(CLAIMS | {"client_id": "other"}),
        signed(CLAIMS | {"exp": 1_000}),
        signed(CLAIMS | {"exp": None}),
        signed(alg="none"),
        signed(alg="HS256"),
        signed([]),
        signed().rpartition(".")[0] + ".",
        signed() + ".more",
        signed()[:-4] + "AAAA",
        f"{encoded({'alg': 'RS256', 'kid': 'one'})}.{encoded(b'[' * 9_000)}.x",
    ],
)
def test_every_other_text_is_refused(text: str) -> None:
    assert Pool().verifier.verified(text, NOW) is None


def test_a_token_whose_claims_were_changed_is_refused() -> None:
    head, _, signature = signed().split(".")
    assert Pool().verifier.verified(f"{head}.{encoded(CLAIMS | {'sub': 'sub-eve'})}.{signature}", NOW) is None


def test_a_flood_of_tokens_with_unknown_keys_reads_the_keys_once_a_minute() -> None:
    pool = Pool()
    for number in range(100):
        assert pool.verifier.verified(signed(key=OTHER, kid=f"made-up-{number}"), NOW) is None
    assert pool.reads == 1
    pool.document = document(two=OTHER)
    assert pool.verifier.verified(signed(key=OTHER, kid="two"), NOW + AGAIN_MS - 1) is None
    assert pool.verifier.verified(signed(key=OTHER, kid="two"), NOW + AGAIN_MS) == CLAIMS


@pytest.mark.parametrize("broken", [b"", b"{}", b"<html>", b'{"keys": [{"kty": "RSA"}]}'])
def test_a_document_that_has_no_keys_is_a_failure_of_the_pool(broken: bytes) -> None:
    with pytest.raises(Unavailable):
        tokens.keys(broken)


def event(source: str, **request: Any) -> dict[str, Any]:
    return {"triggerSource": source, "request": request, "response": {}}


SUPPRESSED = {"accessTokenGeneration": {"scopesToSuppress": ["aws.cognito.signin.user.admin"]}}


@pytest.mark.parametrize("source", ["Authentication", "HostedAuth", "RefreshTokens", "NewPasswordChallenge", "AuthenticateDevice"])
def test_no_token_of_a_person_can_change_the_account(source: str) -> None:
    for metadata in ({}, {"clientMetadata": None}, {"clientMetadata": {"purpose": "another"}}):
        answered = trigger.handler(event(f"TokenGeneration_{source}", **metadata), None)
        assert answered["response"] == {"claimsAndScopeOverrideDetails": SUPPRESSED}


def test_only_the_refresh_for_a_second_factor_keeps_the_scope() -> None:
    assert trigger.handler(event("TokenGeneration_RefreshTokens", clientMetadata=ENROLLING), None)["response"] == {}
    assert trigger.handler(event("TokenGeneration_Authentication", clientMetadata=ENROLLING), None)["response"] != {}


def stated(monkeypatch: pytest.MonkeyPatch, **attributes: Any) -> Any:
    monkeypatch.setenv("GROUPS_CLAIM", "memberOf")
    return trigger.handler(event("InboundFederation_ExternalProvider", attributes=attributes), None)["response"]["userAttributesToMap"]


def test_groups_are_always_stated_even_if_the_provider_states_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stated(monkeypatch, idToken={"sub": "ann"}) == {"sub": "ann", "memberOf": "[]"}
    assert stated(monkeypatch, idToken={"sub": "ann", "memberOf": ""}, userInfo=None)["memberOf"] == "[]"


def test_groups_arrive_as_the_provider_stated_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stated(monkeypatch, idToken={"memberOf": "[a, b]"})["memberOf"] == "[a, b]"
    assert stated(monkeypatch, idToken={"memberOf": ["a, x", "b"]})["memberOf"] == '["a, x", "b"]'
    assert stated(monkeypatch, samlResponse={"memberOf": "a", "email": "ann@example.org"}) == {"memberOf": "a", "email": "ann@example.org"}
    assert stated(monkeypatch, userInfo={"memberOf": "old", "name": "Ann"}, idToken={"memberOf": "new"}) == {
        "memberOf": "new",
        "name": "Ann",
    }


def test_the_source_of_the_trigger_fits_into_the_template() -> None:
    assert len(TRIGGER.read_text()) <= 4_096
