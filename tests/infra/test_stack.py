import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_sqs as sqs
from cdk_nag import AwsSolutionsChecks

from infra.console import ConsoleStack
from infra.options import Options
from infra.settings import settings_for
from infra.stack import PunctualStack
from tests.infra.conftest import Synthesized, app

LANES = ("OneTime", "Recurring", "Retry")

# Resource types that fail the whole deploy on the local AWS (MiniStack 1.5.33), among the services this project may use.
REFUSED_LOCALLY = (
    "AWS::ApplicationAutoScaling::",
    "AWS::Athena::NamedQuery",
    "AWS::Backup::BackupSelection",
    "AWS::Budgets::Budget",
    "AWS::CloudFront::MonitoringSubscription",
    "AWS::CloudTrail::Trail",
    "AWS::CloudWatch::AnomalyDetector",
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::CloudWatch::MetricStream",
    "AWS::Cognito::LogDeliveryConfiguration",
    "AWS::Cognito::ManagedLoginBranding",
    "AWS::Cognito::UserPoolUser",
    "AWS::Events::Archive",
    "AWS::IAM::ServiceLinkedRole",
    "AWS::Lambda::CodeSigningConfig",
    "AWS::Logs::Delivery",
    "AWS::Logs::LogAnomalyDetector",
    "AWS::Logs::QueryDefinition",
    "AWS::ResourceGroups::Group",
    "AWS::SES::Template",
    "AWS::SNS::TopicInlinePolicy",
    "AWS::SQS::QueueInlinePolicy",
    "AWS::Synthetics::Canary",
    "AWS::WAFv2::LoggingConfiguration",
    "AWS::WAFv2::WebACLAssociation",
    "AWS::XRay::Group",
    "Custom::",
)

OUTPUTS = {
    "ApiId",
    "ApiUrl",
    "FetchFunction",
    "UserPoolId",
    "UserPoolClientId",
    "JobsTable",
    "TasksTable",
    "UsersTable",
    "AuditTable",
    "LedgerTable",
    "TopicArn",
    "WorkQueueUrl",
    "TickScheduleName",
    "PlanScheduleName",
    "ScaleScheduleName",
    "CountersTable",
    "NoticesTable",
    "NoticesQueueUrl",
    "NoticesDlqUrl",
    "PagesTopicArn",
    "TicketsTopicArn",
    "NotifyFunction",
    "ProjectFunction",
    "ScaleFunction",
    *(f"{lane}QueueUrl" for lane in ("OneTime", "Recurring", "Retry")),
    "DlqUrl",
    *(f"{name}Function" for name in ("Api", "Tick", "Plan", "Dispatch", "ExecuteOneTime", "ExecuteRecurring", "ExecuteRetry", "Bury")),
}


def test_a_stage_is_one_stack_named_after_it(any_stage: Synthesized) -> None:
    assert any_stage.stack.stack_name == f"punctual-{any_stage.settings.stage}"


def test_the_stack_outputs_the_addresses_of_its_resources(any_stage: Synthesized) -> None:
    roles = {"AwsAccounts"} if any_stage.settings.aws_issuers else set()
    events = {"EventBusName", "EventsLostQueueUrl"} if any_stage.settings.deployed.events else set()
    intake = {"IntakeFunction", "IntakeDlqUrl", "IntakeJobsQueueUrl", "IntakeJobsQueueArn"} if any_stage.settings.intake else set()
    assert set(any_stage.template["Outputs"]) == OUTPUTS | roles | events | intake


def test_fetch_calls_urls_except_on_the_local_stage(any_stage: Synthesized) -> None:
    told = {json.dumps(any_stage.functions()[f"Execute{lane}"]["Environment"]["Variables"]["PUNCTUAL_FETCH_FUNCTION"]) for lane in LANES}
    arn = {"Ref": any_stage.id("Lambda::Alias", "FetchLive")}
    assert told == {json.dumps("" if any_stage.settings.stage == "local" else arn)}


def test_the_template_names_no_account_and_no_region(any_stage: Synthesized) -> None:
    assert any_stage.stack.environment == "aws://unknown-account/unknown-region"


def test_the_local_stage_has_no_resource_that_the_local_aws_refuses(local: Synthesized) -> None:
    assert local.console is not None
    resources = [*local.template["Resources"].values(), *local.console.template["Resources"].values()]
    kinds = {resource["Type"] for resource in resources}
    assert not [kind for kind in kinds if kind.startswith(REFUSED_LOCALLY)]


def test_cdk_nag_finds_nothing_that_is_not_acknowledged(on_aws: Synthesized) -> None:
    for stack in (on_aws, on_aws.console):
        assert stack is not None
        report = AwsSolutionsChecks(stack.stack).validate_scope(stack.stack)
        assert [(finding.rule_name, finding.violating_resources) for finding in report.violations] == []
    assert on_aws.settings.nag


@pytest.mark.long
def test_cdk_nag_would_find_a_queue_without_tls_and_dead_letters() -> None:
    stack = PunctualStack(app(), settings_for("dev"))
    sqs.Queue(stack, "Careless")
    report = AwsSolutionsChecks(stack).validate_scope(stack)
    assert {finding.rule_name for finding in report.violations} == {"AwsSolutions-SQS3", "AwsSolutions-SQS4"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("stage", "options"),
    [
        ("local", {}),
        ("dev", {}),
        ("prod", {}),
        ("dev", {"operator_email": "ops@example.org", "plain_http": True, "console": False}),
        ("prod", {"customer_key": True, "waf": True, "allowed_targets": ("arn:aws:sqs:eu-west-1:123456789012:orders",)}),
    ],
)
def test_a_stage_passes_the_rules_of_cloudformation(stage: str, options: dict[str, Any]) -> None:
    """`cdk synth` applies the same rules and fails as this does."""
    settings = settings_for(stage, Options(**options))
    PunctualStack(made := app(builtin_cloud_formation_validation=True), settings)
    if settings.console:
        ConsoleStack(made, settings)
    made.synth()


@pytest.mark.long
def test_the_rules_of_cloudformation_would_find_a_wrong_property() -> None:
    stack = cdk.Stack(made := app(builtin_cloud_formation_validation=True), "careless")
    cdk.CfnResource(stack, "Careless", type="AWS::SQS::Queue", properties={"DelaySeconds": "soon"})
    with pytest.raises(RuntimeError, match="DelaySeconds"):
        made.synth()
