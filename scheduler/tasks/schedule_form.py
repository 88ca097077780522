"""Convert the form in which users write a schedule to a `Schedule`, and back. An error names the field and the rule it breaks.

The form has exactly one of `at` (an instant), `rate` (`rate(5 minutes)`, `5 minutes`, or {"every": 5, "unit": "minutes"}), `cron` (one
expression or several) and `every` (`2 weeks`, with `times` and `weekdays`). All may have `time_zone` and `jitter_seconds`; recurring ones
`start`, `end` and `max_runs`, and the fields of `calendar_form`; cron and every `dst_gap` and `dst_overlap`.

A list of one is equal to its only item, and the order of a list has no meaning.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from scheduler.model import instants
from scheduler.model.calendar import Calendar
from scheduler.model.errors import Invalid
from scheduler.model.schedule import Cron, Every, Once, Rate, Schedule
from scheduler.tasks import calendar_form, cron, rhythm, zones
from scheduler.tasks.exclusions import DAY_MS, MOST_A_DAY
from scheduler.tasks.schedule import DST_GAP, DST_OVERLAP, day_start, next_runs

T = TypeVar("T")
KINDS = ("at", "rate", "cron", "every")
OF_RECURRING = ("start", "end", "max_runs", *calendar_form.FIELDS)
OF_LOCAL = ("dst_gap", "dst_overlap")
OF_EVERY = ("times", "weekdays")
FIELDS = (*KINDS, *OF_EVERY, "time_zone", "jitter_seconds", *OF_RECURRING, *OF_LOCAL)
_ABSENT = {"at": (*OF_EVERY, *OF_RECURRING, *OF_LOCAL), "rate": (*OF_EVERY, *OF_LOCAL), "cron": OF_EVERY, "every": ()}

UNITS = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
LONGEST_RATE = 366 * UNITS["day"]
LONGEST_JITTER = UNITS["day"] // 1_000  # seconds
MOST_RUNS = 1_000_000_000
MOST_EXPRESSIONS = 10
MOST_TIMES = 24
LONGEST_EVERY = {"day": 366, "week": 52}
EVERY_RULE = "must be a whole number of days up to 366, or of weeks up to 52, such as 2 weeks"
TIME_RULE = "must be a time of the day such as 09:00"
RATE_RULE = "must be a whole number and a unit, such as rate(5 minutes); units are seconds, minutes, hours, days"


def parse(form: Mapping[str, object], now: int, calendars: Mapping[str, Calendar] | None = None) -> Schedule:
    """The schedule of a form submitted at `now`, at which a rate without `start` begins; `every` counts from its next run then.

    `calendars`: those of the owner that the form names, see `calendar_form.names`. Raises Invalid with the field and the rule.
    """
    form = {name: value for name, value in form.items() if value is not None}
    kind = _kind(form)
    zone = _zone(form.get("time_zone", "UTC"))
    start, end = _instant(form, "start"), _instant(form, "end")
    if start is not None and start > now + instants.FUTURE_LIMIT:
        raise Invalid.field("start", f"must not be more than ten years ahead (it is now {instants.render(now)})")
    schedule = Schedule(
        spec=_spec(kind, form, zone, start, now),
        start=None if kind in ("rate", "every") else start,
        end=end,
        max_runs=_number(form, "max_runs", 1, MOST_RUNS),
        jitter_ms=(_number(form, "jitter_seconds", 0, LONGEST_JITTER) or 0) * 1_000,
        days=calendar_form.parse(form, calendars or {}),
    )
    if end is not None and end <= (now if start is None else max(now, start)):
        raise Invalid.field("end", f"must be after the start and after now ({instants.render(now)})")
    if kind != "at" and not next_runs(schedule, now, 1):
        if schedule.days is not None and next_runs(replace(schedule, days=None), now, 1):
            raise Invalid.field(calendar_form.field(schedule.days), "leaves no run of the schedule")
        raise Invalid.field(kind, "has no run between its start and its end")
    if schedule.days is not None and schedule.days.on_excluded != "skip":
        _check_pace(schedule, now)
    return schedule


def _check_pace(schedule: Schedule, now: int) -> None:
    """Raises Invalid if the schedule has too many runs a day to move them."""
    runs = next_runs(replace(schedule, days=None, max_runs=None), now, MOST_A_DAY + 1)
    if len(runs) > MOST_A_DAY and runs[-1].nominal < runs[0].nominal + DAY_MS:
        raise Invalid.field("on_excluded", f"must be skip for a schedule with more than {MOST_A_DAY} runs a day")


def write(schedule: Schedule) -> dict[str, object]:
    """The form of the schedule, without fields that have their defaults. A rate always has its start, so that its times stay the same.

    So has `every`, and weeks have their weekdays.
    """
    spec = schedule.spec
    form: dict[str, object] = {}
    if isinstance(spec, Once):
        form["at"] = instants.render(spec.at)
    elif isinstance(spec, Rate):
        form |= {"rate": _every(spec.every_ms), "start": instants.render(spec.start)}
    elif isinstance(spec, Every):
        form |= {"every": _period(spec), "times": _one_or_all([_clock(each) for each in spec.times]), "start": instants.render(spec.start)}
        form |= {"weekdays": _one_or_all([calendar_form.WEEKDAYS[each] for each in spec.weekdays])} if spec.weekdays else {}
    else:
        form["cron"] = _one_or_all(spec.expressions)
    if isinstance(spec, Cron | Every):
        form |= {"dst_gap": spec.dst_gap} if spec.dst_gap != DST_GAP[0] else {}
        form |= {"dst_overlap": spec.dst_overlap} if spec.dst_overlap != DST_OVERLAP[0] else {}
    bounds = {"start": schedule.start, "end": schedule.end}
    form |= {name: instants.render(at) for name, at in bounds.items() if at is not None}
    form |= {"time_zone": spec.zone} if spec.zone != "UTC" else {}
    form |= {"max_runs": schedule.max_runs} if schedule.max_runs is not None else {}
    form |= {"jitter_seconds": schedule.jitter_ms // 1_000} if schedule.jitter_ms else {}
    return form | calendar_form.write(schedule.days)


def stored(schedule: Schedule) -> dict[str, object]:
    """The form to store: with the dates of the calendars that it names."""
    return write(schedule) | calendar_form.stored(schedule.days)


def with_start_of(schedule: Schedule, form: Mapping[str, object]) -> Mapping[str, object]:
    """The form; if it has no start and the same rate or `every` as the schedule, with the start of that: it keeps its rhythm.

    In another time zone `every` keeps the day from which it counts.
    """
    spec, rate, every = schedule.spec, form.get("rate"), form.get("every")
    if form.get("start") is not None:
        return form
    try:
        if isinstance(spec, Rate) and rate is not None and _rate(rate) == spec.every_ms:
            return {**form, "start": instants.render(spec.start)}
        if isinstance(spec, Every) and every is not None and _is_of_period(_count_and_unit(every), spec):
            zone = _zone(form.get("time_zone") or "UTC")
            start = spec.start if zone == spec.zone else day_start(rhythm.local_day(spec.start, spec.zone), zone)
            return {**form, "start": instants.render(start)}
    except Invalid:
        pass
    return form


def restore(form: Mapping[str, Any]) -> Schedule:
    """The schedule that `stored` converted to this form. It was validated when it was submitted, and is not validated again."""
    start, end = (instants.parse(form[name]) if name in form else None for name in ("start", "end"))
    zone = form.get("time_zone", "UTC")
    spec: Once | Rate | Cron | Every
    if "at" in form:
        spec = Once(instants.parse(form["at"]), zone)
    elif "every" in form:
        assert start is not None
        spec, start = _every_of(form, zone, start), None
    elif "rate" in form:
        assert start is not None
        spec, start = Rate(_rate(form["rate"]), start, zone), None
    else:
        first, *more = _listed(form["cron"])
        spec = Cron(first, zone, form.get("dst_gap", DST_GAP[0]), form.get("dst_overlap", DST_OVERLAP[0]), tuple(more))
    return Schedule(spec, start, end, form.get("max_runs"), form.get("jitter_seconds", 0) * 1_000, calendar_form.restore(form))


def _every(ms: int) -> str:
    """The rate in its largest whole unit."""
    unit = next(unit for unit in reversed(UNITS) if ms % UNITS[unit] == 0)
    count = ms // UNITS[unit]
    return f"rate({count} {unit}{'s' if count > 1 else ''})"


def _kind(form: Mapping[str, object]) -> str:
    for name in form:
        if name not in FIELDS:
            raise Invalid.field(name, f"is not a field of a schedule; the fields are {', '.join(FIELDS)}")
    kinds = [kind for kind in KINDS if kind in form]
    if not kinds:
        raise Invalid.field("schedule", f"must have one of {', '.join(KINDS)}")
    if len(kinds) > 1:
        raise Invalid.field(kinds[1], f"must be absent beside {kinds[0]}: a schedule has one of {', '.join(KINDS)}")
    _refuse(form, _ABSENT[kinds[0]], kinds[0])
    return kinds[0]


def _refuse(form: Mapping[str, object], names: tuple[str, ...], kind: str) -> None:
    for name in names:
        if name in form:
            raise Invalid.field(name, f"must be absent beside {kind}")


def _spec(kind: str, form: Mapping[str, object], zone: str, start: int | None, now: int) -> Once | Rate | Cron | Every:
    if kind == "at":
        at = _instant(form, "at")
        assert at is not None
        instants.check_start("at", at, now)
        return Once(at, zone)
    if kind == "rate":
        return Rate(_rate(form["rate"]), now if start is None else start, zone)
    gap, overlap = _choice(form, "dst_gap", DST_GAP), _choice(form, "dst_overlap", DST_OVERLAP)
    if kind == "every":
        return _begun(_every_of(form, zone, now if start is None else start), start, now)
    first, *more = _expressions(form["cron"])
    return Cron(first, zone, dst_gap=gap, dst_overlap=overlap, more=tuple(more))


def _expressions(value: object) -> list[str]:
    """The valid expressions with single spaces, each meaning once, in alphabetical order. Raises Invalid."""
    found = sorted(_items("cron", value, MOST_EXPRESSIONS, _expression))
    return [text for number, text in enumerate(found) if cron.read(text) not in map(cron.read, found[:number])]


def _expression(field: str, value: object) -> str:
    """The valid expression with single spaces. Raises Invalid."""
    if not isinstance(value, str):
        raise Invalid.field(field, "must be a text")
    try:
        cron.read(value)
    except ValueError as error:
        raise Invalid.field(field, str(error)) from None
    return " ".join(value.split())


def _every_of(form: Mapping[str, object], zone: str, start: int) -> Every:
    """Weeks without weekdays run on that of the start. Raises Invalid."""
    count, unit = _count_and_unit(form["every"])
    if "times" not in form:
        raise Invalid.field("times", f"is required beside every: {TIME_RULE}, or a list of them")
    times = _items("times", form["times"], MOST_TIMES, _time)
    weekdays = _items("weekdays", form["weekdays"], len(calendar_form.WEEKDAYS), _weekday) if "weekdays" in form else []
    if weekdays and unit == "day":
        raise Invalid.field("weekdays", "requires a number of weeks in every")
    if not weekdays and unit == "week":
        weekdays = [rhythm.weekday_of(rhythm.local_day(start, zone))]
    gap, overlap = _choice(form, "dst_gap", DST_GAP), _choice(form, "dst_overlap", DST_OVERLAP)
    return Every(count, start, tuple(sorted({*times})), tuple(sorted({*weekdays})), zone, gap, overlap)


def _begun(every: Every, start: int | None, now: int) -> Every:
    """Without a start it counts from the day of its next run after `now`, as if it ran each day or week."""
    if start is not None:
        return every
    first = next_runs(Schedule(replace(every, count=1)), now, 1)[0].nominal
    return replace(every, start=day_start(rhythm.local_day(first, every.zone), every.zone))


def _items(name: str, value: object, most: int, read: Callable[[str, object], T]) -> list[T]:
    """The items of a list, or the one item that is given without a list. Raises Invalid."""
    if not isinstance(value, list):
        return [read(name, value)]
    if not 1 <= len(value) <= most:
        raise Invalid.field(name, f"must have 1 to {most} items, or be one item without a list")
    return [read(f"{name}.{number}", each) for number, each in enumerate(value)]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _one_or_all(items: Sequence[str]) -> object:
    return items[0] if len(items) == 1 else list(items)


def _time(field: str, value: object) -> int:
    """The minute of the day. Raises Invalid."""
    found = re.fullmatch(r"([01][0-9]|2[0-3]):([0-5][0-9])", value) if isinstance(value, str) else None
    if found is None:
        raise Invalid.field(field, TIME_RULE)
    return int(found[1]) * 60 + int(found[2])


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def _weekday(field: str, value: object) -> int:
    """Monday is 0. Raises Invalid."""
    name = value.upper() if isinstance(value, str) else ""
    if name not in calendar_form.WEEKDAYS:
        raise Invalid.field(field, f"must be one of {', '.join(calendar_form.WEEKDAYS)}")
    return calendar_form.WEEKDAYS.index(name)


def _count_and_unit(value: object) -> tuple[int, str]:
    found = re.fullmatch(r"\s*([0-9]{1,9})\s+(day|week)s?\s*", value.lower()) if isinstance(value, str) else None
    if found is None or not 1 <= int(found[1]) <= LONGEST_EVERY[found[2]]:
        raise Invalid.field("every", EVERY_RULE)
    return int(found[1]), found[2]


def _is_of_period(period: tuple[int, str], every: Every) -> bool:
    return period == (every.count, "week" if every.weekdays else "day")


def _period(every: Every) -> str:
    unit = "week" if every.weekdays else "day"
    return f"{every.count} {unit}{'s' if every.count > 1 else ''}"


def _rate(value: object) -> int:
    every, unit = _every_and_unit(value)
    singular = unit.lower().removesuffix("s")
    if singular not in UNITS:
        raise Invalid.field("rate", f"has an unknown unit {unit}; {RATE_RULE}")
    ms = every * UNITS[singular]
    if not 0 < ms <= LONGEST_RATE:
        raise Invalid.field("rate", "must be between one second and 366 days")
    return ms


def _every_and_unit(value: object) -> tuple[int, str]:
    if isinstance(value, Mapping) and set(value) == {"every", "unit"}:
        every, unit = value["every"], value["unit"]
        if isinstance(every, int) and not isinstance(every, bool) and isinstance(unit, str):
            return every, unit
    text = value.strip() if isinstance(value, str) else ""
    found = re.fullmatch(r"(?i:rate)\(\s*([0-9]{1,9})\s+([A-Za-z]+)\s*\)|([0-9]{1,9})\s+([A-Za-z]+)", text)
    if found is None:
        raise Invalid.field("rate", RATE_RULE)
    return int(found[1] or found[3]), found[2] or found[4]


def _zone(value: object) -> str:
    try:
        return zones.zone(value if isinstance(value, str) else "").key
    except ValueError as error:
        raise Invalid.field("time_zone", str(error)) from None


def _instant(form: Mapping[str, object], name: str) -> int | None:
    if name not in form:
        return None
    try:
        at = instants.parse(form[name])
    except ValueError as error:
        raise Invalid.field(name, str(error)) from None
    if at < 0:
        raise Invalid.field(name, "must not be before 1970")
    return at


def _number(form: Mapping[str, object], name: str, low: int, high: int) -> int | None:
    value = form.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise Invalid.field(name, f"must be a whole number from {low} to {high}")
    return value


def _choice(form: Mapping[str, object], name: str, choices: tuple[str, ...]) -> str:
    value = form.get(name, choices[0])
    if value not in choices:
        raise Invalid.field(name, f"must be one of {', '.join(choices)}")
    return str(value)
