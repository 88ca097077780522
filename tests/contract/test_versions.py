"""The versions of a stage's functions: announced, pruned to two, and rolled back."""

import io
import json
import os
import time
import zipfile
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from infra.settings import DEV
from local.failure import Trouble
from ops import versions
from ops.cloud import Stage
from scheduler.model.job import Lane
from scheduler.pipeline import lead
from scheduler.storage.aws.ledger import DynamoLedger
from tests.conftest import NOW

REGION = "eu-central-1"
NAMES = ("TickFunction", "DispatchFunction")
ROLE = {"Version": "2012-10-17", "Statement": []}


def environment(deployment: str) -> dict[str, Any]:
    return {"Variables": {"PUNCTUAL_RULES": json.dumps({"deployment": deployment})}}


class Formation:
    """A CloudFormation with one stack, which has the two functions and a ledger."""

    def get_paginator(self, call: str) -> "Formation":
        assert call == "list_stack_resources"
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        found = [{"ResourceType": "AWS::Lambda::Function", "LogicalResourceId": name, "PhysicalResourceId": name} for name in NAMES]
        return [{"StackResourceSummaries": [{"ResourceType": "AWS::SQS::Queue"}]}, {"StackResourceSummaries": found}]

    def describe_stacks(self, **_: str) -> dict[str, Any]:
        outputs = [{"OutputKey": "LedgerTable", "OutputValue": "ledger"}]
        return {"Stacks": [{"StackStatus": "UPDATE_COMPLETE", "Outputs": outputs}]}


class OnMoto(Stage):
    def client(self, service: Any) -> Any:
        return Formation() if service == "cloudformation" else super().client(service)


class Deployed:
    """A stage with two functions, each with an alias once it is deployed."""

    def __init__(self) -> None:
        self.stage = OnMoto(DEV, boto3.Session(region_name=REGION))
        self.functions = self.stage.client("lambda")
        role = self.stage.client("iam").create_role(RoleName="any", AssumeRolePolicyDocument=json.dumps(ROLE))["Role"]["Arn"]
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as packed:
            packed.writestr("a.py", "")
        for name in NAMES:
            self.functions.create_function(
                FunctionName=name, Role=role, Code={"ZipFile": code.getvalue()}, Handler="a.b", Runtime="python3.13"
            )
        dynamodb = self.stage.client("dynamodb")
        keys = [("pk", "HASH"), ("sk", "RANGE")]
        dynamodb.create_table(
            TableName="ledger",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        )
        self.ledger = DynamoLedger(dynamodb, "ledger")

    def deploy(self, deployment: str, *names: str) -> None:
        for name in names or NAMES:
            self.functions.update_function_configuration(FunctionName=name, Environment=environment(deployment))
            version = self.functions.publish_version(FunctionName=name)["Version"]
            if self.functions.list_aliases(FunctionName=name)["Aliases"]:
                self.functions.update_alias(FunctionName=name, Name="live", FunctionVersion=version)
            else:
                self.functions.create_alias(FunctionName=name, Name="live", FunctionVersion=version)

    @property
    def live(self) -> dict[str, str]:
        return {each.id: each.deployments[each.live] for each in versions.published(self.stage)}

    @property
    def kept(self) -> list[list[str]]:
        return [list(each.deployments.values()) for each in versions.published(self.stage)]


@pytest.fixture
def deployed(moto: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    yield Deployed()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """No invocation of a version that was published before still runs."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + versions.RUNS_S + 1)


def test_the_live_version_and_the_one_before_are_kept(deployed: Deployed, later: None) -> None:
    for number in range(4):
        before = versions.published(deployed.stage)
        deployed.deploy(f"d{number}")
    assert versions.prune(deployed.stage, before) == 4
    assert versions.prune(deployed.stage, versions.published(deployed.stage)) == 0, "a deployment without changes"
    assert deployed.kept == [["d2", "d3"]] * 2
    assert set(deployed.live.values()) == {"d3"}


def test_a_version_that_may_still_run_is_kept(deployed: Deployed) -> None:
    for number in range(4):
        before = versions.published(deployed.stage)
        deployed.deploy(f"d{number}")
        assert versions.prune(deployed.stage, before) == 0
    assert len(deployed.kept[0]) == 4


def test_a_deployment_after_a_roll_back_keeps_the_version_that_was_live(
    deployed: Deployed, later: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "YES", "1")
    deployed.deploy("good")
    deployed.deploy("bad")
    assert versions.roll_back(deployed.stage) == "good" and set(deployed.live.values()) == {"good"}
    before = versions.published(deployed.stage)
    deployed.deploy("better")
    assert versions.prune(deployed.stage, before) == 2
    assert deployed.kept == [["good", "better"]] * 2


def test_a_roll_back_can_be_taken_back(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "YES", "1")
    deployed.deploy("one")
    deployed.deploy("two")
    assert [versions.roll_back(deployed.stage) for _ in range(2)] == ["one", "two"]
    assert set(deployed.live.values()) == {"two"}


def test_a_roll_back_moves_each_alias_of_a_function(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entries of the option `templates` are aliases of one function."""
    monkeypatch.setitem(os.environ, "YES", "1")
    deployed.deploy("one")
    deployed.deploy("two")
    latest = deployed.functions.get_alias(FunctionName="TickFunction", Name="live")["FunctionVersion"]
    deployed.functions.create_alias(FunctionName="TickFunction", Name="shop", FunctionVersion=latest)
    versions.roll_back(deployed.stage)
    aliases = deployed.functions.list_aliases(FunctionName="TickFunction")["Aliases"]
    assert {each["Name"]: each["FunctionVersion"] for each in aliases} == dict.fromkeys(("live", "shop"), str(int(latest) - 1))


def test_versions_of_different_deployments_are_no_roll_back(deployed: Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "YES", "1")
    deployed.deploy("one")
    with pytest.raises(Trouble, match="no version of punctual-dev to return to"):
        versions.roll_back(deployed.stage)
    deployed.deploy("two")
    deployed.deploy("three", "TickFunction")
    with pytest.raises(Trouble, match="different deployments: one, two"):
        versions.roll_back(deployed.stage)
    assert deployed.live == {"TickFunction": "three", "DispatchFunction": "two"}


def test_an_announced_deployment_makes_dispatch_publish_for_cold_executors(deployed: Deployed) -> None:
    versions.announce(deployed.stage, versions.published(deployed.stage), NOW)  # the first deployment: there is nothing to announce
    deployed.deploy("one")
    for lane in Lane:
        deployed.ledger.report_latency(lane, "0", 20, NOW, deployment="one")
    versions.announce(deployed.stage, versions.published(deployed.stage), NOW)
    for lane in Lane:
        for delayed in (False, True):
            measured = deployed.ledger.latency(lane, NOW, deployment="one", delayed=delayed)
            assert lead.lead(measured, 250, 5_000) == 2_500
    assert deployed.ledger.latency(Lane.RETRY, NOW + versions.ANNOUNCED_MS, deployment="one") is None
