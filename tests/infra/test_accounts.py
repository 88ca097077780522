from collections.abc import Callable
from typing import Any

import pytest

from infra.accounts import TRIGGER, _reference
from infra.options import Options, SignOn
from scheduler.accounts.sso import LOOPBACK_PORTS
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
    attributes = [(item["Name"], item["AttributeDataType"]) for item in pool["Schema"]]
    assert attributes == [("job_weight", "Number"), ("groups", "String")], "of existing pools"
    assert (client["ReadAttributes"], client["WriteAttributes"]) == (["email", "email_verified"], ["email"])


def test_no_app_client_has_a_public_flow(single: Synthesized) -> None:
    """The id of a client is in every token: nobody may sign in with it past the API, with its limits and its audit trail."""
    found = single.all("Cognito::UserPoolClient").values()
    assert len(found) == 2
    for client in found:
        assert client["GenerateSecret"] is True and client["PreventUserExistenceErrors"] == "ENABLED"
        assert client["ExplicitAuthFlows"] == ["ALLOW_ADMIN_USER_PASSWORD_AUTH"]  # no flow at all would be AWS's default: some are public


def test_tokens_live_one_hour_and_refresh_tokens_thirty_days(any_stage: Synthesized) -> None:
    client = any_stage.one("Cognito::UserPoolClient", "AccountsUsersClient")
    assert set(client["TokenValidityUnits"].values()) == {"minutes"}
    assert (client["AccessTokenValidity"], client["IdTokenValidity"]) == (60, 60)
    assert client["RefreshTokenValidity"] == 30 * 24 * 60
    assert client.get("AllowedOAuthFlowsUserPoolClient", False) is False


def test_a_refresh_token_is_replaced_when_it_is_used(single: Synthesized) -> None:
    for client in single.all("Cognito::UserPoolClient").values():
        assert client["RefreshTokenRotation"] == {"Feature": "ENABLED", "RetryGracePeriodSeconds": 30}


def test_a_person_may_have_a_second_factor(any_stage: Synthesized) -> None:
    pool = any_stage.one("Cognito::UserPool", "AccountsUsers")
    assert (pool["MfaConfiguration"], pool["EnabledMfas"]) == ("OPTIONAL", ["SOFTWARE_TOKEN_MFA"])


def test_every_token_passes_the_trigger_which_has_no_grants(any_stage: Synthesized) -> None:
    pool = any_stage.one("Cognito::UserPool", "AccountsUsers")
    id = any_stage.id("Lambda::Function", "AccountsTokensFunction")
    expected = {"LambdaArn": {"Fn::GetAtt": [id, "Arn"]}, "LambdaVersion": "V2_0"}
    assert pool["LambdaConfig"] == {"PreTokenGenerationConfig": expected}
    assert pool["UserPoolTier"] == "ESSENTIALS", "the cheaper plan has no such trigger"
    function = any_stage.one("Lambda::Function", "AccountsTokensFunction")
    assert function["Code"] == {"ZipFile": TRIGGER.read_text()} and function["Timeout"] <= 5
    assert {action for action, _ in any_stage.grants("AccountsTokens")} == {"logs:CreateLogStream", "logs:PutLogEvents"}


def test_the_api_has_the_secrets_of_its_app_clients(single: Synthesized) -> None:
    (function,) = [each for name, each in single.functions().items() if name == "Api"]
    variables = function["Environment"]["Variables"]
    client = single.id("Cognito::UserPoolClient", "AccountsUsersClient")
    assert variables["PUNCTUAL_USER_POOL_CLIENT_SECRET"] == {"Fn::GetAtt": [client, "ClientSecret"]}
    sso = single.id("Cognito::UserPoolClient", "AccountsUsersSso")
    assert {"Fn::GetAtt": [sso, "ClientSecret"]} in variables["PUNCTUAL_SSO"]["Fn::Join"][1]
    others = [each for name, each in single.functions().items() if name != "Api"]
    assert not [each for each in others if "Cognito" in str(each.get("Environment")) or "ClientSecret" in str(each)]


# Single sign-on.

OIDC = {
    "name": "Example Corp",
    "type": "oidc",
    "console": "https://console.example.com",
    "provider": "corp",
    "issuer": "https://idp.example.com",
    "client_id": "punctual",
    "client_secret": "punctual/sso",
    "groups_claim": "memberOf",
    "administrators": ("job-admins",),
    "sign_out_url": "https://idp.example.com/logout",
}
SAML = {
    "name": "Identity Center",
    "type": "saml",
    "console": "https://console.example.com",
    "metadata_url": "https://portal.sso.eu-west-1.amazonaws.com/saml/metadata/x",
}


@pytest.fixture(scope="session")
def single(synth: Callable[..., Synthesized]) -> Synthesized:
    """`prod` with single sign-on by OpenID Connect."""
    return synth("prod", sso=SignOn.model_validate(OIDC))


def test_a_stage_has_no_single_sign_on_by_default(on_aws: Synthesized) -> None:
    assert len(on_aws.all("Cognito::UserPoolClient")) == 1
    assert not on_aws.all("Cognito::UserPoolDomain") and not on_aws.all("Cognito::UserPoolIdentityProvider")


def test_the_browser_returns_to_the_console_or_to_the_command_line(single: Synthesized) -> None:
    client = single.one("Cognito::UserPoolClient", "AccountsUsersSso")
    loopback = [f"http://127.0.0.1:{port}/signed-in" for port in LOOPBACK_PORTS]
    assert client["CallbackURLs"] == ["https://console.example.com/signed-in", *loopback]
    assert client["LogoutURLs"] == ["https://console.example.com", "https://idp.example.com/logout"]
    assert client["AllowedOAuthFlows"] == ["code"] and client["SupportedIdentityProviders"] == ["corp"]
    assert client["RefreshTokenValidity"] == 8 * 60
    assert "aws.cognito.signin.user.admin" not in client["AllowedOAuthScopes"]


def test_the_template_refers_to_the_secret_of_the_provider(single: Synthesized) -> None:
    provider = single.one("Cognito::UserPoolIdentityProvider", "AccountsProvider")
    assert provider["ProviderDetails"]["client_secret"] == "{{resolve:secretsmanager:punctual/sso:SecretString:::}}"
    assert provider["AttributeMapping"] == {"email": "email", "name": "name", "custom:groups": "memberOf"}
    client = single.one("Cognito::UserPoolClient", "AccountsUsersSso")
    assert set(provider["AttributeMapping"]) <= set(client["WriteAttributes"]), "else Cognito refuses each sign-in"


def test_a_secret_may_be_a_parameter_which_costs_nothing() -> None:
    assert _reference("ssm:/punctual/sso") == "{{resolve:ssm:/punctual/sso}}"


def test_the_trigger_knows_the_claim_of_the_provider(single: Synthesized) -> None:
    pool = single.one("Cognito::UserPool", "AccountsUsers")
    assert pool["LambdaConfig"]["InboundFederation"]["LambdaVersion"] == "V1_0"
    function = single.one("Lambda::Function", "AccountsTokensFunction")
    assert function["Environment"]["Variables"] == {"GROUPS_CLAIM": "memberOf"}


def test_tokens_of_single_sign_on_are_valid_too(single: Synthesized) -> None:
    authorizer = single.one("ApiGatewayV2::Authorizer", "ApiHttpSignedIn")
    clients = [{"Ref": single.id("Cognito::UserPoolClient", f"AccountsUsers{name}")} for name in ("Client", "Sso")]
    assert authorizer["JwtConfiguration"]["Audience"] == clients


@pytest.mark.long
def test_a_provider_by_saml_is_described_by_its_metadata(synth: Callable[..., Synthesized]) -> None:
    made = synth("dev", sso=SignOn.model_validate(SAML))
    provider = made.one("Cognito::UserPoolIdentityProvider", "AccountsProvider")
    assert (provider["ProviderType"], provider["ProviderDetails"]) == ("SAML", {"IDPSignout": False, "MetadataURL": SAML["metadata_url"]})


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"issuer": None}, "needs issuer"),
        ({"client_secret": None, "client_id": None}, "needs client_id, client_secret"),
        ({"metadata_url": "https://x.example.com"}, "metadata_url belongs to the other type"),
        ({"type": "ldap"}, "'oidc' or 'saml'"),
        ({"provider": "cognito"}, "not be cognito"),
        ({"provider": "Corp_1"}, "small letters"),
        ({"console": "https://console.example.com/"}, "end after the host name"),
        ({"console": "http://console.example.com"}, "https://"),
        ({"issuer": "http://idp.example.com"}, "https://"),
        ({"passwords": False}, "break_glass"),
        ({"secret": "s3cret"}, "Extra inputs"),
        ({"name": " "}, "1 to 512 characters"),
    ],
)
def test_a_wrong_option_of_single_sign_on_is_refused_with_its_rule(change: dict[str, Any], rule: str) -> None:
    SignOn.model_validate(OIDC)
    with pytest.raises(ValueError, match=rule):
        SignOn.model_validate({**OIDC, **change})


def test_the_record_of_the_last_deployment_has_no_secret() -> None:
    chosen = Options.model_validate({"sso": OIDC}).chosen
    assert chosen["sso"]["client_secret"] == "punctual/sso" and chosen["sso"]["provider"] == "corp"


def test_only_the_api_administers_users_and_only_of_this_pool(any_stage: Synthesized) -> None:
    every = [(name, *grant) for name in any_stage.functions() for grant in any_stage.grants(name)]
    granted = {(name, where) for name, action, where in every if action.startswith("cognito-idp:")}
    assert granted == {("Api", "AccountsUsers")}


def test_only_the_api_uses_the_audit_trail_and_cannot_delete_it(any_stage: Synthesized) -> None:
    granted = {(name, action, where) for name in any_stage.functions() for action, where in any_stage.grants(name) if "Audit" in where}
    query = "dynamodb:Query"
    table, index = "StorageAudit", "StorageAudit/index/by_month"
    assert granted == {("Api", "dynamodb:PutItem", table), ("Api", query, table), ("Api", query, index)}
