"""Both clients with `auth="aws"`: the tokens that STS gives the role, and what goes wrong."""

from __future__ import annotations

import json
import sys
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from fake_api import URL, Flavor, answer, refusal
from typer.testing import CliRunner

import punctual
from punctual import aws_identity, cli, profiles
from punctual.cli._app import Setup
from punctual.profiles import Profile

ROLE = "arn:aws:iam::123456789012:role/app/Reports"
ME = {
    "id": "role-1",
    "username": ROLE,
    "kind": "principal",
    "scopes": ["jobs:read", "jobs:write"],
    "job_weight": 1,
    "effective_quotas": {"max_jobs": None, "max_tasks": None, "creates_per_second": None},
}


def refused(code: str, message: str = "no", status: int = 403) -> ClientError:
    answered: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answered, "GetWebIdentityToken")


class Sts:
    """Gives a new token for each request, or raises what the test has put into `errors`."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.errors: list[Exception] = []
        self.claims: Any = {"sub": ROLE}
        self.now: Callable[[], float] = lambda: 0.0

    def get_web_identity_token(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        claims = {**self.claims, "exp": self.now() + request["DurationSeconds"]}
        return {"WebIdentityToken": f"h.{part(claims)}.s{len(self.requests)}"}


def part(claims: Any) -> str:
    return urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch, flavor: Flavor) -> Sts:
    made = Sts()
    made.now = lambda: flavor.times.at
    monkeypatch.setattr(aws_identity, "sts", lambda _url: made)
    return made


class Api:
    """Answers one response after the other, the last one again and again."""

    def __init__(self, *answers: httpx.Response) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)

    @property
    def tokens(self) -> list[str]:
        return [request.headers.get("Authorization", "").removeprefix("Bearer ").rpartition(".")[2] for request in self.requests]

    @property
    def paths(self) -> list[str]:
        return [request.url.path for request in self.requests]


GATEWAY = httpx.Response(401, json={"message": "Unauthorized"})
VERSION = answer({"version": "1", "api": "1"})


def test_a_role_calls_the_path_of_its_account_with_a_token_for_this_api(flavor: Flavor, sts: Sts) -> None:
    api = Api(VERSION)
    flavor.run(api, lambda c: c.version(), auth="aws", url=f"{URL}/api/v1/")
    assert api.paths == ["/api/v1/aws/123456789012/version"] and api.tokens == ["s1"]
    assert sts.requests == [{"Audience": [URL], "SigningAlgorithm": "RS256", "DurationSeconds": 300}]


def test_raw_requests_of_a_role_go_to_the_path_of_its_account_too(flavor: Flavor, sts: Sts) -> None:
    api = Api(VERSION)
    flavor.run(api, lambda c: c.send("GET", "/version"), auth="aws")
    assert api.paths == ["/api/v1/aws/123456789012/version"] and api.tokens == ["s1"]


def test_what_is_open_is_read_without_a_token(flavor: Flavor, sts: Sts) -> None:
    api = Api(answer({"status": "ok", "database": "ok"}))
    flavor.run(api, lambda c: c.health(), auth="aws")
    assert api.paths == ["/api/v1/health"] and api.tokens == [""] and sts.requests == []


def spread(flavor: Flavor, *pauses: float) -> Callable[[Any], Any]:
    """Return calls of `version`, with these pauses in seconds between them."""

    def calls(client: Any) -> Any:
        client.version()
        for pause in pauses:
            flavor.times.at += pause
            client.version()

    async def awaited(client: Any) -> Any:
        await client.version()
        for pause in pauses:
            flavor.times.at += pause
            await client.version()

    return calls if flavor.kind == "sync" else awaited


def test_a_token_is_cached_and_renewed_a_minute_before_it_expires(flavor: Flavor, sts: Sts) -> None:
    api = Api(VERSION)
    flavor.run(api, spread(flavor, 239, 2), auth="aws")
    assert api.tokens == ["s1", "s1", "s2"]


def test_a_refused_token_is_renewed_once(flavor: Flavor, sts: Sts) -> None:
    api = Api(GATEWAY, VERSION)
    flavor.run(api, lambda c: c.version(), auth="aws")
    assert api.tokens == ["s1", "s2"]


def test_a_stage_that_takes_no_token_of_the_account_is_an_error_with_what_to_check(flavor: Flavor, sts: Sts) -> None:
    api = Api(GATEWAY)
    with pytest.raises(punctual.NotAuthenticated) as found:
        flavor.run(api, lambda c: c.version(), auth="aws")
    assert len(api.requests) == 2, "the token is renewed once"
    assert (
        found.value.code == "role_refused" and ROLE in str(found.value) and "123456789012 in its option [aws_issuers]" in str(found.value)
    )


def test_a_refusal_by_the_api_itself_keeps_its_message(flavor: Flavor, sts: Sts) -> None:
    with pytest.raises(punctual.NotAuthenticated, match="token_invalid: the token is too old"):
        flavor.run(Api(refusal(401, "token_invalid", "the token is too old")), lambda c: c.version(), auth="aws")
    with pytest.raises(punctual.NotAllowed, match="no principal"):
        flavor.run(Api(refusal(403, "forbidden", "no principal has this role")), lambda c: c.version(), auth="aws")


def test_credentials_that_end_soon_give_a_shorter_token(flavor: Flavor, sts: Sts) -> None:
    sts.errors = [refused("SessionDurationEscalationException")]
    api = Api(VERSION)
    flavor.run(api, spread(flavor, 53, 2), auth="aws")
    assert [request["DurationSeconds"] for request in sts.requests] == [300, 60, 300]
    assert api.tokens == ["s2", "s2", "s3"]


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([refused("OutboundWebIdentityFederationDisabledException")], "once: aws iam enable-outbound-web-identity-federation"),
        (
            [refused("AccessDenied", "not authorized")],
            f"needs the permission sts:GetWebIdentityToken for the audience {URL}: not authorized",
        ),
        ([refused("SessionDurationEscalationException")] * 2, "credentials end within a minute"),
        ([refused("ExpiredToken", "it is expired")], "AWS does not accept this program's credentials: it is expired"),
        ([refused("JWTPayloadSizeExceededException", "too large", 400)], "JWTPayloadSizeExceededException: too large"),
        ([NoCredentialsError()], "this program has no AWS credentials: Unable to locate credentials"),
    ],
)
def test_a_role_without_a_token_is_an_error_that_says_why(flavor: Flavor, sts: Sts, errors: list[Exception], message: str) -> None:
    sts.errors, api = list(errors), Api(VERSION)
    with pytest.raises(punctual.NoRoleToken) as found:
        flavor.run(api, lambda c: c.version(), auth="aws")
    assert message in str(found.value) and api.requests == []


@pytest.mark.parametrize(
    "error", [EndpointConnectionError(endpoint_url="x"), refused("Throttling"), refused("InternalFailure", status=500)]
)
def test_sts_without_an_answer_is_reported_as_such(flavor: Flavor, sts: Sts, error: Exception) -> None:
    sts.errors = [error]
    with pytest.raises(punctual.NoAnswer, match="AWS STS"):
        flavor.run(Api(VERSION), lambda c: c.version(), auth="aws")


def test_without_boto3_the_error_names_the_extra(flavor: Flavor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)
    with pytest.raises(punctual.NoRoleToken, match=r"pip install 'punctual-client\[aws\]'"):
        flavor.run(Api(VERSION), lambda c: c.version(), auth="aws")


@pytest.mark.parametrize(
    "token", ["", "a.b", "a.!!!.c", f"a.{part([])}.c", f"a.{part({'sub': ROLE})}.c", f"a.{part({'sub': 'x', 'exp': 1})}.c"]
)
def test_an_answer_that_is_no_token_is_recognized(token: str) -> None:
    with pytest.raises(punctual.UnexpectedAnswer, match="STS answered"):
        aws_identity.read(token)


@pytest.mark.parametrize("subject", ["arn:aws:iam::123456789012:root", "arn:aws-us-gov:iam::123456789012:user/x", ROLE])
def test_the_account_is_that_of_the_subject(subject: str) -> None:
    found = aws_identity.read(f"a.{part({'sub': subject, 'exp': 5})}.c")
    assert (found.account, found.role, found.expires_at) == ("123456789012", subject, 5.0)
    assert "a." not in repr(found), "a token is in no log"


# The client of STS


@pytest.fixture
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> pytest.MonkeyPatch:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    return monkeypatch


REGIONAL = "https://abc123.execute-api.eu-central-1.amazonaws.com"


@pytest.mark.long
def test_sts_is_called_in_the_region_of_the_program_else_of_the_api_and_never_globally(no_aws: pytest.MonkeyPatch) -> None:
    assert aws_identity.sts(REGIONAL).meta.endpoint_url == "https://sts.eu-central-1.amazonaws.com"
    no_aws.setenv("AWS_DEFAULT_REGION", "us-east-1")
    no_aws.setenv("AWS_STS_REGIONAL_ENDPOINTS", "legacy")
    assert aws_identity.sts(REGIONAL).meta.endpoint_url == "https://sts.us-east-1.amazonaws.com"


def test_without_a_region_the_error_names_the_variable(no_aws: pytest.MonkeyPatch) -> None:
    with pytest.raises(punctual.NoRoleToken, match="AWS_REGION"):
        aws_identity.sts("https://punctual.example.com")


# Settings


def test_the_environment_and_a_profile_may_choose_the_role(flavor: Flavor, sts: Sts, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles.save(Profile("role", URL, auth="aws"))
    api = Api(VERSION)
    flavor.run(api, lambda c: c.version(), profile="role")
    monkeypatch.setenv("PUNCTUAL_AUTH", "aws")
    flavor.run(api, lambda c: c.version(), anonymous=True)
    assert api.paths == ["/api/v1/aws/123456789012/version"] * 2
    stored = profiles.find("role")
    assert stored == Profile("role", URL, auth="aws"), "another role may use the profile next time: nothing of this one is stored"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"auth": "azure"}, "auth is 'aws' or nothing, not 'azure'"),
        ({"auth": "aws", "token": "t"}, "leave out key, token"),
        ({"auth": "aws", "username": "ann", "password": "p"}, "leave out key, token and username"),
    ],
)
def test_a_role_and_another_sign_in_are_refused(options: Any, message: str) -> None:
    with pytest.raises(punctual.NotConfigured, match=message):
        punctual.Punctual(URL, **options)


# The command line


def run(api: Api, *words: str) -> Any:
    return CliRunner().invoke(cli.build(), list(words), obj=Setup(transport=httpx.MockTransport(api)))


@pytest.fixture
def sts_of_cli(monkeypatch: pytest.MonkeyPatch) -> Sts:
    made = Sts()
    made.now = lambda: 4e9
    monkeypatch.setattr(aws_identity, "sts", lambda _url: made)
    return made


def test_a_login_as_a_role_stores_the_address_and_nothing_else(sts_of_cli: Sts) -> None:
    api = Api(answer(ME))
    done = run(api, "login", URL, "--aws")
    assert done.exit_code == 0 and f"as {ROLE} (AWS role with jobs:read, jobs:write)" in done.stdout, done.output
    assert profiles.load().all == {"default": Profile("default", URL, auth="aws")}
    assert run(api, "whoami").exit_code == 0 and set(api.paths) == {"/api/v1/aws/123456789012/me"}
    listed = run(api, "profiles", "--json")
    assert json.loads(listed.stdout)["auth"] == "aws"


@pytest.mark.parametrize("words", [("--auth", "aws", "whoami"), ("whoami", "--auth", "aws")])
def test_a_command_may_sign_in_as_the_role_instead_of_its_profile(sts_of_cli: Sts, words: tuple[str, ...]) -> None:
    profiles.save(Profile("default", URL, username="ann", token="t0"))
    api = Api(answer(ME))
    done = run(api, *words)
    assert done.exit_code == 0, done.output
    assert api.paths == ["/api/v1/aws/123456789012/me"] and api.tokens == ["s1"]


def test_a_role_needs_no_user_name(sts_of_cli: Sts) -> None:
    done = run(Api(answer(ME)), "login", URL, "--aws", "--username", "ann")
    assert done.exit_code == 2 and "--aws: needs neither --key nor --username" in done.stderr


def test_the_command_line_says_why_there_is_no_token(sts_of_cli: Sts) -> None:
    sts_of_cli.errors = [refused("OutboundWebIdentityFederationDisabledException")]
    done = run(Api(answer(ME)), "login", URL, "--aws")
    assert done.exit_code == 3 and "enable-outbound-web-identity-federation" in done.stderr and "punctual login" not in done.stderr
    assert profiles.load().all == {}
