"""The requests of administrators about the whole system: pausing and resuming lanes, and access to them."""

from typing import Any

import pytest

from lambdas.rest import shapes, system_models
from scheduler.model.errors import Unavailable
from scheduler.model.instants import render
from scheduler.model.job import Lane
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")

ROUTES = [("GET", "/system"), ("POST", "/system/pause"), ("POST", "/system/resume")]
ADMIN = "[administrators]"


def asked(verb: str, body: Any = None) -> Answered:
    return send("POST", f"/system/{verb}", json_body=body if body is not None else {}, groups=ADMIN)


def lanes(answered: Answered) -> dict[str, Any]:
    shapes.Answer[system_models.SystemShape].model_validate(answered.body)
    return {lane.pop("lane"): lane for lane in answered.data["lanes"]}


OPEN = {"paused": False, "paused_at": None, "resumed_at": None, "reason": None}


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("groups", [None, "", "[]", "[users]", "[administrators2 no-administrators]", "[Administrators]"])
def test_a_caller_without_the_role_is_refused_and_changes_nothing(world: World, method: str, path: str, groups: str | None) -> None:
    answered = send(method, path, groups=groups, **({"json_body": {}} if method == "POST" else {}))
    assert (answered.status, answered.error["code"]) == (403, "forbidden")
    assert world.ledger.watched().lanes == {}


@pytest.mark.parametrize("groups", ["[administrators]", "[users administrators]", "[administrators users]", "administrators"])
def test_an_administrator_is_recognised_among_any_groups(groups: str) -> None:
    assert send("GET", "/system", groups=groups).status == 200


def test_at_first_no_lane_is_paused() -> None:
    assert lanes(send("GET", "/system", groups=ADMIN)) == dict.fromkeys(Lane, OPEN)


def test_a_pause_of_everything_and_its_resume(world: World) -> None:
    paused = {"paused": True, "paused_at": render(NOW), "resumed_at": None, "reason": "moving house"}
    assert lanes(asked("pause", {"reason": "moving house"})) == dict.fromkeys(Lane, paused)
    world.clock.advance(60_000)
    assert lanes(send("GET", "/system", groups=ADMIN)) == dict.fromkeys(Lane, paused)
    assert lanes(asked("resume")) == dict.fromkeys(Lane, OPEN | {"resumed_at": render(NOW + 60_000)})


def test_one_lane_is_paused_and_resumed_alone() -> None:
    assert [lane for lane, state in lanes(asked("pause", {"lane": "retry"})).items() if state["paused"]] == ["retry"]
    asked("pause", {"lane": "recurring"})
    assert [lane for lane, state in lanes(asked("resume", {"lane": "retry"})).items() if state["paused"]] == ["recurring"]


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_pause_and_resume_are_idempotent(world: World, verb: str) -> None:
    asked("pause", {"reason": "why"})
    once = asked(verb)
    world.clock.advance(60_000)
    assert asked(verb).body == once.body


def test_an_empty_body_means_all_lanes() -> None:
    answered = send("POST", "/system/pause", groups=ADMIN)
    assert all(state["paused"] for state in lanes(answered).values())


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"lane": "fast"}, "lane"),
        ({"lane": ["retry"]}, "lane"),
        ({"lane": 1}, "lane"),
        ({"lanes": ["retry"]}, "lanes"),
        ({"reason": ""}, "reason"),
        ({"reason": "x" * 201}, "reason"),
        ({"reason": 5}, "reason"),
    ],
)
def test_an_invalid_request_is_refused_and_changes_nothing(world: World, verb: str, body: Any, field: str) -> None:
    answered = asked(verb, body)
    assert answered.status == 400 and list(answered.fields) == [field]
    assert world.ledger.watched().lanes == {}


def test_an_unknown_lane_is_answered_with_the_known_ones() -> None:
    assert "'one-time', 'recurring' or 'retry'" in asked("pause", {"lane": "fast"}).fields["lane"]


def test_a_reason_of_two_hundred_characters_is_accepted() -> None:
    assert asked("pause", {"reason": "x" * 200}).status == 200


def test_a_refusing_ledger_is_a_503_and_a_repeat_completes_the_pause(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = world.ledger.set_lane_state, [2]

    def refused(state: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Unavailable
        real(state)

    monkeypatch.setattr(world.ledger, "set_lane_state", refused)
    assert asked("pause").status == 503
    assert all(state["paused"] for state in lanes(asked("pause")).values())


def test_health_shows_paused_lanes_to_a_signed_in_caller() -> None:
    asked("pause", {"lane": "retry", "reason": "not everybody's business"})
    answered = send("GET", "/health", user=None, headers={"authorization": "Bearer token"})
    assert answered.data["paused_lanes"] == ["retry"] and "business" not in answered.text
    assert send("GET", "/health", user=None).data == {"status": "ok"}
