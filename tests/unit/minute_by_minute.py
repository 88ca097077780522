"""The runs of a cron schedule by a second, slow and plain method: check every minute.

It shares nothing with the product but the zone files. `python -m tests.unit.minute_by_minute 10000` compares this number of random
schedules, over all zones.
"""

import sys
import time
from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from itertools import islice, pairwise
from random import Random
from typing import NamedTuple

from scheduler.model.schedule import Cron, Schedule
from scheduler.tasks import schedule as product
from scheduler.tasks import zones
from scheduler.tasks.cron import read

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
SIGHT = timedelta(days=800)  # how far ahead it checks
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
ODD_ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Kolkata",
    "Africa/Casablanca",
    "Pacific/Chatham",
    "Antarctica/Troll",
    "Africa/Cairo",
    "Pacific/Apia",
    "Asia/Gaza",
    "UTC",
)


class Case(NamedTuple):
    expression: str
    zone: str
    dst_gap: str
    dst_overlap: str
    instant: datetime


def runs(case: Case) -> Iterator[datetime]:
    """The UTC minutes after the instant, up to `SIGHT` later, at which the schedule runs."""
    minute, hour, *dates = case.expression.split()
    fixed = "*" not in (minute[0], hour[0])
    zone = zones.zone(case.zone)
    now, last = case.instant.replace(second=0, microsecond=0) + MINUTE, case.instant + SIGHT

    def named(local: datetime) -> bool:
        return lists(minute, local.minute, 59) and lists(hour, local.hour, 23) and is_day(*dates, local.date())

    before = (now - MINUTE).astimezone(zone).replace(tzinfo=None)
    while now < last:
        if not any(is_day(*dates, now.date() + DAY * n) for n in (-1, 0, 1, 2)):
            now += DAY
            before = (now - MINUTE).astimezone(zone).replace(tzinfo=None)
            continue
        here = now.astimezone(zone)
        local = here.replace(tzinfo=None, fold=0)
        if named(local):
            if not fixed or not is_twice(local, zone) or case.dst_overlap in ("both", "second" if here.fold else "first"):
                yield now
        elif fixed and case.dst_gap == "shift" and local - before > MINUTE:
            jumped = (local - before) // MINUTE
            if any(named(before + MINUTE * n) for n in range(1, jumped)):
                yield now
        before, now = local, now + MINUTE


def is_twice(local: datetime, zone: tzinfo) -> bool:
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first < second  # in a gap, `second` is less


@cache
def is_day(of_month: str, month: str, of_week: str, day: date) -> bool:
    if not lists(month, day.month, 12):
        return False
    of_month_fits = any(is_date(item, day) for item in of_month.split(","))
    of_week_fits = any(is_weekday(item, day) for item in of_week.split(","))
    if of_month[0] == "*" or of_week[0] == "*":
        return of_month_fits and of_week_fits
    return of_month_fits or of_week_fits


def is_date(item: str, day: date) -> bool:
    last = monthrange(day.year, day.month)[1]
    if item.startswith("L-"):
        return day.day == last - int(item[2:])
    if item.endswith("W"):
        meant = last if item == "LW" else int(item[:-1])
        workdays = [date(day.year, day.month, each) for each in range(1, last + 1)]
        workdays = [each for each in workdays if each.weekday() < 5]
        return meant <= last and day == min(workdays, key=lambda each: abs(each.day - meant))
    return day.day == last if item == "L" else lists(item, day.day, 31)


def is_weekday(item: str, day: date) -> bool:
    today = (day.weekday() + 1) % 7
    if "L" in item:
        return number(item.replace("L", "")) % 7 == today and (day + DAY * 7).month != day.month
    if "#" in item:
        name, nth = item.split("#")
        return number(name) % 7 == today and (day - DAY * 7 * int(nth)).month != day.month == (day - DAY * 7 * (int(nth) - 1)).month
    return lists(item, today, 7) or (today == 0 and lists(item, 7, 7))


@cache
def lists(field: str, value: int, highest: int) -> bool:
    for item in field.split(","):
        span, _, step = item.partition("/")
        low, _, high = span.partition("-")
        first = (1 if highest in (31, 12) else 0) if span == "*" else number(low)
        last = highest if span == "*" else number(high or low)
        if last < first and high == "SUN":
            last = 7
        if first <= value <= last and (value - first) % int(step or 1) == 0:
            return True
    return False


def number(text: str) -> int:
    return DAYS.index(text) if text in DAYS else MONTHS.index(text) if text in MONTHS else int(text)


def random_case(random: Random, names: tuple[str, ...] = ODD_ZONES) -> Case:
    """A case of any kind; half of the cases are within two days of a change of the clock."""
    zone = random.choice(names)
    instant = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(14 * 365 * 86_400))
    changes = clock_changes(zone)
    if changes and random.random() < 0.6:
        instant = random.choice(changes) + timedelta(minutes=random.randrange(-2 * 1440, 1440))
    return Case(random_expression(random), zone, random.choice(product.DST_GAP), random.choice(product.DST_OVERLAP), instant)


@cache
def clock_changes(zone: str) -> list[datetime]:
    """The days of 2024 to 2037 on which the zone changes its clock."""
    days = [datetime(2024, 1, 1, tzinfo=UTC) + DAY * n for n in range(14 * 365)]
    offsets = [day.astimezone(zones.zone(zone)).utcoffset() for day in days]
    return [day for day, (before, after) in zip(days, pairwise(offsets), strict=False) if before != after]


def random_expression(random: Random) -> str:
    """A random expression that `cron.read` accepts."""
    while True:
        hour = random.choice(("*", "*/2", "1", "2", "0-3", "1-3/2", "0,2,23", random_field(random, 0, 23)))
        dates = random.choice(("* * *", "* * *", " ".join((random_of_month(random), random_field(random, 1, 12), random_of_week(random)))))
        text = f"{random_field(random, 0, 59)} {hour} {dates}"
        try:
            read(text)
        except ValueError as error:
            assert "never runs" in str(error), text
        else:
            return text


def random_field(random: Random, low: int, high: int) -> str:
    return ",".join(random_item(random, low, high) for _ in range(random.choice((1, 1, 1, 2, 3)))) if random.random() < 0.7 else "*"


def random_item(random: Random, low: int, high: int) -> str:
    kind = random.randrange(4)
    if kind == 0:
        return f"*/{random.randint(1, high - low - (high == 7))}"
    first, last = sorted(random.sample(range(low, high + 1), 2))
    if kind == 1:
        return f"{first}-{last}"
    return f"{first}-{last}/{random.randint(1, last - first)}" if kind == 2 else str(first)


def random_of_month(random: Random) -> str:
    counted = (f"L-{random.randint(1, 30)}", f"{random.randint(1, 31)}W", "LW", f"1,{random.randint(1, 31)}W", "L-3,LW")
    return random.choice(("*", "L", "1,L", random.choice(counted), random_field(random, 1, 31)))


def random_of_week(random: Random) -> str:
    special = (f"{random.choice(DAYS)}#{random.randint(1, 5)}", f"{random.choice(DAYS)}L", f"L{random.randint(0, 7)}", "2#1,FRIL")
    return random.choice(("*", "MON-FRI", "SAT-SUN", "FRI-SUN/2", *special, random_field(random, 0, 7)))


def disagreement(case: Case, count: int = 2) -> str | None:
    """The first difference between both methods, in the first runs; None if they agree."""
    instant = round(case.instant.timestamp() * 1000)
    spec = Cron(case.expression, case.zone, case.dst_gap, case.dst_overlap)
    seen = [round(run.timestamp() * 1000) for run in islice(runs(case), count)]
    sight = instant + SIGHT // timedelta(milliseconds=1)
    said = [run.nominal for run in product.next_runs(Schedule(spec), instant, count) if run.nominal < sight]
    return None if seen == said else f"{case}: by the minute {seen}, said {said}"


def main(cases: int) -> None:
    random, names, began = Random(cases), tuple(sorted(zones.names())), time.process_time()
    for _ in range(cases):
        if found := disagreement(random_case(random, random.choice((names, ODD_ZONES)))):
            sys.exit(found)
    print(f"{cases} schedules agree, {time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main(int(sys.argv[1]))
