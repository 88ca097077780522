"""The ports Accounts and Directory, on Cognito."""

from typing import Any

import pytest

from scheduler.accounts.access import Role
from scheduler.model.errors import Conflict, Invalid, Unauthorized, Unavailable
from scheduler.storage.aws import clients
from scheduler.storage.aws.accounts import CognitoAccounts
from scheduler.storage.aws.directory import GROUPS
from scheduler.storage.aws.identity import CognitoIdentity
from tests.contract.wire import Wire

PASSWORD = "Correct-horse-1"


@pytest.fixture
def pool(local_aws: str) -> tuple[Any, str, str]:
    client = clients.cognito(endpoint_url=local_aws)
    weight: Any = {"Name": "job_weight", "AttributeDataType": "Number", "Mutable": True}
    pool = client.create_user_pool(PoolName="users", Schema=[weight])["UserPool"]["Id"]
    flows: Any = ["ALLOW_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"]
    app = client.create_user_pool_client(UserPoolId=pool, ClientName="api", ExplicitAuthFlows=flows)["UserPoolClient"]["ClientId"]
    for group in GROUPS.values():
        client.create_group(UserPoolId=pool, GroupName=group)
    return client, pool, app


def add(pool: tuple[Any, str, str], name: str, *, weight: str | None = None, temporary: bool = False) -> str:
    client, pool_id, _ = pool
    attributes = [{"Name": "custom:job_weight", "Value": weight}] if weight else []
    user = client.admin_create_user(UserPoolId=pool_id, Username=name, UserAttributes=attributes, TemporaryPassword=PASSWORD)["User"]
    if not temporary:
        client.admin_set_user_password(UserPoolId=pool_id, Username=name, Password=PASSWORD, Permanent=True)
    return str({attribute["Name"]: attribute["Value"] for attribute in user["Attributes"]}["sub"])


def test_a_login_returns_tokens_and_the_user(pool: tuple[Any, str, str]) -> None:
    ada = add(pool, "ada", weight="2.5")
    session = CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD)
    assert session.user is not None
    assert (session.user.id, session.user.username, session.user.job_weight) == (ada, "ada", 2.5)
    assert session.token.count(".") == 2 and session.refresh_token
    assert session.expire % 1000 == 0 and session.expire > 1_700_000_000_000


def test_a_user_without_a_weight_has_weight_one(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    user = CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD).user
    assert user is not None and user.job_weight == 1.0


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
    assert accounts.user(accounts.login("ada", PASSWORD).token).id == ada
    with pytest.raises(Unauthorized):
        accounts.user("forged")


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
def test_a_created_user_signs_in_with_the_given_password_role_and_weight(
    pool: tuple[Any, str, str], directory: CognitoIdentity, role: Role
) -> None:
    made = directory.create("ada", PASSWORD, role, 2.5)
    assert directory.get(made.id) == made and (made.username, made.role, made.job_weight, made.enabled) == ("ada", role, 2.5, True)
    user = CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD).user
    assert user is not None and (user.id, user.job_weight) == (made.id, 2.5)


def test_a_name_is_taken_once_but_not_with_a_bad_password(directory: CognitoIdentity) -> None:
    with pytest.raises(Invalid, match="password"):
        directory.create("ada", "short", Role.USER, 1.0)
    directory.create("ada", PASSWORD, Role.USER, 1.0)
    with pytest.raises(Conflict, match="taken"):
        directory.create("ada", PASSWORD, Role.USER, 1.0)


def test_a_user_is_found_only_by_id(directory: CognitoIdentity) -> None:
    directory.create("ada", PASSWORD, Role.USER, 1.0)
    assert directory.get("ada") is None and directory.get("00000000-0000-4000-8000-000000000000") is None


def test_setting_a_role_replaces_any_other_role(directory: CognitoIdentity) -> None:
    made = directory.create("ada", PASSWORD, Role.ADMINISTRATOR, 1.0)
    for role in (Role.OPERATOR, Role.USER, Role.ADMINISTRATOR):
        directory.set_role(made.id, role)
        found = directory.get(made.id)
        assert found is not None and found.role is role


@pytest.fixture
def signed_out(pool: tuple[Any, str, str]) -> list[str]:
    """The users that Cognito was asked to sign out everywhere. The local Cognito ignores that: its refresh tokens stay valid."""
    told: list[str] = []
    pool[0].meta.events.register(
        "provide-client-params.cognito-idp.AdminUserGlobalSignOut", lambda params, **_: told.append(params["Username"])
    )
    return told


def test_a_disabled_user_is_signed_out_and_cannot_sign_in(
    pool: tuple[Any, str, str], directory: CognitoIdentity, signed_out: list[str]
) -> None:
    made, accounts = directory.create("ada", PASSWORD, Role.USER, 1.0), CognitoAccounts(pool[0], pool[2])
    directory.set_enabled(made.id, False)
    found = directory.get(made.id)
    assert found is not None and not found.enabled
    with pytest.raises(Unauthorized, match=r"^The user name or the password is wrong.$"):
        accounts.login("ada", PASSWORD)
    assert signed_out == [made.id]
    directory.set_enabled(made.id, True)
    assert accounts.login("ada", PASSWORD).token


def test_a_password_set_by_an_administrator_ends_old_sessions(
    pool: tuple[Any, str, str], directory: CognitoIdentity, signed_out: list[str]
) -> None:
    made, accounts = directory.create("ada", PASSWORD, Role.USER, 1.0), CognitoAccounts(pool[0], pool[2])
    with pytest.raises(Invalid, match="password"):
        directory.set_password(made.id, "short")
    directory.set_password(made.id, "Another-horse-2")
    assert accounts.login("ada", "Another-horse-2").token
    assert signed_out == [made.id]


def test_all_users_are_listed_once_with_their_roles(directory: CognitoIdentity) -> None:
    made = {
        directory.create(f"user{number}", PASSWORD, role, 1.0)
        for number, role in enumerate((Role.USER, Role.OPERATOR, Role.ADMINISTRATOR, Role.USER, Role.USER))
    }
    listed, cursor = directory.page(None, 2)
    while cursor is not None:
        more, cursor = directory.page(cursor, 2)
        listed += more
    assert len(listed) == 5 and set(listed) == made


def test_a_weight_is_in_the_next_sign_in(pool: tuple[Any, str, str], directory: CognitoIdentity) -> None:
    made = directory.create("ada", PASSWORD, Role.USER, 1.0)
    directory.set_weight(made.id, 0.25)
    user = CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD).user
    assert user is not None and user.job_weight == 0.25


def test_a_throttled_login_is_unavailable_not_unauthorized() -> None:
    client = clients.cognito()
    Wire(client).refuse("InitiateAuth", "TooManyRequestsException", 400)
    with pytest.raises(Unavailable):
        CognitoAccounts(client, "app").login("ada", PASSWORD)
