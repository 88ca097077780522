"""The option `network`: its refusals, and what a stage with it has more than one without it."""

from pathlib import Path
from typing import Any

import pytest
from cdk_nag import AwsSolutionsChecks

from infra.account import USUAL
from infra.fetch import INTERFACES
from lambdas._settings import Settings
from tests.infra.conftest import Synthesized, refusal, synthesized
from tests.infra.test_functions import environ

SUBNETS, GROUPS, ALLOW = ("subnet-0a1b2c3d4e5f67890",), ("sg-0a1b2c3d4e5f67890",), ("10.0.0.0/16", "*.internal.example.com")
NETWORK: dict[str, Any] = {"subnets": SUBNETS, "security_groups": GROUPS, "allow": ALLOW}
PRIVATE = "FetchPrivate"


@pytest.fixture(scope="module")
def connected() -> Synthesized:
    made: Synthesized = synthesized.__wrapped__("prod", network=NETWORK, http_hosts=("hooks.example.com",), account_concurrency=USUAL)
    return made


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("subnets = []", "line 2: network.subnets: has 1 to 16 ids, not 0"),
        ('subnets = ["10.0.0.0/24"]', "line 2: network.subnets: '10.0.0.0/24' is no id; such as subnet-0a1b2c3d4e5f67890"),
        (f"security_groups = {['sg-0a1b2c3d'] * 6}", "line 3: network.security_groups: has 1 to 5 ids, not 6"),
        ("allow = []", "line 4: network.allow: is empty"),
        ('allow = ["10.0.0.1/16"]', "line 4: an element of network.allow: '10.0.0.1/16' is no range"),
        ('allow = ["169.254.169.254"]', "which no job may call"),
        ('vpc = "vpc-1"', "there is no option network.vpc"),
    ],
)
def test_a_wrong_network_is_refused_with_line_and_rule(written: Path, line: str, reason: str) -> None:
    lines = {
        "subnets": 'subnets = ["subnet-0a1b2c3d"]',
        "security_groups": 'security_groups = ["sg-0a1b2c3d"]',
        "allow": 'allow = ["10.0.0.0/8"]',
    }
    text = "\n".join({**lines, line.partition(" ")[0]: line}.values())
    assert reason in refusal(written, f"[network]\n{text}")


def test_the_stage_has_one_more_function_and_nothing_at_rest(connected: Synthesized) -> None:
    without = synthesized("prod")
    assert connected.functions().keys() - without.functions().keys() == {PRIVATE}
    kinds = {resource["Type"] for resource in connected.template["Resources"].values()}
    assert kinds == {resource["Type"] for resource in without.template["Resources"].values()}
    function = connected.functions()[PRIVATE]
    assert function["VpcConfig"] == {"SubnetIds": [*SUBNETS], "SecurityGroupIds": [*GROUPS], "Ipv6AllowedForDualStack": False}
    assert function["Handler"] == "lambdas.fetch.handler" and "ProvisionedConcurrencyConfig" not in str(connected.template)
    connecting = [name for name, each in connected.functions().items() if "VpcConfig" in each]
    assert connecting == [PRIVATE]


def test_only_executors_call_the_private_network(connected: Synthesized) -> None:
    alias = {"Ref": connected.id("Lambda::Alias", "FetchPrivateLive")}
    callers = [
        name
        for name in connected.functions()
        if any(action == "lambda:InvokeFunction" and resource == "FetchPrivateLive" for action, resource in connected.grants(name))
    ]
    assert sorted(callers) == ["ExecuteOneTime", "ExecuteRecurring", "ExecuteRetry"]
    for name in callers:
        assert connected.functions()[name]["Environment"]["Variables"]["PUNCTUAL_FETCH_PRIVATE_FUNCTION"] == alias


def test_only_the_private_function_has_the_list_and_no_other_reach(connected: Synthesized) -> None:
    functions = connected.functions()
    private, public = (Settings.parse(environ(functions[name])).reach for name in (PRIVATE, "Fetch"))
    assert (private.network, private.hosts, private.arns, private.sender) == (ALLOW, (), (), "")
    assert (public.network, public.hosts) == ((), ("hooks.example.com",))
    assert Settings.parse(environ(functions["Api"])).reach.network == ALLOW


def test_the_code_in_the_private_network_may_only_write_its_log(connected: Synthesized) -> None:
    grants = connected.grants(PRIVATE)
    assert {action for action, _ in grants if not action.startswith("logs:")} == set(INTERFACES)
    role = connected.all("IAM::Role")[connected.functions()[PRIVATE]["Role"]["Fn::GetAtt"][0]]
    denied = [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
    assert [(each["Action"], each["Condition"]) for each in denied] == [("ec2:*", {"Null": {"lambda:SourceFunctionArn": "false"}})]


def test_it_takes_its_executions_from_the_share_of_fetch(connected: Synthesized) -> None:
    without, own = (made.settings.reserved for made in (synthesized("prod", account_concurrency=USUAL), connected))
    functions = connected.functions()
    assert (own["fetch"], own["fetch-private"]) == (
        functions["Fetch"]["ReservedConcurrentExecutions"],
        functions[PRIVATE]["ReservedConcurrentExecutions"],
    )
    assert sum(own.values()) == sum(without.values()) and own["fetch-private"] > 0


def test_cdk_nag_finds_nothing_in_a_stage_with_a_private_network() -> None:
    made = synthesized.__wrapped__("dev", network=NETWORK)
    report = AwsSolutionsChecks(made.stack).validate_scope(made.stack)
    assert [(finding.rule_name, finding.violating_resources) for finding in report.violations] == []
