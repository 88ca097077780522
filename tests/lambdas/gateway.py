"""API Gateway in front of the api handler: events as it sends them (payload format 2.0, JWT authorizer), ports in memory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from lambdas import api
from lambdas._settings import Settings
from scheduler.accounts.names import Names
from scheduler.accounts.quota import QuotaGate
from scheduler.admission.lane_state import LaneStateCache
from scheduler.admission.target_cache import TargetCache
from scheduler.model.errors import Invalid, Unauthorized
from scheduler.model.instants import parse
from scheduler.operations.step import step
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.worker import hidden_s
from scheduler.storage.memory.accounts import MemoryIdentity
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.ports import Session, User
from scheduler.targets.base import Reach
from tests.conftest import FixedClock

NOW = parse("2026-11-20T10:00:00.500Z")


class OneAccount(MemoryIdentity):
    """The account of ann, with the password `right` and the refresh token `fresh`."""

    password = "right"

    def __init__(self, clients: Mapping[str, str]) -> None:
        super().__init__(clients)
        self.revoked: list[str] = []

    def login(self, username: str, password: str) -> Session:
        if (username, password) != ("ann", self.password):
            raise Unauthorized("The user name or the password is wrong.")
        return Session("token", NOW + 3_600_000, "fresh", User("sub-ann", "ann"))

    def refresh(self, refresh_token: str) -> Session:
        if refresh_token != "fresh":
            raise Unauthorized("The refresh token has expired.")
        return Session("token2", NOW + 3_600_000)

    def revoke(self, refresh_token: str) -> None:
        if refresh_token != "fresh":
            raise Unauthorized("The refresh token is not valid.")
        self.revoked.append(refresh_token)

    def change_password(self, token: str, current: str, new: str) -> None:
        if current != self.password:
            raise Invalid.field("current_password", "is wrong")
        self.password = new

    def user(self, token: str, now: int) -> User:
        if token not in ("token", "token2"):
            raise Unauthorized("The token is invalid or has expired.")
        return User("sub-ann", "ann")


class World(MemoryPorts):
    """The ports and services that the composition root gives the API, in memory."""

    def __init__(self, reach: Reach | None = None) -> None:
        super().__init__(FixedClock(NOW), identity=OneAccount({"3h5robot": "robot"}))
        self.settings = Settings(stage="test")
        self.reach = reach or Reach()
        self.named, self.direct, self.quotas = TargetCache(self), DirectPath(self), QuotaGate(self, lambda: 0.0)
        self.pauses = LaneStateCache(self)
        self.names = Names(self)


@dataclass(frozen=True)
class Answered:
    status: int
    headers: Mapping[str, str]
    text: str
    cookies: Sequence[str] = ()

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def data(self) -> Any:
        assert self.body["success"] is True, self.text
        return self.body["data"]

    @property
    def error(self) -> Any:
        assert self.body["success"] is False, self.text
        return self.body["error"]

    @property
    def fields(self) -> dict[str, str]:
        """The broken rules, by field."""
        return {detail["field"]: detail["rule"] for detail in self.error["details"]}


def event(
    method: str,
    path: str,
    *,
    body: str | None = None,
    query: Mapping[str, str] | None = None,
    user: str | None = "sub-ann",
    groups: str | None = None,
    scope: str | None = None,
    headers: Mapping[str, str] | None = None,
    base64: bool = False,
    signed_in: int | None = None,
) -> dict[str, Any]:
    """The event of a request, as API Gateway sends it.

    `signed_in`: the token's time of sign-in (ms).
    `user`: None on a route without an authorizer. `groups`: the claim as it arrives, `[one two]`. `scope`: of a machine client.
    """
    content = {"content-type": "application/json", "content-length": str(len(body))} if body is not None else {}
    claims = {
        "client_id": "3h5example",
        "exp": "1795172400",
        "iat": "1795168800",
        "iss": "https://cognito-idp.us-east-1.amazonaws.com/us-east-1_Example",
        "sub": user,
        "token_use": "access",
        "username": "ann",
    }
    if scope is not None:
        del claims["username"]
        claims["scope"] = scope
    if signed_in is not None:
        claims["auth_time"] = str(signed_in // 1000)
    if groups is not None:
        claims["cognito:groups"] = groups
    recorded: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /api/v1/{proxy+}",
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
            "routeKey": "ANY /api/v1/{proxy+}",
            "stage": "$default",
            "time": "20/Nov/2026:10:00:00 +0000",
            "timeEpoch": NOW,
        },
        "pathParameters": {"proxy": path.removeprefix("/api/v1/")},
        "isBase64Encoded": base64,
    }
    if query:
        recorded["queryStringParameters"] = dict(query)
    if body is not None:
        recorded["body"] = body
    if user is not None:
        recorded["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
    return recorded


GROWING = "1e15"  # four bytes of a body that the table stores with 18: numbers are rendered again
GROWN = {"method": "POST", "url": "https://example.com", "body": [GROWING] * 17_000}


def growing(body: Any) -> str:
    """The body as JSON text in which the numbers `GROWING` are short."""
    return json.dumps(body).replace(json.dumps(GROWING), GROWING)


def send(method: str, path: str, *, json_body: Any = None, **rest: Any) -> Answered:
    """One request to `/api/v1` + path through the handler."""
    if json_body is not None:
        rest["body"] = json.dumps(json_body)
    answered = api.handler(event(method, f"/api/v1{path}", **rest), None)
    return Answered(answered["statusCode"], answered["headers"], answered["body"], answered.get("cookies", ()))


def work_off(world: World) -> None:
    """Carry out the operations that the API sent to the work queue, each step when it is due, to their ends."""
    while waiting := [each.visible_at for each in world.work.queued.values()]:
        world.clock.sleep_until(min(waiting))
        for sent in world.work.receive(world.clock.now()):
            next_at = step(sent, world, lambda: None)
            if next_at is None:
                world.work.delete(sent.receipt)
            else:
                world.work.hide(sent.receipt, hidden_s(next_at, world.clock.now()))
