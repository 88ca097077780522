"""Calendars applied to a schedule: which of its runs take place, and on which dates. Pure.

An exclusion is a local date. A run is excluded by the date of its nominal time in the time zone of its schedule. An
excluded run is skipped or, by `on_excluded`, moved to the same local time of the next or previous working day. A working day is one of
the schedule's `working_days` that its calendars do not exclude. Runs that come to the same instant are one run.

The runs after an instant do not depend on where a search for them began: a run that is moved past the instant from a date before it is
among them. So all who compute the runs of a task agree, as they do without calendars.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from heapq import heappop, heappush

from scheduler.model import instants
from scheduler.model.schedule import Cron, Dates, Every, Exclusions, Schedule
from scheduler.tasks import zones

MINUTE = 60_000
DAY_MS = 24 * 60 * MINUTE
ON_EXCLUDED = ("skip", "next_day", "previous_day")
MOST_MOVED = 100  # days; a run without a working day that near is skipped
MOST_A_DAY = 96  # runs of a day, of a schedule that moves runs
HORIZON_MS = 41 * 366 * DAY_MS  # a search over excluded runs ends there, as that of the rarest cron expression does

Time = tuple[int, str, str | None]  # the instant (ms), its local time, what is odd about it
Times = Callable[[int], Iterator[Time]]  # the times of a schedule after an instant, without calendars


def applied(schedule: Schedule, times: Times, instant: int, local_time: Callable[[int, str], str]) -> Iterator[Time]:
    """The times after `instant` that calendars leave, with moved ones, in strictly ascending order."""
    assert schedule.days is not None
    if schedule.days.on_excluded == "skip":
        return _left(schedule.days, schedule.spec.zone, times, instant)
    return _Moving(schedule, local_time).times(times, instant)


def excluding(rule: Exclusions, day: int) -> str | None:
    """The reason why no run takes place on the date, None if runs do."""
    if rule.only:
        return None if any(day in dates.days for dates in rule.listed) else f"not in {' or '.join(map(_name, rule.listed))}"
    found = next((dates for dates in rule.listed if day in dates.days), None)
    return None if found is None else f"excluded by {_name(found)}"


def works(rule: Exclusions, day: int) -> bool:
    """Whether the date is a working day."""
    return (day + 6) % 7 in rule.working_days and excluding(rule, day) is None


def working_day(rule: Exclusions, day: int) -> int | None:
    """The date to which the runs of an excluded date are moved; None if no working day is near."""
    step = 1 if rule.on_excluded == "next_day" else -1
    return next((each for n in range(1, MOST_MOVED + 1) if works(rule, each := day + n * step)), None)


def unknown(rule: Exclusions | None, locals: list[str]) -> list[str]:
    """A warning for each calendar whose dates are not known for all of these local times."""
    last = max(map(day_of, locals), default=0)
    return [
        f"the calendar {dates.name} is known until {date.fromordinal(dates.covers_until).isoformat()}, and runs are later"
        for dates in (() if rule is None else rule.listed)
        if dates.covers_until is not None and dates.covers_until < last
    ]


def day_of(local: str) -> int:
    """The date of a local time."""
    return date.fromisoformat(local[:10]).toordinal()


def _name(dates: Dates) -> str:
    return dates.name or "its dates"


def _left(rule: Exclusions, zone: str, times: Times, instant: int) -> Iterator[Time]:
    """The times on other dates. The search leaps over excluded dates, so a schedule of every second costs no more than a daily one."""
    following, limit, at = _Following(rule), instant + HORIZON_MS, instant
    while True:
        for time in times(at):
            if time[0] > limit:
                return
            day = day_of(time[1])
            if excluding(rule, day) is not None:
                break
            yield time
            limit = time[0] + HORIZON_MS
        else:
            return
        allowed = following.after(day)
        if allowed is None or (first := begin(allowed, zone)) > limit:
            return
        at = max(time[0], first - 1)


class _Following:
    """The next date on which runs take place."""

    def __init__(self, rule: Exclusions) -> None:
        self._rule = rule
        self._dates = sorted(frozenset[int]().union(*(dates.days for dates in rule.listed)))

    def after(self, day: int) -> int | None:
        place = bisect_right(self._dates, day)
        if self._rule.only:
            return self._dates[place] if place < len(self._dates) else None
        day += 1
        while place < len(self._dates) and self._dates[place] == day:
            place, day = place + 1, day + 1
        return day if day <= date.max.toordinal() else None


class _Moving:
    """A schedule that moves its excluded runs."""

    def __init__(self, schedule: Schedule, local_time: Callable[[int, str], str]) -> None:
        assert schedule.days is not None
        self._rule, self._zone, self._local_time = schedule.days, schedule.spec.zone, local_time
        self._start, self._end, self._spec = schedule.start, schedule.end, schedule.spec
        self._step = 1 if self._rule.on_excluded == "next_day" else -1
        self._moves = dict[int, int | None]()
        listed = [max(dates.days) for dates in self._rule.listed if dates.days]
        self._last = max(listed, default=0) + MOST_MOVED if self._rule.only else date.max.toordinal()

    def times(self, times: Times, instant: int) -> Iterator[Time]:
        last, limit, waiting = instant, instant + HORIZON_MS, list[tuple[int, str, str]]()
        for at, local, odd in times(self._source(instant)):
            if at > limit or (self._end is not None and at >= self._end):
                break
            day = day_of(local)
            if day > self._last:
                break
            why = excluding(self._rule, day)
            landed = [(at, local, odd)] if why is None else self._moved(day, local, why)
            for time in landed:
                heappush(waiting, (time[0], time[1], time[2] or "~"))  # a moved run is shown as such, before one that is not
            limit = max([limit, *(time[0] + HORIZON_MS for time in landed)])
            sure = at if self._step > 0 else begin(self._working(day) or day - MOST_MOVED, self._zone) - 1
            while waiting and waiting[0][0] <= sure:
                if (time := _shown(heappop(waiting)))[0] > last:
                    yield time
                    last = time[0]
        while waiting:
            if (time := _shown(heappop(waiting)))[0] > last:
                yield time
                last = time[0]

    def _source(self, instant: int) -> int:
        """The instant after which the times begin that may come to be later than `instant`."""
        if self._step < 0:
            return instant
        day = day_of(self._local_time(instant, self._zone))
        before = next((each for each in range(day - 1, day - MOST_MOVED - 1, -1) if self._works(each)), day - MOST_MOVED - 1)
        first = min(instant, begin(before + 1, self._zone) - 1)
        return first if self._start is None else max(first, self._start - 1)

    def _moved(self, day: int, local: str, why: str) -> list[Time]:
        """The excluded run at the same local time of its working day; a clock change may drop it there, or double it."""
        to = self._working(day)
        if to is None:
            return []
        at = datetime.combine(date.fromordinal(to), datetime.fromisoformat(local).time())
        note = f"{why}, moved from {local[:10]}"
        return [(found, self._local_time(found, self._zone), note) for found in self._instants(at)]

    def _instants(self, local: datetime) -> list[int]:
        """The instants of a local time, by the rules of the schedule for clock changes."""
        first, second = (_instant(local, self._zone, fold) for fold in (0, 1))
        gap, overlap = (self._spec.dst_gap, self._spec.dst_overlap) if isinstance(self._spec, Cron | Every) else ("shift", "first")
        if first > second:  # the clock skips it: it lies between the two
            return [] if gap == "skip" else [_end_of_gap(second // MINUTE, first // MINUTE, self._zone)]
        return sorted({"first": {first}, "second": {second}}.get(overlap, {first, second}))

    def _working(self, day: int) -> int | None:
        """The next working day in the direction in which runs are moved."""
        if day not in self._moves:
            self._moves[day] = working_day(self._rule, day)
        return self._moves[day]

    def _works(self, day: int) -> bool:
        return works(self._rule, day)


def _shown(waiting: tuple[int, str, str]) -> Time:
    at, local, odd = waiting
    return at, local, None if odd == "~" else odd


def begin(day: int, zone: str) -> int:
    """The first instant of the local date."""
    return _instant(datetime.combine(date.fromordinal(day), datetime.min.time()), zone, 0)


def _instant(local: datetime, zone: str, fold: int) -> int:
    return (local.replace(tzinfo=zones.zone(zone), fold=fold).astimezone(UTC) - instants.EPOCH) // timedelta(milliseconds=1)


def _end_of_gap(low: int, high: int, zone: str) -> int:
    """The first instant after a change of the clock between two minutes."""
    later = zones.offset_at(zones.zone(zone), high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if zones.offset_at(zones.zone(zone), middle) == later else (middle, high)
    return high * MINUTE
