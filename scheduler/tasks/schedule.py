"""When a task runs: at one instant, at a rate, or by cron or every n days or weeks in a time zone. Pure arithmetic.

`docs/reference/schedules.md` has the rules and examples.

At a change of the clock, cron follows Debian's cron (its manual page cron(8)):

- An expression whose minute or hour begins with `*` follows elapsed time. Nothing is shifted; it runs in both repeated hours.
  `*/30 * * * *` in Berlin on 2027-10-31: ... 02:30+02:00, 02:00+01:00, 02:30+01:00 ...
- Every other expression names a fixed time. A time that the clock skips runs at the first instant after the gap: `30 2 * * *`
  in Berlin on 2027-03-28 runs at 03:00+02:00. A time that occurs twice runs once, the first time: on 2027-10-31 at 02:30+02:00.
  A task may specify otherwise: `dst_gap` shift or skip, `dst_overlap` first, second or both.

`Every` names fixed times. A rate follows elapsed time and ignores clock changes. Instants are in ms since the epoch, unless a name or
docstring says minutes.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache, partial
from hashlib import blake2b
from heapq import merge
from itertools import islice
from typing import NamedTuple, Protocol

from scheduler.model import instants
from scheduler.model.schedule import Cron, Every, Once, Rate, Schedule
from scheduler.tasks import cron, exclusions, rhythm, zones

MINUTE = 60_000
HORIZON = 41 * 366 * 24 * 60  # minutes; the rarest day, a 29 February on a given weekday, can take 40 years (over 2100)

DST_GAP = ("shift", "skip")
DST_OVERLAP = ("first", "second", "both")


class Run(NamedTuple):
    """A future run."""

    nominal: int  # the time by the schedule
    at: int  # the nominal time plus jitter
    local: str  # `nominal` as local time of the zone, with its offset
    odd: str | None  # the effect of a clock change, or of a calendar, on this run; None: no effect


class Skipped(NamedTuple):
    """A run that does not take place: the clock skips its time, and the task has `dst_gap` skip. It has no instant `at`."""

    nominal: int  # the first instant after the gap
    local: str
    odd: str
    at: None = None


class _Nominal(NamedTuple):
    at: int
    local: str
    odd: str | None = None


class _Pattern(Protocol):
    """Local minutes, as of `cron.Expression`."""

    @property
    def fixed(self) -> bool: ...

    def at_or_after(self, minute: int, before: int) -> int | None: ...


def next_runs(schedule: Schedule, instant: int, count: int, *, seed: str = "", planned: int = 0) -> list[Run]:
    """The first `count` runs `after` the instant; fewer if the schedule ends before."""
    return list(islice(after(schedule, instant, seed=seed, planned=planned), count))


def after(schedule: Schedule, instant: int, *, seed: str = "", planned: int = 0) -> Iterator[Run]:
    """The runs whose nominal time is later than `instant`, in strictly ascending order by `nominal` and by `at`.

    `seed` identifies the task and determines its jitter. `planned` is the number of runs up to `instant`, which `max_runs` includes.
    """
    if schedule.start is not None:
        instant = max(instant, schedule.start - 1)
    runs = _within(schedule, _allowed(schedule, instant), seed)
    return runs if schedule.max_runs is None else islice(runs, max(0, schedule.max_runs - planned))


def _allowed(schedule: Schedule, instant: int) -> Iterator[_Nominal]:
    """The nominal times after `instant`, on the dates on which the schedule may run."""
    of_spec = partial(_nominals, schedule.spec)
    if schedule.days is None:
        return of_spec(instant)
    return map(_Nominal._make, exclusions.applied(schedule, of_spec, instant, local_time))


def skipped(schedule: Schedule, instant: int, until: int) -> Iterator[Skipped]:
    """The runs that `dst_gap` skip omits later than `instant` and up to `until`; shift would move them."""
    if not isinstance(schedule.spec, Cron | Every) or schedule.spec.dst_gap != "skip":
        return
    for run in after(replace(schedule, spec=replace(schedule.spec, dst_gap="shift"), max_runs=None, jitter_ms=0), instant):
        if run.nominal > until:
            return
        if run.odd is not None and run.odd.startswith("gap"):
            yield Skipped(run.nominal, run.local, f"{run.odd.rpartition(', ')[0]}, skipped")


def _within(schedule: Schedule, nominals: Iterator[_Nominal], seed: str) -> Iterator[Run]:
    if schedule.jitter_ms:
        yield from _jittered(schedule, nominals, _share(seed))
        return
    for at, local, odd in nominals:
        if schedule.end is not None and at >= schedule.end:
            return
        yield Run(at, at, local, odd)


def _jittered(schedule: Schedule, nominals: Iterator[_Nominal], share: int) -> Iterator[Run]:
    current = next(nominals, None)
    while current is not None and (schedule.end is None or current.at < schedule.end):
        following = next(nominals, None)
        bounds = [bound - current.at for bound in (following and following.at, schedule.end) if bound is not None]
        window = min([schedule.jitter_ms, *bounds])
        yield Run(current.at, current.at + (window * share >> 64), current.local, current.odd)
        current = following


def _share(seed: str) -> int:
    """The part of the jitter window by which a task's runs are delayed, in 2^64ths. It is the same for all runs: intervals stay equal."""
    return int.from_bytes(blake2b(seed.encode(), digest_size=8).digest())


def _nominals(spec: Once | Rate | Cron | Every, instant: int) -> Iterator[_Nominal]:
    if isinstance(spec, Every):
        return _of_local(spec, rhythm.of(spec), max(instant, spec.start - 1))
    if isinstance(spec, Cron):
        first, *others = [_of_local(spec, each, instant) for each in cron.kinds(spec.expressions)]
        return _once_each([first, *others]) if others else first
    return _of_rate(spec, instant) if isinstance(spec, Rate) else _of_once(spec, instant)


def _of_once(once: Once, instant: int) -> Iterator[_Nominal]:
    if once.at > instant:
        yield _Nominal(once.at, local_time(once.at, once.zone))


def _of_rate(rate: Rate, instant: int) -> Iterator[_Nominal]:
    at = rate.start + max(0, (instant - rate.start) // rate.every_ms + 1) * rate.every_ms
    while True:
        yield _Nominal(at, local_time(at, rate.zone))
        at += rate.every_ms


def day_start(day: int, zone: str) -> int:
    """The first instant of a local day, numbered from 1970-01-01; of the following one if the clock skips the whole day."""
    since = (day - 2) * zones.DAY * MINUTE
    midnights = after(Schedule(Every(1, since, (0,), zone=zone)), since)
    return next(run.nominal for run in midnights if rhythm.local_day(run.nominal, zone) >= day)


def _once_each(found: list[Iterator[_Nominal]]) -> Iterator[_Nominal]:
    """The times of all, each instant once: with a note, if one of them has it."""
    last: int | None = None
    for each in merge(*found, key=lambda nominal: (nominal.at, nominal.odd is None)):
        if each.at != last:
            last = each.at
            yield each


def _of_local(spec: Cron | Every, expression: _Pattern, instant: int) -> Iterator[_Nominal]:
    """The nominal times after `instant`, computed stretch by stretch: within one, local time and UTC differ by a constant offset."""
    minute = instant // MINUTE + 1
    limit = minute + HORIZON
    while minute < limit:
        for stretch in zones.of_span(spec.zone, minute // zones.SPAN):
            if stretch.end <= minute:
                continue
            following = yield from _of_stretch(spec, expression, stretch, max(minute, stretch.start))
            if following is None:
                return
            if following.last is not None:
                limit = following.last + HORIZON
            minute = max(stretch.end, following.local - zones.REACH)


class _Following(NamedTuple):
    local: int  # the expression's next local minute
    last: int | None  # the UTC minute of the last run


def _of_stretch(
    spec: Cron | Every, expression: _Pattern, stretch: zones.Stretch, minute: int
) -> Generator[_Nominal, None, _Following | None]:
    """Yield the nominal times from the UTC minute on; return where the expression continues, None if it has no further match."""
    offset, last = stretch.offset, None
    low, high = minute + offset, stretch.end + offset
    if expression.fixed:
        if minute == stretch.start and spec.dst_gap == "shift" and (odd := _missed(expression, stretch)):
            last = minute
            yield _Nominal(minute * MINUTE, _local(low, offset), odd)
            low += 1
        if spec.dst_overlap == "first":
            low = max(low, stretch.seen)
        elif spec.dst_overlap == "second":
            high = min(high, stretch.again)
    horizon = low + HORIZON
    local = expression.at_or_after(low, horizon)
    while local is not None and local < high:
        last = local - offset
        yield _Nominal(last * MINUTE, _local(local, offset), _twice(local, stretch))
        local = expression.at_or_after(local + 1, horizon)
    again = expression.at_or_after(min(high, stretch.again), horizon)  # a local time that occurs twice is still ahead, though rare
    return None if again is None else _Following(again, last)


def _missed(expression: _Pattern, stretch: zones.Stretch) -> str | None:
    """Describe the expression's times that the clock skipped at the start of the stretch; None if there is none."""
    landed = stretch.start + stretch.offset
    first = last = expression.at_or_after(stretch.seen, landed)
    if first is None or last is None or first >= landed:
        return None
    several = False
    while (another := expression.at_or_after(last + 1, landed)) is not None and another < landed:
        last, several = another, True
    if several:
        return f"gap: {_clock(first, landed)} to {_clock(last, landed)} do not exist, run once at {_clock(landed, landed)}"
    return f"gap: {_clock(first, landed)} does not exist, runs {_clock(landed, landed)}"


def _twice(local: int, stretch: zones.Stretch) -> str | None:
    if local < stretch.seen:
        return "overlap: second of two"
    return "overlap: first of two" if local >= stretch.again else None


def _clock(local: int, landed: int) -> str:
    """The local time; with its date only if the clock skipped a whole day."""
    day, time = divmod(local, zones.DAY)
    text = f"{time // 60:02d}:{time % 60:02d}"
    return text if day == landed // zones.DAY else f"{_date(day)} {text}"


def _local(local: int, offset: int) -> str:
    day, time = divmod(local, zones.DAY)
    return f"{_date(day)}T{time // 60:02d}:{time % 60:02d}{_offset(offset)}"


@lru_cache(maxsize=4096)
def _date(day: int) -> str:
    return date.fromordinal(day + cron.EPOCH_DAY).isoformat()


@lru_cache(maxsize=256)
def _offset(minutes: int) -> str:
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02d}:{rest:02d}"


@lru_cache(maxsize=4096)  # planning walks through the next runs of a task several times
def local_time(at: int, zone: str) -> str:
    """The instant (ms) as local time of the zone with its offset, in minutes, seconds or milliseconds as the instant requires."""
    spec = "minutes" if at % MINUTE == 0 else "seconds" if at % 1000 == 0 else "milliseconds"
    return (instants.EPOCH + timedelta(milliseconds=at)).astimezone(zones.zone(zone)).isoformat(timespec=spec)
