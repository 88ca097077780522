"""Random schedules, compared with a second method that checks every minute."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.model.instants import parse
from scheduler.model.schedule import Cron, Schedule
from scheduler.tasks import zones
from scheduler.tasks.schedule import DST_OVERLAP, next_runs
from tests.unit.minute_by_minute import ODD_ZONES, clock_changes, disagreement, random_case

randomly = st.randoms(use_true_random=False)
MINUTE = 60_000
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.long
@settings(unhurried, max_examples=100)
@given(randomly)
def test_runs_agree_with_a_check_of_every_minute(random: Random) -> None:
    assert disagreement(random_case(random)) is None


@pytest.mark.long
@pytest.mark.parametrize("seeds", [range(2_500), pytest.param(range(2_500, 10_000), marks=pytest.mark.soak)])
def test_ten_thousand_random_schedules_agree_with_a_check_of_every_minute(seeds: range) -> None:
    """The same without hypothesis, which repeats similar draws: it takes thousands to find a rare date in the repeated hour."""
    assert [found for number in seeds if (found := disagreement(random_case(Random(number))))] == []


@pytest.mark.long
@settings(unhurried, max_examples=100)
@given(randomly, st.integers(0, 7_200_000), st.text(max_size=3))
def test_runs_ascend_and_lie_between_their_nominal_times(random: Random, jitter_ms: int, seed: str) -> None:
    case = random_case(random)
    schedule = Schedule(Cron(case.expression, case.zone, case.dst_gap, case.dst_overlap), jitter_ms=jitter_ms)
    instant = round(case.instant.timestamp() * 1000)
    runs = next_runs(schedule, instant, 12, seed=seed)
    assert instant < runs[0].nominal
    for run, following in pairwise(runs):
        assert run.nominal <= run.at < following.nominal
        assert run.at - run.nominal <= jitter_ms


@pytest.mark.long
@settings(unhurried, max_examples=100)
@given(randomly)
def test_planning_continues_from_any_run_without_a_difference(random: Random) -> None:
    case = random_case(random)
    schedule = Schedule(Cron(case.expression, case.zone, case.dst_gap, case.dst_overlap), jitter_ms=90_000)
    runs = next_runs(schedule, round(case.instant.timestamp() * 1000), 12, seed="a")
    stop = random.randrange(len(runs))
    assert next_runs(schedule, runs[stop].nominal, 11 - stop, seed="a") == runs[stop + 1 :]


@pytest.mark.parametrize("zone", ODD_ZONES)
def test_stretches_cover_the_minutes_with_their_offset(zone: str) -> None:
    tiles = [stretch for span in range(54, 68) for stretch in zones.of_span(zone, span)]
    for stretch, following in pairwise(tiles):
        assert stretch.end == following.start
    for stretch in tiles:
        for minute in (stretch.start, stretch.end - 1):
            assert stretch.offset == zones.offset_at(zones.zone(zone), minute)
    changes = sum(stretch.offset != following.offset for stretch, following in pairwise(tiles))
    assert changes == len(clock_changes(zone))


def test_a_span_bound_within_the_repeated_hour_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    since, repeated = parse("2027-10-30T00:00:00Z"), parse("2027-10-31T00:00:00Z") // MINUTE
    specs = [Cron("0-50/10 1-3 * * *", "Europe/Berlin", dst_overlap=choice) for choice in DST_OVERLAP]
    expected = [next_runs(Schedule(spec), since, 60) for spec in specs]
    for size in (77, 95, 350):
        assert any((repeated + minute) % size == 0 for minute in range(1, 120))
        zones.of_span.cache_clear()
        monkeypatch.setattr(zones, "SPAN", size)
        assert [next_runs(Schedule(spec), since, 60) for spec in specs] == expected
    zones.of_span.cache_clear()
