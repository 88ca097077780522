"""API Gateway in front of the api handler: events as it sends them (payload format 2.0, JWT authorizer), over ports in memory."""

import base64
import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, urlencode

from lambdas._settings import Settings
from scheduler.accounts.callers import Callers
from scheduler.accounts.names import Names
from scheduler.accounts.quota import QuotaGate
from scheduler.admission.lane_state import LaneStateCache
from scheduler.admission.target_cache import TargetCache
from scheduler.intake.intake import Services
from scheduler.model.instants import parse
from scheduler.monitors.throttle import PingThrottle
from scheduler.pipeline.direct_path import DirectPath
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.targets.base import Reach

KEY_ROUTE = "/api/v1/key/{proxy+}"
ISSUER = "https://issuer.example/123456789012"
AT = parse("2026-11-20T10:00:00.500Z")


class ApiPorts(MemoryPorts):
    """The ports and services that the composition root gives the API, in memory."""

    def serve(self, settings: Settings, reach: Reach) -> None:
        """Make the services of the process. It is called once, when all ports are there."""
        self.settings, self.reach = settings, reach
        self.named, self.direct, self.quotas = TargetCache(self), DirectPath(self), QuotaGate(self, lambda: 0.0)
        self.pauses = LaneStateCache(self)
        self.callers = Callers(self, self.quotas)
        self.names = Names(self)
        self.pings = PingThrottle()

    @cached_property
    def intake(self) -> Services:
        from lambdas.rest.intake_reading import services  # it loads the models of all requests

        return services(self, {})


@dataclass(frozen=True)
class Caller:
    """The account of a token, as the authorizer passes it on. `id`: its subject. `signed_in`: the time of the sign-in (ms)."""

    id: str
    name: str = "ann"
    signed_in: int | None = None


@dataclass(frozen=True)
class Request:
    """An HTTP request to the API. `query` is the text behind the `?`. Names of headers are in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] | None = None
    content: bytes = b""


_SERVING = threading.Lock()


@contextlib.contextmanager
def serving(ports: ApiPorts) -> Iterator[None]:
    """Let the handler use these ports. Requests of several worlds in one process take turns."""
    from lambdas import _runtime  # it loads the adapters of AWS

    with _SERVING:
        before = _runtime.api
        _runtime.api = lambda: ports  # type: ignore[assignment]
        try:
            yield
        finally:
            _runtime.api = before


def loaded() -> Callable[[dict[str, Any], Any], dict[str, Any]]:
    """The handler of the API. Its first call loads it, which takes most of a second."""
    from lambdas import api

    return api.handler


def respond(request: Request, callers: Callable[[str], Caller | None]) -> tuple[int, list[tuple[str, str]], bytes]:
    """Answer one request: status, headers, content. `callers`: the caller of a token; None for an unknown one.

    An unknown token counts as none: no authorizer refuses it here, so the handler itself must check for a token.
    """
    answered = loaded()(_event(request, callers), None)
    headers = [(name, value) for name, value in answered.get("headers", {}).items() if isinstance(value, str)]
    headers += [("Set-Cookie", cookie) for cookie in answered.get("cookies", ())]
    body = answered.get("body") or ""
    return answered["statusCode"], headers, base64.b64decode(body) if answered.get("isBase64Encoded") else body.encode()


def _event(request: Request, callers: Callable[[str], Caller | None]) -> dict[str, Any]:
    headers, raw = dict(request.headers or {}), request.content
    text, encoded = _text(raw)
    caller = callers(headers.get("authorization", "").removeprefix("Bearer "))
    query: dict[str, str] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value  # as the gateway joins them
    made = event(
        request.method,
        request.path,
        body=text if raw else None,
        query=query,
        user=None if caller is None else caller.id,
        username=caller.name if caller else "",
        base64=encoded,
        signed_in=None if caller is None else caller.signed_in,
    )
    made["headers"] = {"content-length": str(len(raw)), **headers} if raw else headers
    made["rawQueryString"] = request.query
    return made


def _text(raw: bytes) -> tuple[str, bool]:
    """A body as the event contains it; a body that is no text is in base64."""
    with contextlib.suppress(UnicodeDecodeError):
        return raw.decode(), False
    return base64.b64encode(raw).decode(), True


def _route(path: str) -> str:
    """The route by which API Gateway passes on a request: the one that fits best."""
    if path.startswith("/api/v1/key/"):
        return KEY_ROUTE
    found = re.match(r"/api/v1/aws/\d{12}/", path)
    return f"{found[0] if found else '/api/v1/'}{{proxy+}}"


def event(
    method: str,
    path: str,
    *,
    body: str | None = None,
    query: Mapping[str, str] | None = None,
    user: str | None = "sub-ann",
    username: str = "ann",
    role_arn: str | None = None,
    headers: Mapping[str, str] | None = None,
    base64: bool = False,
    signed_in: int | None = None,
) -> dict[str, Any]:
    """The event of a request, as API Gateway sends it.

    `signed_in`: the token's time of sign-in (ms).
    `user`: None on a route without an authorizer. `role_arn`: the subject of the token of an AWS role, on the path of its account.
    """
    route = _route(path)
    content = {"content-type": "application/json", "content-length": str(len(body))} if body is not None else {}
    claims = {
        "client_id": "3h5example",
        "exp": "1795172400",
        "iat": "1795168800",
        "iss": "https://cognito-idp.us-east-1.amazonaws.com/us-east-1_Example",
        "sub": user,
        "token_use": "access",
        "username": username,
    }
    if role_arn is not None:
        claims = {"iss": ISSUER, "sub": role_arn, "aud": "punctual", "exp": "1795169100", "iat": "1795168800"}
    if signed_in is not None:
        claims["auth_time"] = str(signed_in // 1000)
    recorded: dict[str, Any] = {
        "version": "2.0",
        "routeKey": f"ANY {route}",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}),
        "headers": {"accept": "*/*", "host": "abc123.execute-api.us-east-1.amazonaws.com", "user-agent": "curl/8.5.0", **content}
        | dict(headers or {}),
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abc123",
            "domainName": "abc123.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "abc123",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "curl/8.5.0"},
            "requestId": "request-1",
            "routeKey": f"ANY {route}",
            "stage": "$default",
            "time": "20/Nov/2026:10:00:00 +0000",
            "timeEpoch": AT,
        },
        "pathParameters": {"proxy": path.removeprefix("/api/v1/")},
        "isBase64Encoded": base64,
    }
    if query:
        recorded["queryStringParameters"] = dict(query)
    if body is not None:
        recorded["body"] = body
    if (user is not None or role_arn is not None) and route != KEY_ROUTE:
        recorded["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
    return recorded
