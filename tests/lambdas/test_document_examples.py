"""Every example of a body in the OpenAPI document, sent as it stands, today and in years: readers copy it at any time."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from docs_build import openapi
from scheduler.admission import breaker
from scheduler.admission.breaker import Circuit
from scheduler.callbacks.reports import Addresses
from scheduler.model import lifecycle
from scheduler.model.account import Role
from scheduler.model.instants import DAY
from scheduler.model.intake import IntakeLetter, IntakeMessage, Violation
from scheduler.model.job import Claim, Job, Result
from scheduler.model.spec import CallBack
from scheduler.storage.memory.stores import MemorySecrets
from tests.conftest import a_job
from tests.lambdas.gateway import World, send

YEARS = 60 * 365 * DAY
PASSWORDS = ("login", "password", "refresh", "challenge", "totp", "totp/disable")  # of a user who does not exist here
REFUSED = {f"/auth/{name}": (400, 401) for name in PASSWORDS}
REFUSED |= dict.fromkeys(("/auth/sso", "/keys/revoke", "/invitations/accept"), (404,))  # nothing in this stage has these secrets


def examples() -> Iterator[Any]:
    """The method and path of each operation with a body, and each of its examples."""
    for path, verbs in json.loads(openapi.text())["paths"].items():
        for verb, operation in verbs.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            named = {name: each["value"] for name, each in content.get("examples", {}).items()} or {"": content.get("example")}
            for name, example in named.items() if content else ():
                yield pytest.param(verb.upper(), path.removeprefix("/api/v1"), example, id=f"{verb} {path} {name}".rstrip())


def handed_over(world: World) -> Job:
    """A job whose worker may report, in the table."""
    now = world.clock.now()
    job = a_job(owner="sub-ann", id="handed", due_at=now - 500, callback=CallBack(60_000, 600_000), claim=Claim("m", "n", now - 500, True))
    result = Result("queued", {"status": 202, "headers": {}, "body": ""})
    job = lifecycle.accept(job, started_at=now - 500, result=result, lease_until=now + 60_000, slot="2026-11-20T10:05#00")
    world.jobs.put(job)
    return job


def posted(path: str, body: Any) -> Any:
    answered = send("POST", path, json_body=body, role="administrator")
    assert answered.status == 201, answered.text
    return answered.data


@pytest.mark.parametrize("later", [0, YEARS], ids=["today", "in 60 years"])
@pytest.mark.parametrize(("method", "path", "example"), [*examples()])
def test_an_example_of_a_body_is_accepted_also_in_years(method: str, path: str, example: Any, later: int, world: World) -> None:
    world.clock.advance(later)
    if "breakers" in path:
        world.ledger.set_breaker(None, breaker.opened(Circuit("host example.com", "sub-ann"), world.clock.now()))
    headers = {}
    if path.rpartition("/")[2] in ("heartbeat", "complete", "fail"):
        job = handed_over(world)
        path = path.replace("{job_id}", job.id)
        headers = {"Authorization": f"Bearer {Addresses('', MemorySecrets(signing=[b'key'])).of(job, world.clock.now()).token}"}
    if "{job_id}" in path:
        job_id = posted("/jobs", {"type": "http", "payload": {"url": "https://example.com"}, "delay": "1h"})["id"]
        if path.endswith("/replay"):
            send("POST", f"/jobs/{job_id}/cancel")
        path = path.replace("{job_id}", job_id)
    if "{task_id}" in path:
        task = posted("/tasks", {"name": "a", "type": "log", "payload": {"message": "a"}, "schedule": {"rate": "rate(1 hour)"}})
        path = path.replace("{task_id}", task["id"])
    if "targets/{name}" in path:
        path = path.replace("{name}", posted("/targets", {"name": "reports", "kind": "http"})["name"])
    path = path.replace("{receiver}", "ops")
    if "{team_id}" in path:
        path = path.replace("{team_id}", posted("/teams", {"name": "t"})["id"])
    if "principals" in path:
        world.be("ada", "ada", Role.USER)
    if "{principal_id}" in path:
        mapped = {"arn": "arn:aws:iam::123456789012:role/x", "owner": "ada", "scopes": ["jobs:read"]}
        path = path.replace("{principal_id}", posted("/principals", mapped)["id"])
    if "{message_id}" in path:
        world.rules = replace(world.rules, intake=True)
        sent = IntakeMessage("m", "jobs", "AROA1:s", world.clock.now(), "{")
        world.intake_letters.add(IntakeLetter(sent, (Violation("body", "is not JSON"),), world.clock.now(), "sub-ann"))
        path = path.replace("{message_id}", "m")
    if "{user_id}" in path:
        user = posted("/users", {"username": "ben", "password": "correct-horse-Battery-1", "role": "user"})
        path = path.replace("{user_id}", user["id"])
    answered = send(
        method, path.replace("{key}", "order-17").replace("{calendar_name}", "de"), json_body=example, role="administrator", headers=headers
    )
    expected = (404,) if path.endswith("/identities/{provider}") else REFUSED.get(path, ())  # the stage has no identity provider
    assert answered.status < 300 or answered.status in expected, answered.text
