"""Instants, durations and values, as the command line reads and writes them. Pure."""

import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

from punctual.texts import in_json

_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?[dhms])+")
_PART = re.compile(r"(\d+(?:\.\d+)?)([dhms])")
AN_INSTANT = "must be an instant such as 2026-11-20T10:00:00Z or 2026-11-20T10:00:00+01:00, or a duration such as 1h or 30m"
A_DURATION = "must be a duration such as 90s, 30m, 1h30m or 2d"
LONG = 60  # characters of a text in one cell of a table


def duration(text: str) -> timedelta:
    """Return the duration of a text such as `1h30m`. Raises ValueError with the rule.

    >>> duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if not _DURATION.fullmatch(text.strip()):
        raise ValueError(A_DURATION)
    return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def instant(text: str) -> datetime:
    """Return the aware instant of an RFC 3339 text. Raises ValueError with the rule.

    >>> instant("2026-11-20T10:00:00Z").isoformat()
    '2026-11-20T10:00:00+00:00'
    """
    try:
        found = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text.strip()))
    except ValueError:
        raise ValueError(AN_INSTANT) from None
    if found.tzinfo is None:
        raise ValueError(f"needs an offset: {text}Z is UTC, {text}+01:00 an hour ahead of it")
    return found


def ago(text: str, now: datetime) -> datetime:
    """Return the instant of a text: RFC 3339, or a duration before now. Raises ValueError with the rule."""
    return now - duration(text) if _DURATION.fullmatch(text.strip()) else instant(text)


def ahead(text: str, now: datetime) -> datetime:
    """Return the instant of a text: RFC 3339, or a duration after now. Raises ValueError with the rule."""
    return now + duration(text) if _DURATION.fullmatch(text.strip()) else instant(text)


def span(value: timedelta) -> str:
    """Return a duration in its two largest units.

    >>> span(timedelta(seconds=5400)), span(timedelta(seconds=9.6)), span(timedelta(milliseconds=250))
    ('1h 30m', '10s', '0s')
    """
    left, parts = round(abs(value.total_seconds())), list[str]()
    for unit, size in _UNITS.items():
        count, left = divmod(left, int(size))
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


def clock(at: datetime | None, now: datetime, zone: tzinfo | None = None) -> str:
    """Return an instant for people: in the machine's time zone, with the date if it is not that of `now`."""
    if at is None:
        return ""
    here = at.astimezone(zone)
    return here.strftime("%H:%M:%S" if here.date() == now.astimezone(zone).date() else "%Y-%m-%d %H:%M:%S")


def relative(at: datetime | None, now: datetime) -> str:
    """Return how far an instant is away: `in 10s` or `5m 3s ago`."""
    if at is None:
        return ""
    return f"in {span(at - now)}" if at >= now else f"{span(now - at)} ago"


def milliseconds(value: int | float | None) -> str:
    """Return a measured duration.

    >>> milliseconds(0), milliseconds(1234), milliseconds(None)
    ('0 ms', '1.23 s', '')
    """
    if value is None:
        return ""
    return (
        f"{value:.0f} ms"
        if abs(value) < 1_000
        else f"{value / 1_000:.2f} s"
        if abs(value) < 60_000
        else span(timedelta(milliseconds=value))
    )


def short(text: object, length: int = LONG) -> str:
    """Return one line of at most `length` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= length else line[: length - 1] + "…"


def words(values: Iterable[object]) -> str:
    return ", ".join(str(each) for each in values)


def document(value: object) -> str:
    """Return a value as indented JSON; nothing for None and for what is empty."""
    return in_json(value, 2) if value else ""


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def value(text: str) -> Any:
    """Return the JSON value of a text; a text that is no JSON is itself."""
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return text


def wire(at: datetime | None) -> str:
    """Return the instant in the format of the API; nothing for None.

    >>> wire(instant("2026-11-20T11:00:00.25+01:00"))
    '2026-11-20T11:00:00.250+01:00'
    """
    return "" if at is None else at.isoformat(timespec="milliseconds")


BARS = " ▁▂▃▄▅▆▇█"


def columns(values: Sequence[float], height: int, top: float | None = None) -> list[str]:
    """Return the rows of a bar chart, from the top, of one column for each value.

    `top` is the value of a full column, by default the largest.


    >>> columns([0, 1, 2, 4], 1)
    [' ▂▄█']
    """
    full = top or max(values, default=0) or 1
    eighths = [min(height * 8, max(1 if each > 0 else 0, round(each / full * height * 8))) for each in values]
    return ["".join(BARS[min(8, max(0, each - row * 8))] for each in eighths) for row in reversed(range(height))]
