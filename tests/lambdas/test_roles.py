"""Every route, as every role: on own objects, on another owner's objects, and in another owner's name; and as each member of a team.

docs/reference/roles.md has the same tables: `python -m tests.lambdas.test_roles` writes them.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lambdas import _runtime, api
from lambdas.rest import access, door
from scheduler.accounts.access import Need
from scheduler.admission.breaker import opened
from scheduler.model.account import Membership, Principal, Role, Scope, TeamRole
from scheduler.model.breaker import Circuit
from scheduler.model.job import Status
from scheduler.model.named_target import NamedTarget
from scheduler.targets.base import Reach
from tests.lambdas.gateway import NOW, World, send
from tests.lambdas.test_fuzz_api import ANN, BOB, Belongings, OfTeam

THEIRS = OfTeam("team-q")
PAGE = Path(__file__).parents[2] / "docs/reference/roles.md"
CALLERS: dict[str, dict[str, Any]] = {
    "nobody": {"user": None},
    "user": {},
    "operator": {"role": "operator"},
    "administrator": {"role": "administrator"},
    **{f"`{scope}`": {"scope": scope} for scope in Scope},
    "disabled": {},
}
MEMBERS: dict[str, TeamRole | None] = {**{str(role): role for role in TeamRole}, "other team": None}
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
    "PUT /calendars/<calendar_name>": {"dates": ["2027-12-25"]},
    "POST /jobs/batch": {"jobs": [{"message": "m"}]},
    "PUT /monitors/<key>": {"name": "n", "period_seconds": 300},
    "POST /groups": {"jobs": [{"message": "m"}]},
    "PATCH /jobs/<job_id>": {"max_attempts": 2},
    "PUT /jobs/by-key/<key>": {"message": "m", "delay": "1h"},
    "PUT /tasks/by-key/<key>": TASK,
    "POST /tasks": TASK,
    "PUT /tasks/<task_id>": TASK,
    "PATCH /tasks/<task_id>": {"max_attempts": 2},
    "POST /schedules/preview": {"cron": "* * * * *"},
    "POST /schedules/calendar": {"cron": "* * * * *"},
    "POST /dead-letters/redrive": {"all": True},
    "POST /intake/dead-letters/<message_id>/retry": {"body": {"message": "m"}},
    "POST /system/pause": {"all": True},
    "POST /jobs/cancel": {"all": True},
    "POST /jobs/replay": {"all": True},
    "POST /tasks/pause": {"all": True},
    "POST /tasks/resume": {"all": True},
    "POST /tasks/delete": {"all": True},
    "POST /targets": {"name": "mails", "kind": "log"},
    "PUT /targets/<name>": {"kind": "log"},
    "PUT /receivers/<receiver>": {"kind": "slack", "address": "https://hooks.slack.com/services/T/B/x"},
    "PUT /default-alerts": {"missed": True},
    "PUT /users/<user_id>/identities/<provider>": {"subject": "ann@example.com"},
    "POST /keys": {"name": "ci", "scopes": ["jobs:read"]},
    "POST /teams": {"name": "t"},
    "PATCH /teams/<team_id>": {"name": "t"},
    "PUT /teams/<team_id>/members/<user_id>": {"role": "viewer"},
    "POST /teams/<team_id>/invitations": {},
    "POST /principals": {"arn": "arn:aws:iam::123456789012:role/new", "owner": "sub-ann", "scopes": ["jobs:read"]},
    "PATCH /principals/<principal_id>": {"scopes": ["jobs:write"]},
    "POST /system/breakers/close": {"circuit": "target reports"},
    "POST /users": {"username": "new", "password": "Correct-horse-1"},
    "PATCH /users/<user_id>": {"job_weight": 2.0},
    "PUT /users/<user_id>/password": {"password": "Correct-horse-2"},
}
WANTS = {"retry": Status.FAILED, "replay": Status.SUCCEEDED, "output": Status.SUCCEEDED, "log": Status.SUCCEEDED}


@dataclass(frozen=True)
class Cell:
    """One request: `whose` objects its path names, and the owner that its parameter `owner` names."""

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
        if parameter == "user_id" and "/teams/" in self.route:
            return self.whose.guest
        wanted = WANTS.get(self.route.rpartition("/")[2])
        if parameter != "job_id" or wanted is None:
            return self.whose.names(parameter)[0]
        times = {Status.FAILED: "failed_at", Status.SUCCEEDED: "completed_at"}
        return next(job.id for job in self.whose.jobs if getattr(job, times[wanted]) is not None)


def filled(world: World) -> None:
    """Ann and bob have objects of all kinds."""
    world.targets.put(None, NamedTarget("reports", "log", NOW, NOW, "ada", "ada"))
    world.ledger.set_breaker(None, opened(Circuit("target reports"), NOW))
    mapped = Principal("principal-1", "arn:aws:iam::123456789012:role/x", ANN.owner, frozenset({Scope.JOBS_READ}), "ada", NOW)
    world.owners.put_principal(mapped, new=True)
    world.rules = replace(world.rules, intake=True)
    world.reach = Reach(actions=("s3:CopyObject",))
    for user in (ANN, BOB):
        placed(user, world)


def placed(user: Belongings, world: World) -> None:
    user.into(world)
    done = next(job for job in user.jobs if job.completed_at is not None)
    world.jobs.rows[done.key] = replace(done, attempts=(replace(done.attempts[0], log="it went well"),))


def status_of(cell: Cell, world: World) -> int:
    """The status of the answer, in a world where ann and bob have objects of all kinds."""
    filled(world)
    options = dict(CALLERS[cell.caller])
    if cell.caller == "disabled":
        world.users.set_disabled(ANN.owner, NOW)
    if scope := options.pop("scope", None):
        world.be(ANN.owner, "ann", Role.ADMINISTRATOR)
        options["key"] = world.key([scope])
        world.be(ANN.owner, "ann", Role.ADMINISTRATOR if scope is Scope.ADMIN else Role.USER)
    return _sent(cell, world, cell.named.owner if cell.named else None, options)


def _sent(cell: Cell, world: World, owner: str | None, options: dict[str, Any]) -> int:
    body = BODIES.get(door.PROMISED.get(cell.route, cell.route))
    if cell.route == "POST /keys/revoke":
        body = {"key": cell.whose.key.text}
    if cell.route == "POST /invitations/accept":
        body = {"token": BOB.invited.token}
    return send(cell.route.partition(" ")[0], cell.path(), json_body=body, query={"owner": owner} if owner else {}, **options).status


def status_in_team(route: str, role: TeamRole | None, world: World) -> int:
    """The status of ann's request about the objects of a team in which ann has this role."""
    owner = THEIRS.owner
    filled(world)
    placed(THEIRS, world)
    if role is not None:
        world.users.memberships[ANN.owner, owner] = Membership(owner, ANN.owner, role, NOW)
    return _sent(Cell(route, "user", THEIRS), world, owner if access.RULES[route].owned else None, {})


def said(status: int) -> str:
    return "yes" if status < 300 else str(status)


def shown(route: str, caller: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The table's cell for a route and a role: own objects; another owner's objects; in another owner's name."""
    cells = [Cell(route, caller, ANN)]
    if "<" in route and "<number>" not in route.partition("<")[2][:8]:
        cells.append(Cell(route, caller, BOB))
    if access.RULES[route].foreign:
        cells.append(Cell(route, caller, BOB, named=BOB))
    return _several([lambda world, cell=cell: status_of(cell, world) for cell in cells], monkeypatch)  # type: ignore[misc]


def shown_in_team(route: str, member: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The cell of the second table."""
    return _several([lambda world: status_in_team(route, MEMBERS[member], world)], monkeypatch)


def _several(requests: list[Callable[[World], int]], monkeypatch: pytest.MonkeyPatch) -> str:
    statuses = []
    for request in requests:
        world = World()
        monkeypatch.setattr(_runtime, "api", lambda world=world: world)
        statuses.append(said(request(world)))
    return statuses[0] if len(set(statuses)) == 1 else " · ".join(statuses)


def of_teams() -> list[str]:
    """The routes about the objects of an owner, and those of teams themselves."""
    return [route for route in routes() if access.RULES[route].owned or "<team_id>" in route]


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


def tables() -> list[dict[str, list[str]]]:
    """The rows of both tables, by route; the header is the row `route`."""
    blocks = re.findall(r"^\| route \|.*(?:\n\|.*)+", PAGE.read_text(), re.MULTILINE)
    return [dict(map(_row, block.splitlines()[:1] + block.splitlines()[2:])) for block in blocks]


def _row(line: str) -> tuple[str, list[str]]:
    route, *cells = [cell.strip() for cell in line.strip("|").split("|")]
    return route.strip("`").replace("{", "<").replace("}", ">"), cells


def written(columns: Iterable[str], rows: Iterable[str], cell: Callable[[str, str], str]) -> str:
    """A table as the page has it."""
    lines = [f"| route | {' | '.join(columns)} |", "|---" * (len(list(columns)) + 1) + "|"]
    for route in rows:
        path = route.replace("<", "{").replace(">", "}")
        lines.append(f"| `{path}` | {' | '.join(cell(route, column) for column in columns)} |")
    return "\n".join(lines)


def test_every_route_has_a_rule_and_every_rule_a_route() -> None:
    known = {f"{route.method} {route.path.removeprefix(access.BASE)}" for route in api.app.endpoints}
    assert known == set(access.RULES)


def test_the_tables_have_every_route_and_every_role() -> None:
    for found, expected, columns in zip(tables(), (routes(), of_teams()), (CALLERS, MEMBERS), strict=True):
        assert list(found) == ["route", *expected], f"{PAGE.name}: run `python -m tests.lambdas.test_roles`"
        assert found["route"] == list(columns)


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
    assert [shown(route, caller, monkeypatch) for caller in CALLERS] == tables()[0][route]


@pytest.mark.parametrize("route", of_teams())
def test_each_cell_of_the_table_of_teams_is_answered_as_written(route: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [shown_in_team(route, member, monkeypatch) for member in MEMBERS] == tables()[1][route]


@pytest.mark.parametrize(
    "route", [route for route in routes() if access.RULES[route].need is not Need.OPEN and not access.RULES[route].owned]
)
def test_a_route_without_an_owner_refuses_the_parameter(route: str, world: World) -> None:
    assert status_of(replace(Cell(route, "administrator", ANN), named=BOB), world) == 400


def main() -> None:
    """Write both tables into the page."""
    with pytest.MonkeyPatch.context() as patch:
        first = written(CALLERS, routes(), lambda route, caller: shown(route, caller, patch))
        second = written(MEMBERS, of_teams(), lambda route, member: shown_in_team(route, member, patch))
    new = iter([first, second])
    PAGE.write_text(re.sub(r"^\| route \|.*(?:\n\|.*)+", lambda _: next(new), PAGE.read_text(), flags=re.MULTILINE))


if __name__ == "__main__":
    main()
