"""Count the ends of members, and start the call-backs of complete groups.

The writer of the end of a member counts it, and the reader of the streams counts each end and each seal again: so none is lost. A mark
that is added twice changes nothing. The writer whose mark makes a leaf full notes that in the node, and so on up to the head: of any
writers at the same time, the last one sees a complete group. Its instants decide which call-backs follow, and their ids.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

from scheduler.groups import counting
from scheduler.model import slots
from scheduler.model.errors import Unavailable
from scheduler.model.group import FAN, CallKind, Counts, End, Group, Leaf, LeafKey, Node, NodeKey
from scheduler.model.job import GroupKey, Job, new_job
from scheduler.model.lifecycle import DAY_S, is_open
from scheduler.model.work import GROUP_PART, WorkItem, WorkKind
from scheduler.storage.ports import Ports, Written

log = logging.getLogger(__name__)


def count_ended(ended: Sequence[Job], ports: Ports, *, now: int) -> list[Job]:
    """Count these jobs, as far as they are members that have ended, and return the call-backs that need a message.

    Raises Unavailable: then some of them may not be counted, or some call-backs not be stored.
    """
    marks = _marks(ended)
    if not marks:
        return []
    written = ports.groups.mark(marks, now)
    return _followed(written, ports, now, recount=any(job.redrives for job in ended))


def try_count(ended: Sequence[Job], ports: Ports, *, now: int) -> list[Job]:
    """Count as `count_ended` does; empty if the table refuses: the reader of the stream repeats it."""
    try:
        return count_ended(ended, ports, now=now)
    except Unavailable:
        log.info("could not count ended members; the reader of the stream does", extra={"jobs": len(ended)})
        return []


def count_again(ended: Sequence[Job], ports: Ports, *, now: int) -> list[Job]:
    """Count those of these jobs that are not counted yet, and do what follows from any of them. Returns call-backs that need a message.

    Costs reads only, if all has been done. Raises Unavailable.
    """
    marks = _marks(ended)
    if not marks:
        return []
    known = ports.groups.leaves(list(marks))
    missing = {key: added for key, added in marks.items() if not _are_in(known.get(key), added)}
    heads = {key.group: ports.groups.get(key.group) for key in marks if key.number == 0 and key not in missing}
    found: list[Leaf | Group] = [
        heads.get(key.group) or leaf if key.number == 0 else leaf for key, leaf in known.items() if key not in missing
    ]
    written = ports.groups.mark(missing, now) if missing else []
    return _followed([*found, *written], ports, now, recount=bool(missing) or any(job.redrives for job in ended))


def note_leaves(leaves: Iterable[Leaf | Group], ports: Ports, *, now: int) -> list[Job]:
    """Do what follows if these leaves are full, and return the call-backs that need a message. Raises Unavailable."""
    return _followed(list(leaves), ports, now, recount=True)


def note_sealed(group: Group, ports: Ports, *, now: int) -> list[Job]:
    """Store the final sizes of a sealed group, whose members may all have ended. Returns the call-backs that need a message.

    Nothing happens if it is not sealed. Idempotent. Raises Unavailable.
    """
    if group.sealed_at is None:
        return []
    if group.ended_at is not None:
        _request_followers(group, ports)
    if group.leaves <= 1:
        return _followed([group], ports, now, recount=True)
    leaf, node = counting.sizes(group)
    sized = [] if leaf is None else [ports.groups.size_leaf(LeafKey(group.key, leaf[0]), leaf[1])]
    if node is not None:
        ports.groups.size_node(NodeKey(group.key, node[0]), node[1])
    started = _followed(sized, ports, now, recount=True)
    nodes = ports.groups.nodes([NodeKey(group.key, number) for number in range(group.nodes)])
    full = {key: set(node.full) for key, node in nodes.items() if counting.is_node_full(node)}
    heads = [head for head in _filled(full, ports, now, recount=False) if counting.is_complete(head)]
    again = [job for head in heads for job in _call_back(head, ports, now)]
    return list({job.key: job for job in (*started, *again)}.values())


def _marks(ended: Iterable[Job]) -> dict[LeafKey, dict[End, frozenset[int]]]:
    marks: dict[LeafKey, dict[End, frozenset[int]]] = {}
    for job in ended:
        key = None if is_open(job) else counting.leaf_of(job)
        if key is not None:
            end, mark = counting.mark_of(job)
            of_leaf = marks.setdefault(key, {})
            of_leaf[end] = of_leaf.get(end, frozenset()) | {mark}
    return marks


def _are_in(leaf: Leaf | None, marks: Mapping[End, frozenset[int]]) -> bool:
    return all(counting.has(leaf, end, mark) for end, added in marks.items() for mark in added)


def _followed(written: Sequence[Leaf | Group], ports: Ports, now: int, *, recount: bool) -> list[Job]:
    """Go up from the leaves just read or written to the heads of complete groups, and start their call-backs."""
    complete: dict[GroupKey, Group] = {}
    full: dict[NodeKey, set[int]] = {}
    for each in written:
        leaf = each.leaf if isinstance(each, Group) else each
        if isinstance(each, Group) and each.leaves <= 1:
            if counting.is_complete(each):
                complete[each.key] = each
        elif leaf is not None and counting.is_full(leaf):
            node, index = divmod(leaf.key.number, FAN)
            full.setdefault(NodeKey(leaf.key.group, node), set()).add(index)
    for head in _filled(full, ports, now, recount=recount):
        if counting.is_complete(head):
            complete[head.key] = head
    return [job for head in complete.values() for job in _call_back(head, ports, now)]


def _filled(full: Mapping[NodeKey, set[int]], ports: Ports, now: int, *, recount: bool) -> list[Group]:
    """Note full leaves in their nodes, and full nodes in their heads; return those heads."""
    known = ports.groups.nodes(list(full))
    ready: dict[GroupKey, set[int]] = {}
    for key, leaves in full.items():
        node = known.get(key)
        if node is None or not leaves <= node.full:
            node = ports.groups.fill(key, leaves, now)
        if counting.is_node_full(node):
            if recount or node.counts is None:
                _count_node(node, ports)
            ready.setdefault(key.group, set()).add(key.number)
    return [head for group, nodes in ready.items() if (head := _filled_head(group, nodes, ports)) is not None]


def _filled_head(key: GroupKey, nodes: set[int], ports: Ports) -> Group | None:
    head = ports.groups.get(key)
    return head if head is None or nodes <= head.full else ports.groups.fill_head(key, nodes)


def _count_node(node: Node, ports: Ports) -> None:
    """Count the members of a full node from its leaves."""
    size = FAN if node.size is None else node.size
    first = node.key.number * FAN
    leaves = ports.groups.leaves([LeafKey(node.key.group, number) for number in range(first, first + size)]).values()
    ports.groups.count(node.key, counting.counts(leaves), counting.marks_in(leaves))


def counts_of(group: Group, ports: Ports) -> Counts:
    """The number of members that ended in each way. Reads all leaves of nodes that are not full."""
    if group.leaves <= 1:
        return counting.counts([group.leaf] if group.leaf is not None else [])
    nodes = ports.groups.nodes([NodeKey(group.key, number) for number in range(group.nodes)])
    counted = {key.number: node.counts for key, node in nodes.items() if node.counts is not None}
    others = [number for number in range(group.nodes) if number not in counted]
    leaves = ports.groups.leaves([LeafKey(group.key, leaf) for node in others for leaf in counting.leaves_of_node(group, node)])
    return counting.total([*counted.values(), counting.counts(leaves.values())])


def _call_back(group: Group, ports: Ports, now: int) -> list[Job]:
    """Note that the group is complete, and store its call-backs. Returns those that need a message: no executor had them yet."""
    if group.ended_at is None or group.succeeded_at is None:
        succeeded = counting.have_succeeded(group, counts_of(group, ports))
        if group.ended_at is None or succeeded:
            expires = now // 1_000 + ports.rules.retention.failure_days * DAY_S
            group = ports.groups.end(group.key, now, succeeded=succeeded, expires=expires)
            _request_followers(group, ports)
    group = ports.groups.calls_of(group)
    jobs = [_job(group, kind, at, now, ports) for kind, at in counting.calls(group) if kind in group.calls]
    if not jobs:
        return []
    found = ports.jobs.get_many([job.key for job in jobs])
    missing = [job for job in jobs if job.key not in found and job.key not in found.unreadable]
    written = ports.jobs.put_many(missing) if missing else []
    if Written.REFUSED in written:
        raise Unavailable
    stored = {job.key for job, done in zip(missing, written, strict=True) if done is Written.YES}
    waiting = [job for job in found.values() if is_open(job) and job.claim is None and job.fence == 1 and not job.attempts]
    return [job for job in missing if job.key in stored] + waiting


def _request_followers(group: Group, ports: Ports) -> None:
    """Request the step that cares for the jobs that wait for the group. Raises Unavailable."""
    if group.followed and ports.work.send([WorkItem(WorkKind.FOLLOW, group.owner, f"{GROUP_PART}{group.id}")]):
        raise Unavailable


def _job(group: Group, kind: CallKind, at: int, now: int, ports: Ports) -> Job:
    job_id = counting.call_id(group, kind, at)
    return new_job(
        owner=group.owner,
        id=job_id,
        spec=group.calls[kind],
        scheduled_at=at,
        due_at=at,
        created_at=at,
        slot=slots.place(at, now, job_id, ports.rules.shards).slot,
        group=group.id,
    )
