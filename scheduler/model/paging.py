"""Pages of filtered records: reading continues until a page is full; the cursor points just behind its last record."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from scheduler.model import ids
from scheduler.model.errors import Invalid

CHUNK = 100  # records per read while a filter is set
READS = 10  # reads per page; with a filter that few records match, the page is short and has a cursor
ANSWER_BYTES = 2_000_000  # payload in one page: a Lambda function answers at most 6 MB, and escapes can double a payload


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
    """Read up to `limit` records behind the position `after` that match, and the cursor of the next page.

    The cursor is None only if no further record can match. `read` takes a position and a number of records, and returns records
    and the position to continue at. `matches` None: all records match. `payload` returns the part of a record that may be large.
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
    """The records that still fit into the page, in order. An empty page accepts one record of any size."""
    room = ANSWER_BYTES - sum(_size(payload(record)) for record in found)
    for count, record in enumerate(matching):
        room -= _size(payload(record))
        if room < 0 and (found or count):
            return matching[:count]
    return matching


def _size(payload: Mapping[str, Any]) -> int:
    return len(json.dumps(payload))


def written_position(position: str) -> str:
    """The cursor of a position. It is opaque to callers, so that its content may change."""
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def read_position(cursor: str | None) -> str | None:
    """The position that a cursor was written from; None without a cursor. Raises Invalid for any other text."""
    if cursor is None:
        return None
    try:
        position = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        position = ""
    if not ids.is_position(position):
        raise Invalid.field("cursor", "must be the cursor of an earlier answer, unchanged")
    return position
