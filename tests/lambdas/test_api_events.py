"""The option `events` of jobs and tasks: requested, refused without a bus, stored and changed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from lambdas import _runtime
from scheduler.model.rules import Rules
from tests.lambdas.gateway import World, send

JOB = {"message": "m", "execute_at": "2026-11-21T10:00:00Z"}
TASK = {"name": "n", "message": "m", "schedule": {"cron": "0 * * * *"}}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World()
    made.rules = replace(made.rules, events=True)
    monkeypatch.setattr(_runtime, "api", lambda: made)
    yield made


def test_no_job_has_events_unless_requested(world: World) -> None:
    assert send("POST", "/jobs", json_body=JOB).data["events"] is False
    assert send("POST", "/jobs", json_body=JOB | {"events": True}).data["events"] is True


def test_the_runs_of_a_task_have_its_events(world: World) -> None:
    made = send("POST", "/tasks", json_body=TASK | {"events": True}).data
    assert made["events"] is True and all(job.spec.events for job in world.jobs.rows.values()) and world.jobs.rows
    edited = send("PUT", f"/tasks/{made['id']}", json_body=TASK).data
    assert edited["events"] is False
    assert not any(job.spec.events for job in world.jobs.rows.values() if job.slot is not None)


def test_events_are_changed_until_the_job_starts(world: World) -> None:
    path = f"/jobs/{send('POST', '/jobs', json_body=JOB).data['id']}"
    assert send("PATCH", path, json_body={"events": True}).data["events"] is True
    assert send("PATCH", path, json_body={"message": "new"}).data["events"] is True
    assert send("PATCH", path, json_body={"events": False}).data["events"] is False
    assert list(send("PATCH", path, json_body={"events": None}).fields) == ["events"]


@pytest.mark.parametrize("bad", ["yes", 1, None])
def test_events_that_are_no_boolean_are_refused(world: World, bad: Any) -> None:
    assert list(send("POST", "/jobs", json_body=JOB | {"events": bad}).fields) == ["events"]


def test_a_stage_without_a_bus_refuses_events_and_stores_nothing(world: World) -> None:
    plain = send("POST", "/jobs", json_body=JOB).data["id"]
    world.rules = Rules()
    for method, path, body in (("POST", "/jobs", JOB), ("POST", "/tasks", TASK), ("PATCH", f"/jobs/{plain}", {})):
        refused = send(method, path, json_body=body | {"events": True})
        assert (refused.status, list(refused.fields)) == (400, ["events"]) and "no event bus" in refused.fields["events"]
        assert send(method, path, json_body=body | {"events": False}).status in (200, 201)
    assert not any(job.spec.events for job in world.jobs.rows.values())
