"""Work items: the messages of the work queue. Each drives the engine step by step."""

from enum import StrEnum
from typing import NamedTuple

from scheduler.model.job import UnitKey


class WorkKind(StrEnum):
    """The things that a work item drives."""

    UNIT = "unit"  # a unit of a minute or of the overflow: dispatch, reconcile, close
    CHECKS = "checks"  # the later checks that are due, and one page of the sweep
    RESUME = "resume"  # units that can continue after a lane was resumed, or a user was enabled or deleted
    RELEASE = "release"  # the queue of a limited target: which of the waiting jobs may start
    OPERATION = "operation"  # a running operation


class WorkItem(NamedTuple):
    """One item of work. `of` and `part` name it: a minute and the part of its unit, a target, or an owner and the id of an operation."""

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
