"""Shows the runs of a schedule before a task is saved, page by page."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

from scheduler.model import instants
from scheduler.model.calendar import Calendar
from scheduler.model.errors import Invalid
from scheduler.model.schedule import Once, Schedule
from scheduler.tasks import exclusions, schedule_form
from scheduler.tasks.schedule import HORIZON, MINUTE, Run, Skipped, skipped
from scheduler.tasks.schedule import after as runs_after

MOST_RUNS = 10_000  # of all pages together
MOST_UNBOUNDED = 100  # of a page without `days`: the runs of a rare date are centuries apart
MOST_DAYS = 366
FAR = instants.LAST - 3 * HORIZON * MINUTE  # no search comes near the last year that a date can have
DAY_MS = 86_400_000


class Position(NamedTuple):
    """The beginning of a page: the time of the first page, the nominal time after which this page begins, the runs before it."""

    now: int
    since: int
    shown: int


class Preview(NamedTuple):
    """The runs of a schedule by time, with the skipped ones between them, and what is not known about them."""

    runs: list[Run | Skipped]
    warnings: list[str]
    following: Position | None = None  # None: no page follows


def preview(
    form: Mapping[str, object],
    *,
    count: int,
    after: int | None,
    now: int,
    calendars: Mapping[str, Calendar] | None = None,
    days: int | None = None,
    position: Position | None = None,
) -> Preview:
    """A page of the runs of a task created with that schedule at `now`, and the times it skips among them. Raises Invalid.

    The page has `count` runs; all pages together have `MOST_RUNS`, and with `days` the runs of that number of days of 24 hours.
    `calendars`: the owner's calendars that the form names. `position`: the beginning of the page; None: the first page.

    With jitter, `at` is an example: the offset within the window follows from the id of the task, which does not exist yet.
    """
    if days is None and count > MOST_UNBOUNDED:
        raise Invalid.field("count", f"must be at most {MOST_UNBOUNDED} without days")
    first = now if position is None else position.now
    schedule = schedule_form.parse(form, first, calendars)
    begin = _since(schedule, after, first)
    page = Position(first, begin, 0) if position is None else position
    until = _until(schedule, None if days is None else begin + days * DAY_MS + 1)
    count = min(count, MOST_RUNS - page.shown)
    found = runs_after(schedule, page.since, planned=page.shown)
    runs = list(islice(takewhile(lambda run: run.nominal < (FAR if until is None else until), found), count + 1))
    is_last, runs = len(runs) <= count, runs[:count]
    shown = page.shown + len(runs)
    following = None if is_last or shown == MOST_RUNS else Position(first, runs[-1].nominal, shown)
    ended = is_last and shown != schedule.max_runs
    return Preview(with_skipped(schedule, runs, page.since, until=until if ended else None), warnings(schedule, runs), following)


def position_of(cursor: str | None, now: int) -> Position | None:
    """The position that a page's cursor names: its numbers, joined by dots. Raises Invalid for any other text."""
    if cursor is None:
        return None
    found = re.fullmatch(r"([0-9]{1,13})\.([0-9]{1,15})\.([0-9]{1,4})", cursor)
    position = Position(*map(int, found.groups())) if found else None
    if position is None or not now - DAY_MS <= position.now <= now or not position.now - DAY_MS <= position.since < FAR:
        raise Invalid.field("cursor", "must be the cursor of an answer of the last day, unchanged")
    return position


def warnings(schedule: Schedule | None, runs: Sequence[Run]) -> list[str]:
    """A warning for each calendar of the schedule that is not known for all of these runs."""
    return [] if schedule is None else exclusions.unknown(schedule.days, [run.local for run in runs])


def with_skipped(schedule: Schedule, runs: Sequence[Run], since: int, *, until: int | None) -> list[Run | Skipped]:
    """The runs later than `since`, and the times skipped among them; with `until` (no run is left before it), also up to that instant."""
    last = runs[-1].nominal if runs else since
    left_out = skipped(schedule, since, last if until is None else until)
    return sorted([*runs, *left_out], key=lambda shown: (shown.nominal, shown.at is not None))


def _until(schedule: Schedule, bound: int | None) -> int | None:
    """The instant before which runs are shown; None: there is none."""
    return min((each for each in (schedule.end, bound) if each is not None), default=None)


def _since(schedule: Schedule, after: int | None, now: int) -> int:
    """The instant after which runs are shown: never before now, except for a past `at` that is still accepted and runs at once."""
    if after is None:
        return min(now, schedule.spec.at - 1) if isinstance(schedule.spec, Once) else now
    instants.check_start("after", after, now)
    if schedule.max_runs is not None:
        raise Invalid.field("after", "must be absent beside max_runs, which counts from now")
    return max(after, now)
