"""A batch of a table's stream, as changes of jobs and tasks, and as groups that were sealed or have ended.

The event names its shard only because the mapping has a tumbling window; the window's state is not used. Without the shard the order
of records is unknown, so such an event is refused, except on an emulated AWS whose streams have one shard (`one_shard`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler.model.errors import Invalid
from scheduler.model.group import Group
from scheduler.model.job import Job
from scheduler.model.task import Task
from scheduler.storage.aws import groups, items, keys, readable, task_items

DIGITS = 40  # of a sequence number, at most


@dataclass(frozen=True, slots=True)
class JobChange:
    """One write of a job. `sequence` is padded, so that it sorts as text."""

    sequence: str
    before: Job | None
    after: Job | None
    expired: bool = False  # DynamoDB deleted the item by TTL


@dataclass(frozen=True, slots=True)
class TaskChange:
    """One write of a task."""

    sequence: str
    before: Task | None
    after: Task | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes in their order, all of one shard."""

    shard: str
    changes: list[JobChange | TaskChange] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)  # that were sealed, or whose members had all ended


def batch(event: Mapping[str, Any], *, one_shard: bool = False) -> Batch:
    """The changes in an event, without those of unreadable records. Raises Invalid for an event that names no shard."""
    records = event.get("Records", [])
    shard = event.get("shardId") or ("only" if one_shard else None)
    if shard is None:
        raise Invalid("the event names no shard: its mapping needs a tumbling window")
    source = str(records[0]["eventSourceARN"]) if records else ""
    made = Batch(f"{source.partition('/stream/')[0].rpartition('/')[2]}/{shard}")
    for record in records:
        try:
            made.changes.extend(_changes(record["dynamodb"], expired=_by_ttl(record)))
            made.groups.extend(_groups(record["dynamodb"]))
        except Exception:  # one record that cannot be read must not stop the shard for a day
            readable.log.exception("a record of the stream cannot be read", extra={"event_id": record.get("eventID")})
    return made


def _by_ttl(record: Mapping[str, Any]) -> bool:
    identity = record.get("userIdentity") or {}
    return (identity.get("type"), identity.get("principalId")) == ("Service", "dynamodb.amazonaws.com")


def _groups(record: Mapping[str, Any]) -> Iterator[Group]:
    """The group in one record."""
    if record["Keys"]["pk"]["S"].startswith(keys.GROUPS) and (new := record.get("NewImage")):
        group = groups.decode(new)
        if group is not None:
            yield group


def _changes(record: Mapping[str, Any], *, expired: bool) -> Iterator[JobChange | TaskChange]:
    """The change in one record; none for an item beside the jobs and tasks: a canary, the mark, a run lock, an ordering queue, a target."""
    pk, sk = record["Keys"]["pk"]["S"], record["Keys"]["sk"]["S"]
    old, new = record.get("OldImage"), record.get("NewImage")
    sequence = record["SequenceNumber"].zfill(DIGITS)
    if keys.is_beside_jobs(pk) or pk.startswith(keys.BESIDE_TASKS):
        return
    known = new or old or {}
    if "scheduled_at" in known:
        yield JobChange(sequence, items.decode(old) if old else None, items.decode(new) if new else None, expired)
    elif "planned_until" in known:
        yield TaskChange(sequence, task_items.decode(old) if old else None, task_items.decode(new) if new else None)
    else:
        raise ValueError(f"neither a job nor a task: {pk} {sk}")
