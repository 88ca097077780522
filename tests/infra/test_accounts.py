from tests.infra.conftest import Synthesized


def test_nobody_signs_up_and_passwords_are_long(any_stage: Synthesized) -> None:
    pool = any_stage.one("Cognito::UserPool", "AccountsUsers")
    assert pool["AdminCreateUserConfig"]["AllowAdminCreateUserOnly"] is True
    policy = pool["Policies"]["PasswordPolicy"]
    assert policy["MinimumLength"] >= 12
    assert all(policy[f"Require{kind}"] for kind in ("Lowercase", "Uppercase", "Numbers", "Symbols"))


def test_a_user_has_a_weight_and_cannot_change_it(any_stage: Synthesized) -> None:
    pool = any_stage.one("Cognito::UserPool", "AccountsUsers")
    client = any_stage.one("Cognito::UserPoolClient", "AccountsUsersClient")
    assert [(item["Name"], item["AttributeDataType"]) for item in pool["Schema"]] == [("job_weight", "Number")]
    assert "custom:job_weight" in client["ReadAttributes"]
    assert client["WriteAttributes"] == ["email"]


def test_the_client_is_public_and_tells_nobody_which_users_exist(any_stage: Synthesized) -> None:
    client = any_stage.one("Cognito::UserPoolClient", "AccountsUsersClient")
    assert client["GenerateSecret"] is False
    assert client["PreventUserExistenceErrors"] == "ENABLED"
    assert sorted(client["ExplicitAuthFlows"]) == ["ALLOW_REFRESH_TOKEN_AUTH", "ALLOW_USER_PASSWORD_AUTH"]
    assert client.get("AllowedOAuthFlowsUserPoolClient", False) is False


def test_tokens_live_an_hour_and_are_refreshed_for_thirty_days(any_stage: Synthesized) -> None:
    client = any_stage.one("Cognito::UserPoolClient", "AccountsUsersClient")
    assert set(client["TokenValidityUnits"].values()) == {"minutes"}
    assert client["AccessTokenValidity"] == 60
    assert client["IdTokenValidity"] == 60
    assert client["RefreshTokenValidity"] == 30 * 24 * 60


def test_there_is_a_group_of_administrators(any_stage: Synthesized) -> None:
    (group,) = any_stage.all("Cognito::UserPoolGroup").values()
    assert group["GroupName"] == "administrators"
