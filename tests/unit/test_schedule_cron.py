"""Cron expressions: their meaning, and which are refused."""

import re
from calendar import isleap
from collections.abc import Iterable
from datetime import date
from itertools import islice, pairwise
from random import Random

import pytest
from croniter import croniter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.model.instants import parse
from scheduler.model.schedule import Cron, Schedule
from scheduler.tasks import cron
from scheduler.tasks.schedule import after, next_runs
from tests.unit.minute_by_minute import random_expression

SINCE = parse("2027-01-01T00:00:00Z") - 1


def first(expression: str, count: int = 4) -> list[str]:
    """The first runs of 2027 in UTC."""
    return [run.local.removesuffix("+00:00") for run in islice(after(Schedule(Cron(expression)), SINCE), count)]


def days(expression: str, count: int = 4) -> list[str]:
    return [run[5:10] for run in first(f"0 0 {expression}", count)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 * *", ["01-01", "02-01", "03-01", "04-01"]),
        ("* * MON", ["01-04", "01-11", "01-18", "01-25"]),
        ("10 * MON", ["01-04", "01-10", "01-11", "01-18"]),  # either
        ("1-31 * MON", ["01-01", "01-02", "01-03", "01-04"]),  # either: 1-31 does not begin with *
        ("*/2 * MON", ["01-11", "01-25", "02-01", "02-15"]),  # both: it begins with *
        ("*/10,12 * MON", ["01-11", "02-01", "03-01", "04-12"]),
        ("12,*/10 * MON", ["01-01", "01-04", "01-11", "01-12"]),  # begins with 12
        ("10 * */2", ["01-10", "04-10", "06-10", "07-10"]),
        ("* FEB SUN", ["02-07", "02-14", "02-21", "02-28"]),
        ("* feb 7", ["02-07", "02-14", "02-21", "02-28"]),
        ("* FEB 0", ["02-07", "02-14", "02-21", "02-28"]),
        ("* * FRI-SUN", ["01-01", "01-02", "01-03", "01-08"]),
        ("* * 1-7/3", ["01-03", "01-04", "01-07", "01-10"]),
        ("L * *", ["01-31", "02-28", "03-31", "04-30"]),
        ("1,L * *", ["01-01", "01-31", "02-01", "02-28"]),
        ("L-3 * *", ["01-28", "02-25", "03-28", "04-27"]),
        ("L-1,L * *", ["01-30", "01-31", "02-27", "02-28"]),
        ("L-30 * *", ["01-01", "03-01", "05-01", "07-01"]),
        ("L-28 2 *", ["02-01", "02-01", "02-01", "02-01"]),
        ("15W * *", ["01-15", "02-15", "03-15", "04-15"]),
        ("16W * *", ["01-15", "02-16", "03-16", "04-16"]),  # 01-16 is a Saturday
        ("17W * *", ["01-18", "02-17", "03-17", "04-16"]),  # 01-17 is a Sunday, 04-17 a Saturday
        ("1W * *", ["01-01", "02-01", "03-01", "04-01"]),
        ("1W 5,8 *", ["05-03", "08-02", "05-01", "08-01"]),  # a Saturday and a Sunday: not before the month
        ("31W 1,5,7,10 *", ["01-29", "05-31", "07-30", "10-29"]),  # 01-31 and 10-31 are Sundays: not after the month
        ("30W * *", ["01-29", "03-30", "04-30", "05-31"]),  # none in February; 05-30 is a Sunday within the month
        ("LW * *", ["01-29", "02-26", "03-31", "04-30"]),
        ("1,LW * *", ["01-01", "01-29", "02-01", "02-26"]),
        ("1W,015W,L * *", ["01-01", "01-15", "01-31", "02-01"]),
        ("LW * MON", ["01-04", "01-11", "01-18", "01-25"]),  # either
        ("*/2,LW * MON-FRI", ["01-01", "01-05", "01-07", "01-11"]),  # both
        ("* * FRI#2", ["01-08", "02-12", "03-12", "04-09"]),
        ("* * 5#5", ["01-29", "04-30", "07-30", "10-29"]),
        ("* * 7#1", ["01-03", "02-07", "03-07", "04-04"]),
        ("* * FRIL", ["01-29", "02-26", "03-26", "04-30"]),
        ("* * 5L", ["01-29", "02-26", "03-26", "04-30"]),
        ("* * L5", ["01-29", "02-26", "03-26", "04-30"]),
        ("* * 7L", ["01-31", "02-28", "03-28", "04-25"]),
        ("* * MON#1,FRIL", ["01-04", "01-29", "02-01", "02-26"]),
        ("10 * MON#1", ["01-04", "01-10", "02-01", "02-10"]),
        ("29 2 *", ["02-29", "02-29", "02-29", "02-29"]),
        ("31 2,4,7 *", ["07-31", "07-31", "07-31", "07-31"]),
    ],
)
def test_days_match_as_in_debian_cron(expression: str, expected: list[str]) -> None:
    assert days(expression) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("@yearly", ["2027-01-01T00:00", "2028-01-01T00:00"]),
        ("@annually", ["2027-01-01T00:00", "2028-01-01T00:00"]),
        ("@monthly", ["2027-01-01T00:00", "2027-02-01T00:00"]),
        ("@weekly", ["2027-01-03T00:00", "2027-01-10T00:00"]),
        ("@daily", ["2027-01-01T00:00", "2027-01-02T00:00"]),
        ("@Midnight", ["2027-01-01T00:00", "2027-01-02T00:00"]),
        ("@hourly", ["2027-01-01T00:00", "2027-01-01T01:00"]),
    ],
)
def test_words_are_short_forms_of_expressions(word: str, expected: list[str]) -> None:
    assert first(word, 2) == expected


@pytest.mark.parametrize(
    ("expression", "fixed"),
    [
        ("30 2 * * *", True),
        ("0 0-23 * * *", True),
        ("5,*/10 2 * * *", True),
        ("*/10,5 2 * * *", False),
        ("* 2 * * *", False),
        ("30 * * * *", False),
        ("30 */2 * * *", False),
        ("@daily", True),
        ("@hourly", False),
    ],
)
def test_times_are_fixed_unless_minute_or_hour_begins_with_a_star(expression: str, fixed: bool) -> None:
    assert cron.read(expression).fixed is fixed


def test_blanks_case_and_leading_zeros_do_not_matter() -> None:
    assert cron.read(" 05\t02  * jan  mon ") == cron.read("5 2 * JAN MON")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "must have five fields"),
        ("* * * *", "must have five fields"),
        ("*/10 * * * * *", "has 6 fields: seconds and years are not accepted"),
        ("0 0 1 1 * 2027 *", "has 7 fields: seconds and years"),
        ("* " * 8, "must have five fields"),
        ("@reboot", "@reboot is none of the words @yearly"),
        ("@every 5m", "is none of the words"),
        ("60 * * * *", "minute: 60 is not between 0 and 59"),
        ("* 24 * * *", "hour: 24 is not between 0 and 23"),
        ("* * 0 * *", "day of month: 0 is not between 1 and 31"),
        ("* * 32 * *", "day of month: 32 is not between 1 and 31"),
        ("* * * 0 *", "month: 0 is not between 1 and 12"),
        ("* * * 13 *", "month: 13 is not between 1 and 12"),
        ("* * * * 8", "day of week: 8 is not between 0 and 7"),
        ("0-60 * * * *", "minute: 60 is not between"),
        ("99999999999999999999 * * * *", "minute: 9+ is not between"),
        ("-1 * * * *", "minute: -1 is not a number"),
        ("1.5 * * * *", "minute: 1.5 is not a number"),
        ("٣ * * * *", "minute: ٣ is not a number"),
        ("1,,2 * * * *", "minute: an empty item"),
        ("1- * * * *", "minute: 1- is not a number"),
        ("*-5 * * * *", r"minute: \*-5 is not a number"),
        ("*/x * * * *", "minute: .*X is not a number"),
        ("JAN * * * *", "minute: JAN is not known"),
        ("* * * FOO *", "month: FOO is not known; names are JAN"),
        ("* * * * MONDAY", "day of week: MONDAY is not known; names are SUN"),
        ("*/0 * * * *", "a step must be at least 1"),
        ("*/60 * * * *", "minute: .* the step leaves its range at once"),
        ("* */24 * * *", "hour: .* the step leaves its range"),
        ("* * */31 * *", "day of month: .* the step leaves its range"),
        ("* * * * */7", "day of week: .* the step leaves its range"),
        ("10-20/30 * * * *", "the step leaves its range"),
        ("5/15 * * * *", "minute: 5/15 is read in two ways: write 5-59/15, or 5"),
        ("* * * JAN-JAN *", "month: JAN-JAN is read in two ways: write JAN for that one"),
        ("5-5 * * * *", "minute: 5-5 is read in two ways"),
        ("* * * * 7-SUN", "day of week: 7-SUN is read in two ways"),
        ("* * * * SUN-SUN", "day of week: SUN-SUN is read in two ways"),
        ("* 22-2 * * *", "hour: 22-2 goes backwards: write two ranges, as in 22-23,0-2"),
        ("* * * NOV-FEB *", "month: NOV-FEB goes backwards: write two ranges, as in NOV-12,1-FEB"),
        ("* * * * SAT-MON", "day of week: SAT-MON goes backwards: write a list, as in SAT,0-MON"),
        ("* 22-2/2 * * *", "hour: 22-2/2 goes backwards: write a list, as in 22,0,2"),
        ("* * * */12 *", "the step leaves its range at once: write 1$"),
        ("50/15 * * * *", "minute: 50/15 is read in two ways: write 50$"),
        ("TZ=Europe/Berlin 0 0 * * *", "must have no TZ=Europe/Berlin: the time zone is the field time_zone"),
        ("*,5 * * * *", r"minute: \* in a list leaves the rest"),
        ("* * ? * *", "day of month: .* is not accepted: write"),
        ("* * * * ?", "day of week: .* is not accepted: write"),
        ("H * * * *", "minute: H: H and R are not accepted"),
        ("R(0-5) * * * *", "minute: .*H and R are not accepted"),
        ("* * W15 * *", "day of month: W15: with L and W only L, L-1 to L-30, LW, and 1W to 31W are accepted"),
        ("* * WL * *", "WL: with L and W only"),
        ("* * L-3W * *", "L-3W: with L and W only"),
        ("* * 1-15W * *", "1-15W: with L and W only"),
        ("* * L-0 * *", "L-0: with L and W only"),
        ("* * L-31 * *", "L-31: with L and W only"),
        ("* * 1-L * *", "1-L: with L and W only"),
        ("* * 32W * *", "day of month: 32 is not between 1 and 31"),
        ("* * 0W * *", "day of month: 0 is not between 1 and 31"),
        ("* * * * 5W", "day of week: 5W is not known"),
        ("0 0 30W 2 *", "never runs: the month has no such day"),
        ("0 0 L-30 4,6 *", "never runs: the month has no such day"),
        ("* * * * L", "day of week: L alone is read in two ways"),
        ("* L * * *", "hour: L is not known"),
        ("* * * * MON,FRI#2", "day of week: .* mixes plain days with # or L"),
        ("* * * * MON,FRIL", "mixes plain days"),
        ("* * * * */2,FRIL", "mixes plain days"),
        ("* * * * FRI#0", "day of week: FRI#0 is not a number"),
        ("* * * * FRI#6", "FRI#6 is not a number"),
        ("* * * * 1-5#2", "1-5#2 is not a number"),
        ("* * * * 8#2", "8 is not between 0 and 7"),
        ("* * * * FOOL", "FOO is not known"),
        ("0 0 30 2 *", "never runs: the month has no such day"),
        ("0 0 31 4,6,9,11 *", "never runs: the month has no such day"),
        ("0 0 30 2 MON", "never runs: the month has no such day"),
        ("0 0 */30 2 MON#2", "never runs: no day matches both"),
        ("1," * 200 + "1 * * * *", "at most 256 characters"),
    ],
)
def test_invalid_and_ambiguous_expressions_are_refused_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        cron.read(expression)


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 */28 2 SUN", "0 0 * 2 MON#5", "0 0 31 2,3 *", "0 0 L 2 *"])
def test_rare_days_are_accepted(expression: str) -> None:
    assert first(expression, 1)


def test_a_leap_day_on_a_given_weekday_is_found_after_forty_years() -> None:
    """2100 is no leap year."""
    runs = after(Schedule(Cron("0 0 * 2 MON#5")), parse("2072-01-01T00:00:00Z"))
    leap_days = [date(year, 2, 29) for year in range(2072, 2200, 4) if isleap(year)]
    mondays = [day for day in leap_days if day.isoweekday() == 1]
    assert max(later.year - earlier.year for earlier, later in pairwise(mondays)) == 40
    assert [run.local[:10] for run in islice(runs, len(mondays))] == [day.isoformat() for day in mondays]


class Reader:
    """croniter as `cron` calls it. It records the text it was given, and expands that text or `instead`."""

    def __init__(self, *, instead: str | None = None) -> None:
        self.given: list[str] = []
        self._instead = instead

    def expand(self, text: str) -> object:
        self.given.append(text)
        return croniter.expand(text if self._instead is None else self._instead)


def read_with(reader: Reader, expression: str) -> cron.Expression:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cron, "croniter", reader)
        return cron.read.__wrapped__(expression)


def accepted() -> Iterable[str]:
    yield from cron.WORDS
    yield from (random_expression(Random(number)) for number in range(50))


def written_days(expression: str) -> list[str]:
    return cron.WORDS.get(expression, expression).split()[2].split(",")


def test_every_accepted_expression_is_expanded_as_croniter_reads_it() -> None:
    for expression in accepted():
        reader = Reader(instead="7 6 5 4 3")
        read = read_with(reader, expression)
        assert len(reader.given) == 1
        assert read.times == 1 << (6 * 60 + 7)
        assert (read.days.of_month or {5}, read.days.months, read.days.of_week, read.days.nth) == ({5}, {4}, {3}, {})
        assert bool(read.days.of_month) == any("W" not in item and "L-" not in item for item in written_days(expression))


@pytest.mark.long
@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1_700_000_000, 2_000_000_000))
def test_croniter_finds_the_same_runs_where_no_clock_changes(random: Random, since: int) -> None:
    """Two kinds are left out: beside a list of dates, croniter requires `#` or `L` of a weekday as well, where either is enough here.

    And it knows no `L-3`, and no `W` in a list.
    """
    expression = random_expression(random)
    dates, weekdays = expression.split()[2], expression.split()[4]
    assume(dates.startswith("*") or not set("#L") & set(weekdays))
    assume("W" not in dates and "L-" not in dates)
    reader = Reader()
    read_with(reader, expression)
    runs = croniter(reader.given[0], float(since), implement_cron_bug=True, max_years_between_matches=45)
    expected = [round(runs.get_next(float)) * 1000 for _ in range(3)]
    assert [run.nominal for run in next_runs(Schedule(Cron(expression)), since * 1000, 3)] == expected


@pytest.mark.parametrize("day", range(1, 29))
def test_croniter_finds_the_same_nearest_weekdays(day: int) -> None:
    """It takes the 31st of a month of 30 days for its last day; here such a month has no run, as with a plain 31."""
    runs = croniter(f"0 0 {day}W * *", SINCE / 1000, max_years_between_matches=5)
    expected = [round(runs.get_next(float)) * 1000 for _ in range(60)]
    assert [run.nominal for run in next_runs(Schedule(Cron(f"0 0 {day}W * *")), SINCE, 60)] == expected


def test_two_expressions_run_when_either_does_and_once_at_the_same_time() -> None:
    spec = Cron("0 18 * * *", more=("0 9 * * MON-FRI", "30 9 L * *", "0 */9 1 * *"))
    runs = [run.local[5:16] for run in next_runs(Schedule(spec), parse("2027-04-29T00:00:00Z"), 9)]
    expected = ["04-29T09:00", "04-29T18:00", "04-30T09:00", "04-30T09:30", "04-30T18:00"]
    assert runs == [*expected, "05-01T00:00", "05-01T09:00", "05-01T18:00", "05-02T18:00"]


def test_times_of_several_expressions_in_a_gap_run_once_at_its_end() -> None:
    spec = Cron("15 2 * * *", "Europe/Berlin", more=("45 2 * * *", "*/30 3 * * *"))
    runs = next_runs(Schedule(spec), parse("2027-03-27T12:00:00Z"), 3)
    assert [(run.local[5:16], run.odd) for run in runs] == [
        ("03-28T03:00", "gap: 02:15 to 02:45 do not exist, run once at 03:00"),
        ("03-28T03:30", None),
        ("03-29T02:15", None),
    ]


def test_each_expression_follows_its_own_kind_when_the_clock_is_set_back() -> None:
    spec = Cron("30 2 * * *", "Europe/Berlin", more=("*/20 2 * * *",))
    runs = next_runs(Schedule(spec), parse("2027-10-30T22:00:00Z"), 7)
    assert [run.local[11:] for run in runs] == [f"02:{minute}+02:00" for minute in ("00", "20", "30", "40")] + [
        f"02:{minute}+01:00" for minute in ("00", "20", "40")
    ]


NUMBERS = {
    0: range(60),
    1: range(24),
    2: range(1, 32),
    3: (*range(1, 13), "JAN", "FEB", "NOV", "DEC"),
    4: (*range(8), "SUN", "MON", "FRI", "SAT"),
}


@pytest.mark.long
@pytest.mark.parametrize("field", NUMBERS)
def test_the_form_that_an_error_advises_is_accepted(field: int) -> None:
    def written(item: str) -> str:
        return " ".join("1" if field == 3 and number == 2 else "*" if number != field else item for number in range(5))

    values = NUMBERS[field]
    items = [f"{low}-{high}{step}" for low in values for high in values for step in ("", "/2", "/20")]
    advised = []
    for item in (*items, *(f"{low}/{step}" for low in values for step in (1, 2, 20)), *(f"*/{step}" for step in range(1, 70))):
        try:
            cron.read(written(item))
        except ValueError as error:
            found = re.search(r"as in (\S+)$|write ([^\s,]+)(?:,| for that one|$)", str(error))
            assert found is not None, error
            advised.append(found[1] or found[2])
    assert advised
    for each in set(advised):
        cron.read(written(each))
