"""The guided rows of the first hour that judge what they see, with jobs and metrics that are made up."""

import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from prove import guided
from prove.cleanup import Cleanup
from prove.first_hour import Hour, Outcome
from prove.place import Place

OUTPUTS = {name: f"ours-{name}" for name in (*guided.ENGINE, "ApiFunction", "JobsTable")}


class Stage:
    """Jobs that have run as `job` says, and metrics by the name of a function or a table. `slept`: the seconds that a row slept."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.posted: Sequence[Any] = ()
        self.job: dict[str, Any] = {"status": "succeeded", "start_delay_ms": 3, "attempts": [{}], "scheduled_at": "2026-11-29T10:00:00Z"}
        self.metrics: dict[str, int] = {}
        self.slept: list[float] = []
        monkeypatch.setattr(time, "sleep", self.slept.append)
        monkeypatch.setattr(guided, "MINUTES", 1)
        monkeypatch.setattr(guided, "signed_in", lambda *_: None)
        monkeypatch.setattr(guided, "_post", self._post)
        monkeypatch.setattr(guided, "_read", lambda _client, _instants, ids: {id: self.job | {"id": id} for id in ids})
        place = Place(
            "dev", "eu-west-1", OUTPUTS, "https://api.example.com", lambda *_: SimpleNamespace(get_metric_statistics=self._metric)
        )
        self.hour = Hour(place, "punctual-prove-1", Cleanup(), lambda _question: "")

    def _post(self, _client: Any, jobs: Sequence[Any]) -> list[str]:
        self.posted = jobs
        return [f"job {number}" for number in range(len(jobs))]

    def _metric(self, *, Dimensions: Sequence[Any], **_: Any) -> dict[str, Any]:
        return {"Datapoints": [{"Sum": float(self.metrics.get(Dimensions[0]["Value"], 0))}]}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_a_deployment_passes_with_jobs_on_time_and_no_error_of_a_function(stage: Stage) -> None:
    assert guided.deployed_under_load(stage.hour).outcome is Outcome.PASS
    assert len(stage.posted) == guided.PER_S * 60 * guided.MINUTES
    stage.job["start_delay_ms"] = 500
    assert guided.deployed_under_load(stage.hour).outcome is Outcome.PASS
    stage.job["start_delay_ms"] = 501
    assert guided.deployed_under_load(stage.hour).outcome is Outcome.FAIL


def test_an_error_of_a_function_fails_a_deployment_under_load(stage: Stage) -> None:
    stage.metrics["ours-ApiFunction"] = 2
    seen = guided.deployed_under_load(stage.hour)
    assert seen.outcome is Outcome.FAIL and "2 errors of ours-ApiFunction" in seen.note


def test_a_throttled_tick_fails_the_calls_at_once(stage: Stage) -> None:
    assert guided.calls_at_once(stage.hour).outcome is Outcome.PASS
    assert stage.slept.count(guided.METRICS_S) == 1, "once for all functions"
    stage.metrics["ours-TickFunction"] = 1
    assert guided.calls_at_once(stage.hour).outcome is Outcome.FAIL
    stage.metrics.clear()
    stage.job["status"] = "failed"
    assert guided.calls_at_once(stage.hour).outcome is Outcome.FAIL


def test_jobs_that_fail_at_once_are_slowed_by_nothing_of_the_stage(stage: Stage) -> None:
    """Its API would refuse most of them for minutes, uncharged, and the breaker of one host would hold them back."""
    stage.job["status"], stage.metrics["ours-JobsTable"] = "failed", 7
    seen = guided.failures_at_once(stage.hour)
    assert seen.outcome is Outcome.PASS and "7 throttled" in seen.note
    urls = {job["payload"]["url"] for job in stage.posted}
    assert len(urls) == len(stage.posted) == guided.FAILURES
    assert all(url.endswith(".invalid/") for url in urls) and {job["max_attempts"] for job in stage.posted} == {1}
