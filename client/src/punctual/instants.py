"""Instants and durations between Python and the API."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from punctual.errors import InvalidArgument


def parse(text: str) -> datetime:
    """Return the aware instant of an RFC 3339 text. Raises ValueError."""
    instant = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))  # Python 3.10 does not know Z
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} has no offset")
    return instant


def text(instant: datetime | str) -> str:
    """Return the instant as RFC 3339 in UTC with milliseconds; a text is returned as it is. Raises InvalidArgument without a zone."""
    if isinstance(instant, str):
        return instant
    if instant.tzinfo is None:
        raise InvalidArgument(f"{instant!r} has no time zone: use datetime.now(timezone.utc), or instant.astimezone()")
    return instant.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds(duration: timedelta | float) -> float:
    """Return a duration in seconds, a whole number as int. Raises InvalidArgument for NaN and infinity."""
    found = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if not math.isfinite(found):
        raise InvalidArgument(f"{found} is no number of seconds")
    return int(found) if found == int(found) else found


def duration(length: timedelta | float) -> str:
    """Return a duration as the API reads it, in seconds with at most nine decimals.

    >>> duration(timedelta(minutes=30)), duration(0.25)
    ('1800s', '0.25s')
    """
    return f"{seconds(length):.9f}".rstrip("0").rstrip(".") + "s"


def jsonable(value: Any) -> Any:
    """Return what JSON lacks as text: instants as RFC 3339, days, UUIDs; a timedelta as seconds. Raises TypeError for everything else."""
    if isinstance(value, datetime):
        return text(value)
    if isinstance(value, date | UUID):
        return str(value)
    if isinstance(value, timedelta):
        return seconds(value)
    raise TypeError(f"{type(value).__name__} has no JSON form: {value!r}")
