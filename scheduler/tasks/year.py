"""The days of a schedule: for each local date the number of its runs, and what is odd about the date. Pure.

Most dates are counted by the local times that the schedule names. Only dates near a change of the clock or a bound of the schedule, and
dates to which runs are moved, have their runs computed one by one. So a year of a task that runs every second costs little.

Dates are numbered as `date.toordinal` does.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from scheduler.model import instants
from scheduler.model.schedule import Cron, Every, Once, Rate, Schedule
from scheduler.tasks import cron, exclusions, rhythm, zones
from scheduler.tasks.exclusions import DAY_MS, day_of
from scheduler.tasks.schedule import after

MOST_DAYS = 366  # of an answer
_FAR = instants.LAST + 1
_NEAR = 1  # dates before and after a change of the clock on which local times may occur twice, or not at all


@dataclass(frozen=True, slots=True)
class Day:
    """A local date. `planned`: its runs, by their nominal times."""

    date: int
    planned: int = 0
    clock_change: bool = False  # the clock changes on this date, and the schedule names a time of it
    excluded: str | None = None  # why the runs that the schedule names do not take place on this date
    moved_to: int | None = None  # the date to which the runs of this excluded date are moved
    moved_from: tuple[int, ...] = ()  # the excluded dates whose runs are moved to this one

    @property
    def is_plain(self) -> bool:
        """Whether nothing is to be said about the date."""
        return self == Day(self.date)


def days(schedule: Schedule, since: int, first: int, count: int, *, planned: int = 0) -> list[Day]:
    """The days with runs or marks among `count` local dates from the date `first` on, in order.

    Only runs later than the instant `since` are counted. `planned` is the number of runs up to `since`, which `max_runs` includes.
    """
    begin = day_of_instant(since, schedule.spec.zone)
    if schedule.max_runs is None:
        begin = max(begin, first)
    found = _days(schedule, since, begin, first + count - begin)
    if schedule.max_runs is not None:
        found = _limited(found, max(0, schedule.max_runs - planned))
    return [day for day in found if day.date >= first and not day.is_plain]


def day_of_instant(at: int, zone: str) -> int:
    """The local date of an instant (ms)."""
    return rhythm.local_day(at, zone) + cron.EPOCH_DAY


def begin_of(date: int, zone: str) -> int:
    """The first instant (ms) of a local date."""
    return exclusions.begin(date, zone)


def _limited(found: Iterator[Day], left: int) -> Iterator[Day]:
    """The days up to the last of the runs that are left. An excluded date is shown only if a run follows it."""
    waiting = list[Day]()
    for day in found:
        if left <= 0:
            return
        waiting.append(replace(day, planned=min(day.planned, left)))
        left -= day.planned
        if day.planned:
            yield from waiting
            waiting = []


def _days(schedule: Schedule, since: int, first: int, count: int) -> Iterator[Day]:
    """Every date of the span, also plain ones; `max_runs` does not apply."""
    if count <= 0:
        return
    named = _Named(schedule, since, first, first + count - 1)
    if schedule.days is None:
        yield from (Day(date, named.runs(date), named.is_changed(date)) for date in named.dates)
        return
    rule, sources = schedule.days, defaultdict[int, list[int]](list)
    move = partial(exclusions.working_day, rule)
    reach = exclusions.MOST_MOVED if rule.on_excluded != "skip" else 0
    around = _Named(schedule, since - reach * DAY_MS, first - reach, first + count - 1 + reach) if reach else named
    for date in around.dates if reach else ():
        if exclusions.excluding(rule, date) is not None and around.runs(date) and (to := move(date)) is not None:
            sources[to].append(date)
    for date in named.dates:
        why = exclusions.excluding(rule, date)
        if why is not None:
            yield Day(date, 0, False, why, move(date) if reach else None) if named.runs(date) or named.is_changed(date) else Day(date)
        elif date in sources and named.is_within(date):
            runs = None if named.is_odd(date) else around.together([date, *sources[date]])
            if runs is None:
                runs = _one_by_one(schedule, since, date, date)[date]
            yield Day(date, runs, named.is_changed(date), moved_from=tuple(sources[date]))
        else:
            yield Day(date, named.runs(date), named.is_changed(date))


def _one_by_one(schedule: Schedule, since: int, first: int, last: int) -> defaultdict[int, int]:
    """The number of runs of each date from `first` to `last`, computed run by run. Dates beside them may be incomplete."""
    zone, counts = schedule.spec.zone, defaultdict[int, int](int)
    until = begin_of(last + 1, zone) + _NEAR * DAY_MS
    end = until + exclusions.MOST_MOVED * DAY_MS  # runs of dates before it may be moved to these dates
    end = end if schedule.end is None else min(end, schedule.end)
    for run in after(replace(schedule, end=end, max_runs=None, jitter_ms=0), max(since, begin_of(first - _NEAR, zone) - 1)):
        if run.nominal >= until:
            break
        counts[day_of(run.local)] += 1
    return counts


class _Named:
    """The times that a schedule names between two dates, whether excluded or not."""

    def __init__(self, schedule: Schedule, since: int, first: int, last: int) -> None:
        self.dates = range(first, last + 1)
        self._schedule = replace(schedule, days=None, max_runs=None, jitter_ms=0)
        self._spec, self._zone = schedule.spec, schedule.spec.zone
        begins = [each for each in (schedule.start, self._spec.start if isinstance(self._spec, Every) else None) if each is not None]
        self._since = max([since, *(each - 1 for each in begins)])
        self._low = day_of_instant(self._since + 1, self._zone)
        self._end = _FAR if schedule.end is None else schedule.end
        self._high = last + 1 if schedule.end is None else day_of_instant(schedule.end - 1, self._zone)
        self._changes = _changes(self._zone, first - _NEAR, last + _NEAR)
        near = {each for date in self._changes for each in range(date - _NEAR, date + _NEAR + 1)}
        self._odd = near | {self._low, self._high}  # not each of their times has exactly one run
        self._times = [] if isinstance(self._spec, Once | Rate) else _times(self._spec)
        self._computed = self._compute() if self._times else {}

    def runs(self, date: int) -> int:
        """The number of runs of the date."""
        if not self.is_within(date):
            return 0
        if isinstance(self._spec, Once):
            return int(date == day_of_instant(self._spec.at, self._zone) and self._spec.at < self._end)
        if isinstance(self._spec, Rate):
            return self._of_rate(self._spec, date)
        found = self._computed.get(date)
        return self._named(date).bit_count() if found is None else found

    def is_within(self, date: int) -> bool:
        """Whether the date is within the bounds of the schedule, and not before `since`."""
        return self._low <= date <= self._high

    def is_odd(self, date: int) -> bool:
        """Whether not each of the times of the date has exactly one run: it is near a clock change or a bound."""
        return date in self._odd

    def together(self, dates: Sequence[int]) -> int | None:
        """The number of runs of a date with those that are moved to it from other dates; None if one of the dates is odd."""
        if any(map(self.is_odd, dates)):
            return None
        if isinstance(self._spec, Rate):
            rate, begins = self._spec, [begin_of(date, self._zone) for date in dates]
            return len({at for begin in begins for at in range((rate.start - begin) % rate.every_ms, DAY_MS, rate.every_ms)})
        mask = 0
        for date in dates:
            mask |= self._named(date) if self.is_within(date) else 0
        return mask.bit_count()

    def is_changed(self, date: int) -> bool:
        """Whether the clock changes on the date, and the schedule has a time on it, or would have one without the change."""
        return date in self._changes and self.is_within(date) and (self.runs(date) > 0 or self._named(date) > 0)

    def _of_rate(self, rate: Rate, date: int) -> int:
        begin, until = max(begin_of(date, self._zone), self._since + 1), min(begin_of(date + 1, self._zone), self._end)
        return max(0, _runs_before(rate, until) - _runs_before(rate, begin))

    def _named(self, date: int) -> int:
        """The local minutes of the date that cron or `every` names, as a bit mask."""
        mask = 0
        for each in self._times:
            mask |= each.on(date - cron.EPOCH_DAY)
        return mask

    def _compute(self) -> dict[int, int]:
        """The runs of the odd dates."""
        left = sorted(date for date in self._odd if date in self.dates)
        found = dict[int, int]()
        while left:
            size = next((number for number in range(1, len(left)) if left[number] != left[0] + number), len(left))
            counts = _one_by_one(self._schedule, self._since, left[0], left[size - 1])
            found |= {date: counts[date] for date in left[:size]}
            left = left[size:]
        return found


def _times(spec: Cron | Every) -> list[cron.Expression | rhythm.Rhythm]:
    return [rhythm.of(spec)] if isinstance(spec, Every) else [cron.read(each) for each in spec.expressions]


def _changes(zone: str, first: int, last: int) -> frozenset[int]:
    """The local dates from `first` to `last` on which the clock of the zone changes: by the time that it shows afterwards."""
    low, high = ((date - cron.EPOCH_DAY) * zones.DAY for date in (first - _NEAR, last + _NEAR + 1))
    found, before = set[int](), None
    for span in range(low // zones.SPAN, high // zones.SPAN + 1):
        for stretch in zones.of_span(zone, span):
            if before is not None and stretch.offset != before:
                found.add((stretch.start + stretch.offset) // zones.DAY + cron.EPOCH_DAY)
            before = stretch.offset
    return frozenset(date for date in found if first <= date <= last)


def _runs_before(rate: Rate, until: int) -> int:
    return max(0, -(-(until - rate.start) // rate.every_ms))
