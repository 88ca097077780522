"""Work items: the messages of the work queue. Each drives the engine step by step."""

from enum import StrEnum
from typing import NamedTuple

from scheduler.model.job import UnitKey

GROUP_PART = "group:"  # begins the part of a step for the jobs that wait for a group, before its id


class WorkKind(StrEnum):
    """The things that a work item drives."""

    UNIT = "unit"  # a unit of a minute or of the overflow: dispatch, reconcile, close
    CHECKS = "checks"  # the later checks that are due, and one page of the sweep
    RESUME = "resume"  # units that can continue after a lane was resumed, or a user was enabled or deleted
    RELEASE = "release"  # the queue of a limited target: which of the waiting jobs may start
    FOLLOW = "follow"  # an ended job: the jobs that wait for its end
    OPERATION = "operation"  # a running operation
    GROUP = "group"  # the check of a group
    MONITOR = "monitor"  # a partition of the timers of monitors
    RUN_TIMERS = "run_timers"  # the timers of watched runs of one second, in one partition
    REQUEST_TIMERS = "request_timers"  # the messages for the rest of a partition of these timers


class WorkItem(NamedTuple):
    """One item of work.

    `of` and `part` name it: a minute and the part of its unit, a target, an owner and the id of an operation, of the group of a
    check, or of an ended job, or a second and the partition of its timers, or a position in it.
    """

    kind: WorkKind
    of: str = ""
    part: str = ""

    @classmethod
    def of_unit(cls, unit: UnitKey) -> "WorkItem":
        """Return the item that drives a unit."""
        return cls(WorkKind.UNIT, unit.minute, str(unit.part))


class WorkDelivery(NamedTuple):
    """A work item as the consumer received it."""

    item: WorkItem
    message_id: str
    receipt: str
    receive_count: int
