"""A small form of the scenes with AWS's limits."""

from dataclasses import replace
from functools import partial

import pytest

from infra.settings import settings_for
from lab.world.hub import Hub
from lab.world.limits import Account, Allowance, Fetch, Limits
from scheduler.targets.call_limit import CallWindow
from tests.simulation.limits import (
    AHEAD,
    AT,
    LIFTED,
    PER_HOUR,
    Load,
    Scene,
    burst,
    http_crowd,
    limited,
    rules,
    small_account,
    stream,
)
from tests.simulation.requests import requests

SMALL = Limits(first=2, more_a_minute=60, partition=40, sns=2_000)
LONG = 5_000  # ms of a job: 600 of them require 334 executors


def test_an_allowance_gives_a_seconds_worth_at_once_then_queues_callers() -> None:
    allowance = Allowance(10)
    assert [allowance.wait(0) for _ in range(12)] == [0] * 10 + [100, 200]
    assert allowance.wait(5_000, 11) == 100, "an allowance saves up at most a second's worth"


@pytest.mark.long
def test_pollers_kept_ready_start_a_burst_sooner_and_none_early() -> None:
    alone, predicted = burst(600, predicted=False, limits=SMALL, takes=LONG), burst(600, predicted=True, limits=SMALL, takes=LONG)
    for seen in (alone, predicted):
        assert (seen["jobs"], seen["ended"], seen["early"], seen["started_twice"]) == (600, 600, 0, 0)
    assert alone["p99_ms"] > 1_000 and predicted["p99_ms"] == 0
    assert alone["dollars"]["executors"] >= predicted["dollars"]["executors"], "packs do not spread a crowd over all ready executors"
    assert (alone["most_pollers"], alone["dollars"]["pollers"]) == (0, 0)
    assert (predicted["most_pollers"], predicted["pollers_at_the_end"]) == (34, 0) and predicted["dollars"]["pollers"] > 0


@pytest.mark.long
def test_an_alarm_that_calls_too_late_leaves_a_burst_to_aws() -> None:
    late = burst(600, predicted=True, limits=replace(SMALL, alarm_ms=11 * 60_000), takes=LONG)
    assert (late["ended"], late["early"], late["started_twice"]) == (600, 0, 0)
    assert late["p99_ms"] > burst(600, predicted=True, limits=SMALL, takes=LONG)["p99_ms"]


@pytest.mark.long
def test_a_burst_that_aws_can_follow_keeps_no_pollers_ready() -> None:
    seen = burst(600, predicted=True, limits=SMALL)
    assert (seen["most_pollers"], seen["dollars"]["pollers"]) == (0, 0)


@pytest.mark.parametrize(("jobs", "least"), [pytest.param(5_000, 470, marks=pytest.mark.long)])
def test_500_jobs_of_a_second_run_at_once_with_slots_in_several_items(jobs: int, least: int) -> None:
    seen = limited(jobs, spread=True)
    assert (seen["ended"], seen["early"], seen["started_twice"]) == (jobs, 0, 0)
    assert least <= seen["mean_at_once"] <= seen["most_at_once"] <= 500
    assert seen["units_a_second"]["most of an item"] < Limits().partition / 2


@pytest.mark.long
def test_with_all_slots_in_one_item_far_fewer_jobs_run_at_once() -> None:
    seen = limited(1_000, spread=False)
    assert seen["mean_at_once"] < 50 and seen["longest_wait_ms"]["usage partitions"] > 1_000


@pytest.mark.long
@pytest.mark.parametrize(("name", "wait"), [("partitions", "table partitions"), ("SNS", "SNS")])
def test_a_limit_causes_waits_that_end_when_it_is_lifted(name: str, wait: str) -> None:
    tight = Limits(partition=2, sns=2)  # of ten a second, the packs of six hundred jobs would not wait
    assert burst(600, predicted=True, limits=tight)["longest_wait_ms"][wait] > 500
    assert wait not in burst(600, predicted=True, limits=LIFTED[name](tight))["longest_wait_ms"]


def test_one_user_waits_for_its_partitions_longer_with_larger_items() -> None:
    tight = Limits(partition=5)
    many, one, larger = (burst(200, predicted=False, limits=tight, load=load) for load in (Load(), Load(1), Load(1, kilobytes=2)))
    waits = [seen["longest_wait_ms"].get("table partitions", 0) for seen in (many, one, larger)]
    assert waits[0] == 0 < waits[1] < waits[2] / 2
    assert all((seen["ended"], seen["early"], seen["started_twice"]) == (200, 0, 0) for seen in (many, one, larger))


def test_jobs_that_fail_wait_for_the_index_of_failures_too() -> None:
    tight, one = Limits(partition=4), Load(owners=1)
    good, bad = (burst(200, predicted=False, limits=tight, load=one._replace(failing=failing)) for failing in (False, True))
    assert good["ended"] == bad["ended"] == 200
    assert "failures partitions" not in good["longest_wait_ms"] and bad["longest_wait_ms"]["failures partitions"] > 0


def test_creation_takes_write_units_of_the_same_partitions() -> None:
    """Nobody claims these jobs."""
    scene = Scene(Limits(partition=1), rules(10), load=Load(owners=1))
    scene.hub.spawn(partial(scene.create, [AT] * 200, 1_000))
    scene.hub.run(AT - AHEAD + 30_000)
    assert scene.stored == len(scene.jobs.rows) == 200
    assert scene.waits["table partitions"] > 3_000 and scene.waits["due partitions"] > 1_000


@pytest.mark.long
def test_a_stream_within_capacity_is_on_time_from_the_second_minute() -> None:
    seen = stream(2, PER_HOUR // 100, predicted=True)
    assert seen["ended"] == seen["jobs"] == 2 * (PER_HOUR // 100 // 60) and seen["early"] == 0
    assert seen["by_minute"][1]["p99_ms"] < 1_000


@pytest.mark.long
def test_in_a_new_account_a_crowd_starves_no_tick() -> None:
    known, unknown = small_account(known=True, minutes=3), small_account(known=False, minutes=3)
    for seen in (known, unknown):
        assert (seen["ended"], seen["early"], seen["started_twice"]) == (seen["jobs"], 0, 0)
    assert known["longest_without_tick_s"] <= 120 < unknown["longest_without_tick_s"]
    assert known["throttled"]["notices"] == 0 < unknown["throttled"]["notices"]


@pytest.mark.long
@pytest.mark.parametrize(("known", "all_within_s"), [(True, 4), (False, 40)])
def test_many_calls_of_urls_throttle_neither_tick_nor_api(known: bool, all_within_s: int) -> None:
    """Of 2,000 calls of 200 ms, the known account has room for 350 at once, and eight executors that do not know it for six each."""
    seen = http_crowd(2_000, stage="dev", account=1_000, known=known)
    assert (seen["ended"], seen["early"], seen["started_twice"], seen["violations"]) == (2_000, 0, 0, [])
    assert seen["all_started_after_ms"] < all_within_s * 1_000 and seen["deferrals"] == 0
    assert seen["calls_refused"] < 2_000 / 4 and (not known or seen["most_calls"] == 350)


@pytest.mark.long
@pytest.mark.parametrize(("known", "violation"), [(True, "Lambda refused too many calls"), (False, "api was throttled")])
def test_the_model_notices_executors_that_limit_no_calls(known: bool, violation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(window: CallWindow, now: float) -> bool:
        window.calls += 1
        return True

    monkeypatch.setattr(CallWindow, "take", take)
    assert violation in http_crowd(2_000, stage="dev", account=1_000, known=known)["violations"]


@pytest.mark.long
def test_the_model_notices_jobs_that_wait_in_no_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.world.limits.patience", lambda returns, timeout_ms: 100)
    assert "a job was deferred too often" in http_crowd(4_000, stage="dev", account=1_000)["violations"]


def test_few_calls_of_urls_start_at_their_instant() -> None:
    seen = http_crowd(10, stage="dev", account=1_000)
    assert (seen["ended"], seen["early"], seen["violations"], seen["calls_refused"]) == (10, 0, [], 0)
    assert seen["max_ms"] == 0, "their environments were started ahead"


def test_lambda_makes_a_thousand_environments_in_ten_seconds() -> None:
    hub = Hub(0)
    fetch = Fetch(hub, Limits(), Account(5_000, {"fetch": 3_000}))
    assert [fetch.begin() is not None for _ in range(1_001)] == [True] * 1_000 + [False]
    hub.run(10_000)
    assert [fetch.begin() is not None for _ in range(1_001)] == [True] * 1_000 + [False]
    fetch.end(0)
    assert fetch.begin() == 0, "one that is free is warm"


def test_a_reservation_is_a_part_of_the_account_and_a_limit() -> None:
    account = Account(10, {"api": 3})
    assert [account.take("api") for _ in range(4)] == [True, True, True, False]
    assert [account.take("tick") for _ in range(8)] == [True] * 7 + [False]
    assert account.is_full
    account.leave("api")
    assert account.is_full and account.take("api")


def test_a_series_has_a_row_for_each_second_of_the_due_times() -> None:
    seen = burst(60, predicted=False, limits=SMALL)
    assert [row[0] for row in seen["series"]] == [0] and seen["series"][0][3] >= 1
    assert seen["quantiles_ms"] == sorted(seen["quantiles_ms"]) and seen["quantiles_ms"][-1] == seen["max_ms"]


def test_a_thousand_requests_a_second_are_within_the_limits_of_prod() -> None:
    seen = requests(settings_for("prod"), seconds=3, rate=100)
    assert seen["answered"] == seen["requests"] and seen["refused"] == {} and 100 < seen["jobs_created"] < 250
    assert seen["most_executions"] == seen["cold_starts"] <= 200


def test_api_gateway_refuses_what_is_above_the_rates_of_dev() -> None:
    seen = requests(settings_for("dev"), seconds=6, rate=400)
    assert seen["refused"]["API Gateway"] > 100
    assert seen["jobs_created"] <= 200 + 6 * 100, "the writing routes have a burst and a rate of their own"


def test_lambda_refuses_requests_when_the_account_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.simulation.requests.ACCOUNT", 20)
    seen = requests(settings_for("prod"), seconds=2, rate=100)
    assert seen["most_executions"] == 20 and seen["refused"]["Lambda"] > 50
