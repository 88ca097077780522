"""Instants as text: RFC 3339 in requests and answers, an int of UTC milliseconds since the epoch in the records."""

import re
from datetime import UTC, datetime, timedelta

from scheduler.model.errors import Invalid

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
DAY = 86_400_000
PAST_LIMIT = DAY  # ms; an earlier start is a mistake and not a late job
FUTURE_LIMIT = 3_653 * DAY  # ten years, in ms
FIRST, LAST = ((at - EPOCH.replace(tzinfo=None)) // MILLISECOND for at in (datetime.min, datetime.max))  # that `render` can write

_RFC_3339 = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?([Zz]|[+-][0-9]{2}:[0-5][0-9])")
RULE = "must be an RFC 3339 instant with an offset, such as 2026-11-20T10:00:00.250Z or 2026-11-20T11:00:00+01:00"


def parse(text: object) -> int:
    """The instant in ms, rounded up so that no job starts early. Raises ValueError with the rule for any other value.

    >>> parse("1970-01-01T01:00:00.0000001+01:00")
    1
    """
    found = _RFC_3339.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(RULE)
    whole, fraction, offset = found.groups()
    try:
        at: int = (datetime.fromisoformat((whole + offset).upper()) - EPOCH) // MILLISECOND
    except ValueError:
        raise ValueError(f"{RULE}; there is no such date or time") from None
    at += -(-int((fraction or "").ljust(9, "0")) // 1_000_000)
    if not FIRST <= at <= LAST:
        raise ValueError(f"{RULE}; in UTC its year must have four digits")
    return at


def render(at: int) -> str:
    """The instant (ms, between `FIRST` and `LAST`) as RFC 3339 text in UTC.

    >>> render(1)
    '1970-01-01T00:00:00.001Z'
    """
    return (EPOCH + timedelta(milliseconds=at)).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def check_start(name: str, at: int, now: int) -> None:
    """Raise Invalid for the field `name` if a job may not be submitted at `now` for the instant `at`."""
    if at < now - PAST_LIMIT:
        raise Invalid.field(name, f"must not be more than a day in the past (it is now {render(now)})")
    if at > now + FUTURE_LIMIT:
        raise Invalid.field(name, f"must not be more than ten years ahead (it is now {render(now)})")


def check_end(name: str, at: int, start: int) -> None:
    """Raise Invalid for the field `name` if the expiry `at` is not later than the start of its job."""
    if at <= start:
        raise Invalid.field(name, f"must be later than its start ({render(start)})")
