"""Calendars: named sets of local dates of an owner. `scheduler/tasks/exclusions.py` applies them, `docs/guides/calendars.md` has the rules.

A date is a number of days, as `date.toordinal` counts them.
"""

from dataclasses import dataclass

MOST_DATES = 5_000  # of one calendar
MOST_CALENDARS = 100  # of one owner
NAME = r"[a-z][a-z0-9._-]{0,62}"  # it begins with a letter: no date is a name


@dataclass(frozen=True, slots=True)
class Calendar:
    """A named set of dates. `version` rises with every change, and every change is conditional on it.

    Tasks have copies of the dates, so no run depends on a read of the calendar. A change of the dates is carried to them by an operation.
    """

    owner: str
    name: str
    days: frozenset[int]
    updated_at: int
    source: str | None = None  # where the dates come from, for people
    covers_until: int | None = None  # the last date up to which the dates are known; None: they are complete
    version: int = 1
    withdrawn: bool = False  # it is being deleted: no other task may take it
