"""The tasks table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from scheduler.model.job import Job, OwnKey, Receipt, RunLock, TaskHead, TaskKey
from scheduler.storage.ports.results import Found, Written

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.task import Task, TaskPage


class Tasks(Protocol):
    """The tasks table: tasks, their replenish index, and the run locks of tasks whose runs must not overlap."""

    def heads(self, keys: Sequence[TaskKey]) -> Found[TaskKey, TaskHead]:
        """Return the heads of the tasks that exist: the part that runs need (strongly consistent)."""

    def holders(self, keys: Sequence[TaskKey]) -> Found[TaskKey, RunLock]:
        """Return the run locks that exist (strongly consistent)."""

    def hold(self, changes: Sequence[tuple[RunLock | None, RunLock]]) -> list[Written]:
        """Replace each run lock if the stored one has the version of the pair's first element (None: no lock is stored).

        NO: it has another version. YES also if an earlier try, whose answer was lost, applied it. One lock may appear several times.
        """

    def check(self, task: Task) -> None:
        """Raise TooLarge if the task needs more bytes in the table than `item_limit.LIMIT`. No call of AWS."""

    def store(
        self, before: Task | None, after: Task, runs: Sequence[Job], receipt: Receipt | None = None, *, former: str | None = None
    ) -> bool:
        """In one transaction, replace the task `before` (None: it must not exist) by `after`, insert the runs and store the receipt.

        Each calendar of `after` must have the version that the task names, and one that `before` does not use must not be withdrawn. The
        tasks that use a calendar are kept with it.
        With a new task that has a key, also store the entry of the key, which must name the task `former` until then (None: no entry).
        At most `task.STORED_WITH_IT` runs. False, and nothing is changed, if the stored task has another generation than `before`, or if
        the task, the id of a run or the key of the receipt exists, if the entry names another task than `former`, or if a calendar has
        another version. True also if an earlier try, whose answer was lost, applied it.
        """

    def of_key(self, own: OwnKey) -> str | None:
        """Return the id of the task that has this key or had it last, None if none has had it (strongly consistent)."""

    def delete(self, task: Task) -> bool:
        """Delete the task if it has this generation, its run lock, the entry of its key, and the notes that it uses calendars.

        False if it has another generation or does not exist. A refusal while deleting these others is ignored: those of a deleted
        task have no effect.
        """

    def move_on(self, moves: Sequence[tuple[Task, Task]]) -> list[Written]:
        """Record for each task that more runs are stored: replace `planned_until`, `planned`, `replenish` and `gap` of the pair's first
        element by those of the second.

        NO: the stored task has another generation, `planned_until` or `gap` than the first element, or does not exist. YES also if an
        earlier try, whose answer was lost, applied it. No task may be given twice.
        """

    def get(self, key: TaskKey) -> Task | None:
        """Return the task, None if there is none (strongly consistent)."""

    def get_many(self, keys: Sequence[TaskKey]) -> Found[TaskKey, Task]:
        """Return the tasks that exist (strongly consistent)."""

    def page(self, owner: str, *, after: str | None, limit: int) -> TaskPage:
        """Return a page of an owner's tasks, newest first, beyond the task with the id `after` (strongly consistent).

        The cursor is the id of the page's last task.
        """

    def to_replenish(self, slot: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        """Return a page of the tasks in one slot of the replenish index, and the cursor of the next page. Eventually consistent."""

    def overdue(self, before: str, *, after: str | None = None) -> tuple[list[TaskKey], str | None]:
        """Return a page of the tasks whose replenish slot is before the minute `before`, and the cursor of the next page.

        Eventually consistent.

        It scans the (small) replenish index: for repair only.
        """
