"""Convert the form in which users write a schedule to a `Schedule`, and back. An error names the field and the rule it breaks.

The form has exactly one of `at` (an instant), `rate` (`rate(5 minutes)`, `5 minutes`, or {"every": 5, "unit": "minutes"}) and
`cron`. All may have `time_zone` and `jitter_seconds`; recurring ones `start`, `end` and `max_runs`; cron `dst_gap` and `dst_overlap`.
"""

import re
from collections.abc import Mapping
from typing import Any

from scheduler.model import instants
from scheduler.model.errors import Invalid
from scheduler.model.schedule import Cron, Once, Rate, Schedule
from scheduler.tasks import cron, zones
from scheduler.tasks.schedule import DST_GAP, DST_OVERLAP, next_runs

KINDS = ("at", "rate", "cron")
OF_RECURRING = ("start", "end", "max_runs")
OF_CRON = ("dst_gap", "dst_overlap")
FIELDS = (*KINDS, "time_zone", "jitter_seconds", *OF_RECURRING, *OF_CRON)

UNITS = {"second": 1_000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
LONGEST_RATE = 366 * UNITS["day"]
LONGEST_JITTER = UNITS["day"] // 1_000  # seconds
MOST_RUNS = 1_000_000_000
RATE_RULE = "must be a whole number and a unit, such as rate(5 minutes); units are seconds, minutes, hours, days"


def parse(form: Mapping[str, object], now: int) -> Schedule:
    """The schedule of a form submitted at `now`, at which a rate without `start` begins. Raises Invalid with the field and the rule."""
    form = {name: value for name, value in form.items() if value is not None}
    kind = _kind(form)
    zone = _zone(form.get("time_zone", "UTC"))
    start, end = _instant(form, "start"), _instant(form, "end")
    if start is not None and start > now + instants.FUTURE_LIMIT:
        raise Invalid.field("start", f"must not be more than ten years ahead (it is now {instants.render(now)})")
    schedule = Schedule(
        spec=_spec(kind, form, zone, start, now),
        start=None if kind == "rate" else start,
        end=end,
        max_runs=_number(form, "max_runs", 1, MOST_RUNS),
        jitter_ms=(_number(form, "jitter_seconds", 0, LONGEST_JITTER) or 0) * 1_000,
    )
    if end is not None and end <= (now if start is None else max(now, start)):
        raise Invalid.field("end", f"must be after the start and after now ({instants.render(now)})")
    if kind != "at" and not next_runs(schedule, now, 1):
        raise Invalid.field(kind, "has no run between its start and its end")
    return schedule


def write(schedule: Schedule) -> dict[str, object]:
    """The form of the schedule, without fields that have their defaults. A rate always has its start, so that its times stay the same."""
    spec = schedule.spec
    form: dict[str, object] = {}
    if isinstance(spec, Once):
        form["at"] = instants.render(spec.at)
    elif isinstance(spec, Rate):
        form |= {"rate": _every(spec.every_ms), "start": instants.render(spec.start)}
    else:
        form["cron"] = spec.expression
        form |= {"dst_gap": spec.dst_gap} if spec.dst_gap != DST_GAP[0] else {}
        form |= {"dst_overlap": spec.dst_overlap} if spec.dst_overlap != DST_OVERLAP[0] else {}
    bounds = {"start": schedule.start, "end": schedule.end}
    form |= {name: instants.render(at) for name, at in bounds.items() if at is not None}
    form |= {"time_zone": spec.zone} if spec.zone != "UTC" else {}
    form |= {"max_runs": schedule.max_runs} if schedule.max_runs is not None else {}
    form |= {"jitter_seconds": schedule.jitter_ms // 1_000} if schedule.jitter_ms else {}
    return form


def with_start_of(schedule: Schedule, form: Mapping[str, object]) -> Mapping[str, object]:
    """The form; if it has no start and the same rate as the schedule, with the start of that: the rate keeps its rhythm."""
    spec, rate = schedule.spec, form.get("rate")
    if not isinstance(spec, Rate) or rate is None or form.get("start") is not None:
        return form
    try:
        return {**form, "start": instants.render(spec.start)} if _rate(rate) == spec.every_ms else form
    except Invalid:
        return form


def restore(form: Mapping[str, Any]) -> Schedule:
    """The schedule that `write` converted to this form. It was validated when it was submitted, and is not validated again."""
    start, end = (instants.parse(form[name]) if name in form else None for name in ("start", "end"))
    zone = form.get("time_zone", "UTC")
    spec: Once | Rate | Cron
    if "at" in form:
        spec = Once(instants.parse(form["at"]), zone)
    elif "rate" in form:
        assert start is not None
        spec, start = Rate(_rate(form["rate"]), start, zone), None
    else:
        spec = Cron(form["cron"], zone, form.get("dst_gap", DST_GAP[0]), form.get("dst_overlap", DST_OVERLAP[0]))
    return Schedule(spec, start, end, form.get("max_runs"), form.get("jitter_seconds", 0) * 1_000)


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
    _refuse(form, OF_CRON if kinds[0] == "rate" else (*OF_RECURRING, *OF_CRON) if kinds[0] == "at" else (), kinds[0])
    return kinds[0]


def _refuse(form: Mapping[str, object], names: tuple[str, ...], kind: str) -> None:
    for name in names:
        if name in form:
            raise Invalid.field(name, f"must be absent beside {kind}")


def _spec(kind: str, form: Mapping[str, object], zone: str, start: int | None, now: int) -> Once | Rate | Cron:
    if kind == "at":
        at = _instant(form, "at")
        assert at is not None
        instants.check_start("at", at, now)
        return Once(at, zone)
    if kind == "rate":
        return Rate(_rate(form["rate"]), now if start is None else start, zone)
    return Cron(
        _expression(form["cron"]), zone, dst_gap=_choice(form, "dst_gap", DST_GAP), dst_overlap=_choice(form, "dst_overlap", DST_OVERLAP)
    )


def _expression(value: object) -> str:
    """The valid expression with single spaces. Raises Invalid."""
    if not isinstance(value, str):
        raise Invalid.field("cron", "must be a text")
    try:
        cron.read(value)
    except ValueError as error:
        raise Invalid.field("cron", str(error)) from None
    return " ".join(value.split())


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
