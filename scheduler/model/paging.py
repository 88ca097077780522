"""Pages of filtered records: reading continues until a page is full; the cursor points just behind its last record."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from scheduler.model import ids
from scheduler.model.errors import Invalid
from scheduler.model.job import Job

CHUNK = 100  # records per read while a filter is set
READS = 10  # reads per page; with a filter that few records match, the page is short and has a cursor
# Of the long parts of a page's records, as the answer of the function has them. It has at most 6 MB; short fields take up to 1 MB.
ANSWER_BYTES = 4_000_000


T = TypeVar("T")


def read_on(
    read: Callable[[str | None, int], tuple[list[T], str | None]],
    *,
    after: str | None,
    limit: int,
    matches: Callable[[T], bool] | None,
    position: Callable[[T], str],
    parts: Callable[[T], Any],
) -> tuple[list[T], str | None]:
    """Read up to `limit` records behind the position `after` that match, and the cursor of the next page.

    The cursor is None only if no further record can match. `read` takes a position and a number of records, and returns records
    and the position to continue at. `matches` None: all records match. `parts` returns the parts of a record that may be long, as JSON.
    """
    found: list[T] = []
    for _ in range(READS):
        records, after = read(after, limit if matches is None else CHUNK)
        matching = [record for record in records if matches is None or matches(record)]
        more = _fitting(found, matching, parts)[: limit - len(found)]
        found += more
        if len(more) < len(matching):
            return found, written_position(position(found[-1]))
        if after is None or len(found) == limit:
            break
    return found, None if after is None else written_position(after)


def _fitting(found: Sequence[T], matching: list[T], parts: Callable[[T], Any]) -> list[T]:
    """The records that still fit into the page, in order. An empty page accepts one record of any size."""
    room = ANSWER_BYTES - sum(_size(parts(record)) for record in found)
    for count, record in enumerate(matching):
        room -= _size(parts(record))
        if room < 0 and (found or count):
            return matching[:count]
    return matching


def long_parts(job: Job) -> list[Any]:
    """The parts of a job that may be long in an answer, where the last attempt repeats the job's output."""
    attempts = [[each.log, each.output, each.failure and each.failure.message] for each in job.attempts]
    progress = None if job.progress is None else job.progress.message
    return [job.spec.payload, job.output, job.output, job.response, job.reason, progress, attempts]


def _size(parts: Any) -> int:
    """The bytes in the function's answer. The body is JSON in a JSON string there: a quote in a text takes four bytes."""
    body = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return len(json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass"))


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
