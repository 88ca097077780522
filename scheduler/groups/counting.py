"""The counting of a group's members: pure decisions over its head, nodes and leaves."""

from collections import Counter
from collections.abc import Iterable, Iterator

from scheduler.model import ids, lifecycle
from scheduler.model.group import FAN, SPAN, CallKind, Counts, End, Group, GroupState, Leaf, LeafKey, Node
from scheduler.model.job import Job, Status

ENDS = {
    Status.SUCCEEDED: End.SUCCEEDED,
    Status.FAILED: End.FAILED,
    Status.KILLED: End.KILLED,
    Status.CANCELLED: End.CANCELLED,
    Status.SKIPPED: End.SKIPPED,
}
STATUSES = {end: status for status, end in ENDS.items()}


def leaf_of(job: Job) -> LeafKey | None:
    """The leaf that counts the job; None: it is no member of a group."""
    group = job.group_key
    return None if group is None or job.member is None else LeafKey(group, job.member // SPAN)


def mark_of(job: Job) -> tuple[End, int]:
    """The mark of an ended member. Raises IllegalTransition for a broken record; KeyError if it is open."""
    return ENDS[lifecycle.state(job)], mark((job.member or 0) % SPAN, job.redrives)


def mark(index: int, redrives: int = 0) -> int:
    """The mark of the member with this number within its leaf, after this number of redrives of its job."""
    return redrives * SPAN + index


def has(leaf: Leaf | None, end: End, mark: int) -> bool:
    """Whether the leaf has this mark."""
    return leaf is not None and mark in leaf.marks.get(end, ())


def ends(leaf: Leaf) -> dict[int, End]:
    """The end of each member of the leaf that has ended: that of its last redrive that has ended. A real end is stronger than none."""
    last: dict[int, tuple[bool, int, End]] = {}
    for end, marks in leaf.marks.items():
        for each in marks:
            redrives, index = divmod(each, SPAN)
            found = (end is not End.VOID, redrives, end)
            last[index] = max(last.get(index, found), found)
    return {index: end for index, (_, _, end) in last.items()}


def is_full(leaf: Leaf) -> bool:
    """Whether all members of the leaf have ended, and no other job can become one."""
    return len(ends(leaf)) == (SPAN if leaf.size is None else leaf.size)


def is_node_full(node: Node) -> bool:
    """Whether all leaves of the node are full, and no other leaf can become one of its own."""
    return len(node.full) == (FAN if node.size is None else node.size)


def is_complete(group: Group) -> bool:
    """Whether the group is sealed and all its members have ended."""
    if group.sealed_at is None:
        return False
    if group.leaves <= 1:
        return group.leaf is None or len(ends(group.leaf)) == group.members
    return len(group.full) == group.nodes


def counts(leaves: Iterable[Leaf]) -> Counts:
    """The number of members that ended in each way."""
    return Counter(end for leaf in leaves for end in ends(leaf).values())


def total(parts: Iterable[Counts]) -> Counts:
    """The sum of the counts of parts of a group."""
    return sum((Counter(part) for part in parts), Counter[End]())


def marks_in(leaves: Iterable[Leaf]) -> int:
    """The number of marks: it rises with each end that is counted."""
    return sum(len(marks) for leaf in leaves for marks in leaf.marks.values())


def have_succeeded(group: Group, counted: Counts) -> bool:
    """Whether all members of a complete group have succeeded."""
    return counted.get(End.SUCCEEDED, 0) == group.members - counted.get(End.VOID, 0)


def sizes(group: Group) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """The last leaf and the last node of a sealed group, each with its size, unless it is full by itself. None: there is none to size."""
    leaf = (group.leaves - 1, group.members % SPAN) if group.leaves > 1 and group.members % SPAN else None
    node = (group.nodes - 1, group.leaves % FAN) if group.leaves > 1 and group.leaves % FAN else None
    return leaf, node


def leaves_of_node(group: Group, node: int) -> range:
    """The numbers of the leaves of a node."""
    return range(node * FAN, min((node + 1) * FAN, group.leaves))


def state(group: Group) -> GroupState:
    """The state of the group."""
    if group.ended_at is not None:
        return GroupState.ENDED
    if group.abandoned_at is not None:
        return GroupState.ABANDONED
    return GroupState.OPEN if group.sealed_at is None else GroupState.SEALED


def calls(group: Group) -> Iterator[tuple[CallKind, int]]:
    """The call-backs that follow from what was seen of the group, each with its instant (ms)."""
    if group.ended_at is None or group.abandoned_at is not None:
        return
    yield CallKind.ON_COMPLETE, group.ended_at
    if group.succeeded_at is None or group.succeeded_at > group.ended_at:
        yield CallKind.ON_FAILURE, group.ended_at
    if group.succeeded_at is not None:
        yield CallKind.ON_SUCCESS, group.succeeded_at


def call_id(group: Group, kind: CallKind, at: int) -> str:
    """The id of the job of a call-back. It is deterministic, so that two writers cannot store it twice."""
    return ids.derived(at, f"{group.id}#{kind}")
