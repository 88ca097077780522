import json

import pytest

from lambdas import api
from lambdas._settings import Settings
from scheduler.accounts.access import Need
from tests.infra.conftest import Synthesized, synthesized

OPEN = {
    "GET /api/v1/health",
    "POST /api/v1/auth/challenge",
    "POST /api/v1/auth/login",
    "POST /api/v1/auth/refresh",
    "GET /api/v1/auth/sso",
    "POST /api/v1/auth/sso",
    "POST /api/v1/keys/revoke",
    "GET /api/v1/openapi.json",
    "GET /api/v1/docs",
}
REPORTS = {f"POST /api/v1/jobs/{{job_id}}/{verb}" for verb in ("heartbeat", "complete", "fail")}  # these have their own tokens
REPORTS |= {f"{method} /api/v1/ping/{{token}}{rest}" for method in ("GET", "POST") for rest in ("", "/{signal}")}
METHODS = ("POST", "PUT", "PATCH", "DELETE")
WRITES = [f"{method} /api/v1/{{proxy+}}" for method in METHODS]
BY_KEY = {f"{method} /api/v1/key/{{proxy+}}" for method in (*METHODS, "ANY")}  # the function checks the key
ISSUERS = {
    "123456789012": "https://0a1b.tokens.sts.global.api.aws",
    "210987654321": "https://2c3d.tokens.sts.global.api.aws",
}


def by_role(account: str) -> set[str]:
    return {f"{method} /api/v1/aws/{account}/{{proxy+}}" for method in (*METHODS, "ANY")}


def of_roles(stage: Synthesized) -> set[str]:
    return {key for account in stage.settings.aws_issuers for key in by_role(account)}


def with_issuers(stage: str) -> Synthesized:
    made: Synthesized = synthesized.__wrapped__(stage, aws_issuers=ISSUERS)  # not kept: tables are no keys
    return made


def test_only_open_routes_and_those_for_keys_need_no_authorizer(any_stage: Synthesized) -> None:
    routes = any_stage.all("ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes if route.get("AuthorizationType", "NONE") == "NONE"} == OPEN | REPORTS | BY_KEY


def test_the_gateway_opens_the_routes_that_declare_themselves_open() -> None:
    declared = [route for route, rule in api.RULES.items() if rule.need is Need.OPEN]
    keys = {route.replace(" ", " /api/v1").replace("<", "{").replace(">", "}") for route in declared}
    assert keys == OPEN | REPORTS


def test_all_other_routes_need_a_token_even_unknown_ones(any_stage: Synthesized) -> None:
    routes = any_stage.all("ApiGatewayV2::Route").values()
    behind = [route for route in routes if route["RouteKey"] not in OPEN | REPORTS | BY_KEY]
    assert {route["RouteKey"] for route in behind} == {"ANY /api/v1/{proxy+}", *WRITES} | of_roles(any_stage)
    for route in behind:
        if route["RouteKey"] in of_roles(any_stage):
            continue
        assert route["AuthorizationType"] == "JWT"
        assert route["AuthorizerId"]["Ref"] == any_stage.id("ApiGatewayV2::Authorizer", "ApiHttpSignedIn")


def test_a_token_is_valid_if_our_pool_issued_it_for_our_client(any_stage: Synthesized) -> None:
    authorizer = any_stage.one("ApiGatewayV2::Authorizer", "ApiHttpSignedIn")
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    clients = list(any_stage.all("Cognito::UserPoolClient"))
    assert {"Ref": any_stage.id("Cognito::UserPoolClient", "AccountsUsersClient")} in authorizer["JwtConfiguration"]["Audience"]
    assert sorted(each["Ref"] for each in authorizer["JwtConfiguration"]["Audience"]) == sorted(clients)
    assert {"Ref": any_stage.id("Cognito::UserPool", "AccountsUsers")} in authorizer["JwtConfiguration"]["Issuer"]["Fn::Join"][1]


@pytest.mark.long
def test_the_roles_of_an_account_need_a_token_of_its_issuer_for_this_api() -> None:
    stage = with_issuers("dev")
    assert len(stage.all("ApiGatewayV2::Authorizer")) == 1 + len(ISSUERS)
    routes = {route["RouteKey"]: route for route in stage.all("ApiGatewayV2::Route").values()}
    for account, issuer in ISSUERS.items():
        authorizer = stage.one("ApiGatewayV2::Authorizer", f"ApiHttpAccount{account}")
        assert authorizer["AuthorizerType"] == "JWT" and authorizer["IdentitySource"] == ["$request.header.Authorization"]
        audience = {"Fn::GetAtt": [stage.id("ApiGatewayV2::Api", "ApiHttp"), "ApiEndpoint"]}
        assert authorizer["JwtConfiguration"] == {"Issuer": issuer, "Audience": [audience]}
        assert stage.template["Outputs"]["AwsAccounts"]["Value"] == " ".join(ISSUERS)
        assert stage.template["Outputs"]["ApiUrl"]["Value"] == audience, "the audience is the address that clients have"
        for key in by_role(account):
            assert routes[key]["AuthorizationType"] == "JWT"
            assert routes[key]["AuthorizerId"] == {"Ref": stage.id("ApiGatewayV2::Authorizer", f"ApiHttpAccount{account}")}


def test_the_local_stage_accepts_tokens_of_the_local_aws(local: Synthesized) -> None:
    authorizer = local.one("ApiGatewayV2::Authorizer", "ApiHttpAccount000000000000")
    api = {"Ref": local.id("ApiGatewayV2::Api", "ApiHttp")}
    audience = {"Fn::Join": ["", ["http://127.0.0.1:4566/_aws/execute-api/", api, "/$default"]]}
    assert authorizer["JwtConfiguration"] == {"Issuer": "http://127.0.0.1:4566/issuer-000000000000", "Audience": [audience]}


@pytest.mark.long
def test_the_function_knows_the_issuers() -> None:
    variables = with_issuers("dev").functions()["Api"]["Environment"]["Variables"]
    assert Settings.parse({"PUNCTUAL_AWS_ISSUERS": json.loads(json.dumps(variables["PUNCTUAL_AWS_ISSUERS"]))}).issuers == ISSUERS


def test_requests_are_throttled_and_logins_and_reports_more(any_stage: Synthesized) -> None:
    (stage,) = any_stage.all("ApiGatewayV2::Stage").values()
    settings = any_stage.settings
    assert stage["StageName"] == "$default"
    assert stage["AutoDeploy"] is True
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] == settings.api_rate
    assert stage["DefaultRouteSettings"]["ThrottlingBurstLimit"] == settings.api_burst
    limits = {"ThrottlingRateLimit": settings.login_rate, "ThrottlingBurstLimit": settings.login_burst}
    reports = {"ThrottlingRateLimit": settings.report_rate, "ThrottlingBurstLimit": settings.report_burst}
    writes = {"ThrottlingRateLimit": settings.write_rate, "ThrottlingBurstLimit": settings.write_burst}
    programs = {"ThrottlingRateLimit": settings.key_rate, "ThrottlingBurstLimit": settings.key_burst}
    assert stage["RouteSettings"] == {
        "POST /api/v1/auth/login": limits,
        "POST /api/v1/auth/refresh": limits,
        "POST /api/v1/auth/challenge": limits,
        "POST /api/v1/auth/sso": limits,
        "POST /api/v1/keys/revoke": limits,
        **dict.fromkeys(REPORTS, reports),
        **dict.fromkeys(WRITES, writes),
        **dict.fromkeys(BY_KEY | of_roles(any_stage), programs),
        "GET /api/v1/health": {"ThrottlingRateLimit": 10, "ThrottlingBurstLimit": 20},  # of Cognito's 120 calls of GetUser a second
    }
    assert settings.login_rate < settings.report_rate < settings.api_rate
    assert settings.write_rate < settings.api_rate and settings.key_rate < settings.api_rate


def test_the_api_is_called_as_its_stack_in_lists(any_stage: Synthesized) -> None:
    assert any_stage.one("ApiGatewayV2::Api", "ApiHttp")["Name"] == any_stage.stack.stack_name


def test_the_stage_is_created_after_the_routes_that_it_throttles(any_stage: Synthesized) -> None:
    (stage,) = [resource for resource in any_stage.template["Resources"].values() if resource["Type"] == "AWS::ApiGatewayV2::Stage"]
    throttled = {
        id
        for id, route in any_stage.all("ApiGatewayV2::Route").items()
        if "POST /api/v1/auth/" in route["RouteKey"]
        or route["RouteKey"] in {"POST /api/v1/keys/revoke", *REPORTS, *WRITES, *BY_KEY, *of_roles(any_stage), "GET /api/v1/health"}
    }
    assert len(throttled) == 22 + len(of_roles(any_stage))
    assert throttled <= set(stage["DependsOn"])


def test_access_is_logged_without_tokens_queries_or_bodies(on_aws: Synthesized) -> None:
    (stage,) = on_aws.all("ApiGatewayV2::Stage").values()
    format = stage["AccessLogSettings"]["Format"]
    assert "$context.status" in format
    assert "$context.requestId" in format
    assert "$context.authorizer.error" in format, "the only record of a token that API Gateway refuses"
    assert not [word for word in ("authorization", "querystring", "body", "$request") if word in format.lower()]
    assert on_aws.one("Logs::LogGroup", "ApiAccessLogs")["RetentionInDays"] == {"dev": 7, "prod": 90}[on_aws.settings.stage]
