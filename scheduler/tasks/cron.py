"""Five-field cron as Debian cron reads it, plus `L`, `L-3`, `15W`, `LW`, `#` and the `@daily` words.

An ambiguous expression is refused. `15W` is the weekday (Monday to Friday) nearest to the 15th, always in the same month.

croniter expands the fields of every expression. This module computes the next time itself, because
croniter runs fixed times in both repeated hours and is a sixth to a twentieth as fast (decision 33). It also validates
expressions itself: croniter reads `JAN-JAN` and `5-5` as the whole cycle, `22-2` in minutes as a wrap, and `*/90` as the minute 0,
and it accepts dates that do not exist. Beside a list of dates croniter requires that `#` or `L` of a weekday match as well, where
Debian's rule is that either matches. It knows no `L-3`, and no `W` in a list: this module reads both.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache

from croniter import croniter

WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
LONGEST = 256

EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY = 1440  # minutes
_SPAN = 256  # days per mask
_CYCLE = (date(2000, 1, 1).toordinal() - EPOCH_DAY, date(2028, 1, 1).toordinal() - EPOCH_DAY)  # contains every kind of year


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)


_MONTHS = {name: number for number, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}
_WEEKDAYS = {name: number for number, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}
_MINUTE, _HOUR = _Field("minute", 0, 59), _Field("hour", 0, 23)
_DAY_OF_MONTH, _MONTH = _Field("day of month", 1, 31), _Field("month", 1, 12, _MONTHS)
_DAY_OF_WEEK = _Field("day of week", 0, 7, _WEEKDAYS)
_FIELDS = (_MINUTE, _HOUR, _DAY_OF_MONTH, _MONTH, _DAY_OF_WEEK)
_LAST = "l"  # croniter's word for L
_SATURDAY = 5  # as `date.weekday` counts
_COUNTED = re.compile(r"L|LW|L-(?:[1-9]|[12][0-9]|30)|([0-9]+)W")
_NO_DATE = "L"  # stands for the days of the month where croniter reads none of them


@dataclass(frozen=True, slots=True)
class Days:
    """The days that an expression matches. Days are numbered from 1970-01-01."""

    of_month: frozenset[int | str]
    months: frozenset[int]
    of_week: frozenset[int]
    nth: Mapping[int, frozenset[int | str]]  # weekday → its occurrences in the month that match; a weekday without entry: all
    both: bool  # whether day of the month and day of the week must both match, instead of either
    before_last: frozenset[int] = frozenset()  # days of the month, counted back from its last day: 3 is L-3
    nearest: frozenset[int] = frozenset()  # days of the month whose nearest weekday matches: 15 is 15W, 0 is LW
    _masks: dict[int, int] = field(default_factory=dict, compare=False)

    def at_or_after(self, day: int, before: int) -> int | None:
        """The first matching day from `day` on; None if there is none before the day `before`."""
        while day < before:
            span, number = divmod(day, _SPAN)
            mask = self._masks.get(span)
            if mask is None:
                mask = self._masks[span] = sum(1 << n for n in range(_SPAN) if self._matches(span * _SPAN + n))
            rest = mask >> number
            if rest:
                return day + (rest & -rest).bit_length() - 1
            day = (span + 1) * _SPAN
        return None

    def _matches(self, number: int) -> bool:
        day = date.fromordinal(number + EPOCH_DAY)
        if day.month not in self.months:
            return False
        last = _last_day(day)
        of_month = day.day in self.of_month or (day.day == last and _LAST in self.of_month) or last - day.day in self.before_last
        of_month = of_month or any(day.day == _nearest_weekday(number or last, day, last) for number in self.nearest)
        weekday = day.isoweekday() % 7
        of_week = weekday in self.of_week
        if of_week and weekday in self.nth:
            occurrence = (day.day + 6) // 7
            of_week = occurrence in self.nth[weekday] or (day.day + 7 > last and _LAST in self.nth[weekday])
        return (of_month and of_week) if self.both else (of_month or of_week)


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed cron expression. Local minutes are numbered from 1970-01-01 00:00 local time, without regard to clock changes."""

    days: Days
    times: int  # the minutes of the day that match, as a bit mask
    fixed: bool  # whether it names fixed times of the day: neither its minute nor its hour begins with `*`

    def at_or_after(self, minute: int, before: int) -> int | None:
        """The first matching local minute from `minute` on; None if no day up to that of the local minute `before` has a match."""
        day, time = divmod(minute, DAY)
        rest = self.times >> time
        if not rest:
            day, time, rest = day + 1, 0, self.times
        found = self.days.at_or_after(day, before // DAY + 1)
        if found is None:
            return None
        if found != day:
            time, rest = 0, self.times
        return found * DAY + time + (rest & -rest).bit_length() - 1

    def on(self, day: int) -> int:
        """The minutes of the day that match, as a bit mask."""
        return self.times if self.days.at_or_after(day, day + 1) == day else 0


@dataclass(frozen=True, slots=True)
class Several:
    """Expressions of one kind, which match whenever one of them does."""

    expressions: tuple[Expression, ...]
    fixed: bool

    def at_or_after(self, minute: int, before: int) -> int | None:
        """As of an expression: the first match of any."""
        first: int | None = None
        for each in self.expressions:
            found = each.at_or_after(minute, before)
            if found is not None and (first is None or found < first):
                first = before = found
        return first


@lru_cache(maxsize=2048)
def kinds(texts: tuple[str, ...]) -> tuple[Expression | Several, ...]:
    """The expressions, those with fixed times and those without as one each."""
    found = [read(text) for text in texts]
    if len(found) == 1:
        return (found[0],)
    of_kind = {fixed: tuple(each for each in found if each.fixed is fixed) for fixed in (True, False)}
    return tuple(Several(parts, fixed) for fixed, parts in of_kind.items() if parts)


@lru_cache(maxsize=2048)
def read(text: str) -> Expression:
    """Parse an expression. Raises ValueError with the reason if it is invalid or ambiguous, or never runs."""
    fields = _split(text)
    checked = [_checked(rule, written) for rule, written in zip(_FIELDS, fields, strict=True)]
    checked[2], before_last, nearest = _without_counted(checked[2])
    values, nth = croniter.expand(" ".join(each or _NO_DATE for each in checked))
    minutes, hours, of_month, months, of_week = (_set(rule, found) for rule, found in zip(_FIELDS, values, strict=True))
    of_month = of_month if checked[2] else frozenset()
    _refuse_missing_dates([*of_month, *nearest, *(number + 1 for number in before_last)], months)
    days = Days(
        of_month=of_month,
        before_last=before_last,
        nearest=nearest,
        months=frozenset(int(month) for month in months),
        of_week=frozenset(int(day) % 7 for day in of_week),
        nth={day: frozenset(which) for day, which in nth.items()},
        both=fields[2].startswith("*") or fields[4].startswith("*"),
    )
    if days.at_or_after(*_CYCLE) is None:
        raise ValueError("never runs: no day matches both the day of the month and the day of the week")
    times = sum(1 << (int(hour) * 60 + int(minute)) for hour in hours for minute in minutes)
    return Expression(days, times, fixed=not fields[0].startswith("*") and not fields[1].startswith("*"))


def _split(text: str) -> list[str]:
    if len(text) > LONGEST:
        raise ValueError(f"must have at most {LONGEST} characters")
    text = text.strip()
    if text.startswith("@"):
        if text.lower() not in WORDS:
            raise ValueError(f"{text} is none of the words {', '.join(WORDS)}")
        text = WORDS[text.lower()]
    if zoned := re.match(r"(?:CRON_)?TZ=(\S*)", text, re.IGNORECASE):
        raise ValueError(f"must have no {zoned[0]}: the time zone is the field time_zone")
    fields = re.split(r"[ \t]+", text.upper())
    if len(fields) in (6, 7):
        raise ValueError(f"has {len(fields)} fields: seconds and years are not accepted; use rate(10 seconds) to run within a minute")
    if len(fields) != 5:
        raise ValueError("must have five fields: minute, hour, day of month, month, day of week")
    return fields


def _checked(rule: _Field, written: str) -> str:
    """The field in the form in which croniter reads it unambiguously. Raises ValueError for any other."""
    items = written.split(",")
    if "*" in items and len(items) > 1:
        raise ValueError(f"{rule.name}: * in a list leaves the rest of {written} without meaning")
    try:
        plain = [_item(rule, item) for item in items]
    except ValueError as error:
        raise ValueError(f"{rule.name}: {error}") from None
    special = ["L" in item or "#" in item for item in plain]
    if rule is _DAY_OF_WEEK and any(special) and not all(special):
        raise ValueError(f"{rule.name}: {written} mixes plain days with # or L; give a list of two expressions")
    return ",".join(plain)


def _item(rule: _Field, item: str) -> str:
    _refuse_other_dialects(rule, item)
    if rule is _DAY_OF_MONTH and (found := _COUNTED.fullmatch(item)):
        return f"{_value(rule, found[1])}W" if found[1] else item
    if rule is _DAY_OF_WEEK:
        if nth := re.fullmatch(r"([A-Z0-9]+)#([1-5])", item):
            return f"{_value(rule, nth[1])}#{nth[2]}"
        if last := re.fullmatch(r"L([A-Z0-9]+)|([A-Z0-9]+)L", item):
            return f"L{_value(rule, last[1] or last[2]) % 7}"
    found = re.fullmatch(r"(?:(\*)|([A-Z0-9]+)(?:-([A-Z0-9]+))?)(?:/([0-9]{1,9}))?", item)
    if found is None:
        raise ValueError(f"{item or 'an empty item'} is not a number, a name, a range, or a step over a range")
    star, low, high, step = found.groups()
    if star:
        bounds = rule.low, rule.high - (rule is _DAY_OF_WEEK)
    elif high:
        bounds = _range(rule, low, high, step)
    elif step:
        rest = _highest(rule) - _value(rule, low)
        whole = f"{low}-{_highest(rule)}/{step}, or " if 0 < int(step) <= rest else ""
        raise ValueError(f"{item} is read in two ways: write {whole}{low}")
    else:
        return str(_value(rule, low))
    written = star or f"{bounds[0]}-{bounds[1]}"
    return f"{written}/{_step(rule, item, int(step), *bounds)}" if step else written


def _refuse_other_dialects(rule: _Field, item: str) -> None:
    if item == "?":
        raise ValueError("? is not accepted: write *")
    if rule is _DAY_OF_MONTH and ("W" in item or "L" in item) and not _COUNTED.fullmatch(item):
        raise ValueError(f"{item}: with L and W only L, L-1 to L-30, LW, and 1W to 31W are accepted")
    if rule is _DAY_OF_WEEK and item == "L":
        raise ValueError("L alone is read in two ways: write SAT for every Saturday, or 6L for the last of the month")
    if re.match(r"[HR](\(|/|$)", item):
        raise ValueError(f"{item}: H and R are not accepted; a jitter window spreads runs")


def _without_counted(written: str) -> tuple[str, frozenset[int], frozenset[int]]:
    """The days of the month for croniter, those that are counted back from the last day, and those whose nearest weekday is meant."""
    items = written.split(",")
    before_last = frozenset(int(item[2:]) for item in items if item.startswith("L-"))
    nearest = frozenset(0 if item == "LW" else int(item[:-1]) for item in items if item.endswith("W"))
    return ",".join(item for item in items if not item.startswith("L-") and not item.endswith("W")), before_last, nearest


def _range(rule: _Field, low: str, high: str, step: str | None) -> tuple[int, int]:
    first, last = _value(rule, low), _value(rule, high)
    if high == "SUN" and first > 0:
        last = 7
    if first == last:
        raise ValueError(f"{low}-{high} is read in two ways: write {low} for that one, * for all")
    if first > last:
        written = f"{low}-{high}" + (f"/{step}" if step else "")
        advice = _over_the_end(rule, low, high, int(step or 1))
        kind = "two ranges" if advice.count("-") == 2 else "a list"
        raise ValueError(f"{written} goes backwards: write {kind}, as in {advice}")
    return first, last


def _over_the_end(rule: _Field, low: str, high: str, step: int) -> str:
    """A list for a range that goes backwards, over the end of its field: `22-23,0-1` for `22-1`. A step of 0 is taken as 1."""
    size = _highest(rule) - rule.low + 1
    first, last = ((_value(rule, each) - rule.low) % size for each in (low, high))
    if step > 1:
        reached = range(first, last + 1 + (size if first > last else 0), step)
        return ",".join(str(rule.low + number % size) for number in reached)
    if first <= last:  # from 7, which is Sunday, to another day
        return f"{rule.low}-{high}" if last > 0 else high
    before = low if first == size - 1 else f"{low}-{_highest(rule)}"
    return f"{before},{high if last == 0 else f'{rule.low}-{high}'}"


def _highest(rule: _Field) -> int:
    return 6 if rule is _DAY_OF_WEEK else rule.high


_UNITS = {"minute": ("minutes", 366 * DAY), "hour": ("hours", 366 * 24), "day of month": ("days", 366)}  # and the longest rate


def _step(rule: _Field, item: str, step: int, low: int, high: int) -> int:
    if step == 0:
        raise ValueError(f"{item}: a step must be at least 1")
    if step > high - low:
        unit, longest = _UNITS.get(rule.name, ("", 0))
        rate = f", or rate({step} {unit}), which counts beyond the field" if item.startswith("*") and step <= longest else ""
        raise ValueError(f"{item}: the step leaves its range at once: write {low}{rate}")
    return step


def _value(rule: _Field, text: str) -> int:
    if text in rule.names:
        return rule.names[text]
    if not text.isdecimal():
        raise ValueError(f"{text} is not known" + (f"; names are {', '.join(rule.names)}" if rule.names else ""))
    if len(text) > 9 or not rule.low <= int(text) <= rule.high:
        raise ValueError(f"{text} is not between {rule.low} and {rule.high}")
    return int(text)


def _set(rule: _Field, found: list[int | str]) -> frozenset[int | str]:
    return frozenset(range(rule.low, _highest(rule) + 1)) if found == ["*"] else frozenset(found)


def _refuse_missing_dates(of_month: Iterable[int | str], months: frozenset[int | str]) -> None:
    """Raise ValueError if none of the months has any of the days.

    An expression such as 30 February is refused even if its day of the week matches: it is certainly a mistake.
    """
    longest = max(_last_day(date(2000, int(month), 1)) for month in months)
    if min(1 if day == _LAST else int(day) for day in of_month) > longest:
        raise ValueError("never runs: the month has no such day")


def _nearest_weekday(number: int, day: date, last: int) -> int | None:
    """The day of the month of `day` that is the weekday nearest to this day of it; None if the month has no such day."""
    if number > last:
        return None
    weekday = (day.weekday() + number - day.day) % 7
    if weekday == _SATURDAY:
        return number - 1 if number > 1 else number + 2
    if weekday == _SATURDAY + 1:
        return number + 1 if number < last else number - 2
    return number


def _last_day(day: date) -> int:
    following = date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return following.toordinal() - day.replace(day=1).toordinal()
