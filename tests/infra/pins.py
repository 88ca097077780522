"""What must keep its identity in every deployment: `python -m tests.infra.pins` writes it into pins.json, which test_pins.py compares.

CloudFormation knows a resource by its logical id, which the CDK derives from the names of constructs. Under another id it makes a new,
empty resource, and the scheduler starts without the data of the old one.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.console import ConsoleStack
from infra.options import Options
from infra.settings import settings_for
from infra.stack import PunctualStack
from tests.infra.conftest import app

FILE = Path(__file__).with_name("pins.json")
STAGES = ("dev", "prod", "local")  # the local stage keeps its jobs from one `make run` to the next
# With all resources that options add.
SSO = {"name": "Corp", "type": "saml", "console": "https://console.example.com", "metadata_url": "https://idp.example.com/metadata"}
OPTIONS = {"customer_key": True, "events": "all", "audit_lock_days": 90, "sso": SSO}

# By type: what a stage loses with the resource.
LOSS = {
    "ApiGatewayV2::Api": "the address of the API, which every client has",
    "Athena::WorkGroup": "the queries that people saved",
    "CloudFront::Distribution": "the address of the console",
    "Cognito::UserPool": "all users, and with their ids the owners of all jobs",
    "Cognito::UserPoolClient": "all sessions of people",
    "Cognito::UserPoolDomain": "the address to which the identity provider sends people back",
    "Cognito::UserPoolIdentityProvider": "the accounts of everybody who signs in through it",
    "DynamoDB::GlobalTable": "all items of the table, such as jobs, tasks or users",
    "Events::EventBus": "the rules that people put on the bus",
    "Glue::Database": "the name that people use in their queries",
    "Glue::Table": "the name that people use in their queries",
    "KinesisFirehose::DeliveryStream": "the expired jobs of the last 15 minutes, before they are archived",
    "KMS::Key": "everything that is encrypted under the key",
    "Lambda::EventSourceMapping": "the position in a stream, whose last day is read once more",
    "Logs::LogGroup": "the logs until then",
    "S3::Bucket": "all objects of the bucket, such as outputs or the archive",
    "SecretsManager::Secret": "the tokens of all jobs that call back",
    "SNS::Topic": "the subscriptions that people confirmed",
    "SQS::Queue": "the messages in the queue, such as dead letters",
    "SSM::Parameter": "the value that stacks, functions and the next deployment read",
}
NO_DATA = (  # nothing is lost if CloudFormation makes it anew
    *("ApiGatewayV2::Authorizer", "ApiGatewayV2::Integration", "ApiGatewayV2::Route", "ApiGatewayV2::Stage", "Athena::NamedQuery"),
    *("CloudFront::Function", "CloudFront::OriginAccessControl", "CloudFront::ResponseHeadersPolicy", "CloudWatch::Alarm"),
    *("CloudWatch::Dashboard", "IAM::Role", "Lambda::Alias", "Lambda::EventInvokeConfig", "Lambda::Function", "Lambda::Permission"),
    *(
        "Lambda::Version",
        "Logs::LogStream",
        "Logs::QueryDefinition",
        "S3::BucketPolicy",
        "SNS::Subscription",
        "SNS::TopicPolicy",
        "SQS::QueuePolicy",
        "Scheduler::Schedule",
    ),
)
NAMES = (
    *("Name", "BucketName", "DeliveryStreamName", "Domain", "GroupName", "Identifier", "LogGroupName", "QueueName", "RoleName"),
    *("TableName", "TopicName", "UserPoolName"),
)

Pins = Mapping[str, Mapping[str, Any]]


def pins(stage: str) -> dict[str, dict[str, Any]]:
    """What is pinned of a stage, by logical id: the type, a name of its own if it has one, and the keys of a table and of its indexes."""
    settings = settings_for(stage, Options.model_validate(OPTIONS))
    stack = PunctualStack(made := app(), settings)
    console = ConsoleStack(made, settings)
    synthesized = made.synth()
    found = {}
    for each in (stack, console):
        for id, resource in synthesized.get_stack_by_name(each.stack_name).template["Resources"].items():
            if resource["Type"].removeprefix("AWS::") not in NO_DATA:
                found[id] = {"stack": each.stack_name, **_pinned(resource)}
    return dict(sorted(found.items()))


def _pinned(resource: Mapping[str, Any]) -> dict[str, Any]:
    properties = resource.get("Properties", {})
    made = {"type": resource["Type"]} | {name: properties[name] for name in NAMES if name in properties}
    if "KeySchema" in properties:
        types = {each["AttributeName"]: each["AttributeType"] for each in properties["AttributeDefinitions"]}
        made["keys"] = _keys(properties, types)
        made["indexes"] = {index["IndexName"]: _keys(index, types) for index in properties.get("GlobalSecondaryIndexes", ())}
    return made


def _keys(schema: Mapping[str, Any], types: Mapping[str, str]) -> list[str]:
    return [f"{each['AttributeName']} {types[each['AttributeName']]} {each['KeyType']}" for each in schema["KeySchema"]]


def differences(stage: str, before: Pins, after: Pins) -> list[str]:
    """A sentence for each pinned resource that the next deployment would replace, move or remove, or that is not pinned yet."""
    told = []
    for id, was in before.items():
        becomes = after.get(id)
        if becomes != was:
            change = "is gone" if becomes is None else f"changes from {_different(was, becomes)} to {_different(becomes, was)}"
            told.append(f"{stage}: {id} ({was['type']}) {change}. A deployed stage loses {LOSS[was['type'].removeprefix('AWS::')]}.")
    return told + [f"{stage}: {id} ({after[id]['type']}) is new, and not pinned." for id in after if id not in before]


def _different(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in one.items() if other.get(name) != value})


def written(stages: Mapping[str, Pins]) -> str:
    """The JSON of pins.json: a line for each resource."""
    blocks = (
        f" {json.dumps(stage)}: {{\n" + ",\n".join(f"  {json.dumps(id)}: {json.dumps(pin)}" for id, pin in made.items()) + "\n }"
        for stage, made in stages.items()
    )
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(written({stage: pins(stage) for stage in STAGES}))
