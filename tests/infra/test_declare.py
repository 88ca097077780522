"""The option `templates`: one function, an alias and an export for each entry, and the grants of the guide."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from infra.declare import TIMEOUT
from infra.options import LONGEST_TEMPLATE, MOST_TEMPLATES, Options
from infra.targets import FUNCTIONS
from lambdas._settings import Settings
from scheduler.model.declaration import TemplateEntry
from scheduler.storage.aws.keys import DECLARED
from scheduler.targets import arns
from tests.infra.conftest import ROOT, Synthesized, name_of, refusal, synthesized
from tests.infra.test_functions import environ

PAGE = (ROOT / "docs/guides/templates.md").read_text()
ENTRIES = ({"name": "shop", "owner": "team-shop"}, {"name": "web-shop", "owner": "team-web", "targets": True})


@pytest.fixture(scope="module")
def stack() -> Synthesized:
    return synthesized.__wrapped__("prod", templates=ENTRIES)


def test_there_is_no_provider_by_default(any_stage: Synthesized) -> None:
    assert "Declare" not in any_stage.functions() and not any_stage.all("Lambda::Alias").keys() & {"DeclareOf"}
    assert not [name for name in any_stage.template["Outputs"] if name.startswith(("Declare", "Templates"))]


def test_each_entry_has_an_alias_of_the_live_version_and_an_export(stack: Synthesized) -> None:
    live = stack.one("Lambda::Alias", "DeclareLive")
    for name, id in (("shop", "Shop"), ("web-shop", "WebShop")):
        alias = stack.one("Lambda::Alias", f"DeclareOf{id}")
        assert (alias["Name"], alias["FunctionVersion"]) == (name, live["FunctionVersion"])
        output = stack.template["Outputs"][f"Templates{id}"]
        assert output["Export"] == {"Name": f"punctual-prod-templates-{name}"}
        assert output["Value"] == {"Ref": stack.id("Lambda::Alias", f"DeclareOf{id}")}
    assert stack.template["Outputs"]["DeclareFunction"]


def test_the_function_knows_the_owner_of_each_alias(stack: Synthesized) -> None:
    settings = Settings.parse(environ(stack.functions()["Declare"]))
    assert settings.templates == {
        "shop": TemplateEntry("shop", "team-shop"),
        "web-shop": TemplateEntry("web-shop", "team-web", targets=True),
    }
    assert json.loads(settings.api_function) == {"Ref": stack.id("Lambda::Alias", "ApiLive")}
    assert settings.ledger_table and settings.api_url


def test_it_ends_before_cloudformation_stops_waiting(stack: Synthesized) -> None:
    assert stack.functions()["Declare"]["Timeout"] == TIMEOUT.to_seconds() < 60
    assert "ServiceTimeout: 60" in PAGE


def test_lambda_repeats_no_call_of_an_alias(stack: Synthesized) -> None:
    configs = {name: each for name, each in stack.all("Lambda::EventInvokeConfig").items() if name.startswith("DeclareOf")}
    assert len(configs) == 2
    assert {(each["MaximumRetryAttempts"], each["MaximumEventAgeInSeconds"]) for each in configs.values()} == {(0, 60)}


def test_the_function_has_the_grants_of_the_guide(stack: Synthesized) -> None:
    written = re.findall(r"^\| `([\w:]+)` \| `([^`]+)` \|", PAGE.partition("## Grants")[2], re.MULTILINE)
    assert set(written) == set(stack.grants("Declare")) and len(written) == len(set(written))


def test_it_reads_and_writes_only_declarations_in_the_ledger(stack: Synthesized) -> None:
    role = stack.all("IAM::Role")[stack.functions()["Declare"]["Role"]["Fn::GetAtt"][0]]
    statements = [each for each in role["Policies"][0]["PolicyDocument"]["Statement"] if "StorageLedger" in str(each["Resource"])]
    assert [each["Condition"] for each in statements] == [{"ForAllValues:StringLike": {"dynamodb:LeadingKeys": [f"{DECLARED}*"]}}]


def test_nobody_but_the_owners_account_may_call_it(stack: Synthesized) -> None:
    """There is no resource policy: IAM alone decides, by the policies of roles in the account."""
    called = [name_of(each["FunctionName"]) for each in stack.all("Lambda::Permission").values()]
    assert called and not [name for name in called if name.startswith("Declare")]


def test_no_job_may_call_it(stack: Synthesized) -> None:
    """A job with a forged event would act for the owner of an entry."""
    assert "Declare" in FUNCTIONS
    assert arns.is_own("arn:aws:lambda:eu-west-1:123456789012:function:punctual-prod-DeclareFunction0A1B-x:shop")


def refused(entries: Any) -> str:
    with pytest.raises(ValidationError) as error:
        Options.model_validate({"templates": entries})
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Shop", "small letters"),
        ("web--shop", "small letters"),
        ("live", "is not valid"),
        ("7", "small letters"),
        ("a" * (LONGEST_TEMPLATE + 1), f"at most {LONGEST_TEMPLATE}"),
    ],
)
def test_a_wrong_name_is_refused_with_the_rule(name: str, rule: str) -> None:
    assert rule in refused([{"name": name, "owner": "team-shop"}])


def test_two_entries_have_different_names_also_without_hyphens() -> None:
    assert "has shop twice" in refused([{"name": "shop", "owner": "team-1"}, {"name": "shop", "owner": "team-2"}])
    assert "has web-1 twice" in refused([{"name": "web1", "owner": "team-1"}, {"name": "web-1", "owner": "team-2"}])
    assert "at most 20" in refused([{"name": f"a{number}b", "owner": "team-1"} for number in range(MOST_TEMPLATES + 1)])


def test_a_file_with_a_wrong_entry_names_the_line(written: Path) -> None:
    text = '[[templates]]\nname = "shop"\nowner = "team shop"\n'
    assert "line 3: templates.owner: 'team shop' is no id of an owner" in refusal(written, text)
    assert "line 1: templates must be tables: begin each with [[templates]]" in refusal(written, 'templates = ["shop"]')
    assert "templates.owner is missing" in refusal(written, '[[templates]]\nname = "shop"\n')


@pytest.mark.long
def test_the_longest_entries_fit_in_the_environment() -> None:
    most = [{"name": f"{number:02}".rjust(LONGEST_TEMPLATE, "a"), "owner": "o" * 64, "targets": True} for number in range(MOST_TEMPLATES)]
    made = synthesized.__wrapped__("prod", templates=most, tracing=True, customer_key=True)
    assert sum(len(name) + len(value) for name, value in environ(made.functions()["Declare"]).items()) < 4_000
