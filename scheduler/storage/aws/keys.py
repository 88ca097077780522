"""Every key shape, index and condition of the three tables, each named with its purpose.

Attributes of a job carry the names of the model's fields; `items` says how each is stored. Besides them:

    pk, sk         <owner>#<partition> and the job id: the owner is in the key, and a heavy one spreads over partitions
    task           <owner>#<task id>, on jobs of a task only: the partition of the sparse index `by_task`
    moved_owner    the owner, on jobs only whose time was changed: the partition of the sparse index `moved`
    failed_owner   the owner, on failed and killed jobs only: the partition of the sparse index `failures`
    position       where a moved or failed job stands in lists by time
    expires        epoch seconds, the tables' TTL attribute
    v              format of the item
"""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scheduler.model import ids, slots
from scheduler.model.job import Holder, JobKey, Lane, Look, Marker, OrderKey, TaskKey, Turn, UnitKey
from scheduler.storage.ports import KEPT_RECEIPTS_MS, Change, ClaimRequest, Guard

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

Value = dict[str, "AttributeValueTypeDef"]  # what the type stubs call an item
FORMAT = "1"

# Indexes of the jobs table.
DUE = "due"  # slot, due_at: exactly what is not finished, in the order in which the scheduler must look at it
FAILURES = "failures"  # failed_owner, position; with what tells errors apart: a user must look at these, whatever the successes
MOVED = "moved"  # moved_owner, position: the jobs, whole, that lists by time do not find at their id
BY_MONTH = "by_month"  # of the audit trail: month, sk; whole items
BY_TASK = "by_task"  # task, sk: keys only

# Index of the tasks table.
REPLENISH = "replenish"  # replenish (a slot), sk: keys only, of the tasks whose next runs must be stored

# Key conditions.
IN_SLOT = "#slot = :slot"
DUE_IN_SLOT = "#slot = :slot AND due_at BETWEEN :since AND :until"
CANARY_IN_SLOT = "#slot = :slot AND due_at = :zero"
IN_PARTITION = "pk = :pk AND sk BETWEEN :low AND :high"
FAILED = "failed_owner = :pk AND #position BETWEEN :low AND :high"  # a reserved word, as the next one's
MOVED_BETWEEN = "moved_owner = :pk AND #position BETWEEN :low AND :high"
IN_MONTH = "#month = :pk AND sk BETWEEN :low AND :high"  # a reserved word, too
OF_TASK = "task = :pk AND sk BETWEEN :low AND :high"
OF_LANE = "lane = :lane"
OF_USUAL_LANE = "attribute_not_exists(lane)"  # one-time, which is not stored
ALL_OF = "pk = :pk"
UP_TO = "pk = :pk AND sk < :bound"
OPEN_IN_PARTITION = "attribute_exists(#slot)"
ADD_TO_TALLY = "SET since = if_not_exists(since, :now), expires = :expires ADD #count :number, #total :number"
TALLY_NAMES = {"#count": "count", "#total": "total"}
TO_REPLENISH = "replenish = :slot"
REPLENISH_BEFORE = "replenish < :minute"

# Conditions of plain writes.
NEW = "attribute_not_exists(pk)"  # nothing is overwritten
IF_NEW = {"ConditionExpression": NEW}
EXISTS = "attribute_exists(pk)"
SAME_EPOCH = "epoch = :epoch"  # nobody has taken it over since it was read
SAME_LEASE = "epoch = :epoch AND lease_until = :lease"  # nor has its holder renewed its lease

CANARY = "canary"  # sort key and first part of the partition key of a unit's proof that the index has caught up
_LAST = "~"  # sorts after every job id


class Term(NamedTuple):
    """One term of the condition of an update; all terms of an update must hold."""

    path: tuple[str, ...]
    test: Literal["=", "<=", "exists", "missing"]
    value: "AttributeValueTypeDef | None" = None


def claimable(request: ClaimRequest) -> list[Term]:
    """The job waits under the fence of the message and is due soon enough; it has neither ended nor been claimed."""
    return [
        Term(("fence",), "=", {"N": str(request.fence)}),
        Term(("due_at",), "<=", {"N": str(request.due_by)}),
        Term(("slot",), "exists"),
        Term(("claim",), "missing"),
    ]


def withdrawable() -> list[Term]:
    """Nobody has ever claimed the job, and it has not ended."""
    return [Term(("fence",), "=", {"N": "1"}), Term(("slot",), "exists"), Term(("claim",), "missing")]


def unchanged(change: Change) -> list[Term]:
    """What the change's guard names is as it was when `before` was read."""
    before = change.before
    terms = [Term(("fence",), "=", {"N": str(before.fence)})]
    if before.claim is None:
        terms.append(Term(("claim",), "missing"))
    else:
        terms.append(Term(("claim", "nonce"), "=", {"S": before.claim.nonce}))
    if change.guard is Guard.LEASE and before.claim is not None:
        until = before.claim.lease_until
        value: AttributeValueTypeDef | None = None if until is None else {"N": str(until)}
        terms.append(Term(("claim", "lease_until"), "missing" if value is None else "=", value))
        if until is not None:
            beat = before.heartbeat_at
            terms.append(Term(("heartbeat_at",), "missing") if beat is None else Term(("heartbeat_at",), "=", {"N": str(beat)}))
    if change.guard is Guard.SLOT and before.slot is not None:
        terms.append(Term(("slot",), "=", {"S": before.slot}))
    else:
        terms.append(Term(("slot",), "missing" if before.slot is None else "exists"))
    return terms


def job(key: JobKey) -> Value:
    return {"pk": {"S": partition(key.owner, ids.partition(key.id))}, "sk": {"S": key.id}}


def partition(owner: str, number: int) -> str:
    return f"{owner}#{number:02d}"


def partitions(owner: str) -> list[str]:
    """Everywhere the owner's jobs live."""
    return [partition(owner, number) for number in range(ids.PARTITIONS)]


def task(owner: str, task_id: str) -> str:
    """The partition of the index `by_task`."""
    return f"{owner}#{task_id}"


def owner(pk: str) -> str:
    return pk.rpartition("#")[0]


def bounds(since: int | None, until: int | None, after: str | None, newest_first: bool) -> tuple[str, str]:
    """The first and the last position of a range of times, beyond the position `after`."""
    low = "" if since is None else ids.first(since)
    high = _LAST if until is None else ids.first(until)  # a bound is shorter than any id, so never equal to one
    if after and newest_first:
        high = min(high, after[:-1] + chr(ord(after[-1]) - 1) + _LAST)  # sorts right before the id `after`
    elif after:
        low = max(low, after + "0")  # right after it
    return low or "0", high


def stored_task(key: TaskKey) -> Value:
    return {"pk": {"S": key.owner}, "sk": {"S": key.id}}


def task_key(item: Mapping[str, Any]) -> TaskKey:
    return TaskKey(item["pk"]["S"], item["sk"]["S"])


def holder(key: TaskKey) -> Value:
    """Beside the task, not in it: every run of the task writes it."""
    return {"pk": {"S": f"holder#{key.owner}#{key.id}"}, "sk": {"S": "holder"}}


TARGETS = "targets"  # all named targets
BESIDE_TASKS = ("holder#", "order#", "usage#", TARGETS)  # partitions of the tasks table that hold no tasks


def target(name: str) -> Value:
    return {"pk": {"S": TARGETS}, "sk": {"S": name}}


def usage(target: str) -> Value:
    """Beside the target, not in it: every start of a job of it writes it."""
    return {"pk": {"S": f"usage#{target}"}, "sk": {"S": "usage"}}


def if_generation(generation: int) -> dict[str, Any]:
    """Nobody has edited, paused, resumed or deleted the task since it was read."""
    return {"ConditionExpression": "generation = :generation", "ExpressionAttributeValues": {":generation": {"N": str(generation)}}}


def same_plan(generation: int, planned_until: int) -> list[Term]:
    """Nobody has edited the task, nor stored more runs of it, since it was read."""
    return [Term(("generation",), "=", {"N": str(generation)}), Term(("planned_until",), "=", {"N": str(planned_until)})]


def same_version(stored: Holder | Turn) -> list[Term]:
    """Nobody has changed it since it was read."""
    return [Term(("version",), "=", {"N": str(stored.version)})]


def turn(order: OrderKey) -> Value:
    """The partition of a line holds all of it. The turn sorts before the markers, so that one query reads both."""
    return {"pk": _line(order), "sk": {"S": "holder"}}


def marker(marker: Marker) -> Value:
    """Sorts as the marker's position."""
    place = f"{ids.first(marker.scheduled_at)}{ids.first(marker.created_at)}{marker.job}#{marker.life:03d}"
    return {"pk": _line(marker.order), "sk": {"S": f"m#{place}"}}


def marker_position(sk: str) -> tuple[int, int, str, int]:
    """The position of a marker, read from its sort key."""
    place, _, life = sk.removeprefix("m#").partition("#")
    size = len(ids.first(0))
    return ids.time(place), ids.time(place[size:]), place[2 * size :], int(life)


def _line(order: OrderKey) -> "AttributeValueTypeDef":
    """The key is what a client chose: its hash stands for it."""
    return {"S": f"order#{order.owner}#{hashlib.sha256(order.key.encode()).hexdigest()[:32]}"}


def canary(unit: UnitKey) -> Value:
    return {"pk": {"S": f"{CANARY}#{_unit(unit)}"}, "sk": {"S": CANARY}}


def is_canary(pk: str) -> bool:
    return pk.startswith(CANARY + "#")


# The ledger.
CURSOR: Value = {"pk": {"S": "cursor"}, "sk": {"S": "cursor"}}
OPEN = "open"  # units whose slots are not proved empty
LOOKS = "look"  # later looks at closed units, by their instant
LANES = "lanes"  # which of them are paused, and which breakers are not closed
PLAN: Value = {"pk": {"S": "plan"}, "sk": {"S": "plan"}}  # plan's cursor
LATENCY_BUCKETS = 8  # items per lane that its executors share, so that none is written hot


INTAKE_UNITS = "intake"  # apart from the units of minutes: these never close


def breaker(circuit: str) -> Value:
    """Beside the states of the lanes, so that one read tells of both; a circuit may be as long as an address: its hash stands for it."""
    return {"pk": {"S": LANES}, "sk": {"S": f"breaker#{hashlib.sha256(circuit.encode()).hexdigest()}"}}


def is_breaker(item: Mapping[str, Any]) -> bool:
    return bool(item["sk"]["S"].startswith("breaker#"))


def open_unit(unit: UnitKey) -> Value:
    return {"pk": {"S": INTAKE_UNITS if unit.minute == slots.INTAKE else OPEN}, "sk": {"S": _unit(unit)}}


def closed_unit(unit: UnitKey) -> Value:
    return {"pk": {"S": f"closed#{unit.minute[:10]}"}, "sk": {"S": _unit(unit)}}


def look(look: Look) -> Value:
    return {"pk": {"S": LOOKS}, "sk": {"S": f"{look_bound(look.at)}#{_unit(look.unit.key)}"}}


def if_from(minute: str) -> dict[str, Any]:
    """Nobody has moved plan's cursor since it was read."""
    return {"ConditionExpression": "from_minute = :minute", "ExpressionAttributeValues": {":minute": {"S": minute}}}


def look_bound(at: int) -> str:
    """Sorts before every look planned for `at` or later."""
    return f"{at:020d}"


def latencies(lane: Lane) -> str:
    return f"lane#{lane}"


def backlogs(lane: Lane) -> str:
    return f"backlog#{lane}"


def backlog(unit: UnitKey, lane: Lane) -> Value:
    return {"pk": {"S": backlogs(lane)}, "sk": {"S": _unit(unit)}}


def user(id: str) -> Value:
    return {"pk": {"S": id}, "sk": {"S": "user"}}


def tally(name: str) -> Value:
    """In the users table, as the user's own."""
    return {"pk": {"S": name}, "sk": {"S": "tally"}}


def receipt(owner: str, key: str) -> Value:
    """The key is what a client chose, of any length: its hash stands for it."""
    return {"pk": {"S": f"receipt#{owner}#{hashlib.sha256(key.encode()).hexdigest()}"}, "sk": {"S": "receipt"}}


def receipt_owner(pk: str) -> str:
    return pk.partition("#")[2].rpartition("#")[0]


def outdated(now: int) -> list[Term]:
    """The time of the receipt that is there is over."""
    return [Term(("at",), "<=", {"N": str(now - KEPT_RECEIPTS_MS)})]


def if_no_receipt(now: int) -> dict[str, Any]:
    """There is none, or its time is over."""
    values = {":bound": {"N": str(now - KEPT_RECEIPTS_MS)}}
    names = {"#at": "at"}
    return {"ConditionExpression": f"{NEW} OR #at <= :bound", "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}


REDRIVES = "redrives"  # those that are running


def running_redrive(owner: str, id: str) -> Value:
    return {"pk": {"S": REDRIVES}, "sk": {"S": f"{owner}#{id}"}}


def ended_redrive(owner: str, id: str) -> Value:
    return {"pk": {"S": f"redriven#{owner}"}, "sk": {"S": id}}


def if_version(version: int) -> dict[str, Any]:
    """Nobody has changed it since it was read."""
    values = {":version": {"N": str(version)}}
    names = {"#version": "version"}
    return {"ConditionExpression": "#version = :version", "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}


# Counters: a row per stream shard that adds to it. `|` sorts after all that names are made of.
UNSEEN = "attribute_not_exists(seen) OR seen < :first"  # none of the entries was added before


def counted(name: str, shard: str) -> str:
    return f"{name}|{shard}"


def counted_name(sk: str) -> str:
    return sk.partition("|")[0]


def standing(task: TaskKey) -> Value:
    """In the table of notices."""
    return {"pk": {"S": f"{task.owner}#{task.id}"}, "sk": {"S": "standing"}}


def news(task: TaskKey, id: str) -> Value:
    return standing(task) | {"sk": {"S": f"news#{id}"}}


def sending(task: TaskKey, id: str) -> Value:
    return standing(task) | {"sk": {"S": f"sending#{id}"}}


def unit_key(text: str) -> UnitKey:
    """The unit named by the end of a sort key."""
    minute, part = text.split("#")[-2:]
    return UnitKey(minute, int(part))


def _unit(unit: UnitKey) -> str:
    return f"{unit.minute}#{unit.part:02d}"


def output(key: JobKey, fence: int) -> str:
    """The object of the outputs' bucket that holds everything of one attempt."""
    return f"{key.owner}/{key.id}/{fence}"
