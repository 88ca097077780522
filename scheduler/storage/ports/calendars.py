"""The calendars of owners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from scheduler.model.job import TaskKey

if TYPE_CHECKING:  # hot functions do not load these records
    from scheduler.model.calendar import Calendar


class Calendars(Protocol):
    """The calendars of owners, and which tasks use each. `Tasks.store` keeps the latter, in the transaction of the task."""

    def named(self, owner: str, names: Sequence[str]) -> dict[str, Calendar]:
        """Return the calendars that exist, by name (strongly consistent)."""

    def all(self, owner: str) -> list[Calendar]:
        """Return the owner's calendars, by name (strongly consistent)."""

    def put(self, before: Calendar | None, after: Calendar) -> bool:
        """Insert a calendar (`before` None: it must not exist), or replace it if the stored one has the version of `before`.

        False: it has another version, or does not exist. True also if an earlier try, whose answer was lost, applied it.
        """

    def delete(self, calendar: Calendar) -> bool:
        """Delete the calendar if it has this version. False if it has another one, or does not exist."""

    def tasks(self, owner: str, name: str, *, after: str | None, limit: int) -> tuple[list[TaskKey], str | None]:
        """Return a page of the tasks that use a calendar, by id, beyond the task with the id `after`, and the cursor of the next page.

        The cursor is the id of the page's last task. A task may be listed that was deleted. Strongly consistent.
        """
