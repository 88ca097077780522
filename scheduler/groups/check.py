"""When the planned checks of groups are due: they find what a crash has left behind. Pure, but for `request_due`.

A check abandons a group that was not sealed in time, makes the numbers of jobs void that were never stored, cancels members that a cancel
has missed, and counts ends that were not counted. A group that was sealed when it was created needs none until it is cancelled.
"""

from dataclasses import replace

from scheduler.model.group import Group, GroupCheck
from scheduler.model.job import GroupKey
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.ports import Ports

LOST_MS = 300_000  # a step that was requested this long ago is requested again: its message is lost
SETTLED_MS = 300_000  # a job that joined before its group was sealed is stored by then, or never will be
LONGEST_MS = 86_400_000  # between two checks: as long as the group has been sealed, and `SETTLED_MS` at least
MOST = 100  # checks requested at once
WORK_MS = 10_000  # the checks of one minute are requested within this time: some thousand


def first(group: Group) -> GroupCheck:
    """The check of a group that is not sealed: when its time is over."""
    return GroupCheck(group.key, group.seal_by)


def after_seal(group: Group) -> GroupCheck:
    """The first check of a group that has just been sealed or cancelled. It is the same for each repeat of that request."""
    return GroupCheck(group.key, _since(group) + SETTLED_MS)


def following(group: Group, now: int) -> GroupCheck:
    """The check after one that went through the whole group."""
    return GroupCheck(group.key, now + min(max(now - _since(group), SETTLED_MS), LONGEST_MS))


def _since(group: Group) -> int:
    return max(group.cancelled_at or 0, group.sealed_at or 0)


def item_of(check: GroupCheck) -> WorkItem:
    """The work item that carries out a check."""
    return WorkItem(WorkKind.GROUP, check.group.owner, f"{check.group.id}#{check.at}#{check.node}")


def of_item(item: WorkItem) -> GroupCheck:
    """The check that a work item carries out."""
    id, at, node = item.part.split("#")
    return GroupCheck(GroupKey(item.of, id), int(at), int(node))


def request_due(ports: Ports, now: int) -> int:
    """Request the steps of the checks that are due; each is due again in a while. Returns their number. Raises Unavailable.

    It goes on until none is due or its time is over, the earliest first: the groups of one user must not keep those of others waiting
    for hours.
    """
    requested = 0
    while due := ports.groups.due(now, MOST):
        again = [replace(check, at=now + LOST_MS) for check in due]
        for check, later in zip(due, again, strict=True):
            ports.groups.plan(check, later)
        ports.work.send([item_of(check) for check in again])
        requested += len(again)
        if len(due) < MOST or ports.clock.now() >= now + WORK_MS:
            break
    return requested
