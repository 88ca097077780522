"""Groups in memory."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from scheduler.model.group import MOST, SPAN, Counts, Group, GroupCheck, Leaf, LeafKey, Marks, Node, NodeKey
from scheduler.model.job import GroupKey


class MemoryGroups:
    """The port `Groups`. The first leaf of a group is stored as any other, and is a part of its head when that is read."""

    def __init__(self) -> None:
        self.heads: dict[GroupKey, Group] = {}
        self.all_leaves: dict[LeafKey, Leaf] = {}
        self.all_nodes: dict[NodeKey, Node] = {}
        self.checks: set[GroupCheck] = set()

    def add(self, group: Group) -> bool:
        if group.key in self.heads:
            return False
        self.heads[group.key] = replace(group, leaf=None)
        if group.leaf is not None:
            self._change_leaf(group.leaf.key, members=group.leaf.members)
        return True

    def get(self, key: GroupKey) -> Group | None:
        head = self.heads.get(key)
        return None if head is None else replace(head, leaf=self.all_leaves.get(LeafKey(key, 0)))

    def calls_of(self, group: Group) -> Group:
        return group

    def listing(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Group], str | None]:
        found = sorted((key for key in self.heads if key.owner == owner and (after is None or key.id < after)), reverse=True)
        page = [group for key in found[:limit] if (group := self.get(key)) is not None]
        return page, page[-1].id if len(found) > limit else None

    def allocate(self, key: GroupKey, count: int) -> Group | None:
        head = self.heads.get(key)
        if head is None or head.sealed_at is not None or head.abandoned_at is not None or head.members + count > MOST:
            return None
        return self._change(key, members=head.members + count)

    def enrol(self, key: GroupKey, members: Mapping[int, str], until: int) -> None:
        for number, job in members.items():
            leaf = LeafKey(key, number // SPAN)
            known = self.all_leaves.get(leaf, Leaf(leaf)).members
            self._change_leaf(leaf, members={**known, number % SPAN: job})

    def leaves(self, keys: Sequence[LeafKey]) -> dict[LeafKey, Leaf]:
        return {key: self.all_leaves[key] for key in keys if key in self.all_leaves}

    def mark(self, marks: Mapping[LeafKey, Marks], now: int) -> list[Leaf | Group]:
        changed: list[Leaf | Group] = []
        for key, added in marks.items():
            known = self.all_leaves.get(key, Leaf(key)).marks
            both = {end: known.get(end, frozenset()) | added.get(end, frozenset()) for end in known.keys() | added.keys()}
            leaf = self._change_leaf(key, marks=both)
            changed.append((self.get(key.group) if key.number == 0 else None) or leaf)
        return changed

    def size_leaf(self, key: LeafKey, size: int) -> Leaf:
        return self._change_leaf(key, size=size)

    def nodes(self, keys: Sequence[NodeKey]) -> dict[NodeKey, Node]:
        return {key: self.all_nodes[key] for key in keys if key in self.all_nodes}

    def size_node(self, key: NodeKey, size: int) -> Node:
        return self._change_node(key, size=size)

    def fill(self, key: NodeKey, leaves: Set[int], now: int) -> Node:
        return self._change_node(key, full=self.all_nodes.get(key, Node(key)).full | leaves)

    def count(self, key: NodeKey, counts: Counts, seen: int) -> None:
        if self.all_nodes.get(key, Node(key)).seen < seen:
            self._change_node(key, counts=dict(counts), seen=seen)

    def fill_head(self, key: GroupKey, nodes: Set[int]) -> Group | None:
        return self._change(key, full=self.heads[key].full | nodes) if key in self.heads else None

    def seal(self, key: GroupKey, at: int, *, cancelled: bool = False) -> Group | None:
        head = self.heads.get(key)
        if head is None or head.abandoned_at is not None:
            return None
        sealed_at, cancelled_at = head.sealed_at or at, head.cancelled_at or (at if cancelled else None)
        return self._change(key, sealed_at=sealed_at, cancelled_at=cancelled_at)

    def abandon(self, key: GroupKey, at: int, expires: int) -> Group | None:
        head = self.heads.get(key)
        if head is None:
            return None
        return self._change(key, abandoned_at=head.abandoned_at or (at if head.sealed_at is None else None))

    def follow(self, key: GroupKey) -> Group | None:
        return self._change(key, followed=True) if key in self.heads else None

    def end(self, key: GroupKey, at: int, *, succeeded: bool, expires: int) -> Group:
        head = self.heads[key]
        succeeded_at = head.succeeded_at or (at if succeeded else None)
        return self._change(key, ended_at=head.ended_at or at, succeeded_at=succeeded_at)

    def plan(self, before: GroupCheck | None, after: GroupCheck | None) -> None:
        self.checks -= {before} if before is not None else set()
        self.checks |= {after} if after is not None else set()

    def due(self, now: int, limit: int) -> list[GroupCheck]:
        return sorted((check for check in self.checks if check.at <= now), key=lambda check: (check.at, check.group))[:limit]

    def _change(self, key: GroupKey, **values: object) -> Group:
        self.heads[key] = replace(self.heads[key], **values)  # type: ignore[arg-type]
        return replace(self.heads[key], leaf=self.all_leaves.get(LeafKey(key, 0)))

    def _change_leaf(self, key: LeafKey, **values: object) -> Leaf:
        self.all_leaves[key] = replace(self.all_leaves.get(key, Leaf(key)), **values)  # type: ignore[arg-type]
        return self.all_leaves[key]

    def _change_node(self, key: NodeKey, **values: object) -> Node:
        self.all_nodes[key] = replace(self.all_nodes.get(key, Node(key)), **values)  # type: ignore[arg-type]
        return self.all_nodes[key]
