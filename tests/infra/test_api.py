from lambdas import api
from scheduler.accounts.access import Need
from tests.infra.conftest import Synthesized

OPEN = {
    "GET /api/v1/health",
    "POST /api/v1/auth/challenge",
    "POST /api/v1/auth/login",
    "POST /api/v1/auth/refresh",
    "GET /api/v1/auth/sso",
    "POST /api/v1/auth/sso",
    "GET /api/v1/openapi.json",
    "GET /api/v1/docs",
}
REPORTS = {f"POST /api/v1/jobs/{{job_id}}/{verb}" for verb in ("heartbeat", "complete", "fail")}  # these have their own tokens
WRITES = [f"{method} /api/v1/{{proxy+}}" for method in ("POST", "PUT", "PATCH", "DELETE")]


def test_only_health_sign_in_docs_and_reports_are_open(any_stage: Synthesized) -> None:
    routes = any_stage.all("ApiGatewayV2::Route").values()
    assert {route["RouteKey"] for route in routes if route.get("AuthorizationType", "NONE") == "NONE"} == OPEN | REPORTS


def test_the_gateway_opens_the_routes_that_declare_themselves_open() -> None:
    declared = [route for route, rule in api.RULES.items() if rule.need is Need.OPEN]
    keys = {route.replace(" ", " /api/v1").replace("<", "{").replace(">", "}") for route in declared}
    assert keys == OPEN | REPORTS


def test_all_other_routes_need_a_token_even_unknown_ones(any_stage: Synthesized) -> None:
    routes = any_stage.all("ApiGatewayV2::Route").values()
    behind = [route for route in routes if route["RouteKey"] not in OPEN | REPORTS]
    assert {route["RouteKey"] for route in behind} == {"ANY /api/v1/{proxy+}", *WRITES}
    for route in behind:
        assert route["AuthorizationType"] == "JWT"
        assert route["AuthorizerId"]["Ref"] == any_stage.id("ApiGatewayV2::Authorizer", "ApiHttpSignedIn")


def test_a_token_is_valid_if_our_pool_issued_it_for_our_client(any_stage: Synthesized) -> None:
    (authorizer,) = any_stage.all("ApiGatewayV2::Authorizer").values()
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    clients = list(any_stage.all("Cognito::UserPoolClient"))
    assert {"Ref": any_stage.id("Cognito::UserPoolClient", "AccountsUsersClient")} in authorizer["JwtConfiguration"]["Audience"]
    assert sorted(each["Ref"] for each in authorizer["JwtConfiguration"]["Audience"]) == sorted(clients)
    assert {"Ref": any_stage.id("Cognito::UserPool", "AccountsUsers")} in authorizer["JwtConfiguration"]["Issuer"]["Fn::Join"][1]


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
    assert stage["RouteSettings"] == {
        **{f"POST /api/v1/auth/{verb}": limits for verb in ("challenge", "login", "refresh", "sso")},
        **dict.fromkeys(REPORTS, reports),
        **dict.fromkeys(WRITES, writes),
        "GET /api/v1/health": {"ThrottlingRateLimit": 10, "ThrottlingBurstLimit": 20},  # enough for monitors
    }
    assert settings.login_rate < settings.report_rate < settings.api_rate
    assert settings.write_rate < settings.api_rate


def test_the_api_is_called_as_its_stack_in_lists(any_stage: Synthesized) -> None:
    assert any_stage.one("ApiGatewayV2::Api", "ApiHttp")["Name"] == any_stage.stack.stack_name


def test_the_stage_is_created_after_the_routes_that_it_throttles(any_stage: Synthesized) -> None:
    (stage,) = [resource for resource in any_stage.template["Resources"].values() if resource["Type"] == "AWS::ApiGatewayV2::Stage"]
    throttled = {
        id
        for id, route in any_stage.all("ApiGatewayV2::Route").items()
        if "/auth/" in route["RouteKey"] or route["RouteKey"] in (*REPORTS, *WRITES, "GET /api/v1/health")
    }
    assert len(throttled) == 13
    assert throttled <= set(stage["DependsOn"])


def test_access_is_logged_without_tokens_queries_or_bodies(on_aws: Synthesized) -> None:
    (stage,) = on_aws.all("ApiGatewayV2::Stage").values()
    format = stage["AccessLogSettings"]["Format"]
    assert "$context.status" in format
    assert "$context.requestId" in format
    assert not [word for word in ("authorization", "querystring", "body", "$request") if word in format.lower()]
    assert on_aws.one("Logs::LogGroup", "ApiAccessLogs")["RetentionInDays"] == {"dev": 7, "prod": 90}[on_aws.settings.stage]
