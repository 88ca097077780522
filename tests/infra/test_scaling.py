"""The counting of changes, and the alarms that keep pollers ready."""

from dataclasses import replace

import pytest

from infra import settings
from lambdas._settings import Settings
from scheduler.insight import metrics, scaling
from scheduler.model.job import Lane
from scheduler.model.rules import Rules
from tests.infra.conftest import Synthesized, name_of
from tests.infra.test_functions import environ
from tests.simulation import limits


@pytest.mark.parametrize("table", ["Jobs", "Tasks"])
def test_project_reads_both_streams_in_shard_order(any_stage: Synthesized, table: str) -> None:
    mapping = any_stage.one("Lambda::EventSourceMapping", f"Project{table}")
    assert mapping["EventSourceArn"]["Fn::GetAtt"] == [any_stage.id("DynamoDB::GlobalTable", f"Storage{table}"), "StreamArn"]
    assert any_stage.called(mapping["FunctionName"]) == "Project"
    assert (mapping["StartingPosition"], mapping["ParallelizationFactor"]) == ("TRIM_HORIZON", 1)
    assert "MaximumRetryAttempts" not in mapping and "MaximumRecordAgeInSeconds" not in mapping, (
        "a batch is retried as long as the stream keeps it"
    )


def test_events_name_their_shard_if_streams_have_several(any_stage: Synthesized) -> None:
    for table in ("Jobs", "Tasks"):
        window = any_stage.one("Lambda::EventSourceMapping", f"Project{table}").get("TumblingWindowInSeconds")
        assert (window is None) == any_stage.settings.rules.one_shard == (any_stage.settings.stage == "local")


def test_project_writes_counters_and_counts_members_of_groups(any_stage: Synthesized) -> None:
    granted = {resource for action, resource in any_stage.grants("Project") if action.startswith("dynamodb:")}
    assert granted - {"*"} == {"StorageCounters", "StorageJobs", "StorageLedger", "StorageTasks"}
    assert ("dynamodb:UpdateItem", "StorageCounters") in any_stage.grants("Project")
    on_tables = {action for action, resource in any_stage.grants("Project") if resource in ("StorageJobs", "StorageTasks")}
    streams, groups = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"), ("BatchGetItem", "GetItem", "UpdateItem")
    assert on_tables == {f"dynamodb:{verb}" for verb in (*streams, *groups, "PartiQLInsert")}


def test_no_lane_keeps_pollers_ready_until_an_alarm_rings(any_stage: Synthesized) -> None:
    """AWS bills pollers as long as a mapping has them, so the template has none."""
    for lane in ("OneTime", "Recurring", "Retry"):
        mapping = any_stage.one("Lambda::EventSourceMapping", f"Execute{lane}Lane")
        assert "ProvisionedPollerConfig" not in mapping and "ScalingConfig" in mapping


def test_only_prod_lets_alarms_keep_pollers_ready(any_stage: Synthesized) -> None:
    scales = any_stage.settings.stage == "prod"
    assert bool(any_stage.settings.rules.most_pollers) == scales
    assert (
        ("Provision" in any_stage.functions())
        == scales
        == any(id.startswith("ProvisionScaling") for id in any_stage.all("CloudWatch::Alarm"))
    )
    assert any("EventSourceMapping" in action for action, _ in any_stage.grants("Scale")) == scales


def called_by(stack: Synthesized) -> dict[str, str]:
    """The alarms that call provision when they begin to ring, with the metric of each."""
    alarms = {id[:-8]: alarm for id, alarm in stack.all("CloudWatch::Alarm").items()}
    calls = {id: [name_of(action) for action in alarm["AlarmActions"]] for id, alarm in alarms.items()}
    return {id: alarms[id]["MetricName"] for id, called in calls.items() if "ProvisionLive" in called}


def test_required_executors_and_the_ages_of_lanes_call_provision(prod: Synthesized) -> None:
    age = "ApproximateAgeOfOldestMessage"
    assert called_by(prod) == {"ProvisionScaling": metrics.REQUIRED, "AlarmsOneTimeAge": age, "AlarmsRecurringAge": age}
    for id in called_by(prod):
        assert "ProvisionLive" not in map(name_of, prod.one("CloudWatch::Alarm", id).get("OKActions", [])), "scale lowers, slowly"


def test_each_alarm_that_calls_provision_may_do_so(prod: Synthesized) -> None:
    permissions = [each for each in prod.all("Lambda::Permission").values() if name_of(each["FunctionName"]) == "ProvisionLive"]
    assert sorted(name_of(each["SourceArn"]) for each in permissions) == sorted(called_by(prod))
    for each in permissions:
        assert (each["Action"], each["Principal"]) == ("lambda:InvokeFunction", "lambda.alarms.cloudwatch.amazonaws.com")
        assert each["SourceAccount"] == {"Ref": "AWS::AccountId"}


def test_the_scaling_alarm_rings_a_minute_after_more_is_required(prod: Synthesized) -> None:
    alarm = prod.one("CloudWatch::Alarm", "ProvisionScaling")
    assert (alarm["Namespace"], alarm["Statistic"], alarm["Dimensions"]) == (
        "Punctual/prod",
        "Maximum",
        [{"Name": "service", "Value": "scale"}],
    )
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", scaling.FOLLOWED)
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (60, 1, "notBreaching")


@pytest.mark.parametrize("name", ["Provision", "Scale"])
def test_provision_and_scale_have_the_mappings_and_their_limits(prod: Synthesized, name: str) -> None:
    settings = Settings.parse(environ(prod.functions()[name]))
    for lane, mapping in (("OneTime", settings.one_time_mapping), ("Recurring", settings.recurring_mapping)):
        assert prod.id("Lambda::EventSourceMapping", f"Execute{lane}Lane") in mapping
    assert settings.rules.most_pollers.keys() == settings.rules.concurrency.keys() == {Lane.ONE_TIME, Lane.RECURRING}
    for lane, most in settings.rules.most_pollers.items():
        assert scaling.LEAST <= most <= scaling.MOST
        assert settings.rules.concurrency[lane] == prod.settings.concurrency[lane] == most * scaling.EXECUTORS_EACH


@pytest.mark.parametrize("most", [{Lane.ONE_TIME: 1}, {Lane.RECURRING: 201}, {Lane.RETRY: 20}])
def test_pollers_that_aws_would_refuse_are_no_settings(most: dict[Lane, int]) -> None:
    with pytest.raises(ValueError, match="most_pollers"):
        replace(settings.DEV, rules=Rules(most_pollers=most))


def test_available_executors_are_the_sum_of_the_lanes(any_stage: Synthesized) -> None:
    told = [Settings.parse(environ(any_stage.functions()[name])).rules.executors for name in ("Api", "Scale")]
    assert told == [{"local": 60, "dev": 100, "prod": 1_500}[any_stage.settings.stage]] * 2


def test_the_model_of_awss_limits_has_the_pollers_of_prod(prod: Synthesized) -> None:
    assert prod.settings.rules.most_pollers[Lane.ONE_TIME] == limits.IN_PROD


def test_pollers_may_allow_more_executors_than_the_concurrency() -> None:
    chosen = replace(settings.DEV, rules=Rules(most_pollers={Lane.ONE_TIME: 100, Lane.RECURRING: 3}))
    assert chosen.deployed.executors == 1_000 + 50
