"""What counts, and what keeps executors ready."""

from dataclasses import replace
from functools import cache

import pytest

from infra import settings
from infra.stack import PunctualStack
from lambdas._settings import Settings
from scheduler.insight import scaling
from scheduler.model.rules import Rules
from tests.infra.conftest import Resource, Synthesized, app
from tests.infra.test_functions import environ


@cache
def keeping_ready() -> Synthesized:
    """A stage whose pollers are kept ready."""
    chosen = replace(settings.DEV, rules=Rules(most_pollers=100))
    stack = PunctualStack(made := app(), chosen)
    return Synthesized(chosen, stack, made.synth().get_stack_by_name(stack.stack_name).template)


@pytest.mark.parametrize("table", ["Jobs", "Tasks"])
def test_both_streams_are_counted_in_the_order_of_their_shards(any_stage: Synthesized, table: str) -> None:
    mapping = any_stage.one("Lambda::EventSourceMapping", f"Project{table}")
    assert mapping["EventSourceArn"]["Fn::GetAtt"] == [any_stage.id("DynamoDB::GlobalTable", f"Storage{table}"), "StreamArn"]
    assert mapping["FunctionName"]["Ref"] == any_stage.id("Lambda::Function", "ProjectFunction")
    assert (mapping["StartingPosition"], mapping["ParallelizationFactor"]) == ("TRIM_HORIZON", 1)
    assert "MaximumRetryAttempts" not in mapping and "MaximumRecordAgeInSeconds" not in mapping, (
        "nothing is given up while the stream has it"
    )


def test_events_name_their_shard_where_streams_have_several(any_stage: Synthesized) -> None:
    for table in ("Jobs", "Tasks"):
        window = any_stage.one("Lambda::EventSourceMapping", f"Project{table}").get("TumblingWindowInSeconds")
        assert (window is None) == any_stage.settings.rules.one_shard == (any_stage.settings.stage == "local")


def test_project_reads_streams_and_writes_counters_and_nothing_else(any_stage: Synthesized) -> None:
    granted = {resource for action, resource in any_stage.grants("Project") if action.startswith("dynamodb:")}
    assert granted == {"StorageCounters", "StorageJobs", "StorageTasks"}
    assert ("dynamodb:UpdateItem", "StorageCounters") in any_stage.grants("Project")
    on_tables = {action for action, resource in any_stage.grants("Project") if resource in ("StorageJobs", "StorageTasks")}
    assert on_tables == {f"dynamodb:{verb}" for verb in ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")}


def test_by_default_lanes_scale_by_themselves(any_stage: Synthesized) -> None:
    for lane in ("OneTime", "Recurring", "Retry"):
        assert "ProvisionedPollerConfig" not in any_stage.one("Lambda::EventSourceMapping", f"Execute{lane}Lane")
    assert not [action for action, _ in any_stage.grants("Scale") if "EventSourceMapping" in action]


def _lane(lane: str) -> Resource:
    return keeping_ready().one("Lambda::EventSourceMapping", f"Execute{lane}Lane")


@pytest.mark.parametrize("lane", ["OneTime", "Recurring"])
def test_a_stage_that_keeps_pollers_ready_lets_scale_set_them_on_its_lanes_alone(lane: str) -> None:
    mapping = _lane(lane)
    assert mapping["ProvisionedPollerConfig"] == {"MinimumPollers": scaling.LEAST, "MaximumPollers": 100}
    assert "ScalingConfig" not in mapping, "AWS refuses both"
    stack = keeping_ready()
    id = stack.id("Lambda::EventSourceMapping", f"Execute{lane}Lane")
    resources = {resource.rpartition(":")[2] for action, resource in stack.grants("Scale") if action == "lambda:UpdateEventSourceMapping"}
    assert resources == {"ExecuteOneTimeLane", "ExecuteRecurringLane"}
    assert id in environ(stack.functions()["Scale"])[f"PUNCTUAL_{'ONE_TIME' if lane == 'OneTime' else 'RECURRING'}_MAPPING"]


def test_retries_keep_none_ready() -> None:
    assert "ScalingConfig" in _lane("Retry") and "ProvisionedPollerConfig" not in _lane("Retry")


def test_what_there_may_be_at_once_is_what_the_lanes_allow(any_stage: Synthesized) -> None:
    told = [Settings.parse(environ(any_stage.functions()[name])).rules.executors for name in ("Api", "Scale")]
    assert told == [{"local": 150, "dev": 100, "prod": 1_500}[any_stage.settings.stage]] * 2
    assert keeping_ready().settings.deployed.executors == 2 * 100 * scaling.EXECUTORS_EACH
