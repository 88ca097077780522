"""`aws` jobs over HTTP: refusals with their path, owners, placeholders, named targets, and changes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scheduler.targets.base import Reach
from tests.lambdas.gateway import Answered, World, send

ROOT = Path(__file__).resolve().parents[2]
UPDATE: dict[str, Any] = {
    "service": "dynamodb",
    "action": "UpdateItem",
    "parameters": {"TableName": "orders", "Key": {"id": {"S": "{{job.id}}"}}},
}
ADMIN = "administrator"
ACTIONS = "/types/aws/actions"


@pytest.fixture(autouse=True)
def allowing(world: World) -> None:
    world.reach = Reach(actions=("dynamodb:UpdateItem", "s3:CopyObject sub-bob", "s3:HeadObject sub-ann"))


def post(payload: dict[str, Any], **more: Any) -> Answered:
    return send("POST", "/jobs", json_body={"type": "aws", "payload": payload, "delay": "1h"} | more)


def with_parameters(**parameters: Any) -> dict[str, Any]:
    return UPDATE | {"parameters": UPDATE["parameters"] | parameters}


def test_an_allowed_action_is_accepted() -> None:
    answered = post(UPDATE)
    assert (answered.status, answered.data["calls"]) == (201, "dynamodb:UpdateItem")
    assert answered.data["payload"] == UPDATE


@pytest.mark.parametrize(
    ("payload", "field", "rule"),
    [
        (with_parameters(Key={"id": {"S": 7}}), "payload.parameters.Key.id.S", "must be a text"),
        (with_parameters(ReturnValues="SOME"), "payload.parameters.ReturnValues", "must be one of NONE, ALL_OLD"),
        (with_parameters(Tabelname="x"), "payload.parameters.Tabelname", "is not a known parameter; did you mean TableName?"),
        (UPDATE | {"parameters": {"TableName": "orders"}}, "payload.parameters.Key", "is required"),
        ({"service": "dynamodb", "action": "UpdateItem"}, "payload.parameters", "is required"),
        (UPDATE | {"action": "update_item"}, "payload.action", "did you mean dynamodb:UpdateItem?"),
        (UPDATE | {"action": "DeleteTable"}, "payload.action", "the option allowed_actions lists: dynamodb:UpdateItem, s3:HeadObject"),
        (with_parameters(TableName="{{job.idd}}"), "payload.parameters.TableName", "there is no placeholder {{job.idd}}"),
        (with_parameters(TableName="t{{attempt}}"), "payload.parameters.TableName", "it must be the same in every attempt"),
        (with_parameters(TableName="punctual-prod-StorageJobs4C-x"), "payload.parameters.TableName", "a resource of the scheduler"),
    ],
)
def test_a_wrong_payload_is_refused_with_path_and_rule(payload: dict[str, Any], field: str, rule: str) -> None:
    for method, path, body in (
        ("POST", "/jobs", {"type": "aws", "payload": payload, "delay": "1h"}),
        ("POST", "/tasks", {"type": "aws", "payload": payload, "name": "nightly", "schedule": {"cron": "0 3 * * *"}}),
    ):
        answered = send(method, path, json_body=body)
        assert answered.status == 400 and rule in answered.fields[field], answered.text


def test_a_stage_without_the_option_refuses_every_action(world: World) -> None:
    world.reach = Reach()
    assert "the option allowed_actions, which its operators set, lists no action" in post(UPDATE).fields["payload.action"]


def test_an_action_of_other_owners_is_refused(world: World) -> None:
    copy = {"service": "s3", "action": "CopyObject", "parameters": {"Bucket": "b", "Key": "k", "CopySource": "b/a"}}
    assert "s3:CopyObject is not allowed" in post(copy).fields["payload.action"]
    assert send("POST", "/jobs/batch", json_body={"jobs": [{"type": "aws", "payload": copy, "delay": "1h"}]}).data["refused"] == 1
    world.reach = Reach(actions=("s3:CopyObject sub-ann",))
    assert post(copy).status == 201


def test_a_change_of_a_job_is_checked_too() -> None:
    job = post(UPDATE).data["id"]
    answered = send("PATCH", f"/jobs/{job}", json_body={"payload": with_parameters(Key=[])})
    assert answered.fields == {"payload.parameters.Key": "must be an object"}


def test_a_named_target_has_the_action_and_jobs_the_parameters(world: World) -> None:
    target = {"name": "orders", "kind": "aws", "defaults": {"service": "dynamodb", "action": "UpdateItem"}}
    made = send("POST", "/targets", json_body=target, role=ADMIN)
    assert (made.status, made.data["locked"]) == (201, ["action", "service"])
    job = {"target": "orders", "delay": "1h"}
    assert send("POST", "/jobs", json_body=job | {"payload": {"parameters": UPDATE["parameters"]}}).status == 201
    wrong = send("POST", "/jobs", json_body=job | {"payload": {"parameters": {"TableName": "orders"}}})
    assert wrong.fields == {"payload.parameters.Key": "is required"}
    assert "payload.action" in send("POST", "/jobs", json_body=job | {"payload": UPDATE}).fields
    other = target | {"name": "other", "defaults": {"service": "s3", "action": "DeleteObject"}}
    assert "defaults.action" in send("POST", "/targets", json_body=other, role=ADMIN).fields
    copies = target | {"name": "copies", "defaults": {"service": "s3", "action": "CopyObject"}}
    assert send("POST", "/targets", json_body=copies, role=ADMIN).status == 201, "its jobs are checked by their owners"


def test_an_account_needs_a_role_for_the_owner(world: World) -> None:
    queue = {"queue": "arn:aws:sqs:us-east-1:333333333333:orders", "body": "b"}
    roles = ("arn:aws:iam::222222222222:role/x", "arn:aws:iam::333333333333:role/x sub-bob")
    world.reach = Reach(("arn:aws:sqs:*:*:orders",), actions=("dynamodb:UpdateItem",), accounts=roles, stage="prod")
    assert post(UPDATE | {"account": "222222222222"}).status == 201
    assert "must be the 12 digits" in post(UPDATE | {"account": "2"}).fields["payload.account"]
    assert "has no entry in the option accounts" in post(UPDATE | {"account": "444444444444"}).fields["payload.account"]
    assert "the option accounts opens to other owners only" in post(UPDATE | {"account": "333333333333"}).fields["payload.account"]
    assert "the option accounts opens to other owners only" in post(queue, type="sqs").fields["payload.queue"]
    made = {"name": "orders", "kind": "sqs", "defaults": {"queue": queue["queue"]}}
    assert send("POST", "/targets", json_body=made, role=ADMIN).status == 201, "its jobs are checked by their owners"
    job = {"target": "orders", "delay": "1h", "payload": {"body": "b"}}
    assert "the option accounts" in send("POST", "/jobs", json_body=job).fields["payload.queue"]


# The routes that a form calls


def test_the_actions_of_the_owner_are_listed(world: World) -> None:
    def listed(**options: Any) -> list[str]:
        return [each["name"] for each in send("GET", ACTIONS, **options).data["items"]]

    assert listed() == ["dynamodb:UpdateItem", "s3:HeadObject"]
    assert listed(query={"owner": "sub-bob"}, role=ADMIN) == ["dynamodb:UpdateItem", "s3:CopyObject"]
    assert listed(query={"scope": "all"}, role="operator") == ["dynamodb:UpdateItem", "s3:CopyObject", "s3:HeadObject"]
    assert send("GET", ACTIONS, query={"scope": "all"}, role="user").status == 403
    world.reach = Reach(actions=("s3:NoLongerThere", "sts:AssumeRole", "ecs:RunTask"))
    assert listed() == ["ecs:RunTask"], "jobs of the others are refused, too"
    world.reach = Reach()
    assert listed() == []


def test_a_listed_action_is_described() -> None:
    update, head = send("GET", ACTIONS).data["items"]
    assert head == {
        "name": "s3:HeadObject",
        "service": "s3",
        "action": "HeadObject",
        "summary": head["summary"],
        "documentation": "https://docs.aws.amazon.com/goto/WebAPI/s3-2006-03-01/HeadObject",
        "reads_only": True,
        "idempotent": True,
    }
    assert head["summary"].endswith(".") and not update["idempotent"]
    shown = send("GET", f"{ACTIONS}/dynamodb/UpdateItem").data
    assert shown.pop("parameters_schema")["required"] == ["TableName", "Key"]
    assert shown == update


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("s3/CopyObject", "s3:CopyObject is not allowed for jobs of this stage; the option allowed_actions lists: dynamodb:UpdateItem"),
        ("dynamodb/update_item", "did you mean dynamodb:UpdateItem?"),
        ("sts/AssumeRole", "is denied to all jobs"),
    ],
)
def test_an_action_that_jobs_may_not_call_has_no_parameters(action: str, reason: str) -> None:
    answered = send("GET", f"{ACTIONS}/{action}")
    assert (answered.status, answered.error["code"]) == (404, "not_found") and reason in answered.error["message"]
    service, _, name = action.partition("/")
    assert answered.error["message"] == post({"service": service, "action": name, "parameters": {}}).fields["payload.action"]


def test_an_action_that_requires_a_stream_has_no_parameters(world: World) -> None:
    world.reach = Reach(actions=("lambda:InvokeAsync",))
    assert "is a stream, which no job can send" in send("GET", f"{ACTIONS}/lambda/InvokeAsync").error["message"]


@pytest.mark.long
def test_no_model_is_read_before_an_aws_job_is_checked() -> None:
    program = (
        "import sys, json; import lambdas.api; from scheduler.targets import registry\n"
        "[registry.load(name) for name in registry.names()]\n"
        "from scheduler.targets import service_models as models\n"
        "print(json.dumps([models._model.cache_info().currsize, models.services.cache_info().currsize]))"
    )
    environment = {"PUNCTUAL_STAGE": "test", "PYTHONPATH": str(ROOT), "AWS_DEFAULT_REGION": "us-east-1", "PATH": ""}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
    assert json.loads(found.stdout.splitlines()[-1]) == [0, 0]
