"""Templates that AWS refuses and the local AWS accepts. Each rule is beside the link to AWS's page."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from infra.options import MOST_ACCOUNTS, MOST_ISSUERS, MOST_QUEUES, MOST_TEXT, Options
from tests.infra.conftest import Resource, Synthesized, as_list, synthesized

# The characters of the values that CloudFormation fills in, in the region with the longest name: a queue's URL, another name, an ARN.
URL, REFERENCE, ARN = 105, 52, 112


def functions(stack: Synthesized) -> Iterator[str]:
    """https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html"""
    for id, made in stack.all("Lambda::Function").items():
        variables = made.get("Environment", {}).get("Variables", {})
        size = sum(len(name) + len(deployed(stack, value)) for name, value in variables.items())
        if size > 4_096:
            yield f"{id}: an environment of {size} bytes, at most 4,096"
        if not 128 <= made["MemorySize"] <= 10_240:
            yield f"{id}: memory of {made['MemorySize']} MB, from 128 to 10,240"
        if made["Timeout"] > 900:
            yield f"{id}: a time-out of {made['Timeout']} s, at most 900"
        if len(made.get("FunctionName", "")) > 64:
            yield f"{id}: a name of over 64 characters"


def mappings(stack: Synthesized) -> Iterator[str]:
    """https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html, .../services-sqs-scaling.html (concurrency)

    https://docs.aws.amazon.com/lambda/latest/api/API_CreateEventSourceMapping.html (batches)
    """
    for id, made in stack.all("Lambda::EventSourceMapping").items():
        queue = stack.all("SQS::Queue").get(made["EventSourceArn"]["Fn::GetAtt"][0])
        if queue is None:  # a stream
            if (
                made["BatchSize"] > 10_000
                or made.get("MaximumBatchingWindowInSeconds", 0) > 300
                or made.get("TumblingWindowInSeconds", 0) > 900
            ):
                yield f"{id}: at most 10,000 records, 300 s to collect them, windows of 900 s"
            if not 1 <= made.get("ParallelizationFactor", 1) <= 10 or len(made.get("FilterCriteria", {}).get("Filters", ())) > 5:
                yield f"{id}: at most 10 batches of a shard at once, and 5 filters"
            continue
        timeout = stack.functions()[stack.called(made["FunctionName"])]["Timeout"]
        if queue["VisibilityTimeout"] < timeout:
            yield f"{id}: messages are visible again after {queue['VisibilityTimeout']} s, the function may run for {timeout} s"
        if not 2 <= made.get("ScalingConfig", {}).get("MaximumConcurrency", 2) <= 1_000:
            yield f"{id}: MaximumConcurrency is from 2 to 1,000"
        if "ScalingConfig" in made and "ProvisionedPollerConfig" in made:
            yield f"{id}: either MaximumConcurrency or pollers"
        if made["BatchSize"] > 10 and not made.get("MaximumBatchingWindowInSeconds"):
            yield f"{id}: more than 10 messages need a batching window"


def roles(stack: Synthesized) -> Iterator[str]:
    """All inline policies of a role together: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
    for id, made in stack.all("IAM::Role").items():
        documents = [policy["PolicyDocument"] for policy in made.get("Policies", ())]
        size = sum(len("".join(json.dumps(deployed(stack, document)).split())) for document in documents)
        if size > 10_240:
            yield f"{id}: inline policies of {size} characters, at most 10,240"


def deployed(stack: Synthesized, value: Any) -> Any:
    """A value of a template, about as long as it is once it is deployed."""
    match value:
        case {"Fn::Join": [_, parts]}:
            return "".join(deployed(stack, part) for part in parts)
        case {"Fn::GetAtt": _}:
            return "x" * ARN
        case {"Ref": id}:
            return "x" * (len("ap-southeast-1") if id.startswith("AWS::") else URL if id in stack.all("SQS::Queue") else REFERENCE)
        case dict():
            return {name: deployed(stack, each) for name, each in value.items()}
        case list():
            return [deployed(stack, each) for each in value]
    return value


def queues(stack: Synthesized) -> Iterator[str]:
    """https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html"""
    for id, made in stack.all("SQS::Queue").items():
        if made.get("VisibilityTimeout", 30) > 43_200 or made.get("DelaySeconds", 0) > 900:
            yield f"{id}: at most 43,200 s hidden, 900 s delayed"
        if not 60 <= made.get("MessageRetentionPeriod", 345_600) <= 1_209_600:
            yield f"{id}: kept for a minute to 14 days"
        if len(made.get("QueueName", "")) > 80:
            yield f"{id}: a name of over 80 characters"


def subscriptions(stack: Synthesized) -> Iterator[str]:
    """https://docs.aws.amazon.com/sns/latest/dg/subscription-filter-policy-constraints.html"""
    for id, made in stack.all("SNS::Subscription").items():
        policy: Mapping[str, list[Any]] = made.get("FilterPolicy", {})
        combinations = 1
        for values in policy.values():
            combinations *= len(values)
        if len(policy) > 5 or combinations > 150 or len(json.dumps(policy)) > 262_144:
            yield f"{id}: a filter of at most 5 names, 150 combinations and 256 KB"


def tables(stack: Synthesized) -> Iterator[str]:
    """https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html"""
    for id, made in stack.all("DynamoDB::GlobalTable").items():
        indexes = made.get("GlobalSecondaryIndexes", ())
        projected = sum(len(index["Projection"].get("NonKeyAttributes", ())) for index in indexes)
        if len(indexes) > 20 or projected > 100:
            yield f"{id}: at most 20 indexes, and 100 projected attributes of all"
        keys = {key["AttributeName"] for schema in (made, *indexes) for key in schema["KeySchema"]}
        if keys != {each["AttributeName"] for each in made["AttributeDefinitions"]}:
            yield f"{id}: exactly the attributes of keys are defined"


def template(stack: Synthesized) -> Iterator[str]:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html"""
    resources, outputs = stack.template["Resources"], stack.template["Outputs"]
    if len(resources) > 500 or len(outputs) > 200 or len(json.dumps(stack.template)) > 1_048_576:
        yield "a template of at most 500 resources, 200 outputs and 1 MiB"
    for id, made in resources.items():  # W3005 of cfn-lint
        for other in as_list(made.get("DependsOn", [])):
            if made["Type"] == "AWS::Lambda::Function" and other in json.dumps(made["Properties"]):
                yield f"{id}: depends on {other} by itself"


RULES: tuple[Callable[[Synthesized], Iterator[str]], ...] = (functions, mappings, roles, queues, subscriptions, tables, template)


def refusals(stack: Synthesized) -> list[str]:
    return [refusal for rule in RULES for refusal in rule(stack)]


def test_aws_accepts_the_template_of_every_stage(any_stage: Synthesized) -> None:
    assert refusals(any_stage) == []


SSO: dict[str, Any] = {
    "name": "Corp",
    "type": "saml",
    "provider": "p" * 32,
    "metadata_url": "https://idp.example.com/metadata",
    "passwords": False,
}
ISSUERS = {f"{number:012}": f"https://{number:063}.tokens.sts.global.api.aws" for number in range(MOST_ISSUERS)}
QUEUES = {f"{number}".rjust(31, "q"): "o" * 64 for number in range(MOST_QUEUES)}
ACCOUNTS = [{"id": f"{number:012}", "role": f"arn:aws:iam::{number:012}:role/x"} for number in range(MOST_ACCOUNTS)]
SHORT, LONG = "arn:aws:sqs:*:*:q-00", "arn:aws:states:eu-west-1:123456789012:stateMachine:".ljust(99, "x")


def sign_on(group: int) -> dict[str, Any]:
    """Single sign-on whose groups take about this number of characters."""
    groups = {"administrators": ["a" * (group // 2)], "operators": ["b" * (group // 2)], "break_glass": ["root"]}
    return {"sso": SSO | groups | {"console": "https://".ljust(61, "c")}}


def longest(options: dict[str, Any], arn: str) -> Options:
    """These options with as many allowed ARNs as possible."""
    for count in range(MOST_TEXT):
        try:
            found = Options.model_validate(options | {"allowed_targets": [arn] * count})
        except ValueError as refused:
            assert f"together have at most {MOST_TEXT} characters" in str(refused) and count > 0
            break
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "arn"),
    [
        ({}, SHORT),
        ({}, LONG),
        ({"aws_issuers": ISSUERS}, LONG),
        ({"intake": QUEUES}, SHORT),
        ({"accounts": ACCOUNTS}, SHORT),
        ({"aws_issuers": ISSUERS, "intake": QUEUES} | sign_on(20), SHORT),
        (sign_on(500), SHORT),
        (sign_on(1_000), SHORT),
    ],
    ids=["short ARNs", "long ARNs", "issuers", "intake", "accounts", "all", "groups", "long groups"],
)
def test_aws_accepts_the_longest_options(options: dict[str, Any], arn: str) -> None:
    more: dict[str, Any] = {"email_sender": "ops@example.com", "customer_key": True, "tracing": True, "audit_lock_days": 30}
    chosen = longest(more | options, arn)
    assert refusals(synthesized.__wrapped__("prod", **{name: getattr(chosen, name) for name in chosen.model_fields_set})) == []


def wrong(kind: str, prefix: str, **more: Any) -> Synthesized:
    """The stack of prod with other properties of one resource."""
    stack = synthesized("prod")
    changed: dict[str, Any] = copy.deepcopy(stack.template)
    properties: Resource = changed["Resources"][stack.id(kind, prefix)]["Properties"]
    properties.update(more)
    return replace(stack, template=changed)


STATEMENT = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": ["x" * 100] * 103}
INDEX = {"IndexName": "i", "KeySchema": [], "Projection": {"ProjectionType": "ALL"}}
KIND, NAME, WRONG = "Lambda::Function", "TickFunction", "Lambda::EventSourceMapping"


@pytest.mark.parametrize(
    ("kind", "prefix", "more", "refusal"),
    [
        (KIND, NAME, {"Environment": {"Variables": {"A": "x" * 4_096}}}, "an environment of 4097 bytes"),
        (KIND, NAME, {"MemorySize": 10_241}, "memory of 10241 MB"),
        (KIND, NAME, {"Timeout": 901}, "a time-out of 901 s"),
        (KIND, NAME, {"FunctionName": "n" * 65}, "over 64 characters"),
        (WRONG, "DispatchWork", {"ScalingConfig": {"MaximumConcurrency": 1_001}}, "from 2 to 1,000"),
        (WRONG, "BuryDead", {"ScalingConfig": {"MaximumConcurrency": 1}}, "from 2 to 1,000"),
        (WRONG, "BuryDead", {"ProvisionedPollerConfig": {"MinimumPollers": 2}}, "either MaximumConcurrency or pollers"),
        (WRONG, "BuryDead", {"BatchSize": 11}, "need a batching window"),
        (WRONG, "ProjectJobs", {"BatchSize": 10_001}, "at most 10,000 records"),
        (WRONG, "ProjectJobs", {"FilterCriteria": {"Filters": [{}] * 6}}, "5 filters"),
        ("SQS::Queue", "LanesRetry", {"VisibilityTimeout": 899}, "visible again after 899 s, the function may run for 900 s"),
        ("SQS::Queue", "LanesWork", {"VisibilityTimeout": 43_201}, "at most 43,200 s hidden"),
        ("SQS::Queue", "LanesDead", {"MessageRetentionPeriod": 1_209_601}, "a minute to 14 days"),
        ("SQS::Queue", "LanesDead", {"QueueName": "q" * 81}, "over 80 characters"),
        ("IAM::Role", "TickRole", {"Policies": [{"PolicyDocument": {"Statement": [STATEMENT]}}]}, "at most 10,240"),
        ("DynamoDB::GlobalTable", "StorageUsers", {"GlobalSecondaryIndexes": [INDEX] * 21}, "at most 20 indexes"),
        ("DynamoDB::GlobalTable", "StorageUsers", {"AttributeDefinitions": []}, "exactly the attributes of keys"),
    ],
)
def test_a_template_that_aws_would_refuse_is_refused(kind: str, prefix: str, more: dict[str, Any], refusal: str) -> None:
    found = refusals(wrong(kind, prefix, **more))
    assert any(refusal in each for each in found), found


def test_a_filter_with_too_many_combinations_is_refused(prod: Synthesized) -> None:
    id = next(iter(prod.all("SNS::Subscription")))
    changed: dict[str, Any] = copy.deepcopy(prod.template)
    changed["Resources"][id]["Properties"]["FilterPolicy"] = {"a": list(range(13)), "b": list(range(12))}
    assert refusals(replace(prod, template=changed)) == [f"{id}: a filter of at most 5 names, 150 combinations and 256 KB"]


def test_a_function_that_names_its_role_twice_is_refused(prod: Synthesized) -> None:
    id = prod.id("Lambda::Function", "TickFunction")
    changed: dict[str, Any] = copy.deepcopy(prod.template)
    role = changed["Resources"][id]["Properties"]["Role"]["Fn::GetAtt"][0]
    changed["Resources"][id]["DependsOn"] = [role]
    assert refusals(replace(prod, template=changed)) == [f"{id}: depends on {role} by itself"]
