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
    """By the local time of a zone."""

    expression: str
    zone: str = "UTC"
    dst_gap: str = "shift"  # shift | skip; applies to fixed times only
    dst_overlap: str = "first"  # first | second | both; applies to fixed times only


@dataclass(frozen=True, slots=True)
class Schedule:
    """The times of a task's runs, and their bounds.

    `start` is inclusive (None for a rate, which has its own), `end` is exclusive. With `max_runs` the schedule ends after that number of
    runs. Jitter delays each run by a part of `jitter_ms` that depends on the task, but never up to the next run or the end.
    """

    spec: Once | Rate | Cron
    start: int | None = None
    end: int | None = None
    max_runs: int | None = None
    jitter_ms: int = 0
