"""Every route, as every role: on own objects, on another user's objects, and in another user's name.

docs/reference/roles.md has the same table.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lambdas import _runtime, api
from lambdas.rest import access, door
from scheduler.accounts.access import Need
from scheduler.admission.breaker import opened
from scheduler.model.breaker import Circuit
from scheduler.model.job import Status
from scheduler.model.named_target import NamedTarget
from tests.lambdas.gateway import NOW, World, send
from tests.lambdas.test_fuzz_api import ANN, BOB, Belongings

PAGE = Path(__file__).parents[2] / "docs/reference/roles.md"
CALLERS: dict[str, dict[str, Any]] = {
    "nobody": {"user": None},
    "user": {},
    "operator": {"groups": "[operators]"},
    "administrator": {"groups": "[administrators]"},
    "`jobs:read`": {"scope": "punctual/jobs:read"},
    "`jobs:write`": {"scope": "punctual/jobs:write"},
    "`admin`": {"scope": "punctual/admin"},
    "disabled": {},
}
TASK = {"name": "n", "message": "m", "schedule": {"rate": "1 hours"}}
BODIES: dict[str, Any] = {
    "POST /auth/login": {"username": "ann", "password": "right"},
    "POST /auth/refresh": {"refresh_token": "fresh"},
    "POST /auth/sso": {"code": "c", "verifier": "v" * 43, "redirect_uri": "https://console.example.com/signed-in"},
    "POST /auth/challenge": {"session": "s", "code": "123456"},
    "POST /auth/totp": {"current_password": "right"},
    "PUT /auth/totp": {"current_password": "right", "code": "123456"},
    "POST /auth/totp/disable": {"current_password": "right", "code": "123456"},
    "POST /auth/password": {"current_password": "right", "new_password": "Another-right-1"},
    "POST /jobs/<job_id>/heartbeat": {},
    "POST /jobs/<job_id>/complete": {},
    "POST /jobs/<job_id>/fail": {"message": "m"},
    "POST /jobs": {"message": "m"},
    "POST /jobs/batch": {"jobs": [{"message": "m"}]},
    "PATCH /jobs/<job_id>": {"max_attempts": 2},
    "PUT /jobs/by-key/<key>": {"message": "m", "delay": "1h"},
    "PUT /tasks/by-key/<key>": TASK,
    "POST /tasks": TASK,
    "PUT /tasks/<task_id>": TASK,
    "PATCH /tasks/<task_id>": {"max_attempts": 2},
    "POST /schedules/preview": {"cron": "* * * * *"},
    "POST /dead-letters/redrive": {"all": True},
    "POST /system/pause": {"all": True},
    "POST /jobs/cancel": {"all": True},
    "POST /tasks/pause": {"all": True},
    "POST /tasks/resume": {"all": True},
    "POST /tasks/delete": {"all": True},
    "POST /targets": {"name": "mails", "kind": "log"},
    "PUT /targets/<name>": {"kind": "log"},
    "POST /system/breakers/close": {"circuit": "target reports"},
    "POST /users": {"username": "new", "password": "Correct-horse-1"},
    "PATCH /users/<user_id>": {"job_weight": 2.0},
    "PUT /users/<user_id>/password": {"password": "Correct-horse-2"},
}
WANTS = {"retry": Status.FAILED, "output": Status.SUCCEEDED, "log": Status.SUCCEEDED}


@dataclass(frozen=True)
class Cell:
    """One request: `whose` objects its path names, and the user that its parameter `user` names."""

    route: str
    caller: str
    whose: Belongings
    named: Belongings | None = None

    def path(self) -> str:
        path = self.route.partition(" ")[2]
        for parameter in re.findall(r"<(\w+)>", path):
            path = path.replace(f"<{parameter}>", self._name(parameter))
        return path

    def _name(self, parameter: str) -> str:
        wanted = WANTS.get(self.route.rpartition("/")[2])
        if parameter != "job_id" or wanted is None:
            return self.whose.names(parameter)[0]
        times = {Status.FAILED: "failed_at", Status.SUCCEEDED: "completed_at"}
        return next(job.id for job in self.whose.jobs if getattr(job, times[wanted]) is not None)


def status_of(cell: Cell, world: World) -> int:
    """The status of the answer, in a world where ann and bob have objects of all kinds."""
    world.targets.put(None, NamedTarget("reports", "log", NOW, NOW, "ada", "ada"))
    world.ledger.set_breaker(None, opened(Circuit("target reports"), NOW))
    for user in (ANN, BOB):
        user.into(world)
        done = next(job for job in user.jobs if job.completed_at is not None)
        world.jobs.rows[done.key] = replace(done, attempts=(replace(done.attempts[0], log="it went well"),))
    if cell.caller == "disabled":
        world.users.set_disabled("sub-ann", NOW)
    options = dict(CALLERS[cell.caller])
    if cell.route == "POST /auth/password":
        options["headers"] = {"authorization": "Bearer token"}
    query = {"user": cell.named.owner} if cell.named else {}
    body = BODIES.get(door.PROMISED.get(cell.route, cell.route))
    return send(cell.route.partition(" ")[0], cell.path(), json_body=body, query=query, **options).status


def said(status: int) -> str:
    return "yes" if status < 300 else str(status)


def shown(route: str, caller: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The table's cell for a route and a role: own objects; another user's objects; in another user's name."""
    cells = [Cell(route, caller, ANN)]
    if "<" in route and "<number>" not in route.partition("<")[2][:8]:
        cells.append(Cell(route, caller, BOB))
    if access.RULES[route].foreign:
        cells.append(Cell(route, caller, BOB, named=BOB))
    statuses = []
    for cell in cells:
        world = World()
        monkeypatch.setattr(_runtime, "api", lambda world=world: world)
        statuses.append(said(status_of(cell, world)))
    return statuses[0] if len(set(statuses)) == 1 else " · ".join(statuses)


@pytest.mark.parametrize("name", door.PROMISED)
def test_a_promised_name_is_answered_as_its_route(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    route = door.PROMISED[name]
    for caller in CALLERS:
        statuses = []
        for asked in (name, route):
            world = World()
            monkeypatch.setattr(_runtime, "api", lambda world=world: world)
            statuses.append(status_of(Cell(asked, caller, ANN), world))
        assert statuses[0] == statuses[1], caller


@pytest.mark.parametrize("name", door.REMOVED)
def test_a_removed_name_is_refused_with_the_clear_name(name: str, world: World) -> None:
    method, path = door.in_words(name)
    answered = send(method, re.sub(r"{\w+}", "7", path.removeprefix(access.BASE)), json_body={})
    assert (answered.status, answered.error["code"]) == (404, "not_found")
    assert answered.error["message"] == f"there is no such path: use {' '.join(door.in_words(door.REMOVED[name]))}"


def test_both_tables_of_the_door_name_routes_and_shadow_none() -> None:
    assert {*door.PROMISED.values(), *door.REMOVED.values()} <= access.RULES.keys()
    assert not access.RULES.keys() & {*door.PROMISED, *door.REMOVED} and not door.PROMISED.keys() & door.REMOVED.keys()


def routes() -> list[str]:
    return [route for route in access.RULES if route not in ("GET /openapi.json", "GET /docs")]


def table() -> dict[str, list[str]]:
    rows = re.findall(r"^\| `([A-Z]+ /[^`]*)` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    return {route.replace("{", "<").replace("}", ">"): [cell.strip() for cell in cells.split("|")] for route, cells in rows}


def test_every_route_has_a_rule_and_every_rule_a_route() -> None:
    known = {f"{route.method} {route.path.removeprefix(access.BASE)}" for route in api.app.endpoints}
    assert known == set(access.RULES)


def test_the_table_has_every_route_and_every_role() -> None:
    missing, gone = {*routes()} - {*table()}, {*table()} - {*routes()}
    assert not missing and not gone, f"{PAGE.name} lacks {sorted(missing)}, and has {sorted(gone)} too many"
    header = re.search(r"^\| route \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    assert header is not None and [name.strip() for name in header.group(1).split("|")] == list(CALLERS)


def test_the_document_shows_the_access_rule_of_each_route(world: World) -> None:
    paths = send("GET", "/openapi.json", user=None).body["paths"]
    told = {
        f"{verb.upper()} {path.removeprefix('/api/v1')}": each.get("security")
        for path, verbs in paths.items()
        for verb, each in verbs.items()
    }
    reports = {f"POST /jobs/{{job_id}}/{verb}": [{"callback": []}] for verb in ("heartbeat", "complete", "fail")}
    opened = {route.replace("<", "{").replace(">", "}"): [] for route in routes() if access.RULES[route].need is Need.OPEN}
    assert {route: needs for route, needs in told.items() if needs is not None} == opened | reports


@pytest.mark.parametrize("route", routes())
def test_each_cell_of_the_table_is_answered_as_written(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [shown(route, caller, monkeypatch) for caller in CALLERS] == table()[route]


@pytest.mark.parametrize(
    "route", [route for route in routes() if access.RULES[route].need is not Need.OPEN and not access.RULES[route].foreign]
)
def test_a_route_without_foreign_objects_refuses_the_user_parameter(route: str, world: World) -> None:
    assert status_of(replace(Cell(route, "administrator", ANN), named=BOB), world) == 400
