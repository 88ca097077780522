"""Tasks from the recurring events of an iCalendar file (RFC 5545), or from lines with DTSTART and RRULE.

Punctual knows no events. A target of yours gets the summary of each: a named target, or a URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, time, timezone
from typing import Any

from punctual.plan import rrule
from punctual.plan.aws_cron import NoEqual
from punctual.plan.crontab import Content, literal
from punctual.plan.export import Entry, proposed, visible
from punctual.plan.zones import zone as zone_of

NAME_LENGTH = 80
_LINE = re.compile(r'([A-Za-z0-9-]+)((?:;[A-Za-z0-9-]+=(?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*)*):(.*)', re.DOTALL)
MOST_EXCLUDED = 100  # dates of a schedule
_TIME = re.compile(r"([0-9]{8}T[0-9]{6})(Z?)")
# Properties that a task has, and those without a meaning for a run.
_KNOWN = ("DTSTART", "RRULE", "EXDATE", "SUMMARY", "UID", "STATUS", "DTSTAMP", "CREATED", "LAST-MODIFIED", "SEQUENCE", "CLASS", "TRANSP")
_NO_EQUAL = {
    "EXRULE": "leaves out the times of another rule (EXRULE)",
    "RDATE": "has further dates (RDATE)",
    "RECURRENCE-ID": "changes one run of another event (RECURRENCE-ID)",
}


@dataclass
class Found:
    """The tasks of a file, and the events that have no equal: line number, name, reason."""

    entries: list[Entry] = field(default_factory=list)
    refused: list[tuple[int, str, str]] = field(default_factory=list)


@dataclass
class _Event:
    line: int
    properties: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by name, the parameters and the value of each

    def value(self, name: str) -> str:
        return self.properties[name][0][1] if name in self.properties else ""

    @property
    def name(self) -> str:
        """Its summary on one line, or what identifies it otherwise."""
        text = re.sub(r"\\([\\;,nN])", lambda found: " " if found[1] in "nN" else found[1], self.value("SUMMARY"))
        return (
            " ".join(visible(text).split())[:NAME_LENGTH].strip() or visible(self.value("UID"))[:NAME_LENGTH].strip() or f"line {self.line}"
        )


def read(text: str, content: Content, *, time_zone: str | None, now: datetime) -> Found:
    """Return the tasks of a file. `content` makes the fields of a task that say what it runs, from `event` and `uid`.

    `time_zone` is that of times without a zone; with None they are refused. Raises ValueError if it is unknown.
    """
    if time_zone is not None:
        zone_of(time_zone)
    found = Found()
    taken: set[str] = set()
    for event in _events(text):
        entry = _entry_or_reason(event, content, time_zone, now, taken)
        if isinstance(entry, str):
            found.refused.append((event.line, event.name, entry))
        else:
            found.entries.append(entry)
            taken.add(entry.body["key"])
    return found


def _entry_or_reason(event: _Event, content: Content, time_zone: str | None, now: datetime, taken: set[str]) -> Entry | str:
    try:
        return _entry(event, content, time_zone, now, taken)
    except NoEqual as reason:
        return str(reason)
    except OverflowError:
        return "has a date that is not within the years 1 to 9999"


def _events(text: str) -> Iterator[_Event]:
    """The VEVENTs, and what stands outside of a component. Other components, such as VTIMEZONE and VALARM, are passed over."""
    within: list[str] = []
    event: _Event | None = None
    for number, line in _lines(text):
        parts = _LINE.fullmatch(line)
        name, parameters, value = (parts[1].upper(), parts[2], parts[3]) if parts else ("", "", line)
        if name == "BEGIN":
            within.append(value.strip().upper())
            if within[-1] == "VEVENT":
                event = _Event(number)
        elif name == "END" and within:
            if within.pop() == "VEVENT" and event is not None:
                yield event
                event = None
        elif not within and name in ("DTSTART", "RRULE") and (event is None or name in event.properties):
            if event is not None:
                yield event
            event = _Event(number)
        if event is not None and within[-1:] in ([], ["VEVENT"]) and name not in ("", "BEGIN", "END"):
            event.properties.setdefault(name, []).append((parameters, value))
    if event is not None:
        yield event


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; a line that begins with a blank continues the one above."""
    number, whole = 0, ""
    for at, line in enumerate(re.split(r"\r?\n", text), 1):
        if line[:1] in (" ", "\t") and whole:
            whole += line[1:]
            continue
        if whole:
            yield number, whole
        number, whole = at, line.strip()
    if whole:
        yield number, whole


def _entry(event: _Event, content: Content, time_zone: str | None, now: datetime, taken: set[str]) -> Entry:
    for name, reason in _NO_EQUAL.items():
        if name in event.properties:
            raise NoEqual(f"{reason}, which has no equal")
    rules = event.properties.get("RRULE", [])
    if not rules:
        raise NoEqual("has no RRULE: it takes place once")
    if len(rules) > 1:
        raise NoEqual("has two rules: make a task for each")
    if event.value("STATUS").strip().upper() == "CANCELLED":
        raise NoEqual("is cancelled")
    begin = _begin(event, time_zone)
    schedule = rrule.form(rules[0][1], begin, now)
    if excluded := _excluded(event, begin, schedule, now):
        schedule["exclude"] = excluded
    uid = {"uid": event.value("UID").strip()} if "UID" in event.properties else {}
    body = {"key": proposed(event.name, taken), "name": event.name, "schedule": schedule, **content(literal({"event": event.name, **uid}))}
    others = sorted(event.properties.keys() - set(_KNOWN))
    note = [f"Not taken over: {', '.join(others)}."] if others else []
    return Entry(body, [f"line {event.line}: RRULE:{rules[0][1]}", *note])


def _excluded(event: _Event, begin: rrule.Begin, schedule: dict[str, Any], now: datetime) -> list[str]:
    """The dates that EXDATE leaves out of a schedule, in the time zone of the event, without those that are past.

    A time at which there is no run leaves nothing out. Raises NoEqual: a task leaves out whole dates, and does not count them.
    """
    today, left_out = now.astimezone(begin.place).date(), set[datetime]()
    for parameters, value in event.properties.get("EXDATE", []):
        place = _zone(parameters)
        for text in value.split(","):
            found = _TIME.fullmatch(text.strip().upper())
            if found is None:
                raise NoEqual(f"has an EXDATE without a time of the day, or of another form: {text[:40]!a}")
            left_out.add(_instant(found, place, begin))
    if left_out and "max_runs" in schedule:
        raise NoEqual("leaves out dates (EXDATE) that it counts (COUNT), which has no equal")
    coming = [at for at in left_out if at.date() >= today]
    if not coming:
        return []
    only = _only_time(schedule)
    if only is None:
        raise NoEqual("leaves out one of several times of a day (EXDATE), which has no equal")
    dates = sorted({str(at.date()) for at in coming if at.time() == only})
    if len(dates) > MOST_EXCLUDED:
        raise NoEqual(f"leaves out {len(dates)} dates (EXDATE), and a schedule names at most {MOST_EXCLUDED}: import them as a calendar")
    return dates


def _zone(parameters: str) -> str | None:
    """The name of the time zone of a property."""
    named = re.search(r';TZID="?([^";]+)"?(?:;|$)', parameters, re.IGNORECASE)
    return named[1] if named else None


def _only_time(schedule: dict[str, Any]) -> time | None:
    """The local time of all runs of a schedule. None: they have several."""
    if "times" in schedule:
        return time.fromisoformat(schedule["times"]) if isinstance(schedule["times"], str) else None
    crons = [schedule["cron"]] if isinstance(schedule.get("cron"), str) else schedule.get("cron", [])
    found = {tuple(each.split()[:2]) for each in crons}
    minute, hour = found.pop() if len(found) == 1 else ("", "")
    return time(int(hour), int(minute)) if minute.isdigit() and hour.isdigit() else None


def _instant(found: re.Match[str], zone: str | None, begin: rrule.Begin) -> datetime:
    """A time of EXDATE as local time of the event. Raises NoEqual."""
    try:
        local = datetime.strptime(found[1], "%Y%m%dT%H%M%S")
    except ValueError:
        raise NoEqual(f"has an EXDATE that does not exist: {found[0]}") from None
    if not found[2] and zone in (None, begin.zone):
        return local
    try:
        of = timezone.utc if found[2] else zone_of(str(zone))
    except ValueError as error:
        raise NoEqual(f"has a time zone that is unknown here: {error}") from None
    return local.replace(tzinfo=of).astimezone(begin.place).replace(tzinfo=None)


def _begin(event: _Event, time_zone: str | None) -> rrule.Begin:
    if "DTSTART" not in event.properties:
        raise NoEqual("has no DTSTART, from which a rule counts")
    parameters, value = event.properties["DTSTART"][0]
    found = _TIME.fullmatch(value.strip().upper())
    if found is None:
        raise NoEqual(f"has a DTSTART without a time of the day, or of another form: {value[:40]!a}")
    try:
        local = datetime.strptime(found[1], "%Y%m%dT%H%M%S")
    except ValueError:
        raise NoEqual(f"has a DTSTART that does not exist: {found[0]}") from None
    if found[2]:
        return rrule.Begin(local, "UTC", timezone.utc)
    zone = _zone(parameters)
    if zone is None and time_zone is None:
        raise NoEqual("is in local time without a zone: give --time-zone")
    try:
        name = zone or str(time_zone)
        return rrule.Begin(local, name, zone_of(name), floating=zone is None)
    except ValueError as error:
        raise NoEqual(f"has a time zone that is unknown here: {error}") from None
