"""The requests of administrators about the whole system: pausing and resuming lanes, and access to them."""

from typing import Any

import pytest

from lambdas.rest import shapes, system_models
from scheduler.admission import breaker
from scheduler.model.account import Role
from scheduler.model.breaker import Circuit
from scheduler.model.errors import Unavailable
from scheduler.model.instants import render
from scheduler.model.job import Lane
from tests.conftest import a_job
from tests.lambdas.gateway import NOW, Answered, World, send
from tests.unit.stage import Wrapped, refuse

pytestmark = pytest.mark.usefixtures("world")

ROUTES = [
    ("GET", "/system"),
    ("POST", "/system/pause"),
    ("POST", "/system/resume"),
    ("GET", "/system/breakers"),
    ("POST", "/system/breakers/close"),
]
ADMIN = "administrator"


def asked(verb: str, body: Any = None) -> Answered:
    return send("POST", f"/system/{verb}", json_body=body if body is not None else {}, role=ADMIN)


def posted(body: Any) -> str:
    return str(send("POST", "/jobs", json_body=body).data["id"])


def lanes(answered: Answered) -> dict[str, Any]:
    shapes.Answer[system_models.SystemShape].model_validate(answered.body)
    return {lane.pop("lane"): lane for lane in answered.data["lanes"]}


NOBODY = {"paused_by": None, "paused_by_name": None}
OPEN = {"paused": False, "paused_at": None, "resumed_at": None, "reason": None} | NOBODY


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("role", ["user"])
def test_a_caller_without_the_role_is_refused_and_changes_nothing(world: World, method: str, path: str, role: str) -> None:
    answered = send(method, path, role=role, **({"json_body": {}} if method == "POST" else {}))
    assert (answered.status, answered.error["code"]) == (403, "forbidden")
    assert world.ledger.watched().lanes == {}


def test_at_first_no_lane_is_paused() -> None:
    assert lanes(send("GET", "/system", role=ADMIN)) == dict.fromkeys(Lane, OPEN)


def test_a_pause_of_everything_and_its_resume(world: World) -> None:
    paused = {"paused": True, "paused_at": render(NOW), "resumed_at": None, "reason": "moving house"}
    paused |= {"paused_by": "sub-ann", "paused_by_name": "ann"}
    assert lanes(asked("pause", {"all": True, "reason": "moving house"})) == dict.fromkeys(Lane, paused)
    world.clock.advance(60_000)
    assert lanes(send("GET", "/system", role=ADMIN)) == dict.fromkeys(Lane, paused)
    assert lanes(asked("resume")) == dict.fromkeys(Lane, OPEN | {"resumed_at": render(NOW + 60_000)})


def test_one_lane_is_paused_and_resumed_alone() -> None:
    assert [lane for lane, state in lanes(asked("pause", {"lane": "retry"})).items() if state["paused"]] == ["retry"]
    asked("pause", {"lane": "recurring"})
    assert [lane for lane, state in lanes(asked("resume", {"lane": "retry"})).items() if state["paused"]] == ["recurring"]


def test_a_waiting_job_names_its_paused_lane(world: World) -> None:
    now = posted({"message": "hello", "key": "mine"})
    later = posted({"message": "hello", "delay": "1h"})
    asked("pause", {"lane": "one-time", "reason": "moving house"})
    world.clock.advance(5_000)
    reason = f"its lane one-time is paused since {render(NOW)} by ann: moving house"
    assert send("GET", f"/jobs/{now}").data["reason"] == reason
    assert send("GET", "/jobs/by-key/mine").data["reason"] == reason
    assert [each["reason"] for each in send("GET", "/jobs").data["items"]] == [reason]
    assert send("GET", f"/jobs/{later}").data["reason"] is None
    asked("resume", {"lane": "one-time"})
    world.clock.advance(5_000)
    assert send("GET", f"/jobs/{now}").data["reason"] is None


def test_the_lane_states_are_not_read_for_a_new_job(world: World) -> None:
    world.ledger = Wrapped(world.ledger, watched=lambda verb: pytest.fail("read the lane states"))
    assert send("POST", "/jobs", json_body={"message": "hello"}).data["reason"] is None


def test_the_lane_states_are_not_read_for_jobs_that_are_not_due(world: World) -> None:
    later = posted({"message": "hello", "delay": "1h"})
    world.ledger = Wrapped(world.ledger, watched=lambda verb: pytest.fail("read the lane states"))
    assert send("GET", f"/jobs/{later}").data["reason"] is None


def test_a_job_is_shown_though_the_lane_states_cannot_be_read(world: World) -> None:
    now = posted({"message": "hello"})
    world.ledger = Wrapped(world.ledger, watched=refuse)
    assert send("GET", f"/jobs/{now}").data["reason"] is None


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_pause_and_resume_are_idempotent(world: World, verb: str) -> None:
    asked("pause", {"all": True, "reason": "why"})
    once = asked(verb, {"all": True})
    world.clock.advance(60_000)
    assert once.status == 200 and asked(verb, {"all": True}).body == once.body


@pytest.mark.parametrize("body", [None, {}, {"reason": "why"}, {"all": False}, {"lane": None}])
def test_a_pause_without_a_lane_requires_all(world: World, body: Any) -> None:
    answered = send("POST", "/system/pause", role=ADMIN, json_body=body)
    assert (answered.status, answered.fields) == (400, {"all": "must be true to pause all lanes; give lane to pause one"})
    assert world.ledger.watched().lanes == {}


def test_an_empty_body_resumes_all_lanes() -> None:
    asked("pause", {"all": True})
    assert not any(state["paused"] for state in lanes(send("POST", "/system/resume", role=ADMIN)).values())


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"lane": "fast"}, "lane"),
        ({"lane": ["retry"]}, "lane"),
        ({"lane": 1}, "lane"),
        ({"lane": "retry", "all": True}, "all"),
        ({"all": "yes"}, "all"),
        ({"lanes": ["retry"], "all": True}, "lanes"),
        ({"reason": "", "all": True}, "reason"),
        ({"reason": "x" * 201, "all": True}, "reason"),
        ({"reason": 5, "all": True}, "reason"),
    ],
)
def test_an_invalid_request_is_refused_and_changes_nothing(world: World, verb: str, body: Any, field: str) -> None:
    answered = asked(verb, body)
    assert answered.status == 400 and list(answered.fields) == [field]
    assert world.ledger.watched().lanes == {}


def test_an_unknown_lane_is_answered_with_the_known_ones() -> None:
    assert "'one-time', 'recurring' or 'retry'" in asked("pause", {"lane": "fast"}).fields["lane"]


def test_a_reason_of_two_hundred_characters_is_accepted() -> None:
    assert asked("pause", {"all": True, "reason": "x" * 200}).status == 200


def test_a_refusing_ledger_is_a_503_and_a_repeat_completes_the_pause(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, left = world.ledger.set_lane_state, [2]

    def refused(state: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Unavailable
        real(state)

    monkeypatch.setattr(world.ledger, "set_lane_state", refused)
    assert asked("pause", {"all": True}).status == 503
    assert all(state["paused"] for state in lanes(asked("pause", {"all": True})).values())


def test_health_shows_paused_lanes_to_a_signed_in_caller() -> None:
    asked("pause", {"lane": "retry", "reason": "confidential"})
    answered = send("GET", "/health", user=None, headers={"authorization": "Bearer token"})
    assert answered.data["paused_lanes"] == ["retry"] and "business" not in answered.text
    assert send("GET", "/health", user=None).data == {"status": "ok"}


# breakers

CIRCUIT = Circuit("host example.com:8443", "sub-ann")
SHOWN = {"circuit": "host example.com:8443", "owner": "sub-ann"}
NAMED = {"owner_name": "ann"}


def breakers(answered: Answered) -> list[dict[str, Any]]:
    shapes.Answer[system_models.BreakersShape].model_validate(answered.body)
    found: list[dict[str, Any]] = answered.data["items"]
    return found


def test_an_operator_sees_the_breakers_that_are_not_closed(world: World) -> None:
    assert breakers(send("GET", "/system/breakers", role="operator")) == []
    world.ledger.set_breaker(None, breaker.opened(Circuit("target invoices"), NOW - 20_000))
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW - 1_000))
    of_host = {"state": "open", "opened_at": render(NOW - 1_000), "until": render(NOW + 9_000), "probe_until": None}
    of_target = {"state": "half-open", "opened_at": render(NOW - 20_000), "until": render(NOW - 10_000), "probe_until": None}
    shown = [SHOWN | NAMED | of_host, {"circuit": "target invoices", "owner": None, "owner_name": None} | of_target]
    assert breakers(send("GET", "/system/breakers", role="operator")) == shown


def test_a_breaker_shows_the_job_that_tries_its_target(world: World) -> None:
    half_open = breaker.probed(breaker.opened(CIRCUIT, NOW - 20_000), a_job(type="http", payload={}), NOW - 1_000)
    world.ledger.set_breaker(None, half_open)
    (shown,) = breakers(send("GET", "/system/breakers", role=ADMIN))
    assert (shown["state"], shown["until"], shown["probe_until"]) == ("half-open", render(NOW - 1_000), render(NOW + 39_000))
    world.clock.advance(39_000)
    (shown,) = breakers(send("GET", "/system/breakers", role=ADMIN))
    assert (shown["state"], shown["probe_until"]) == ("half-open", None)


def test_an_administrator_closes_a_breaker_with_a_trace_in_the_trail(world: World) -> None:
    world.ledger.set_breaker(None, breaker.opened(Circuit("target invoices"), NOW))
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW))
    asked_for = SHOWN | {"reason": "the host is back"}
    answered = asked("breakers/close", asked_for)
    assert (answered.data["closed"], [each["circuit"] for each in answered.data["items"]]) == (SHOWN | NAMED, ["target invoices"])
    shapes.Answer[system_models.ClosedShape].model_validate(answered.body)
    assert list(world.ledger.watched().breakers) == [Circuit("target invoices")]
    world.clock.advance(1)
    assert asked("breakers/close", asked_for).status == 404
    entries = send("GET", "/audit", role=ADMIN).data["items"]
    assert [(entry["action"], entry["status"], entry["changes"]) for entry in entries] == [
        ("system.close-breaker", 404, asked_for),
        ("system.close-breaker", 200, asked_for),
    ]
    assert asked("breakers/close", {"circuit": "target invoices", "owner": None}).data["items"] == []


def test_the_only_breaker_of_a_circuit_is_closed_without_its_owner(world: World) -> None:
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW))
    world.ledger.set_breaker(None, breaker.opened(Circuit("host other.example.com", "sub-ann"), NOW))
    answered = asked("breakers/close", {"circuit": CIRCUIT.name})
    assert answered.data["closed"] == SHOWN | NAMED
    assert list(world.ledger.watched().breakers) == [Circuit("host other.example.com", "sub-ann")]


def test_the_owner_of_a_breaker_is_named_by_id_or_name(world: World) -> None:
    world.be("sub-bob", "bob", Role.USER)
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW))
    world.ledger.set_breaker(None, breaker.opened(Circuit(CIRCUIT.name, "sub-bob"), NOW))
    answered = asked("breakers/close", {"circuit": CIRCUIT.name})
    assert answered.status == 409 and "sub-bob (bob)" in answered.fields["owner"] and "sub-ann" in answered.fields["owner"]
    assert {each["owner_name"] for each in breakers(send("GET", "/system/breakers", role=ADMIN))} == {"bob", "ann"}
    closed = asked("breakers/close", {"circuit": CIRCUIT.name, "owner": "bob"}).data["closed"]
    assert closed == SHOWN | {"owner": "sub-bob", "owner_name": "bob"}
    assert list(world.ledger.watched().breakers) == [CIRCUIT]


def test_an_unknown_breaker_is_answered_with_those_that_are_open(world: World) -> None:
    answered = asked("breakers/close", {"circuit": "http:example.com:8443"})
    assert (answered.status, answered.error["message"]) == (404, "no breaker of 'http:example.com:8443' is open; open: none")
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW))
    answered = asked("breakers/close", {"circuit": "http:example.com:8443"})
    assert answered.error["message"].endswith("open: 'host example.com:8443' of the owner sub-ann (ann)")


@pytest.mark.parametrize("role", ["user", "operator"])
def test_only_an_administrator_closes_a_breaker(world: World, role: str) -> None:
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW))
    assert send("POST", "/system/breakers/close", role=role, json_body=SHOWN).status == 403
    assert list(world.ledger.watched().breakers) == [CIRCUIT]


def test_a_breaker_of_another_owner_stays_open(world: World) -> None:
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW))
    assert asked("breakers/close", SHOWN | {"owner": "sub-bob"}).status == 404
    assert list(world.ledger.watched().breakers) == [CIRCUIT]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "circuit"),
        ({"circuit": ""}, "circuit"),
        ({"circuit": 5}, "circuit"),
        ({"circuit": "x" * 5_001}, "circuit"),
        (SHOWN | {"owner": ""}, "owner"),
        (SHOWN | {"reason": "x" * 201}, "reason"),
        (SHOWN | {"state": "open"}, "state"),
    ],
)
def test_an_invalid_request_closes_no_breaker(world: World, body: Any, field: str) -> None:
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW))
    answered = asked("breakers/close", body)
    assert answered.status == 400 and list(answered.fields) == [field]
    assert list(world.ledger.watched().breakers) == [CIRCUIT]


def test_a_breaker_that_cannot_be_closed_is_a_503(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.ledger.set_breaker(None, breaker.opened(CIRCUIT, NOW))
    monkeypatch.setattr(world.ledger, "set_breaker", lambda before, after: False)
    assert asked("breakers/close", SHOWN).status == 503
