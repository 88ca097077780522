"""Bounded work for bounded input: short answers and short audit entries, whatever a request contains."""

import json
from typing import Any

import pytest

from lambdas.rest import batch
from lambdas.rest.models import BatchItem
from scheduler.accounts import audit
from scheduler.model.errors import Conflict, TooLarge
from tests.lambdas.gateway import World, send

ADMINISTRATOR = {"role": "administrator"}
SCHEMA = {"type": "object", "properties": {"body": {"type": "array", "items": {"type": "integer"}}}}


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def strict_target(world: World, schema: Any = SCHEMA) -> None:
    target = {"name": "strict", "kind": "http", "defaults": {"url": "https://example.com"}, "payload_schema": schema}
    assert send("POST", "/targets", json_body=target, **ADMINISTRATOR).status == 201


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/auth/login", {f"{number:04x}": 1 for number in range(20_000)}),
        ("/jobs", {"message": "m", "notifications": {"emails": ["a@example.com"], "on": ["x"] * 40_000}}),
        ("/jobs", {"target": "strict", "payload": {"body": ["x"] * 50_000}}),
        ("/jobs", {"x" * 250_000: 1}),
        ("/targets", {"name": "b", "kind": "log", "locked": [1] * 80_000}),
        ("/targets", {"name": "b", "kind": "log", "locked": ["x" * 1_000] * 200}),
    ],
    ids=["unknown fields", "occasions", "schema", "long name", "locked", "long texts"],
)
def test_a_request_with_many_errors_gets_a_short_answer(path: str, body: Any, world: World) -> None:
    strict_target(world)
    answered = send("POST", path, json_body=body, **ADMINISTRATOR)
    assert answered.status == 400 and len(answered.error["details"]) <= 51
    assert len(answered.text.encode()) < 60_000


def test_the_first_fifty_errors_are_listed_and_the_others_counted(world: World) -> None:
    details = send("POST", "/auth/login", json_body={f"f{number:03d}": 1 for number in range(200)}).error["details"]
    assert len(details) == 51 and details[50] == {"field": "body", "rule": "breaks 152 more rules"}  # two fields are missing
    strict_target(world)
    body = {"target": "strict", "payload": {"body": ["x"] * 200}}
    details = send("POST", "/jobs", json_body=body).error["details"]
    assert len(details) == 51 and details[50] == {"field": "body", "rule": "breaks 150 more rules"}


def test_fifty_one_errors_are_all_listed(world: World) -> None:
    details = send("POST", "/auth/login", json_body={f"f{number:03d}": 1 for number in range(49)}).error["details"]
    assert len(details) == 51 and "more rules" not in details[50]["rule"]


def test_a_route_without_a_body_ignores_what_is_sent(world: World) -> None:
    job = send("POST", "/jobs", json_body={"message": "m", "delay": "1h"}).data
    world.trail.rows.clear()
    for body in (nested(900), nested(90_000), "[", "\0", json.dumps({f"{number:05d}": 1 for number in range(20_000)})):
        assert send("POST", f"/jobs/{job['id']}/cancel", body=body).status == 200
    assert {json.dumps(entry.changes) for entry in world.trail.rows.values()} == {"{}"}


@pytest.mark.parametrize("depth", [90, 190, 900])
def test_a_patch_of_any_depth_is_answered(depth: int, world: World) -> None:
    task = send("POST", "/tasks", json_body={"name": "n", "message": "m", "schedule": {"rate": "1 hours"}}).data
    for field in ("payload", "retry", "schedule", "x"):
        assert send("PATCH", f"/tasks/{task['id']}", body=f'{{"{field}":{nested(depth)}}}').status == 400


@pytest.mark.parametrize(
    "body",
    [
        {f"{number:05d}": 1 for number in range(20_000)},
        {"reason": "\x00" * 100_000},
        {"filter": [{"tag": "é" * 300}] * 20},
        {"x" * 100_000: 1},
        {f"{number}": "x" * 300 for number in range(40)},
        {"n": int("9" * 4_000)},
        json.loads(nested(800)),
    ],
    ids=["fields", "text", "list", "name", "texts", "number", "depth"],
)
def test_the_changes_of_an_audit_entry_are_bounded(body: Any) -> None:
    kept = audit.redacted(body)
    assert kept and len(json.dumps(kept)) <= audit.MOST_BYTES


def test_an_audit_entry_marks_what_it_left_out() -> None:
    assert audit.redacted({f"{number}": number for number in range(41)})[audit.CUT] == "1 more fields"
    assert audit.redacted({"a": ["x" * 300] * 20, "b": 1}) == {"a": audit.CUT, "b": 1}


@pytest.mark.parametrize("field", ["defaults", "locked", "payload_schema"])
def test_an_audit_entry_hides_what_only_administrators_see_of_a_target(field: str, world: World) -> None:
    strict_target(world)
    assert audit.redacted({field: ["https://internal.example"]}) == {field: audit.HIDDEN}
    found = send("GET", "/audit", query={"action": "target.create"}, role="operator")
    assert found.status == 200 and "https://example.com" not in found.text


@pytest.mark.parametrize("keyword", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"])
def test_a_bound_that_is_no_double_is_refused(keyword: str, world: World) -> None:
    body = json.dumps({"name": "t", "kind": "http", "payload_schema": {"type": "object", "properties": {"n": {keyword: 0}}}})
    answered = send("POST", "/targets", body=body.replace(f'"{keyword}": 0', f'"{keyword}": 1{"0" * 309}'), **ADMINISTRATOR)
    assert answered.fields == {"payload_schema": f"at n: {keyword} has an invalid value"}


def test_a_bound_is_shown_as_it_was_given(world: World) -> None:
    strict_target(world, {"type": "object", "properties": {"body": {"minimum": 12_345_678}}})
    answered = send("POST", "/jobs", json_body={"target": "strict", "payload": {"body": 1}})
    assert answered.fields == {"payload.body": "must be at least 12345678"}


def test_an_item_that_breaks_the_code_refuses_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = BatchItem.new_job

    def new_job(self: BatchItem, *given: Any, **more: Any) -> Any:
        if self.message == "bad":
            raise OverflowError
        return judged(self, *given, **more)

    monkeypatch.setattr(BatchItem, "new_job", new_job)
    done = send("POST", "/jobs/batch", json_body={"jobs": [{"message": text} for text in ("good", "bad", "good")]})
    results = done.data["results"]
    assert (done.status, done.data["accepted"], results[1]["error"]["code"]) == (207, 2, "internal_error")


def test_the_errors_of_a_batch_fit_into_a_megabyte(world: World) -> None:
    items = [{"é" * 60 + f"{number}": "x", "message": 1, "tags": ["é" * 9] * 11, "max_attempts": 99} for number in range(1_000)]
    answered = send("POST", "/jobs/batch", json_body={"jobs": items})
    assert answered.data["refused"] == 1_000 and len(answered.text.encode()) < 1_000_000
    first, last = (answered.data["results"][place]["error"] for place in (0, -1))
    assert len(first["details"]) == 4 and last == {"code": "validation_failed", "message": batch.UNLISTED, "details": []}


def test_long_errors_of_items_fit_into_a_megabyte_too() -> None:
    error = Conflict("x" * 300_000)
    shown = batch.results([error] * 1_000, [])  # type: ignore[list-item]
    assert len(json.dumps(shown)) < 1_000_000


UNSHOWN = ["\0", "\x1b[2J", "\x7f", "\x9b31m", "\x85", "\u2028", "\u202e", "\u202a", "\u2066", "\u2069", "\r"]
SHOWN = ["דוח\u200f", "تقرير\u061c", "\u200eabc", "👨\u200d👩\u200d👧", "Zoë", "Z\u0301", "a\u00a0b"]
TASK = {"name": "n", "message": "m", "schedule": {"rate": "1 hours"}}


@pytest.mark.parametrize("unshown", UNSHOWN)
def test_texts_that_people_read_have_no_control_characters(unshown: str, world: World) -> None:
    text, task = f"a{unshown}b", send("POST", "/tasks", json_body=TASK).data["id"]
    for method, path, body, field in (
        ("POST", "/tasks", TASK | {"name": text}, "name"),
        ("POST", "/tasks", TASK | {"description": text}, "description"),
        ("POST", "/tasks", TASK | {"paused": True, "pause_reason": text}, "pause_reason"),
        ("PUT", "/tasks/by-key/k", TASK | {"name": text}, "name"),
        ("PATCH", f"/tasks/{task}", {"name": text}, "name"),
        ("POST", f"/tasks/{task}/pause", {"reason": text}, "reason"),
        ("POST", "/tasks/pause", {"all": True, "reason": text}, "reason"),
        ("POST", "/system/pause", {"all": True, "reason": text}, "reason"),
        ("POST", "/targets", {"name": "t", "kind": "log", "description": text}, "description"),
    ):
        refused = send(method, path, json_body=body, **ADMINISTRATOR)
        assert refused.status == 400 and list(refused.fields) == [field], path
        assert f"U+{ord(unshown[0]):04X} (character 2)" in refused.fields[field]


def test_unknown_parameters_are_listed_up_to_a_number(world: World) -> None:
    refused = send("GET", "/jobs", query={f"p{number}{'x' * 300}": "1" for number in range(900)})
    assert refused.status == 400 and len(refused.fields) == 51 and len(refused.text) < 40_000
    assert refused.fields["query"] == "breaks 850 more rules"


@pytest.mark.parametrize("shown", SHOWN)
def test_letters_and_marks_of_any_script_are_names(shown: str, world: World) -> None:
    made = send("POST", "/tasks", json_body=TASK | {"name": shown, "description": f"{shown}\n\t{shown}"})
    assert made.status == 201 and made.data["name"] == shown


def test_a_name_and_a_reason_are_one_line(world: World) -> None:
    assert list(send("POST", "/tasks", json_body=TASK | {"name": "a\nb"}).fields) == ["name"]
    assert list(send("POST", "/tasks/pause", json_body={"all": True, "reason": "a\nb"}).fields) == ["reason"]


@pytest.mark.parametrize("text", ["x" * 2_000, "A", "a b", "..", "é", "01M7W6C6NC500000000000000"])
def test_a_path_with_what_is_no_id_and_no_name_is_not_found(text: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*given: Any) -> Any:
        raise TooLarge("a key of a table has at most 1,024 bytes")

    monkeypatch.setattr(world.targets, "targets", refuses)
    monkeypatch.setattr(world.operations, "get", refuses)
    target = {"kind": "log"}
    for method, path, body in (
        ("GET", "/targets/{}", None),
        ("PUT", "/targets/{}", target),
        ("DELETE", "/targets/{}", None),
        ("GET", "/operations/{}", None),
        ("POST", "/operations/{}/abort", None),
        ("GET", "/dead-letters/redrives/{}", None),
        ("POST", "/dead-letters/redrives/{}/abort", None),
        ("GET", "/jobs/{}", None),
        ("GET", "/tasks/{}", None),
        ("GET", "/users/{}", None),
        ("GET", "/dead-letters/{}/jobs", None),
    ):
        answered = send(method, path.format(text), json_body=body, **ADMINISTRATOR)
        assert answered.status in (400, 404), path
        assert text[:100] not in answered.error["message"], path
