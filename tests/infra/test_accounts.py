from collections.abc import Callable

import pytest

from tests.infra.conftest import Synthesized


@pytest.mark.long
def test_sign_up_is_disabled_and_passwords_must_be_long(any_stage: Synthesized) -> None:
    pool = any_stage.one("Cognito::UserPool", "AccountsUsers")
    assert pool["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is True
    policy = pool["Policies"]["PasswordPolicy"]
    assert policy["MinimumLength"] >= 12
    assert all(policy[f"Require{kind}"] for kind in ("Lowercase", "Uppercase", "Numbers", "Symbols"))


@pytest.mark.long
def test_user_names_that_differ_in_case_are_one(any_stage: Synthesized) -> None:
    pool = any_stage.one("Cognito::UserPool", "AccountsUsers")
    assert pool["UsernameConfiguration"] == {"CaseSensitive": False}


def test_a_user_changes_nothing_but_the_address(any_stage: Synthesized) -> None:
    pool = any_stage.one("Cognito::UserPool", "AccountsUsers")
    client = any_stage.one("Cognito::UserPoolClient", "AccountsUsersClient")
    assert [(item["Name"], item["AttributeDataType"]) for item in pool["Schema"]] == [("job_weight", "Number")], "of existing pools"
    assert (client["ReadAttributes"], client["WriteAttributes"]) == (["email", "email_verified"], ["email"])


def test_the_public_client_does_not_reveal_which_users_exist(any_stage: Synthesized) -> None:
    client = any_stage.one("Cognito::UserPoolClient", "AccountsUsersClient")
    assert client["GenerateSecret"] is False
    assert client["PreventUserExistenceErrors"] == "ENABLED"
    assert client["ExplicitAuthFlows"] == ["ALLOW_USER_PASSWORD_AUTH"]  # with rotation, Cognito refuses REFRESH_TOKEN_AUTH beside it
    assert client.get("AllowedOAuthFlowsUserPoolClient", False) is False


def test_tokens_live_one_hour_and_refresh_tokens_thirty_days(any_stage: Synthesized) -> None:
    client = any_stage.one("Cognito::UserPoolClient", "AccountsUsersClient")
    assert set(client["TokenValidityUnits"].values()) == {"minutes"}
    assert client["AccessTokenValidity"] == 60
    assert client["IdTokenValidity"] == 60
    assert client["RefreshTokenValidity"] == 30 * 24 * 60


def test_a_refresh_token_is_replaced_when_it_is_used(any_stage: Synthesized) -> None:
    client = any_stage.one("Cognito::UserPoolClient", "AccountsUsersClient")
    assert client["RefreshTokenRotation"] == {"Feature": "ENABLED", "RetryGracePeriodSeconds": 30}


def test_a_stage_has_one_client_and_no_domain_by_default(on_aws: Synthesized) -> None:
    assert len(on_aws.all("Cognito::UserPoolClient")) == 1
    assert not on_aws.all("Cognito::UserPoolDomain") and not on_aws.all("Cognito::UserPoolGroup")


@pytest.mark.long
def test_self_sign_up_is_a_setting(synth: Callable[..., Synthesized]) -> None:
    made = synth("dev", self_sign_up=True)
    assert made.one("Cognito::UserPool", "AccountsUsers")["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is False


def test_only_the_api_administers_users_and_only_of_this_pool(any_stage: Synthesized) -> None:
    every = [(name, *grant) for name in any_stage.functions() for grant in any_stage.grants(name)]
    granted = {(name, where) for name, action, where in every if action.startswith("cognito-idp:")}
    assert granted == {("Api", "AccountsUsers")}


def test_only_the_api_uses_the_audit_trail_and_cannot_delete_it(any_stage: Synthesized) -> None:
    granted = {(name, action, where) for name in any_stage.functions() for action, where in any_stage.grants(name) if "Audit" in where}
    query = "dynamodb:Query"
    table, index = "StorageAudit", "StorageAudit/index/by_month"
    assert granted == {("Api", "dynamodb:PutItem", table), ("Api", query, table), ("Api", query, index)}
