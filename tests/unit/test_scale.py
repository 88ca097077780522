"""The required executors, and the canary."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.insight.forecast import MINUTE
from scheduler.insight.histogram import bucket, percentile
from scheduler.insight.project import project
from scheduler.insight.scale import ScaleResult, scale
from scheduler.model.errors import Unavailable
from scheduler.model.job import CANARY_OWNER, Lane
from scheduler.storage.aws.stream import JobChange
from tests.conftest import NOW
from tests.contract import make
from tests.unit.stage import Stage, Wrapped, refuse


@dataclass
class Scaled(Stage):
    """The stage with counters."""

    def scale(self, *, canary: bool = False) -> ScaleResult:
        self.requests += 1
        rules = replace(self.rules, executors=200, lag_canary=canary)
        return scale(self.but(rules=rules), random=self.requests)

    def plan_jobs(self, at: int, count: int) -> None:
        self.requests += 1
        changes = [JobChange(f"{self.requests:020d}{number:020d}", None, make.job(at=at)) for number in range(count)]
        project("s", changes, self)


@pytest.mark.long
def test_required_is_the_busiest_of_the_next_ten_minutes() -> None:
    stage = Scaled(functions=None)  # a stage without `most_pollers` calls no AWS about pollers
    for minute, count in ((1, 90), (9, 270), (12, 9_000)):
        stage.plan_jobs(NOW + minute * MINUTE, count)
    result = stage.scale()
    assert (result.required, result.available, result.pollers) == (30, 200, {})  # 270 s of work


def test_calls_of_urls_beyond_those_of_the_stage_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    stage = Scaled(functions=None)
    changes = [JobChange(f"{number:040d}", None, make.job(at=NOW + MINUTE, type="http")) for number in range(90)]
    project("s", changes, stage)
    for available, logged in ((0, 0), (10, 0), (9, 1)):
        stage.rules = replace(stage.rules, calls=available)
        result = stage.scale()
        assert (result.calls, result.available_calls) == (10, available)
        assert caplog.text.count("require more calls of URLs at once") == logged


def test_the_canary_passes_through_every_stage() -> None:
    stage = Scaled()
    assert stage.scale(canary=True).canary
    (job,) = stage.jobs.rows.values()
    assert (job.owner, job.spec.type, job.spec.max_attempts) == (CANARY_OWNER, "log", 1)
    assert job.slot.startswith("2026-11-20T10:07") and stage.waiting(Lane.ONE_TIME) == []


def test_every_other_minute_has_its_canary() -> None:
    stage = Scaled()
    for _ in range(5):
        stage.scale(canary=True)
        stage.clock.advance(MINUTE)
    assert sorted(job.scheduled_at - NOW for job in stage.jobs.rows.values()) == [440_000, 560_000, 680_000]


def test_a_refused_canary_does_not_fail_the_round() -> None:
    stage = Scaled()
    stage.jobs = Wrapped(stage.jobs, put=refuse)
    assert not stage.scale(canary=True).canary


def test_counters_that_cannot_be_read_fail_the_round() -> None:
    stage = Scaled()
    stage.counters = Wrapped(stage.counters, read=refuse)
    with pytest.raises(Unavailable):
        stage.scale()


@given(st.lists(st.integers(1, 10**8), min_size=1, max_size=60), st.sampled_from([0.5, 0.95, 0.99]))
def test_the_error_of_a_percentile_is_at_most_a_tenth(values: list[int], share: float) -> None:
    counts: dict[int, int] = {}
    for value in values:
        counts[bucket(value)] = counts.get(bucket(value), 0) + 1
    true = sorted(values)[max(0, -(-int(share * 100) * len(values) // 100) - 1)]
    found = percentile(counts, share)
    assert found is not None and abs(found - true) <= max(1, 0.1 * true)


def test_an_empty_histogram_has_no_percentile() -> None:
    assert percentile({}, 0.5) is None
