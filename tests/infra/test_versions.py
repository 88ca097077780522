"""Each function is called by its alias `live`, which a deployment moves to the version that it has published."""

from dataclasses import replace
from typing import Any

import pytest
from aws_cdk import aws_lambda as lambda_

from infra import bundle
from infra.console import ConsoleStack
from infra.stack import PunctualStack
from lambdas._settings import Settings
from tests.infra.conftest import Synthesized, app, name_of
from tests.infra.test_functions import environ

pytestmark = pytest.mark.long


def versions(stack: Synthesized) -> dict[str, str]:
    """The id of the published version of each function: another id is another version."""
    found = {}
    for name in stack.functions():
        alias = stack.one("Lambda::Alias", f"{name}Live")
        assert (alias["Name"], name_of(alias["FunctionName"])) == ("live", f"{name}Function")
        found[name], attribute = alias["FunctionVersion"]["Fn::GetAtt"]
        assert attribute == "Version"
    return found


def deployments(stack: Synthesized) -> set[str]:
    """The names of the deployment in the environments of all functions: `make rollback` returns to the versions of one deployment."""
    return {Settings.parse(environ(function)).rules.deployment for function in stack.functions().values()}


def again(stack: Synthesized, **settings: Any) -> Synthesized:
    """The same stage, synthesized again with other settings."""
    changed = replace(stack.settings, **settings)
    made = PunctualStack(new := app(), changed)
    ConsoleStack(new, changed)
    return Synthesized(changed, made, new.synth().get_stack_by_name(made.stack_name).template)


def test_each_alias_points_to_the_version_of_its_function(any_stage: Synthesized) -> None:
    published = any_stage.all("Lambda::Version")
    for name, version in versions(any_stage).items():
        assert name_of(published[version]["FunctionName"]) == f"{name}Function"
    assert len(published) == len(any_stage.functions())


def test_the_version_before_stays_and_that_of_a_failed_deployment_goes(any_stage: Synthesized) -> None:
    """AWS publishes no version twice: a deployment that is repeated after a failure would fail for good."""
    for version in versions(any_stage).values():
        assert any_stage.template["Resources"][version]["DeletionPolicy"] == "RetainExceptOnCreate"


def test_executors_change_after_dispatch_which_reads_their_latencies(any_stage: Synthesized) -> None:
    for lane in ("OneTime", "Recurring", "Retry"):
        after = any_stage.template["Resources"][any_stage.id("Lambda::Alias", f"Execute{lane}Live")]["DependsOn"]
        assert any_stage.id("Lambda::Alias", "DispatchLive") in after


def test_a_deployment_without_changes_publishes_nothing(prod: Synthesized) -> None:
    repeated = again(prod)
    assert versions(repeated) == versions(prod)
    assert len(deployments(repeated) | deployments(prod)) == 1


@pytest.mark.parametrize("change", ["code", "memory", "rules"])
def test_each_change_publishes_a_new_version_of_every_function(prod: Synthesized, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {}
    if change == "memory":
        settings["memory_mb"] = {**prod.settings.memory_mb, "tick": 1_024}
    elif change == "rules":
        settings["rules"] = replace(prod.settings.rules, raw_http=False)
    else:
        monkeypatch.setattr(bundle, "code", lambda stack, **named: lambda_.Code.from_asset("lint"))
    changed = again(prod, **settings)
    before, after = versions(prod), versions(changed)
    assert not {name for name in before if before[name] == after[name]}
    (one,), (other,) = deployments(prod), deployments(changed)
    assert one != other


def test_every_caller_uses_the_alias(any_stage: Synthesized) -> None:
    """An ARN without an alias would call the code that is being deployed, with the environment of another version."""
    # The trigger of tokens is inline, without an environment of a version: it changes with the template in one step.
    functions = {id for id, function in any_stage.all("Lambda::Function").items() if "ZipFile" not in function["Code"]}
    may_name = {f"AWS::{kind}" for kind in ("Lambda::Version", "Lambda::Alias", "Lambda::EventInvokeConfig", "CloudWatch::Dashboard")}
    for id, resource in any_stage.template["Resources"].items():
        if resource["Type"] not in may_name:
            named = {key: value for key, value in resource.get("Properties", {}).items() if key != "Dimensions"}  # of an alarm
            assert not functions & set(references(named)), id


def references(value: Any) -> list[str]:
    match value:
        case {"Ref": id} | {"Fn::GetAtt": [id, _]}:
            return [id]
        case dict():
            return [id for each in value.values() for id in references(each)]
        case list():
            return [id for each in value for id in references(each)]
    return []
