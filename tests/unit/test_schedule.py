"""The runs of a schedule: changes of the clock, rates, bounds, jitter."""

from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model.instants import parse, render
from scheduler.model.schedule import Cron, Once, Rate, Schedule
from scheduler.tasks.schedule import after, local_time, next_runs
from tests.conftest import NOW

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


def utc(schedule: Schedule, since: str, count: int) -> list[str]:
    return [render(run.nominal)[:16] for run in next_runs(schedule, parse(since), count)]


TWICE, SEVERAL = "overlap: first of two", "gap: 01:30 to 02:30 do not exist, run once at 03:00"


def missing(time: str, instead: str) -> str:
    return f"gap: {time} does not exist, runs {instead}"


FIXED = [  # expression, zone, the day before in UTC, runs in UTC, the remark on the first
    ("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", ["2027-03-28T01:00", "2027-03-29T00:30"], missing("02:30", "03:00")),
    ("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00Z", ["2027-10-31T00:30", "2027-11-01T01:30"], TWICE),
    ("30 1 * * *", "America/New_York", "2027-03-13T12:00:00Z", ["2027-03-14T06:30", "2027-03-15T05:30"], None),
    ("30 1 * * *", "America/New_York", "2027-11-06T12:00:00Z", ["2027-11-07T05:30", "2027-11-08T06:30"], TWICE),
    ("30 2 * * *", "America/New_York", "2027-03-13T12:00:00Z", ["2027-03-14T07:00", "2027-03-15T06:30"], missing("02:30", "03:00")),
    ("45 1 * * *", "Australia/Lord_Howe", "2027-04-03T04:00:00Z", ["2027-04-03T14:45", "2027-04-04T15:15"], TWICE),
    ("15 2 * * *", "Australia/Lord_Howe", "2027-10-02T04:00:00Z", ["2027-10-02T15:30", "2027-10-03T15:15"], missing("02:15", "02:30")),
    ("0 0 * * *", "America/Santiago", "2027-09-04T12:00:00Z", ["2027-09-05T04:00", "2027-09-06T03:00"], missing("00:00", "01:00")),
    ("30 23 * * *", "America/Santiago", "2027-04-03T12:00:00Z", ["2027-04-04T02:30", "2027-04-05T03:30"], TWICE),
    ("30 2 * * *", "Asia/Kolkata", "2027-03-27T12:00:00Z", ["2027-03-27T21:00", "2027-03-28T21:00"], None),
    ("30 2 * * *", "Africa/Casablanca", "2026-02-14T12:00:00Z", ["2026-02-15T01:30", "2026-02-16T02:30"], TWICE),
    ("30 2 * * *", "Africa/Casablanca", "2026-03-21T12:00:00Z", ["2026-03-22T02:00", "2026-03-23T01:30"], missing("02:30", "03:00")),
    ("30 1,2 * * *", "Antarctica/Troll", "2027-03-27T12:00:00Z", ["2027-03-28T01:00", "2027-03-28T23:30"], SEVERAL),
    ("0 3 * * *", "Pacific/Chatham", "2027-09-25T12:00:00Z", ["2027-09-25T14:00", "2027-09-26T13:15"], missing("03:00", "03:45")),
    ("0 12 * * *", "Pacific/Apia", "2011-12-30T00:00:00Z", ["2011-12-30T10:00", "2011-12-30T22:00"], missing("2011-12-30 12:00", "00:00")),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "zone", "since", "expected", "odd"), FIXED)
def test_a_fixed_time_runs_once_on_the_day_the_clock_changes(expression: str, zone: str, since: str, expected: list[str], odd: str) -> None:
    schedule = Schedule(Cron(expression, zone))
    assert utc(schedule, since, 2) == expected
    assert [run.odd for run in next_runs(schedule, parse(since), 2)] == [odd, None]


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2027-10-30T23:45:00Z", ["00:00 02:00+02:00", "00:30 02:30+02:00", "01:00 02:00+01:00", "01:30 02:30+01:00", "02:00 03:00+01:00"]),
        ("2027-03-28T00:15:00Z", ["00:30 01:30+01:00", "01:00 03:00+02:00", "01:30 03:30+02:00", "02:00 04:00+02:00", "02:30 04:30+02:00"]),
    ],
)
def test_an_expression_that_begins_with_a_star_follows_elapsed_time(since: str, expected: list[str]) -> None:
    runs = next_runs(Schedule(Cron("*/30 * * * *", "Europe/Berlin")), parse(since), 5)
    assert [f"{render(run.nominal)[11:16]} {run.local[11:]}" for run in runs] == expected


def test_the_repeated_hour_is_marked() -> None:
    runs = next_runs(Schedule(Cron("*/30 * * * *", "Europe/Berlin")), parse("2027-10-30T23:15:00Z"), 6)
    assert [run.odd for run in runs] == [None, *["overlap: first of two"] * 2, *["overlap: second of two"] * 2, None]


@pytest.mark.parametrize(
    "zone, expression, date", [("Europe/Berlin", "30 2 31 * *", "2027-10-31"), ("Australia/Lord_Howe", "45 1 4 4 *", "2027-04-04")]
)
def test_a_rare_time_in_the_repeated_hour_occurs_twice(zone: str, expression: str, date: str) -> None:
    schedule = Schedule(Cron(expression, zone, dst_overlap="both"))
    first, second, later = next_runs(schedule, parse(f"{date}T00:00:00Z") - 86_400_000, 3)
    assert (first.odd, second.odd, later.odd) == ("overlap: first of two", "overlap: second of two", None)
    assert first.local[:16] == second.local[:16] and later.local[:10] != date


@pytest.mark.parametrize("choices", [{"dst_overlap": "second"}, {"dst_gap": "skip"}])
@pytest.mark.parametrize("since", ["2027-03-28T00:15:00Z", "2027-10-30T23:45:00Z"])
def test_the_dst_options_apply_to_fixed_times_only(choices: dict[str, str], since: str) -> None:
    expression = "*/30 * * * *"
    assert utc(Schedule(Cron(expression, "Europe/Berlin", **choices)), since, 6) == utc(
        Schedule(Cron(expression, "Europe/Berlin")), since, 6
    )


def test_an_hourly_time_in_the_gap_is_not_shifted() -> None:
    assert utc(Schedule(Cron("*/30 2 * * *", "Europe/Berlin")), "2027-03-27T12:00:00Z", 1) == ["2027-03-29T00:00"]


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [
        ("first", ["2027-10-31T00:30", "2027-11-01T01:30"]),
        ("second", ["2027-10-31T01:30", "2027-11-01T01:30"]),
        ("both", ["2027-10-31T00:30", "2027-10-31T01:30"]),
    ],
)
def test_a_time_that_occurs_twice_runs_as_dst_overlap_specifies(overlap: str, expected: list[str]) -> None:
    assert utc(Schedule(Cron("30 2 * * *", "Europe/Berlin", dst_overlap=overlap)), "2027-10-30T12:00:00Z", 2) == expected


def test_both_runs_are_in_the_order_of_time() -> None:
    runs = next_runs(Schedule(Cron("0,30 2 * * *", "Europe/Berlin", dst_overlap="both")), parse("2027-10-30T12:00:00Z"), 4)
    assert [run.local[11:] for run in runs] == ["02:00+02:00", "02:30+02:00", "02:00+01:00", "02:30+01:00"]


def test_a_missing_time_is_left_out_if_dst_gap_is_skip() -> None:
    schedule = Schedule(Cron("30 2 * * *", "Europe/Berlin", dst_gap="skip"))
    assert utc(schedule, "2027-03-27T00:00:00Z", 2) == ["2027-03-27T01:30", "2027-03-29T00:30"]


def test_many_missing_times_run_once_at_the_first_instant_after_the_gap() -> None:
    schedule = Schedule(Cron("0,15,30 2,3 * * *", "Europe/Berlin"))
    runs = next_runs(schedule, parse("2027-03-27T12:00:00Z"), 3)
    assert [run.local[11:16] for run in runs] == ["03:00", "03:15", "03:30"]
    assert runs[0].odd == "gap: 02:00 to 02:30 do not exist, run once at 03:00"
    assert [run.odd for run in runs[1:]] == [None, None]


def test_a_schedule_continues_from_the_first_instant_after_the_gap() -> None:
    schedule = Schedule(Cron("30 2 * * *", "Europe/Berlin"))
    assert utc(schedule, "2027-03-28T00:59:59.999Z", 1) == ["2027-03-28T01:00"]
    assert utc(schedule, "2027-03-28T01:00:00Z", 1) == ["2027-03-29T00:30"]


def test_a_schedule_whose_times_are_all_skipped_ends() -> None:
    last_sunday_of_march = Schedule(Cron("30 2 */1 3 SUNL", "Europe/Berlin", dst_gap="skip"))
    assert next_runs(last_sunday_of_march, NOW, 1) == []


def test_runs_are_strictly_later_than_the_instant() -> None:
    every_minute = Schedule(Cron("* * * * *"))
    assert [next_runs(every_minute, NOW + ms, 1)[0].nominal - NOW for ms in (-1, 0, 1, 59_999)] == [0, MINUTE, MINUTE, MINUTE]


def test_one_time_runs_once() -> None:
    schedule = Schedule(Once(NOW + 250, "Asia/Kolkata"))
    assert [(run.nominal, run.at, run.local) for run in after(schedule, NOW)] == [(NOW + 250, NOW + 250, "2026-11-20T15:30:00.250+05:30")]
    assert list(after(schedule, NOW + 250)) == []


def test_a_rate_follows_elapsed_time_over_changes_of_the_clock() -> None:
    start = parse("2027-03-27T02:30:00+01:00")
    runs = next_runs(Schedule(Rate(DAY, start, "Europe/Berlin")), start - HOUR, 3)
    assert [run.nominal - start for run in runs] == [0, DAY, 2 * DAY]
    assert [run.local for run in runs] == ["2027-03-27T02:30+01:00", "2027-03-28T03:30+02:00", "2027-03-29T03:30+02:00"]


@given(st.integers(1_000, 366 * DAY), st.integers(-(10**12), 10**12))
def test_a_rate_keeps_its_phase(every_ms: int, since: int) -> None:
    runs = next_runs(Schedule(Rate(every_ms, NOW)), NOW + since, 3)
    assert all((run.nominal - NOW) % every_ms == 0 for run in runs)
    assert [later.nominal - earlier.nominal for earlier, later in pairwise(runs)] == [every_ms] * 2
    assert runs[0].nominal == NOW or 0 < runs[0].nominal - (NOW + since) <= every_ms


def test_the_start_is_inclusive_and_the_end_exclusive() -> None:
    schedule = Schedule(Cron("0 * * * *"), start=NOW + 2 * HOUR, end=NOW + 4 * HOUR)
    assert [run.nominal - NOW for run in after(schedule, NOW)] == [2 * HOUR, 3 * HOUR]
    assert [run.nominal - NOW for run in after(schedule, NOW + 2 * HOUR)] == [3 * HOUR]


def test_a_schedule_ends_after_max_runs_including_earlier_ones() -> None:
    schedule = Schedule(Cron("0 * * * *"), max_runs=3)
    assert [run.nominal - NOW for run in after(schedule, NOW)] == [HOUR, 2 * HOUR, 3 * HOUR]
    assert [run.nominal - NOW for run in after(schedule, NOW + HOUR, planned=1)] == [2 * HOUR, 3 * HOUR]
    assert list(after(schedule, NOW + 3 * HOUR, planned=3)) == list(after(schedule, NOW, planned=4)) == []


def test_jitter_is_equal_for_all_runs_of_a_task_and_differs_by_task() -> None:
    schedule = Schedule(Cron("0 * * * *"), jitter_ms=10 * MINUTE)

    def late(seed: str) -> list[int]:
        return [run.at - run.nominal for run in next_runs(schedule, NOW, 5, seed=seed)]

    assert late("a") == late("a") and len(set(late("a"))) == 1
    offsets = sorted(late(str(number))[0] for number in range(200))
    assert offsets[0] < MINUTE and 9 * MINUTE < offsets[-1] < 10 * MINUTE
    assert max(later - earlier for earlier, later in pairwise(offsets)) < MINUTE


@given(st.integers(1, DAY), st.text(max_size=5), st.sampled_from(["* * * * *", "0,1 0 * * *", "0 0 1,2 * *"]))
def test_jitter_never_reaches_the_next_run_or_the_end(jitter_ms: int, seed: str, expression: str) -> None:
    schedule = Schedule(Cron(expression), end=NOW + 30 * DAY + 1, jitter_ms=jitter_ms)
    runs = list(islice(after(schedule, NOW, seed=seed), 50))
    for run, following in pairwise(runs):
        assert run.nominal <= run.at < min(following.nominal, run.nominal + jitter_ms)
    assert runs[-1].at < NOW + 30 * DAY + 1


def test_a_last_run_with_jitter_is_before_the_end() -> None:
    at, end = NOW + HOUR, NOW + HOUR + 5
    assert all(
        next_runs(Schedule(Cron("0 * * * *"), end=end, jitter_ms=DAY), NOW, 2, seed=str(n))[-1].at in range(at, end) for n in range(50)
    )


def test_one_time_may_have_jitter() -> None:
    ats = {next_runs(Schedule(Once(NOW + 1), jitter_ms=MINUTE), NOW, 1, seed=str(n))[0].at for n in range(20)}
    assert len(ats) == 20 and all(NOW < at <= NOW + MINUTE for at in ats)


def test_local_times_have_the_precision_of_the_instant() -> None:
    assert [local_time(NOW + ms, "UTC")[16:] for ms in (0, 1_000, 1)] == ["+00:00", ":01+00:00", ":00.001+00:00"]
