"""A small form of the scenes with AWS's limits."""

import pytest

from tests.simulation.limits import LIFTED, PER_HOUR, Allowance, Limits, burst, limited, stream

SMALL = Limits(first=2, more_a_minute=60, partition=40, sns=2_000)


def test_an_allowance_gives_a_seconds_worth_at_once_then_queues_callers() -> None:
    allowance = Allowance(10)
    assert [allowance.wait(0) for _ in range(12)] == [0] * 10 + [100, 200]
    assert allowance.wait(5_000, 11) == 100, "an allowance saves up at most a second's worth"


@pytest.mark.long
def test_prepared_pollers_start_a_burst_sooner_and_no_job_is_early() -> None:
    alone, predicted = burst(600, predicted=False, limits=SMALL), burst(600, predicted=True, limits=SMALL)
    for seen in (alone, predicted):
        assert (seen["jobs"], seen["ended"], seen["early"], seen["started_twice"]) == (600, 600, 0, 0)
    assert alone["most_executors"] < predicted["most_executors"]
    assert alone["p99_ms"] > predicted["p99_ms"]
    assert alone["dollars"]["pollers"] == 0 < predicted["dollars"]["pollers"]


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
    tight = Limits(partition=2, sns=100)
    assert burst(600, predicted=True, limits=tight)["longest_wait_ms"][wait] > 500
    assert wait not in burst(600, predicted=True, limits=LIFTED[name](tight))["longest_wait_ms"]


@pytest.mark.long
def test_a_stream_within_capacity_is_on_time_from_the_second_minute() -> None:
    seen = stream(2, PER_HOUR // 100, predicted=True)
    assert seen["ended"] == seen["jobs"] == 2 * (PER_HOUR // 100 // 60) and seen["early"] == 0
    assert seen["by_minute"][1]["p99_ms"] < 1_000
