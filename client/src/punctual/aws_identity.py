"""Tokens of the AWS role that a program runs as. `auth="aws"` signs in with them, so that the program has no secret of its own.

STS signs them: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetWebIdentityToken.html
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode
from dataclasses import dataclass, field
from typing import Any

from punctual.errors import NoAnswer, NoRoleToken, NotAuthenticated, UnexpectedAnswer

SECONDS = 300  # boto3 renews credentials ten minutes before these end: a token of 15 minutes could outlive them, which STS refuses
LEAST_SECONDS = 60  # the shortest token of STS
ALGORITHM = "RS256"  # the JWT authorizers of HTTP APIs accept RSA only
INSTALL = "pip install 'punctual-client[aws]'"

_SUBJECT = re.compile("arn:[a-z-]+:(?:iam|sts)::([0-9]{12}):.+")
_REGION = re.compile(r"https://[a-z0-9]+\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
_CREDENTIALS_ENDED = ("ExpiredToken", "InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClient")


@dataclass(frozen=True)
class RoleToken:
    """A token of a role: the ARN of the role, its account, and the time in epoch seconds at which it expires."""

    text: str = field(repr=False)
    role: str
    account: str
    expires_at: float


class RoleTokens:
    """Gets the tokens of this program's role for the API at one address, which is also their audience: no other API accepts them."""

    def __init__(self, url: str, client: Any = None) -> None:
        """`client` is a client of STS, by default one with the credentials of this program."""
        self._url = url
        self._sts = client

    def fetch(self) -> RoleToken:
        """Return a new token.

        Raises NoRoleToken with what to do if AWS gives none; NoAnswer if STS does not answer.
        """
        botocore = _botocore()
        try:
            if self._sts is None:
                self._sts = sts(self._url)
            try:
                answer = self._ask(SECONDS)
            except botocore.ClientError as error:
                if not _code(error).startswith("SessionDurationEscalation"):
                    raise
                answer = self._ask(LEAST_SECONDS)  # the credentials end before the token would
        except botocore.ClientError as error:
            raise _refused(error, self._url) from error
        except (botocore.EndpointConnectionError, botocore.HTTPClientError) as error:
            raise NoAnswer(f"AWS STS: no answer: {error}") from error
        except botocore.BotoCoreError as error:
            raise NoRoleToken(f"this program has no AWS credentials: {error}") from error
        return read(answer["WebIdentityToken"])

    def _ask(self, seconds: int) -> Any:
        return self._sts.get_web_identity_token(Audience=[self._url], SigningAlgorithm=ALGORITHM, DurationSeconds=seconds)


def sts(url: str) -> Any:
    """Return a client of STS in the region of this program, else in that of the API. Raises NoRoleToken, BotoCoreError.

    Its global endpoint has no such tokens.
    """
    import botocore.session
    from botocore.config import Config

    session = botocore.session.get_session()
    session.set_config_variable("sts_regional_endpoints", "regional")
    found = _REGION.fullmatch(url)
    region = session.get_config_variable("region") or (found and found[1])
    if not region:
        raise NoRoleToken("there is no AWS region: set AWS_REGION")
    client = session.create_client(
        "sts", region_name=region, config=Config(connect_timeout=5, read_timeout=5, retries={"total_max_attempts": 3})
    )
    if not hasattr(client, "get_web_identity_token"):
        raise NoRoleToken("this boto3 is too old for tokens of roles: pip install -U 'boto3>=1.41'")
    return client


def read(token: str) -> RoleToken:
    """Return the token with what its claims say. Its signature is checked by the API. Raises UnexpectedAnswer."""
    try:
        part = token.split(".")[1]
        claims = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        role, expires_at = claims["sub"], float(claims["exp"])
        found = _SUBJECT.fullmatch(role)
    except (binascii.Error, LookupError, ValueError, TypeError, RecursionError) as error:
        raise UnexpectedAnswer("STS answered no token that can be read") from error
    if found is None:
        raise UnexpectedAnswer(f"STS answered a token whose subject is no ARN: {ascii(role)[:100]}")
    return RoleToken(token, role, found[1], expires_at)


def refused(token: RoleToken, url: str) -> NotAuthenticated:
    """Return the error for a new token that API Gateway has refused, which gives no reason."""
    return NotAuthenticated(
        401,
        "role_refused",
        f"{url} takes no token of {token.role}. Check that the stage has account {token.account} in its option [aws_issuers], "
        "and that the address is the API's own: the output ApiUrl of the stack",
    )


def _refused(error: Any, url: str) -> NoRoleToken | NoAnswer:
    code, reason = _code(error), error.response.get("Error", {}).get("Message", "")
    if code.startswith("OutboundWebIdentityFederationDisabled"):
        return NoRoleToken(
            "outbound identity federation is off in this AWS account. An administrator of the account switches it on, once: "
            "aws iam enable-outbound-web-identity-federation"
        )
    if code.startswith("AccessDenied"):
        return NoRoleToken(f"this program's AWS role needs the permission sts:GetWebIdentityToken for the audience {url}: {reason}")
    if code.startswith("SessionDurationEscalation"):
        return NoRoleToken("this program's AWS credentials end within a minute: renew them")
    if code.startswith(_CREDENTIALS_ENDED):
        return NoRoleToken(f"AWS does not accept this program's credentials: {reason}")
    if code.startswith(("Throttling", "RequestLimit")) or error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500:
        return NoAnswer(f"AWS STS: {code}: {reason}")
    return NoRoleToken(f"AWS STS gives this program no token of its role: {code}: {reason}")


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _botocore() -> Any:
    """Return the exceptions of botocore. Raises NoRoleToken if the extra `aws` is not installed."""
    try:
        import botocore.exceptions
    except ImportError as error:
        raise NoRoleToken(f"auth='aws' needs boto3: {INSTALL}") from error
    return botocore.exceptions
