"""The dry run of a put of a task: it answers what the put would do, and changes and spends nothing."""

import copy
from typing import Any

import pytest

from lambdas.rest import shapes, task_models
from scheduler.accounts.quota import QuotaGate
from scheduler.model.account import Role, Scope
from scheduler.model.errors import TooMany
from scheduler.model.instants import render
from tests.lambdas.gateway import GROWN, NOW, Answered, World, growing, send

TASK = "/tasks/by-key/nightly"
NIGHTLY: dict[str, Any] = {"name": "n", "message": "m", "schedule": {"cron": "30 2 * * *"}}
HOUR = 3_600_000


def put(**fields: Any) -> Answered:
    return send("PUT", TASK, json_body=NIGHTLY | fields)


def dry(query: str = "true", **fields: Any) -> Answered:
    answered = send("PUT", TASK, json_body=NIGHTLY | fields, query={"dry_run": query})
    if answered.status < 300:
        shapes.Answer[task_models.PutTaskShape].model_validate(answered.body)
    return answered


def state(world: World) -> Any:
    """All that a request could change."""
    return copy.deepcopy((world.tasks.rows, world.jobs.rows, world.trail.rows, world.receipts.rows))


def changes(answered: Answered) -> list[tuple[str, Any, Any]]:
    return [(each["field"], each["before"], each["after"]) for each in answered.data["changes"]]


def test_a_dry_run_answers_the_task_that_would_be_created(world: World) -> None:
    found = dry()
    assert (found.status, found.data["outcome"], found.data["changes"]) == (200, "created", [])
    assert "Location" not in found.headers and "ETag" not in found.headers
    ignored = ("id", "outcome", "changes")
    made = put().data
    assert {n: v for n, v in found.data.items() if n not in ignored} == {n: v for n, v in made.items() if n not in ignored}
    assert made["changes"] is None


def test_a_dry_run_names_the_fields_that_would_change(world: World) -> None:
    made = put(description="d", type="http", message=None, payload={"url": "https://x.test", "body": {"on": True}}).data
    payload = {"url": "https://x.test", "body": {"on": 1}}
    found = dry(type="http", message=None, payload=payload, schedule={"cron": "0 3 * * *"}, retry={"cap_seconds": 60}, tags=["a"])
    assert found.data["outcome"] == "updated"
    assert sorted(changes(found), key=str) == [
        ("description", "d", None),
        ("payload.body.on", True, 1),
        ("retry.cap_seconds", 900, 60),
        ("schedule.cron", "30 2 * * *", "0 3 * * *"),
        ("tags", [], ["a"]),
    ]
    assert [found.data[name] for name in ("id", "generation", "updated_at")] == [made[name] for name in ("id", "generation", "updated_at")]
    assert found.data["next_runs"][0]["local_at"] == "2026-11-21T03:00:00+00:00"


def test_a_dry_run_of_the_same_task_is_unchanged(world: World) -> None:
    put()
    found = dry(retry={}, max_attempts=3, overlap="skip", schedule={"cron": "30  2 * * *", "time_zone": "UTC"})
    assert (found.data["outcome"], found.data["changes"]) == ("unchanged", [])


@pytest.mark.parametrize("exists", [False, True])
def test_a_dry_run_changes_and_spends_nothing(world: World, exists: bool) -> None:
    if exists:
        put()
    before = state(world)
    assert dry(schedule={"rate": "5 seconds"}).status == 200
    assert dry(max_attempts=0).status == 400
    assert state(world) == before


def test_a_dry_run_is_charged_to_no_quota(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(gate: QuotaGate, id: str, jobs: int) -> None:
        raise TooMany("too many", 1_000)

    monkeypatch.setattr(QuotaGate, "admit", refuse)
    assert put().status == 429 and dry().status == 200


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"schedule": {"cron": "0 0 30 2 *"}}, 400),
        ({"schedule": {"cron": "0 0 * * *", "rate": "1 day"}}, 400),
        ({"misfire": "run_all", "schedule": {"at": render(NOW + HOUR)}}, 400),
        ({"target": "nowhere", "message": None}, 400),
        ({"message": "{{nothing}}"}, 400),
        ({"nmae": "x"}, 400),
        ({"key": "other"}, 400),
        ({"generation": 7}, 409),
        ({"message": None, "type": "http", "payload": GROWN}, 413),
    ],
)
def test_a_dry_run_is_refused_as_the_put_is(world: World, fields: dict[str, Any], status: int) -> None:
    put()
    body = growing(NIGHTLY | fields)
    tried, done = (send("PUT", TASK, body=body, query=query) for query in ({"dry_run": "true"}, {}))
    assert (tried.status, done.status) == (status, status)
    assert {n: v for n, v in tried.error.items() if n != "request_id"} == {n: v for n, v in done.error.items() if n != "request_id"}


@pytest.mark.parametrize("query", ["", "maybe"])
def test_a_dry_run_that_is_no_truth_value_is_refused(world: World, query: str) -> None:
    assert dry(query).fields == {"dry_run": "must be true or false"} and not world.tasks.rows


def test_a_put_that_is_no_dry_run_is_carried_out(world: World) -> None:
    assert dry("false").status == 201 and world.tasks.rows


def test_a_dry_run_needs_the_rights_of_the_put(world: World) -> None:
    world.be("sub-ann", "ann", Role.USER)
    key = world.key([Scope.TASKS_READ])
    for query in ({}, {"dry_run": "true"}):
        assert send("PUT", TASK, json_body=NIGHTLY, query=query, user=None).status == 401
        assert send("PUT", TASK, json_body=NIGHTLY, query=query, key=key).status == 403


def test_a_rate_keeps_its_rhythm_while_its_jitter_changes(world: World) -> None:
    made = put(schedule={"rate": "5 minutes"}).data["schedule"]
    world.clock.at += 90_000
    found = dry(schedule={"rate": "300 seconds", "jitter_seconds": 9})
    assert changes(found) == [("schedule.jitter_seconds", None, 9)]
    assert put(schedule={"rate": "300 seconds", "jitter_seconds": 9}).data["schedule"] == made | {"jitter_seconds": 9}
    # A rate that changes begins at the request; the start is listed only if the request gives it.
    assert changes(dry(schedule={"rate": "6 minutes", "jitter_seconds": 9})) == [("schedule.rate", "rate(5 minutes)", "rate(6 minutes)")]
    at = world.clock.at
    assert put(schedule={"rate": "6 minutes"}).data["schedule"]["start"] == render(at)


def test_every_keeps_its_weeks_while_its_times_change(world: World) -> None:
    schedule = {"every": "2 weeks", "times": "09:00", "weekdays": ["MON"]}
    made = put(schedule=schedule).data["schedule"]
    world.clock.at += 8 * 24 * HOUR
    assert dry(schedule=schedule).data["outcome"] == "unchanged"
    assert changes(dry(schedule=schedule | {"times": "08:00"})) == [("schedule.times", "09:00", "08:00")]
    assert put(schedule=schedule | {"times": "08:00"}).data["schedule"] == made | {"times": "08:00"}
    assert changes(dry(schedule=schedule | {"every": "3 weeks", "times": "08:00"})) == [("schedule.every", "2 weeks", "3 weeks")]


def test_a_task_names_the_fields_that_have_their_defaults(world: World) -> None:
    assert put().data["defaults"] == [
        "max_attempts", "retry", "timeout_seconds", "tags", "events", "overlap", "misfire", "misfire_threshold_seconds"
    ]  # fmt: skip
    fields = {
        "ordering_key": "k",
        "retry": {"cap_seconds": 60},
        "misfire": "run_all",
        "overlap": "allow",
        "message": None,
        "type": "http",
        "payload": {"url": "https://x.test"},
        "callback": {"lease_seconds": 60},
        "notifications": {"webhooks": [{"url": "https://x.test", "format": "slack"}]},
    }
    (listed,) = send("GET", "/tasks").data["items"] if put(**fields).status == 200 else ()
    assert set(listed["defaults"]) == {
        "max_attempts", "retry.base_seconds", "retry.jitter", "retry.max_elapsed_seconds", "retry.on_timeout", "timeout_seconds",
        "callback.max_seconds", "on_failure", "tags", "events", "notifications.emails", "notifications.receivers", "notifications.on",
        "notifications.after_failures", "notifications.digest_seconds", "misfire_threshold_seconds", "max_catch_up",
    }  # fmt: skip
    once = put(schedule={"at": render(NOW + HOUR)}).data
    assert {"overlap"} <= set(once["defaults"]) and not {"misfire", "max_catch_up"} & set(once["defaults"])
