"""Groups in the tasks table: a head with the first leaf in one item, and an item for each further leaf and each node.

Marks are sets of numbers, to which DynamoDB adds numbers without a condition.
"""

import heapq
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from scheduler.model import ids
from scheduler.model.errors import Unavailable
from scheduler.model.group import (
    MOST,
    SPAN,
    CallKind,
    Counts,
    End,
    Group,
    GroupCheck,
    Leaf,
    LeafKey,
    Marks,
    Node,
    NodeKey,
)
from scheduler.model.job import GroupKey
from scheduler.storage.aws import keys, readable, spec_items
from scheduler.storage.aws.table import Answer, Item, Table
from scheduler.storage.aws.updates import address
from scheduler.storage.ports import Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

INLINE_BYTES = 256  # longer call-backs have an item of their own: each end of a small group writes the head, within one unit
ORPHAN_S = 86_400  # how long marks are kept of a group that is not stored, as its request has broken off
LEAF_RETENTION_S = 400 * 86_400
NODE_RETENTION_S = 2 * LEAF_RETENTION_S  # longer than its leaves are kept, from which it is counted
_TIMES = ("created_at", "seal_by", "sealed_at", "cancelled_at", "abandoned_at", "ended_at", "succeeded_at")
_STORED = "attribute_exists(created_at)"


class DynamoGroups:
    """The port `Groups`."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._table = Table(client, table)

    def add(self, group: Group) -> bool:
        sets = _head(group)
        calls = json.dumps({kind: spec_items.encode(spec) for kind, spec in group.calls.items()}, ensure_ascii=False)
        if group.calls and len(calls.encode()) <= INLINE_BYTES:
            sets["calls"] = {"S": calls}
        elif group.calls:
            self._table.put(keys.group_calls(group.key) | {"calls": {"S": calls}}, {})
            sets["calls_apart"] = {"BOOL": True}
        answer = self._update(keys.group(group.key), sets=sets, removes=("expires",), condition="attribute_not_exists(created_at)")
        return answer.done is Written.YES

    def get(self, key: GroupKey) -> Group | None:
        return decode(self._table.get(keys.group(key)))

    def calls_of(self, group: Group) -> Group:
        if group.calls:
            return group
        item = self._table.get(keys.group(group.key)) or {}
        if "calls_apart" in item:
            item = {**(self._table.get(keys.group_calls(group.key)) or {}), **item}
        return decode(item) or group

    def listing(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Group], str | None]:
        low, high = keys.bounds(None, None, after, newest_first=True)
        queries = [
            keys.IN_PARTITION.query(keys.groups(owner, number), low, high) | {"Limit": limit + 1, "ScanIndexForward": False}
            for number in range(ids.PARTITIONS)
        ]
        first_pages = self._table.pool.map(self._table.query, queries)
        streams = [self._table.all(query, page) for query, page in zip(queries, first_pages, strict=True)]
        stored = (item for item in heapq.merge(*streams, key=lambda item: item["sk"]["S"], reverse=True) if "created_at" in item)
        listed = list(itertools.islice(stored, limit + 1))
        found = [group for group in readable.each(decode, listed[:limit]) if group is not None]
        return found, listed[limit - 1]["sk"]["S"] if len(listed) > limit else None

    def allocate(self, key: GroupKey, count: int) -> Group | None:
        open_ = f"{_STORED} AND attribute_not_exists(sealed_at) AND attribute_not_exists(abandoned_at)"
        values = {":most": {"N": str(MOST - count)}}
        added = {"members": {"N": str(count)}}
        answer = self._update(keys.group(key), adds=added, condition=f"{open_} AND members <= :most", values=values)
        return decode(answer.item) if answer.done is Written.YES else None

    def enrol(self, key: GroupKey, members: Mapping[int, str], until: int) -> None:
        leaves: dict[LeafKey, dict[str, Any]] = {}
        for number, job in members.items():
            leaves.setdefault(LeafKey(key, number // SPAN), {})[_member(number % SPAN)] = {"S": job}
        expires = {"expires": {"N": str(until // 1_000 + LEAF_RETENTION_S)}}
        for leaf, sets in leaves.items():
            sets |= expires if leaf.number else {}
        self._all((keys.leaf(leaf), {"sets": sets}) for leaf, sets in leaves.items())

    def leaves(self, keys_: Sequence[LeafKey]) -> dict[LeafKey, Leaf]:
        named = {address(keys.leaf(key)): key for key in keys_}
        items = self._table.get_many([keys.leaf(key) for key in named.values()]) if named else ()
        return {key: _leaf(key, item) for item in items if (key := named[address(item)]) is not None}

    def mark(self, marks: Mapping[LeafKey, Marks], now: int) -> list[Leaf | Group]:
        return list(self._table.pool.map(lambda key: self._mark(key, marks[key], now), marks))

    def _mark(self, key: LeafKey, marks: Marks, now: int) -> Leaf | Group:
        adds = {_set(end): {"NS": [str(each) for each in sorted(added)]} for end, added in marks.items() if added}
        if key.number:
            return _leaf(key, self._written(self._update(keys.leaf(key), adds=adds)))
        answer = self._update(keys.leaf(key), adds=adds, condition=_STORED)
        if answer.done is Written.NO:  # the request that stores the group is under way, or has broken off
            expires = {"expires": {"N": str(now // 1_000 + ORPHAN_S)}}
            answer = self._update(keys.leaf(key), adds=adds, sets=expires)
        item = self._written(answer)
        return decode(item) or _leaf(key, item)

    def size_leaf(self, key: LeafKey, size: int) -> Leaf:
        return _leaf(key, self._written(self._update(keys.leaf(key), sets={"size": {"N": str(size)}})))

    def nodes(self, keys_: Sequence[NodeKey]) -> dict[NodeKey, Node]:
        named = {address(keys.node(key)): key for key in keys_}
        items = self._table.get_many([keys.node(key) for key in named.values()]) if named else ()
        return {key: _node(key, item) for item in items if (key := named[address(item)]) is not None}

    def size_node(self, key: NodeKey, size: int) -> Node:
        return _node(key, self._written(self._update(keys.node(key), sets={"size": {"N": str(size)}})))

    def fill(self, key: NodeKey, leaves: Set[int], now: int) -> Node:
        adds = {"full": {"NS": [str(each) for each in sorted(leaves)]}}
        expires = {"expires": {"N": str(now // 1_000 + NODE_RETENTION_S)}}
        return _node(key, self._written(self._update(keys.node(key), adds=adds, sets=expires)))

    def count(self, key: NodeKey, counts: Counts, seen: int) -> None:
        sets = {"counts": {"S": json.dumps(counts)}, "seen": {"N": str(seen)}}
        newer = {":seen_before": {"N": str(seen)}}
        answer = self._update(keys.node(key), sets=sets, condition="attribute_not_exists(seen) OR seen < :seen_before", values=newer)
        if answer.done is Written.REFUSED:
            raise Unavailable

    def fill_head(self, key: GroupKey, nodes: Set[int]) -> Group | None:
        return self._changed(key, adds={"full": {"NS": [str(each) for each in sorted(nodes)]}}, condition=_STORED)

    def seal(self, key: GroupKey, at: int, *, cancelled: bool = False) -> Group | None:
        first = {"sealed_at": at} | ({"cancelled_at": at} if cancelled else {})
        return self._changed(key, first=first, condition=f"{_STORED} AND attribute_not_exists(abandoned_at)")

    def abandon(self, key: GroupKey, at: int, expires: int) -> Group | None:
        condition = f"{_STORED} AND attribute_not_exists(sealed_at)"
        return self._last(key, {"abandoned_at": at}, expires, condition) or self.get(key)

    def follow(self, key: GroupKey) -> Group | None:
        return self._changed(key, sets={"followed": {"BOOL": True}}, condition=_STORED)

    def end(self, key: GroupKey, at: int, *, succeeded: bool, expires: int) -> Group:
        first = {"ended_at": at} | ({"succeeded_at": at} if succeeded else {})
        ended = self._last(key, first, expires, _STORED)
        if ended is None:
            raise Unavailable
        return ended

    def _last(self, key: GroupKey, first: Mapping[str, int], expires: int, condition: str) -> Group | None:
        """The group after a change that lets it expire, with its call-backs; None: the condition is false. Raises Unavailable."""
        sets = {"expires": {"N": str(expires)}}
        answer = self._update(keys.group(key), first=first, sets=sets, condition=condition)
        if answer.done is Written.NO:
            return None
        item = self._written(answer)
        if "calls_apart" in item:
            self._written(self._update(keys.group_calls(key), sets=sets))
        return decode(item)

    def plan(self, before: GroupCheck | None, after: GroupCheck | None) -> None:
        if after is not None:
            self._table.put(keys.group_check(after) | {"node": {"N": str(after.node)}}, {})
        if before is not None and (after is None or keys.group_check(after) != keys.group_check(before)):
            self._table.delete(keys.group_check(before))

    def due(self, now: int, limit: int) -> list[GroupCheck]:
        found: list[GroupCheck] = []
        for number in range(keys.GROUP_CHECK_PARTITIONS):
            page = self._table.query(keys.due_group_checks(number, now) | {"Limit": limit, "ConsistentRead": True})
            found += readable.each(_check, page["Items"])
        return sorted(found, key=lambda check: (check.at, check.group))[:limit]

    def _changed(self, key: GroupKey, **change: Any) -> Group | None:
        """The group after a change; None: its condition is false. Raises Unavailable."""
        answer = self._update(keys.group(key), **change)
        return None if answer.done is Written.NO else decode(self._written(answer))

    def _all(self, updates: Iterable[tuple[keys.Value, dict[str, Any]]]) -> None:
        for answer in self._table.pool.map(lambda update: self._update(update[0], **update[1]), updates):
            self._written(answer)

    def _written(self, answer: Answer) -> Item:
        if answer.done is not Written.YES or answer.item is None:
            raise Unavailable
        return answer.item

    def _update(
        self,
        key: keys.Value,
        *,
        sets: Mapping[str, Any] | None = None,
        first: Mapping[str, int] | None = None,
        adds: Mapping[str, Any] | None = None,
        removes: Sequence[str] = (),
        condition: str | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> Answer:
        """One UpdateItem. `first`: numbers that are set unless the item has one of that name."""
        names = {f"#{name}": name for name in (*(sets or ()), *(first or ()), *(adds or ()), *removes)}
        assigned = [f"#{name} = :{name}" for name in sets or ()]
        assigned += [f"#{name} = if_not_exists(#{name}, :{name})" for name in first or ()]
        clauses = ["SET " + ", ".join(assigned)] if assigned else []
        clauses += ["ADD " + ", ".join(f"#{name} :{name}" for name in adds)] if adds else []
        clauses += ["REMOVE " + ", ".join(f"#{name}" for name in removes)] if removes else []
        content = {**(sets or {}), **{name: {"N": str(value)} for name, value in (first or {}).items()}, **(adds or {})}
        arguments: dict[str, Any] = {
            "TableName": self._table.name,
            "Key": key,
            "UpdateExpression": " ".join(clauses),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {f":{name}": value for name, value in content.items()} | dict(values or {}),
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        return self._table.call(arguments | ({} if condition is None else {"ConditionExpression": condition}))


def _head(group: Group) -> dict[str, Any]:
    """All of a new head but its key and its call-backs."""
    item: dict[str, Any] = {"v": {"N": keys.FORMAT}, "members": {"N": str(group.members)}}
    item |= {name: {"N": str(value)} for name in _TIMES if (value := getattr(group, name)) is not None}
    item |= {"name": {"S": group.name}} if group.name is not None else {}
    members = group.leaf.members if group.leaf is not None else {}
    return item | {_member(index): {"S": job} for index, job in members.items()}


def decode(item: Item | None) -> Group | None:
    """The group in its item; None: it is not stored, even if marks of its members are."""
    if item is None or "created_at" not in item:
        return None
    keys.check_format(item)
    key = keys.group_key(item)
    times: dict[str, Any] = {name: int(item[name]["N"]) for name in _TIMES if name in item}
    calls = json.loads(item["calls"]["S"]) if "calls" in item else {}
    return Group(
        *key,
        name=item["name"]["S"] if "name" in item else None,
        calls={CallKind(kind): spec_items.decode(spec) for kind, spec in calls.items()},
        members=int(item["members"]["N"]),
        full=_numbers(item, "full"),
        followed="followed" in item,
        leaf=_leaf(LeafKey(key, 0), item),
        **times,
    )


def _leaf(key: LeafKey, item: Item) -> Leaf:
    members = {index: item[_member(index)]["S"] for index in range(SPAN) if _member(index) in item}
    marks = {end: _numbers(item, _set(end)) for end in End if _set(end) in item}
    return Leaf(key, _size(item), members, marks)


def _node(key: NodeKey, item: Item) -> Node:
    counts = {End(end): count for end, count in json.loads(item["counts"]["S"]).items()} if "counts" in item else None
    return Node(key, _size(item), _numbers(item, "full"), counts, int(item["seen"]["N"]) if "seen" in item else 0)


def _check(item: Item) -> GroupCheck:
    at, _, group = item["sk"]["S"].partition("#")
    owner, _, id = group.rpartition("#")
    return GroupCheck(GroupKey(owner, id), int(at), int(item["node"]["N"]))


def _size(item: Item) -> int | None:
    return int(item["size"]["N"]) if "size" in item else None


def _numbers(item: Item, name: str) -> frozenset[int]:
    return frozenset(int(number) for number in item[name]["NS"]) if name in item else frozenset()


def _member(index: int) -> str:
    """The attribute with the id of the member of this number within its leaf."""
    return f"m{index}"


def _set(end: End) -> str:
    """The attribute with the marks of this end."""
    return f"e{end.value}"
