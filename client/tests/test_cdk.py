"""The constructs of the CDK: their templates have the fields of a request, and the provider of the stage."""

from datetime import date, datetime, timezone
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

from punctual.cdk import PunctualCalendar, PunctualMonitor, PunctualTarget, PunctualTask

TOKEN = {"Fn::ImportValue": "punctual-prod-templates-shop"}


@pytest.fixture
def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "shop")


def resources(stack: cdk.Stack) -> dict[str, Any]:
    """The resources of the template by type."""
    app = stack.node.root
    assert isinstance(app, cdk.App)
    template = app.synth().get_stack_by_name("shop").template
    return {each["Type"]: each for each in template["Resources"].values()} | {"Outputs": template.get("Outputs", {})}


def test_a_task_has_the_fields_of_a_request(stack: cdk.Stack) -> None:
    task = PunctualTask(
        stack,
        "Nightly",
        template="shop",
        key="nightly",
        name="Nightly report",
        cron="30 2 * * *",
        time_zone="Europe/Berlin",
        exclude=[date(2030, 12, 24), "holidays"],
        end=datetime(2031, 1, 1, tzinfo=timezone.utc),
        http={"url": "https://example.com/report", "body": {"count": 3, "all": True}},
        max_attempts=3,
        description=None,
    )
    cdk.CfnOutput(stack, "FirstRun", value=task.next_run_at)
    cdk.CfnOutput(stack, "TaskId", value=task.task_id)
    found = resources(stack)
    made = found["Custom::PunctualTask"]
    assert made["Properties"] == {
        "ServiceToken": TOKEN,
        "ServiceTimeout": "60",
        "key": "nightly",
        "name": "Nightly report",
        "schedule": {
            "cron": "30 2 * * *",
            "time_zone": "Europe/Berlin",
            "exclude": ["2030-12-24", "holidays"],
            "end": "2031-01-01T00:00:00.000Z",
        },
        "type": "http",
        "payload": '{"url":"https://example.com/report","body":{"count":3,"all":true}}',
        "max_attempts": 3,
    }
    assert [each["Value"]["Fn::GetAtt"][1] for each in found["Outputs"].values()] == ["NextRunAt", "Id"]
    assert made["DeletionPolicy"] == "Delete"


def test_a_payload_may_name_resources_of_the_stack(stack: cdk.Stack) -> None:
    code = lambda_.Code.from_inline("def handler(event, context): pass")
    report = lambda_.Function(stack, "Report", runtime=lambda_.Runtime.PYTHON_3_13, handler="index.handler", code=code)
    payload = {"function": report.function_arn, "input": {"count": 3}}
    PunctualTask(stack, "Nightly", template="shop", key="n", name="N", cron="@daily", type="lambda", payload=payload)
    text = resources(stack)["Custom::PunctualTask"]["Properties"]["payload"]
    assert text["Fn::Join"][1][0] == '{"function":"' and text["Fn::Join"][1][-1] == '","input":{"count":3}}'


def test_a_retained_task_stays(stack: cdk.Stack) -> None:
    PunctualTask(stack, "Nightly", template="shop", stage="dev", key="n", name="N", cron="@daily", removal_policy=cdk.RemovalPolicy.RETAIN)
    made = resources(stack)["Custom::PunctualTask"]
    assert made["DeletionPolicy"] == made["UpdateReplacePolicy"] == "Retain"
    assert made["Properties"]["ServiceToken"] == {"Fn::ImportValue": "punctual-dev-templates-shop"}


def test_a_calendar_is_made_before_the_task_that_uses_it(stack: cdk.Stack) -> None:
    closed = PunctualCalendar(stack, "Closed", template="shop", name="closed", dates=[date(2030, 12, 24)], source="us")
    PunctualTask(stack, "Nightly", template="shop", key="n", name="N", cron="@daily", message="m", exclude=[closed.name])
    found = resources(stack)
    (used,) = found["Custom::PunctualTask"]["Properties"]["schedule"]["exclude"]
    assert used["Fn::GetAtt"][1] == "Key"
    properties = found["Custom::PunctualCalendar"]["Properties"]
    assert {name: properties[name] for name in ("name", "dates", "source")} == {"name": "closed", "dates": ["2030-12-24"], "source": "us"}


def test_a_monitor_and_a_target_have_the_fields_of_a_request(stack: cdk.Stack) -> None:
    beat = PunctualMonitor(stack, "Beat", template="shop", key="backup", name="Backup", cron="0 3 * * *", grace_seconds=600)
    cdk.CfnOutput(stack, "Ping", value=beat.ping_url)
    defaults = {"url": "https://example.com/orders", "timeout_seconds": 20}
    target = PunctualTarget(stack, "Orders", template="platform", name="orders", kind="http", defaults=defaults, rate=5)
    cdk.CfnOutput(stack, "Target", value=target.name)
    found = resources(stack)
    monitor = found["Custom::PunctualMonitor"]["Properties"]
    assert (monitor["schedule"], monitor["grace_seconds"], "period_seconds" in monitor) == ({"cron": "0 3 * * *"}, 600, False)
    orders = found["Custom::PunctualTarget"]["Properties"]
    assert (orders["defaults"], orders["rate"]) == ('{"url":"https://example.com/orders","timeout_seconds":20}', 5)
    assert {each["Value"]["Fn::GetAtt"][1] for each in found["Outputs"].values()} == {"PingUrl", "Key"}


def test_an_unknown_field_is_refused_before_the_deployment(stack: cdk.Stack) -> None:
    fields: Any = {"timezone": "Europe/Berlin", "cron": "0 2 * * *"}
    with pytest.raises(TypeError, match="'timezone' is not a known field; did you mean 'time_zone'"):
        PunctualTask(stack, "Task", template="shop", key="a", **fields)
    with pytest.raises(TypeError, match="'raet' is not a known field"):
        PunctualTarget(stack, "Target", template="shop", name="a", kind="http", **{"raet": 1})
