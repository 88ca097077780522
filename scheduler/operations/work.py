"""The work of an operation: how its action reads candidates, and how it changes them."""

from typing import Any, Protocol

from scheduler.dead_letters.redrive import Redrives
from scheduler.model.operation import Action, Candidate, Counts, Operation
from scheduler.operations.cancel_jobs import CancelJobs
from scheduler.operations.replay_jobs import ReplayJobs
from scheduler.storage.ports import Ports


class Work(Protocol):
    """The part of a step that depends on the action. A candidate is chosen by its key, that of a job or of a task."""

    @property
    def at_most(self) -> int:
        """The largest chunk; `apply` must take less time with it than a message stays hidden."""

    def read(self, operation: Operation, after: str | None) -> tuple[list[Candidate], str | None]:
        """A page of candidates beyond the position `after` (None: from the beginning), and the position at which to read on."""

    def key(self, owner: str, id: str) -> Any:
        """The key of the candidate with this id."""

    def takes_changes(self, key: Any) -> bool:
        """Whether the table takes changes at present, though it refuses this one. Raises Unavailable if it does not answer."""

    def apply(self, operation: Operation, chosen: list[Candidate]) -> Counts:
        """Carry out the action on the chosen candidates, each once. Idempotent. Raises Unavailable."""


def work_of(record: Operation, ports: Ports) -> Work:
    """The work of an operation."""
    if record.action is Action.REDRIVE:
        return Redrives(ports)
    if record.action is Action.CANCEL_JOBS:
        return CancelJobs(ports)
    if record.action is Action.REPLAY_JOBS:
        return ReplayJobs(ports)
    from scheduler.operations.apply_alerts import ApplyAlerts  # they load schedules, which would slow down each cold start
    from scheduler.operations.apply_calendar import ApplyCalendar
    from scheduler.operations.change_tasks import ChangeTasks

    if record.action is Action.APPLY_CALENDAR:
        return ApplyCalendar(ports)
    if record.action is Action.APPLY_ALERTS:
        return ApplyAlerts(ports)
    return ChangeTasks(ports)
