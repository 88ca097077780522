"""Named targets over HTTP: access, validation, and the payloads that jobs may give them."""

import dataclasses
from typing import Any

import pytest

from lambdas.rest import form_models, shapes, target_models
from scheduler.model.instants import render
from scheduler.targets.base import Reach
from scheduler.targets.named_target import NO_NETWORK
from tests.lambdas.gateway import NOW, Answered, World, send

pytestmark = pytest.mark.usefixtures("world")

ADMIN = "administrator"
EITHER = "give exactly one of: message alone; type with its payload; target with its payload"
QUEUE = "arn:aws:sqs:eu-west-1:123456789012:orders"
INVOICES: dict[str, Any] = {
    "name": "invoices",
    "kind": "http",
    "defaults": {"method": "POST", "url": "https://example.com/invoices", "headers": {"X-Key": "secret"}, "body": {"number": 0}},
    "payload_schema": {"type": "object", "properties": {"body": {"type": "object", "required": ["number"]}}, "additionalProperties": False},
    "rate": 20,
    "concurrency": 5,
}


def register(**fields: Any) -> Answered:
    return send("POST", "/targets", json_body=INVOICES | fields, role=ADMIN)


def replace(name: str = "invoices", **fields: Any) -> Answered:
    body = {key: value for key, value in (INVOICES | fields).items() if key != "name"}
    return send("PUT", f"/targets/{name}", json_body=body, role=ADMIN)


def post(**fields: Any) -> Answered:
    return send("POST", "/jobs", json_body=fields)


@pytest.mark.parametrize(("method", "path"), [("POST", "/targets"), ("PUT", "/targets/invoices"), ("DELETE", "/targets/invoices")])
def test_only_administrators_write_targets(world: World, method: str, path: str) -> None:
    register()
    body = {} if method == "DELETE" else {"json_body": {**INVOICES, "name": "mine"} if method == "POST" else {"kind": "http"}}
    answered = send(method, path, role="user", **body)
    assert (answered.status, answered.error["code"]) == (403, "forbidden")
    assert [(each.name, each.version) for each in world.targets.all()] == [("invoices", 1)]


def test_administrators_see_more_of_a_target_than_users(world: World) -> None:
    made = register()
    assert (made.status, made.headers["Location"]) == (201, "/api/v1/targets/invoices")
    whole = send("GET", "/targets/invoices", role=ADMIN)
    assert whole.data == made.data
    assert whole.data["locked"] == ["headers", "method", "url"], "all but what is said to it"
    assert (whole.data["created_at"], whole.data["created_by"], whole.data["version"]) == (render(NOW), "sub-ann", 1)
    seen = send("GET", "/targets")
    shapes.Answer[target_models.TargetsShape].model_validate(seen.body)
    (shown,) = seen.data["items"]
    assert shown["job_payload_schema"] == INVOICES["payload_schema"] and shown["rate"] == 20
    hidden = ("defaults", "locked", "payload_schema", "created_by", "updated_by")
    assert [shown[name] for name in hidden] == [None] * 5
    assert "secret" not in seen.text


def test_a_name_is_unique_and_a_kind_never_changes(world: World) -> None:
    register()
    world.clock.advance(1)
    assert register().status == 409
    assert replace(kind="log", defaults={}).fields == {"kind": "cannot change: it is http; delete this target first, or register another"}
    assert world.targets.all()[0].version == 1


def test_an_edit_of_an_old_version_is_refused() -> None:
    register()
    assert replace(rate=10, version=1).data["version"] == 2
    assert replace(rate=30, version=1).status == 409
    assert replace(rate=None).data["rate"] is None, "without a version the last edit wins"


def test_a_deleted_target_is_gone() -> None:
    register()
    assert send("DELETE", "/targets/invoices", role=ADMIN).data == {"name": "invoices"}
    for method in ("GET", "DELETE"):
        assert send(method, "/targets/invoices", role=ADMIN).status == 404
    assert replace().status == 404


REFUSED: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"name": "Invoices"}, {"name": "must be 1 to 63 lower-case letters, digits or any of . _ -, and begin with a letter or a digit"}),
    (
        {"kind": "fax"},
        {"kind": "there is no such type; known types: aws, ecs, email, eventbridge, http, lambda, log, sns, sqs, stepfunctions"},
    ),
    ({"defaults": {"url": "ftp://a"}}, {"defaults.url": "must be an http:// or https:// URL with a host"}),
    ({"defaults": {"uri": "https://a"}}, {"defaults.uri": "is not a known field"}),
    (
        {"kind": "sqs", "defaults": {"queue": QUEUE}},
        {"defaults.queue": "is not allowed for jobs of this stage; allowed: none (operators set the option allowed_targets)"},
    ),
    ({"defaults": {"timeout_seconds": 0.05}}, {"defaults.timeout_seconds": "must be at least 0.1"}),
    ({"locked": ["timeout_seconds"]}, {"locked": "has no default to lock: timeout_seconds"}),
    (
        {"defaults": {"url": "https://a", "bearer_secret": "key"}, "locked": ["bearer_secret"]},
        {"locked": "must include url, with a default: else a job could choose where the target's secrets are sent"},
    ),
    (
        {"defaults": {"header_secrets": {"X-Api-Key": "key"}}},
        {"locked": "must include url, with a default: else a job could choose where the target's secrets are sent"},
    ),
    ({"payload_schema": {"type": "array"}}, {"payload_schema": 'must have "type": "object", since it describes a payload'}),
    ({"rate": 0.01}, {"rate": "must be at least 0.1"}),
    ({"rate": 1_001}, {"rate": "must be at most 1000"}),
    ({"concurrency": 0}, {"concurrency": "must be at least 1"}),
    ({"concurrency": 501}, {"concurrency": "must be at most 500"}),
    ({"limit": {"key": "k", "concurrency": 0}}, {"limit.concurrency": "must be at least 1"}),
    ({"description": "x" * 1_001}, {"description": "must have at most 1000 characters"}),
    ({"network": "vpc"}, {"network": "must be one of 'public' or 'private'"}),
    ({"network": "private", "allow": ["10.0.0.0/16"]}, {"network": NO_NETWORK}),
    ({"kind": "log", "defaults": {}, "network": "private"}, {"network": "cannot be private for kind log: only targets of kind http can"}),
    ({"allow": ["10.0.0.0/16"]}, {"allow": "belongs to network private: jobs of a public target call public addresses"}),
    ({"enabled": "yes"}, {"enabled": "must be true or false"}),
    ({"version": 0}, {"version": "must be at least 1"}),
    ({"colour": "red"}, {"colour": "is not a known field"}),
]


@pytest.mark.parametrize(("fields", "rules"), REFUSED)
def test_an_invalid_target_is_refused_with_field_and_rule(world: World, fields: dict[str, Any], rules: dict[str, str]) -> None:
    answered = register(**fields)
    assert (answered.status, answered.fields) == (400, rules)
    assert world.targets.all() == []


def test_every_field_of_a_target_has_a_refusal() -> None:
    assert {field.partition(".")[0] for _, rules in REFUSED for field in rules} >= set(target_models.TargetRequest.model_fields)


PRIVATE: dict[str, Any] = {
    "network": "private",
    "allow": ["10.0.1.0/24", "db.internal.example.com"],
    "defaults": {},
    "payload_schema": None,
}


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"allow": []}, {"allow": "is missing: a private target lists the hosts and ranges that its jobs may call"}),
        ({"allow": ["10.0.1.0/33"]}, {"allow.0": None}),
        ({"allow": ["169.254.169.254"]}, {"allow.0": None}),
        ({"allow": ["10.0.1.0/24", "10.0.0.0/8", "*.example.com", "172.16.0.0/12"]}, dict.fromkeys(("allow.1", "allow.2", "allow.3"))),
        ({"defaults": {"url": "https://10.0.2.1/"}}, {"defaults.url": "has a host that jobs of this private target may not call"}),
    ],
)
def test_a_private_target_stays_within_the_option_network(world: World, fields: dict[str, Any], rules: dict[str, str | None]) -> None:
    world.reach = Reach(network=("10.0.0.0/16", "*.internal.example.com"))
    answered = register(**PRIVATE | fields)
    assert answered.status == 400 and answered.fields.keys() == rules.keys(), answered.fields
    assert all(rule in (None, answered.fields[field]) for field, rule in rules.items()), answered.fields
    assert world.targets.all() == []


def test_jobs_of_a_private_target_name_what_its_list_allows(world: World) -> None:
    """`http_hosts` concerns the public hosts alone."""
    world.reach = Reach(network=("10.0.0.0/16", "*.internal.example.com"), hosts=("hooks.example.com",))
    made = register(**PRIVATE)
    assert made.status == 201 and (made.data["network"], made.data["allow"]) == ("private", PRIVATE["allow"])
    seen = send("GET", "/targets/invoices").data
    assert (seen["network"], seen["allow"]) == ("private", None)
    assert post(target="invoices", payload={"url": "https://10.0.1.7/"}).status == 201
    assert post(target="invoices", payload={"url": "https://10.0.2.7/"}).fields.keys() == {"payload.url"}
    assert post(type="http", payload={"url": "https://10.0.1.7/"}).fields.keys() == {"payload.url"}
    assert replace(defaults={}, payload_schema=None).data["network"] == "public"
    register(**PRIVATE | {"name": "left"})
    world.reach = Reach()
    assert NO_NETWORK in post(target="left", payload={"url": "https://10.0.1.7/"}).fields["payload"]


def test_an_allowed_arn_may_be_a_default(world: World) -> None:
    world.reach = Reach((QUEUE,))
    assert register(kind="sqs", defaults={"queue": QUEUE}, payload_schema=None).data["job_payload_schema"]["required"] == ["body"]


# Jobs and tasks of a target


def test_a_job_names_a_target_instead_of_a_type(world: World) -> None:
    register()
    job = post(target="invoices", payload={"body": {"number": 7}}).data
    assert (job["target"], job["type"], job["payload"]) == ("invoices", "http", {"body": {"number": 7}})
    assert post(target="invoices").status == 201, "the defaults may be all it needs"
    task = send("POST", "/tasks", json_body={"name": "t", "target": "invoices", "payload": {"body": {"number": 7}}})
    assert (task.data["target"], task.data["type"]) == ("invoices", "http")
    runs = [job for job in world.jobs.rows.values() if job.origin is not None]
    assert [(run.spec.target, run.spec.type) for run in runs] == [("invoices", "http")]


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"target": "nobody"}, {"target": "there is no such target; GET /targets lists them"}),
        (
            {"target": "invoices", "type": "log"},
            {"type": "must be the kind of the target invoices: http"},
        ),
        (
            {"target": "invoices", "message": "m"},
            {"type": EITHER},
        ),
        (
            {"target": "invoices", "payload": {"url": "https://evil.example"}},
            {"payload.url": "is locked by the target", "payload.url ": "is not a known field"},
        ),
        ({"target": "invoices", "payload": {"body": {}}}, {"payload.body.number": "is required"}),
        ({"target": "invoices", "payload": {"body": 1}}, {"payload.body": "must be of type object"}),
        ({"target": "invoices", "payload": {"timeout_seconds": 5}}, {"payload.timeout_seconds": "is not a known field"}),
    ],
)
def test_a_job_with_a_wrong_payload_for_its_target_is_refused(world: World, fields: dict[str, Any], rules: dict[str, str]) -> None:
    register()
    answered = post(**fields)
    assert answered.status == 400
    assert {(each["field"], each["rule"]) for each in answered.error["details"]} == {(field.strip(), rule) for field, rule in rules.items()}
    assert world.jobs.rows == {}


def test_fields_without_a_default_are_checked_by_the_type() -> None:
    register(payload_schema=None, defaults={"method": "POST"})
    assert post(target="invoices").fields == {"payload.url": "is required"}
    assert post(target="invoices", payload={"url": "https://example.com"}).status == 201


def test_a_disabled_target_accepts_no_jobs() -> None:
    register(enabled=False)
    assert post(target="invoices").fields == {"target": "is disabled"}


def test_a_changed_payload_is_checked_by_the_target() -> None:
    register()
    job = send("POST", "/jobs", json_body={"target": "invoices", "execute_at": render(NOW + 3_600_000)}).data
    change = f"/jobs/{job['id']}"
    assert send("PATCH", change, json_body={"payload": {"method": "GET"}}).status == 400
    assert send("PATCH", change, json_body={"payload": {"body": {"number": 8}}}).data["payload"] == {"body": {"number": 8}}


def test_task_types_list_the_targets_that_jobs_may_name() -> None:
    register()
    register(name="off", enabled=False)
    answered = send("GET", "/types")
    shapes.Answer[form_models.TaskTypesShape].model_validate(answered.body)
    named = [each for each in answered.data["items"] if each["target"] is not None]
    assert [(each["target"], each["type"], each["payload_schema"]) for each in named] == [("invoices", "http", INVOICES["payload_schema"])]


def test_raw_http_can_be_disabled(world: World) -> None:
    register(payload_schema=None)
    world.rules = dataclasses.replace(world.rules, raw_http=False)
    refused = post(type="http", payload={"url": "https://example.com"})
    assert refused.fields == {"type": "type http is disabled in this stage: use a named target (GET /targets lists them)"}
    assert post(target="invoices").status == 201
    types = {each["type"] for each in send("GET", "/types").data["items"] if each["target"] is None}
    assert "http" not in types and "log" in types
