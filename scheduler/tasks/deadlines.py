"""The deadlines of a watched run, and what follows from its job at an instant. Pure.

A judgement follows from the facts of the job alone, not from when it is made: a run that started late is late, also if a worker judges it
hours afterwards.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice, takewhile
from typing import NamedTuple

from scheduler.model import lifecycle
from scheduler.model.alerts import DAY, DONE_WITHIN_H, Alert, Alerts, written_time
from scheduler.model.job import Job
from scheduler.model.schedule import Once, Schedule
from scheduler.tasks import zones
from scheduler.tasks.schedule import Run, after

MINUTE_MS, HOUR_M = 60_000, 60
SETTLED_MS = 2_000  # a deadline is judged this much later: ends are stored by then, and gates have requeued the runs they do not admit
START_MS = 1_000  # the first check of the longest duration comes this much later, since no start is exact
POLL_PART = 4  # a run that has not started is checked for its longest duration after this part of its delay, at the earliest
CHECKED_RUNS, CHECKED_MS = 400, 400 * DAY * MINUTE_MS  # the runs of a schedule whose `done_by` is checked


class Broken(NamedTuple):
    """A rule that a run has broken, and its deadline."""

    alert: Alert
    at: int


class Judgement(NamedTuple):
    """The result of judging a run. `next_at`: when it is judged again; None: never. `until`: the deadlines until then are judged."""

    broken: tuple[Broken, ...]
    next_at: int | None
    until: int


def zone_of(schedule: Schedule | None) -> str:
    """The time zone of the local times of a task."""
    return "UTC" if schedule is None else schedule.spec.zone


def first(alerts: Alerts, zone: str, scheduled_at: int, nominal_at: int | None) -> int | None:
    """When a run that is planned is judged first; None: it has no deadline. `nominal_at` None: it is a manual run."""
    found = []
    if alerts.late_after_ms is not None:
        found.append(scheduled_at + alerts.late_after_ms)
    if alerts.max_duration_ms is not None:
        found.append(scheduled_at + alerts.max_duration_ms + START_MS)
    if alerts.done_by is not None and nominal_at is not None:
        found.append(done_at(alerts.done_by, zone, nominal_at))
    return min(found) + SETTLED_MS if found else None


def done_at(done_by: int, zone: str, nominal_at: int) -> int:
    """The first instant after `nominal_at` at which the clock on the wall shows `done_by`, or jumps over it."""
    day = _local(nominal_at, zone).date()
    instants = (at for days in range(-1, 3) for at in _instants(day + timedelta(days), done_by, zone))
    return min(at for at in instants if at > nominal_at)


def refusal(done_by: int, schedule: Schedule, now: int) -> str | None:
    """The rule that a `done_by` breaks with this schedule; None: it fits the runs of the coming year, or the first `CHECKED_RUNS`."""
    begin = schedule.spec.at - 1 if isinstance(schedule.spec, Once) else now
    runs = after(schedule, begin)
    for run in islice(takewhile(lambda run: run.nominal <= begin + CHECKED_MS, runs), CHECKED_RUNS):
        if (wait := _wall_wait(done_by, run)) > DONE_WITHIN_H * HOUR_M:
            return (
                f"must come within {DONE_WITHIN_H} hours after each run: after the run at {run.local}, "
                f"{written_time(done_by)} comes only {wait // HOUR_M} h {wait % HOUR_M:02d} min later"
            )
    return None


def judge(job: Job, alerts: Alerts, zone: str, since: int, now: int) -> Judgement:
    """Judge the deadlines of a run after `since`, as of `now`, when its job was read."""
    until, deadlines = now - SETTLED_MS, list(_deadlines(job, alerts, zone, now))
    broken = tuple(Broken(alert, at) for alert, at, event in deadlines if since < at <= until and not event.is_within(at))
    ahead = [at for _, at, event in deadlines if at > until and not event.is_within(at)]
    if (poll := _poll(job, alerts, until)) is not None:
        ahead.append(poll)
    return Judgement(broken, min(ahead) + SETTLED_MS if ahead else None, until)


class _Event(NamedTuple):
    """The event that must come before a deadline. `at` None: it has not come."""

    at: int | None

    def is_within(self, deadline: int) -> bool:
        return self.at is not None and self.at <= deadline


def _deadlines(job: Job, alerts: Alerts, zone: str, now: int) -> Iterator[tuple[Alert, int, _Event]]:
    start, end = first_start(job, now), ended_at(job)
    if alerts.late_after_ms is not None:
        yield Alert.LATE, job.scheduled_at + alerts.late_after_ms, _Event(end if start is None else start)
    if alerts.max_duration_ms is not None and start is not None and not job.redrives:
        yield Alert.LONG, start + alerts.max_duration_ms, _Event(end)
    nominal = None if job.origin is None else job.origin.nominal_at
    if alerts.done_by is not None and nominal is not None:
        yield Alert.NOT_DONE, done_at(alerts.done_by, zone, nominal), _Event(settled_at(job))


def first_start(job: Job, now: int) -> int | None:
    """When the first attempt of the job started; None: it has not started by `now`."""
    delay = lifecycle.delay(job, now)
    return None if delay is None else job.scheduled_at + delay


def ended_at(job: Job) -> int | None:
    """When the job ended; None: it is open."""
    return None if lifecycle.is_open(job) else getattr(job, lifecycle.FINAL_TIMES[lifecycle.state(job)])


def settled_at(job: Job) -> int | None:
    """When the job succeeded, or a user or a rule decided that it does not run; None: it has yet to succeed."""
    return None if lifecycle.is_open(job) or lifecycle.state(job) in lifecycle.DEAD else ended_at(job)


def _poll(job: Job, alerts: Alerts, until: int) -> int | None:
    """When a run that has not started is checked for its longest duration. The longer it waits, the rarer it is checked."""
    if alerts.max_duration_ms is None or not lifecycle.is_open(job) or job.redrives or first_start(job, until + SETTLED_MS) is not None:
        return None
    earliest = job.scheduled_at + alerts.max_duration_ms + START_MS
    return earliest if earliest > until else until + max(alerts.max_duration_ms, (until - job.scheduled_at) // POLL_PART)


def _instants(day: date, minute: int, zone: str) -> Iterable[int]:
    """The instants at which the clock shows this minute of the day: two if it is set back, the end of the gap if it jumps over it."""
    wall = datetime(day.year, day.month, day.day, minute // 60, minute % 60, tzinfo=zones.zone(zone))
    found = {int(wall.replace(fold=fold).timestamp()) * 1_000 for fold in (0, 1)}
    shown = {at for at in found if _local(at, zone).replace(tzinfo=None) == wall.replace(tzinfo=None)}
    return shown or {_gap_end(max(found) // MINUTE_MS, zone) * MINUTE_MS}


def _gap_end(minute: int, zone: str) -> int:
    """The UTC minute of the last change of the clock up to this one."""
    offset = zones.offset_at(zones.zone(zone), minute)
    while zones.offset_at(zones.zone(zone), minute - 1) == offset:
        minute -= 1
    return minute


def _local(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at // 1_000, UTC).astimezone(zones.zone(zone))


def _wall_wait(done_by: int, run: Run) -> int:
    """The minutes from a run to the next `done_by`, by the clock on the wall."""
    shown = datetime.fromisoformat(run.local)
    return (done_by - shown.hour * 60 - shown.minute - 1) % DAY + 1
