"""`aws` jobs on the local AWS with IAM enforced: a listed action runs, another is refused, and IAM denies whatever is always denied.

The stack is one of its own, since the option changes what every job may do. The policies are those of the template that the option makes.
"""

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from punctual import ApiError

from lambdas._settings import Settings
from local.aws import REGION
from local.home import Home
from local.receiver import Receiver
from local.stack import up
from tests.infra.conftest import Synthesized, synthesized
from tests.system.conftest import System, ended
from tests.system.test_console import ARTEFACTS, stories
from tests.system.test_denied import role_of

pytestmark = pytest.mark.apart

BUCKET, TABLE = "reports", "orders"
ENTRIES = (
    {"action": "s3:CopyObject", "resources": (f"arn:aws:s3:::{BUCKET}/*",), "iam": ("s3:GetObject", "s3:PutObject")},
    {"action": "dynamodb:UpdateItem", "resources": (f"arn:aws:dynamodb:us-east-1:000000000000:table/{TABLE}",)},
)
EXECUTORS = ("ExecuteOneTime", "ExecuteRecurring", "ExecuteRetry")
COPY: dict[str, Any] = {"service": "s3", "action": "CopyObject", "parameters": {"Bucket": BUCKET, "Key": "b", "CopySource": f"{BUCKET}/a"}}
UPDATE: dict[str, Any] = {
    "service": "dynamodb",
    "action": "UpdateItem",
    "parameters": {
        "TableName": TABLE,
        "Key": {"id": {"S": "{{job.id}}"}},
        "UpdateExpression": "SET seen = :s",
        "ExpressionAttributeValues": {":s": {"S": "{{scheduled_at}}"}},
    },
}


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A separate stack with the option: its policies on the roles of the executors, and its list in the functions that check it."""
    home = Home(Path(os.path.realpath(tmp_path_factory.mktemp("actions"))))
    with Receiver() as receiver, up(home, enforce_iam=True) as stack:
        system = System(stack, receiver)
        apply(system, synthesized.__wrapped__("local", allowed_actions=ENTRIES))
        system.aws("s3").create_bucket(Bucket=BUCKET)
        system.aws("s3").put_object(Bucket=BUCKET, Key="a", Body=b"text")
        system.aws("dynamodb").create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield system


def apply(system: System, made: Synthesized) -> None:
    """Give the executors the policies of a stage with options, and the functions that check payloads its reach."""
    iam = system.aws("iam")
    for policy in ("ActionsDenied", "ActionsAllowed"):
        document = json.dumps(resolved(made.one("IAM::ManagedPolicy", policy)["PolicyDocument"], system))
        arn = iam.create_policy(PolicyName=policy, PolicyDocument=document)["Policy"]["Arn"]
        for executor in EXECUTORS:
            iam.attach_role_policy(RoleName=role_of(system, executor), PolicyArn=arn)
    variables = Settings(reach=made.settings.reach).render()
    for output in ("ApiFunction", *(f"{executor}Function" for executor in EXECUTORS)):
        system.stack.aws.set_variables(system.outputs[output], **variables)


def resolved(value: Any, system: System) -> Any:
    """A part of the template, with the references of CloudFormation replaced."""
    match value:
        case {"Ref": str(name)}:
            known = {"AWS::Partition": "aws", "AWS::Region": "us-east-1", "AWS::AccountId": "000000000000"}
            return known.get(name, system.outputs["ApiId"])
        case {"Fn::Join": [_, parts]}:
            return "".join(resolved(part, system) for part in parts)
        case {"Fn::GetAtt": [str(name), _]} if name.startswith("StorageCallbackKey"):
            found = system.aws("secretsmanager").list_secrets()["SecretList"]
            return next(each["ARN"] for each in found if "StorageCallbackKey" in each["Name"])
        case {"Fn::GetAtt": [str(name), _]} if name.startswith("AccountsUsers"):
            return f"arn:aws:cognito-idp:us-east-1:000000000000:userpool/{system.outputs['UserPoolId']}"
        case dict():
            return {name: resolved(each, system) for name, each in value.items()}
        case list():
            return [resolved(each, system) for each in value]
    return value


def clients_of(system: System, role: str) -> Callable[[str], Any]:
    """Return a function that makes clients with a session of a role."""
    arn = system.aws("iam").get_role(RoleName=role)["Role"]["Arn"]
    taken = system.aws("sts").assume_role(RoleArn=arn, RoleSessionName="test")["Credentials"]
    keys = {
        "aws_access_key_id": taken["AccessKeyId"],
        "aws_secret_access_key": taken["SecretAccessKey"],
        "aws_session_token": taken["SessionToken"],
    }
    return partial(boto3.client, endpoint_url=system.stack.aws.endpoint, region_name=REGION, **keys)  # type: ignore[call-overload]


def ran(system: System, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    client = system.client()
    (job,) = ended(client, [client.jobs.create("aws", payload, **more).raw], 60)
    return job


def test_a_listed_action_runs_and_its_answer_is_the_output(apart: System) -> None:
    job = ran(apart, COPY)
    assert (job["status"], job["calls"]) == ("succeeded", "s3:CopyObject"), job
    assert "CopyObjectResult" in json.loads(job["output"])
    assert apart.aws("s3").get_object(Bucket=BUCKET, Key="b")["Body"].read() == b"text"
    job = ran(apart, UPDATE)
    assert job["status"] == "succeeded", job
    item = apart.aws("dynamodb").get_item(TableName=TABLE, Key={"id": {"S": job["id"]}})["Item"]
    assert item["seen"] == {"S": job["scheduled_at"]}


def test_the_form_of_a_listed_action_creates_a_job(apart: System) -> None:
    done = stories(apart, ARTEFACTS, files="browser/aws.story.ts")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert apart.aws("s3").get_object(Bucket=BUCKET, Key="by-form")["Body"].read() == b"text"


@pytest.mark.parametrize("action", ["DeleteObject", "GetObject"])
def test_an_action_outside_the_list_is_refused_at_creation(apart: System, action: str) -> None:
    with pytest.raises(ApiError, match="the option allowed_actions lists: s3:CopyObject, dynamodb:UpdateItem") as refused:
        apart.client().jobs.create("aws", {"service": "s3", "action": action, "parameters": {"Bucket": BUCKET, "Key": "a"}})
    assert refused.value.status == 400


def test_an_action_on_another_resource_is_denied_by_iam(apart: System) -> None:
    apart.aws("s3").create_bucket(Bucket="strange")
    job = ran(apart, COPY | {"parameters": COPY["parameters"] | {"Bucket": "strange"}})
    assert job["status"] == "failed" and "see the entry s3:CopyObject of the option allowed_actions" in job["reason"], job


def test_the_roles_are_denied_secrets_whatever_else_they_have(apart: System) -> None:
    """Another policy allows the role everything: the denials hold."""
    iam, role = apart.aws("iam"), role_of(apart, "ExecuteOneTime")
    stranger = apart.aws("secretsmanager").create_secret(Name="stranger", SecretString="s")["ARN"]
    everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    iam.put_role_policy(RoleName=role, PolicyName="Everything", PolicyDocument=json.dumps(everything))
    try:
        client = clients_of(apart, role)
        assert client("s3").list_objects_v2(Bucket=BUCKET)["KeyCount"] >= 1, "the role has everything else"
        tables = [name for name in apart.aws("dynamodb").list_tables()["TableNames"] if "StorageJobs" in name]
        for call in (
            lambda: client("secretsmanager").get_secret_value(SecretId=stranger),
            lambda: client("iam").list_users(),
            lambda: client("ssm").get_parameter(Name="/any"),
            lambda: client("dynamodb").delete_table(TableName=tables[0]),
        ):
            with pytest.raises(ClientError) as denied:
                call()
            assert "AccessDenied" in denied.value.response["Error"]["Code"]
    finally:
        iam.delete_role_policy(RoleName=role, PolicyName="Everything")


def test_a_job_that_names_a_table_of_the_scheduler_is_refused(apart: System) -> None:
    (table,) = [name for name in apart.aws("dynamodb").list_tables()["TableNames"] if "StorageTasks" in name]
    with pytest.raises(ApiError, match="names a resource of the scheduler itself"):
        apart.client().jobs.create("aws", UPDATE | {"parameters": {"TableName": table, "Key": {"id": {"S": "x"}}}})


def test_the_denials_leave_executors_what_they_need(apart: System) -> None:
    """A failing job is retried, and the end of each is settled; only the tests above were denied a call, of S3."""
    client = apart.client()
    call = {"method": "POST", "url": apart.receiver.url("/fail-once/actions")}
    assert [job["status"] for job in ended(client, [client.jobs.create("http", call).raw], 60)] == ["succeeded"]
    assert [line for line in apart.denials() if not line.split()[-1].startswith("s3:")] == []
