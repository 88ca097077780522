"""The schedule of a task. `scheduler/tasks/schedule.py` computes its runs; `docs/reference/schedules.md` has the rules."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Once:
    """At one instant. The zone affects only the local time that is shown, as in `Rate`."""

    at: int
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Rate:
    """At `start`, and every `every_ms` after it."""

    every_ms: int
    start: int
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Cron:
    """By the local time of a zone. A run that several expressions name takes place once."""

    expression: str
    zone: str = "UTC"
    dst_gap: str = "shift"  # shift | skip; applies to fixed times only
    dst_overlap: str = "first"  # first | second | both; applies to fixed times only
    more: tuple[str, ...] = ()  # further expressions

    @property
    def expressions(self) -> tuple[str, ...]:
        """All expressions."""
        return self.expression, *self.more


@dataclass(frozen=True, slots=True)
class Every:
    """At times of the day, every n days, or on weekdays of every n weeks, by the local time of a zone.

    The days count from the local day of `start`, the weeks from its week, which begins on Monday. No run is before `start`.
    """

    count: int
    start: int
    times: tuple[int, ...]  # minutes of the day
    weekdays: tuple[int, ...] = ()  # Monday is 0; empty: `count` is a number of days
    zone: str = "UTC"
    dst_gap: str = "shift"  # as of `Cron`; all times are fixed
    dst_overlap: str = "first"


@dataclass(frozen=True, slots=True)
class Dates:
    """Local dates, counted as `date.toordinal` does: a version of a calendar, or those that the schedule itself names (`name` None)."""

    days: frozenset[int]
    name: str | None = None
    version: int = 0
    covers_until: int | None = None


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The dates on which runs do not take place, and what becomes of these runs. `scheduler/tasks/exclusions.py` has the rules."""

    listed: tuple[Dates, ...]
    only: bool = False  # runs take place on the listed dates only; else on all others
    on_excluded: str = "skip"  # skip | next_day | previous_day
    working_days: tuple[int, ...] = (0, 1, 2, 3, 4)  # the weekdays of a working day; 0 is Monday


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times of a task's runs, and their bounds.

    `start` is inclusive (None for `Rate` and `Every`, which have their own), `end` is exclusive. With `max_runs` the schedule ends after
    that number of runs. Jitter delays each run by a part of `jitter_ms` that depends on the task, but never up to the next run or the end.
    """

    spec: Once | Rate | Cron | Every
    start: int | None = None
    end: int | None = None
    max_runs: int | None = None
    jitter_ms: int = 0
    days: Exclusions | None = None  # None: runs take place on all dates
