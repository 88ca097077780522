"""Cron expressions of EventBridge Scheduler: the times that they name, and the same times as a cron expression of Punctual.

Source: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html. A range that goes backwards (`22-2`) goes over the
end of its field, and a step (`5/15`) counts up to the end of its field, also for days of the week.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone, tzinfo
from itertools import pairwise

SIGHT = 41 * 366  # days; the rarest date, a 29 February on a given weekday, can take 40 years


class NoEqual(ValueError):
    """A schedule cannot be expressed as a task; the message has the reason."""


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        return self.high - self.low + 1


MINUTE, HOUR, DAY = _Field("minute", 0, 59), _Field("hour", 0, 23), _Field("day of the month", 1, 31)
MONTH = _Field("month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
WEEKDAY = _Field("day of the week", 1, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))
YEAR = _Field("year", 1970, 2199)


@dataclass(frozen=True)
class Times:
    """The local times of an expression. Weekdays count from 1, Sunday."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    last_day: bool  # L: also the last day of the month
    months: frozenset[int]
    weekdays: frozenset[int]
    nth: int | None  # only this one of the weekday's occurrences in the month; -1: the last one
    years: frozenset[int]
    before_last: frozenset[int] = frozenset()  # L-3: also the third day before the last one of the month
    nearest: frozenset[int] = frozenset()  # 15W: also the weekday (Monday to Friday) nearest to the 15th, in the same month; 0 is LW

    def is_day(self, day: date) -> bool:
        """Whether it runs on this day."""
        last = ((day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)).day
        if day.year not in self.years or day.month not in self.months or day.isoweekday() % 7 + 1 not in self.weekdays:
            return False
        if self.nth is not None:
            return day.day > last - 7 if self.nth == -1 else (day.day + 6) // 7 == self.nth
        if day.day in self.days or (self.last_day and day.day == last) or last - day.day in self.before_last:
            return True
        return any(day.day == _nearest(number or last, day, last) for number in self.nearest)

    def runs(self, zone: tzinfo, since: datetime, end: datetime | None) -> Iterator[datetime]:
        """The instants later than `since` and before `end`, without those that the clock skips. A time that comes twice runs once."""
        day = since.astimezone(zone).date() - timedelta(days=1)
        for _ in range(SIGHT):
            day += timedelta(days=1)
            if day.year > max(self.years) or (end is not None and day > end.astimezone(zone).date()):
                return
            if not self.is_day(day):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    at = instant(datetime(day.year, day.month, day.day, hour, minute), zone)
                    if at is not None and at > since and (end is None or at < end):
                        yield at

    def fields(self, *, fixed: bool) -> str:
        """The five fields of a cron expression for Punctual.

        `fixed`: neither minute nor hour begins with `*`, so that each local time runs once, also when the clock changes.
        """
        weekday = written(WEEKDAY, self.weekdays)
        days = [written(DAY, self.days)] if self.days else []
        days += [f"L-{number}" for number in sorted(self.before_last)] + [f"{number}W" for number in sorted(self.nearest - {0})]
        days += ["LW"] if 0 in self.nearest else []
        return " ".join(
            (
                written(MINUTE, self.minutes, star=not fixed),
                written(HOUR, self.hours, star=not fixed),
                ",".join([*days, "L"] if self.last_day else days),
                written(MONTH, self.months),
                weekday if self.nth is None else f"{weekday}L" if self.nth == -1 else f"{weekday}#{self.nth}",
            )
        )


def read(inner: str) -> Times:
    """Return the times of an expression, given without `cron(…)`. Raises NoEqual."""
    fields = inner.upper().split()
    if len(fields) != 6:
        raise NoEqual(f"has a cron expression without six fields: {inner}")
    minute, hour, day, month, weekday, year = fields
    if (day == "?") == (weekday == "?"):
        raise NoEqual("has no ? or two: AWS documents one, as day of the month or as day of the week")
    days, last_day, before_last, nearest = _days("*" if day == "?" else day)
    weekdays, nth = _weekdays("*" if weekday == "?" else weekday)
    return Times(
        *(_numbers(MINUTE, minute), _numbers(HOUR, hour), days, last_day, _numbers(MONTH, month), weekdays, nth, _numbers(YEAR, year)),
        before_last,
        nearest,
    )


def instant(local: datetime, zone: tzinfo) -> datetime | None:
    """The instant of a local time, the first one if it comes twice; None if the clock skips it."""
    at = local.replace(tzinfo=zone).astimezone(timezone.utc)
    return at if at.astimezone(zone).replace(tzinfo=None) == local else None


def _days(field: str) -> tuple[frozenset[int], bool, frozenset[int], frozenset[int]]:
    parts = field.split(",")
    before_last = [part for part in parts if re.fullmatch(r"L-([1-9]|[12][0-9]|30)", part)]
    nearest = [part for part in parts if re.fullmatch(r"(L|[0-9]{1,2})W", part)]
    days = ",".join(part for part in parts if part not in ("L", *before_last, *nearest))
    return (
        _numbers(DAY, days) if days else frozenset(),
        "L" in parts,
        frozenset(int(part[2:]) for part in before_last),
        frozenset(0 if part == "LW" else _value(DAY, part[:-1]) for part in nearest),
    )


def _nearest(number: int, day: date, last: int) -> int | None:
    """The day of the month of `day` that is the weekday nearest to this day of it; None if the month has no such day."""
    if number > last:
        return None
    weekday = day.replace(day=number).isoweekday()
    if weekday == 6:
        return number - 1 if number > 1 else number + 2
    if weekday == 7:
        return number + 1 if number < last else number - 2
    return number


def _weekdays(field: str) -> tuple[frozenset[int], int | None]:
    if field == "L":  # the last day of the week
        return frozenset({7}), None
    found = re.fullmatch(r"([1-7]|[A-Z]{3})(?:(L)|#([1-5]))", field)
    if found:
        return frozenset({_value(WEEKDAY, found[1])}), -1 if found[2] else int(found[3])
    if "#" in field and "," in field:
        raise NoEqual(f"has # in a list ({field}), and AWS documents only one expression with it")
    return _numbers(WEEKDAY, field), None


def _numbers(rule: _Field, field: str) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        item = re.fullmatch(r"(?:(\*)|([A-Z]{3}|[0-9]{1,4})(?:-([A-Z]{3}|[0-9]{1,4}))?)(?:/([0-9]{1,4}))?", part)
        step = int(item[4] or 1) if item else 0
        if item is None or step == 0:
            raise NoEqual(f"has a {rule.name} in a form that AWS does not document: {part[:40]!a}")
        first = rule.low if item[1] else _value(rule, item[2])
        last = rule.high if item[1] or (item[4] and not item[3]) else _value(rule, item[3] or item[2])
        if last < first:
            if rule is YEAR:
                raise NoEqual(f"has years that go backwards: {part}")
            last += rule.size
        found |= {rule.low + (number - rule.low) % rule.size for number in range(first, last + 1, step)}
    return frozenset(found)


def _value(rule: _Field, text: str) -> int:
    if text in rule.names:
        return rule.low + rule.names.index(text)
    if not text.isdecimal() or not rule.low <= int(text) <= rule.high:
        raise NoEqual(f"has a {rule.name} that does not exist: {text}")
    return int(text)


def written(rule: _Field, numbers: frozenset[int], *, star: bool = True) -> str:
    """The numbers as Punctual reads them: `*`, a step, or a list of ranges. Months and weekdays have their names."""
    found = sorted(numbers)
    steps = {after - before for before, after in pairwise(found)}
    if len(found) == rule.size:
        return "*" if star else f"{rule.low}-{rule.high}"
    if len(found) > 2 and len(steps) == 1 and (step := steps.pop()) > 1:
        last = rule.high if found[-1] + step > rule.high else found[-1]
        if star and found[0] == rule.low and last == rule.high and rule is not WEEKDAY:
            return f"*/{step}"
        if not rule.names:
            return f"{found[0]}-{last}/{step}"
    ranges: list[list[int]] = []
    for number in found:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return ",".join(_range(rule, each) for each in ranges)


def _range(rule: _Field, numbers: Sequence[int]) -> str:
    first, last = _named(rule, numbers[0]), _named(rule, numbers[-1])
    return first if len(numbers) == 1 else f"{first}-{last}"


def _named(rule: _Field, number: int) -> str:
    return rule.names[number - rule.low] if rule.names else str(number)
