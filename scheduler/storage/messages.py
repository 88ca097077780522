"""A message as text: compact JSON, written for every job or pack of jobs, and read back by executors and bury."""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from scheduler.model import ids
from scheduler.model.errors import Invalid
from scheduler.model.job import JobKey, Lane, Message, Packed

VERSION, PACK_VERSION = 1, 2  # of a message with one job, and with several
MOST = 1_000  # jobs of one message
LARGEST = 2**53  # of any number: the scheduler never writes a larger one, and the table could not read it
LONGEST = 512  # bytes of an owner's id
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_LANES = {lane.value: lane for lane in Lane}


def encode(message: Message) -> str:
    fields: dict[str, Any] = {
        "v": message.version,
        "owner": message.key.owner,
        "id": message.key.id,
        "fence": message.fence,
        "lane": message.lane.value,
        "due_at": message.due_at,
        "sent_at": message.sent_at,
    }
    if message.not_before:
        fields["not_before"] = message.not_before
    if message.more:
        fields |= {"v": PACK_VERSION, "more": _by_owner(message.more)}
    return _json(fields)


def _by_owner(more: Sequence[Packed]) -> list[list[Any]]:
    """The packed jobs, in order: each owner once for all jobs in a row."""
    rows = groupby(more, key=lambda each: each.key.owner)
    return [[owner, *([each.key.id, each.fence, each.due_at] for each in row)] for owner, row in rows]


def decode(text: str) -> Message:
    """The message in a text. Raises Invalid for a text that `encode` cannot have written."""
    try:
        fields = json.loads(text)
        version = _whole(fields["v"])
        if version not in (VERSION, PACK_VERSION):
            raise Invalid(f"message of version {version}, this program reads {VERSION} and {PACK_VERSION}")
        return Message(
            JobKey(_owner(fields["owner"]), _id(fields["id"])),
            _whole(fields["fence"]),
            _LANES[fields["lane"]],
            _whole(fields["due_at"]),
            _whole(fields["sent_at"]),
            _whole(fields.get("not_before", 0)),
            more=_more(fields["more"]) if version == PACK_VERSION else (),
        )
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise Invalid(f"not a message: {error!r}") from None


def _more(rows: Any) -> tuple[Packed, ...]:
    found = tuple(
        Packed(JobKey(_owner(owner), _id(job_id)), _whole(fence), _whole(due_at)) for owner, *jobs in rows for job_id, fence, due_at in jobs
    )
    if not 0 < len(found) < MOST:
        raise ValueError(f"a pack of {len(found) + 1} jobs")
    return found


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= LARGEST:  # Python's bool is an int
        raise TypeError("not a whole number, or out of bounds")
    return value


def _owner(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value.encode()) <= LONGEST:  # a lone surrogate raises here
        raise TypeError("not an owner")
    return value


def _id(value: Any) -> str:
    """An id contains the partition of its job: one without it would fail the whole batch, not only its message."""
    if not isinstance(value, str) or not ids.is_job_id(value):
        raise TypeError("not the id of a job")
    return value
