"""Placeholders in payloads, over HTTP: checked when a job, a task or a named target is created, and marked for replacement."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model.instants import DAY, render
from scheduler.model.job import JobKey, TaskKey
from tests.lambdas.gateway import NOW, World, send

pytestmark = pytest.mark.usefixtures("world")

ADMIN = "administrator"
URL = "https://example.com/reports/{{nominal_at:date}}"
KNOWN = (
    "there is no placeholder {{x}}; known: scheduled_at, nominal_at, job.id, job.key, "
    "group.id, task.id, task.name, task.key, attempt; after "
)
CALL = {"url": URL, "method": "POST", "body": ["{{attempt}}"], "headers": {"X-At": "{{scheduled_at}}"}}
HTTP: dict[str, Any] = {"type": "http", "payload": CALL}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"message": "{{x}}"}, "message"),
    ({"type": "log", "payload": {"message": "{{x}}"}}, "payload.message"),
    ({"type": "http", "payload": {"url": "https://example.com/", "body": {"deep": ["{{x}}"]}}}, "payload.body.deep.0"),
    ({"target": "reports", "payload": {"body": "{{x}}"}}, "payload.body"),
]


def spec(world: World, answered: Any) -> Any:
    assert answered.status == 201, answered.text
    return world.jobs.get(JobKey("sub-ann", answered.data["id"])).spec


def register(**fields: Any) -> Any:
    return send("POST", "/targets", json_body={"name": "reports", "kind": "http", "defaults": {"url": URL}} | fields, role=ADMIN)


def test_a_payload_is_marked_only_if_it_has_placeholders(world: World) -> None:
    assert spec(world, send("POST", "/jobs", json_body=HTTP)).placeholders
    assert spec(world, send("POST", "/jobs", json_body={"message": "{{scheduled_at}}"})).placeholders
    assert spec(world, send("POST", "/jobs", json_body={"message": "{{{{name}}"})).placeholders
    assert not spec(world, send("POST", "/jobs", json_body={"message": "{name}"})).placeholders


def test_a_job_shows_its_payload_as_it_was_posted() -> None:
    job = send("POST", "/jobs", json_body=HTTP).data
    assert send("GET", f"/jobs/{job['id']}").data["payload"] == HTTP["payload"]


@pytest.mark.parametrize(("body", "field"), BAD)
@pytest.mark.parametrize("path", ["/jobs", "/tasks"])
def test_an_unknown_placeholder_is_refused_with_field_and_rule(world: World, body: dict[str, Any], field: str, path: str) -> None:
    assert register().status == 201
    answered = send("POST", path, json_body=body if path == "/jobs" else body | {"name": "a task"})
    assert (answered.status, list(answered.fields)) == (400, [field])
    assert answered.fields[field].startswith(KNOWN)
    assert world.jobs.rows == {}


def test_an_unknown_placeholder_refuses_its_job_of_many() -> None:
    answered = send("POST", "/jobs/batch", json_body={"jobs": [{"message": "{{x}}"}, {"message": "{{attempt}}"}]})
    assert (answered.data["accepted"], answered.data["refused"]) == (1, 1)


def test_a_task_gives_its_mark_to_its_runs_and_an_edit_checks_it_again(world: World) -> None:
    task = {"name": "a task", "message": "{{task.name}} {{nominal_at:date}}", "schedule": {"rate": "rate(1 hour)"}}
    made = send("POST", "/tasks", json_body=task).data
    assert all(job.spec.placeholders for job in world.jobs.rows.values()) and world.jobs.rows
    path = f"/tasks/{made['id']}"
    assert list(send("PUT", path, json_body=task | {"message": "{{x}}"}).fields) == ["message"]
    assert send("PUT", path, json_body=task | {"message": "plain"}).status == 200
    assert not world.tasks.get(TaskKey("sub-ann", made["id"])).spec.placeholders


def test_only_a_change_of_the_payload_changes_the_mark(world: World) -> None:
    job = send("POST", "/jobs", json_body={"message": "{{attempt}}", "execute_at": render(NOW + DAY)}).data["id"]

    def change(body: dict[str, Any]) -> Any:
        answered = send("PATCH", f"/jobs/{job}", json_body=body)
        return answered.fields if answered.status == 400 else world.jobs.get(JobKey("sub-ann", job)).spec.placeholders

    assert change({"max_attempts": 5}) is True
    assert list(change({"message": "{{x}}"})) == ["payload.message"]
    assert change({"message": "plain"}) is False
    assert change({"payload": {"message": "{{job.id}}"}}) is True


def test_the_defaults_of_a_target_are_checked_and_marked_too(world: World) -> None:
    refused = register(defaults={"url": "https://example.com/{{x}}"})
    assert (refused.status, list(refused.fields)) == (400, ["defaults.url"])
    assert register().status == 201 and world.targets.all()[0].placeholders
    plain = {"kind": "http", "defaults": {"url": "https://example.com/"}}
    assert send("PUT", "/targets/reports", json_body=plain, role=ADMIN).status == 200
    assert not world.targets.all()[0].placeholders


def test_old_defaults_of_a_target_refuse_no_job(world: World) -> None:
    assert register().status == 201
    (target,) = world.targets.all()
    old = replace(target, defaults={"url": "https://example.com/{{x}}"}, placeholders=False, version=target.version + 1)
    assert world.targets.put(target, old)
    assert not spec(world, send("POST", "/jobs", json_body={"target": "reports"})).placeholders


def test_the_host_of_a_url_has_no_placeholder() -> None:
    answered = send("POST", "/jobs", json_body={"type": "http", "payload": {"url": "https://{{job.id}}.example.com/"}})
    assert answered.status == 400 and answered.fields["payload.url"].startswith("must have an IP address or a host name")


@pytest.mark.parametrize("name", ["Punctual-Scheduled-At", "punctual-task-name", "Punctual-Attempt", "Punctual-Job-Key"])
def test_the_headers_of_the_context_cannot_be_given(name: str) -> None:
    payload = {"url": "https://example.com/", "headers": {name: "mine"}}
    answered = send("POST", "/jobs", json_body={"type": "http", "payload": payload})
    assert answered.status == 400 and "is set by the scheduler and cannot be given" in answered.text


def test_an_input_of_an_execution_must_be_the_same_in_every_attempt() -> None:
    machine = "arn:aws:states:us-east-1:000000000000:stateMachine:orders"
    payload = {"state_machine": machine, "input": {"n": "{{attempt}}"}}
    answered = send("POST", "/jobs", json_body={"type": "stepfunctions", "payload": payload})
    assert answered.fields == {"payload.input.n": "cannot have {{attempt}}: it must be the same in every attempt"}
