"""Alerts about time: the rules that a task sets for its runs, and what receivers learn when a run breaks one."""

import re
from dataclasses import dataclass
from enum import StrEnum

LATE_AFTER_S = (10, 86_400)  # the bounds of `late_after_seconds`; the lower one is that of `lifecycle.LATE_MS`
MAX_DURATION_S = (10, 604_800)  # the bounds of `max_duration_seconds`
DONE_WITHIN_H = 18  # `done_by` is at most this number of hours after the run, by the clock on the wall
DAY = 1_440  # minutes
_TIME = re.compile("([01][0-9]|2[0-3]):([0-5][0-9])")


class Alert(StrEnum):
    """A rule about time that a run can break. Each opens an incident of its own."""

    LATE = "late"  # the run has not started within `late_after_ms`
    LONG = "long"  # the run has not ended within `max_duration_ms` of its first start
    NOT_DONE = "not_done"  # the run has not succeeded by `done_by`
    MISSED = "missed"  # the run was skipped because it could not start before its start deadline


@dataclass(frozen=True, slots=True)
class Alerts:
    """The rules of a task. A rule that is None or False does not apply."""

    late_after_ms: int | None = None
    max_duration_ms: int | None = None
    done_by: int | None = None  # a local time in the zone of the task: minutes since midnight
    missed: bool = False

    @property
    def kinds(self) -> tuple[Alert, ...]:
        """The alerts that can come."""
        rules = {
            Alert.LATE: self.late_after_ms is not None,
            Alert.LONG: self.max_duration_ms is not None,
            Alert.NOT_DONE: self.done_by is not None,
            Alert.MISSED: self.missed,
        }
        return tuple(alert for alert, applies in rules.items() if applies)


@dataclass(frozen=True, slots=True)
class DefaultAlerts:
    """The rules of an owner for the tasks that have notifications, and no alerts of their own.

    They never have a `done_by`, which depends on the schedule. `version` rises with each change, which is conditional on it.
    """

    owner: str
    alerts: Alerts
    updated_at: int
    operation: str  # the id of the operation that replans the tasks with these rules
    version: int = 1


def read_time(text: str) -> int:
    """Read a local time. Raises ValueError with the rule.

    >>> read_time("07:30")
    450
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("must be a time of the day from 00:00 to 23:59, such as 07:30")
    return int(found[1]) * 60 + int(found[2])


def written_time(minute: int) -> str:
    """The form of `done_by` in the API.

    >>> written_time(450)
    '07:30'
    """
    return f"{minute // 60:02d}:{minute % 60:02d}"
