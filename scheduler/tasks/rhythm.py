"""Fixed times of the day, every n days, or on weekdays of every n weeks. Days and minutes count as in `cron`."""

from dataclasses import dataclass
from functools import lru_cache

from scheduler.model.schedule import Every
from scheduler.tasks import zones

WEEK = 7
_MONDAY = 3  # the first week of 1970 began three days before 1970-01-01


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The local times of an `Every`, without regard to its start."""

    period: int  # days, or weeks
    anchor: int  # the day, or the week, from which they count
    weekdays: tuple[int, ...]  # Monday is 0; empty: the period is a number of days
    times: tuple[int, ...]  # ascending
    fixed: bool = True

    def at_or_after(self, minute: int, before: int) -> int | None:
        """The first matching local minute from `minute` on; None if no day up to that of the local minute `before` has a match."""
        day, time = divmod(minute, zones.DAY)
        found = self._day(day)
        if found == day:
            for each in self.times:
                if each >= time:
                    return day * zones.DAY + each
            found = self._day(day + 1)
        return found * zones.DAY + self.times[0] if found <= before // zones.DAY else None

    def on(self, day: int) -> int:
        """The minutes of the day that match, as a bit mask."""
        return sum(1 << each for each in self.times) if self._day(day) == day else 0

    def _day(self, day: int) -> int:
        """The first matching day from `day` on."""
        if not self.weekdays:
            return day + (self.anchor - day) % self.period
        week, weekday = divmod(day + _MONDAY, WEEK)
        away = (self.anchor - week) % self.period
        later = [each for each in self.weekdays if each >= weekday] if away == 0 else list(self.weekdays)
        weeks, first = (away, later[0]) if later else (self.period, self.weekdays[0])
        return (week + weeks) * WEEK + first - _MONDAY


@lru_cache(maxsize=2048)
def of(spec: Every) -> Rhythm:
    """The times of the schedule, counted from the local day of its start."""
    day = local_day(spec.start, spec.zone)
    anchor = (day + _MONDAY) // WEEK if spec.weekdays else day
    return Rhythm(spec.count, anchor, spec.weekdays, spec.times)


def local_day(instant: int, zone: str) -> int:
    """The day of the instant (ms) on the clock of the zone."""
    minute = instant // 60_000
    return (minute + zones.offset_at(zones.zone(zone), minute)) // zones.DAY


def weekday_of(day: int) -> int:
    """Monday is 0."""
    return (day + _MONDAY) % WEEK
