"""Dates for calendars: from an ICS file, and the public holidays of a country. Needs the extra `calendars`.

The server stores dates only. So the expansion of events and the rules of holidays are here, in the version that is installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from punctual.errors import InvalidArgument, NotConfigured

if TYPE_CHECKING:
    from icalendar import Event

MOST_BYTES = 5_000_000  # of an ICS file
MOST_DATES = 5_000  # of a calendar
REPEATS = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY")  # the frequencies of events that are expanded
EXTRA = "pip install 'punctual-client[calendars]'"


class Dates(NamedTuple):
    """The arguments of `client.calendars.put`."""

    dates: list[date]
    source: str
    covers_until: date


def holidays(country: str, region: str | None = None, *, first: int, last: int) -> Dates:
    """Return the public holidays of a country, such as `DE`, and of its region, such as `BY`, from the year `first` to the year `last`.

    A holiday may be observed in the year before its own, so that year is part of the dates. Raises InvalidArgument, NotConfigured.
    """
    try:
        import holidays as library
    except ImportError:
        raise NotConfigured(f"public holidays need the package holidays: {EXTRA}") from None
    if not 1970 <= first <= last <= 2199 or last > first + 100:
        raise InvalidArgument("the years must be in order, from 1970 to 2199, and at most 100")
    try:
        found = library.country_holidays(country, subdiv=region, years=range(first - 1, last + 2), expand=False)
    except NotImplementedError as error:
        raise InvalidArgument(str(error)) from None
    place = country if region is None else f"{country}-{region}"
    days = sorted(day for day in found if first - 1 <= day.year <= last)
    return Dates(days, f"holidays {version('holidays')}: {place}, {first} to {last}", date(last, 12, 31))


def read_ics(content: bytes | str, *, first: int, last: int, source: str = "ICS file") -> Dates:
    """Return the dates of all events of an ICS file, from the year before `first` to the year `last`.

    An event of several days is all of them. One that repeats by year, month, week or day is expanded; cancelled ones are left out.
    Raises InvalidArgument for a file that is none, is too large or has other repeats, NotConfigured.
    """
    try:
        from icalendar import Calendar, Event
    except ImportError:
        raise NotConfigured(f"ICS files need the package icalendar: {EXTRA}") from None
    if len(content) > MOST_BYTES:
        raise InvalidArgument(f"the file must have at most {MOST_BYTES} bytes")
    try:
        events = [
            event
            for calendar in Calendar.from_ical(content, multiple=True)
            for event in calendar.walk("VEVENT")
            if isinstance(event, Event)
        ]
    except (ValueError, IndexError, KeyError) as error:
        raise InvalidArgument(f"the file is no ICS file: {error}") from None
    begin, end, found = date(first - 1, 1, 1), date(last, 12, 31), set[date]()
    for event in events:
        found |= {day for day in _days(event, begin, end) if begin <= day <= end}
        if len(found) > MOST_DATES:
            raise InvalidArgument(f"the file has more than {MOST_DATES} dates from {begin} to {end}")
    return Dates(sorted(found), source, end)


def _days(event: Event, begin: date, end: date) -> Iterator[date]:
    """Yield the dates of an event and of its repeats."""
    if str(event.get("STATUS", "")).upper() == "CANCELLED" or "DTSTART" not in event:
        return
    try:
        start, finish = event.start, event.end
    except Exception as error:  # the library has several classes for events that contradict themselves
        raise InvalidArgument(f"an event cannot be read: {error}") from None
    first = _date(start)
    last = max(first, finish - timedelta(days=1) if not isinstance(finish, datetime) else _last(finish))
    length = min((last - first).days, (end - begin).days)
    for at in _starts(event, first, begin - timedelta(days=length), end):
        yield from (at + timedelta(days=n) for n in range(length + 1))


def _starts(event: Event, first: date, begin: date, end: date) -> Iterator[date]:
    """Yield the dates on which an event begins, between the two."""
    gone = {_date(each.dt) for found in _several(event.get("EXDATE")) for each in found.dts}
    more = [_date(each.dt) for found in _several(event.get("RDATE")) for each in found.dts if not isinstance(each.dt, tuple)]
    rules = _several(event.get("RRULE"))
    yield from (day for day in {first, *more} - gone if begin <= day <= end)
    for rule in rules:
        yield from (day for day in _repeats(rule, first, begin, end) if day not in gone)


def _repeats(rule: Any, first: date, begin: date, end: date) -> Iterator[date]:
    from dateutil.rrule import rrulestr

    frequency = str(rule.get("FREQ", [""])[0]).upper()
    if frequency not in REPEATS or any(name in rule for name in ("BYHOUR", "BYMINUTE", "BYSECOND")):
        known = ", ".join(REPEATS).lower()
        raise InvalidArgument(f"an event from {first} repeats {rule.to_ical().decode()}: only {known} repeats are read")
    until = [_date(each) for each in rule.get("UNTIL", ())]
    text = ";".join(part for part in rule.to_ical().decode().split(";") if not part.startswith("UNTIL="))
    last = min([end, *until])
    try:
        for at in rrulestr(text, dtstart=datetime.combine(first, time())):
            if at.date() > last:
                return
            if at.date() >= begin:
                yield at.date()
    except ValueError as error:
        raise InvalidArgument(f"an event from {first} repeats {text}: {error}") from None


def _several(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _date(value: date | datetime) -> date:
    """The date as the file has it, in its own time zone."""
    return value.date() if isinstance(value, datetime) else value


def _last(finish: datetime) -> date:
    """The last date of an event that ends at this time; midnight belongs to the day before."""
    return finish.date() - timedelta(days=1) if finish.time() == time() else finish.date()
