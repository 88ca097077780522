"""Pages of what a filter leaves over: read on until the page is full, and answer a cursor that goes on just behind it."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from scheduler.model import ids
from scheduler.model.errors import Invalid

CHUNK = 100  # records per read while a filter is set
READS = 10  # reads per page: a filter that finds little answers a short page and a cursor
ANSWER_BYTES = 4_000_000  # payload in one page: a Lambda function answers 6 MB at most


T = TypeVar("T")


def read_on(
    read: Callable[[str | None, int], tuple[list[T], str | None]],
    *,
    after: str | None,
    limit: int,
    matches: Callable[[T], bool] | None,
    position: Callable[[T], str],
    payload: Callable[[T], Mapping[str, Any]],
) -> tuple[list[T], str | None]:
    """Up to `limit` records beyond the position `after` that match (None: all do), and the cursor of the next page.

    The cursor is None only if nothing more can match. `read` takes a position and a number of records; the
    `payload` of a record is what may be large.
    """
    found: list[T] = []
    for _ in range(READS):
        records, after = read(after, limit if matches is None else CHUNK)
        matching = [record for record in records if matches is None or matches(record)]
        more = _fitting(found, matching, payload)[: limit - len(found)]
        found += more
        if len(more) < len(matching):
            return found, written_position(position(found[-1]))
        if after is None or len(found) == limit:
            break
    return found, None if after is None else written_position(after)


def _fitting(found: Sequence[T], matching: list[T], payload: Callable[[T], Mapping[str, Any]]) -> list[T]:
    """As many more records as the page has room for; one always fits into an empty page."""
    room = ANSWER_BYTES - sum(_size(payload(record)) for record in found)
    for count, record in enumerate(matching):
        room -= _size(payload(record))
        if room < 0 and (found or count):
            return matching[:count]
    return matching


def _size(payload: Mapping[str, Any]) -> int:
    return len(json.dumps(payload))


def written_position(position: str) -> str:
    """Opaque to callers, so that it may become something else than the last record's position."""
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def read_position(cursor: str | None) -> str | None:
    """The position that a cursor was written from. Raises Invalid."""
    if cursor is None:
        return None
    try:
        position = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        position = ""
    if not ids.is_job_id(position):
        raise Invalid.field("cursor", "must be the cursor of an earlier answer, unchanged")
    return position
