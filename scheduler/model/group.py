"""The records of a group: its head, and the tree in which the ends of its members are counted. Immutable; instants are in ms.

Each member has a number, from 0. Sixteen members share a leaf, 256 leaves a node, and the head knows which nodes are full. A leaf has one
set of marks for each kind of end. A mark is the number of the member within its leaf, plus `SPAN` for each redrive of its job. Adding a
mark twice changes nothing, so any writer may repeat the count of an end. Of the marks of a member, that of the last redrive counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from scheduler.model.job import GroupKey
from scheduler.model.spec import JobSpec

SPAN = 16  # members of a leaf: their ids and marks fit into one write unit
FAN = 256  # leaves of a node, and nodes of a head: no item is written more often than this for the ends of a group
MOST = 1_000_000  # members


class LeafKey(NamedTuple):
    """The key of a leaf: its group and its number, from 0."""

    group: GroupKey
    number: int


class NodeKey(NamedTuple):
    """The key of a node: its group and its number, from 0."""

    group: GroupKey
    number: int


class End(StrEnum):
    """The kind of a mark: the way in which a member ended. Its value is the name of the set of marks."""

    SUCCEEDED = "s"
    FAILED = "f"
    KILLED = "k"
    CANCELLED = "c"
    SKIPPED = "x"
    VOID = "v"  # the number has no job: it was given to a request that stored none


class CallKind(StrEnum):
    """The call-backs of a group: jobs that start when all its members have ended."""

    ON_COMPLETE = "on_complete"  # in any case
    ON_SUCCESS = "on_success"  # all of them succeeded, if need be after redrives
    ON_FAILURE = "on_failure"  # at least one of them ended otherwise


class GroupState(StrEnum):
    """The state of a group."""

    OPEN = "open"  # jobs may join
    SEALED = "sealed"  # no job may join; members have not ended yet
    ENDED = "ended"  # all members have ended
    ABANDONED = "abandoned"  # it was not sealed in time: nothing waits for its members any more


Marks = Mapping[End, frozenset[int]]
Counts = Mapping[End, int]


@dataclass(frozen=True, slots=True)
class Leaf:
    """Up to `SPAN` members. `size`: their final number, if the leaf is the last one of a sealed group and not full."""

    key: LeafKey
    size: int | None = None
    members: Mapping[int, str] = field(default_factory=dict)  # the ids of the jobs, by their numbers within the leaf
    marks: Marks = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """Up to `FAN` leaves. `full`: the numbers, within the node, of those whose members have all ended.

    `counts`: of all its members, once the node is full. `seen`: the number of marks that they were counted from; it only rises.
    """

    key: NodeKey
    size: int | None = None  # as of a leaf
    full: frozenset[int] = frozenset()
    counts: Counts | None = None
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """The head of a group. `leaf`: its first leaf, which the same item stores."""

    owner: str
    id: str
    created_at: int
    seal_by: int  # a group that is not sealed by then is abandoned
    name: str | None = None
    calls: Mapping[CallKind, JobSpec] = field(default_factory=dict)
    members: int = 0  # the numbers given, including those without a job
    sealed_at: int | None = None
    cancelled_at: int | None = None
    abandoned_at: int | None = None
    ended_at: int | None = None  # when the end of all members was first seen
    succeeded_at: int | None = None  # when it was first seen that all members had succeeded
    full: frozenset[int] = frozenset()  # the nodes that are full
    followed: bool = False  # whether jobs wait for its end
    leaf: Leaf | None = None

    @property
    def key(self) -> GroupKey:
        return GroupKey(self.owner, self.id)

    @property
    def leaves(self) -> int:
        """The number of its leaves."""
        return -(-self.members // SPAN)

    @property
    def nodes(self) -> int:
        """The number of its nodes."""
        return -(-self.leaves // FAN)


@dataclass(frozen=True, slots=True)
class GroupCheck:
    """A planned check of a group that is not complete. `node`: the node at which it goes on."""

    group: GroupKey
    at: int
    node: int = 0
