"""The option `allowed_actions`: its refusals with line and rule, and the two policies of the executors' roles."""

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from cdk_nag import AwsSolutionsChecks

from infra.options import Options
from infra.settings import settings_for
from lambdas._settings import Settings
from scheduler.targets.denied_actions import PATTERNS
from tests.infra.conftest import Synthesized, as_list, name_of, refusal, synthesized
from tests.infra.test_functions import environ
from tests.infra.test_limits import deployed, refusals

COPY = {"action": "s3:CopyObject", "resources": ("arn:aws:s3:::reports/*",), "iam": ("s3:GetObject", "s3:PutObject")}
ROLE = "arn:aws:iam::123456789012:role/report"
TASK = "arn:aws:ecs:eu-west-1:123456789012:task-definition/report:*"
RUN = {"action": "ecs:RunTask", "resources": (TASK,), "pass_roles": (ROLE,), "owners": ("team-a", "b")}
UPDATE = {"action": "dynamodb:UpdateItem", "resources": ("arn:aws:dynamodb:eu-west-1:123456789012:table/orders",)}
UNKNOWN_TAKER = {"action": "quicksight:CreateDataSource", "resources": ("*",), "pass_roles": (ROLE,)}
EXECUTORS = {"ExecuteOneTime", "ExecuteRecurring", "ExecuteRetry"}
HEAD = '[[allowed_actions]]\naction = "s3:CopyObject"\nresources = ["*"]\n'


def stage(*entries: dict[str, Any], **more: Any) -> Synthesized:
    return synthesized.__wrapped__("prod", allowed_actions=entries, **more)


@pytest.fixture(scope="module")
def allowing() -> Synthesized:
    return stage(COPY, RUN, UPDATE, UNKNOWN_TAKER, customer_key=True)


def statements(made: Synthesized, policy: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = made.one("IAM::ManagedPolicy", policy)["PolicyDocument"]["Statement"]
    return found


# The file of options.


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('action = "s3:copy_object"', "line 5: allowed_actions.action: 's3:copy_object': must be the name in the API, not that of boto3's"),
        ('action = "s4:CopyObject"', "line 5: allowed_actions.action: 's4:CopyObject': there is no service 's4' in boto3"),
        ('action = "s3:CopyObjct"', "s3 has no operation 'CopyObjct'; did you mean CopyObject"),
        ('action = "CopyObject"', "line 5: allowed_actions.action: 'CopyObject' is no operation of a service; such as s3:CopyObject"),
        ("action = 7", "line 5: allowed_actions.action must be a text in quotes, not 7"),
        ('action = "s3:SelectObjectContent"', "answers with a stream of events, which no job can read"),
        ('action = "sts:AssumeRole"', "line 5: allowed_actions.action: 'sts:AssumeRole' is denied to all jobs: identities"),
        ('action = "secretsmanager:GetSecretValue"', "is denied to all jobs: stored secrets"),
        (
            'action = "iotsecuretunneling:OpenTunnel"\nresources = ["*"]\niam = ["iot:OpenTunnel"]',
            "line 7: an element of allowed_actions.iam",
        ),
        ('action = "s3:GetObject"', "line 4: allowed_actions.resources is missing"),
        ('action = "s3:GetObject"\nresources = []', "s3:GetObject has no resources: list ARNs"),
        ('action = "s3:GetObject"\nresources = "*"', "line 6: allowed_actions.resources must be a list of texts"),
        (
            'action = "s3:GetObject"\nresources = [\n"*",\n"reports"]',
            "line 8: an element of allowed_actions.resources: 'reports' is no ARN",
        ),
        (
            'action = "sqs:PurgeQueue"\nresources = ["arn:aws:sqs:*:*:punctual-prod-LanesRetry4C-x"]',
            "names resources of the scheduler itself",
        ),
        (
            'action = "s3:PutObject"\nresources = ["arn:aws:s3:::punctual-prod-storageoutputs-x/*"]',
            "names resources of the scheduler itself",
        ),
        (
            'action = "s3:GetObject"\nresources = ["*"]\niam = ["s3:*"]',
            "line 7: an element of allowed_actions.iam: 's3:*' is no action of IAM",
        ),
        ('action = "s3:GetObject"\nresources = ["*"]\niam = ["iam:CreateUser"]', "'iam:CreateUser' is denied to all jobs"),
        (
            'action = "s3:GetObject"\nresources = ["*"]\npass_roles = ["*"]',
            "line 7: an element of allowed_actions.pass_roles: '*' is no ARN",
        ),
        ('action = "s3:GetObject"\nresources = ["*"]\nowners = ["a b"]', "line 7: an element of allowed_actions.owners: 'a b' is no id"),
        ('action = "s3:GetObject"\nresources = ["*"]\nresource = ["*"]', "the options are action, resources, iam, pass_roles, owners"),
        ('action = "s3:CopyObject"\nresources = ["*"]', "has s3:CopyObject twice: one entry has all its resources and owners"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_line_and_rule(written: Path, line: str, told: str) -> None:
    assert told in refusal(
        written, f"{HEAD}[[allowed_actions]]\n{line}\n[[allowed_actions]]\naction = \"s3:HeadObject\"\nresources = ['*']"
    )


@pytest.mark.parametrize("text", ['allowed_actions = ["s3:CopyObject"]', '[allowed_actions]\naction = "s3:CopyObject"'])
def test_entries_are_tables(written: Path, text: str) -> None:
    assert ", line 1: allowed_actions must be tables: begin each with [[allowed_actions]]" in refusal(written, text)


def test_entries_that_no_environment_of_a_function_holds_are_refused() -> None:
    owners = tuple(f"{number:060}" for number in range(30))
    with pytest.raises(
        ValueError, match="allowed_actions, accounts, email_domains, http_hosts, network, aws_issuers and sso together have at most 1670"
    ):
        Options.model_validate({"allowed_actions": [COPY | {"owners": owners}]})


@pytest.mark.long
def test_entries_reach_the_settings_and_the_functions_that_check_them(allowing: Synthesized) -> None:
    names = ("s3:CopyObject", "ecs:RunTask team-a b", "dynamodb:UpdateItem", "quicksight:CreateDataSource")
    for name, function in allowing.functions().items():
        assert tuple(Settings.parse(environ(function)).reach.actions) == (names if name in EXECUTORS | {"Api"} else ()), name
    options = Options.model_validate({"allowed_actions": [COPY]})
    assert settings_for("dev", options).options == {"allowed_actions": [{name: _listed(each) for name, each in COPY.items()}]}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


# The policies.


@pytest.mark.long
def test_the_executors_get_exactly_the_listed_actions_on_their_resources(allowing: Synthesized) -> None:
    assert statements(allowing, "ActionsAllowed") == [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::reports/*"},
        {"Effect": "Allow", "Action": "ecs:RunTask", "Resource": TASK},
        {"Effect": "Allow", "Action": "dynamodb:UpdateItem", "Resource": UPDATE["resources"][0]},
        {"Effect": "Allow", "Action": "quicksight:CreateDataSource", "Resource": "*"},
        {
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": ROLE,
            "Condition": {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
        },
        {"Effect": "Allow", "Action": "iam:PassRole", "Resource": ROLE},
    ]


@pytest.mark.long
def test_only_executors_have_the_policies_and_the_denials_come_first(allowing: Synthesized, prod: Synthesized) -> None:
    roles = {allowing.functions()[name]["Role"]["Fn::GetAtt"][0] for name in EXECUTORS}
    for policy in allowing.all("IAM::ManagedPolicy").values():
        assert {role["Ref"] for role in policy["Roles"]} == roles
    made = allowing.template["Resources"][allowing.id("IAM::ManagedPolicy", "ActionsAllowed")]
    assert made["DependsOn"] == [allowing.id("IAM::ManagedPolicy", "ActionsDenied")]
    for id in allowing.all("Lambda::Alias"):
        waits = allowing.id("IAM::ManagedPolicy", "ActionsAllowed") in allowing.template["Resources"][id].get("DependsOn", [])
        assert waits is (id[:-8].removesuffix("Live") in EXECUTORS), id
    assert prod.all("IAM::ManagedPolicy") == {}, "a stage without the option has no such policy"


TOKENS = {"AWS::Partition": "aws", "AWS::AccountId": "123456789012", "AWS::Region": "eu-west-1"}


def plain(value: Any) -> str:
    """An ARN as IAM sees it, or the readable name of a resource of the stack."""
    match value:
        case {"Ref": name} if name in TOKENS:
            return TOKENS[name]
        case {"Fn::Join": [_, parts]}:
            return "".join(map(plain, parts))
    return name_of(value)


def denies(made: Synthesized, action: str, resource: str, **given: str) -> bool:
    """Whether the policy denies an action, as IAM decides it."""

    def covers(patterns: Any, text: str) -> bool:
        return any(fnmatchcase(text.lower(), plain(each).lower()) for each in as_list(patterns))

    def applies(statement: dict[str, Any]) -> bool:
        acts = covers(statement["Action"], action) if "Action" in statement else not covers(statement["NotAction"], action)
        on = covers(statement["Resource"], resource) if "Resource" in statement else not covers(statement["NotResource"], resource)
        absent = statement.get("Condition", {}).get("Null", {})
        return acts and on and all(name not in given for name in absent)

    assert all(each["Effect"] == "Deny" for each in statements(made, "ActionsDenied"))
    return any(applies(each) for each in statements(made, "ActionsDenied"))


@pytest.mark.long
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_denied_action_is_denied_by_iam_too(allowing: Synthesized, pattern: str) -> None:
    assert denies(allowing, pattern.replace("*", "Some"), "arn:aws:any:eu-west-1:123456789012:thing")


@pytest.mark.long
def test_denials_leave_executors_what_they_need(allowing: Synthesized) -> None:
    assert not denies(allowing, "secretsmanager:GetSecretValue", "StorageCallbackKey")
    assert not denies(allowing, "kms:Decrypt", "arn:aws:kms:eu-west-1:123456789012:key/1", **{"kms:ViaService": "sqs.amazonaws.com"})
    assert not denies(allowing, "iam:PassRole", "arn:aws:iam::123456789012:role/report")
    assert denies(allowing, "iam:DeleteRole", "arn:aws:iam::123456789012:role/report")
    assert denies(allowing, "iam:CreateUser", "arn:aws:iam::123456789012:user/eve")
    for executor in EXECUTORS:
        role = allowing.all("IAM::Role")[allowing.functions()[executor]["Role"]["Fn::GetAtt"][0]]
        grants = [each for each in role["Policies"][0]["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
        for action, resource in (
            (action, plain(on)) for each in grants for action in as_list(each["Action"]) for on in as_list(each["Resource"])
        ):
            given = {"kms:ViaService": "sqs.amazonaws.com"} if action.startswith("kms:") else {}
            assert not denies(allowing, action, resource, **given), (action, resource)


@pytest.mark.long
def test_without_roles_to_pass_all_of_iam_is_denied() -> None:
    assert denies(stage(COPY), "iam:PassRole", "arn:aws:iam::123456789012:role/report")


@pytest.mark.long
@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("dynamodb:DeleteTable", "arn:aws:dynamodb:eu-west-1:123456789012:table/punctual-prod-StorageJobs4C7573CB-abc"),
        ("sqs:PurgeQueue", "arn:aws:sqs:eu-west-1:123456789012:punctual-prod-LanesRetry4C7573CB-abc"),
        ("lambda:UpdateFunctionCode", "arn:aws:lambda:eu-west-1:123456789012:function:punctual-prod-FetchFunction4C7573CB-abc"),
        ("s3:DeleteObject", "arn:aws:s3:::punctual-prod-storageoutputs4c7573cb-abc/x"),
        ("cognito-idp:AdminSetUserPassword", "AccountsUsers"),
        ("kms:ScheduleKeyDeletion", "EncryptionKey"),
        ("secretsmanager:DeleteSecret", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:punctual/prod/ann/key-x"),
        ("secretsmanager:DeleteSecret", "StorageCallbackKey"),
        ("events:PutEvents", "arn:aws:events:eu-west-1:123456789012:event-bus/punctual-prod"),
        ("apigateway:DELETE", "arn:aws:apigateway:*::/apis/ApiHttp/routes/x"),
        ("cloudformation:DeleteStack", "arn:aws:cloudformation:eu-west-1:123456789012:stack/punctual-prod/1"),
    ],
)
def test_the_resources_of_the_stage_are_denied_whatever_is_listed(allowing: Synthesized, action: str, resource: str) -> None:
    assert denies(allowing, action, resource)


@pytest.mark.long
def test_the_policies_are_clean(allowing: Synthesized) -> None:
    report = AwsSolutionsChecks(allowing.stack).validate_scope(allowing.stack)
    assert [(finding.rule_name, finding.violating_resources) for finding in report.violations] == []


@pytest.mark.long
@pytest.mark.parametrize("entry", [{}, {"owners": ("o" * 36,)}, {"pass_roles": (ROLE,)}, {"iam": ("s3:GetObject", "s3:PutObject")}])
def test_aws_accepts_the_longest_lists(entry: dict[str, Any]) -> None:
    """All policies of a managed kind have at most 6,144 characters.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    """
    names = [name for name in _operations() if not name.startswith("iam:")]
    for count in range(1, len(names)):
        entries = [{"action": name, "resources": ("*",), **entry} for name in names[:count]]
        try:
            chosen = Options.model_validate({"allowed_actions": entries})
        except ValueError:
            break
        fitting = chosen
    made = stage(*(each.model_dump(exclude_unset=True) for each in fitting.allowed_actions))
    assert len(fitting.allowed_actions) > 10 and refusals(made) == []
    for policy in made.all("IAM::ManagedPolicy").values():
        assert len("".join(json.dumps(deployed(made, policy["PolicyDocument"])).split())) <= 6_144


def _operations() -> list[str]:
    verbs = ("Create", "Delete")
    nouns = ("Bucket", "BucketPolicy", "BucketTagging", "BucketWebsite", "BucketReplication", "BucketLifecycle", "BucketCors", "Object")
    put = [f"s3:{verb}{noun}" for verb in ("Get", "Put", "Delete") for noun in nouns[1:]]
    tables = [f"dynamodb:{verb}{noun}" for verb in verbs for noun in ("Table", "Backup")]
    return [*put, *tables, *(f"sqs:{each}" for each in ("SendMessage", "PurgeQueue", "DeleteQueue", "CreateQueue", "GetQueueUrl"))] + [
        f"ec2:{each}Instances" for each in ("Start", "Stop", "Reboot", "Terminate", "Describe", "Run", "Monitor", "Unmonitor")
    ]
