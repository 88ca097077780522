"""The ports Accounts and Directory, on Cognito."""

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler.model.account import Role
from scheduler.model.errors import Conflict, Invalid, NotFound, SchedulerError, Unauthorized, Unavailable
from scheduler.storage.aws import clients
from scheduler.storage.aws.accounts import CognitoAccounts
from scheduler.storage.aws.directory import GROUPS
from scheduler.storage.aws.identity import CognitoIdentity
from scheduler.storage.ports import User
from tests.contract.wire import Wire

PASSWORD = "Correct-horse-1"


@pytest.fixture
def pool(local_aws: str) -> tuple[Any, str, str]:
    client = clients.cognito(endpoint_url=local_aws)
    pool = client.create_user_pool(PoolName="users")["UserPool"]["Id"]
    flows: Any = ["ALLOW_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"]
    app = client.create_user_pool_client(UserPoolId=pool, ClientName="api", ExplicitAuthFlows=flows)["UserPoolClient"]["ClientId"]
    for group in GROUPS.values():
        client.create_group(UserPoolId=pool, GroupName=group)
    return client, pool, app


def add(pool: tuple[Any, str, str], name: str, *, temporary: bool = False) -> str:
    client, pool_id, _ = pool
    user = client.admin_create_user(UserPoolId=pool_id, Username=name, TemporaryPassword=PASSWORD)["User"]
    if not temporary:
        client.admin_set_user_password(UserPoolId=pool_id, Username=name, Password=PASSWORD, Permanent=True)
    return str({attribute["Name"]: attribute["Value"] for attribute in user["Attributes"]}["sub"])


def test_a_login_returns_tokens_and_the_user(pool: tuple[Any, str, str]) -> None:
    ada = add(pool, "ada")
    session = CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD)
    assert session.user == User(ada, "ada")
    assert session.token.count(".") == 2 and session.refresh_token
    assert session.expire % 1000 == 0 and session.expire > 1_700_000_000_000


def test_a_login_is_one_call_of_cognito(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    wire = Wire(pool[0])
    CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD)
    assert [operation for operation, _ in wire.calls] == ["InitiateAuth"]


def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    messages = set()
    for name, password in (("ada", "wrong"), ("nobody", PASSWORD)):
        with pytest.raises(Unauthorized) as refused:
            CognitoAccounts(pool[0], pool[2]).login(name, password)
        messages.add(refused.value.message)
    assert len(messages) == 1


def test_a_token_identifies_its_user_and_a_forged_one_is_refused(pool: tuple[Any, str, str]) -> None:
    ada, accounts = add(pool, "ada"), CognitoAccounts(pool[0], pool[2])
    session = accounts.login("ada", PASSWORD)
    assert accounts.user(session.token, session.expire - 1).id == ada
    with pytest.raises(Unauthorized):
        accounts.user("forged", session.expire - 1)


def test_a_token_that_cannot_be_ours_is_refused_without_a_call() -> None:
    """A stranger's flood of such tokens must not use up the quota of GetUser."""
    client = clients.cognito()
    wire, accounts, ours = Wire(client), CognitoAccounts(client, "app"), {"token_use": "access", "client_id": "app", "exp": 1_000}
    wire.answer("GetUser", {"Username": "ada", "UserAttributes": [{"Name": "sub", "Value": "sub-ada"}]})
    deep = f"a.{base64.urlsafe_b64encode(b'[' * 9_000).decode()}.c"
    bad = ["", "forged", "a.b.c", "a.bnVsbA.c", deep, token({}), *(token({**ours, **wrong}) for wrong in WRONG_CLAIMS)]
    for each in bad:
        with pytest.raises(Unauthorized):
            accounts.user(each, 999_999)
    assert wire.calls == []
    assert accounts.user(token(ours), 999_999) == User("sub-ada", "ada")
    with pytest.raises(Unauthorized):
        accounts.user(token(ours), 1_000_000)


WRONG_CLAIMS: list[dict[str, Any]] = [{"token_use": "id"}, {"client_id": "other"}, {"exp": None}, {"exp": "soon"}, {"exp": float("inf")}]


def token(claims: dict[str, Any]) -> str:
    return f"head.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.signature"


def test_a_temporary_password_does_not_sign_in(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada", temporary=True)
    with pytest.raises(Unauthorized, match="NEW_PASSWORD_REQUIRED"):
        CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD)


def test_a_refresh_token_returns_a_new_token(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    accounts = CognitoAccounts(pool[0], pool[2])
    first = accounts.login("ada", PASSWORD)
    again = accounts.refresh(first.refresh_token or "")
    assert again.token.count(".") == 2 and again.expire >= first.expire


def test_an_unknown_refresh_token_is_refused(pool: tuple[Any, str, str]) -> None:
    with pytest.raises(Unauthorized):
        CognitoAccounts(pool[0], pool[2]).refresh("made up")


def test_a_revoked_refresh_token_is_refused(pool: tuple[Any, str, str]) -> None:
    client = clients.cognito()
    wire, accounts = Wire(client), CognitoAccounts(client, "app")
    wire.answer("RevokeToken", {})
    accounts.revoke("token")
    assert [(operation, sent["Token"]) for operation, sent in wire.calls] == [("RevokeToken", "token")]
    wire.refuse("RevokeToken", "UnsupportedTokenTypeException")
    with pytest.raises(Unauthorized):
        accounts.revoke("token")


def test_a_password_change_requires_the_old_password(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    accounts = CognitoAccounts(pool[0], pool[2])
    token = accounts.login("ada", PASSWORD).token
    with pytest.raises(Invalid, match="current_password"):
        accounts.change_password(token, "Wrong-horse-1", "Another-horse-2")
    with pytest.raises(Invalid, match="new_password"):
        accounts.change_password(token, PASSWORD, "short")
    accounts.change_password(token, PASSWORD, "Another-horse-2")
    assert accounts.login("ada", "Another-horse-2").token
    with pytest.raises(Unauthorized):
        accounts.login("ada", PASSWORD)


@pytest.fixture
def directory(pool: tuple[Any, str, str]) -> CognitoIdentity:
    return CognitoIdentity(*pool, {})


@pytest.mark.parametrize("role", list(Role))
def test_a_created_user_signs_in_with_the_given_password_and_role(
    pool: tuple[Any, str, str], directory: CognitoIdentity, role: Role
) -> None:
    made = directory.create("ada", PASSWORD, role)
    assert directory.get(made.id) == made and (made.username, made.role, made.enabled) == ("ada", role, True)
    assert CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD).user == User(made.id, "ada")


def test_a_name_is_taken_once_but_not_with_a_bad_password(directory: CognitoIdentity) -> None:
    with pytest.raises(Invalid, match="password"):
        directory.create("ada", "short", Role.USER)
    directory.create("ada", PASSWORD, Role.USER)
    with pytest.raises(Conflict, match="taken"):
        directory.create("ada", PASSWORD, Role.USER)


def test_a_user_is_found_only_by_id(directory: CognitoIdentity) -> None:
    directory.create("ada", PASSWORD, Role.USER)
    assert directory.get("ada") is None and directory.get("00000000-0000-4000-8000-000000000000") is None


def test_setting_a_role_replaces_any_other_role(directory: CognitoIdentity) -> None:
    made = directory.create("ada", PASSWORD, Role.ADMINISTRATOR)
    for role in (Role.OPERATOR, Role.USER, Role.ADMINISTRATOR):
        directory.set_role(made.id, role)
        found = directory.get(made.id)
        assert found is not None and found.role is role


@pytest.fixture
def signed_out(pool: tuple[Any, str, str]) -> list[str]:
    """The users whom Cognito was requested to sign out everywhere. The local Cognito ignores that: its refresh tokens stay valid."""
    told: list[str] = []
    pool[0].meta.events.register(
        "provide-client-params.cognito-idp.AdminUserGlobalSignOut", lambda params, **_: told.append(params["Username"])
    )
    return told


def test_a_disabled_user_is_signed_out_and_cannot_sign_in(
    pool: tuple[Any, str, str], directory: CognitoIdentity, signed_out: list[str]
) -> None:
    made, accounts = directory.create("ada", PASSWORD, Role.USER), CognitoAccounts(pool[0], pool[2])
    directory.set_enabled(made.id, False)
    found = directory.get(made.id)
    assert found is not None and not found.enabled
    with pytest.raises(Unauthorized, match=r"^The user name or the password is wrong.$"):
        accounts.login("ada", PASSWORD)
    assert signed_out == [made.id]
    directory.set_enabled(made.id, True)
    assert accounts.login("ada", PASSWORD).token


def test_an_administrator_sets_a_password(pool: tuple[Any, str, str], directory: CognitoIdentity) -> None:
    made, accounts = directory.create("ada", PASSWORD, Role.USER), CognitoAccounts(pool[0], pool[2])
    with pytest.raises(Invalid, match="password"):
        directory.set_password(made.id, "short")
    directory.set_password(made.id, "Another-horse-2")
    assert accounts.login("ada", "Another-horse-2").token


def test_a_user_is_signed_out_by_id(directory: CognitoIdentity, signed_out: list[str]) -> None:
    made = directory.create("ada", PASSWORD, Role.USER)
    directory.sign_out(made.id)
    assert signed_out == [made.id]
    with pytest.raises(NotFound):
        directory.sign_out("00000000-0000-4000-8000-000000000000")


def test_tokens_show_when_their_user_signed_in(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    accounts = CognitoAccounts(pool[0], pool[2])
    first = accounts.login("ada", PASSWORD)
    for session in (first, accounts.refresh(first.refresh_token or "")):
        part = session.token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        assert abs(claims["auth_time"] - time.time()) < 60


def test_all_users_are_listed_once_with_their_roles(directory: CognitoIdentity) -> None:
    made = {
        directory.create(f"user{number}", PASSWORD, role)
        for number, role in enumerate((Role.USER, Role.OPERATOR, Role.ADMINISTRATOR, Role.USER, Role.USER))
    }
    listed, cursor = directory.page(None, 2)
    while cursor is not None:
        more, cursor = directory.page(cursor, 2)
        listed += more
    assert len(listed) == 5 and set(listed) == made


@pytest.mark.parametrize(
    ("operation", "code"), [("AdminSetUserPassword", "InvalidParameterException"), ("AdminAddUserToGroup", "TooManyRequestsException")]
)
def test_an_account_that_cannot_be_completed_leaves_its_name_free(operation: str, code: str) -> None:
    client = clients.cognito()
    wire, made = Wire(client), {"Username": "ada", "Attributes": [{"Name": "sub", "Value": "id"}], "Enabled": True}
    wire.answer("AdminCreateUser", {"User": {**made, "UserCreateDate": datetime(2026, 11, 20, tzinfo=UTC)}})
    wire.answer("AdminAddUserToGroup", {})
    wire.answer("AdminDeleteUser", {})
    wire.refuse(operation, code)
    with pytest.raises(SchedulerError):
        CognitoIdentity(client, "pool", "app", {}).create("ada", "with a blank", Role.ADMINISTRATOR)
    assert [sent["Username"] for sent in wire.sent("AdminDeleteUser")] == ["id"]


def test_a_throttled_login_is_unavailable_not_unauthorized() -> None:
    client = clients.cognito()
    Wire(client).refuse("InitiateAuth", "TooManyRequestsException", 400)
    with pytest.raises(Unavailable):
        CognitoAccounts(client, "app").login("ada", PASSWORD)
