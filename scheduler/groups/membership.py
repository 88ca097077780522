"""Jobs join a group: each gets a number before it is stored, under which its end is counted.

A number is stored with the id of its job before the job. If the job is not stored after that, the number is void.
"""

import logging
from collections.abc import Sequence

from scheduler.groups import counting, ends
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.group import MOST, SPAN, End, GroupState, LeafKey
from scheduler.model.job import GroupKey, Job, JobKey, changed
from scheduler.storage.ports import Ports, Written

log = logging.getLogger(__name__)


def join(drafts: Sequence[Job], ports: Ports, *, now: int) -> tuple[list[Job], dict[JobKey, Conflict | Written]]:
    """Give numbers to those of these new jobs that are to be members; return the jobs that may be stored, and the results of the others.

    The new members of one group join together, or none of them does.
    """
    groups: dict[GroupKey, list[Job]] = {}
    for draft in drafts:
        if draft.group_key is not None and draft.member is None:
            groups.setdefault(draft.group_key, []).append(draft)
    numbers, refused = dict[JobKey, int](), dict[JobKey, Conflict | Written]()
    for key, members in groups.items():
        assigned = _numbers(key, members, ports, now)
        if isinstance(assigned, dict):
            numbers |= assigned
        else:
            refused |= {member.key: assigned for member in members}
    joined = [changed(draft, member=numbers[draft.key]) if draft.key in numbers else draft for draft in drafts if draft.key not in refused]
    return joined, refused


def join_one(draft: Job, ports: Ports, *, now: int) -> Job:
    """Give the new job a number in its group. Raises Conflict if the group can take no job; Unavailable."""
    joined, refused = join([draft], ports, now=now)
    error = refused.get(draft.key)
    if error is None:
        return joined[0]
    raise error if isinstance(error, Conflict) else Unavailable()


def leave(lost: Sequence[Job], ports: Ports, *, now: int) -> list[Job]:
    """Make the numbers of members void that are not stored, and return the call-backs that need a message. Never raises: a check of the
    group finds numbers without a job. A job that a table refused may be stored nevertheless: it keeps its number."""
    marks: dict[LeafKey, dict[End, frozenset[int]]] = {}
    for job in lost:
        if (key := counting.leaf_of(job)) is not None:
            of_leaf = marks.setdefault(key, {End.VOID: frozenset()})
            of_leaf[End.VOID] |= {counting.mark((job.member or 0) % SPAN)}
    try:
        return ends.note_leaves(ports.groups.mark(marks, now), ports, now=now) if marks else []
    except Unavailable:
        log.info("could not make numbers void; a check of the group does", extra={"jobs": len(lost)})
        return []


def _numbers(key: GroupKey, members: Sequence[Job], ports: Ports, now: int) -> dict[JobKey, int] | Conflict | Written:
    try:
        group = ports.groups.allocate(key, len(members))
        if group is None:
            return _why_closed(key, ports)
        first = group.members - len(members)
        numbers = {member.key: first + position for position, member in enumerate(members)}
        latest = max(now, *(member.scheduled_at for member in members))
        ports.groups.enrol(key, {number: job.id for job, number in numbers.items()}, latest)
    except Unavailable:
        return Written.REFUSED
    return numbers


def _why_closed(key: GroupKey, ports: Ports) -> Conflict:
    group = ports.groups.get(key)
    state = None if group is None else counting.state(group)
    if group is None:
        rule = f"there is no group {key.id}"
    elif state is GroupState.OPEN:
        rule = f"the group {key.id} would have more than {MOST:,} members"
    elif state is GroupState.ABANDONED:
        rule = f"the group {key.id} was not sealed in time, and was abandoned"
    else:
        rule = f"the group {key.id} is sealed: no job can join it"
    return Conflict(f"group: {rule}", details=[{"field": "group", "rule": rule}])
