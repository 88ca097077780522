"""The route of the status: its access, and the shape of its answer."""

from typing import Any

import pytest

from lambdas.rest import shapes, status_models
from scheduler.model.instants import render
from tests.lambdas.gateway import NOW, World, send

pytestmark = pytest.mark.usefixtures("world")
ADMIN = "administrator"


def status(scope: str | None = None, **more: Any) -> Any:
    answered = send("GET", "/status", query={} if scope is None else {"scope": scope}, **more)
    assert answered.status == 200, answered.text
    shapes.Answer[status_models.CurrentStatusShape].model_validate(answered.body)
    return answered.data


def test_at_first_all_is_well() -> None:
    for scope in ("own", "all"):
        found = status(scope, role=ADMIN)
        assert (found["well"], found["problems"], found["more_problems"], found["scope"]) == (True, [], False, scope)
        assert found["late"] == {"count": 0, "at_least": False, "longest_seconds": 0}
        assert [lane["waiting"] for lane in found["lanes"]] == [0] * 3


@pytest.mark.parametrize("role", ["user"])
def test_a_user_sees_only_what_is_theirs(role: str) -> None:
    assert send("GET", "/status", query={"scope": "all"}, role=role).status == 403
    assert status(role=role)["scope"] == "own"
    assert send("GET", "/status", query={"scope": "some"}).status == 400
    assert send("GET", "/status", query={"owner": "sub-bob"}).status == 403


@pytest.mark.parametrize("scope", ["own", "all"])
def test_a_pause_names_its_author_its_reason_and_its_jobs(world: World, scope: str) -> None:
    send("POST", "/jobs", json_body={"message": "hello"})
    send("POST", "/system/pause", json_body={"lane": "one-time", "reason": "moving house"}, role=ADMIN)
    world.clock.advance(5_000)
    found = status(scope, role=ADMIN)
    (problem,) = found["problems"]
    assert (problem["kind"], problem["severity"], problem["title"]) == (
        "lane_paused",
        "critical",
        "The lane one-time is paused: 1 job waits",
    )
    assert (problem["by"], problem["by_name"], problem["reason"], problem["since"]) == ("sub-ann", "ann", "moving house", render(NOW))
    assert problem["remedy"] == {
        "label": "Resume",
        "method": "POST",
        "path": "/api/v1/system/resume",
        "body": {"lane": "one-time"},
        "command": "punctual system resume one-time",
    }
    assert found["late"] == {"count": 1, "at_least": False, "longest_seconds": 5}
    assert [(each["owner"], each["count"]) for each in found["waiting"]] == [("sub-ann", 1)]
    assert send("POST", problem["remedy"]["path"].removeprefix("/api/v1"), json_body=problem["remedy"]["body"], role=ADMIN).status == 200
    assert "lane_paused" not in [each["kind"] for each in status(scope, role=ADMIN)["problems"]]


def test_the_remedies_of_a_team_act_on_its_objects() -> None:
    team = send("POST", "/teams", json_body={"name": "Team one"}).data["id"]
    task = {"name": "report", "message": "hello", "schedule": {"cron": "0 8 * * *"}}
    ids = {owner: send("POST", "/tasks", query=query, json_body=task).data["id"] for owner, query in (("", {}), (team, {"owner": team}))}
    assert send("POST", f"/tasks/{ids[team]}/pause", query={"owner": team}, json_body={}).status == 200
    (problem,) = send("GET", "/status", query={"owner": team}).data["problems"]
    assert problem["inspect"] == f"punctual tasks show {ids[team]} --owner 'Team one'"
    path, _, query = problem["remedy"]["path"].removeprefix("/api/v1").partition("?")
    assert send(problem["remedy"]["method"], path, query=dict([query.split("=")])).status == 200
    assert send("GET", "/status", query={"owner": team}).data["problems"] == []
