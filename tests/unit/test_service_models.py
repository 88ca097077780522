"""The parameters of AWS's operations: each rule of their models, with the path of the field; and the names of services and operations."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from scheduler.targets import partial_failures, payload_schema, service_models
from scheduler.targets.base import NotAllowed
from scheduler.targets.service_models import Unknown, operation

KEY = {"TableName": "orders", "Key": {"id": {"S": "7"}}}
RULE = {"Name": "r", "State": "ENABLED", "ScheduleExpression": "rate(1 day)"}
TASK = {"taskDefinition": "report"}


def refused(service: str, action: str, parameters: Any, *, are_final: bool = True) -> str:
    with pytest.raises(NotAllowed) as found:
        operation(service, action).converted(parameters, are_final=are_final)
    return f"{found.value.field} {found.value}"


@pytest.mark.parametrize(
    ("service", "action", "parameters", "told"),
    [
        ("dynamodb", "UpdateItem", {"TableName": "orders"}, "parameters.Key is required"),
        ("dynamodb", "UpdateItem", KEY | {"TabelName": "x"}, "parameters.TabelName is not a known parameter; did you mean TableName?"),
        ("dynamodb", "UpdateItem", KEY | {"Key": {"id": {"S": 7}}}, "parameters.Key.id.S must be a text"),
        ("dynamodb", "UpdateItem", KEY | {"Key": {"id": {"BOOL": "yes"}}}, "parameters.Key.id.BOOL must be true or false"),
        ("dynamodb", "UpdateItem", KEY | {"Key": {"id": {"L": {}}}}, "parameters.Key.id.L must be a list"),
        ("dynamodb", "UpdateItem", KEY | {"Key": {"id": {"L": [{"S": "a"}, {"S": 1}]}}}, "parameters.Key.id.L.1.S must be a text"),
        ("dynamodb", "UpdateItem", KEY | {"Key": []}, "parameters.Key must be an object"),
        ("dynamodb", "UpdateItem", KEY | {"Key": {"id": "7"}}, "parameters.Key.id must be an object"),
        ("dynamodb", "UpdateItem", KEY | {"Key": {"id": {"B": "not base64"}}}, "parameters.Key.id.B must be a base64 text: it holds bytes"),
        ("dynamodb", "UpdateItem", KEY | {"Key": {"k" * 65_536: {"S": "7"}}}, f"parameters.Key.{'k' * 285} must have at most 65535"),
        ("dynamodb", "UpdateItem", KEY | {"ReturnValues": "SOME"}, "parameters.ReturnValues must be one of NONE, ALL_OLD, UPDATED_OLD"),
        ("dynamodb", "UpdateItem", KEY | {"TableName": ""}, "parameters.TableName must have at least 1 characters"),
        ("dynamodb", "UpdateItem", KEY | {"TableName": "t" * 1_025}, "parameters.TableName must have at most 1024 characters"),
        ("dynamodb", "BatchWriteItem", {"RequestItems": {}}, "parameters.RequestItems must have at least 1 entries"),
        ("dynamodb", "BatchWriteItem", {"RequestItems": {"t": [{}] * 26}}, "parameters.RequestItems.t must have at most 25 entries"),
        ("dynamodb", "Query", {"TableName": "t", "Limit": 0}, "parameters.Limit must be at least 1"),
        ("dynamodb", "Query", {"TableName": "t", "Limit": 1.5}, "parameters.Limit must be a whole number"),
        ("dynamodb", "Query", {"TableName": "t", "Limit": True}, "parameters.Limit must be a whole number"),
        ("dynamodb", "ListTables", {"Limit": 101}, "parameters.Limit must be at most 100"),
        ("events", "PutRule", RULE | {"State": "ON"}, "parameters.State must be one of ENABLED, DISABLED"),
        ("scheduler", "DeleteSchedule", {"Name": "two words"}, "parameters.Name must match ^[0-9a-zA-Z-_.]+$"),
        ("cloudwatch", "SetAlarmState", {"AlarmName": "a", "StateValue": "BAD", "StateReason": ""}, "parameters.StateValue must be one of"),
        ("logs", "PutLogEvents", {"logGroupName": "g", "logStreamName": "s", "logEvents": []}, "parameters.logEvents must have at least 1"),
        ("cloudwatch", "GetMetricData", {"MetricDataQueries": [], "StartTime": "now", "EndTime": "2026-01-01T00:00:00Z"},
         "parameters.StartTime must be an RFC 3339 instant"),
        ("s3", "PutObject", {"Bucket": "b", "Key": "k", "Body": "dGV4dA=="}, "parameters.Body is a stream, which no job can send"),
        ("glacier", "UploadArchive", {"vaultName": "v", "accountId": "-", "body": "eA=="}, "parameters.body is a stream"),
        ("kinesisanalyticsv2", "CreateApplication", [], "parameters must be an object"),
        ("bedrock-runtime", "InvokeModelWithBidirectionalStream", {"modelId": "m"}, "parameters.body is a stream, which no job can send"),
        ("wafv2", "CreateIPSet", {"Name": "n", "Scope": "ALL", "IPAddressVersion": "IPV4", "Addresses": []}, "parameters.Scope must"),
        ("sqs", "ListQueues", {"MaxResults": "5"}, "parameters.MaxResults must be a whole number"),
    ],
)  # fmt: skip
def test_a_parameter_that_breaks_a_rule_is_named_with_it(service: str, action: str, parameters: Any, told: str) -> None:
    assert refused(service, action, parameters).startswith(told)


def test_a_union_has_exactly_one_member() -> None:
    policy = {"policyStoreId": "p", "principal": {"entityType": "u", "entityId": "1"}}
    one: dict[str, Any] = {"contextMap": {}}
    other: dict[str, Any] = {"cedarJson": "{}"}
    assert operation("verifiedpermissions", "IsAuthorized").converted(policy | {"context": one}, are_final=True)
    for context in ({}, one | other):
        told = refused("verifiedpermissions", "IsAuthorized", policy | {"context": context})
        assert told == "parameters.context must have exactly one of cedarJson, contextMap"


def test_a_parameter_that_is_a_document_takes_any_json() -> None:
    policy = {"resourceArn": "arn:aws:bedrock:us-east-1:123456789012:knowledge-base/ABCDEFGHIJ", "policy": {"any": [1, None]}}
    assert operation("bedrock-agent", "PutResourcePolicy").converted(policy, are_final=True) == policy


def test_an_operation_without_parameters_takes_none() -> None:
    assert operation("sns", "GetSMSSandboxAccountStatus").converted({}, are_final=True) == {}
    without = next(
        operation(service, name)
        for service in ("discovery", "support", "waf", "workmail", "iam", "lightsail", "shield", "redshift", "guardduty", "cloudtrail")
        for name, found in service_models._model(service)["operations"].items()
        if "input" not in found
    )
    with pytest.raises(NotAllowed, match="must be empty"):
        without.converted({"a": 1}, are_final=True)


def test_bytes_and_instants_are_converted() -> None:
    made = operation("dynamodb", "UpdateItem").converted(KEY | {"Key": {"id": {"B": "AAE="}, "n": {"NULL": True}}}, are_final=True)
    assert made["Key"] == {"id": {"B": b"\x00\x01"}, "n": {"NULL": True}}
    between = {"StartTime": "2026-11-20T10:00:00.250+01:00", "EndTime": "2026-11-20T11:00:00Z"}
    made = operation("cloudwatch", "GetMetricData").converted({"MetricDataQueries": [], **between}, are_final=True)
    assert made["StartTime"] == datetime(2026, 11, 20, 9, 0, 0, 250_000, tzinfo=UTC)
    assert operation("cloudwatch", "PutAnomalyDetector").converted({"Dimensions": []}, are_final=True) == {"Dimensions": []}


@pytest.mark.parametrize(
    ("service", "action", "parameters"),
    [
        ("events", "PutRule", RULE | {"State": "{{job.id}}"}),
        ("scheduler", "DeleteSchedule", {"Name": "run-{{scheduled_at:unix}}"}),
        ("dynamodb", "UpdateItem", KEY | {"Key": {"id": {"B": "{{job.id}}"}}}),
        ("cloudwatch", "GetMetricData", {"MetricDataQueries": [], "StartTime": "{{nominal_at}}", "EndTime": "{{scheduled_at}}"}),
    ],
)
def test_a_text_with_a_placeholder_is_checked_when_it_is_final(service: str, action: str, parameters: dict[str, Any]) -> None:
    assert operation(service, action).converted(parameters, are_final=False) == parameters
    assert refused(service, action, parameters)


def test_a_number_cannot_be_a_placeholder() -> None:
    told = refused("dynamodb", "Query", {"TableName": "t", "Limit": "{{attempt}}"}, are_final=False)
    assert told == "parameters.Limit must be a whole number"


def test_parameters_of_too_many_levels_are_refused() -> None:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(200):
        value = {"L": [value]}
    assert refused("dynamodb", "UpdateItem", KEY | {"Key": {"id": value}}) == "parameters.Key is nested deeper than 100 levels"


def test_a_pattern_without_anchors_matches_anywhere() -> None:
    """https://smithy.io/2.0/spec/constraint-traits.html#pattern-trait"""
    assert payload_schema.may_match("[0-9]+", "order 7") and not payload_schema.may_match("^[0-9]+$", "order 7")
    assert payload_schema.may_match("(?=x)y", "z"), "Rust's engine has no look-ahead"
    assert payload_schema.may_match("^[a-z]{900}$", "A" * 100_000)


@pytest.mark.parametrize(
    ("service", "action", "field", "told"),
    [
        ("s3", "copy_object", "action", "must be the name in the API, not that of boto3's method: write CopyObject"),
        ("ec2", "describe_vpcs", "action", "write DescribeVpcs"),
        ("s3", "CopyObjects", "action", "s3 has no operation 'CopyObjects'; did you mean CopyObject"),
        ("s3", "", "action", "s3 has no operation ''"),
        ("dynamo", "GetItem", "service", "there is no service 'dynamo' in boto3; did you mean dynamodb"),
        ("../data", "GetItem", "service", "there is no service '../data'"),
        ("S3", "CopyObject", "service", "there is no service 'S3'"),
    ],
)
def test_an_unknown_name_is_refused_with_the_right_one(service: str, action: str, field: str, told: str) -> None:
    with pytest.raises(Unknown) as found:
        operation(service, action)
    assert found.value.field == field and told in str(found.value)


def test_tokens_are_those_of_the_job_and_stay_as_given() -> None:
    run = operation("ecs", "RunTask")
    first, second, other = (run.with_tokens(TASK, key)["clientToken"] for key in ("01JOB", "01JOB", "01OTHER"))
    assert first == second != other and str(uuid.UUID(first)) == first
    assert run.with_tokens(TASK | {"clientToken": "mine"}, "01JOB")["clientToken"] == "mine"
    assert run.converted(TASK, are_final=True) == TASK, "a token is not required of the user"
    assert operation("s3", "CopyObject").tokens == [] and operation("s3", "HeadObject").is_read_only


@pytest.mark.long
def test_every_token_of_every_service_takes_ours() -> None:
    token, broken = str(uuid.uuid5(uuid.NAMESPACE_URL, "a")), []
    for service in sorted(service_models.services()):
        for name in service_models._model(service)["operations"]:
            found = operation(service, name)
            for member in found.tokens:
                shape = found.shapes[found.shapes[found.input or ""]["members"][member]["shape"]]
                try:
                    service_models._Conversion(found.shapes, True)._string(shape, token, (service, name, member))
                except NotAllowed as error:
                    broken.append(f"{error.field} {error}")
    assert broken == []


CALLS: dict[str, tuple[str, list[Any]]] = {
    "PutEvents": ("events", [{"Entries": [{"Source": "s", "Detail": "{}"}]}, {"Entries": {}}, {"Entries": [{"Time": "x"}]}]),
    "RunTask": ("ecs", [TASK, {}, TASK | {"count": "1"}, TASK | {"overrides": {"containerOverrides": [{"command": "a"}]}}]),
    "SendMessageBatch": ("sqs", [{"QueueUrl": "u", "Entries": [{"Id": "1", "MessageBody": "b"}]}, {"QueueUrl": "u"}, {"Entries": 1}]),
    "SendCommand": ("ssm", [{"DocumentName": "doc", "Parameters": {"a": ["ls"]}}, {}, {"DocumentName": "doc", "Parameters": []}]),
    "StartJobRun": ("glue", [{"JobName": "j", "Arguments": {"a": "b"}}, {"JobName": None}, {"JobName": "j", "Timeout": "5"}]),
    "StopInstances": ("ec2", [{"InstanceIds": ["i-1"]}, {"InstanceIds": "i-1"}, {"Force": 1, "InstanceIds": []}]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_botocore_refuses_is_refused(name: str) -> None:
    service, samples = CALLS[name]
    model = ServiceModel(Loader().load_service_model(service, "service-2"), service)
    shape: Any = model.operation_model(name).input_shape
    ours = list[bool]()
    for sample in samples:
        try:
            operation(service, name).converted(sample, are_final=True)
            ours.append(True)
        except NotAllowed:
            ours.append(False)
    theirs = [not ParamValidator().validate(sample, shape).has_errors() for sample in samples]
    assert ours == theirs and ours[0] and not all(ours)


def test_each_listed_failure_is_a_field_of_its_answer_and_has_a_source() -> None:
    for service, fields in partial_failures.FIELDS.items():
        for name, field in fields.items():
            found = operation(service, name)
            assert field in found.shapes[found.output or ""]["members"], f"{service} {name}"
            assert partial_failures.source(service, name).endswith(f"API_{name}.html")
    assert partial_failures.FIELDS.keys() == partial_failures._PAGES.keys()


@pytest.mark.parametrize(
    ("service", "name", "answer", "found"),
    [
        ("events", "PutEvents", {"FailedEntryCount": 1}, ("FailedEntryCount", 1)),
        ("events", "PutEvents", {"FailedEntryCount": 0}, None),
        ("s3", "DeleteObjects", {"Deleted": []}, None),
        ("s3", "DeleteObjects", {"Errors": [{"Key": "a"}]}, ("Errors", [{"Key": "a"}])),
        ("dynamodb", "BatchWriteItem", {"UnprocessedItems": {}}, None),
        ("lambda", "Invoke", {"FunctionError": "Unhandled"}, ("FunctionError", "Unhandled")),
        ("s3", "HeadObject", {"Errors": [1]}, None),
    ],
)
def test_an_answer_that_lists_failures_is_recognized(service: str, name: str, answer: dict[str, Any], found: Any) -> None:
    assert partial_failures.found(service, name, answer) == found
