"""Shows the runs of a schedule before a task is saved."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler.model import instants
from scheduler.model.calendar import Calendar
from scheduler.model.errors import Invalid
from scheduler.model.schedule import Once, Schedule
from scheduler.tasks import exclusions, schedule_form
from scheduler.tasks.schedule import Run, Skipped, next_runs, skipped


class Preview(NamedTuple):
    """The runs of a schedule by time, with the skipped ones between them, and what is not known about them."""

    runs: list[Run | Skipped]
    warnings: list[str]


def preview(
    form: Mapping[str, object], *, count: int, after: int | None, now: int, calendars: Mapping[str, Calendar] | None = None
) -> Preview:
    """The first `count` runs of a task created with that schedule at `now`, and the times it skips among them. Raises Invalid.

    `calendars`: those of the owner, as far as the form names them.

    With jitter, `at` is an example: the offset within the window follows from the id of the task, which does not exist yet.
    """
    schedule = schedule_form.parse(form, now, calendars)
    since = _since(schedule, after, now)
    runs = next_runs(schedule, since, count)
    ended = schedule.end is not None and len(runs) < min(count, schedule.max_runs or count)
    return Preview(with_skipped(schedule, runs, since, ended=ended), warnings(schedule, runs))


def warnings(schedule: Schedule | None, runs: Sequence[Run]) -> list[str]:
    """A warning for each calendar of the schedule that is not known for all of these runs."""
    return [] if schedule is None else exclusions.unknown(schedule.days, [run.local for run in runs])


def with_skipped(schedule: Schedule, runs: Sequence[Run], since: int, *, ended: bool) -> list[Run | Skipped]:
    """The runs later than `since`, and the times skipped among them; with `ended` (no run is left), also up to the end of the schedule."""
    last = runs[-1].nominal if runs else since
    until = schedule.end if ended and schedule.end is not None else last
    return sorted([*runs, *skipped(schedule, since, until)], key=lambda shown: (shown.nominal, shown.at is not None))


def _since(schedule: Schedule, after: int | None, now: int) -> int:
    """The instant after which runs are shown: never before now, except for a past `at` that is still accepted and runs at once."""
    if after is None:
        return min(now, schedule.spec.at - 1) if isinstance(schedule.spec, Once) else now
    instants.check_start("after", after, now)
    if schedule.max_runs is not None:
        raise Invalid.field("after", "must be absent beside max_runs, which counts from now")
    return max(after, now)
