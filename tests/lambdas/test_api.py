"""The rules for every route: envelope, errors, bodies, access; and the routes that are not about jobs."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docs_build.expanded import expanded
from lab.world.gateway import event
from lambdas import _runtime, api
from lambdas._logger import logger
from lambdas.rest import door, job_answers, models, shapes
from lambdas.rest.envelope import refusal
from scheduler.model import errors
from scheduler.model.account import Role
from scheduler.model.job import Cursor, JobKey
from scheduler.targets import registry
from tests.lambdas.gateway import GROWN, Answered, World, growing, send

pytestmark = pytest.mark.usefixtures("world")


def test_health_is_open_and_reads_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_runtime, "api", lambda: pytest.fail("built the world"))
    answered = send("GET", "/health", user=None)
    assert (answered.status, answered.body) == (200, {"success": True, "data": {"status": "ok"}})


def test_health_reports_the_lag_to_a_signed_in_caller(world: World) -> None:
    world.ledger.advance(None, Cursor("2026-11-20T09:58", 2, 1))  # no tick has run since
    world.ledger.set_mark(99)
    data = send("GET", "/health", user=None, headers={"authorization": "Bearer token"}).data
    assert data == {"status": "ok", "oldest_open_minute": "2026-11-20T09:58:00.000Z", "lag_seconds": 60.5, "paused_lanes": []}


def test_health_of_a_new_stage_is_that_of_its_status(world: World) -> None:
    """Its first tick opens past minutes, in which it had no job."""
    world.ledger.advance(None, Cursor("2026-11-20T09:45", 2, 1))
    data = send("GET", "/health", user=None, headers={"authorization": "Bearer token"}).data
    assert (data["lag_seconds"], data["oldest_open_minute"]) == (0, None)
    assert send("GET", "/status").data["scheduler"]["lag_seconds"] == 0


def test_health_refuses_an_invalid_token() -> None:
    assert send("GET", "/health", user=None, headers={"authorization": "Bearer forged"}).error["code"] == "unauthorized"


# Sign in


def test_login_returns_tokens_and_the_user(world: World) -> None:
    world.be("sub-ann", "ann", Role.USER)
    world.users.set_weight("sub-ann", 2.0)
    answered = send("POST", "/auth/login", json_body={"username": "ann", "password": "right"}, user=None)
    assert answered.data == {
        "token": "token",
        "expire": "2026-11-20T11:00:00.500Z",
        "token_type": "Bearer",
        "expires_in": 3_600,
        "refresh_token": "fresh",
        "user": {"id": "sub-ann", "username": "ann", "job_weight": 2.0},
    }
    shapes.Answer[models.SessionShape].model_validate(answered.body)


def test_a_wrong_password_and_an_unknown_user_get_the_same_answer() -> None:
    texts = {send("POST", "/auth/login", json_body={"username": name, "password": "wrong"}, user=None).text for name in ("ann", "eve")}
    assert len(texts) == 1 and json.loads(texts.pop())["error"]["code"] == "unauthorized"


def test_login_names_missing_fields() -> None:
    assert send("POST", "/auth/login", json_body={"username": ""}, user=None).fields == {
        "username": "must not be empty",
        "password": "is required",
    }


def refresh(**rest: Any) -> Answered:
    return send("POST", "/auth/refresh", user=None, **rest)


def test_refresh_takes_the_token_as_bearer_or_in_the_body() -> None:
    for answered in (refresh(headers={"authorization": "Bearer fresh"}), refresh(json_body={"refresh_token": "fresh"})):
        kind = {"token_type": "Bearer", "expires_in": 3_600}
        assert answered.data == {"token": "token2", "expire": "2026-11-20T11:00:00.500Z"} | kind
        shapes.Answer[models.RefreshedShape].model_validate(answered.body)


def test_refresh_without_a_valid_token_is_unauthorized() -> None:
    for answered in (refresh(), refresh(headers={"authorization": "Basic x"}), refresh(headers={"authorization": "Bearer old"})):
        assert (answered.status, answered.error["code"]) == (401, "unauthorized")


# Access


@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("GET", ""), ("GET", "/01JOB"), ("POST", "/01JOB/cancel")])
def test_the_routes_below_me_need_a_token(world: World, method: str, path: str) -> None:
    answered = send(method, f"/jobs{path}", body='{"message": "m"}', user=None)
    assert answered.status in (401, 404) and answered.body["success"] is False and not world.jobs.rows


# Errors


def test_an_unknown_path_is_not_found_in_the_envelope() -> None:
    answered = send("GET", "/nothing")
    assert (answered.status, answered.error) == (
        404,
        {"code": "not_found", "message": "there is no such path", "details": [], "request_id": "request-1"},
    )


@pytest.mark.parametrize(("method", "path", "allowed"), [("DELETE", "/jobs", "GET, POST"), ("GET", "/jobs/x/cancel", "POST")])
def test_a_wrong_method_is_answered_with_the_allowed_ones(method: str, path: str, allowed: str) -> None:
    answered = send(method, path)
    assert (answered.status, answered.error["code"], answered.headers["Allow"]) == (405, "method_not_allowed", allowed)


def test_a_path_that_no_route_accepts_is_unknown_by_every_method() -> None:
    """The answer to a wrong method repeats the router's pattern of path parameters."""
    characters = [chr(number) for number in range(128) if chr(number) not in "/\n"] + ["é"]
    known = {each for each in characters if send("GET", f"/jobs/a{each}b").error["message"] == "there is no such job"}
    assert known == {each for each in characters if send("DELETE", f"/jobs/a{each}b").status == 405}
    assert {" ", "<", "é"} <= known and not known & {'"', "#", "?"}


@pytest.mark.parametrize(
    ("query", "field", "rule"),
    [
        ("limit=1&limit=2", "limit", "must be a whole number"),
        ("limit=1,2", "limit", "is given more than once"),
        ("type=log&type=http", "type", "must be a string"),
        ("upcoming=true&upcoming=", "upcoming", "must be true or false"),
    ],
)
def test_a_repeated_parameter_that_takes_one_value_is_refused(query: str, field: str, rule: str) -> None:
    given = event("GET", "/api/v1/jobs")
    joined = ",".join(each.partition("=")[2] for each in query.split("&"))
    answered = api.handler(given | {"rawQueryString": query, "queryStringParameters": {field: joined}}, None)
    assert json.loads(answered["body"])["error"]["details"] == [{"field": field, "rule": rule}]


@pytest.mark.parametrize(
    "body", ["{", "{'a': 1}", '{"message": NaN}', '{"message": 1e999}', '{"message": "\\ud800"}', "[" * 100_000, "1" * 5_000]
)
def test_a_body_that_is_not_json_is_refused(world: World, body: str) -> None:
    answered = send("POST", "/jobs", body=body)
    assert (answered.status, answered.error["code"]) == (400, "malformed_json")
    assert not world.jobs.rows


def test_malformed_json_is_refused_with_its_place() -> None:
    assert "line 2, column 1" in send("POST", "/jobs", body='{"message": "m",\n}').error["message"]


@pytest.mark.parametrize("body", ["[]", '[{"message": "m"}]', '"m"', "null", "1"])
def test_a_body_that_is_no_object_is_refused(world: World, body: str) -> None:
    assert send("POST", "/jobs", body=body).fields == {"body": "must be a JSON object"}
    assert not world.jobs.rows


def test_bodies_in_base64_are_read_and_broken_ones_refused() -> None:
    encoded = base64.b64encode('{"message": "é"}'.encode()).decode()
    assert send("POST", "/jobs", body=encoded, base64=True).data["payload"] == {"message": "é"}
    for broken in ("x", base64.b64encode(b'{"message": "\xff"}').decode()):
        assert send("POST", "/jobs", body=broken, base64=True).error["code"] == "malformed_json"


@pytest.mark.parametrize("media_type", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"])
def test_other_media_types_are_refused(world: World, media_type: str) -> None:
    answered = send("POST", "/jobs", body='{"message": "m"}', headers={"content-type": media_type})
    assert (answered.status, answered.error["code"]) == (415, "unsupported_media_type") and not world.jobs.rows


def test_the_media_type_is_read_by_the_rules_of_http() -> None:
    assert send("POST", "/jobs", body='{"message": "m"}', headers={"content-type": "Application/JSON; charset=UTF-8"}).status == 201


def test_a_body_of_256_kb_is_accepted_and_a_larger_one_refused(world: World) -> None:
    frame = len('{"message": ""}')
    assert send("POST", "/jobs", body=json.dumps({"message": "x" * (262_144 - frame)})).status == 201
    for body in (json.dumps({"message": "x" * (262_145 - frame)}), json.dumps({"message": "é" * 150_000}, ensure_ascii=False)):
        answered = send("POST", "/jobs", body=body)
        assert (answered.status, answered.error["code"]) == (413, "payload_too_large")
    assert len(world.jobs.rows) == 1


def test_a_job_whose_numbers_grow_in_the_table_is_refused(world: World) -> None:
    body = growing({"type": "http", "payload": GROWN})
    assert len(body) < 107_865
    answered = send("POST", "/jobs", body=body, headers={"idempotency-key": "k"})
    assert (answered.status, answered.error["code"]) == (413, "payload_too_large")
    assert re.search(r"3\d\d,\d\d\d bytes in the table; at most 307,200 \(300 KB\)", answered.error["message"])
    assert not world.jobs.rows and not world.receipts.rows
    assert send("POST", "/jobs", body='{"message": "m"}', headers={"idempotency-key": "k"}).status == 201


class Broken:
    """A port `Jobs` that fails every call."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*args: Any, **kwargs: Any) -> Any:
            raise self.error

        return fail


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    lines: list[str] = []
    monkeypatch.setattr(logger, "exception", lambda message, **_: lines.append(message))
    yield lines


def test_an_unexpected_error_is_logged_and_not_shown(world: World, log: list[str]) -> None:
    world.jobs = Broken(RuntimeError("secret of ours"))
    answered = send("GET", "/jobs")
    assert (answered.status, answered.error["code"], answered.error["request_id"]) == (500, "internal_error", "request-1")
    assert "secret" not in answered.text and log == ["unexpected error"]


def test_an_illegal_transition_is_logged_and_not_shown(world: World, log: list[str]) -> None:
    world.jobs = Broken(errors.IllegalTransition("claimed twice"))
    answered = send("GET", "/jobs")
    assert (answered.status, answered.error["code"]) == (500, "internal_error")
    assert "claimed" not in answered.text and log == ["unexpected error"]


def test_a_refusal_by_aws_is_answered_with_retry_after(world: World) -> None:
    world.jobs = Broken(errors.Unavailable())
    answered = send("POST", "/jobs", json_body={"message": "m"})
    assert (answered.status, answered.error["code"], answered.headers["Retry-After"]) == (503, "unavailable", "2")


def test_a_job_of_another_version_is_a_503_with_the_reason(world: World) -> None:
    job = send("POST", "/jobs", json_body={"message": "m"}).data["id"]
    world.jobs.unreadable[JobKey("sub-ann", job)] = "its format is 2"
    for method, path in (("GET", ""), ("POST", "/cancel")):
        answered = send(method, f"/jobs/{job}{path}")
        assert (answered.status, answered.error["code"]) == (503, "unreadable")
        assert "another version" in answered.error["message"].lower() and "scheduler is updated" in answered.error["message"]
    assert send("GET", "/jobs").data["items"] == []


def test_every_error_of_the_tree_has_a_status() -> None:
    tree = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.SchedulerError)]
    statuses = {kind.__name__: refusal(kind(), "r").status_code for kind in tree}
    assert statuses == {
        "SchedulerError": 500,
        "Invalid": 400,
        "TooLarge": 413,
        "Unauthorized": 401,
        "Forbidden": 403,
        "NotFound": 404,
        "Gone": 410,
        "Conflict": 409,
        "TooMany": 429,
        "Unavailable": 503,
        "Unreadable": 503,
        "IllegalTransition": 500,
    }


def http_job(**payload: Any) -> Answered:
    return send("POST", "/jobs", json_body={"type": "http", "payload": {"url": "https://example.com/", **payload}})


@pytest.mark.parametrize("host", ["a..b", ".a", "a" * 64 + ".com", ".".join(["a" * 60] * 5), "...", ".", "a%20b", "a!b", "a..", "a:0"])
def test_a_host_that_no_resolver_can_find_is_refused_at_creation(world: World, host: str) -> None:
    assert list(http_job(url=f"https://{host}/").fields) == ["payload.url"]


@pytest.mark.parametrize(
    "host", ["a", "a.b.", "a_b.example.com", "a" * 63 + ".com", "0x7f.1", "[2606:4700::1111]", "a:65535", "a:", "xn--a"]
)
def test_a_host_that_a_resolver_may_find_is_accepted(world: World, host: str) -> None:
    assert http_job(url=f"https://{host}/").status == 201


def test_a_payload_that_is_nested_too_deeply_is_refused_with_the_limit(world: World) -> None:
    def nested(levels: int) -> Any:
        return 1 if levels == 0 else [nested(levels - 1)]

    assert http_job(body=nested(199)).status == 201  # the payload itself is the first level
    for levels in (200, 500):
        assert http_job(body=nested(levels)).fields == {"payload": "must not be nested deeper than 200 levels"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"message": "a", "message": "a"}', "message"),
        ('{"type": "http", "payload": {"url": "https://a", "body": {"x": 1, "y": 2, "x": 3}}}', "x"),
        ('{"message": "a", "": 1, "": 2}', '""'),
        ("{" + ", ".join(f'"{n}": 1' for n in [*range(20_000), 19_999]) + "}", "19999"),
    ],
)
def test_a_field_that_is_given_twice_is_refused(world: World, body: str, field: str) -> None:
    assert send("POST", "/jobs", body=body).fields == {field: "is given twice"}


def test_a_field_with_an_empty_name_is_named(world: World) -> None:
    assert send("POST", "/jobs", body='{"": 1, "message": "a"}').fields == {'""': "is not a known field"}


@pytest.mark.parametrize(
    ("options", "status"),
    [("", 201), (";charset=UTF-8", 201), ('; charset="utf-8"', 201), ("; charset=utf-16", 415), ("; charset=latin-1", 415), ("; x=y", 201)],
)
def test_a_body_in_another_charset_is_refused(world: World, options: str, status: int) -> None:
    headers = {"content-type": f"application/json{options}"}
    assert send("POST", "/jobs", body='{"message": "m"}', headers=headers).status == status


def test_bytes_that_are_not_utf_8_are_refused(world: World) -> None:
    refused = send("POST", "/jobs", body=base64.b64encode(b'{"message": "\xff"}').decode(), base64=True)
    assert (refused.status, refused.error["code"]) == (400, "malformed_json")


# Random input

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=10), children, max_size=4),
    max_leaves=10,
)
plausible = st.sampled_from(["log", "http", {"message": "m"}, {"url": "http://a"}, "2026-11-21T10:00:00Z", "9999-12-31T23:59:59.9-23:59"])
fields = st.sampled_from(["execute_at", "message", "type", "payload", "max_attempts", "timeout_seconds", "other"])
job_bodies = st.dictionaries(fields, json_values | plausible)
lenient = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.long
@lenient
@given(job_bodies | json_values)
def test_no_json_body_breaks_the_api(world: World, body: Any) -> None:
    answered = send("POST", "/jobs", body=json.dumps(body))
    assert answered.status in (201, 400)
    if answered.status == 201:
        shapes.Answer[job_answers.JobShape].model_validate(answered.body)
    else:
        assert answered.error["details"] or answered.error["code"] == "malformed_json"


@lenient
@given(st.text(max_size=50))
def test_no_text_body_breaks_the_api(world: World, body: str) -> None:
    assert send("POST", "/jobs", body=body).status < 500


@pytest.mark.long
@lenient
@given(st.dictionaries(st.sampled_from(["from", "to", "limit", "cursor", "status", "type", "upcoming", "x"]), st.text(max_size=30)))
def test_no_parameters_break_the_api(world: World, query: dict[str, str]) -> None:
    assert send("GET", "/jobs", query=query).status < 500


@lenient
@given(st.text(max_size=30))
def test_no_path_breaks_the_api(world: World, path: str) -> None:
    assert send("GET", f"/jobs/{path}").status < 500


# The document


@pytest.fixture(scope="module")
def document() -> Any:
    return expanded(json.loads(api.handler(event("GET", "/api/v1/openapi.json", user=None), None)["body"]))


def test_the_document_lists_every_route(document: Any) -> None:
    routes = {(method, path) for path, operations in document["paths"].items() for method in operations}
    promised = {(method.lower(), path) for method, path in map(door.in_words, door.PROMISED)}
    assert promised < routes
    groups = {
        ("get", ""),
        ("post", ""),
        ("get", "/{group_id}"),
        ("get", "/{group_id}/jobs"),
        *(("post", f"/{{group_id}}/{act}") for act in ("seal", "cancel")),
    }
    monitors = {
        ("get", "monitors"),
        *((method, "monitors/{key}") for method in ("get", "put", "delete")),
        ("get", "monitors/{key}/history"),
        *(("post", f"monitors/{{key}}/{act}") for act in ("pause", "resume", "token")),
        *((method, f"ping/{{token}}{signal}") for method in ("get", "post") for signal in ("", "/{signal}")),
    }
    named = {
        *(("get", name) for name in ("calendars", "receivers")),
        *((method, f"{each}") for method in ("get", "put", "delete") for each in ("calendars/{calendar_name}", "receivers/{receiver}")),
        ("post", "receivers/{receiver}/test"),
        *((method, "default-alerts") for method in ("get", "put")),
    }
    others = {(method, f"/api/v1/groups{path}") for method, path in groups} | {
        (method, f"/api/v1/{path}") for method, path in monitors | named
    }
    assert routes - promised - others == {
        ("get", "/api/v1/health"),
        ("post", "/api/v1/auth/login"),
        ("post", "/api/v1/auth/refresh"),
        ("post", "/api/v1/auth/challenge"),
        ("get", "/api/v1/auth/sso"),
        ("post", "/api/v1/auth/sso"),
        *((method, "/api/v1/auth/totp") for method in ("get", "post", "put")),
        ("post", "/api/v1/auth/totp/disable"),
        ("delete", "/api/v1/users/{user_id}/totp"),
        ("post", "/api/v1/jobs"),
        ("get", "/api/v1/jobs"),
        ("post", "/api/v1/jobs/batch"),
        ("put", "/api/v1/jobs/by-key/{key}"),
        ("get", "/api/v1/jobs/by-key/{key}"),
        ("post", "/api/v1/jobs/by-key/{key}/cancel"),
        ("put", "/api/v1/tasks/by-key/{key}"),
        ("get", "/api/v1/intake/dead-letters"),
        ("get", "/api/v1/intake/dead-letters/{message_id}"),
        ("post", "/api/v1/intake/dead-letters/{message_id}/retry"),
        ("delete", "/api/v1/intake/dead-letters/{message_id}"),
        ("get", "/api/v1/tasks/by-key/{key}"),
        ("get", "/api/v1/jobs/{job_id}"),
        ("patch", "/api/v1/jobs/{job_id}"),
        ("patch", "/api/v1/tasks/{task_id}"),
        ("get", "/api/v1/version"),
        ("get", "/api/v1/jobs/{job_id}/attempts/{number}/output"),
        ("get", "/api/v1/jobs/{job_id}/attempts/{number}/log"),
        ("post", "/api/v1/jobs/{job_id}/cancel"),
        ("post", "/api/v1/jobs/{job_id}/retry"),
        ("post", "/api/v1/jobs/{job_id}/replay"),
        ("post", "/api/v1/jobs/replay"),
        ("post", "/api/v1/jobs/{job_id}/heartbeat"),
        ("post", "/api/v1/jobs/{job_id}/complete"),
        ("post", "/api/v1/jobs/{job_id}/fail"),
        ("get", "/api/v1/ordering-keys/{ordering_key}"),
        ("post", "/api/v1/ordering-keys/{ordering_key}/resume"),
        ("get", "/api/v1/dead-letters"),
        ("get", "/api/v1/dead-letters/{fingerprint}/jobs"),
        ("post", "/api/v1/dead-letters/redrive"),
        ("get", "/api/v1/dead-letters/redrives/{redrive_id}"),
        ("post", "/api/v1/dead-letters/redrives/{redrive_id}/abort"),
        ("post", "/api/v1/jobs/cancel"),
        ("post", "/api/v1/tasks/pause"),
        ("post", "/api/v1/tasks/resume"),
        ("post", "/api/v1/tasks/delete"),
        ("get", "/api/v1/operations"),
        ("get", "/api/v1/operations/{operation_id}"),
        ("post", "/api/v1/operations/{operation_id}/abort"),
        ("post", "/api/v1/schedules/preview"),
        ("post", "/api/v1/schedules/calendar"),
        ("get", "/api/v1/types"),
        ("get", "/api/v1/types/aws/actions"),
        ("get", "/api/v1/types/aws/actions/{service}/{action}"),
        ("post", "/api/v1/tasks"),
        ("get", "/api/v1/tasks"),
        ("get", "/api/v1/tasks/{task_id}"),
        ("put", "/api/v1/tasks/{task_id}"),
        ("delete", "/api/v1/tasks/{task_id}"),
        ("post", "/api/v1/tasks/{task_id}/pause"),
        ("post", "/api/v1/tasks/{task_id}/resume"),
        ("post", "/api/v1/tasks/{task_id}/run"),
        ("get", "/api/v1/tasks/{task_id}/next"),
        ("get", "/api/v1/tasks/{task_id}/calendar"),
        ("get", "/api/v1/tasks/{task_id}/jobs"),
        ("get", "/api/v1/me"),
        ("get", "/api/v1/me/audit"),
        ("get", "/api/v1/audit"),
        ("post", "/api/v1/auth/password"),
        ("post", "/api/v1/auth/logout"),
        ("post", "/api/v1/users"),
        ("get", "/api/v1/users"),
        ("get", "/api/v1/users/{user_id}"),
        ("patch", "/api/v1/users/{user_id}"),
        ("delete", "/api/v1/users/{user_id}"),
        ("post", "/api/v1/users/{user_id}/disable"),
        ("post", "/api/v1/users/{user_id}/enable"),
        ("put", "/api/v1/users/{user_id}/password"),
        ("get", "/api/v1/keys"),
        ("post", "/api/v1/keys"),
        ("post", "/api/v1/keys/revoke"),
        *((method, "/api/v1/keys/{key_id}") for method in ("get", "delete")),
        *((method, "/api/v1/teams") for method in ("get", "post")),
        *((method, "/api/v1/teams/{team_id}") for method in ("get", "patch", "delete")),
        ("get", "/api/v1/teams/{team_id}/members"),
        *((method, "/api/v1/teams/{team_id}/members/{user_id}") for method in ("put", "delete")),
        *((method, "/api/v1/teams/{team_id}/invitations") for method in ("get", "post")),
        ("delete", "/api/v1/teams/{team_id}/invitations/{invitation_id}"),
        ("post", "/api/v1/invitations/accept"),
        ("get", "/api/v1/users/{user_id}/identities"),
        *((method, "/api/v1/users/{user_id}/identities/{provider}") for method in ("put", "delete")),
        *((method, "/api/v1/principals") for method in ("get", "post")),
        *((method, "/api/v1/principals/{principal_id}") for method in ("get", "patch", "delete")),
        ("get", "/api/v1/intake/dead-letters"),
        *((method, "/api/v1/intake/dead-letters/{message_id}") for method in ("get", "delete")),
        ("post", "/api/v1/intake/dead-letters/{message_id}/retry"),
        ("get", "/api/v1/forecast"),
        ("get", "/api/v1/forecast/crowded"),
        ("get", "/api/v1/statistics"),
        ("get", "/api/v1/status"),
        ("get", "/api/v1/system"),
        ("post", "/api/v1/system/pause"),
        ("post", "/api/v1/system/resume"),
        ("get", "/api/v1/system/breakers"),
        ("post", "/api/v1/system/breakers/close"),
        ("get", "/api/v1/targets"),
        ("post", "/api/v1/targets"),
        ("get", "/api/v1/targets/{name}"),
        ("put", "/api/v1/targets/{name}"),
        ("delete", "/api/v1/targets/{name}"),
    }


def test_the_api_page_lists_every_route(document: Any) -> None:
    written = (Path(__file__).parents[2] / "docs/reference/api.md").read_text()
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"| `{method.upper()} {path.removeprefix('/api/v1')}` |" in written


def test_the_document_requires_a_token_except_for_open_routes(document: Any) -> None:
    assert document["components"]["securitySchemes"]["bearer"]["scheme"] == "bearer"
    assert document["security"] == [{"bearer": []}, {"key": []}]
    operations = {path: operation for path, each in document["paths"].items() for operation in each.values()}
    opened = {path for path, operation in operations.items() if operation.get("security") == []}
    of_sign_in = (f"auth/{each}" for each in ("challenge", "login", "refresh", "sso"))
    pings = ("ping/{token}", "ping/{token}/{signal}")
    assert opened == {f"/api/v1/{name}" for name in ("health", "keys/revoke", *of_sign_in, *pings)}
    reports = {path for path, operation in operations.items() if operation.get("security") == [{"callback": []}]}
    assert reports == {f"/api/v1/jobs/{{job_id}}/{verb}" for verb in ("heartbeat", "complete", "fail")}


def test_the_document_has_no_shape_that_is_never_answered(document: Any) -> None:
    text = json.dumps(document)
    assert "HTTPValidationError" not in text and '"422"' not in text
    for operations in document["paths"].values():
        for operation in operations.values():
            shapes = {code: answer["content"]["application/json"]["schema"] for code, answer in operation["responses"].items()}
            ours, gateways = ({"$ref": f"#/components/schemas/{name}"} for name in ("ErrorAnswer", "GatewayAnswer"))
            refusals = [shape for code, shape in shapes.items() if code >= "4"]
            assert refusals and all(shape in (ours, {"anyOf": [ours, gateways]}) for shape in refusals)
            either = [code for code, shape in shapes.items() if "anyOf" in shape and code >= "4"]
            assert either == ([] if "security" in operation else ["401"]), "the gateway requires the token of a sign-in"


def test_every_reference_of_the_document_leads_somewhere(document: Any) -> None:
    for reference in re.findall(r'"\$ref": "([^"]*)"', json.dumps(document)):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in found, reference
            found = found[part]


@pytest.mark.parametrize("path", ["/me", "/types", "/targets", "/system", "/system/breakers"])
def test_an_unknown_parameter_is_refused(world: World, path: str) -> None:
    assert send("GET", path, query={"colour": "red"}, role="administrator").fields == {"colour": "is not a known parameter"}
    assert send("GET", path, role="administrator").status == 200


def test_every_reference_in_the_document_resolves(document: Any) -> None:
    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
            yield from references(child)

    assert {ref.rpartition("/")[2] for ref in references(document)} <= set(document["components"]["schemas"])


def test_the_document_describes_every_payload_with_examples(document: Any) -> None:
    schemas = document["components"]["schemas"]
    assert {f"{name.title()}Payload" for name in registry.names()} <= schemas.keys()
    assert schemas["HttpPayload"]["properties"]["url"]["type"] == "string"
    examples = document["paths"]["/api/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    for example in examples.values():
        models.JobRequest.model_validate(example["value"])


def test_every_duration_in_the_document_has_a_lower_bound_of_its_own(document: Any) -> None:
    shapes = {name: shape.get("properties", {}) for name, shape in document["components"]["schemas"].items()}
    durations = {
        f"{name}.{field}": json.dumps(rule) for name, fields in shapes.items() for field, rule in fields.items() if "second" in field
    }
    assert '"minimum": 0.1' in durations["HttpPayload.timeout_seconds"]
    assert not [field for field, rule in durations.items() if "exclusiveMinimum" in rule]


@pytest.mark.parametrize(("path", "status"), [("/health", 200), ("/nowhere", 404), ("/auth/login", 405), ("/openapi.json", 200)])
def test_every_answer_has_the_security_headers(path: str, status: int) -> None:
    answered = send("GET", path)
    assert answered.status == status
    assert answered.headers["X-Content-Type-Options"] == "nosniff" and answered.headers["X-Frame-Options"] == "DENY"
    assert answered.headers["Strict-Transport-Security"].startswith("max-age=63072000")
    assert answered.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Powertools leaves its open files to the garbage collector
def test_the_docs_page_is_open() -> None:
    answered = api.handler(event("GET", "/api/v1/docs", user=None), None)
    assert (answered["statusCode"], answered["headers"]["Content-Type"]) == (200, "text/html")
    assert "/api/v1/jobs" in answered["body"] and len(answered["body"]) < 6_000_000
