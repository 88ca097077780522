"""The local AWS gives roles the tokens that AWS gives them, and an authorizer of an HTTP API takes them."""

import io
import json
import time
import urllib.error
import urllib.request
import zipfile
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from punctual.aws_identity import RoleTokens

from local import issuer

TRUST = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "000000000000"}, "Action": "sts:AssumeRole"}]}
)
ISSUER, AUDIENCE = "issuer-000000000000", "https://api.example.com"
CODE = (
    "import json\n\ndef handler(event, context):\n    print('called')\n    return event['requestContext']['authorizer']['jwt']['claims']\n"
)


class Aws:
    """An HTTP API behind the issuer of the account, and the session of a role."""

    def __init__(self, address: str) -> None:
        self.address = address
        sts, iam, functions, http = (boto3.client(name, endpoint_url=address) for name in ("sts", "iam", "lambda", "apigatewayv2"))
        arn = iam.create_role(RoleName="Reports", Path="/app/", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
        self.sts = self.session(sts.assume_role(RoleArn=arn, RoleSessionName="session-1", DurationSeconds=900)["Credentials"])
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as packed:
            packed.writestr("index.py", CODE)
        function = functions.create_function(
            FunctionName="roles", Runtime="python3.13", Role=arn, Handler="index.handler", Code={"ZipFile": code.getvalue()}
        )["FunctionArn"]
        api = http.create_api(Name="roles", ProtocolType="HTTP")["ApiId"]
        authorizer = http.create_authorizer(
            ApiId=api,
            AuthorizerType="JWT",
            Name="roles",
            IdentitySource=["$request.header.Authorization"],
            JwtConfiguration={"Issuer": f"{address}/{ISSUER}", "Audience": [AUDIENCE]},
        )["AuthorizerId"]
        integration = http.create_integration(
            ApiId=api, IntegrationType="AWS_PROXY", IntegrationUri=function, PayloadFormatVersion="2.0", IntegrationMethod="POST"
        )["IntegrationId"]
        http.create_route(
            ApiId=api, RouteKey="ANY /{proxy+}", AuthorizationType="JWT", AuthorizerId=authorizer, Target=f"integrations/{integration}"
        )
        http.create_stage(ApiId=api, StageName="$default", AutoDeploy=True)
        self.url = f"{address}/_aws/execute-api/{api}/$default/jobs"

    def session(self, credentials: Any) -> Any:
        return boto3.client(
            "sts",
            endpoint_url=self.address,
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials["SessionToken"],
        )

    def token(self, audience: str = AUDIENCE, algorithm: str = "RS256", **more: Any) -> str:
        found: str = self.sts.get_web_identity_token(Audience=[audience], SigningAlgorithm=algorithm, **more)["WebIdentityToken"]
        return found

    def call(self, token: str) -> tuple[int, Any]:
        request = urllib.request.Request(self.url, headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


@pytest.fixture(scope="module")
def aws(local_aws: str) -> Aws:
    return Aws(local_aws)


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def encoded(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.long
def test_a_session_has_tokens_of_its_role_that_the_authorizer_takes(aws: Aws) -> None:
    token = aws.token()
    assert claims(token)["sub"] == "arn:aws:iam::000000000000:role/app/Reports", "the role with its path, not the session"
    assert claims(token)["exp"] - claims(token)["iat"] == 300
    status, seen = aws.call(token)
    assert (status, seen["sub"], seen["iss"]) == (200, "arn:aws:iam::000000000000:role/app/Reports", f"{aws.address}/{ISSUER}")


@pytest.mark.long
def test_the_client_gets_its_token_from_sts(aws: Aws) -> None:
    token = RoleTokens(AUDIENCE, aws.sts).fetch()
    assert (token.role, token.account) == ("arn:aws:iam::000000000000:role/app/Reports", "000000000000")
    assert 0 < token.expires_at - time.time() <= 300 and aws.call(token.text)[0] == 200


@pytest.mark.long
def test_forged_tokens_are_refused(aws: Aws) -> None:
    head, body, signature = aws.token().split(".")
    kid = json.loads(urlsafe_b64decode(head + "=="))["kid"]
    for token in (
        f"{encoded({'alg': 'none', 'kid': kid})}.{body}.",
        f"{encoded({'alg': 'HS256', 'kid': kid})}.{body}.{signature}",
        f"{head}.{encoded({**claims(aws.token()), 'sub': 'arn:aws:iam::000000000000:role/Admin'})}.{signature}",
        aws.token("https://other.example.com"),
        aws.token(algorithm="ES384"),  # as on AWS, whose authorizers take RSA only
    ):
        assert aws.call(token)[0] == 401, token
    assert aws.call(f"{head}.{body}.{signature}")[0] == 200


@pytest.mark.long
def test_a_token_that_outlives_its_session_is_refused(aws: Aws) -> None:
    with pytest.raises(ClientError) as refused:
        aws.token(DurationSeconds=901)
    assert refused.value.response["Error"]["Code"] == "SessionDurationEscalationException"


def test_the_issuer_publishes_its_keys(aws: Aws) -> None:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    found = json.loads(direct.open(f"{aws.address}/{ISSUER}/{issuer.CONFIGURATION}", timeout=10).read())
    assert found["issuer"] == f"{aws.address}/{ISSUER}"
    keys = json.loads(direct.open(found["jwks_uri"], timeout=10).read())["keys"]
    assert [key["alg"] for key in keys] == ["RS256", "ES384"] and not any("d" in key for key in keys), "public keys only"
