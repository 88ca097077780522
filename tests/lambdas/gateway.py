"""Requests to the api handler through `lab.world.gateway`, as ann, with ports in memory."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.world.clock import FixedClock
from lab.world.gateway import AT, ISSUER, ApiPorts, event
from lambdas import _runtime, api
from lambdas._settings import Settings
from scheduler.accounts import api_keys
from scheduler.accounts.access import Caller, Rights
from scheduler.model.account import COGNITO, Profile, Role, Scope, Subject, TeamRole
from scheduler.model.errors import Unauthorized
from scheduler.operations.step import step
from scheduler.pipeline.worker import hidden_s
from scheduler.storage.memory.accounts import MemoryAccount, MemoryIdentity
from scheduler.storage.ports import Session, User
from scheduler.targets.base import Reach

NOW = AT
TOO_LONG = "must be at most 840: only jobs that wait for work in AWS (ecs, stepfunctions) may take longer"


class OneAccount(MemoryIdentity):
    """The account of ann, with the password `right` and the refresh token `fresh`."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.rows["sub-ann"] = MemoryAccount("ann", "right")

    def refresh(self, refresh_token: str) -> Session:
        if refresh_token != "fresh":
            raise Unauthorized("The refresh token has expired.")
        return Session("token2", NOW + 3_600_000)

    def revoke(self, refresh_token: str) -> None:
        if refresh_token != "fresh":
            raise Unauthorized("The refresh token is not valid.")
        self.revoked.append(refresh_token)

    def user(self, token: str, now: int) -> User:
        if token not in ("token", "token2"):
            raise Unauthorized("The token is invalid or has expired.")
        return User("sub-ann", "ann")

    def _session(self, subject: str) -> Session:
        if subject != "sub-ann":
            return super()._session(subject)
        return Session("token", NOW + 3_600_000, "fresh", User("sub-ann", "ann"))


class World(ApiPorts):
    """The ports of the API of ann, at `NOW`."""

    def __init__(self, reach: Reach | None = None, sso: str = "") -> None:
        super().__init__(FixedClock(NOW), identity=OneAccount())
        self.serve(Settings(stage="test", sso=sso, aws_issuers=f"123456789012={ISSUER}"), reach or Reach())

    def be(self, person: str, name: str, role: Role) -> None:
        """Let a person have this role."""
        profile = self.users.rows.get(person, Profile(person))
        if not self.owners.subjects(person):
            self.identity.rows.setdefault(person, MemoryAccount(name, "right"))
        if profile.name is None:
            self.owners.add_person(replace(profile, name=name, role=role, account=person, created_at=1), Subject(COGNITO, person))
        elif profile.role is not role:
            self.owners.set_role(person, role)
        self.quotas.forget(person)

    def key(self, scopes: Collection[Scope], owner: str = "sub-ann", maker: str = "sub-ann") -> str:
        """Make an API key and return its text."""
        rights = Rights(maker, Role.ADMINISTRATOR, {owner: TeamRole.MANAGER})
        return api_keys.make(owner, Caller(maker, maker, maker, rights), "ci", scopes, None, self).text


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


GROWING = "1e15"  # four bytes of a body that the table stores with 18: numbers are rendered again
GROWN = {"method": "POST", "url": "https://example.com", "body": [GROWING] * 17_000}


def growing(body: Any) -> str:
    """The body as JSON text in which the numbers `GROWING` are short."""
    return json.dumps(body).replace(json.dumps(GROWING), GROWING)


def send(method: str, path: str, *, json_body: Any = None, role: str | None = "user", key: str | None = None, **rest: Any) -> Answered:
    """One request to `/api/v1` + path through the handler. `role`: the stage role of the person, None: as before."""
    user = rest.get("user", "sub-ann")  # the id of a person: the token has the subject
    if user is not None and key is None and "role_arn" not in rest:
        world: Any = _runtime.api()
        if role is not None:
            world.be(user, rest.get("username", "ann"), Role(role))
        rest["user"] = next((each.id for each in world.owners.subjects(user) if each.issuer == COGNITO), user)
    if key is not None:
        path, rest["headers"] = f"/key{path}", {"authorization": f"Bearer {key}", **rest.get("headers", {})}
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
