"""Groups and the counts of their members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from scheduler.model.group import Counts, Group, GroupCheck, Leaf, LeafKey, Marks, Node, NodeKey
    from scheduler.model.job import GroupKey


class Groups(Protocol):
    """Groups: their heads, nodes and leaves (`scheduler.model.group`), and the checks that are planned of them.

    All reads are strongly consistent, except lists. Each write is idempotent, unless its method says otherwise.
    """

    def add(self, group: Group) -> bool:
        """Store a new group with its first leaf. Marks that the leaf has by now stay. False: the group exists; nothing changes."""

    def get(self, key: GroupKey) -> Group | None:
        """Return the group, None if there is none."""

    def calls_of(self, group: Group) -> Group:
        """Return the group with its call-backs, which the other methods may leave out."""

    def listing(self, owner: str, *, after: str | None, limit: int) -> tuple[list[Group], str | None]:
        """Return a page of an owner's groups, newest first, beyond the one with the id `after`, and the id of the page's last group if
        there are more."""

    def allocate(self, key: GroupKey, count: int) -> Group | None:
        """Give numbers to `count` new members: the last ones of the returned group. Not idempotent: a repeat gives further numbers.

        None: there is no such group, no job may join it, or it would have more than `MOST` members.
        """

    def enrol(self, key: GroupKey, members: Mapping[int, str], until: int) -> None:
        """Store the ids of members by their numbers. `until`: when the last one of them is scheduled (ms); the ids are kept for more than a
        year after that, and after now. Raises Unavailable if one of them may not be stored."""

    def leaves(self, keys: Sequence[LeafKey]) -> dict[LeafKey, Leaf]:
        """Return the leaves that exist."""

    def mark(self, marks: Mapping[LeafKey, Marks], now: int) -> list[Leaf | Group]:
        """Add marks, and return the leaves after that; instead of a first leaf, its group if that is stored.

        Raises Unavailable if one of them may not be stored.
        """

    def size_leaf(self, key: LeafKey, size: int) -> Leaf:
        """Store the final size of a leaf, and return the leaf."""

    def nodes(self, keys: Sequence[NodeKey]) -> dict[NodeKey, Node]:
        """Return the nodes that exist."""

    def size_node(self, key: NodeKey, size: int) -> Node:
        """Store the final size of a node, and return the node."""

    def fill(self, key: NodeKey, leaves: Set[int], now: int) -> Node:
        """Note that leaves of the node are full, and return the node."""

    def count(self, key: NodeKey, counts: Counts, seen: int) -> None:
        """Store the counts of a node, unless the stored ones were counted from as many marks or more."""

    def fill_head(self, key: GroupKey, nodes: Set[int]) -> Group | None:
        """Note that nodes of the group are full, and return the group; None: there is none."""

    def seal(self, key: GroupKey, at: int, *, cancelled: bool = False) -> Group | None:
        """Let no further job join, and return the group as it is then; with `cancelled`, mark it as cancelled.

        A group that is sealed or cancelled keeps the first instant of that. None: there is none, or it was abandoned.
        """

    def abandon(self, key: GroupKey, at: int, expires: int) -> Group | None:
        """Mark the group as abandoned, if it is not sealed, and let it expire (epoch seconds). Returns the group; None: there is none."""

    def follow(self, key: GroupKey) -> Group | None:
        """Mark that jobs wait for the end of the group, and return the group; None: there is none."""

    def end(self, key: GroupKey, at: int, *, succeeded: bool, expires: int) -> Group:
        """Note that all members have ended, and whether all have succeeded, and return the group. The first instant of each stays.

        `expires`: when the group's record expires (epoch seconds).
        """

    def plan(self, before: GroupCheck | None, after: GroupCheck | None) -> None:
        """Plan a check, replace a planned one, or drop it."""

    def due(self, now: int, limit: int) -> list[GroupCheck]:
        """Return up to `limit` of the checks that are due."""
