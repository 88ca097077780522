"""`aws`: one call of any AWS API: refused payloads, sent requests, and judged answers."""

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from scheduler.model.job import Failure, FailureKind
from scheduler.targets import denied_actions, registry
from scheduler.targets.base import NotAllowed, Reach
from scheduler.targets.calls import Refused, Request
from tests.unit.fake_calls import FakeCalls, context, raising

REACH = Reach(
    actions=(
        *("dynamodb:UpdateItem", "dynamodb:Query", "s3:CopyObject", "s3:GetObject", "ecs:RunTask", "events:PutEvents team-a team-b"),
        *("lambda:Invoke", "sqs:SendMessage", "dynamodb:BatchWriteItem", "iam:CreateUser"),
    )
)
COPY: dict[str, Any] = {"service": "s3", "action": "CopyObject", "parameters": {"Bucket": "b", "Key": "k", "CopySource": "b/a"}}
RUN: dict[str, Any] = {"service": "ecs", "action": "RunTask", "parameters": {"taskDefinition": "report"}}
UPDATE: dict[str, Any] = {"service": "dynamodb", "action": "UpdateItem", "parameters": {"TableName": "orders", "Key": {"id": {"S": "7"}}}}
GET: dict[str, Any] = {"service": "s3", "action": "GetObject", "parameters": {"Bucket": "b", "Key": "k"}}
WRITE: dict[str, Any] = {
    "service": "dynamodb",
    "action": "BatchWriteItem",
    "parameters": {"RequestItems": {"t": [{"DeleteRequest": {"Key": {}}}]}},
}


def refused(payload: Mapping[str, Any], reach: Reach = REACH) -> tuple[str, str]:
    with pytest.raises(NotAllowed) as found:
        registry.check_reach("aws", payload, reach)
    return found.value.field, str(found.value)


def ran(payload: Mapping[str, Any], answer: Any = None, *, seconds: float = 60.0, **more: Any) -> tuple[Any, list[Request]]:
    """The result of an attempt, and its requests. `answer`: of AWS, or the error."""
    found = raising(answer) if isinstance(answer, Exception) else answer if callable(answer) else lambda: answer or {}
    calls = FakeCalls(**{payload["action"]: found})
    return registry.load("aws").run(payload, replace(context(calls, seconds=seconds, reach=REACH), **more)), calls.asked


def failure(payload: Mapping[str, Any], answer: Any, **more: Any) -> Failure:
    found: Failure = ran(payload, answer, **more)[0].failure
    return found


# Refused payloads.


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({}, "service"),
        ({"service": "s3", "action": "CopyObject"}, "parameters"),
        (COPY | {"parameters": "x"}, "parameters"),
        (COPY | {"service": 3}, "service"),
        (COPY | {"region": "x"}, "region"),
        (COPY | {"idempotent": "yes"}, "idempotent"),
        (COPY | {"action": "A" * 129}, "action"),
    ],
)
def test_a_payload_of_another_shape_is_refused(payload: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as found:
        TypeAdapter(registry.load("aws").payload).validate_json(json.dumps(payload), strict=True)
    assert field in {str(error["loc"][0]) for error in found.value.errors()}


def test_without_the_option_no_action_is_usable() -> None:
    field, rule = refused(COPY, Reach())
    assert (
        field == "action"
        and rule.startswith("s3:CopyObject is not allowed")
        and "the option allowed_actions, which its operators set" in rule
    )


def test_an_action_outside_the_list_is_refused_with_the_list() -> None:
    field, rule = refused(COPY | {"action": "DeleteObject", "parameters": {}})
    assert field == "action"
    assert rule.startswith("s3:DeleteObject is not allowed for jobs of this stage; the option allowed_actions lists: dynamodb:UpdateItem")


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        ({"action": "copy_object"}, "action", "did you mean s3:CopyObject?"),
        ({"action": "CopyObjct"}, "action", "did you mean s3:CopyObject?"),
        ({"service": "s33"}, "action", "did you mean s3:CopyObject?"),
    ],
)
def test_a_wrong_name_is_refused_with_the_right_one(change: dict[str, str], field: str, told: str) -> None:
    found, rule = refused(COPY | change)
    assert found == field and told in rule


def test_a_parameter_is_refused_with_its_path() -> None:
    wrong = UPDATE | {"parameters": {"TableName": "orders", "Key": {"id": {"S": 7}}}}
    assert refused(wrong) == ("parameters.Key.id.S", "must be a text")


def test_an_action_with_owners_is_for_them_alone() -> None:
    put = {"service": "events", "action": "PutEvents", "parameters": {"Entries": [{"Detail": "{}"}]}}
    for owner in ("team-a", "team-b"):
        registry.check_reach("aws", put, REACH.of(owner))
    assert "is not allowed" in refused(put, REACH.of("team-c"))[1]
    assert "is not allowed" in refused(put, REACH.of("team"))[1]
    registry.check_reach("aws", COPY, REACH.of("team-c"))
    registry.check_reach("aws", put, REACH)  # of an administrator who registers a target
    assert Reach().of("team-a") == Reach()


def test_a_denied_action_is_refused_although_it_is_listed() -> None:
    field, rule = refused({"service": "iam", "action": "CreateUser", "parameters": {"UserName": "eve"}})
    assert (
        field == "action"
        and rule == "iam:CreateUser is denied to all jobs (identities and their rights), whatever the option allowed_actions lists"
    )


@pytest.mark.parametrize(
    "action",
    [
        *("iam:CreateUser", "sts:AssumeRole", "secretsmanager:GetSecretValue", "secretsmanager:BatchGetSecretValue"),
        *(
            "ssm:GetParameter",
            "ssm:GetParametersByPath",
            "ssm:StartSession",
            "ecr:GetAuthorizationToken",
            "ecr-public:GetAuthorizationToken",
        ),
        *("codeartifact:GetAuthorizationToken", "cognito-identity:GetCredentialsForIdentity", "sso:GetRoleCredentials", "rds-db:connect"),
        *("redshift:GetClusterCredentialsWithIAM", "kms:Decrypt", "kms:GenerateDataKeyPair", "KMS:decrypt", "lambda:GetFunction"),
        *("cognito-idp:DescribeUserPoolClient", "ec2:GetPasswordData", "sso-oidc:CreateToken", "s3:CreateSession"),
    ],
)
def test_secrets_and_credentials_are_denied(action: str) -> None:
    assert denied_actions.reason(action)


@pytest.mark.parametrize(
    "action", ["s3:CopyObject", "lambda:InvokeFunction", "ssm:SendCommand", "kms:Encrypt", "lambda:GetFunctionConfiguration"]
)
def test_other_actions_are_not_denied(action: str) -> None:
    assert denied_actions.reason(action) is None


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        ({"TableName": "punctual-prod-StorageJobs4C7573CB-abc"}, "parameters.TableName"),
        ({"TableName": "arn:aws:dynamodb:eu-west-1:123456789012:table/punctual-eu-staging-StorageTasks4C-x"}, "parameters.TableName"),
        ({"TableName": "punctual%2Dprod-StorageTasks4C-x"}, "parameters.TableName"),
        ({"TableName": "t", "ExpressionAttributeValues": {":a": {"L": [{"S": "punctual-prod-LanesRetry4C"}]}}},
         "parameters.ExpressionAttributeValues.:a.L.0.S"),
    ],
)  # fmt: skip
def test_no_parameter_names_a_resource_of_the_scheduler(parameters: dict[str, Any], path: str) -> None:
    """The executors have rights to their own tables, queues and buckets."""
    payload = {"service": "dynamodb", "action": "Query", "parameters": parameters}
    assert refused(payload) == (path, "names a resource of the scheduler itself, which no job may reach")
    result, asked = ran(payload)
    assert result.failure is not None and result.failure.kind is FailureKind.PERMANENT and asked == []


def test_a_name_of_a_field_names_no_resource_of_the_scheduler_either() -> None:
    items = {"punctual-prod-StorageUsers4C7573CB-abc": [{"DeleteRequest": {"Key": {"id": {"S": "a"}}}}]}
    assert "names a resource of the scheduler" in refused(WRITE | {"parameters": {"RequestItems": items}})[1]
    bucket = COPY | {"parameters": {"Bucket": "punctual-prod-storageoutputs4c7573cb-x1", "Key": "k", "CopySource": "b/a"}}
    assert "names a resource of the scheduler" in refused(bucket)[1]


def test_defaults_of_a_named_target_may_be_a_part() -> None:
    for part in ({}, {"service": "s3"}, {"service": "s3", "action": "CopyObject"}):
        registry.check_reach("aws", part, REACH)
    assert refused({"service": "s3", "action": "CopyObject", "parameters": {}}) == ("parameters.Bucket", "is required")


# Sent requests.


def test_one_call_is_sent_and_its_answer_is_the_output() -> None:
    at = datetime(2026, 11, 20, 10, 0, 0, 250_000, tzinfo=UTC)
    answer = {"Body": b"\x00\x01", "LastModified": at, "é": 1, "ResponseMetadata": {"HTTPStatusCode": 200}}
    result, (request,) = ran(GET, answer)
    assert json.loads(result.output) == {"Body": "AAE=", "LastModified": "2026-11-20T10:00:00.250000Z", "é": 1} and result.failure is None
    assert (request.service, request.operation, request.parameters) == ("s3", "GetObject", GET["parameters"])
    assert request.is_any and request.waits and request.region is None


def test_the_token_is_the_same_in_every_attempt_of_a_job() -> None:
    calls = FakeCalls(RunTask=lambda: {"tasks": []})
    for attempt in (1, 2):
        registry.load("aws").run(RUN, context(calls, attempt=attempt, reach=REACH))
    first, second = (request.parameters["clientToken"] for request in calls.asked)
    assert first == second and len(first) == 36
    _, (given,) = ran(RUN | {"parameters": {"taskDefinition": "report", "clientToken": "mine"}})
    assert given.parameters["clientToken"] == "mine"


@pytest.mark.parametrize(("payload", "again"), [(COPY, False), (COPY | {"idempotent": True}, True), (GET, True), (RUN, True)])
def test_only_an_idempotent_call_may_be_sent_again_at_once(payload: dict[str, Any], again: bool) -> None:
    _, (request,) = ran(payload)
    assert request.again is again


def test_a_value_that_placeholders_made_wrong_is_not_sent() -> None:
    rendered = UPDATE | {"parameters": UPDATE["parameters"] | {"ReturnValues": "2026-11-20"}}
    result, asked = ran(rendered)
    assert result.failure == Failure(FailureKind.PERMANENT, result.failure.message) and asked == []
    assert result.failure.message.startswith("parameters.ReturnValues must be one of NONE")
    literal = UPDATE | {"parameters": UPDATE["parameters"] | {"ReturnValues": "{{literal"}}
    result, asked = ran(literal)
    assert result.failure.message.startswith("parameters.ReturnValues must be one of NONE") and asked == []


# Judged answers.


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        (Refused("ThrottlingException", retryable=True, throttled=True), FailureKind.THROTTLED),
        (Refused("InternalFailure", retryable=True), FailureKind.RETRYABLE),
        (Refused("ValidationException", retryable=False), FailureKind.PERMANENT),
        (Refused("EndpointConnectionError", retryable=True), FailureKind.RETRYABLE),
        (Refused("ReadTimeoutError", retryable=True, unclear=True), FailureKind.PERMANENT),
    ],
)
def test_a_refusal_is_judged_by_its_class(refusal: Refused, kind: FailureKind) -> None:
    assert failure(COPY, refusal).kind is kind


@pytest.mark.parametrize("payload", [COPY | {"idempotent": True}, GET, RUN])
def test_an_unclear_answer_of_an_idempotent_call_is_retried(payload: dict[str, Any]) -> None:
    assert failure(payload, Refused("ReadTimeoutError", retryable=True, unclear=True)).kind is FailureKind.RETRYABLE


def test_an_unclear_answer_says_why_it_is_not_repeated() -> None:
    told = failure(COPY, Refused("ReadTimeoutError", "no answer", retryable=True, unclear=True)).message
    assert told == "the call may have had its effect, and the job has no `idempotent`: it is not repeated: ReadTimeoutError: no answer"


@pytest.mark.parametrize(("payload", "kind"), [(COPY, FailureKind.PERMANENT), (GET, FailureKind.TIMEOUT), (RUN, FailureKind.TIMEOUT)])
def test_a_time_out_is_unclear_too(payload: dict[str, Any], kind: FailureKind) -> None:
    hang = threading.Event()
    found = failure(payload, lambda: hang.wait(60), seconds=0.05)
    hang.set()
    assert found.kind is kind and found.message.startswith("no answer within the job's time-out")


def test_a_cancel_stays_a_cancel() -> None:
    stop = threading.Event()
    stop.set()
    assert failure(COPY, {}, stop=stop).kind is FailureKind.TIMEOUT


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized"])
def test_a_denied_access_names_the_entry_of_the_option(code: str) -> None:
    found = failure(COPY, Refused(code, "x" * 900, retryable=False))
    assert found.kind is FailureKind.PERMANENT and len(found.message) <= 500
    assert "; see the entry s3:CopyObject of the option allowed_actions" in found.message


@pytest.mark.parametrize(
    ("payload", "answer", "kind", "told"),
    [
        (WRITE, {"UnprocessedItems": {"t": [{}]}}, FailureKind.PERMANENT, 'UnprocessedItems is {"t": [{}]}'),
        (WRITE | {"idempotent": True}, {"UnprocessedItems": {"t": [{}]}}, FailureKind.RETRYABLE, "UnprocessedItems is"),
        (RUN, {"failures": [{"reason": "AGENT"}]}, FailureKind.RETRYABLE, 'failures is [{"reason": "AGENT"}]'),
    ],
)
def test_an_answer_that_lists_failures_is_a_failure_with_its_output(
    payload: dict[str, Any], answer: dict[str, Any], kind: FailureKind, told: str
) -> None:
    result, _ = ran(payload, answer)
    assert (result.failure.kind, json.loads(result.output)) == (kind, answer)
    assert result.failure.message.startswith("the answer lists failures: ") and told in result.failure.message


def test_jobs_are_called_and_fail_together_by_their_action() -> None:
    declared = registry.load("aws")
    assert declared.called_by(COPY) == declared.circuit_of(COPY) == "s3:CopyObject"
    assert declared.called_by({"service": "s3"}) is None and declared.equal_attempts and not declared.calls_back
