"""A job as an item of the jobs table. Written by hand: this runs for every job, and a general serializer costs ten times as much.

Fields with their default value are not stored. Payload, response, attempts, tags and origin are JSON text. Text stores any JSON
that a user may send (DynamoDB's own maps refuse long numbers and empty keys), and boto3 need not convert nested values.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scheduler.model import ids, lifecycle
from scheduler.model.after import End, Ending, Kind, Predecessor, When
from scheduler.model.job import (
    Attempt,
    Awaited,
    Claim,
    DeadLetter,
    DueEntry,
    Failure,
    Job,
    JobKey,
    KeyEntry,
    Lane,
    Misfire,
    Outcome,
    Overlap,
    OwnKey,
    Preview,
    Progress,
    RequeueCause,
    RunInfo,
)
from scheduler.model.notifications import Notifications
from scheduler.storage.aws import keys, spec_items
from scheduler.storage.ports import MOVING

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

Item = dict[str, Any]

_NUMBERS: dict[str, int | None] = {  # with the default that is not stored
    "charged": 0,
    "throttled": 0,
    "looks": 0,
    "crashes": 0,
    "buried": 0,
    "picked_at": None,
    "started_at": None,
    "completed_at": None,
    "failed_at": None,
    "killed_at": None,
    "cancelled_at": None,
    "skipped_at": None,
    "cancel_requested_at": None,
    "delay_ms": None,
    "heartbeat_at": None,
    "start_by": None,
    "redrives": 0,
    "redriven_at": None,
    "changed_at": None,
    "released_at": None,
    "expires": None,
    "followed": None,
    "dropped": 0,
    "member": None,
    "puts": 0,
    "nominal_at": None,
}
_CAUSES = {cause.value: cause for cause in RequeueCause}
_TEXTS = ("slot", "reason", "output", "fingerprint", "redriven_by", "put_by", "group", "replay_of", "trace", "links_to")
# All attributes except the large ones: payload, output, response, attempts, progress, notifications.
OUTLINE = (
    *("pk", "sk", "v"),
    *spec_items.SMALL,
    *("scheduled_at", "due_at", "created_at", "fence", "lane", "claim", "awaited", "requeue_cause", "task", "origin"),
    *("slot", "reason", "fingerprint", "redriven_by", "put_by", "group", "replay_of", "trace", "links_to", "after", "ends"),
    *_NUMBERS,
)
GLANCE = ("pk", "sk", "v", "slot", "fence", "claim", "cancel_requested_at")  # fewer bytes to parse
NOTIFY, WATCHED = 1, 2  # bits in the place of `notify`; a version that knows no alerts reads them as true
_NO_PAYLOAD = {"S": "{}"}
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode(job: Job) -> Item:
    """The whole item."""
    return keys.job(job.key) | attributes(job)


def attributes(job: Job) -> Item:
    """All of the item but its key."""
    return spec_items.encode(job.spec) | _own(job)


def _own(job: Job) -> Item:
    """All of the item but its key and its spec."""
    item: Item = {
        "v": {"N": keys.FORMAT},
        "scheduled_at": {"N": str(job.scheduled_at)},
        "due_at": {"N": str(job.due_at)},
        "created_at": {"N": str(job.created_at)},
        "fence": {"N": str(job.fence)},  # stored even if 1: conditions compare it
    }
    if job.lane is not Lane.ONE_TIME:
        item["lane"] = {"S": job.lane.value}
    for name, default in _NUMBERS.items():
        number = getattr(job, name)
        if number != default:
            item[name] = {"N": str(number)}
    for name in _TEXTS:
        text = getattr(job, name)
        if text is not None:
            item[name] = {"S": text}
    if job.notifications is not None:
        item |= receivers(job.notifications)
    if job.requeue_cause is not None:
        item["requeue_cause"] = {"S": job.requeue_cause.value}
    if job.claim is not None:
        item["claim"] = claim(job.claim)
    if job.awaited is not None:
        item["awaited"] = {"S": _json(_awaited(job.awaited))}
    if job.response is not None:
        item["response"] = {"S": _json(job.response)}
    if job.attempts:
        item["attempts"] = {"S": _json([_attempt(attempt) for attempt in job.attempts])}
    if job.progress is not None:
        item["progress"] = {"S": _json([job.progress.fraction, job.progress.message])}
    if job.after:
        item["after"] = {"S": _json([_predecessor(each) for each in job.after])}
        item["ends"] = {"M": {str(place): end(each.end) for place, each in enumerate(job.after) if each.end is not None}}
    if job.origin is not None:
        item["task"] = {"S": keys.task(job.owner, job.origin.task)}
        item["origin"] = {"S": _json(_origin(job.origin))}
    position = ids.position(job.id, job.scheduled_at)
    if position != job.id:
        item["moved_partition"] = {"S": keys.moved_partition(job.key)}
        item["moved_position"] = {"S": position}
    if job.slot is None and (job.failed_at is not None or job.killed_at is not None):
        item["failed_position"] = {"S": ids.queue_position(job.id, job.scheduled_at, job.created_at)}
    return item


def differences(before: Job, after: Job) -> tuple[Item, list[str]]:
    """The attributes to set and to remove so that the item of `before` becomes that of `after`: see `Change`. Others stay untouched."""
    written = _own if before.spec is after.spec else attributes  # most changes leave the spec alone
    old, new = written(before), written(after)
    always = MOVING if after.fence != before.fence else frozenset[str]()
    new |= {name: {"N": str(_NUMBERS[name])} for name in sorted(always & _NUMBERS.keys() - new.keys())}
    sets = {name: value for name, value in new.items() if name in always or old.get(name) != value}
    return sets, [name for name in old if name not in new]


def claim(claim: Claim) -> "AttributeValueTypeDef":
    fields: dict[str, AttributeValueTypeDef] = {
        "message_id": {"S": claim.message_id},
        "nonce": {"S": claim.nonce},
        "at": {"N": str(claim.at)},
        "alone": {"BOOL": claim.alone},
    }
    if claim.lease_until is not None:
        fields["lease_until"] = {"N": str(claim.lease_until)}
    if claim.revocable:
        fields["revocable"] = {"BOOL": True}
    return {"M": fields}


def decode(item: Mapping[str, Any]) -> Job:
    """The job of a whole item, as a table or a stream returns it. It raises for an unreadable item."""
    keys.check_format(item)
    found: dict[str, Any] = {name: int(item[name]["N"]) for name in _NUMBERS if name in item}
    for name in _TEXTS:
        if name in item:
            found[name] = item[name]["S"]
    if "slot" not in item:
        found["slot"] = None
    if "requeue_cause" in item:
        found["requeue_cause"] = _CAUSES.get(item["requeue_cause"]["S"])  # None: a cause of another version, unknown here
    if "notifications" in item:
        found["notifications"] = _read_receivers(item["notifications"]["S"])
    if "lane" in item:
        found["lane"] = Lane(item["lane"]["S"])
    if "claim" in item:
        found["claim"] = _claim(item["claim"]["M"])
    if "awaited" in item:
        found["awaited"] = _read_awaited(json.loads(item["awaited"]["S"]))
    if "response" in item:
        found["response"] = json.loads(item["response"]["S"])
    if "attempts" in item:
        found["attempts"] = tuple(_read_attempt(values) for values in json.loads(item["attempts"]["S"]))
    if "progress" in item:
        found["progress"] = Progress(*json.loads(item["progress"]["S"]))
    if "after" in item:
        found["after"] = _read_after(json.loads(item["after"]["S"]), item["ends"]["M"])
    if "origin" in item:
        found["origin"] = _read_origin(item["task"]["S"], json.loads(item["origin"]["S"]))
    return Job(
        owner=keys.owner(item["pk"]["S"]),
        id=item["sk"]["S"],
        spec=spec_items.decode(item),
        scheduled_at=int(item["scheduled_at"]["N"]),
        due_at=int(item["due_at"]["N"]),
        created_at=int(item["created_at"]["N"]),
        fence=int(item["fence"]["N"]),
        **found,
    )


def outline(item: Mapping[str, Any]) -> Job:
    """The outline of a job (see `Jobs.outlines`), of an item read with the attributes `OUTLINE` alone."""
    return decode({**item, "payload": _NO_PAYLOAD})


def glance(item: Mapping[str, Any], known: Job) -> Job:
    """A known job as `Jobs.glance` returns it, of an item read with the attributes `GLANCE` alone."""
    keys.check_format(item)
    slot, claim = item["slot"]["S"] if "slot" in item else None, _claim(item["claim"]["M"]) if "claim" in item else None
    cancelled = int(item["cancel_requested_at"]["N"]) if "cancel_requested_at" in item else None
    return lifecycle.seen(known, slot, int(item["fence"]["N"]), claim, cancelled)


def receivers(notifications: Notifications) -> Item:
    """The attribute with the receivers of a one-time job's notices."""
    from scheduler.notify import messages  # loaded with the first job that has receivers

    return {"notifications": {"S": messages.encode_notifications(notifications)}}


def _read_receivers(text: str) -> Notifications:
    from scheduler.notify import messages

    return messages.decode_notifications(text)


def due_entry(item: Mapping[str, Any]) -> DueEntry:
    """The entry in an item of the due index."""
    return DueEntry.of(
        JobKey(keys.owner(item["pk"]["S"]), item["sk"]["S"]),
        item["slot"]["S"],
        int(item["due_at"]["N"]),
        Lane(item["lane"]["S"]) if "lane" in item else Lane.ONE_TIME,
        int(item["fence"]["N"]),
    )


def key_entry(own: OwnKey, item: Mapping[str, Any]) -> KeyEntry:
    """The entry of a key in its item."""
    return KeyEntry(own, item["id"]["S"], int(item["life"]["N"]) if "life" in item else 0)


def letter(item: Mapping[str, Any]) -> DeadLetter:
    """The dead letter in an item of the failures index."""
    return DeadLetter(
        JobKey(keys.owner(item["pk"]["S"]), item["sk"]["S"]),
        item["failed_position"]["S"],
        item["type"]["S"],
        item["task"]["S"].rpartition("#")[2] if "task" in item else None,
        item["fingerprint"]["S"] if "fingerprint" in item else None,
        int(item["failed_at" if "failed_at" in item else "killed_at"]["N"]),
    )


def size(item: Mapping[str, Any]) -> int:
    """Bytes of an item as DynamoDB counts them, rounded up where AWS only says "about".

    The rule: "DynamoDB item sizes and formats", CapacityUnitCalculations.html in the Amazon DynamoDB Developer Guide.
    """
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "B":
        return len(content)
    if kind == "N":
        return len(content.lstrip("-").replace(".", "")) // 2 + 2
    if kind == "M":
        return 3 + len(content) + size(content)
    if kind == "L":
        return 3 + len(content) + sum(_value_size(element) for element in content)
    return 1  # BOOL, NULL


def _claim(fields: Mapping[str, Any]) -> Claim:
    lease_until = int(fields["lease_until"]["N"]) if "lease_until" in fields else None
    known = fields["message_id"]["S"], fields["nonce"]["S"], int(fields["at"]["N"]), fields["alone"]["BOOL"]
    return Claim(*known, lease_until, "revocable" in fields)


def _origin(origin: RunInfo) -> list[Any]:
    """All fields but the task, which has an attribute of its own. Trailing nulls are left out: a run's item must fit into a write unit."""
    values = [
        origin.generation,
        origin.nominal_at,
        origin.overlap.value,
        origin.misfire and origin.misfire.value,
        origin.late_from,
        origin.previous_at,
        origin.next_at,
        WATCHED + origin.notify if origin.watched else origin.notify or None,
    ]
    while values[-1] is None:
        values.pop()
    return values


def _read_origin(task: str, values: list[Any]) -> RunInfo:
    generation, nominal_at, overlap, misfire, late_from, previous_at, next_at, flags = values + [None] * (8 - len(values))
    bits = flags or 0
    known = task.rpartition("#")[2], generation, nominal_at, Overlap(overlap), misfire and Misfire(misfire)
    return RunInfo(*known, late_from, previous_at, next_at, bool(bits & NOTIFY), bool(bits & WATCHED))


def _predecessor(each: Predecessor) -> list[str]:
    """All of it but its end, which has a place of its own in `ends`: several ends can be noted at once, each by its own write."""
    values = [each.id, each.when.value, each.kind.value]
    return values[:1] if (each.when, each.kind) == (When.SUCCEEDED, Kind.JOB) else values


def end(end: End) -> "AttributeValueTypeDef":
    return {"S": end.ending.value if end.cause is None else f"{end.ending.value} {end.cause}"}


def _read_after(stored: list[list[str]], ends: Mapping[str, Any]) -> tuple[Predecessor, ...]:
    return tuple(
        Predecessor(id, When(rest[0]) if rest else When.SUCCEEDED, Kind(rest[1]) if rest else Kind.JOB, _read_end(ends.get(str(place))))
        for place, (id, *rest) in enumerate(stored)
    )


def _read_end(stored: Any) -> End | None:
    if stored is None:
        return None
    ending, space, cause = stored["S"].partition(" ")
    return End(Ending(ending), cause if space else None)


def _awaited(awaited: Awaited) -> list[Any]:
    values = [awaited.fence, awaited.request, awaited.id, awaited.start_by, awaited.stopping, awaited.facts or None]
    while values[-1] is None:
        values.pop()
    return values


def _read_awaited(values: list[Any]) -> Awaited:
    fence, request, id, start_by, stopping, facts = values + [None] * (6 - len(values))
    return Awaited(fence, request, id, start_by, stopping, facts or {})


def _attempt(attempt: Attempt) -> list[Any]:
    failure = attempt.failure
    error = failure and [failure.kind.value, failure.message, *([] if failure.retry_after_ms is None else [failure.retry_after_ms])]
    values = [attempt.fence, attempt.picked_at, attempt.started_at, attempt.ended_at, attempt.outcome.value, error]
    more = [attempt.log, attempt.output, attempt.preview and attempt.preview.value]
    while more and more[-1] is None:
        more.pop()
    return values + more


def _read_attempt(values: list[Any]) -> Attempt:
    fence, picked_at, started_at, ended_at, outcome, failure, *more = values
    log, output, preview = more + [None] * (3 - len(more))
    error = Failure.read(*failure) if failure else None
    return Attempt(fence, picked_at, started_at, ended_at, Outcome(outcome), error, log, output, preview and Preview(preview))
