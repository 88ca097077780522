"""The timetable of `make prove`: the due times, the overlaps, and the length."""

import pytest

from prove import costs
from prove.plan import FULL, PARTS, QUIET_S, SHORT, SHORT_LOCAL, Plan, Size, minutes, planned

NOW = 1_795_168_800_250
FULL_RUN = planned(NOW, FULL, PARTS)


def test_a_full_run_has_the_jobs_of_every_part() -> None:
    counts = {part.key: len(part.instants) for part in FULL_RUN.parts}
    assert counts == {"cold": 1, "cold-burst": 1_000, "spread": 100, "warm-burst": 1_000, "steady": 6_000}
    assert FULL_RUN.jobs == sum(counts.values()) + 2 + 40 + 3


def test_a_full_run_takes_less_than_fifteen_minutes_and_a_dollar() -> None:
    assert minutes(FULL_RUN) < 15
    assert 0.01 < costs.of_run(FULL_RUN) < 1


def test_the_cold_job_follows_the_quiet_minutes() -> None:
    assert FULL_RUN.parts[0].key == "cold"
    assert FULL_RUN.parts[0].instants[0] - NOW > QUIET_S * 1000


@pytest.mark.parametrize("size", [FULL, SHORT, SHORT_LOCAL])
def test_no_two_parts_run_at_the_same_time(size: Size) -> None:
    run = planned(NOW, size, PARTS)
    ends = [part.instants[-1] for part in run.parts]
    begins = [part.instants[0] for part in run.parts[1:]] + [run.behaviours_at]
    assert all(begin - end >= size.gap_s * 1000 for end, begin in zip(ends, begins, strict=True))


def test_spread_jobs_are_due_at_whole_seconds_of_their_own() -> None:
    (spread,) = [part for part in FULL_RUN.parts if part.key == "spread"]
    assert len(set(spread.instants)) == 100
    assert all(at % 1000 == 0 for at in spread.instants)
    assert spread.instants[-1] - spread.instants[0] <= 120_000


def test_steady_jobs_have_equal_distances() -> None:
    (steady,) = [part for part in FULL_RUN.parts if part.key == "steady"]
    assert {two - one for one, two in zip(steady.instants, steady.instants[1:], strict=False)} == {20}


def test_no_run_of_the_task_disturbs_the_cold_parts() -> None:
    colds = [part.instants[-1] for part in FULL_RUN.parts if part.key.startswith("cold")]
    assert FULL_RUN.cron_from >= max(colds)


def end(size: Size, *keys: str) -> int:
    return planned(NOW, size, keys).end


def test_a_run_waits_for_its_task_its_behaviours_and_its_peers() -> None:
    assert end(FULL, "cron") >= NOW + FULL.runs * 60_000
    assert end(FULL, "order") > planned(NOW, FULL, ["order"]).behaviours_at
    assert end(FULL, "spread", "peers") - end(FULL, "spread") == FULL.peers_s * 1000


def test_a_run_without_measured_parts_begins_soon() -> None:
    assert planned(NOW, FULL, ["http"]).behaviours_at - NOW < 15_000


def test_only_the_streams_grow_with_the_minutes() -> None:
    run: Plan = planned(NOW, FULL.streaming(5), PARTS)
    counts = {part.key: len(part.instants) for part in run.parts}
    assert (counts["spread"], counts["steady"], counts["warm-burst"]) == (250, 15_000, 1_000)


def test_no_message_is_delayed_longer_than_sqs_allows() -> None:
    run = planned(NOW, FULL.streaming(5), PARTS)
    (spread,) = [part for part in run.parts if part.key == "spread"]
    assert spread.instants[-1] - NOW < 900_000
