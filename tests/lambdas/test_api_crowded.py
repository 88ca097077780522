"""The crowded minutes over HTTP: which tasks of the owner run at the same time."""

from typing import Any

import pytest

from lambdas.rest import shapes, summary_models
from scheduler.insight import crowded
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")


def create(name: str, user: str = "sub-ann", **schedule: Any) -> str:
    answered = send("POST", "/tasks", json_body={"name": name, "message": "m", "schedule": schedule}, user=user)
    assert answered.status == 201, answered.text
    return str(answered.data["id"])


def shown(**query: str) -> Any:
    answered: Answered = send("GET", "/forecast/crowded", query=query)
    shapes.Answer[summary_models.CrowdedShape].model_validate(answered.body)
    return answered.data


def test_the_minutes_with_the_most_runs_are_listed_with_their_tasks() -> None:
    hourly, nightly = create("hourly", cron="0 * * * *"), create("nightly", cron="0 2 * * *")
    twice = create("twice", rate="30 seconds", start="2026-11-21T02:00:00Z", end="2026-11-21T02:01:00Z")
    once = create("once", at="2026-11-20T11:00:20Z")
    create("alone", cron="15 * * * *")
    send("POST", f"/tasks/{create('paused', cron='0 * * * *')}/pause")
    create("of bob", user="sub-bob", cron="0 * * * *")
    found = shown()
    assert found["minutes"] == [
        {
            "at": "2026-11-21T02:00:00.000Z",
            "runs": 4,
            "task_count": 3,
            "tasks": [
                {"id": twice, "name": "twice", "runs": 2},
                {"id": hourly, "name": "hourly", "runs": 1},
                {"id": nightly, "name": "nightly", "runs": 1},
            ],
        },
        {
            "at": "2026-11-20T11:00:00.000Z",
            "runs": 2,
            "task_count": 2,
            "tasks": [{"id": hourly, "name": "hourly", "runs": 1}, {"id": once, "name": "once", "runs": 1}],
        },
    ]
    assert (found["by_minute"][0], found["by_minute"][15], sum(found["by_minute"])) == (28, 24, 52)
    assert (found["tasks"], found["complete"]) == (5, True)
    assert shown(limit="1")["minutes"] == found["minutes"][:1]


def test_the_top_of_the_hour_is_visible() -> None:
    for number in range(3):
        create(f"t{number}", cron="0 * * * *")
    create("spread", cron="30 * * * *")
    found = shown()
    assert {each["runs"] for each in found["minutes"]} == {3} and len(found["minutes"]) == 20
    assert found["minutes"][0]["at"] == "2026-11-20T11:00:00.000Z", "the earliest of equally crowded ones"
    assert [found["by_minute"][minute] for minute in (0, 30, 31)] == [72, 24, 0]


def test_no_minute_is_listed_in_which_one_run_begins() -> None:
    create("alone", cron="0 * * * *")
    found = shown(days="7")
    assert (found["minutes"], found["by_minute"][0]) == ([], 168)
    assert (found["since"], found["until"]) == ("2026-11-20T10:01:00.000Z", "2026-11-27T10:01:00.000Z")


def test_a_bound_on_the_tasks_or_their_starts_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        create(f"t{number}", cron=f"{number} * * * *")
    monkeypatch.setattr(crowded, "MOST_STARTS", 30)
    assert shown()["complete"] is False
    monkeypatch.setattr(crowded, "MOST_STARTS", 1_000)
    monkeypatch.setattr(crowded, "PAGE", 2)
    monkeypatch.setattr(crowded, "MOST_TASKS", 2)
    found = shown()
    assert (found["tasks"], found["complete"]) == (2, False)


@pytest.mark.parametrize(("query", "field"), [({"days": "8"}, "days"), ({"limit": "0"}, "limit"), ({"scope": "all"}, "scope")])
def test_bad_parameters_are_refused_by_name(query: dict[str, str], field: str) -> None:
    answered = send("GET", "/forecast/crowded", query=query)
    assert (answered.status, list(answered.fields)) == (400, [field])


def test_a_minute_names_twenty_tasks_at_most(world: World) -> None:
    for number in range(23):
        create(f"t{number:02}", cron="30 10 * * *")
    (minute,) = shown()["minutes"]
    assert (minute["runs"], minute["task_count"], len(minute["tasks"])) == (23, 23, 20)
    assert minute["tasks"][0]["name"] == "t00" and world.clock.now() == NOW
