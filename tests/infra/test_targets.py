"""The targets that a deployment allows: the grants of the executors, the settings of the API, and the samples of the local stage."""

import json
from fnmatch import fnmatchcase

import pytest
from aws_cdk.assertions import Template
from cdk_nag import AwsSolutionsChecks

from infra.samples import SamplesStack
from infra.settings import LOCAL, SAMPLE, settings_for
from lambdas._settings import Settings
from scheduler.targets import arns
from tests.infra.conftest import Synthesized, app, as_list, synthesized
from tests.infra.test_functions import environ

PLACE = "eu-west-1:123456789012"
FUNCTION = f"arn:aws:lambda:{PLACE}:function:orders-*"
QUEUE = f"arn:aws:sqs:{PLACE}:orders"
TOPIC = f"arn:aws:sns:{PLACE}:orders"
BUS = f"arn:aws:events:{PLACE}:event-bus/orders"
MACHINE = f"arn:aws:states:{PLACE}:stateMachine:orders"
CLUSTER, DEFINITION = f"arn:aws:ecs:{PLACE}:cluster/jobs", f"arn:aws:ecs:{PLACE}:task-definition/report"
ROLE = "arn:aws:iam::123456789012:role/report"
ALL = (FUNCTION, QUEUE, TOPIC, BUS, MACHINE, CLUSTER, DEFINITION)
EXECUTORS = {"ExecuteOneTime", "ExecuteRecurring", "ExecuteRetry"}
GRANTED = {
    ("lambda:InvokeFunction", FUNCTION),
    ("sqs:SendMessage", QUEUE),
    ("sns:Publish", TOPIC),
    ("events:PutEvents", BUS),
    ("states:StartExecution", MACHINE),
    ("states:DescribeExecution", f"arn:aws:states:{PLACE}:execution:orders:*"),
    ("states:StopExecution", f"arn:aws:states:{PLACE}:execution:orders:*"),
    ("ecs:RunTask", f"{DEFINITION}:*"),
    ("ecs:DescribeTasks", f"arn:aws:ecs:{PLACE}:task/jobs/*"),
    ("ecs:StopTask", f"arn:aws:ecs:{PLACE}:task/jobs/*"),
    ("ecs:TagResource", f"arn:aws:ecs:{PLACE}:task/jobs/*"),
    ("ecs:DescribeTaskDefinition", "*"),
    ("iam:PassRole", ROLE),
}


@pytest.fixture
def allowing() -> Synthesized:
    return synthesized("prod", allowed_targets=tuple(ALL), container_roles=(ROLE,), email_sender="ops@example.com")


@pytest.fixture
def complete() -> Synthesized:
    """With the functions, queues and tables of every option."""
    options = {"allowed_targets": tuple(ALL), "container_roles": (ROLE,), "email_sender": "ops@example.com"}
    return synthesized("prod", **options, events="all", intake=(("jobs", "principals"),))


@pytest.mark.long
def test_only_executors_get_one_action_per_service_on_allowed_arns(allowing: Synthesized, prod: Synthesized) -> None:
    for name in prod.functions():
        mail = ("ses:SendEmail", "dynamodb:UpdateItem")
        more = {grant for grant in allowing.grants(name) if grant not in prod.grants(name) and grant[0] not in mail}
        assert more == (GRANTED if name in EXECUTORS else set())


@pytest.mark.parametrize("stack", ["prod", pytest.param("complete", marks=pytest.mark.long)])
def test_executors_are_denied_every_resource_of_ours_that_they_do_not_use(stack: str, request: pytest.FixtureRequest) -> None:
    """Patterns of allowed targets may cover them, such as `function:*`, also those of another stage of the account."""
    prod: Synthesized = request.getfixturevalue(stack)
    for executor in EXECUTORS:
        role = prod.all("IAM::Role")[prod.functions()[executor]["Role"]["Fn::GetAtt"][0]]
        denied = [
            (each["Action"], arn["Fn::Join"][1][-1].rpartition(":")[2].removeprefix("table/"))
            for each in role["Policies"][0]["PolicyDocument"]["Statement"]
            if each["Effect"] == "Deny"
            for arn in as_list(each["Resource"])
        ]
        used = {resource.replace("Live", "Function") for _, resource in prod.grants(executor)}  # a function by its alias
        for kind, action in (("Lambda::Function", "lambda:*"), ("SQS::Queue", "sqs:*"), ("SNS::Topic", "sns:*"),
                             ("DynamoDB::GlobalTable", "dynamodb:*")):  # fmt: skip
            for id in prod.all(kind):
                for stage in ("prod", "dev"):
                    covered = any(fnmatchcase(f"punctual-{stage}-{id}-AbCdEf123456", name) for what, name in denied if what == action)
                    assert covered is (id[:-8] not in used), (executor, id)


def test_every_resource_of_ours_is_known_by_its_name(prod: Synthesized) -> None:
    for kind in ("Lambda::Function", "SQS::Queue", "SNS::Topic", "DynamoDB::GlobalTable"):
        for id in prod.all(kind):
            assert arns.is_own(f"arn:aws:any:eu-west-1:123456789012:{prod.stack.stack_name}-{id}-AbCdEf123456")


@pytest.mark.long
def test_containers_run_only_in_allowed_clusters_with_listed_roles(allowing: Synthesized) -> None:
    role = allowing.all("IAM::Role")[allowing.functions()["ExecuteOneTime"]["Role"]["Fn::GetAtt"][0]]
    statements = role["Policies"][0]["PolicyDocument"]["Statement"]
    found = {each["Action"]: each.get("Condition") for each in statements if isinstance(each["Action"], str)}
    assert found["ecs:RunTask"] == {"ArnLike": {"ecs:cluster": [CLUSTER]}}
    assert found["iam:PassRole"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
    rules = {id[:-8]: rule["EventPattern"] for id, rule in allowing.all("Events::Rule").items()}
    assert rules["ConcludeEcs"]["detail"]["startedBy"] == [{"prefix": "punctual/"}]
    assert rules["ConcludeStepfunctions"]["detail"]["stateMachineArn"] == [MACHINE]


@pytest.mark.long
def test_without_an_allowed_cluster_no_container_runs() -> None:
    """A condition that names no cluster would allow them all."""
    assert not [
        action for action, _ in synthesized("prod", allowed_targets=(DEFINITION,)).grants("ExecuteOneTime") if action == "ecs:RunTask"
    ]


@pytest.mark.long
def test_mail_is_sent_only_from_the_sender(allowing: Synthesized) -> None:
    for name in allowing.functions():
        role = allowing.all("IAM::Role")[allowing.functions()[name]["Role"]["Fn::GetAtt"][0]]
        found = [each for each in role["Policies"][0]["PolicyDocument"]["Statement"] if each["Action"] == "ses:SendEmail"]
        assert [each["Condition"] for each in found] == (
            [{"StringEqualsIfExists": {"ses:FromAddress": "ops@example.com"}}] if name in EXECUTORS | {"Notify"} else []
        )
        for statement in found:
            ends = [arn["Fn::Join"][1][-1] for arn in statement["Resource"]]
            assert sorted(ends) == [":identity/example.com", ":identity/ops@example.com"]


@pytest.mark.long
def test_who_sends_mail_counts_it_and_changes_nothing_else_of_users(allowing: Synthesized) -> None:
    for name in EXECUTORS | {"Notify"}:
        role = allowing.all("IAM::Role")[allowing.functions()[name]["Role"]["Fn::GetAtt"][0]]
        statements = role["Policies"][0]["PolicyDocument"]["Statement"]
        found = [each for each in statements if each["Action"] == "dynamodb:UpdateItem" and "StorageUsers" in json.dumps(each["Resource"])]
        assert [each["Condition"] for each in found] == [{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["mails#*"]}}]


@pytest.mark.long
def test_only_the_api_and_executors_have_the_allowed_targets(allowing: Synthesized) -> None:
    for name, function in allowing.functions().items():
        reach, knows = Settings.parse(environ(function)).reach, name in EXECUTORS | {"Api"}
        assert tuple(reach.arns) == (ALL if knows else ())
        assert reach.sender == ("ops@example.com" if knows or name == "Notify" else "")


@pytest.mark.long
def test_every_wildcard_of_an_allowed_target_is_acknowledged(allowing: Synthesized) -> None:
    report = AwsSolutionsChecks(allowing.stack).validate_scope(allowing.stack)
    assert [(finding.rule_name, finding.violating_resources) for finding in report.violations] == []


@pytest.mark.long
def test_a_wildcard_over_all_machines_covers_their_executions() -> None:
    grants = synthesized("dev", allowed_targets=(f"arn:aws:states:{PLACE}:*",)).grants("ExecuteRetry")
    assert ("states:DescribeExecution", f"arn:aws:states:{PLACE}:*") in grants


def test_the_samples_are_what_the_local_stage_allows() -> None:
    template = Template.from_stack(SamplesStack(app(), settings_for("local")))
    kinds = {
        "lambda": ("AWS::Lambda::Function", {"FunctionName": SAMPLE}),
        "sqs": ("AWS::SQS::Queue", {"QueueName": f"{SAMPLE}-queue"}),
        "sns": ("AWS::SNS::Topic", {"TopicName": SAMPLE}),
        "events": ("AWS::Events::EventBus", {"Name": SAMPLE}),
        "states": ("AWS::StepFunctions::StateMachine", {"StateMachineName": SAMPLE}),
        "cluster": ("AWS::ECS::Cluster", {"ClusterName": SAMPLE}),
        "task-definition": ("AWS::ECS::TaskDefinition", {"Family": SAMPLE}),
    }
    for arn in LOCAL.allowed_targets:
        service, what = arn.split(":")[2], arn.split(":", 5)[5].partition("/")[0]
        kind, properties = kinds.pop(what if service == "ecs" else service)
        assert arn.endswith(next(iter(properties.values())))
        template.has_resource_properties(kind, properties)
    assert kinds == {}
    template.has_resource_properties("AWS::SES::EmailIdentity", {"EmailIdentity": LOCAL.email_sender})


def test_no_stage_on_aws_has_samples(on_aws: Synthesized) -> None:
    assert not on_aws.settings.sample_targets
