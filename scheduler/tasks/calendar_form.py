"""The fields of a schedule that are about dates: `exclude` or `only`, `on_excluded`, `working_days`. Converts and stores them."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache
from re import fullmatch
from typing import Any
from zlib import compress, decompress

from scheduler.model.calendar import NAME, Calendar
from scheduler.model.errors import Invalid
from scheduler.model.schedule import Dates, Exclusions
from scheduler.tasks.exclusions import ON_EXCLUDED

LISTS = ("exclude", "only")
FIELDS = (*LISTS, "on_excluded", "working_days")
DAYS = "days"  # the field of a stored form with the dates of its calendars
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MOST_NAMED = 10  # calendars of a schedule
MOST_ENTRIES = 100  # calendars and dates of a schedule
FIRST, LAST = date(1970, 1, 1), date(2199, 12, 31)
DATE_RULE = f"must be a date from {FIRST.isoformat()} to {LAST.isoformat()}, such as 2026-12-24"


def names(form: Mapping[str, object] | None) -> list[str]:
    """The calendars that a form names; nothing else of it is checked."""
    lists = [form.get(name) for name in LISTS] if form else []
    listed = [each for entries in lists if isinstance(entries, Sequence) and not isinstance(entries, str) for each in entries]
    return list(dict.fromkeys(each for each in listed if isinstance(each, str) and fullmatch(NAME, each)))[: MOST_NAMED + 1]


def parse(form: Mapping[str, object], calendars: Mapping[str, Calendar]) -> Exclusions | None:
    """The exclusions of a form without null fields. Raises Invalid with the field and the rule."""
    present = [name for name in LISTS if name in form]
    if len(present) > 1:
        raise Invalid.field("only", "must be absent beside exclude")
    if form.get("only") == []:
        raise Invalid.field("only", "must have an entry")
    if not present or form[present[0]] == []:
        for name in FIELDS[2:]:
            if name in form:
                raise Invalid.field(name, "requires exclude or only")
        return None
    on_excluded = form.get("on_excluded", ON_EXCLUDED[0])
    if on_excluded not in ON_EXCLUDED:
        raise Invalid.field("on_excluded", f"must be one of {', '.join(ON_EXCLUDED)}")
    if on_excluded == ON_EXCLUDED[0] and "working_days" in form:
        raise Invalid.field("working_days", "requires on_excluded next_day or previous_day")
    listed = _listed(present[0], form[present[0]], calendars)
    return Exclusions(listed, present[0] == "only", str(on_excluded), _working_days(form.get("working_days")))


def read_date(text: object) -> int:
    """The date, as a number of days. Raises ValueError with the rule."""
    try:
        found = date.fromisoformat(text) if isinstance(text, str) and len(text) == 10 else None
    except ValueError:
        found = None
    if found is None or not FIRST <= found <= LAST:
        raise ValueError(DATE_RULE)
    return found.toordinal()


def write_date(day: int) -> str:
    return date.fromordinal(day).isoformat()


def write(rule: Exclusions | None) -> dict[str, object]:
    """The fields of the exclusions, without those that have their defaults: names, followed by dates in order."""
    if rule is None:
        return {}
    entries = [dates.name for dates in rule.listed if dates.name is not None]
    entries += [write_date(day) for dates in rule.listed if dates.name is None for day in sorted(dates.days)]
    form: dict[str, object] = {field(rule): entries}
    form |= {"on_excluded": rule.on_excluded} if rule.on_excluded != ON_EXCLUDED[0] else {}
    return form | (
        {"working_days": [WEEKDAYS[day] for day in rule.working_days]} if rule.working_days != Exclusions(()).working_days else {}
    )


def field(rule: Exclusions) -> str:
    """The field that lists the dates."""
    return LISTS[rule.only]


def stored(rule: Exclusions | None) -> dict[str, object]:
    """The dates of the named calendars, beside the fields of `write`."""
    named = [dates for dates in (() if rule is None else rule.listed) if dates.name is not None]
    return {DAYS: [[dates.version, dates.covers_until, packed(dates.days)] for dates in named]} if named else {}


def restore(form: Mapping[str, Any]) -> Exclusions | None:
    """The exclusions of a stored form."""
    name = next((name for name in LISTS if name in form), None)
    if name is None:
        return None
    copies = iter(form.get(DAYS, ()))
    listed, own = list[Dates](), set[int]()
    for entry in form[name]:
        if fullmatch(NAME, entry):
            version, covers_until, days = next(copies)
            listed.append(Dates(unpacked(days), entry, version, covers_until))
        else:
            own.add(read_date(entry))
    listed += [Dates(frozenset(own))] if own else []
    return Exclusions(tuple(listed), name == "only", form.get("on_excluded", ON_EXCLUDED[0]), _working_days(form.get("working_days")))


def packed(days: frozenset[int]) -> str:
    """Dates as text: a compressed bit for each date from the first to the last. Holidays of ten years take some 200 characters."""
    first = min(days, default=0)
    bits = sum(1 << (day - first) for day in days)
    return f"{first}:{b64encode(compress(bits.to_bytes(bits.bit_length() // 8 + 1, 'little'), 9)).decode()}"


@lru_cache(maxsize=256)
def unpacked(text: str) -> frozenset[int]:
    first, _, content = text.partition(":")
    bits = int.from_bytes(decompress(b64decode(content)), "little")
    return frozenset(int(first) + place for place, bit in enumerate(reversed(f"{bits:b}")) if bit == "1")


def copy(calendar: Calendar) -> Dates:
    """The copy of a calendar that a schedule has."""
    return Dates(calendar.days, calendar.name, calendar.version, calendar.covers_until)


def _listed(name: str, entries: object, calendars: Mapping[str, Calendar]) -> tuple[Dates, ...]:
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise Invalid.field(name, "must be a list of calendars and dates")
    if len(entries) > MOST_ENTRIES:
        raise Invalid.field(name, f"must have at most {MOST_ENTRIES} entries; put more dates into a calendar")
    named = list(dict.fromkeys(each for each in entries if isinstance(each, str) and fullmatch(NAME, each)))
    if len(named) > MOST_NAMED:
        raise Invalid.field(name, f"must name at most {MOST_NAMED} calendars")
    own = frozenset(_dates(name, [each for each in entries if each not in named]))
    for each in named:
        if each not in calendars:
            raise Invalid.field(name, f"names {each}, and there is no such calendar")
    return (*(copy(calendars[each]) for each in named), *([Dates(own)] if own else []))


def _dates(name: str, entries: Sequence[object]) -> Iterator[int]:
    for entry in entries:
        try:
            yield read_date(entry)
        except ValueError:
            shown = json.dumps(entry, default=str)[:40]
            raise Invalid.field(name, f"has {shown}: an entry is a date such as 2026-12-24, or the name of a calendar") from None


def _working_days(value: object) -> tuple[int, ...]:
    if value is None:
        return Exclusions(()).working_days
    named = [str(each).upper() for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else []
    if not named or not all(each in WEEKDAYS for each in named):
        raise Invalid.field("working_days", f"must be a list of {', '.join(WEEKDAYS)}")
    return tuple(sorted({WEEKDAYS.index(each) for each in named}))
