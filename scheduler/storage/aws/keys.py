"""Every key shape, index, query and condition of the seven tables, each named with its purpose.

The tables: jobs, tasks, ledger, users, audit, counters and notices. Two modules build the expressions of their writes themselves:
`counters` those of sums, `targets` those of limits.

Attributes of a job have the names of the model's fields; `items` defines how each is stored. The other attributes:

    pk, sk            <owner>#<partition> and the job id: the jobs of a busy owner spread over partitions
    task              <owner>#<task id>, only on jobs of a task: the partition of the sparse index `by_task`
    moved_partition   <owner>#<partition>, only on jobs whose time was changed: the partition of the sparse index `moved` ...
    moved_position    ... and the place of such a job in lists by time
    failed_position   only on failed and killed jobs, which makes the index `failures` sparse: the place by time, as in ordering queues
    expires           epoch seconds, the tables' TTL attribute
    v                 format of the item

An index refuses the write of its table when its partition is too hot, so no index has one partition for all jobs of an owner.
"""

import hashlib
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from scheduler.model import ids, slots
from scheduler.model.after import Follower, PredecessorKey
from scheduler.model.group import GroupCheck, LeafKey, NodeKey
from scheduler.model.job import (
    GroupKey,
    Job,
    JobKey,
    KeyEntry,
    Lane,
    LaterCheck,
    OrderKey,
    OwnKey,
    QueueEntry,
    QueueHead,
    RunLock,
    TaskKey,
    UnitKey,
)
from scheduler.model.target_queue import queue_part
from scheduler.storage.ports import RECEIPT_RETENTION_MS, Change, ClaimRequest, Guard
from scheduler.storage.ports.monitors import PARTS as TIMER_PARTS
from scheduler.storage.ports.run_timers import PARTS as RUN_TIMER_PARTS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from scheduler.model.account import Ceiling
    from scheduler.model.breaker import Circuit
    from scheduler.model.declaration import Declarer, ObjectId

Value = dict[str, "AttributeValueTypeDef"]  # an item, in the words of the type stubs
FORMAT = "1"  # the newest format of items that this version reads, and the one that it writes
_OURS = {"N": FORMAT}

# Indexes of the jobs table.
DUE = "due"  # slot, due_at: exactly the jobs that have not ended, in the order in which the scheduler checks them
FAILURES = "failures"  # pk, failed_position, and the fields that group errors: few beside the successes
MOVED = "moved"  # moved_partition, moved_position, and the task: the jobs that lists by time do not find at their id
BY_TASK = "by_task"  # task, sk; keys only

# Index of the tasks table.
REPLENISH = "replenish"  # replenish (a slot), sk; keys only: the tasks whose next runs must be stored

# Index of the audit table.
BY_MONTH = "by_month"  # month, sk; whole items

# Expressions of writes.
ADD_TO_TALLY = "SET since = if_not_exists(since, :now), expires = :expires ADD #count :number, #total :number"
RESTART_TALLY = "SET since = :now, #count = :number, expires = :expires ADD #total :number"
TALLY_NAMES = {"#count": "count", "#total": "total"}
ADD_FREED = "ADD freed :jobs"
NEW = "attribute_not_exists(pk)"  # nothing is overwritten
IF_NEW = {"ConditionExpression": NEW}
IF_STORED = {"ConditionExpression": "attribute_exists(pk)"}

CANARY = "canary"  # sort key, and start of the partition key, of the item that proves that the due index has caught up
MARK: "Value" = {"pk": {"S": "mark"}, "sk": {"S": "tick"}}  # in the jobs table, and in the ledger: the number of the last tick
_LAST = "~"  # sorts after every job id
_SLOT = {"#slot": "slot"}  # aliases of reserved words
LATE_PAGE = 500  # jobs of a partition that a count reads at once of those whose time has passed
MOVED_PARTITIONS = 8  # of an owner's moved jobs: every list by time reads them all


class Range(NamedTuple):
    """A range of sort keys in one partition of a table or of its index."""

    condition: str
    index_name: str | None = None
    names: Mapping[str, str] | None = None

    def query(self, pk: str, low: str, high: str) -> dict[str, Any]:
        """The query of the items from `low` to `high`, both included."""
        values = {":pk": {"S": pk}, ":low": {"S": low}, ":high": {"S": high}}
        index = {"IndexName": self.index_name} if self.index_name else {}
        names = {"ExpressionAttributeNames": self.names} if self.names else {}
        return {"KeyConditionExpression": self.condition, "ExpressionAttributeValues": values} | index | names


IN_PARTITION = Range("pk = :pk AND sk BETWEEN :low AND :high")
FAILED = Range("pk = :pk AND failed_position BETWEEN :low AND :high", FAILURES)
MOVED_BETWEEN = Range("moved_partition = :pk AND moved_position BETWEEN :low AND :high", MOVED)
OF_TASK = Range("task = :pk AND sk BETWEEN :low AND :high", BY_TASK)
IN_MONTH = Range("#month = :pk AND sk BETWEEN :low AND :high", BY_MONTH, {"#month": "month"})

DUE_INDEX = {"IndexName": DUE}  # a scan


def all_of(pk: str) -> dict[str, Any]:
    """The query of a whole partition."""
    return {"KeyConditionExpression": "pk = :pk", "ExpressionAttributeValues": {":pk": {"S": pk}}}


def up_to(pk: str, bound: str) -> dict[str, Any]:
    """The query of the part of a partition before `bound`."""
    values = {":pk": {"S": pk}, ":bound": {"S": bound}}
    return {"KeyConditionExpression": "pk = :pk AND sk < :bound", "ExpressionAttributeValues": values}


def open_from(pk: str, now: int) -> dict[str, Any]:
    """The query of a partition's jobs that have not ended, with ids from the instant `now` on."""
    filtered = {"FilterExpression": "attribute_exists(#slot)", "ExpressionAttributeNames": _SLOT}
    return IN_PARTITION.query(pk, ids.first(now), _LAST) | filtered


def open_before(pk: str, now: int) -> dict[str, Any]:
    """The query of a partition's jobs that have not ended, with ids before the instant `now`, the latest first; not those `moved_ahead`."""
    behind = "attribute_exists(#slot) AND (attribute_not_exists(moved_position) OR moved_position < :high)"
    filtered = {"FilterExpression": behind, "ExpressionAttributeNames": _SLOT, "ScanIndexForward": False, "Limit": LATE_PAGE}
    return IN_PARTITION.query(pk, "0", ids.first(now)) | filtered


def moved_ahead(pk: str, now: int) -> dict[str, Any]:
    """The query of a partition's jobs in the index `moved` that were moved from before the instant `now` to a time after it."""
    return MOVED_BETWEEN.query(pk, ids.first(now), _LAST) | {"FilterExpression": "sk < :low"}


def in_slot(slot: str, since: int) -> dict[str, Any]:
    """The query of the jobs in the slot with `due_at >= since`."""
    return _due("#slot = :slot AND due_at >= :since", slot, {":since": {"N": str(since)}}) if since else _due("#slot = :slot", slot, {})


def overdue_in_slot(slot: str, until: int) -> dict[str, Any]:
    """The query of the jobs in the slot with `due_at <= until`, without its canary, which is due at 0."""
    values = {":first": {"N": "1"}, ":until": {"N": str(until)}}
    return _due("#slot = :slot AND due_at BETWEEN :first AND :until", slot, values)


def in_slot_of_lane(slot: str, lane: Lane, since: int, until: int) -> dict[str, Any]:
    """The query of the lane's jobs in the slot with `since <= due_at <= until`."""
    values = {":since": {"N": str(since)}, ":until": {"N": str(until)}}
    test = "lane = :lane"
    if lane is Lane.ONE_TIME:
        test = "attribute_not_exists(lane)"  # it is not stored; a canary has no lane either, but it is due at 0
    else:
        values |= {":lane": {"S": lane.value}}
    return _due("#slot = :slot AND due_at BETWEEN :since AND :until", slot, values) | {"FilterExpression": test}


def canaries_in_slot(slot: str) -> dict[str, Any]:
    return _due("#slot = :slot AND due_at = :zero", slot, {":zero": {"N": "0"}})


def _due(condition: str, slot: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "IndexName": DUE,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": _SLOT,
        "ExpressionAttributeValues": {":slot": {"S": slot}, **values},
    }


def to_replenish(slot: str) -> dict[str, Any]:
    """The query of the tasks whose next runs must be stored by this slot."""
    values = {":slot": {"S": slot}}
    return {"IndexName": REPLENISH, "KeyConditionExpression": "replenish = :slot", "ExpressionAttributeValues": values}


def replenish_before(minute: str) -> dict[str, Any]:
    """The scan for the tasks whose next runs should have been stored before this minute."""
    values = {":minute": {"S": minute}}
    return {"IndexName": REPLENISH, "FilterExpression": "replenish < :minute", "ExpressionAttributeValues": values}


class Term(NamedTuple):
    """One term of the condition of an update; all terms of an update must be true."""

    path: tuple[str, ...]
    test: Literal["=", "<=", "exists", "missing"]
    value: "AttributeValueTypeDef | None" = None


def claimable(request: ClaimRequest) -> list[Term]:
    """The job waits under the fence of the message and is due soon enough; it has neither ended nor been claimed. Its format is known."""
    return [
        Term(("v",), "<=", {"N": FORMAT}),
        Term(("fence",), "=", {"N": str(request.fence)}),
        Term(("due_at",), "<=", {"N": str(request.due_by)}),
        Term(("slot",), "exists"),
        Term(("claim",), "missing"),
    ]


def withdrawable() -> list[Term]:
    """The job has never been claimed and has not ended."""
    return [Term(("fence",), "=", {"N": "1"}), Term(("slot",), "exists"), Term(("claim",), "missing")]


def unchanged(change: Change) -> list[Term]:
    """The attributes that the change's guard names are as they were when `before` was read."""
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
            terms.append(_last_heartbeat(before))
    if change.guard is Guard.HEARTBEAT:
        terms.append(_last_heartbeat(before))
    if change.guard is Guard.REVOKE:
        terms.append(Term(("claim", "revocable"), "exists"))
    if change.guard in (Guard.CANCEL, Guard.REVOKE):
        at = before.cancel_requested_at
        terms.append(Term(("cancel_requested_at",), "missing" if at is None else "=", None if at is None else {"N": str(at)}))
    if change.guard is Guard.SLOT and before.slot is not None:
        terms.append(Term(("slot",), "=", {"S": before.slot}))
    else:
        terms.append(Term(("slot",), "missing" if before.slot is None else "exists"))
    if change.ends:
        terms.append(Term(("followed",), "missing" if before.followed is None else "exists"))
    return terms


def check_format(item: Mapping[str, Any]) -> None:
    """Raise ValueError for an item of a newer format: this version cannot rely on the meaning of its attributes."""
    number = item.get("v", _OURS)["N"]
    if number != FORMAT and int(number) > int(FORMAT):
        raise ValueError(f"its format is {number}; this version reads formats up to {FORMAT}")


def job_key(item: Mapping[str, Any]) -> JobKey:
    return JobKey(owner(item["pk"]["S"]), item["sk"]["S"])


def _last_heartbeat(before: Job) -> Term:
    at = before.heartbeat_at
    return Term(("heartbeat_at",), "missing") if at is None else Term(("heartbeat_at",), "=", {"N": str(at)})


def job(key: JobKey) -> Value:
    return {"pk": {"S": partition(key.owner, ids.partition(key.id))}, "sk": {"S": key.id}}


def partition(owner: str, number: int) -> str:
    return f"{owner}#{number:02d}"


def partitions(owner: str) -> list[str]:
    """All partitions of the owner's jobs."""
    return [partition(owner, number) for number in range(ids.PARTITIONS)]


def moved_partition(key: JobKey) -> str:
    """The partition of a moved job in the index `moved`."""
    return partition(key.owner, ids.partition(key.id) % MOVED_PARTITIONS)


def moved_partitions(owner: str) -> list[str]:
    """All partitions of the owner's jobs in the index `moved`."""
    return [partition(owner, number) for number in range(MOVED_PARTITIONS)]


def task(owner: str, task_id: str) -> str:
    """The partition of the index `by_task`."""
    return f"{owner}#{task_id}"


def owner(pk: str) -> str:
    return pk.rpartition("#")[0]


def bounds(since: int | None, until: int | None, after: str | None, newest_first: bool) -> tuple[str, str]:
    """The lowest and the highest position of a range of times, beyond the position `after`."""
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
    """The run lock of a task. It is an item of its own because every run of the task writes it."""
    return {"pk": {"S": f"holder#{key.owner}#{key.id}"}, "sk": {"S": "holder"}}


TARGETS = "targets"  # the partition of all named targets
QUEUES = "queues"  # the partition of the queues of targets, each followed by its users; those of keys are in `QUEUE_PARTS` further ones
GROUPS = "groups#"  # start of the partitions of the heads of groups
CALENDAR_ITEMS = ("calendars#", "calendar#")  # starts of the partitions of calendars, and of the tasks that use one
GROUP_ITEMS = (GROUPS, "group#", "group-calls#", "group-checks#")
BESIDE_TASKS = (
    "holder#",
    "order#",
    "after#",
    "usage#",
    "key#",
    TARGETS,
    QUEUES,
    *GROUP_ITEMS,
    *CALENDAR_ITEMS,
)  # starts of the partitions of the tasks table that contain no tasks


def calendars(owner: str) -> str:
    """The partition of the calendars of an owner."""
    return f"calendars#{owner}"


def calendar(owner: str, name: str) -> Value:
    return {"pk": {"S": calendars(owner)}, "sk": {"S": name}}


def calendar_owner(item: Mapping[str, Any]) -> str:
    return str(item["pk"]["S"]).partition("#")[2]


def calendar_tasks(owner: str, name: str) -> str:
    """The partition of the tasks that use a calendar."""
    return f"calendar#{owner}#{name}"


def calendar_task(task: TaskKey, name: str) -> Value:
    return {"pk": {"S": calendar_tasks(task.owner, name)}, "sk": {"S": task.id}}


def if_offered(version: int) -> dict[str, Any]:
    """The calendar has not changed since it was read, and is not being deleted."""
    condition = if_version(version)
    return condition | {"ConditionExpression": f"{condition['ConditionExpression']} AND attribute_not_exists(withdrawn)"}


def target(name: str) -> Value:
    return {"pk": {"S": TARGETS}, "sk": {"S": name}}


def target_queue(target: str) -> Value:
    return queue_user(target, "")


def queue_user(target: str, owner: str) -> Value:
    """A user of the queue of a target. No name of a target contains `#`."""
    return {"pk": {"S": queue_partition(target)}, "sk": {"S": f"{target}#{owner}"}}


def queue_partition(name: str) -> str:
    """The partition of the queue of a target, or of a key."""
    part = queue_part(name)
    return QUEUES if part is None else queues(part)


def queues(part: int) -> str:
    """One of the partitions of the queues of keys."""
    return f"{QUEUES}#{part:02d}"


def queue_of(sk: str) -> tuple[str, str]:
    """The target and the user of a sort key; no user: the queue itself."""
    target, _, owner = sk.partition("#")
    return target, owner


def in_queue(target: str) -> dict[str, Any]:
    """The query of the queue of a target and its users."""
    return IN_PARTITION.query(queue_partition(target), f"{target}#", f"{target}#{_LAST}")


def if_joined(at: int) -> dict[str, Any]:
    """The user has not joined the queue since it was read, or is gone."""
    return {"ConditionExpression": f"{NEW} OR joined_at = :at", "ExpressionAttributeValues": {":at": {"N": str(at)}}}


def group(key: GroupKey) -> Value:
    """The head of a group, with its first leaf. The heads of a busy owner spread over partitions, as their jobs do."""
    return {"pk": {"S": groups(key.owner, ids.partition(key.id))}, "sk": {"S": key.id}}


def groups(owner: str, number: int) -> str:
    """A partition of an owner's groups."""
    return f"{GROUPS}{owner}#{number:02d}"


def group_key(item: Mapping[str, Any]) -> GroupKey:
    return GroupKey(owner(item["pk"]["S"].removeprefix(GROUPS)), item["sk"]["S"])


def group_calls(key: GroupKey) -> Value:
    """The call-backs of a group that are too long for its head, which is written with each end of a small group."""
    return {"pk": {"S": f"group-calls#{key.owner}#{key.id}"}, "sk": {"S": "calls"}}


def leaf(key: LeafKey) -> Value:
    """A leaf. Each has a partition of its own, so that the ends of a group fall on no common partition."""
    if key.number == 0:
        return group(key.group)
    return {"pk": {"S": f"group#{key.group.owner}#{key.group.id}#{key.number}"}, "sk": {"S": "leaf"}}


def node(key: NodeKey) -> Value:
    return {"pk": {"S": f"group#{key.group.owner}#{key.group.id}#{key.number}"}, "sk": {"S": "node"}}


GROUP_CHECK_PARTITIONS = 8


def group_check(check: GroupCheck) -> Value:
    """A planned check of a group; it sorts by its instant."""
    number = zlib.crc32(check.group.id.encode()) % GROUP_CHECK_PARTITIONS
    return {"pk": {"S": f"group-checks#{number}"}, "sk": {"S": f"{check_bound(check.at)}#{check.group.owner}#{check.group.id}"}}


def due_group_checks(number: int, now: int) -> dict[str, Any]:
    """The query of the checks in a partition that are due."""
    return up_to(f"group-checks#{number}", check_bound(now + 1))


def usage(target: str) -> Value:
    """The used limits of a target. They are an item of their own because every start of a job of the target writes it."""
    return {"pk": {"S": f"usage#{target}"}, "sk": {"S": "usage"}}


def if_generation(generation: int) -> dict[str, Any]:
    """The task has not been edited, paused, resumed or deleted since it was read."""
    return {"ConditionExpression": "generation = :generation", "ExpressionAttributeValues": {":generation": {"N": str(generation)}}}


def same_plan(generation: int, planned_until: int, gap: "AttributeValueTypeDef | None") -> list[Term]:
    """The task has not been edited, and no more of its runs have been stored, since it was read. `gap`: the stored one, if any."""
    terms = [Term(("generation",), "=", {"N": str(generation)}), Term(("planned_until",), "=", {"N": str(planned_until)})]
    return [*terms, Term(("gap",), "missing") if gap is None else Term(("gap",), "=", gap)]


def same_version(stored: RunLock | QueueHead) -> list[Term]:
    """The item has not changed since it was read."""
    return [Term(("version",), "=", {"N": str(stored.version)})]


def queue_head(order: OrderKey) -> Value:
    """The head of an ordering queue. It sorts before the entries of its queue, so that one query reads both."""
    return {"pk": {"S": line(order)}, "sk": {"S": "holder"}}


def queue_entry(entry: QueueEntry) -> Value:
    """An entry of an ordering queue; it sorts by its position."""
    place = f"{ids.queue_position(entry.job, entry.scheduled_at, entry.created_at)}#{entry.life:03d}"
    return {"pk": {"S": line(entry.order)}, "sk": {"S": f"m#{place}"}}


def entry_position(sk: str) -> tuple[int, int, str, int]:
    """The position of an entry, read from its sort key."""
    place, _, life = sk.removeprefix("m#").partition("#")
    size = len(ids.first(0))
    return ids.time(place), ids.time(place[size:]), place[2 * size :], int(life)


def line(order: OrderKey) -> str:
    """The partition of a whole ordering queue. It has a hash of the ordering key, which may be any text."""
    return f"order#{order.owner}#{hashlib.sha256(order.key.encode()).hexdigest()[:32]}"


def followers(predecessor: PredecessorKey) -> str:
    """The partition of the jobs that wait for a predecessor."""
    return f"after#{predecessor.owner}#{predecessor.kind}#{predecessor.id}"


def follower(of: Follower) -> Value:
    return {"pk": {"S": followers(of.predecessor)}, "sk": {"S": of.job}}


def beyond(pk: str, after: str) -> dict[str, Any]:
    """The query of the part of a partition behind the sort key `after`."""
    values = {":pk": {"S": pk}, ":after": {"S": after}}
    return {"KeyConditionExpression": "pk = :pk AND sk > :after", "ExpressionAttributeValues": values}


def still_open() -> list[Term]:
    """The job has not ended."""
    return [Term(("slot",), "exists")]


def end_unknown(place: int) -> list[Term]:
    """The job has not ended, and the end of its predecessor at this place is not noted."""
    return [*still_open(), Term(("ends",), "exists"), Term(("ends", str(place)), "missing")]


def canary(unit: UnitKey) -> Value:
    return {"pk": {"S": f"{CANARY}#{_unit(unit)}"}, "sk": {"S": CANARY}}


def is_canary(pk: str) -> bool:
    return pk.startswith(CANARY + "#")


def is_beside_jobs(pk: str) -> bool:
    """Whether this is the key of an item of the jobs table that is no job: of a canary, of the mark, or of the entry of a key."""
    return is_canary(pk) or pk == MARK["pk"]["S"] or pk.startswith("key#")


def own_key(own: OwnKey) -> Value:
    """The entry of a key: in the jobs table of a job's, in the tasks table of a task's. The partition has a hash of the key."""
    return {"pk": {"S": f"key#{own.owner}#{hashlib.sha256(own.key.encode()).hexdigest()[:32]}"}, "sk": {"S": "key"}}


def names(entry: str) -> Term:
    """The entry of a key names this job or task."""
    return Term(("id",), "=", {"S": entry})


def if_names(former: str | None) -> dict[str, Any]:
    """The entry of a key names this job or task; None: there is no entry."""
    if former is None:
        return IF_NEW
    return {"ConditionExpression": "id = :former", "ExpressionAttributeValues": {":former": {"S": former}}}


def if_entry(before: KeyEntry | None) -> dict[str, Any]:
    """The entry of the key of a job is this one; None: there is none."""
    if before is None or not before.life:
        condition = if_names(before and before.job)
        return condition if before is None else condition | {"ConditionExpression": "id = :former AND attribute_not_exists(life)"}
    values = {":former": {"S": before.job}, ":life": {"N": str(before.life)}}
    return {"ConditionExpression": "id = :former AND life = :life", "ExpressionAttributeValues": values}


# The ledger.
CURSOR: Value = {"pk": {"S": "cursor"}, "sk": {"S": "cursor"}}
OPEN = "open"  # units whose slots are not yet proved empty
LATER_CHECKS = "look"  # later checks of closed units, by their instant
LANES = "lanes"  # the states of the lanes, the breakers that are not closed, and the pins
SWEEP: Value = {"pk": {"S": "sweep"}, "sk": {"S": "sweep"}}  # where the sweep of the due index continues
PLAN: Value = {"pk": {"S": "plan"}, "sk": {"S": "plan"}}  # the cursor of `plan`
INTAKE_UNITS = slots.OVERFLOW  # a partition of their own: these units, and those of waiting rooms, have no minute


def circuit(of: "Circuit") -> str:
    """The name of a circuit in the whole stage."""
    return of.name if of.owner is None else f"{of.name} of {of.owner}"


def breaker(of: "Circuit") -> Value:
    """Beside the states of the lanes, so that one query reads both. The key has a hash of the circuit, which may be as long as a URL."""
    return {"pk": {"S": LANES}, "sk": {"S": f"breaker#{hashlib.sha256(circuit(of).encode()).hexdigest()}"}}


def is_breaker(item: Mapping[str, Any]) -> bool:
    return bool(item["sk"]["S"].startswith("breaker#"))


def pin(lane: Lane, owner: str, period: int) -> Value:
    """Beside the states of the lanes: each working process reads them every second anyway."""
    return {"pk": {"S": LANES}, "sk": {"S": f"pin#{lane}#{period}#{owner}"}}


def is_pin(item: Mapping[str, Any]) -> bool:
    return bool(item["sk"]["S"].startswith("pin#"))


def open_unit(unit: UnitKey) -> Value:
    return {"pk": {"S": INTAKE_UNITS if slots.is_always_open(unit.minute) else OPEN}, "sk": {"S": _unit(unit)}}


def closed_unit(unit: UnitKey) -> Value:
    return {"pk": {"S": f"closed#{unit.minute[:10]}"}, "sk": {"S": _unit(unit)}}


def later_check(check: LaterCheck) -> Value:
    return {"pk": {"S": LATER_CHECKS}, "sk": {"S": f"{check_bound(check.at)}#{_unit(check.unit.key)}"}}


def if_marked_before(number: int) -> dict[str, Any]:
    """The table is not marked, or with a lower number."""
    names, values = {"#number": "number"}, {":number": {"N": str(number)}}
    condition = f"{NEW} OR #number < :number"
    return {"ConditionExpression": condition, "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}


def if_from(minute: str) -> dict[str, Any]:
    """The cursor of `plan` has not moved since it was read."""
    return {"ConditionExpression": "from_minute = :minute", "ExpressionAttributeValues": {":minute": {"S": minute}}}


def check_bound(at: int) -> str:
    """A bound that sorts before every check planned for `at` or later."""
    return f"{at:020d}"


def latencies(lane: Lane, delayed: bool) -> str:
    return f"delayed#{lane}" if delayed else f"lane#{lane}"


def ready(lane: Lane) -> Value:
    return {"pk": {"S": f"ready#{lane}"}, "sk": {"S": "ready"}}


def backlogs(lane: Lane) -> str:
    return f"backlog#{lane}"


def backlog(unit: UnitKey, lane: Lane) -> Value:
    return {"pk": {"S": backlogs(lane)}, "sk": {"S": _unit(unit)}}


def user(id: str) -> Value:
    return {"pk": {"S": id}, "sk": {"S": "user"}}


BARRED: Value = {"pk": {"S": "barred"}, "sk": {"S": "barred"}}  # the users whose jobs do not run, all in one item


def tally(name: str) -> Value:
    """In the users table, in the partition of its name."""
    return {"pk": {"S": name}, "sk": {"S": "tally"}}


def of_owner(id: str) -> dict[str, Any]:
    """The query of an owner's tally, memberships and profile, in one read. Keys, members and invitations sort before them."""
    return IN_PARTITION.query(id, "tally", "user") | {"ConsistentRead": True}


MEMBERSHIP, MEMBER, INVITATION, KEY, SUBJECT = "team#", "member#", "invitation#", "key#", "subject#"  # sort keys in an owner's partition
PEOPLE, TEAMS, PRINCIPALS = "people", "teams", "principals"  # partitions of the users table with all ids, or all principals


def membership(person: str, team: str) -> Value:
    return {"pk": {"S": person}, "sk": {"S": MEMBERSHIP + team}}


def member(team: str, person: str) -> Value:
    return {"pk": {"S": team}, "sk": {"S": MEMBER + person}}


def invitation(team: str, id: str) -> Value:
    return {"pk": {"S": team}, "sk": {"S": INVITATION + id}}


def api_key(id: str) -> Value:
    return {"pk": {"S": KEY + id}, "sk": {"S": "key"}}


def key_of_owner(owner: str, id: str) -> Value:
    return {"pk": {"S": owner}, "sk": {"S": KEY + id}}


def subject(issuer: str, id: str) -> Value:
    """A subject may be any text, of up to 255 characters at Cognito."""
    return {"pk": {"S": f"{SUBJECT}{issuer}#{id}"}, "sk": {"S": "subject"}}


def subject_of_person(person: str, issuer: str, id: str) -> Value:
    return {"pk": {"S": person}, "sk": {"S": f"{SUBJECT}{issuer}#{id}"}}


RECEIVERS = "receivers#"  # start of the partitions of the users table with the named receivers of an owner


def receiver(owner: str, name: str) -> Value:
    return {"pk": {"S": RECEIVERS + owner}, "sk": {"S": name}}


def receivers(owner: str) -> dict[str, Any]:
    """The query of all named receivers of an owner (strongly consistent)."""
    return all_of(RECEIVERS + owner) | {"ConsistentRead": True}


def owner_of_receiver(item: Mapping[str, Any]) -> str:
    return str(item["pk"]["S"]).removeprefix(RECEIVERS)


OWNER_ALERTS = "alerts#"  # start of the partitions of the users table with the default alerts of an owner


def owner_alerts(owner: str) -> Value:
    return {"pk": {"S": OWNER_ALERTS + owner}, "sk": {"S": "alerts"}}


def owner_of_alerts(item: Mapping[str, Any]) -> str:
    return str(item["pk"]["S"]).removeprefix(OWNER_ALERTS)


def listed(partition: str, id: str) -> Value:
    return {"pk": {"S": partition}, "sk": {"S": id}}


def beginning(pk: str, start: str) -> dict[str, Any]:
    """The query of the items of a partition whose sort keys begin with this text (strongly consistent)."""
    values = {":pk": {"S": pk}, ":start": {"S": start}}
    condition = "pk = :pk AND begins_with(sk, :start)"
    return {"KeyConditionExpression": condition, "ExpressionAttributeValues": values, "ConsistentRead": True}


def if_within(ceiling: "Ceiling") -> tuple[str, dict[str, "AttributeValueTypeDef"]]:
    """The condition that the tally is within the ceiling, and its values."""
    if not ceiling.since:
        return NEW, {}
    most = {"count": ceiling.count, "total": ceiling.total}
    bounds: dict[str, AttributeValueTypeDef] = {f":most_{name}": {"N": str(value)} for name, value in most.items() if value is not None}
    terms = ["since = :since", *(f"#{name} <= :most_{name}" for name, value in most.items() if value is not None)]
    return " AND ".join(terms), {":since": {"N": str(ceiling.since)}, **bounds}


def receipt(owner: str, key: str) -> Value:
    """The partition has a hash of the idempotency key, which may be any text of any length."""
    return {"pk": {"S": f"receipt#{owner}#{hashlib.sha256(key.encode()).hexdigest()}"}, "sk": {"S": "receipt"}}


def receipt_owner(pk: str) -> str:
    return pk.partition("#")[2].rpartition("#")[0]


def outdated(now: int) -> list[Term]:
    """The stored receipt is outdated."""
    return [Term(("at",), "<=", {"N": str(now - RECEIPT_RETENTION_MS)})]


def if_no_receipt(now: int) -> dict[str, Any]:
    """No receipt is stored, or it is outdated."""
    values = {":bound": {"N": str(now - RECEIPT_RETENTION_MS)}}
    names = {"#at": "at"}
    return {"ConditionExpression": f"{NEW} OR #at <= :bound", "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}


OPERATIONS = "operations"  # the partition of the running operations


def running_operation(owner: str, id: str) -> Value:
    return {"pk": {"S": OPERATIONS}, "sk": {"S": f"{owner}#{id}"}}


def operation_places(owner: str) -> str:
    """The partition of the places that an owner's running operations take."""
    return f"places#{owner}"


def operation_place(owner: str, place: int) -> Value:
    return {"pk": {"S": operation_places(owner)}, "sk": {"S": str(place)}}


def if_taken_by(id: str | None) -> dict[str, Any]:
    """The place has the id of this operation; None: no operation has taken it yet."""
    if id is None:
        return IF_NEW
    return {"ConditionExpression": "id = :id", "ExpressionAttributeValues": {":id": {"S": id}}}


def ended_operations(owner: str) -> str:
    """The partition of an owner's ended operations."""
    return f"operations#{owner}"


def ended_operation(owner: str, id: str) -> Value:
    return {"pk": {"S": ended_operations(owner)}, "sk": {"S": id}}


LETTER = "letter"  # the partition of the dead letters of the intake; after a #: the list of an owner, or of unknown senders


def intake_letter(id: str) -> Value:
    return {"pk": {"S": LETTER}, "sk": {"S": id}}


def intake_letters(owner: str | None) -> str:
    """The partition of the list of an owner's dead letters; None: of unknown senders. No owner's id is empty."""
    return f"{LETTER}#{owner or ''}"


def listed_letter(owner: str | None, sent_at: int, id: str) -> Value:
    return {"pk": {"S": intake_letters(owner)}, "sk": {"S": f"{ids.first(sent_at)}#{id}"}}


def monitor_entry(owner: str, key: str) -> Value:
    """The entry of a monitor in the list of its owner, with the hash of its token."""
    return {"pk": {"S": monitors(owner)}, "sk": {"S": key}}


def monitors(owner: str) -> str:
    """The partition of the list of an owner's monitors."""
    return f"monitors#{owner}"


def monitor(token_hash: str) -> Value:
    """The settings of a monitor."""
    return {"pk": {"S": f"ping#{token_hash}"}, "sk": {"S": "monitor"}}


def pulse(token_hash: str) -> Value:
    """The pulse of a monitor. It is an item of its own because each ping writes it."""
    return {"pk": {"S": f"ping#{token_hash}"}, "sk": {"S": "pulse"}}


def monitor_history(owner: str, id: str) -> str:
    return f"monitor#{owner}#{id}"


def monitor_event(owner: str, id: str, at: int, number: int) -> Value:
    return {"pk": {"S": monitor_history(owner, id)}, "sk": {"S": f"{check_bound(at)}#{number:012d}"}}


def monitor_timer(at: int, token_hash: str) -> Value:
    """A timer of a monitor; it sorts by its instant."""
    number = zlib.crc32(token_hash.encode()) % TIMER_PARTS
    return {"pk": {"S": f"monitor-timers#{number}"}, "sk": {"S": f"{check_bound(at)}#{token_hash}"}}


def monitor_timers(part: int, at: int, token_hash: str, until: int) -> dict[str, Any]:
    """The query of the timers in a partition that come after that of this instant and hash, and are due until `until`."""
    behind = f"{check_bound(at)}#{token_hash}!"  # `!` sorts before all that a hash has
    return IN_PARTITION.query(f"monitor-timers#{part}", behind, check_bound(until + 1))


def run_timer(at: int, run: JobKey) -> Value:
    """The timer of a watched run. It sorts by the first deadline of the run, so that it keeps its place when it is set to a further one."""
    number = zlib.crc32(f"{run.owner}#{run.id}".encode()) % RUN_TIMER_PARTS
    return {"pk": {"S": f"run-timers#{number}"}, "sk": {"S": f"{check_bound(at)}#{run.owner}#{run.id}"}}


def run_timers(part: int, at: int, name: str, until: int) -> dict[str, Any]:
    """The query of the timers in a partition that come after that of this instant and run, and whose place is until `until`."""
    return IN_PARTITION.query(f"run-timers#{part}", f"{check_bound(at)}#{name}!", check_bound(until + 1))


def if_armed_at(at: int) -> dict[str, Any]:
    """The timer was not armed again since it was read, and is still there."""
    return {"ConditionExpression": "armed_at = :at", "ExpressionAttributeValues": {":at": {"N": str(at)}}}


def if_gone_or_armed_at(at: int) -> dict[str, Any]:
    """The timer was not armed again since it was read, or is gone."""
    return {"ConditionExpression": f"{NEW} OR armed_at = :at", "ExpressionAttributeValues": {":at": {"N": str(at)}}}


PING_INTAKE: Value = {"pk": {"S": "ping-intake"}, "sk": {"S": "ping-intake"}}


DECLARED = "declared#"  # start of the partitions of the ledger with the declarations of an owner's objects


def declaration(id: "ObjectId") -> Value:
    """The declaration of an object by a resource of a stack."""
    return {"pk": {"S": DECLARED + id.owner}, "sk": {"S": f"{id.kind}#{id.key}"}}


def if_declared_by(declarer: "Declarer", before: "Declarer | None") -> dict[str, Any]:
    """It declares the object already, or `before` does; None: nobody does."""
    named = {"stack": declarer.stack, "resource": declarer.resource}
    named |= {} if before is None else {"stack_before": before.stack, "resource_before": before.resource}
    other = NEW if before is None else "(stack = :stack_before AND #resource = :resource_before)"
    return {
        "ConditionExpression": f"{other} OR (stack = :stack AND #resource = :resource)",
        "ExpressionAttributeNames": {"#resource": "resource"},
        "ExpressionAttributeValues": {f":{name}": {"S": text} for name, text in named.items()},
    }


def if_epoch(epoch: int) -> dict[str, Any]:
    """The cursor or unit has not been taken over since it was read."""
    return {"ConditionExpression": "epoch = :epoch", "ExpressionAttributeValues": {":epoch": {"N": str(epoch)}}}


def if_lease(epoch: int, lease_until: int) -> dict[str, Any]:
    """The unit has not been taken over, nor its lease renewed, since it was read."""
    values = {":epoch": {"N": str(epoch)}, ":lease": {"N": str(lease_until)}}
    return {"ConditionExpression": "epoch = :epoch AND lease_until = :lease", "ExpressionAttributeValues": values}


def if_version(version: int) -> dict[str, Any]:
    """The item has not changed since it was read."""
    values = {":version": {"N": str(version)}}
    names = {"#version": "version"}
    return {"ConditionExpression": "#version = :version", "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}


# Counters: one row per name and stream shard. `|` sorts after every character of a name.
UNSEEN = "attribute_not_exists(seen) OR seen < :first"  # none of the entries has been added before


def counted(name: str, shard: str) -> str:
    return f"{name}|{shard}"


def counted_name(sk: str) -> str:
    return sk.partition("|")[0]


def standing(task: TaskKey) -> Value:
    """The notification state of a task, in the notices table."""
    return {"pk": {"S": f"{task.owner}#{task.id}"}, "sk": {"S": "standing"}}


def news(task: TaskKey, id: str) -> Value:
    return standing(task) | {"sk": {"S": f"news#{id}"}}


def sending(task: TaskKey, id: str) -> Value:
    return standing(task) | {"sk": {"S": f"sending#{id}"}}


def unit_key(text: str) -> UnitKey:
    """The unit that ends a sort key."""
    minute, part = text.split("#")[-2:]
    return UnitKey(minute, int(part))


def _unit(unit: UnitKey) -> str:
    return f"{unit.minute}#{unit.part:02d}"


def output(key: JobKey, fence: int) -> str:
    """The object in the outputs' bucket with the full output and log of one attempt."""
    return f"{key.owner}/{key.id}/{fence}"
