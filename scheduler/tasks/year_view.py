"""The year of a schedule or a task: its days to come by the schedule, and the runs that were due, by status."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.model import lifecycle
from scheduler.model.calendar import Calendar
from scheduler.model.errors import Invalid
from scheduler.model.job import Job, Status
from scheduler.model.schedule import Once, Schedule
from scheduler.model.task import Task
from scheduler.storage.ports import Jobs
from scheduler.tasks import calendar_form, exclusions, planning, schedule_form, year
from scheduler.tasks.year import Day, begin_of, day_of_instant

MOST_AWAY = 5 * 366  # days from today to the first day of a view
MOST_READ = 2_000  # jobs
CHUNK = 100  # jobs per read


@dataclass(frozen=True, slots=True)
class Past:
    """The runs that were due, by local date and status, of all jobs at or after `counted_from` (None: of all that were asked for)."""

    runs: Mapping[int, Counter[Status]] = field(default_factory=dict)
    counted_from: int | None = None


@dataclass(frozen=True, slots=True)
class Year:
    """The days with runs or marks among `count` local dates of a zone from the date `first` on. `past` None: not counted."""

    zone: str
    today: int
    first: int
    count: int
    days: Mapping[int, Day]
    past: Past | None
    warnings: list[str]


def of_form(form: Mapping[str, object], first: int | None, count: int, now: int, calendars: Mapping[str, Calendar]) -> Year:
    """The year of a task created with that schedule at `now`. Raises Invalid. `calendars`: the calendars that the form names."""
    schedule = schedule_form.parse(form, now, calendars)
    since = min(now, schedule.spec.at - 1) if isinstance(schedule.spec, Once) else now
    return _year(schedule, (since, 0), first, count, now, "first_day")


def of_task(task: Task, first: int | None, count: int, now: int, jobs: Jobs | None) -> Year:
    """The year of a task: runs to come, none while it is inactive, and runs that were due. Raises Invalid. `jobs` None: without these."""
    return _year(task.schedule, planning.position(task, now), first, count, now, "from", task, jobs)


def _year(
    schedule: Schedule | None,
    position: tuple[int, int] | None,
    first: int | None,
    count: int,
    now: int,
    name: str,
    task: Task | None = None,
    jobs: Jobs | None = None,
) -> Year:
    zone = "UTC" if schedule is None else schedule.spec.zone
    today = day_of_instant(now, zone)
    first = today if first is None else first
    if abs(first - today) > MOST_AWAY:
        raise Invalid.field(name, f"must be within {MOST_AWAY} days of today, {calendar_form.write_date(today)}")
    found = [] if schedule is None or position is None else year.days(schedule, position[0], first, count, planned=position[1])
    past = None if task is None or jobs is None else _past(task, zone, begin_of(first, zone), begin_of(first + count, zone), now, jobs)
    last = [calendar_form.write_date(day.date) for day in found if day.planned][-1:]
    warnings = [] if schedule is None else exclusions.unknown(schedule.days, last)
    return Year(zone, today, first, count, {day.date: day for day in found}, past, warnings)


def _past(task: Task, zone: str, since: int, until: int, now: int, jobs: Jobs) -> Past:
    """The runs due from `since` on, before `until` and not after `now`: the newest first, at most `MOST_READ` of them."""
    until = min(until, now + 1)
    if since >= until:
        return Past()
    found, after, read = defaultdict[int, Counter[Status]](Counter), None, 0
    last: Job | None = None
    while read < MOST_READ:
        page = jobs.of_task(task.key, since=since, until=until, after=after, limit=CHUNK, newest_first=True)
        for last in page.jobs:
            found[day_of_instant(last.scheduled_at, zone)][lifecycle.status(last, now)] += 1
        read, after = read + len(page.jobs), page.cursor
        if after is None:
            return Past(found)
    return Past(found, None if last is None else last.scheduled_at)
