"""When EventBridge Scheduler runs a cron expression: a second reading of AWS's documentation, which shares no code with the importer.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html: six fields of lists, ranges and increments; `?` for any;
`L`, the last day of the month or the week; `3W`, the weekday closest to the third day of the month (taken within the month, as by
Quartz), `LW` and `L-3`; `5L` and `5#2`, the last and the second Thursday. "If a cron expression falls on a
non-existent date and time, your schedule invocation is skipped", and when time shifts back "your schedule runs only once". It does not
say in which of two equal hours; the first is assumed.
"""

from __future__ import annotations

import calendar
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

DAYS = {name: number for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split(), 1)}
MONTHS = {name: number for number, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}


def runs(expression: str, zone: str, since: datetime, until: datetime) -> list[datetime]:
    """The instants after `since` and before `until`, in UTC."""
    minute, hour, day, month, weekday, year = expression.removeprefix("cron(").removesuffix(")").upper().split()
    found, place = [], _place(zone)
    times = [at for at in range(24 * 60) if _has(hour, at // 60, 0, 23) and _has(minute, at % 60, 0, 59)]
    on = since.astimezone(place).date() - timedelta(days=1)
    while on <= until.astimezone(place).date():
        on += timedelta(days=1)
        if not (_has(year, on.year, 1970, 2199) and _has(month, on.month, 1, 12, MONTHS) and _is_on(on, day, weekday)):
            continue
        noon = datetime(on.year, on.month, on.day, 12)
        offsets = {place.utcoffset(noon + timedelta(days=away)) for away in (-1, 0, 1)}
        for at in times:
            wall = datetime(on.year, on.month, on.day, at // 60, at % 60)
            if len(offsets) == 1:  # the clock does not change on these days
                shown = [wall.replace(tzinfo=timezone.utc) - offsets.copy().pop()]
            else:  # the earlier of the instants whose wall clock shows this time; there is none in a gap
                shown = [wall.replace(tzinfo=place, fold=fold).astimezone(timezone.utc) for fold in (0, 1)]
                shown = [each for each in shown if each.astimezone(place).replace(tzinfo=None) == wall]
            if shown and since < min(shown) < until:
                found.append(min(shown))
    return sorted(found)


@lru_cache
def _place(zone: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file)


def _is_on(on: date, day: str, weekday: str) -> bool:
    last = calendar.monthrange(on.year, on.month)[1]
    number = (on.weekday() + 1) % 7 + 1
    if day != "?":
        return any(_is_date(on, part, last) for part in day.split(","))
    if weekday == "L":
        return number == 7
    if weekday.endswith("L"):
        return number == _number(weekday[:-1], DAYS) and on.day + 7 > last
    if "#" in weekday:
        name, nth = weekday.split("#")
        return number == _number(name, DAYS) and (on.day - 1) // 7 + 1 == int(nth)
    return _has(weekday, number, 1, 7, DAYS)


def _is_date(on: date, part: str, last: int) -> bool:
    if part.startswith("L-"):
        return on.day + int(part[2:]) == last
    if part.endswith("W"):
        meant = last if part == "LW" else int(part[:-1])
        workdays = [each for week in calendar.monthcalendar(on.year, on.month) for each in week[:5] if each]
        return meant <= last and on.day == min(workdays, key=lambda each: abs(each - meant))
    return on.day == last if part == "L" else _has(part, on.day, 1, 31)


def _has(field: str, value: int, low: int, high: int, names: dict[str, int] | None = None) -> bool:
    for part in field.split(","):
        area, _, every = part.partition("/")
        first, dash, last = area.partition("-")
        begin = low if area == "*" else _number(first, names)
        end = _number(last, names) if dash else high if area == "*" or every else begin
        length = (end - begin) % (high - low + 1)
        if (away := (value - begin) % (high - low + 1)) <= length and away % int(every or 1) == 0:
            return True
    return False


def _number(text: str, names: dict[str, int] | None) -> int:
    return (names or {}).get(text) or int(text)
