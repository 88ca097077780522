"""The role by which a workflow deploys a stage: who may take it, and its rights, those of `make deploy` and `make doctor`."""

import json
import re
from typing import Any

import pytest
import yaml

from infra import names
from tests.infra.cloudformation import GOVCLOUD, REGIONS, lint
from tests.infra.conftest import ROOT, Synthesized, as_list

FILE = ROOT / "ops/deploy-role.yaml"
TEXT = FILE.read_text()
TEMPLATE: dict[str, Any] = yaml.safe_load(TEXT)
GUIDE = (ROOT / "docs/guides/deploy-from-ci.md").read_text()
RIGHTS = (ROOT / "docs/get-started/aws.md").read_text().partition("### Rights\n")[2].partition("\n## ")[0]
TOKEN = "token.actions.githubusercontent.com"


VALUES = {
    **{"Repository": "acme/jobs", "Stage": "staging", "Qualifier": "hnb659fds"},
    **{"Provider": f"arn:aws:iam::123456789012:oidc-provider/{TOKEN}", "AWS::Partition": "aws", "AWS::AccountId": "123456789012"},
}


def resolved(value: Any) -> Any:
    """The value as CloudFormation resolves it for the stage `staging` of the repository `acme/jobs`, with a provider that exists."""
    match value:
        case {"Fn::Sub": text}:
            return re.sub(r"\$\{([\w:]+)\}", lambda found: VALUES[found[1]], text)
        case {"Fn::If": ["CreatesProvider", _, otherwise]}:
            return resolved(otherwise)
        case {"Ref": name}:
            return VALUES[name]
        case dict():
            return {key: resolved(each) for key, each in value.items()}
        case list():
            return [resolved(each) for each in value]
    return value


@pytest.fixture
def role() -> dict[str, Any]:
    found: dict[str, Any] = resolved(TEMPLATE["Resources"]["Role"]["Properties"])
    (policy,) = found["Policies"]
    return found | {"Policy": policy["PolicyDocument"]}


def granted(role: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (action, resource)
        for each in role["Policy"]["Statement"]
        for action in as_list(each["Action"])
        for resource in as_list(each["Resource"])
    ]


def test_only_the_environment_of_the_repository_takes_the_role(role: dict[str, Any]) -> None:
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Action"] == "sts:AssumeRoleWithWebIdentity" and trust["Principal"]["Federated"].endswith(f"oidc-provider/{TOKEN}")
    assert trust["Condition"] == {
        "StringEquals": {f"{TOKEN}:aud": "sts.amazonaws.com", f"{TOKEN}:sub": "repo:acme/jobs:environment:staging"}
    }


def test_the_role_has_the_documented_rights_of_a_deployment_and_no_others(role: dict[str, Any]) -> None:
    cells = re.findall(r"^\| `make (?:deploy|doctor)` \| (.*) \|$", RIGHTS, re.MULTILINE)
    documented, service = set(), ""
    for word in re.findall(r"`([a-z0-9-]+:[A-Z]\w+|[A-Z][A-Za-z]+)`", " ".join(cells)):
        service, _, action = word.rpartition(":") if ":" in word else (service, "", word)
        documented.add(f"{service}:{action}")
    assert {action for action, _ in granted(role)} == documented


def test_the_role_reaches_its_stage_alone(role: dict[str, Any]) -> None:
    others = {resource for action, resource in granted(role) if "staging" not in resource}
    assert others == {
        "arn:aws:iam::123456789012:role/cdk-hnb659fds-*",
        "arn:aws:ssm:*:123456789012:parameter/cdk-bootstrap/*",
        "*",
    }
    assert [action for action, resource in granted(role) if resource == "*"] == ["lambda:GetAccountSettings"]


def test_the_names_in_the_role_are_those_of_the_stage(prod: Synthesized) -> None:
    assert f"punctual-{prod.settings.stage}" == prod.settings.stack
    assert [id for id in prod.all("DynamoDB::GlobalTable") if id.startswith("StorageLedger")], "CloudFormation names the table after it"
    assert TEMPLATE["Parameters"]["Stage"]["MaxLength"] == names.MOST


def test_the_account_has_one_provider_for_all_stages() -> None:
    provider = TEMPLATE["Resources"]["GitHub"]
    assert provider["Condition"] == "CreatesProvider" and provider["DeletionPolicy"] == "Retain"
    assert provider["Properties"] == {"Url": f"https://{TOKEN}", "ClientIdList": ["sts.amazonaws.com"]}


def test_the_guide_names_the_parameters_and_the_variable() -> None:
    assert "--template-file ops/deploy-role.yaml" in GUIDE
    assert all(f"{name}=" in GUIDE for name in TEMPLATE["Parameters"] if name != "Qualifier")
    workflow = (ROOT / ".github/workflows/deploy.yml").read_text()
    assert "vars.AWS_ROLE" in workflow and "`AWS_ROLE`" in GUIDE and "environment: ${{ inputs.stage }}" in workflow
    assert json.dumps("repo:acme/jobs:environment:staging") in GUIDE


@pytest.mark.long
def test_cfn_lint_finds_nothing_in_the_role() -> None:
    assert lint([FILE], (*REGIONS, GOVCLOUD)) == ""
