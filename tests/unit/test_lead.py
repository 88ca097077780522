import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.pipeline import lead as lead_times
from scheduler.pipeline.publisher import GATHER_MS

holds = st.integers(min_value=300, max_value=60_000)
rates = st.floats(min_value=0.01, max_value=20)


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[int], list[int], int, float]:
    """Due times and their leads, the longest time from claim to start, and the rate."""
    hold = draw(holds)
    due = sorted(draw(st.lists(st.integers(min_value=0, max_value=60_000), min_size=1, max_size=60)))
    leads = [lead_times.lead(draw(st.none() | st.integers(0, 20_000)), 500, hold) for _ in due]
    return due, leads, hold, draw(rates)


@pytest.mark.long
@given(crowds())
def test_jobs_are_published_in_the_order_of_their_instants(crowd: tuple[list[int], list[int], int, float]) -> None:
    due, leads, hold, rate = crowd
    leaves = lead_times.leave_times(due, leads, rate=rate, hold_ms=hold)
    assert leaves == sorted(leaves)


@pytest.mark.long
@given(crowds())
def test_jobs_are_published_between_the_earliest_claim_and_their_lead(
    crowd: tuple[list[int], list[int], int, float],
) -> None:
    due, leads, hold, rate = crowd
    for at, lead, leave in zip(due, leads, lead_times.leave_times(due, leads, rate=rate, hold_ms=hold), strict=True):
        assert at - hold <= leave <= at - lead


@given(st.none() | st.integers(min_value=0, max_value=100_000), st.integers(min_value=0, max_value=60_000))
def test_a_lead_is_within_the_time_of_a_claim(measured: int | None, hold: int) -> None:
    assert 0 <= lead_times.lead(measured, 500, hold) <= hold


def test_the_lead_is_a_quarter_more_than_the_measured_latency() -> None:
    assert lead_times.lead(800, 500, 5_000) == 1_000
    assert lead_times.lead(None, 500, 5_000) == 500


def test_a_lead_has_a_lower_and_an_upper_bound() -> None:
    assert lead_times.lead(1, 500, 5_000) == lead_times.LEAST_LEAD_MS
    assert lead_times.lead(60_000, 500, 5_000) == 2_500  # the other half is for bursts


def test_a_thousand_jobs_of_one_instant_are_spread_to_be_in_time() -> None:
    leaves = lead_times.leave_times([10_000] * 1_000, [500] * 1_000, rate=1.0, hold_ms=5_000)
    assert leaves[-1] == 9_500 and leaves[0] == 9_500 - 999


def test_jobs_that_cannot_be_spread_are_published_at_the_earliest_claim() -> None:
    leaves = lead_times.leave_times([10_000] * 1_000, [500] * 1_000, rate=0.1, hold_ms=5_000)
    assert leaves[0] == 10_000 - lead_times.longest(5_000)


@given(st.integers(min_value=0, max_value=60_000))
def test_the_longest_lead_ends_before_the_earliest_claim(hold: int) -> None:
    """Publishers gather jobs of a tenth of a second, and clocks differ."""
    assert hold // 2 <= lead_times.longest(hold) <= hold - min(lead_times.MARGIN_MS, (hold + 1) // 2)
    assert hold < 2 * lead_times.MARGIN_MS or lead_times.longest(hold) == hold - lead_times.MARGIN_MS
    assert GATHER_MS < lead_times.MARGIN_MS


def test_without_early_claims_a_job_is_published_at_its_instant() -> None:
    assert lead_times.leave_times([10_000], [lead_times.lead(None, 500, 0)], rate=1.0, hold_ms=0) == [10_000]


def test_no_jobs_are_published_if_there_are_none() -> None:
    assert lead_times.leave_times([], [], rate=1.0, hold_ms=5_000) == []
