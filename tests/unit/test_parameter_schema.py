"""The JSON Schemas of parameters: they accept and refuse what the check by the model does."""

import json
from typing import Any

import jsonschema_rs
import pytest

from scheduler.targets import model_texts, parameter_schema
from scheduler.targets.base import NotAllowed
from scheduler.targets.service_models import operation

ITEM = {"TableName": "orders", "Item": {"id": {"M": {"parts": {"L": [{"S": "a"}, {"B": "dGV4dA=="}]}}}}}
METRICS = {"MetricDataQueries": [], "StartTime": "2026-01-01T00:00:00Z", "EndTime": "2026-01-02T00:00:00Z"}
RUN = {"taskDefinition": "report", "overrides": {"containerOverrides": [{"name": "report", "command": ["now"], "cpu": 256}]}}


@pytest.mark.parametrize(
    ("service", "action", "parameters"),
    [
        ("dynamodb", "PutItem", ITEM),
        ("dynamodb", "PutItem", ITEM | {"Item": {"id": {"M": {"parts": {"L": [{"S": 7}]}}}}}),
        ("dynamodb", "PutItem", ITEM | {"ReturnValues": "SOME"}),
        ("dynamodb", "PutItem", ITEM | {"Tablename": "orders"}),
        ("dynamodb", "PutItem", {"TableName": "orders"}),
        ("dynamodb", "PutItem", ITEM | {"Item": {"k" * 65_536: {"S": "7"}}}),
        ("dynamodb", "BatchWriteItem", {"RequestItems": {}}),
        ("dynamodb", "BatchWriteItem", {"RequestItems": {"t": [{}] * 26}}),
        ("dynamodb", "Query", {"TableName": "t", "Limit": 0}),
        ("dynamodb", "Query", {"TableName": "t", "Limit": 1.5}),
        ("cloudwatch", "GetMetricData", METRICS),
        ("cloudwatch", "GetMetricData", METRICS | {"StartTime": 7}),
        ("verifiedpermissions", "IsAuthorized", {"policyStoreId": "p", "context": {"cedarJson": "{}"}}),
        ("verifiedpermissions", "IsAuthorized", {"policyStoreId": "p", "context": {"cedarJson": "{}", "contextMap": {}}}),
        ("scheduler", "DeleteSchedule", {"Name": "two words"}),
        ("s3", "PutObject", {"Bucket": "b", "Key": "k", "Body": "dGV4dA=="}),
        ("ecs", "RunTask", RUN),
        ("ecs", "RunTask", RUN | {"count": "1"}),
        ("sts", "GetCallerIdentity", {"Name": "x"}),
    ],
)
def test_the_schema_agrees_with_the_check(service: str, action: str, parameters: dict[str, Any]) -> None:
    found = operation(service, action)
    schema = parameter_schema.of(found)
    try:
        found.converted(parameters, are_final=True)
        accepted = True
    except NotAllowed:
        accepted = False
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(parameters) is accepted


def test_a_field_has_what_a_form_needs() -> None:
    fields = parameter_schema.of(operation("ecs", "RunTask"))["properties"]
    assert fields["launchType"]["enum"] == ["EC2", "FARGATE", "EXTERNAL", "MANAGED_INSTANCES"]
    assert fields["clientToken"]["description"].endswith(parameter_schema.TOKEN)
    assert fields["overrides"] == {"$ref": "#/$defs/TaskOverride"} | {"description": fields["overrides"]["description"]}
    assert parameter_schema.of(operation("cloudwatch", "GetMetricData"))["properties"]["StartTime"]["format"] == "date-time"
    assert parameter_schema.of(operation("kinesis", "PutRecord"))["properties"]["Data"]["contentEncoding"] == "base64"


def test_a_token_is_not_required() -> None:
    schema = parameter_schema.of(operation("braket", "CancelQuantumTask"))
    assert schema["required"] == ["quantumTaskArn"] and "clientToken" in schema["properties"]


def test_an_operation_that_requires_a_stream_is_refused() -> None:
    with pytest.raises(NotAllowed, match="is a stream, which no job can send"):
        parameter_schema.of(operation("lambda", "InvokeAsync"))


@pytest.mark.parametrize(
    ("service", "action"), [("securityhub", "BatchImportFindings"), ("ec2", "RunInstances"), ("wafv2", "CreateWebACL")]
)
def test_the_largest_schemas_fit_into_an_answer(service: str, action: str) -> None:
    assert len(json.dumps(parameter_schema.of(operation(service, action)))) < 600_000


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("<p>Copies <code>an</code> object, e.g. a file. Then more.</p><p>Other</p>", "Copies an object, e.g. a file."),
        ("<note/> \n<p>See <a href='x'>it</a>.</p>", "See it."),
        ("a &lt; b", "a < b"),
        ("<p></p>", ""),
        ("x" * 301, f"{'x' * 299}…"),
    ],
)
def test_the_first_sentence_is_plain(text: str, sentence: str) -> None:
    assert model_texts.sentence(text) == sentence
