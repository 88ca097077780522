"""The port Accounts, on Cognito."""

from typing import Any

import pytest

from scheduler.aws import clients
from scheduler.aws.accounts import CognitoAccounts
from scheduler.errors import Unauthorized, Unavailable
from tests.contract.wire import Wire

PASSWORD = "Correct-horse-1"


@pytest.fixture
def pool(moto: None) -> tuple[Any, str, str]:
    client = clients.cognito()
    weight: Any = {"Name": "job_weight", "AttributeDataType": "Number", "Mutable": True}
    pool = client.create_user_pool(PoolName="users", Schema=[weight])["UserPool"]["Id"]
    flows: Any = ["ALLOW_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"]
    app = client.create_user_pool_client(UserPoolId=pool, ClientName="api", ExplicitAuthFlows=flows)["UserPoolClient"]["ClientId"]
    return client, pool, app


def add(pool: tuple[Any, str, str], name: str, *, weight: str | None = None, temporary: bool = False) -> str:
    client, pool_id, _ = pool
    attributes = [{"Name": "custom:job_weight", "Value": weight}] if weight else []
    user = client.admin_create_user(UserPoolId=pool_id, Username=name, UserAttributes=attributes, TemporaryPassword=PASSWORD)["User"]
    if not temporary:
        client.admin_set_user_password(UserPoolId=pool_id, Username=name, Password=PASSWORD, Permanent=True)
    return str({attribute["Name"]: attribute["Value"] for attribute in user["Attributes"]}["sub"])


def test_a_login_gives_tokens_and_says_who_it_is(pool: tuple[Any, str, str]) -> None:
    ada = add(pool, "ada", weight="2.5")
    session = CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD)
    assert session.user is not None
    assert (session.user.id, session.user.username, session.user.job_weight) == (ada, "ada", 2.5)
    assert session.token.count(".") == 2 and session.refresh_token
    assert session.expire % 1000 == 0 and session.expire > 1_700_000_000_000


def test_a_user_without_a_weight_weighs_one(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    user = CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD).user
    assert user is not None and user.job_weight == 1.0


def test_a_wrong_name_and_a_wrong_password_are_refused_alike(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    messages = set()
    for name, password in (("ada", "wrong"), ("nobody", PASSWORD)):
        with pytest.raises(Unauthorized) as refused:
            CognitoAccounts(pool[0], pool[2]).login(name, password)
        messages.add(refused.value.message)
    assert len(messages) == 1


def test_a_token_tells_whose_it_is_and_a_forged_one_is_refused(pool: tuple[Any, str, str]) -> None:
    ada, accounts = add(pool, "ada"), CognitoAccounts(pool[0], pool[2])
    assert accounts.user(accounts.login("ada", PASSWORD).token).id == ada
    with pytest.raises(Unauthorized):
        accounts.user("forged")


def test_a_temporary_password_does_not_sign_in(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada", temporary=True)
    with pytest.raises(Unauthorized, match="NEW_PASSWORD_REQUIRED"):
        CognitoAccounts(pool[0], pool[2]).login("ada", PASSWORD)


def test_a_refresh_token_gives_a_new_token(pool: tuple[Any, str, str]) -> None:
    add(pool, "ada")
    accounts = CognitoAccounts(pool[0], pool[2])
    first = accounts.login("ada", PASSWORD)
    again = accounts.refresh(first.refresh_token or "")
    assert again.token.count(".") == 2 and again.expire >= first.expire


def test_a_made_up_refresh_token_is_refused(pool: tuple[Any, str, str]) -> None:
    with pytest.raises(Unauthorized):
        CognitoAccounts(pool[0], pool[2]).refresh("made up")


def test_a_throttled_login_is_unavailable_not_wrong() -> None:
    client = clients.cognito()
    Wire(client).refuse("InitiateAuth", "TooManyRequestsException", 400)
    with pytest.raises(Unavailable):
        CognitoAccounts(client, "app").login("ada", PASSWORD)
