"""Outages of minutes: nothing fails that did not fail, nothing is lost."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.model import slots
from tests.contract import make
from tests.simulation.outages import BEGINS_MS, SERVICES, Outage, OutageWorld, is_sound, merged, suffer, table
from tests.simulation.world import START


@pytest.mark.long
@pytest.mark.parametrize(
    ("service", "lasts_s"),
    [pytest.param(service, lasts_s, marks=()) for service in SERVICES for lasts_s in (30, 100, 600, 3_600)],
)
def test_an_outage_fails_no_job_and_loses_none(service: str, lasts_s: int) -> None:
    seen = suffer(service, lasts_s * 1_000)
    assert seen["refused_calls"] > 0
    assert is_sound(seen), seen


@pytest.mark.long
@pytest.mark.parametrize("service", SERVICES)
def test_ten_minutes_of_throttling_fail_no_job(service: str) -> None:
    seen = suffer(service, 600_000, share=0.5)
    assert seen["refused_calls"] > 0
    assert is_sound(seen), seen


def test_the_figures_of_several_seeds_are_summed() -> None:
    one = suffer("SNS", 30_000, jobs=5)
    both = merged([one, one | {"lost": 3, "other": {"crashed": 1}, "examples": ["lost"], "latest_s": 10**6}])
    assert (both["accepted"], both["lost"]) == (2 * one["accepted"], 3)
    assert (both["service"], both["other"], both["examples"], both["latest_s"]) == ("SNS", {"crashed": 1}, ["lost"], 10**6)
    assert is_sound(merged([one, one])) and not is_sound(both)


def test_without_an_outage_nothing_is_refused() -> None:
    world = OutageWorld(1)
    report = world.run(60, 4, wind_down=20)
    assert report.violations == {} and report.faults["away"] == 0
    assert all(count == 1 for count in world.done.values())


def test_a_call_takes_the_retries_of_the_sdk_and_then_fails() -> None:
    world = OutageWorld(1, outage=Outage(frozenset({"jobs"}), START, START + slots.MINUTE))
    times: list[int] = []

    def call() -> None:
        try:
            world._ports().jobs.get(make.job().key)
        finally:
            times.append(world.hub.time - START)

    world.hub.spawn(call)
    world.hub.run(START + 20_000)
    assert 1_000 <= times[0] <= 7_010 and world.faults.counts["invocation refused"] == 1


def test_the_oracle_sees_a_failure_that_no_target_reported() -> None:
    world = OutageWorld(1)

    def fail() -> None:
        job = next(job for job in world.jobs.rows.values() if job.claim is None and job.slot is None and job.failed_at is None)
        world.jobs.rows[job.key] = replace(job, completed_at=None, failed_at=world.hub.time)

    world.hub.at(START + BEGINS_MS, fail)
    report = world.run(60, 5, wind_down=20)
    assert report.violations["failed_without_reason"] == 1


def test_the_table_has_a_line_for_each_outage() -> None:
    row: dict[str, Any] = suffer("SNS", 30_000, jobs=30)
    lines = table([row]).splitlines()
    assert len(lines) == 2 and lines[1].startswith("SNS") and "30 s" in lines[1]
