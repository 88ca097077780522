"""A stage keeps within the concurrent executions of its account."""

from typing import Any

import pytest

from infra.account import CALLS, OTHERS, OTHERS_SMALL, RESERVES, UNRESERVED, USUAL
from infra.options import Options
from infra.settings import Settings, settings_for
from scheduler.insight.scaling import EXECUTORS_EACH
from scheduler.model.job import Lane
from tests.infra.conftest import Synthesized, synthesized


def stage_in(account: int, stage: str = "prod") -> Settings:
    return settings_for(stage, Options(account_concurrency=account))


@pytest.mark.parametrize("stage", ["dev", "prod"])
@pytest.mark.parametrize("account", [RESERVES, 300, 500, 1_000, 2_000, 10_000])
def test_executors_and_fetch_leave_room_for_all_others(account: int, stage: str) -> None:
    made = stage_in(account, stage)
    unreserved = account - sum(made.reserved.values())
    assert unreserved >= UNRESERVED, "AWS refuses to reserve more"
    assert sum(made.concurrency.values()) + OTHERS <= unreserved
    assert {"tick", "plan", "scale", "worker", "api", "fetch"} == made.reserved.keys() and made.reserved["worker"] == made.steps
    assert all(made.concurrency[lane] >= EXECUTORS_EACH * most for lane, most in made.rules.most_pollers.items())


@pytest.mark.parametrize("account", [10, 11, 50, 100, RESERVES - 1])
def test_in_a_small_account_nothing_is_reserved_and_executors_call_urls(account: int) -> None:
    made = stage_in(account, "dev")
    assert (made.reserved, made.http_apart) == ({}, False)
    assert sum(made.concurrency.values()) <= max(account - OTHERS_SMALL, 2 * len(Lane))
    assert made.rules.ready_executors <= min(made.concurrency.values())


def test_a_new_account_runs_two_executors_of_each_lane() -> None:
    made = stage_in(10, "dev")
    assert (set(made.concurrency.values()), made.steps, made.notices, made.deployed.executors) == ({2}, 2, 2, 4)


@pytest.mark.parametrize(("account", "operating"), [(10, 1), (100, 1), (240, 2), (1_000, 10), (10_000, 10), (0, 10)])
def test_operations_leave_most_steps_to_the_minutes(account: int, operating: int) -> None:
    made = stage_in(account)
    assert made.deployed.operating == operating <= made.steps // 2


def test_an_account_that_is_large_enough_limits_nothing() -> None:
    made, usual = stage_in(10_000), settings_for("prod")
    assert (made.concurrency, made.rules.most_pollers) == (usual.concurrency, usual.rules.most_pollers)


def test_without_the_option_the_calls_of_dev_leave_room_in_a_usual_account() -> None:
    """With all executors at work, each with all its calls, the engine has what it would reserve."""
    dev, within = settings_for("dev"), stage_in(USUAL, "dev")
    engine = sum(within.reserved.values()) - within.reserved["fetch"]
    executors = sum(dev.concurrency.values())
    assert dev.deployed.calls_at_once == CALLS == (USUAL - engine - OTHERS) // executors - 1


@pytest.mark.parametrize(
    ("stage", "account", "calls"), [("prod", 0, 6), ("dev", 0, 6), ("dev", 1_000, 256), ("dev", 10, 256), ("local", 0, 256)]
)
def test_only_an_unknown_account_limits_the_calls_of_an_executor(stage: str, account: int, calls: int) -> None:
    assert stage_in(account, stage).deployed.calls_at_once == calls


@pytest.mark.parametrize(("stage", "account", "calls"), [("prod", 1_000, 350), ("prod", 10_000, 3_590), ("dev", 0, 720), ("dev", 10, 0)])
def test_a_stage_knows_the_calls_of_all_its_executors(stage: str, account: int, calls: int) -> None:
    assert stage_in(account, stage).deployed.calls == calls


def test_without_the_option_nothing_is_reserved() -> None:
    assert settings_for("prod") == settings_for("prod", Options()) and settings_for("prod").reserved == {}


def reserved(stack: Synthesized) -> dict[str, Any]:
    return {
        name: each["ReservedConcurrentExecutions"] for name, each in stack.functions().items() if "ReservedConcurrentExecutions" in each
    }


@pytest.mark.long
def test_the_template_reserves_and_limits() -> None:
    large, small = synthesized("prod", account_concurrency=1_000), synthesized("prod", account_concurrency=10)
    assert reserved(large) == {"Tick": 2, "Plan": 2, "Scale": 2, "Dispatch": 50, "Api": 50, "Fetch": 350}
    assert reserved(small) == {}
    mappings = small.all("Lambda::EventSourceMapping").values()
    assert {each["ScalingConfig"]["MaximumConcurrency"] for each in mappings if "ScalingConfig" in each} == {2}
    variables = [each["Environment"]["Variables"] for each in small.functions().values()]
    assert {each["PUNCTUAL_FETCH_FUNCTION"] for each in variables if "PUNCTUAL_FETCH_FUNCTION" in each} <= {""}
