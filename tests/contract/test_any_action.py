"""The port `Calls` for any operation of AWS: what arrives (stubbed by botocore, and on moto), and botocore's own classes of refusals."""

import json
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.response import StreamingBody
from botocore.stub import ANY, Stubber

from scheduler.model.job import FailureKind, Result
from scheduler.storage.aws import clients
from scheduler.storage.aws.calls import AwsCalls
from scheduler.targets import registry
from scheduler.targets.base import Reach
from scheduler.targets.calls import LONGEST_BODY, Refused, Request
from tests.conftest import FixedClock
from tests.contract.test_targets import raised
from tests.contract.wire import Wire
from tests.unit.fake_calls import context

SECONDS = 30.0
UPDATE = {
    "TableName": "orders",
    "Key": {"id": {"S": "7"}},
    "UpdateExpression": "SET done = :y",
    "ExpressionAttributeValues": {":y": {"BOOL": True}},
}


@pytest.fixture
def calls() -> AwsCalls:
    return AwsCalls(FixedClock())


def ran(calls: AwsCalls, service: str, action: str, parameters: dict[str, Any], **more: Any) -> Result:
    payload = {"service": service, "action": action, "parameters": parameters, **more}
    return registry.load("aws").run(payload, context(calls, seconds=SECONDS, reach=Reach(actions=(f"{service}:{action}",))))


# Ten services: the parameters of a job, those that botocore sends, its answer, and the output.
SAMPLES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "s3": ("s3", "CopyObject", {"Bucket": "b", "Key": "k", "CopySource": "b/a"}, {"CopyObjectResult": {"ETag": "e"}}, {}),
    "dynamodb": ("dynamodb", "UpdateItem", UPDATE, {"Attributes": {"id": {"B": b"\x00"}}}, {"Attributes": {"id": {"B": "AA=="}}}),
    "ssm": ("ssm", "SendCommand", {"DocumentName": "AWS-Run", "Parameters": {"a": ["ls"]}}, {"Command": {"CommandId": "c" * 36}}, {}),
    "ec2": ("ec2", "StopInstances", {"InstanceIds": ["i-1"]}, {"StoppingInstances": [{"InstanceId": "i-1"}]}, {}),
    "glue": ("glue", "StartJobRun", {"JobName": "nightly", "Arguments": {"--day": "1"}}, {"JobRunId": "jr_1"}, {}),
    "ecs": ("ecs", "RunTask", {"taskDefinition": "report"}, {"tasks": [{"createdAt": datetime(2026, 1, 1, tzinfo=UTC)}]},
            {"tasks": [{"createdAt": "2026-01-01T00:00:00Z"}]}),
    "rds": ("rds", "StartDBInstance", {"DBInstanceIdentifier": "db"}, {"DBInstance": {"DBInstanceStatus": "starting"}}, {}),
    "scheduler": ("scheduler", "DeleteSchedule", {"Name": "old"}, {}, {}),
    "codebuild": ("codebuild", "StartBuild", {"projectName": "site"}, {"build": {"id": "site:1"}}, {}),
    "athena": ("athena", "StartQueryExecution", {"QueryString": "SELECT 1"}, {"QueryExecutionId": "q1"}, {}),
    "autoscaling": ("autoscaling", "SetDesiredCapacity", {"AutoScalingGroupName": "g", "DesiredCapacity": 2}, {}, {}),
}  # fmt: skip
TOKENS = {"ecs": "clientToken", "scheduler": "ClientToken", "athena": "ClientRequestToken"}


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
def test_an_action_of_each_service_is_sent_as_boto3_sends_it(calls: AwsCalls, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    service, action, parameters, answer, output = SAMPLES[name]
    client = calls._client(service, None, SECONDS)
    sent = parameters | ({TOKENS[name]: ANY} if name in TOKENS else {})
    with Stubber(client) as stubbed:
        stubbed.add_response(_method(client, action), answer, sent)
        result = ran(calls, service, action, parameters)
        stubbed.assert_no_pending_responses()
    assert result.failure is None and json.loads(result.output or "") == (output or answer)


def _method(client: Any, action: str) -> str:
    names: dict[str, str] = client.meta.method_to_api_mapping
    return next(method for method, name in names.items() if name == action)


@pytest.mark.long
def test_an_item_of_dynamodb_is_updated(calls: AwsCalls, moto: None) -> None:
    table: Any = boto3.client("dynamodb")
    schema = {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    }
    table.create_table(TableName="orders", BillingMode="PAY_PER_REQUEST", **schema)
    assert ran(calls, "dynamodb", "UpdateItem", UPDATE).failure is None
    assert table.get_item(TableName="orders", Key={"id": {"S": "7"}})["Item"]["done"] == {"BOOL": True}
    read = ran(calls, "dynamodb", "GetItem", {"TableName": "orders", "Key": {"id": {"S": "7"}}})
    assert json.loads(read.output or "")["Item"] == {"id": {"S": "7"}, "done": {"BOOL": True}}


def test_an_object_of_s3_is_copied_and_read(calls: AwsCalls, moto: None) -> None:
    s3: Any = boto3.client("s3")
    s3.create_bucket(Bucket="reports")
    s3.put_object(Bucket="reports", Key="a", Body=b"text")
    assert ran(calls, "s3", "CopyObject", {"Bucket": "reports", "Key": "b", "CopySource": "reports/a"}).failure is None
    read = json.loads(ran(calls, "s3", "GetObject", {"Bucket": "reports", "Key": "b"}).output or "")
    assert read["Body"] == "dGV4dA==" and read["LastModified"].endswith("Z")
    missing = ran(calls, "s3", "GetObject", {"Bucket": "reports", "Key": "none"}).failure
    assert missing is not None and missing.kind is FailureKind.PERMANENT and missing.message.startswith("NoSuchKey: ")


@pytest.mark.long
def test_actions_run_on_the_local_aws(local_aws: str) -> None:
    calls, s3 = AwsCalls(FixedClock(), endpoint_url=local_aws), clients.s3(endpoint_url=local_aws)
    s3.create_bucket(Bucket="copied")
    s3.put_object(Bucket="copied", Key="a", Body=b"text")
    assert ran(calls, "s3", "CopyObject", {"Bucket": "copied", "Key": "b", "CopySource": "copied/a"}).failure is None
    assert s3.get_object(Bucket="copied", Key="b")["Body"].read() == b"text"
    sent = ran(calls, "events", "PutEvents", {"Entries": [{"Source": "aws.s3", "DetailType": "d", "Detail": "{}"}]}).failure
    assert sent is not None and sent.message.startswith("the answer lists failures: FailedEntryCount is 1")
    made = ran(calls, "sqs", "CreateQueue", {"QueueName": "made", "Attributes": {"DelaySeconds": "5"}})
    assert json.loads(made.output or "")["QueueUrl"].endswith("/made")


def test_a_rejected_entry_of_a_batch_is_a_failure(calls: AwsCalls, moto: None) -> None:
    sqs: Any = boto3.client("sqs")
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    entries = [{"Id": "1", "ReceiptHandle": "stranger"}]
    result = ran(calls, "sqs", "DeleteMessageBatch", {"QueueUrl": url, "Entries": entries})
    assert result.failure is not None and result.failure.kind is FailureKind.PERMANENT
    assert result.failure.message.startswith('the answer lists failures: Failed is [{"Id": "1"')


def test_an_entry_with_an_error_code_is_no_refusal_of_the_call(calls: AwsCalls) -> None:
    wire = Wire(calls._client("autoscaling", None, SECONDS))
    wire.answer("DescribeScalingActivities", {"Activities": [{"ErrorCode": "x"}]})
    assert ran(calls, "autoscaling", "DescribeScalingActivities", {}).failure is None


def test_a_long_body_is_cut_and_its_connection_closed(calls: AwsCalls) -> None:
    raw = BytesIO(b"x" * (LONGEST_BODY + 9))
    Wire(calls._client("s3", None, SECONDS)).answer("GetObject", {"Body": StreamingBody(raw, LONGEST_BODY + 9)})
    output = ran(calls, "s3", "GetObject", {"Bucket": "b", "Key": "k"}).output
    assert len(json.loads(output or "")["Body"]) == LONGEST_BODY * 4 // 3 and len(output or "") <= 1_000_050 and raw.closed


# The classes of refusals.


def refusal(calls: AwsCalls, service: str, action: str, parameters: dict[str, Any]) -> Refused:
    with pytest.raises(Refused) as found:
        calls.send(Request(service, action, parameters, waits=True, again=False, is_any=True), left=lambda: SECONDS)
    return found.value


NEEDED = {"s3": {"Bucket": "b", "Key": "k", "CopySource": "b/a"}, "lambda": {"FunctionName": "f"}, "scheduler": {"Name": "n"}}


@pytest.mark.parametrize(
    ("service", "action", "code", "status", "throttled", "retryable"),
    [
        ("dynamodb", "UpdateItem", "ThrottlingException", 400, True, True),
        ("dynamodb", "UpdateItem", "ProvisionedThroughputExceededException", 400, True, True),
        ("s3", "CopyObject", "SlowDown", 503, True, True),
        ("ec2", "StopInstances", "RequestLimitExceeded", 503, True, True),
        ("lambda", "GetPolicy", "TooManyRequestsException", 429, True, True),
        ("glue", "StartJobRun", "Anything", 429, True, True),
        ("route53", "ListHostedZones", "PriorRequestNotComplete", 400, True, True),
        ("s3", "CopyObject", "InternalError", 500, False, True),
        ("ssm", "SendCommand", "InternalServerError", 500, False, True),
        ("sqs", "ListQueues", "RequestTimeout", 400, False, True),
        ("acm", "ListAcmeEndpoints", "InternalServerException", 400, False, True),  # its model marks it as retryable
        ("scheduler", "GetSchedule", "ThrottlingException", 400, True, True),
        ("s3", "CopyObject", "NoSuchBucket", 404, False, False),
        ("dynamodb", "UpdateItem", "ConditionalCheckFailedException", 400, False, False),
        ("dynamodb", "UpdateItem", "ResourceInUseException", 400, False, False),
        ("ec2", "StopInstances", "UnauthorizedOperation", 403, False, False),
        ("ec2", "StopInstances", "IncorrectState", 400, False, False),
    ],
)
def test_refusals_have_botocores_classes(
    calls: AwsCalls, service: str, action: str, code: str, status: int, throttled: bool, retryable: bool
) -> None:
    wire = Wire(calls._client(service, None, SECONDS))
    wire.refuse(action, code, status)
    found = refusal(calls, service, action, NEEDED.get(service, {}))
    assert (found.code, found.throttled, found.retryable, found.unclear) == (code, throttled, retryable, False)
    assert len(wire.sent(action)) == 1, "there are no retries besides the job's own"


@pytest.mark.parametrize(
    ("error", "retryable", "unclear"),
    [
        (ReadTimeoutError(endpoint_url="http://nowhere"), True, True),
        (ConnectionClosedError(endpoint_url="http://nowhere"), True, True),
        (IncompleteReadError(actual_bytes=1, expected_bytes=2), True, True),
        (EndpointConnectionError(endpoint_url="http://nowhere"), True, False),
        (ConnectTimeoutError(endpoint_url="http://nowhere"), True, False),
        (NoCredentialsError(), False, False),
    ],
    ids=lambda each: type(each).__name__,
)
def test_only_an_answer_that_is_missing_is_unclear(calls: AwsCalls, error: Exception, retryable: bool, unclear: bool) -> None:
    raised(Wire(calls._client("ec2", None, SECONDS)), "StopInstances", error)
    found = refusal(calls, "ec2", "StopInstances", {"InstanceIds": ["i-1"]})
    assert (found.retryable, found.unclear) == (retryable, unclear)


def test_a_signed_request_is_in_no_message(calls: AwsCalls) -> None:
    wire = Wire(calls._client("ec2", None, SECONDS))
    wire.answer("StopInstances", {"Error": {"Code": "SignatureDoesNotMatch", "Message": "secret"}}, 403)
    assert str(refusal(calls, "ec2", "StopInstances", {})) == "SignatureDoesNotMatch"
