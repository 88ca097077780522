"""The schedule of a recurrence rule of RFC 5545 (RRULE): cron expressions, `every` or a rate with the same times.

Nothing is expanded: a rule without an equal is refused with the reason. Sources: RFC 5545, 3.3.10 (the parts) and 3.8.5.3 (DTSTART,
COUNT). A time that the clock skips follows the rule of Punctual; RFC 5545 delays it by the length of the gap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from itertools import product
from typing import Any

from punctual.plan.aws_cron import DAY, HOUR, MINUTE, MONTH, NoEqual, written

WEEKDAYS = {"MO": "MON", "TU": "TUE", "WE": "WED", "TH": "THU", "FR": "FRI", "SA": "SAT", "SU": "SUN"}
FURTHEST = timedelta(days=3_653)  # the furthest start that the API accepts
MOST_TIMES = 24  # of `every`
LONGEST_RATE = timedelta(days=366)
_ORDER = tuple(WEEKDAYS)
_DAILY, _WEEKLY = ("days", 366), ("weeks", 52)  # and the longest `every`
_UNITS = {"SECONDLY": timedelta(seconds=1), "MINUTELY": timedelta(minutes=1), "HOURLY": timedelta(hours=1)}
_FREQUENCIES = (*_UNITS, "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_NUMBERS = {
    "BYSECOND": (0, 60),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (-31, 31),
    "BYSETPOS": (-366, 366),
}
_NO_EQUAL = ("BYWEEKNO", "BYYEARDAY")
_PARTS = ("FREQ", "UNTIL", "COUNT", "INTERVAL", "BYDAY", "WKST", *_NUMBERS, *_NO_EQUAL)
Days = tuple[str, str]  # the fields day of the month and day of the week


@dataclass(frozen=True)
class Begin:
    """The DTSTART of a rule: a local time of a zone. `floating`: the zone is that of the reader."""

    local: datetime
    zone: str
    place: tzinfo
    floating: bool = False

    @property
    def at(self) -> datetime:
        """The instant; of a local time that the clock skips, the earlier of two readings."""
        return min(self.local.replace(tzinfo=self.place, fold=fold).astimezone(timezone.utc) for fold in (0, 1))


@dataclass(frozen=True)
class _Rule:
    frequency: str
    interval: int
    parts: Mapping[str, str]
    numbers: Mapping[str, frozenset[int]]
    weekdays: tuple[tuple[int, str], ...]  # each with its ordinal; 0: none

    @property
    def filters(self) -> list[str]:
        """The names of the parts that choose among the times of the frequency."""
        return [name for name in self.parts if name.startswith("BY")]

    def refuse(self, *names: str) -> None:
        """Raises NoEqual if the rule has one of these parts."""
        if found := [name for name in names if name in self.parts]:
            interval = f";INTERVAL={self.interval}" if self.interval > 1 else ""
            raise NoEqual(f"has {found[0]}={self.parts[found[0]]} beside FREQ={self.frequency}{interval}, which has no equal")


def form(text: str, begin: Begin, now: datetime) -> dict[str, Any]:
    """Return the schedule of a rule, given without `RRULE:`. Raises NoEqual with the reason."""
    rule = _read(text.strip().upper())
    if begin.at > now + FURTHEST:
        raise NoEqual(f"starts at {rendered(begin.at)}, and a task starts within ten years")
    if begin.at.year < 1970:
        raise NoEqual(f"starts at {rendered(begin.at)}, and a task starts in 1970 at the earliest")
    made = _schedule(rule, begin)
    if "start" not in made and begin.at > now:
        made["start"] = rendered(begin.at)
    return {**made, **({"time_zone": begin.zone} if begin.zone != "UTC" else {}), **_bound(rule, begin, now)}


def rendered(at: datetime) -> str:
    """The instant in UTC."""
    return at.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _read(text: str) -> _Rule:
    parts: dict[str, str] = {}
    for part in text.removesuffix(";").split(";"):
        name, _, value = part.partition("=")
        if name not in _PARTS or not value or name in parts:
            raise NoEqual(f"has a part twice, without a value, or that RFC 5545 does not define: {part[:40]!a}")
        parts[name] = value
    if parts.get("FREQ") not in _FREQUENCIES:
        raise NoEqual(f"has no FREQ that RFC 5545 defines: {parts.get('FREQ', 'none')[:40]!a}")
    for name in _NO_EQUAL:
        if name in parts:
            raise NoEqual(f"chooses by {name}={parts[name]}, which has no equal")
    for name in ("INTERVAL", "COUNT"):
        if name in parts and not re.fullmatch(r"0*[1-9][0-9]{0,8}", parts[name]):
            raise NoEqual(f"has a {name} that is no number from 1 on: {parts[name][:40]!a}")
    if parts.get("WKST", "MO") not in WEEKDAYS:
        raise NoEqual(f"has a WKST that is no weekday: {parts['WKST'][:40]!a}")
    numbers = {name: _set(name, parts[name]) for name in _NUMBERS if name in parts}
    return _Rule(parts["FREQ"], int(parts.get("INTERVAL", 1)), parts, numbers, tuple(_weekdays(parts.get("BYDAY"))))


def _set(name: str, value: str) -> frozenset[int]:
    low, high = _NUMBERS[name]
    sign = "[+-]?" if low < 0 else ""
    for each in value.split(","):
        if not re.fullmatch(rf"{sign}[0-9]{{1,3}}", each) or not low <= int(each) <= high or (low < 0 and int(each) == 0):
            raise NoEqual(f"has a number in {name} that RFC 5545 does not allow: {each[:40]!a}")
    return frozenset(int(each) for each in value.split(","))


def _weekdays(value: str | None) -> Iterable[tuple[int, str]]:
    for each in [] if value is None else value.split(","):
        found = re.fullmatch(r"([+-]?[1-9][0-9]?)?([A-Z]{2})", each)
        if found is None or found[2] not in WEEKDAYS:
            raise NoEqual(f"has a weekday in BYDAY that RFC 5545 does not define: {each[:40]!a}")
        yield int(found[1] or 0), found[2]


def _schedule(rule: _Rule, begin: Begin) -> dict[str, Any]:
    if rule.frequency in _UNITS and not rule.filters and begin.zone == "UTC":
        return _rate(rule, begin)
    times = _times(rule, begin)
    if rule.frequency == "DAILY" and rule.interval > 1:
        rule.refuse("BYDAY", "BYMONTHDAY", "BYMONTH", "BYSETPOS")
        return _every(rule.interval, _DAILY, times, begin.at)
    if rule.frequency == "WEEKLY" and rule.interval > 1:
        rule.refuse("BYMONTHDAY", "BYMONTH", "BYSETPOS")
        return _weeks(rule, begin, times)
    skips = {"dst_gap": "skip"} if rule.frequency in _UNITS and begin.zone != "UTC" else {}
    return {"cron": _expressions(times, _dates(rule, begin, times), _months(rule, begin))} | skips


def _rate(rule: _Rule, begin: Begin) -> dict[str, Any]:
    if rule.interval > LONGEST_RATE // _UNITS[rule.frequency]:
        raise NoEqual("has an interval of more than 366 days")
    unit = {"SECONDLY": "second", "MINUTELY": "minute", "HOURLY": "hour"}[rule.frequency]
    return {"rate": f"{rule.interval} {unit}{'s' if rule.interval > 1 else ''}", "start": rendered(begin.at)}


def _times(rule: _Rule, begin: Begin) -> frozenset[tuple[int, int]]:
    """The hours and minutes of a day at which it runs."""
    if rule.frequency == "SECONDLY" or rule.numbers.get("BYSECOND", {begin.local.second}) != {0}:
        raise NoEqual("runs at seconds within a minute; only a rate in UTC does")
    first = begin.local.hour * 60 + begin.local.minute
    step = {"HOURLY": 60, "MINUTELY": 1}.get(rule.frequency)
    if step is None:
        hours, minutes = rule.numbers.get("BYHOUR", {begin.local.hour}), rule.numbers.get("BYMINUTE", {begin.local.minute})
        return frozenset(product(hours, minutes))
    if 1_440 % (step * rule.interval):
        raise NoEqual(f"has an interval that does not divide a day ({rule.interval}), in local time or with a filter")
    found = {divmod(at, 60) for at in range(first % (step * rule.interval), 1_440, step * rule.interval)}
    if step == 60:
        found = {(hour, minute) for hour, _ in found for minute in rule.numbers.get("BYMINUTE", {begin.local.minute})}
    left = {
        (hour, minute)
        for hour, minute in found
        if hour in rule.numbers.get("BYHOUR", {hour}) and minute in rule.numbers.get("BYMINUTE", {minute})
    }
    if not left:
        raise NoEqual("never runs: no time of the day is left")
    return frozenset(left)


def _every(count: int, unit: tuple[str, int], times: Iterable[tuple[int, int]], start: datetime) -> dict[str, Any]:
    name, most = unit
    found = [f"{hour:02d}:{minute:02d}" for hour, minute in sorted(times)]
    if count > most:
        raise NoEqual(f"has an interval of more than {most} {name}")
    if len(found) > MOST_TIMES:
        raise NoEqual(f"has more than {MOST_TIMES} times a day")
    return {"every": f"{count} {name}", "times": _one_or_all(found), "start": rendered(start)}


def _weeks(rule: _Rule, begin: Begin, times: Iterable[tuple[int, int]]) -> dict[str, Any]:
    """Weeks of Punctual begin on Monday. Those of the rule are equal if all its weekdays are in one of these."""
    days = _plain(rule) or [_ORDER[begin.local.weekday()]]
    first = begin.local.date() - timedelta(days=(begin.local.weekday() - _ORDER.index(rule.parts.get("WKST", "MO"))) % 7)
    dates = [first + timedelta(days=(_ORDER.index(day) - first.weekday()) % 7) for day in days]
    mondays = {each - timedelta(days=each.weekday()) for each in dates}
    if len(mondays) > 1:
        raise NoEqual(
            f"has weeks that begin on {WEEKDAYS[rule.parts['WKST']]}, with days on both sides of Monday; weeks begin on Monday here"
        )
    monday, start = mondays.pop(), begin.at
    own = begin.local.date() - timedelta(days=begin.local.weekday())
    if away := (monday - own).days // 7 % rule.interval:
        midnight = datetime.combine(own + timedelta(weeks=away), datetime.min.time())
        start = Begin(midnight, begin.zone, begin.place).at
    return _every(rule.interval, _WEEKLY, times, start) | {"weekdays": _one_or_all([WEEKDAYS[day] for day in days])}


def _plain(rule: _Rule) -> list[str]:
    """The weekdays in the order of the week. Raises NoEqual if one has an ordinal."""
    if any(ordinal for ordinal, _ in rule.weekdays):
        rule.refuse("BYDAY")
    return [day for day in _ORDER if (0, day) in rule.weekdays]


def _months(rule: _Rule, begin: Begin) -> str:
    months = rule.numbers.get("BYMONTH", frozenset(range(1, 13)))
    if rule.frequency == "YEARLY" and not {"BYMONTH", "BYMONTHDAY", "BYDAY"} & rule.parts.keys():
        months = frozenset({begin.local.month})
    if rule.frequency == "MONTHLY":
        if 12 % rule.interval:
            raise NoEqual(f"runs every {rule.interval} months, which does not divide a year")
        months = frozenset(each for each in months if (each - begin.local.month) % rule.interval == 0)
    elif rule.interval > 1 and rule.frequency not in _UNITS:
        raise NoEqual(f"runs every {rule.interval} years, which has no equal")
    if not months:
        raise NoEqual("never runs: no month is left")
    return written(MONTH, months)


def _dates(rule: _Rule, begin: Begin, times: Iterable[tuple[int, int]]) -> list[Days]:
    """The days, one or several pairs of fields. Raises NoEqual."""
    if rule.frequency not in ("MONTHLY", "YEARLY"):
        rule.refuse("BYSETPOS")
        _plain(rule)
    if rule.frequency == "WEEKLY":
        rule.refuse("BYMONTHDAY")
        return [("*", ",".join(WEEKDAYS[day] for day in _plain(rule) or [_ORDER[begin.local.weekday()]]))]
    if rule.frequency == "YEARLY" and len(rule.numbers.get("BYMONTH", ())) != 1:
        rule.refuse("BYSETPOS")
        if "BYMONTH" not in rule.parts:
            _plain(rule)
    if "BYSETPOS" in rule.parts:
        if len(list(times)) > 1:
            raise NoEqual("has BYSETPOS beside several times a day, which it counts, too")
        return [_chosen(rule, position) for position in sorted(rule.numbers["BYSETPOS"])]
    if rule.weekdays:
        if "BYMONTHDAY" in rule.parts:
            raise NoEqual("has BYDAY and BYMONTHDAY, which must both match; cron runs when either does")
        return list(_of_weekdays(rule))
    if "BYMONTHDAY" in rule.parts:
        days = rule.numbers["BYMONTHDAY"]
        ahead = [written(DAY, frozenset(day for day in days if day > 0))] if max(days) > 0 else []
        return [(",".join(ahead + [_from_end(day) for day in sorted(days, reverse=True) if day < 0]), "*")]
    return [(str(begin.local.day) if rule.frequency in ("MONTHLY", "YEARLY") else "*", "*")]


def _of_weekdays(rule: _Rule) -> Iterable[Days]:
    if plain := [WEEKDAYS[day] for day in _ORDER if (0, day) in rule.weekdays]:
        yield "*", ",".join(plain)
    counted = [(ordinal, day) for ordinal, day in rule.weekdays if ordinal]
    if far := [f"{ordinal}{day}" for ordinal, day in counted if ordinal < -1 or ordinal > 5]:
        raise NoEqual(f"has {far[0]} in BYDAY, and a month counts from the first weekday to the fifth, and the last")
    if counted:
        yield (
            "*",
            ",".join(f"{WEEKDAYS[day]}L" if ordinal == -1 else f"{WEEKDAYS[day]}#{ordinal}" for ordinal, day in dict.fromkeys(counted)),
        )


def _chosen(rule: _Rule, position: int) -> Days:
    """The day of the month at this position among the weekdays. Raises NoEqual."""
    rule.refuse("BYMONTHDAY")
    days = _plain(rule)
    if len(days) == 1 and (position == -1 or 1 <= position <= 5):
        return "*", f"{WEEKDAYS[days[0]]}{'L' if position == -1 else f'#{position}'}"
    if days == list(_ORDER[:5]) and position in (1, -1):
        return ("1W" if position == 1 else "LW"), "*"
    if len(days) == 7 and -31 <= position <= 31:
        return (str(position) if position > 0 else _from_end(position)), "*"
    raise NoEqual(f"has BYSETPOS={position} among BYDAY={rule.parts.get('BYDAY', '')}, which has no equal")


def _from_end(day: int) -> str:
    return "L" if day == -1 else f"L-{-day - 1}"


def _expressions(times: Iterable[tuple[int, int]], dates: list[Days], months: str) -> Any:
    minutes: dict[int, set[int]] = {}
    for hour, minute in times:
        minutes.setdefault(hour, set()).add(minute)
    hours: dict[frozenset[int], set[int]] = {}
    for hour, found in minutes.items():
        hours.setdefault(frozenset(found), set()).add(hour)
    clock = [
        f"{written(MINUTE, some, star=False)} {written(HOUR, frozenset(at), star=False)}"
        for some, at in sorted(hours.items(), key=lambda each: min(each[1]))
    ]
    return _one_or_all([f"{at} {day} {months} {weekday}" for at, (day, weekday) in product(clock, dates)])


def _one_or_all(found: list[str]) -> Any:
    return found[0] if len(found) == 1 else found


def _bound(rule: _Rule, begin: Begin, now: datetime) -> dict[str, Any]:
    """The end of COUNT or UNTIL. Raises NoEqual."""
    if "COUNT" in rule.parts:
        if "UNTIL" in rule.parts:
            raise NoEqual("has UNTIL and COUNT, of which RFC 5545 allows one")
        if begin.at <= now:
            raise NoEqual("counts its runs (COUNT) from a DTSTART that is past: give UNTIL instead")
        return {"max_runs": int(rule.parts["COUNT"])}
    if "UNTIL" not in rule.parts:
        return {}
    found = re.fullmatch(r"([0-9]{8}T[0-9]{6})(Z?)", rule.parts["UNTIL"])
    if found is None:
        raise NoEqual(f"has an UNTIL without a time of the day, beside a DTSTART with one: {rule.parts['UNTIL'][:40]!a}")
    if bool(found[2]) == begin.floating:
        needed = "a local time, as its DTSTART" if begin.floating else "in UTC, as its DTSTART has a zone"
        raise NoEqual(f"has an UNTIL that RFC 5545 wants {needed}: {found[0]}")
    try:
        local = datetime.strptime(found[1], "%Y%m%dT%H%M%S")
    except ValueError:
        raise NoEqual(f"has an UNTIL that does not exist: {found[0]}") from None
    place = begin.place if begin.floating else timezone.utc
    last = max(local.replace(tzinfo=place, fold=fold).astimezone(timezone.utc) for fold in (0, 1))
    if last <= now:
        raise NoEqual(f"has ended at {rendered(last)}")
    if last < begin.at:
        raise NoEqual("never runs: it ends before it starts")
    return {"end": rendered(last + timedelta(seconds=1))}
