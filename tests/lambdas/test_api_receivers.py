"""Named receivers in the API: put, shown without their secrets, tested, named by tasks and jobs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lambdas import _runtime
from scheduler.model.notice import Sending
from scheduler.model.receiver import Health
from scheduler.targets.base import Reach
from tests.lambdas.gateway import NOW, Answered, World, send

URL = "https://hooks.slack.com/services/T/B/topsecret"
KEY = "0123456789abcdef0123456789abcdef"
SLACK = {"kind": "slack", "address": URL}
PAGERDUTY = {"kind": "pagerduty", "address": KEY}
AT = "2026-11-20T10:00:00.500Z"
SHOWN = {
    "name": "ops",
    "kind": "slack",
    "address": "https://hooks.slack.com/…cret",
    "signing_secret": None,
    "region": "us",
    "default": False,
    "created_at": AT,
    "updated_at": AT,
    "off": False,
    "error": None,
    "failed_at": None,
    "tested_at": None,
}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(reach=Reach(sender="punctual@example.com"))
    monkeypatch.setattr(_runtime, "api", lambda: made)
    yield made


def put(name: str = "ops", **body: Any) -> Answered:
    return send("PUT", f"/receivers/{name}", json_body=body)


def post(notifications: Any) -> Answered:
    return send(
        "POST", "/tasks", json_body={"name": "n", "message": "m", "schedule": {"cron": "0 * * * *"}, "notifications": notifications}
    )


def test_a_receiver_is_put_shown_and_deleted_without_its_secret(world: World) -> None:
    made = put(**SLACK)
    assert (made.status, made.headers["Location"], made.data) == (201, "/api/v1/receivers/ops", SHOWN)
    put("aaa", kind="email", address="ann@example.com")
    assert [each["name"] for each in send("GET", "/receivers").data["items"]] == ["aaa", "ops"]
    assert send("GET", "/receivers/ops").data == SHOWN
    again = put(kind="slack", address=SHOWN["address"], default=True)
    assert (again.status, again.data["default"]) == (200, True) and world.receivers.find("sub-ann", "ops").address == URL
    for answered in (made, again, send("GET", "/receivers")):
        assert "topsecret" not in answered.text
    trail = str(vars(world.trail))
    assert "receiver.put" in trail and "topsecret" not in trail and "ann@example.com" not in trail
    assert send("DELETE", "/receivers/ops").data == {"name": "ops"}
    assert send("GET", "/receivers/ops").status == send("DELETE", "/receivers/ops").status == 404


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        ({"kind": "slack"}, "address", "is required"),
        ({"kind": "sms", "address": "1"}, "kind", "'slack'"),
        ({"kind": "email", "address": "ann"}, "address", "must be one bare e-mail address"),
        ({"kind": "slack", "address": "http://example.com"}, "address", "must be an https:// URL"),
        ({"kind": "slack", "address": "https://example.com/…abcd"}, "address", "is required"),
        ({"kind": "pagerduty", "address": "short"}, "address", "32 letters and digits"),
        ({"kind": "webhook", "address": "https://example.com"}, "signing_secret", "is required"),
        (PAGERDUTY | {"signing_secret": "hook"}, "signing_secret", "must be absent"),
        (SLACK | {"signing_secret": "../x"}, "signing_secret", "must be the name of a secret"),
        (SLACK | {"region": "eu"}, "region", "is for kind pagerduty only"),
        (PAGERDUTY | {"region": "mars"}, "region", "'us'"),
        (SLACK | {"colour": "red"}, "colour", ""),
    ],
)
def test_an_invalid_receiver_is_refused_by_field_and_not_stored(world: World, body: Any, field: str, rule: str) -> None:
    answered = put(**body)
    assert answered.status == 400, answered.text
    assert list(answered.fields) == [field] and rule in answered.fields[field]
    assert world.receivers.all("sub-ann") == []


def test_a_name_has_a_form(world: World) -> None:
    assert "must be 1 to 63" in put("Ops", **SLACK).fields["receiver"]


def test_receivers_must_be_reachable_from_the_stage(world: World) -> None:
    world.reach = Reach(hosts=("*.example.org",))
    assert "cannot send e-mail" in put(kind="email", address="ann@example.com").fields["address"]
    assert "has a host that jobs of this stage may not call" in put(**SLACK).fields["address"]
    assert "has a host that jobs of this stage may not call" in put(**PAGERDUTY).fields["address"]


def test_a_test_is_requested_and_its_result_is_shown(world: World) -> None:
    assert send("POST", "/receivers/ops/test").status == 404
    put(**SLACK)
    asked = send("POST", "/receivers/ops/test")
    assert (asked.status, asked.data) == (202, {"name": "ops", "requested_at": AT})
    (sending,) = world.notices.sent
    assert isinstance(sending, Sending) and sending.notice.test
    world.receivers.note(world.receivers.find("sub-ann", "ops"), Health(10, "HTTP 404", NOW))
    shown = send("GET", "/receivers/ops").data
    assert (shown["off"], shown["error"], shown["failed_at"], shown["tested_at"]) == (True, "HTTP 404", AT, None)


def test_tasks_and_jobs_name_receivers_that_exist(world: World) -> None:
    put(**SLACK)
    made = post({"receivers": ["ops", "ops"]}).data
    assert made["notifications"]["receivers"] == ["ops"] and post(made["notifications"]).status == 201
    assert "there is no such receiver" in post({"receivers": ["ops", "gone"]}).fields["notifications.receivers.1"]
    job = {"message": "m", "execute_at": "2026-11-21T10:00:00Z", "notifications": {"receivers": ["gone"]}}
    assert "there is no such receiver" in send("POST", "/jobs", json_body=job).fields["notifications.receivers.0"]
    assert send("POST", "/jobs", json_body=job | {"notifications": {"receivers": ["ops"]}}).data["notifications"]["receivers"] == ["ops"]
    refused = send("DELETE", "/receivers/ops")
    assert refused.status == 409 and made["id"] in refused.error["message"]


def test_without_receivers_the_default_ones_are_meant(world: World) -> None:
    assert "you have no default receiver" in post({}).fields["notifications"]
    put(**SLACK, default=True)
    assert post({}).data["notifications"]["receivers"] == [], "they are read with each notice"


def test_a_batch_reads_the_receivers_once(world: World) -> None:
    put(**SLACK)
    reads = list[str]()
    read_all = world.receivers.all
    world.receivers.all = lambda owner: reads.append(owner) or read_all(owner)  # type: ignore[func-returns-value]
    jobs = [{"message": "m", "notifications": {"receivers": ["ops"]}}] * 5
    assert send("POST", "/jobs/batch", json_body={"jobs": jobs}).data["accepted"] == 5 and reads == ["sub-ann"]


def test_an_incident_that_nothing_would_resolve_is_refused(world: World) -> None:
    put("oncall", **PAGERDUTY)
    assert "must have recovery" in post({"receivers": ["oncall"], "on": ["failure"]}).fields["notifications.on"]
    assert post({"receivers": ["oncall"], "on": ["failure", "recovery"]}).status == 201


def test_another_owner_s_receivers_are_not_shown(world: World) -> None:
    put(**SLACK)
    world.receivers.put(None, replace(world.receivers.find("sub-ann", "ops"), owner="sub-bob", name="bobs"))
    assert [each["name"] for each in send("GET", "/receivers").data["items"]] == ["ops"]
    assert send("GET", "/receivers/bobs").status == 404
    assert "there is no such receiver" in post({"receivers": ["bobs"]}).fields["notifications.receivers.0"]
