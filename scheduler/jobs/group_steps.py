"""Carry out the checks of groups, node by node: see `scheduler.groups.check`."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from scheduler.groups import check, counting, ends
from scheduler.groups.counting import ENDS
from scheduler.jobs.cancel import cancel_many
from scheduler.model import lifecycle
from scheduler.model.group import FAN, SPAN, End, Group, GroupCheck, GroupState, Leaf, LeafKey, NodeKey
from scheduler.model.job import Job, JobKey
from scheduler.model.lifecycle import DAY_S, is_open
from scheduler.model.work import WorkDelivery
from scheduler.pipeline.enqueue import try_enqueue
from scheduler.storage.ports import Found, Ports

STEP_MS = 8_000  # a step ends after this time; another one continues

log = logging.getLogger(__name__)


def step(delivery: WorkDelivery, ports: Ports, hide: Callable[[], None]) -> int | None:
    """Carry out the check that a message names. Returns None: further steps have messages of their own. Raises Unavailable."""
    planned = check.of_item(delivery.item)
    group = ports.groups.get(planned.group)
    if group is not None and group.sealed_at is None and group.abandoned_at is None:
        group = _left_open(group, ports)
    if group is None or counting.state(group) not in (GroupState.SEALED, GroupState.OPEN):
        ports.groups.plan(planned, None)
        return None
    if group.sealed_at is None:
        ports.groups.plan(planned, check.first(group))
        return None
    _continue(planned, group, ports, hide)
    return None


def _left_open(group: Group, ports: Ports) -> Group | None:
    """The group that is not sealed; abandoned, if its time is over."""
    now = ports.clock.now()
    if now < group.seal_by:
        return group
    log.warning("a group was not sealed in time", extra={"user_id": group.owner, "group_id": group.id, "members": group.members})
    return ports.groups.abandon(group.key, now, now // 1_000 + ports.rules.retention.failure_days * DAY_S)


def _continue(planned: GroupCheck, group: Group, ports: Ports, hide: Callable[[], None]) -> None:
    until, node = ports.clock.now() + STEP_MS, planned.node
    while node < group.nodes or (node == 0 and group.members == 0):
        hide()
        _check_node(group, node, ports)
        node += 1
        if ports.clock.now() >= until and node < group.nodes:
            following = replace(planned, at=ports.clock.now() + check.LOST_MS, node=node)
            ports.groups.plan(planned, following)
            ports.work.send([check.item_of(following)])
            return
    now = ports.clock.now()
    try_enqueue(ends.note_sealed(group, ports, now=now), lanes=ports.lanes, now=now)
    current = ports.groups.get(group.key)
    ended = current is None or current.ended_at is not None
    ports.groups.plan(planned, None if ended else check.following(group, now))


def _check_node(group: Group, number: int, ports: Ports) -> None:
    """Check the members of a node that have not ended."""
    node = ports.groups.nodes([NodeKey(group.key, number)]).get(NodeKey(group.key, number))
    if node is not None and counting.is_node_full(node):
        return
    keys = [LeafKey(group.key, leaf) for leaf in counting.leaves_of_node(group, number)]
    found = ports.groups.leaves(keys)
    open_leaves = [leaf for key in keys if not counting.is_full(leaf := found.get(key, Leaf(key)))]
    for start in range(0, len(open_leaves), FAN // SPAN):
        _check_leaves(group, open_leaves[start : start + FAN // SPAN], ports)


def _check_leaves(group: Group, leaves: list[Leaf], ports: Ports) -> None:
    """Check the members of up to 16 leaves that have not ended: 256 jobs at most."""
    now = ports.clock.now()
    waiting = {leaf.key: _waiting(leaf, group) for leaf in leaves}
    named = [key for of_leaf in waiting.values() for key in of_leaf.values() if key is not None]
    jobs = ports.jobs.get_many(named) if named else Found[JobKey, Job]()
    if group.cancelled_at is not None:
        jobs = _cancelled(jobs, group, ports, now)
    marks = {key: marks for key, of_leaf in waiting.items() if (marks := _missing(key, of_leaf, jobs, group, now))}
    if marks:
        go = ends.note_leaves(ports.groups.mark(marks, now), ports, now=now)
        try_enqueue(go, lanes=ports.lanes, now=now)


def _waiting(leaf: Leaf, group: Group) -> dict[int, JobKey | None]:
    """The members of the leaf that have not ended, by their numbers within it. None: no job was named for the number."""
    ended, size = counting.ends(leaf), min(SPAN, group.members - leaf.key.number * SPAN)
    named = {index: JobKey(group.owner, leaf.members[index]) if index in leaf.members else None for index in range(size)}
    return {index: key for index, key in named.items() if index not in ended}


def _missing(
    key: LeafKey, waiting: Mapping[int, JobKey | None], jobs: Found[JobKey, Job], group: Group, now: int
) -> dict[End, frozenset[int]]:
    """The marks that the leaf lacks: of jobs that have ended, and of numbers that have no job and get none any more."""
    missing: dict[End, frozenset[int]] = {}
    settled = now >= (group.sealed_at or now) + check.SETTLED_MS
    for index, named in waiting.items():
        job = None if named is None else jobs.get(named)
        number = key.number * SPAN + index
        if named is not None and named in jobs.unreadable:
            continue
        if job is None or job.member != number:  # a repeated request may have stored the job under another number
            added = (End.VOID, counting.mark(index)) if settled else None
        else:
            added = None if is_open(job) else (ENDS[lifecycle.state(job)], counting.mark(index, job.redrives))
        if added is not None:
            missing[added[0]] = missing.get(added[0], frozenset()) | {added[1]}
    return missing


def _cancelled(jobs: Found[JobKey, Job], group: Group, ports: Ports, now: int) -> Found[JobKey, Job]:
    """The jobs, after those are cancelled that have not started."""
    waiting = [job for job in jobs.values() if _may_be_cancelled(job, now)]
    if not waiting:
        return jobs
    cancelled, refused = cancel_many(waiting, ports)
    log.info("cancelled members of a group", extra={"group_id": group.id, "jobs": len(cancelled), "refused": len(refused)})
    return Found(jobs | {job.key: job for job in cancelled}, jobs.unreadable)


def _may_be_cancelled(job: Job, now: int) -> bool:
    if not is_open(job) or job.cancel_requested_at is not None:
        return False
    return not lifecycle.has_started(job, now)
