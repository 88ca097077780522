"""The port Identity, on Cognito."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest
from botocore.exceptions import ClientError

from scheduler.accounts.sso import Sso
from scheduler.model.errors import Conflict, Invalid, NotFound, SchedulerError, Unauthorized, Unavailable
from scheduler.storage.aws import clients
from scheduler.storage.aws.accounts import AppClient
from scheduler.storage.aws.identity import CognitoIdentity
from scheduler.storage.memory.accounts import codes
from scheduler.storage.ports import Challenge, IdpClaims, Session, User
from tests.contract.conftest import running
from tests.contract.wire import Wire

PASSWORD = "Correct-horse-1"
APP = AppClient("app", "secret")


@pytest.fixture
def pool(local_aws: str) -> tuple[Any, str, AppClient]:
    return made(local_aws)


@pytest.fixture
def enforcing(tmp_path: Path) -> Iterator[tuple[Any, str, AppClient]]:
    """A pool on a local AWS that checks the proofs of callers as AWS does. All others here do not, which is faster."""
    with running(tmp_path, AUTH="true") as address:
        yield made(address)


def made(address: str) -> tuple[Any, str, AppClient]:
    client = clients.cognito(endpoint_url=address)
    pool = client.create_user_pool(PoolName="users")["UserPool"]["Id"]
    totp: Any = {"Enabled": True}
    client.set_user_pool_mfa_config(UserPoolId=pool, MfaConfiguration="OPTIONAL", SoftwareTokenMfaConfiguration=totp)
    flows: Any = ["ALLOW_ADMIN_USER_PASSWORD_AUTH"]
    app = client.create_user_pool_client(UserPoolId=pool, ClientName="api", ExplicitAuthFlows=flows, GenerateSecret=True)["UserPoolClient"]
    return client, pool, AppClient(app["ClientId"], app["ClientSecret"])


@pytest.fixture
def identity(pool: tuple[Any, str, AppClient]) -> CognitoIdentity:
    return CognitoIdentity(*pool)


def sign_in(identity: CognitoIdentity, name: str = "ada", password: str = PASSWORD) -> Session:
    session = identity.login(name, password)
    assert isinstance(session, Session)
    return session


def test_a_login_returns_tokens_and_the_user(identity: CognitoIdentity) -> None:
    ada = identity.create("ada", PASSWORD)
    session = sign_in(identity)
    assert session.user == User(ada, "ada")
    assert session.token.count(".") == 2 and session.refresh_token
    assert session.expire % 1000 == 0 and session.expire > 1_700_000_000_000


def test_a_login_is_one_call_of_cognito(pool: tuple[Any, str, AppClient], identity: CognitoIdentity) -> None:
    identity.create("ada", PASSWORD)
    wire = Wire(pool[0])
    sign_in(identity)
    assert [operation for operation, _ in wire.calls] == ["AdminInitiateAuth"]


@pytest.mark.long
def test_nobody_signs_in_past_the_api(enforcing: tuple[Any, str, AppClient]) -> None:
    identity = CognitoIdentity(*enforcing)
    identity.create("ada", PASSWORD)
    client, _, app = enforcing
    parameters = {"USERNAME": "ada", "PASSWORD": PASSWORD}
    for more in ({}, {"SECRET_HASH": app.hash("ada")}):
        with pytest.raises(ClientError):
            client.initiate_auth(ClientId=app.id, AuthFlow="USER_PASSWORD_AUTH", AuthParameters=parameters | more)
    refresh = sign_in(identity).refresh_token
    with pytest.raises(ClientError):
        client.get_tokens_from_refresh_token(ClientId=app.id, RefreshToken=refresh)
    with pytest.raises(ClientError):
        client.sign_up(ClientId=app.id, Username="eve", Password=PASSWORD)


def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(identity: CognitoIdentity) -> None:
    identity.create("ada", PASSWORD)
    messages = set()
    for name, password in (("ada", "wrong"), ("nobody", PASSWORD)):
        with pytest.raises(Unauthorized) as refused:
            identity.login(name, password)
        messages.add(refused.value.message)
    assert len(messages) == 1


def test_a_token_identifies_its_user_and_a_forged_one_is_refused(identity: CognitoIdentity) -> None:
    ada = identity.create("ada", PASSWORD)
    session = sign_in(identity)
    assert identity.user(session.token, session.expire - 1) == User(ada, "ada")
    with pytest.raises(Unauthorized):
        identity.user(session.token, session.expire)
    head, claims, signature = session.token.split(".")
    with pytest.raises(Unauthorized):
        identity.user(f"{head}.{claims}x.{signature}", session.expire - 1)


def test_a_token_that_cannot_be_ours_is_refused_without_a_call() -> None:
    wire = Wire(client := clients.cognito())
    for text in ("", "forged", "a.b.c"):
        with pytest.raises(Unauthorized):
            CognitoIdentity(client, "pool", APP).user(text, 1)
    assert wire.calls == []


def test_a_temporary_password_does_not_sign_in(pool: tuple[Any, str, AppClient], identity: CognitoIdentity) -> None:
    pool[0].admin_create_user(UserPoolId=pool[1], Username="ada", TemporaryPassword=PASSWORD)
    with pytest.raises(Unauthorized, match="NEW_PASSWORD_REQUIRED"):
        identity.login("ada", PASSWORD)


def test_a_refresh_token_returns_a_new_token(identity: CognitoIdentity) -> None:
    identity.create("ada", PASSWORD)
    first = sign_in(identity)
    again = identity.refresh(first.refresh_token or "")
    assert again.token.count(".") == 2 and again.expire >= first.expire


def test_an_unknown_refresh_token_is_refused(identity: CognitoIdentity) -> None:
    with pytest.raises(Unauthorized):
        identity.refresh("made up")


def test_a_revoked_refresh_token_is_refused() -> None:
    wire = Wire(client := clients.cognito())
    identity = CognitoIdentity(client, "pool", APP)
    wire.answer("RevokeToken", {})
    identity.revoke("token")
    assert wire.calls == [("RevokeToken", {"ClientId": "app", "ClientSecret": "secret", "Token": "token"})]
    wire.refuse("RevokeToken", "UnsupportedTokenTypeException")
    with pytest.raises(Unauthorized):
        identity.revoke("token")


def test_a_password_is_checked_and_leaves_no_session(pool: tuple[Any, str, AppClient], identity: CognitoIdentity) -> None:
    identity.create("ada", PASSWORD)
    wire = Wire(pool[0])
    assert identity.check_password("ada", PASSWORD)
    assert not identity.check_password("ada", "Wrong-horse-1") and not identity.check_password("nobody", PASSWORD)
    assert [name for name, _ in wire.calls] == ["AdminInitiateAuth", "RevokeToken", "AdminInitiateAuth", "AdminInitiateAuth"]


# The second factor.


def enrolled(identity: CognitoIdentity) -> str:
    """The secret of ada's second factor."""
    identity.create("ada", PASSWORD)
    secret = identity.begin_totp("ada", PASSWORD)
    identity.confirm_totp("ada", PASSWORD, present(secret))
    return secret


def present(secret: str) -> str:
    return codes(secret, int(time.time() * 1000))[1]


def wrong(secret: str) -> str:
    return next(each for each in map("{:06d}".format, range(10)) if each not in codes(secret, int(time.time() * 1000)))


def test_a_second_factor_asks_for_a_code_from_then_on(identity: CognitoIdentity) -> None:
    secret = enrolled(identity)
    challenge = identity.login("ada", PASSWORD)
    assert isinstance(challenge, Challenge) and challenge.username == "ada"
    with pytest.raises(Unauthorized):
        identity.answer_challenge(challenge, wrong(secret))
    session = identity.answer_challenge(challenge, present(secret))
    assert session.user is not None and session.user.username == "ada"
    assert identity.check_password("ada", PASSWORD), "the password is right, whatever follows"


def test_a_challenge_is_of_one_user_and_ends_with_the_sign_in(identity: CognitoIdentity) -> None:
    secret = enrolled(identity)
    challenge = identity.login("ada", PASSWORD)
    assert isinstance(challenge, Challenge)
    for other in (Challenge("ada", "made up"), Challenge("eve", challenge.session)):
        with pytest.raises(Unauthorized):
            identity.answer_challenge(other, present(secret))
    identity.answer_challenge(challenge, present(secret))
    with pytest.raises(Unauthorized):
        identity.answer_challenge(challenge, present(secret))


def test_a_secret_applies_once_a_code_has_confirmed_it(identity: CognitoIdentity) -> None:
    ada = identity.create("ada", PASSWORD)
    secret = identity.begin_totp("ada", PASSWORD)
    with pytest.raises(Invalid, match="code"):
        identity.confirm_totp("ada", PASSWORD, wrong(secret))
    assert not identity.has_totp(ada) and sign_in(identity)
    identity.confirm_totp("ada", PASSWORD, present(secret))
    assert identity.has_totp(ada)


def test_a_second_factor_needs_the_password(identity: CognitoIdentity) -> None:
    identity.create("ada", PASSWORD)
    with pytest.raises(Invalid, match="current_password"):
        identity.begin_totp("ada", "Wrong-horse-1")
    with pytest.raises(Invalid, match="current_password"):
        identity.confirm_totp("ada", "Wrong-horse-1", "123456")


def test_a_second_factor_is_begun_once_until_it_is_removed(identity: CognitoIdentity) -> None:
    enrolled(identity)
    with pytest.raises(Conflict):
        identity.begin_totp("ada", PASSWORD)
    ada = next(iter(identity._client.list_users(UserPoolId=identity._pool)["Users"]))["Attributes"][0]["Value"]
    identity.remove_totp("ada")
    assert sign_in(identity) and not identity.has_totp(ada)
    assert identity.begin_totp("ada", PASSWORD)


def test_the_second_factor_of_nobody_is_none(identity: CognitoIdentity) -> None:
    assert not identity.has_totp("nobody")
    with pytest.raises(NotFound):
        identity.remove_totp("nobody")


def test_the_token_for_a_second_factor_is_revoked(pool: tuple[Any, str, AppClient], identity: CognitoIdentity) -> None:
    identity.create("ada", PASSWORD)
    wire = Wire(pool[0])
    identity.begin_totp("ada", PASSWORD)
    names = [name for name, _ in wire.calls]
    assert names == ["AdminInitiateAuth", "GetTokensFromRefreshToken", "AssociateSoftwareToken", "RevokeToken"]
    (refreshed,) = wire.sent("GetTokensFromRefreshToken")
    assert refreshed["ClientMetadata"] == {"purpose": "second-factor"}


# Accounts.


def test_a_name_is_taken_once_but_not_with_a_bad_password(identity: CognitoIdentity) -> None:
    with pytest.raises(Invalid, match="password"):
        identity.create("ada", "short")
    identity.create("ada", PASSWORD)
    with pytest.raises(Conflict, match="taken"):
        identity.create("ada", PASSWORD)


@pytest.fixture
def signed_out(pool: tuple[Any, str, AppClient]) -> list[str]:
    """The users whom Cognito was requested to sign out everywhere. The local Cognito ignores that: its refresh tokens stay valid."""
    requested: list[str] = []
    pool[0].meta.events.register(
        "provide-client-params.cognito-idp.AdminUserGlobalSignOut", lambda params, **_: requested.append(params["Username"])
    )
    return requested


def test_a_disabled_user_is_signed_out_and_cannot_sign_in(identity: CognitoIdentity, signed_out: list[str]) -> None:
    ada = identity.create("ada", PASSWORD)
    identity.set_enabled(ada, False)
    with pytest.raises(Unauthorized, match=r"^The user name or the password is wrong.$"):
        identity.login("ada", PASSWORD)
    assert signed_out == [ada]
    identity.set_enabled(ada, True)
    assert sign_in(identity)


def test_a_new_password_replaces_the_old_one(identity: CognitoIdentity) -> None:
    ada = identity.create("ada", PASSWORD)
    with pytest.raises(Invalid, match="password"):
        identity.set_password(ada, "short")
    identity.set_password(ada, "Another-horse-2")
    assert sign_in(identity, password="Another-horse-2")
    with pytest.raises(Unauthorized):
        identity.login("ada", PASSWORD)


def test_a_user_is_signed_out_by_id(identity: CognitoIdentity, signed_out: list[str]) -> None:
    ada = identity.create("ada", PASSWORD)
    identity.sign_out(ada)
    assert signed_out == [ada]
    with pytest.raises(NotFound):
        identity.sign_out("00000000-0000-4000-8000-000000000000")


def test_a_deleted_name_is_free_and_deleting_is_idempotent(identity: CognitoIdentity) -> None:
    ada = identity.create("ada", PASSWORD)
    for _ in range(2):
        identity.delete(ada)
    assert identity.create("ada", PASSWORD) != ada


def test_tokens_show_when_their_user_signed_in(identity: CognitoIdentity) -> None:
    identity.create("ada", PASSWORD)
    first = sign_in(identity)
    for session in (first, identity.refresh(first.refresh_token or "")):
        part = session.token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        assert abs(claims["auth_time"] - time.time()) < 60


def test_an_account_that_cannot_be_completed_leaves_its_name_free() -> None:
    wire = Wire(client := clients.cognito())
    wire.answer("AdminCreateUser", {"User": {"Username": "ada", "Attributes": [{"Name": "sub", "Value": "id"}]}})
    wire.answer("AdminDeleteUser", {})
    wire.refuse("AdminSetUserPassword", "InvalidParameterException")
    with pytest.raises(SchedulerError):
        CognitoIdentity(client, "pool", APP).create("ada", "with a blank")
    assert [sent["Username"] for sent in wire.sent("AdminDeleteUser")] == ["id"]


@pytest.mark.parametrize("code", ["TooManyRequestsException", "UnexpectedLambdaException", "UserLambdaValidationException"])
def test_a_login_that_aws_cannot_decide_is_unavailable(code: str) -> None:
    Wire(client := clients.cognito()).refuse("AdminInitiateAuth", code, 400)
    with pytest.raises(Unavailable):
        CognitoIdentity(client, "pool", APP).login("ada", PASSWORD)


# Single sign-on, over a token endpoint of the test.


class Pages(BaseHTTPRequestHandler):
    """The pool's sign-in pages: they answer `status` and `document`, and remember the form."""

    status, document = 200, b"{}"
    form: ClassVar[dict[str, list[str]]] = {}

    def do_POST(self) -> None:
        type(self).form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        self.send_response(type(self).status)
        self.end_headers()
        self.wfile.write(type(self).document)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[tuple[type[Pages], CognitoIdentity]]:
    class Own(Pages):
        pass

    with HTTPServer(("127.0.0.1", 0), Own) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        sso = Sso("corp", "Example Corp", f"http://127.0.0.1:{server.server_port}", "sso", "hidden")
        yield Own, CognitoIdentity(clients.cognito(), "pool", APP, sso)
        server.shutdown()
        thread.join()


def jwt(**claims: Any) -> str:
    return f"head.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.signature"


def issued(username: str = "corp_Ann", sub: str = "sub", **about: Any) -> bytes:
    access = jwt(sub="sub", username=username, exp=2_000)
    return json.dumps({"access_token": access, "id_token": jwt(sub=sub, **about), "refresh_token": "fresh"}).encode()


def test_a_code_is_exchanged_with_the_secret_and_the_verifier(pages: tuple[type[Pages], CognitoIdentity]) -> None:
    server, identity = pages
    server.document = issued(name="Ann", email="ann@example.org", email_verified="true", **{"custom:groups": "[a, b]"})
    session, claims = identity.exchange("code", "verifier", "https://console/signed-in")
    assert {name: value[0] for name, value in server.form.items()} == {
        "grant_type": "authorization_code",
        "client_id": "sso",
        "client_secret": "hidden",
        "code": "code",
        "code_verifier": "verifier",
        "redirect_uri": "https://console/signed-in",
    }
    assert (session.expire, session.refresh_token, session.user) == (2_000_000, "sso.fresh", User("sub", "corp_Ann"))
    assert claims == IdpClaims("corp", "ann", frozenset({"a", "b"}), "Ann", "ann@example.org", email_verified=True)


def test_without_a_claim_about_groups_none_are_stated(pages: tuple[type[Pages], CognitoIdentity]) -> None:
    server, identity = pages
    server.document = issued()
    assert identity.exchange("code", "verifier", "uri")[1] == IdpClaims("corp", "ann")


@pytest.mark.parametrize("document", [issued(username="ann"), issued(username="other_ann"), issued(sub="of another"), b"{}", b"[]"])
def test_tokens_that_are_not_of_the_provider_are_refused(document: bytes, pages: tuple[type[Pages], CognitoIdentity]) -> None:
    server, identity = pages
    server.document = document
    with pytest.raises(Unauthorized):
        identity.exchange("code", "verifier", "uri")


@pytest.mark.parametrize(("status", "error"), [(400, Unauthorized), (401, Unauthorized), (429, Unavailable), (500, Unavailable)])
def test_a_refused_code_is_unauthorized_and_a_failure_is_not(
    status: int, error: type[Exception], pages: tuple[type[Pages], CognitoIdentity]
) -> None:
    server, identity = pages
    server.status = status
    with pytest.raises(error):
        identity.exchange("code", "verifier", "uri")


def test_refresh_tokens_of_single_sign_on_belong_to_its_app_client() -> None:
    wire = Wire(client := clients.cognito())
    identity = CognitoIdentity(client, "pool", APP, Sso("corp", "Corp", "http://x", "sso", "hidden"))
    access = jwt(sub="sub", username="corp_ann", exp=2_000)
    wire.answer("GetTokensFromRefreshToken", {"AuthenticationResult": {"AccessToken": access, "RefreshToken": "next"}})
    wire.answer("RevokeToken", {})
    assert identity.refresh("sso.fresh").refresh_token == "sso.next"
    assert identity.refresh("fresh").refresh_token == "next"
    identity.revoke("sso.fresh")
    sent = [(each["ClientId"], each["ClientSecret"]) for _, each in wire.calls]
    assert sent == [("sso", "hidden"), ("app", "secret"), ("sso", "hidden")]
    assert wire.sent("RevokeToken")[0]["Token"] == "fresh"


def test_a_user_name_of_single_sign_on_cannot_be_created(identity: CognitoIdentity) -> None:
    wire = Wire(client := clients.cognito())
    for name in ("corp_ann", "CORP_ann"):
        with pytest.raises(Conflict, match="single sign-on"):
            CognitoIdentity(client, "pool", APP, Sso("corp", "Corp", "http://x", "sso", "hidden")).create(name, PASSWORD)
    assert wire.calls == []


def test_a_stage_without_single_sign_on_exchanges_nothing(identity: CognitoIdentity) -> None:
    with pytest.raises(NotFound):
        identity.exchange("code", "verifier", "uri")
