"""The published OpenAPI document, as generators of clients need it."""

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from docs_build import openapi
from docs_build.expanded import expanded
from lambdas import api
from lambdas.rest import document_examples, document_texts
from lambdas.rest.document import DEPRECATED, NAMES, TAGS
from scheduler.targets import registry
from tests import language

REF = "#/components/schemas/"
MOST_LINES = 172  # of the document for each operation, shared schemas included


@pytest.fixture(scope="module")
def published() -> Any:
    return json.loads(openapi.text())


@pytest.fixture(scope="module")
def document(published: Any) -> Any:
    return expanded(published)


def operations(document: Any) -> Iterator[tuple[str, Any]]:
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield f"{verb.upper()} {path}", operation


def schemas(node: Any) -> Iterator[Any]:
    """Every schema in a schema."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from schemas(child)


def test_the_stored_document_is_current() -> None:
    stored = openapi.PUBLISHED.read_text() if openapi.PUBLISHED.exists() else ""
    assert stored == openapi.text(), "the API has changed: renew its document with `make reference`, and read the difference"


def test_the_served_document_is_the_stored_one(published: Any) -> None:
    assert json.loads(api.app.get_openapi_json_schema()) == published


def test_the_document_is_small_and_a_type_adds_little_to_it(published: Any) -> None:
    assert len(openapi.text().splitlines()) <= MOST_LINES * len([*operations(published)])
    of_type = {name: schema for name, schema in published["components"]["schemas"].items() if name.startswith("Sqs")}
    assert len(json.dumps(of_type, indent=1).splitlines()) < 150


def test_errors_are_answers_that_operations_refer_to(published: Any) -> None:
    answers = [(code, each) for _, operation in operations(published) for code, each in operation["responses"].items()]
    assert [each for code, each in answers if code >= "4" and each.keys() != {"$ref"}] == []
    used = {each["$ref"].rpartition("/")[2] for _, each in answers if "$ref" in each}
    assert used == published["components"]["responses"].keys() and "NotFound" in used


@pytest.mark.parametrize(
    ("name", "own"), [("JobRequest", {}), ("HttpJobRequest", {}), ("TaskRequest", {"name": "n"}), ("HttpTaskRequest", {"name": "n"})]
)
def test_a_request_of_parts_refuses_what_the_api_refuses(published: Any, name: str, own: dict[str, Any]) -> None:
    check = jsonschema_rs.validator_for({"components": published["components"], "$ref": f"{REF}{name}"})
    request = {"type": "http", "payload": {"url": "https://example.com"}, "max_attempts": 2, **own}
    assert check.is_valid(request)
    for wrong in ({"colour": "red"}, {"max_attempts": 0}, {"type": "sqs"}, {"payload": {"message": "hello"}}):
        assert not check.is_valid(request | wrong), wrong


def test_operation_ids_are_unique_names_in_camel_case(document: Any) -> None:
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    assert [each for each in ids if not re.fullmatch("[a-z]+([A-Z][a-z]+)*", each)] == []
    assert {"createJob", "listJobs", "getJob", "createTask", "listTasks", "getTask", "cancelJob", "login"} <= set(ids)


def test_a_promised_name_has_the_id_of_the_clear_one_and_a_suffix(document: Any) -> None:
    ids = {operation["operationId"]: operation for _, operation in operations(document)}
    promised = {name for name, operation in ids.items() if operation.get("deprecated")}
    assert promised and promised == {name for name in ids if name.endswith(DEPRECATED)}
    assert {name.removesuffix(DEPRECATED) for name in promised} <= ids.keys() - promised


def test_schemas_have_plain_names(document: Any) -> None:
    names = document["components"]["schemas"]
    assert [name for name in names if not re.fullmatch("[A-Z][A-Za-z]+", name) or name.endswith("Shape")] == []
    assert "JobAnswer" in names and names["JobAnswer"]["properties"]["data"] == {"$ref": f"{REF}Job"}
    assert set(NAMES.values()) <= names.keys(), "the table names a schema that no longer exists"


@pytest.mark.parametrize("request_name", ["JobRequest", "TaskRequest", "TaskEdit", "BatchItem"])
def test_a_request_is_a_choice_by_type(document: Any, request_name: str) -> None:
    found = document["components"]["schemas"]
    assert [each["$ref"] for each in found[request_name]["anyOf"]] == [
        f"{REF}{kind}{request_name}" for kind in ("Typed", "Target", "Message")
    ]
    typed = found[f"Typed{request_name}"]
    assert typed["discriminator"]["propertyName"] == "type" and list(typed["discriminator"]["mapping"]) == registry.names()
    assert [each["$ref"] for each in typed["oneOf"]] == list(typed["discriminator"]["mapping"].values())
    for name, reference in typed["discriminator"]["mapping"].items():
        variant = found[reference.removeprefix(REF)]
        assert variant["properties"]["type"] == {"type": "string", "const": name}
        assert variant["properties"]["payload"] == {"$ref": f"{REF}{name.title()}Payload"}
        needs_payload = "required" in found[f"{name.title()}Payload"]
        assert "type" in variant["required"] and ("payload" in variant["required"]) is needs_payload
        assert variant["additionalProperties"] is False


def test_a_field_with_a_default_is_optional_and_has_it_in_words(document: Any) -> None:
    request = document["components"]["schemas"]["HttpJobRequest"]
    assert request["required"] == ["type", "payload"]
    assert request["properties"]["max_attempts"]["description"].endswith("Default: 3.")
    assert [schema for schema in schemas(document["components"]["schemas"]) if isinstance(schema.get("default"), (int, str, bool))] == []


def test_an_object_that_is_answered_has_all_its_fields(document: Any) -> None:
    found = document["components"]["schemas"]
    for name in ("Job", "Task", "ListedTask", "JobPage", "TaskPage", "Attempt", "Target", "AuditEntry", "ErrorObject"):
        assert set(found[name]["required"]) == set(found[name]["properties"]), name


def test_a_body_is_optional_where_no_field_is_needed(document: Any) -> None:
    needed = {
        operation["operationId"]: operation["requestBody"]["required"]
        for _, operation in operations(document)
        if "requestBody" in operation
    }
    assert needed["createJob"] and needed["updateTask"] and needed["pauseLanes"]
    assert not needed["runTask"] and not needed["pauseTask"] and not needed["completeJob"] and not needed["resumeLanes"]


def test_every_tag_is_described(document: Any) -> None:
    used = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert {tag["name"] for tag in document["tags"]} == used <= TAGS.keys()


def test_parameters_and_fields_are_described(document: Any) -> None:
    parameters = {
        each["name"]: each.get("description") for _, operation in operations(document) for each in operation.get("parameters", ())
    }
    found = document["components"]["schemas"]
    fields = {
        f"{name}.{field}": rule.get("description")
        for name, schema in found.items()
        for field, rule in schema.get("properties", {}).items()
        if not rule.keys() & {"$ref", "const"} or rule.get("$ref") == f"{REF}MaybeInstant"
    }
    assert [name for name, text in (parameters | fields).items() if not text] == []
    names = {*fields, *(name.partition(".")[2] for name in fields)}
    assert document_texts.FIELDS.keys() <= names and document_texts.PARAMETERS.keys() <= parameters.keys()


def test_programs_authenticate_with_an_api_key(document: Any) -> None:
    key = document["components"]["securitySchemes"]["key"]
    assert (key["type"], key["scheme"]) == ("http", "bearer") and "/api/v1/key" in key["description"]
    assert document["security"] == [{"bearer": []}, {"key": []}]


def test_the_texts_of_the_document_are_plain_english(document: Any) -> None:
    nodes = [each for part in ("paths", "components", "tags", "info") for each in schemas(document[part])]
    texts = {each[name] for each in nodes for name in ("summary", "description") if isinstance(each.get(name), str)}
    assert [(text, found.rule, found.excerpt) for text in sorted(texts) for found in language.lint(text)] == []


def test_every_operation_has_a_summary_and_examples(document: Any) -> None:
    for name, operation in operations(document):
        assert re.fullmatch(r"[A-Z][^.]{3,60}", operation["summary"]), name
        contents = [answer["content"]["application/json"] for code, answer in operation["responses"].items() if code.startswith("2")]
        if "requestBody" in operation:
            contents.append(operation["requestBody"]["content"]["application/json"])
        assert contents and all("example" in content or "examples" in content for content in contents), name


@pytest.mark.long
def test_every_example_fits_its_schema(published: Any, document: Any) -> None:
    unfit = []
    for name, operation in operations(document):
        contents = [
            each["content"]["application/json"] for each in (operation.get("requestBody"), *operation["responses"].values()) if each
        ]
        for content in contents:
            check = jsonschema_rs.validator_for({"components": published["components"], **content["schema"]})
            examples = [each["value"] for each in content.get("examples", {}).values()] + [
                content[key] for key in ("example",) if key in content
            ]
            unfit += [f"{name}: {error.instance_path} {error.message}" for each in examples for error in check.iter_errors(each)]
    assert unfit == []


def test_the_api_accepts_every_example_of_a_body(document: Any) -> None:
    for route in (each for each in api.app.endpoints if each.body is not None):
        content = document["paths"][route.template][route.method.lower()]["requestBody"]["content"]["application/json"]
        for example in [content["example"]] if "example" in content else [each["value"] for each in content["examples"].values()]:
            route.body.model_validate(example)  # raises ValidationError


def test_every_example_of_a_schema_is_used(document: Any) -> None:
    bodies = [
        operation["requestBody"]["content"]["application/json"] for _, operation in operations(document) if "requestBody" in operation
    ]
    assert document_examples.REQUESTS.keys() <= {body["schema"]["$ref"].removeprefix(REF) for body in bodies if "example" in body}
