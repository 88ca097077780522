"""A stack of CloudFormation declares tasks by the provider of a deployed stage, on the local AWS with IAM enforced."""

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import boto3
import pytest
from botocore.exceptions import ClientError
from punctual import Punctual
from punctual.cdk import PunctualCalendar, PunctualMonitor, PunctualTask
from punctual.errors import NotFound

from local.aws import deployed
from local.deploy import deploy
from local.home import Home
from local.receiver import Receiver
from local.stack import up
from ops import destroy
from tests.system.conftest import HANG_S, System, until

pytestmark = pytest.mark.apart

OPTIONS = """
console = false
[[templates]]
name = "shop"
owner = "team-later"

[[templates]]
name = "other"
owner = "team-other"
"""
BUSY = {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "DELETE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"}
BUSY |= {"UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A stack of its own with the option `templates`."""
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("templates"))))
    options = tmp_path_factory.mktemp("options") / "local.toml"
    options.write_text(OPTIONS)
    with Receiver() as receiver, up(home, enforce_iam=True, deployment=partial(deploy, options=options)) as stack:
        system = System(stack, receiver)
        yield system
        assert system.denials() == []


@pytest.fixture(scope="module")
def team(stage: System) -> str:
    """The id of the team for which the entry `shop` acts, as a further deployment with its id would set it."""
    made = stage.client().teams.create("Shop")
    function, functions = stage.outputs["DeclareFunction"], stage.aws("lambda")
    stage.stack.aws.set_variables(function, PUNCTUAL_TEMPLATE_ENTRIES=f"shop={made.id} other=team-other")
    version = functions.get_alias(FunctionName=function, Name="live")["FunctionVersion"]
    for alias in ("shop", "other"):
        functions.update_alias(FunctionName=function, Name=alias, FunctionVersion=version)
    return made.id


class Users:
    """A user's stacks."""

    def __init__(self, stage: System) -> None:
        self.cloudformation = stage.aws("cloudformation")

    def create(self, name: str, template: str) -> str:
        """Returns the status of the stack once nothing goes on."""
        self.cloudformation.create_stack(StackName=name, TemplateBody=template)
        return self.settled(name)

    def update(self, name: str, template: str) -> str:
        self.cloudformation.update_stack(StackName=name, TemplateBody=template)
        return self.settled(name)

    def delete(self, name: str) -> str:
        self.cloudformation.delete_stack(StackName=name)
        return self.settled(name)

    def settled(self, name: str) -> str:
        def look() -> str:
            try:
                status = str(self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
            except ClientError:
                return "DELETE_COMPLETE"
            return "" if status in BUSY else status

        return until(HANG_S, look)

    def outputs(self, name: str) -> dict[str, str]:
        found = self.cloudformation.describe_stacks(StackName=name)["Stacks"][0]["Outputs"]
        return {each["OutputKey"]: each["OutputValue"] for each in found}

    def reasons(self, name: str) -> str:
        events = self.cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        return " ".join(each.get("ResourceStatusReason", "") for each in events)


def template(build: Callable[[cdk.Stack], None]) -> str:
    """The template of a stack of the CDK."""
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    stack = cdk.Stack(app, "shop", synthesizer=cdk.BootstraplessSynthesizer())
    build(stack)
    return json.dumps(app.synth().get_stack_by_name("shop").template)


def shop(cron: str = "* * * * *", key: str = "nightly") -> str:
    def build(stack: cdk.Stack) -> None:
        closed = PunctualCalendar(stack, "Closed", template="shop", stage="local", name="closed", dates=["2199-12-24"])
        beat = PunctualMonitor(stack, "Beat", template="shop", stage="local", key="backup", name="Backup", period_seconds=86_400)
        payload = {"message": "from a template", "sleep_seconds": 0}
        task = PunctualTask(
            stack,
            "Nightly",
            template="shop",
            stage="local",
            key=key,
            name="Nightly report",
            cron=cron,
            exclude=[closed.name],
            type="log",
            payload=payload,
            max_attempts=3,
        )
        for name, value in (("FirstRun", task.next_run_at), ("TaskId", task.task_id), ("Ping", beat.ping_url)):
            cdk.CfnOutput(stack, name, value=value)

    return template(build)


def raw(key: str, **properties: Any) -> str:
    """A template as text, whose values are texts and numbers."""
    token = {"Fn::ImportValue": "punctual-local-templates-shop"}
    fields = {"ServiceToken": token, "ServiceTimeout": 60, "key": key, "name": "Raw", "message": "raw", **properties}
    return json.dumps({"Resources": {"Raw": {"Type": "Custom::PunctualTask", "Properties": fields}}})


def task_of(client: Punctual, team: str, key: str) -> Any:
    return client.tasks.get(key=key, owner=team)


def test_a_stack_creates_changes_and_deletes_a_task(stage: System, team: str) -> None:
    users, client = Users(stage), stage.client()
    assert users.create("shop", shop()) == "CREATE_COMPLETE", users.reasons("shop")
    made, outputs = task_of(client, team, "nightly"), users.outputs("shop")
    assert (made.id, made.max_attempts) == (outputs["TaskId"], 3) and outputs["FirstRun"]
    run = until(HANG_S, lambda: next((each for each in client.jobs.list(task=made.id, owner=team) if each.status == "succeeded"), None))
    assert run.payload["message"] == "from a template", "the first run"

    assert users.update("shop", shop("0 4 * * *")) == "UPDATE_COMPLETE", users.reasons("shop")
    changed = task_of(client, team, "nightly")
    assert changed.id == made.id and changed.schedule.cron == "0 4 * * *"
    assert users.outputs("shop")["FirstRun"] > outputs["FirstRun"] and users.outputs("shop")["Ping"] == outputs["Ping"]

    assert users.update("shop", shop("99 4 * * *")) == "UPDATE_ROLLBACK_COMPLETE"
    assert "minute: 99 is not between 0 and 59" in users.reasons("shop")
    assert task_of(client, team, "nightly").schedule.cron == "0 4 * * *"

    assert users.update("shop", shop("0 4 * * *", key="daily")) == "UPDATE_COMPLETE", users.reasons("shop")
    assert task_of(client, team, "daily").id == users.outputs("shop")["TaskId"]
    with pytest.raises(NotFound):
        task_of(client, team, "nightly")

    found = deployed(stage.aws("cloudformation"), "punctual-local")
    assert found is not None
    assert list(destroy.imports(stage.aws("cloudformation"), found)) == ["  shop (by the export punctual-local-templates-shop)"]
    assert users.delete("shop") == "DELETE_COMPLETE"
    for look in (lambda: task_of(client, team, "daily"), lambda: client.monitors.get("backup", owner=team)):
        with pytest.raises(NotFound):
            look()


def test_a_creation_that_fails_leaves_nothing_and_takes_nothing(stage: System, team: str) -> None:
    users, client = Users(stage), stage.client()
    assert users.create("bad", raw("bad", schedule={"cron": "99 2 * * *"})) in ("ROLLBACK_COMPLETE", "CREATE_FAILED")
    assert "minute: 99 is not between 0 and 59" in users.reasons("bad")
    assert users.delete("bad") == "DELETE_COMPLETE"

    assert users.create("first", raw("mine", schedule={"cron": "0 2 * * *"}, max_attempts=3)) == "CREATE_COMPLETE", users.reasons("first")
    assert users.create("second", raw("mine", schedule={"cron": "0 3 * * *"})) in ("ROLLBACK_COMPLETE", "CREATE_FAILED")
    assert "the task mine exists already and belongs to the resource Raw of the stack" in users.reasons("second")
    # AWS sends a Delete with the id of the failed answer, which the local AWS does not.
    second = stage.aws("cloudformation").describe_stacks(StackName="second")["Stacks"][0]["StackId"]
    event = {
        "RequestType": "Delete",
        "ResourceType": "Custom::PunctualTask",
        "StackId": second,
        "LogicalResourceId": "Raw",
        "RequestId": "r",
    }
    event |= {"ResourceProperties": {"key": "mine"}, "PhysicalResourceId": f"{team}/task/mine"}
    invoke(stage.aws("lambda"), stage, "shop", event)
    assert users.delete("second") == "DELETE_COMPLETE"
    assert task_of(client, team, "mine").schedule.cron == "0 2 * * *"
    assert users.delete("first") == "DELETE_COMPLETE"
    with pytest.raises(NotFound):
        task_of(client, team, "mine")


def invoke(functions: Any, stage: System, alias: str, event: dict[str, Any]) -> None:
    """Call an alias as CloudFormation does. The local AWS takes any answer."""
    event |= {"ResponseURL": f"{stage.stack.aws.endpoint}/_ministack/cfn-response/unknown"}
    arn = stage.outputs["TemplatesShop"].removesuffix("shop") + alias  # as a ServiceToken names it
    answer = functions.invoke(FunctionName=arn, Payload=json.dumps(event))
    payload = answer["Payload"].read()
    assert "FunctionError" not in answer, payload


def test_a_role_may_call_only_the_alias_that_its_policy_names(stage: System, team: str) -> None:
    """A forged event acts for the owner of the alias, whatever it says."""
    iam, arn = stage.aws("iam"), stage.outputs["TemplatesShop"]
    assert arn.endswith(":shop")
    trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}
    role = iam.create_role(RoleName="deploys-shop", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": arn}]}
    iam.put_role_policy(RoleName="deploys-shop", PolicyName="declare", PolicyDocument=json.dumps(policy))
    got = stage.aws("sts").assume_role(RoleArn=role, RoleSessionName="forger")["Credentials"]
    names = {"aws_access_key_id": "AccessKeyId", "aws_secret_access_key": "SecretAccessKey", "aws_session_token": "SessionToken"}
    credentials = {name: got[field] for name, field in names.items()}
    forger = boto3.client("lambda", endpoint_url=stage.stack.aws.endpoint, region_name="us-east-1", **credentials)
    event = {
        "RequestType": "Create",
        "ResourceType": "Custom::PunctualTask",
        "StackId": "arn:forged",
        "LogicalResourceId": "X",
        "RequestId": "r",
    }
    event |= {"ResourceProperties": {"key": "forged", "name": "Forged", "message": "m", "schedule": {"cron": "0 2 * * *"}}}
    for alias in ("other", "live"):
        with pytest.raises(ClientError, match="AccessDenied"):
            invoke(forger, stage, alias, dict(event))
    invoke(forger, stage, "shop", event | {"PhysicalResourceId": "team-other/task/forged"})
    forged = task_of(stage.client(), team, "forged")
    stage.client().tasks.delete(forged.id, owner=team)
