"""Tasks from schedules of Amazon EventBridge Scheduler, by the answers of its `GetSchedule`.

Sources: the API reference of GetSchedule, and in https://docs.aws.amazon.com/scheduler/latest/UserGuide/ the pages schedule-types
(expressions, changes of the clock) and managing-schedule-context-attributes (keywords in an input).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any

from punctual.plan import aws_cron
from punctual.plan.aws_cron import NoEqual
from punctual.plan.export import Entry, proposed, visible
from punctual.plan.schedule_target import content
from punctual.plan.zones import zone as zone_of

__all__ = ["NoEqual", "entry"]

MOST_ATTEMPTS = 25
FURTHEST = timedelta(days=3_653)  # the furthest start that the API accepts
LONGEST_RATE = timedelta(days=366)
RETRIES, EVENT_AGE = 185, 86_400  # the defaults of AWS
OWN = ("Punctual's heartbeat", "Punctual's planning of recurring runs", "Punctual's forecast of required executors")
PAUSED = "It was disabled in EventBridge Scheduler when it was imported."
# The fields that a task takes over or a comment names.
_OF_SCHEDULE = (
    *("Name", "GroupName", "Arn", "Description", "State", "ScheduleExpression", "ScheduleExpressionTimezone", "StartDate", "EndDate"),
    *("FlexibleTimeWindow", "ActionAfterCompletion", "KmsKeyArn", "Target", "CreationDate", "LastModificationDate", "ResponseMetadata"),
)
_OF_PART = {
    "FlexibleTimeWindow": ("Mode", "MaximumWindowInMinutes"),
    "RetryPolicy": ("MaximumRetryAttempts", "MaximumEventAgeInSeconds"),
    "DeadLetterConfig": ("Arn",),
    "SqsParameters": ("MessageGroupId",),
    "EventBridgeParameters": ("Source", "DetailType"),
}
_VALUES = {"State": ("ENABLED", "DISABLED"), "ActionAfterCompletion": ("NONE", "DELETE"), "Mode": ("OFF", "FLEXIBLE")}
_CALL = re.compile(r"(rate|cron|at)\((.*)\)")
_AT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
_RATE = re.compile(r"([0-9]{1,9})\s+(minute|hour|day)s?")
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


def entry(schedule: Mapping[str, Any], taken: set[str], *, now: datetime, target: str | None = None) -> Entry:
    """Return the task that runs as a schedule does. A disabled schedule becomes a paused task.

    Its key is the schedule's name, with the group and a colon in front if the group is not `default`. `target` is the named target for
    schedules whose own target has no equal here. `taken` has the keys of other tasks, and gets this one.
    Raises NoEqual, whatever the schedule has.
    """
    try:
        made = _entry(schedule, taken, now, target)
    except NoEqual:
        raise
    except _UNREADABLE as error:
        raise NoEqual(f"cannot be read: {type(error).__name__}: {visible(str(error))[:100]}") from error
    taken.add(made.body["key"])
    return made


def _entry(schedule: Mapping[str, Any], taken: set[str], now: datetime, target: str | None) -> Entry:
    if _is_own(schedule):
        raise NoEqual("belongs to a stage of Punctual, which calls its own functions by it")
    notes: list[str] = []
    group, name = schedule.get("GroupName") or "default", schedule["Name"]
    key = name if group == "default" else f"{group}:{name}"
    body: dict[str, Any] = {"key": proposed(key, taken) if key in taken or key in (".", "..") else key, "name": name}
    if description := schedule.get("Description"):
        body["description"] = visible(description, keep="\n\t")
        if body["description"] != description:
            notes.append("Its description has control characters: they are escapes here.")
    body["schedule"] = _form(schedule, notes, now)
    body |= content(schedule, notes, target) | _retry(schedule["Target"], notes)
    if schedule.get("State") == "DISABLED":
        body |= {"paused": True, "pause_reason": PAUSED}
        notes.append("It is disabled, and arrives paused.")
    _name_the_rest(schedule, notes)
    json.dumps(body, ensure_ascii=False).encode()  # refuses half of a surrogate pair, which no file can have
    return Entry(body, [f"{group}/{name}: {schedule['ScheduleExpression']}", *notes])


def _is_own(schedule: Mapping[str, Any]) -> bool:
    return schedule.get("Description") in OWN and schedule["ScheduleExpression"] == "rate(1 minute)"


def _name_the_rest(schedule: Mapping[str, Any], notes: list[str]) -> None:
    """Add a note for each field that has no place in a task."""
    target = schedule["Target"]
    if role := target.get("RoleArn"):
        notes.append(f"Its role {role} is not used: Punctual calls targets with its own.")
    if schedule.get("KmsKeyArn"):
        notes.append("Its own KMS key is not taken over: the stage has one for all tables.")
    if schedule.get("ActionAfterCompletion") == "DELETE":
        notes.append("The task stays after its last run, with its history.")
    notes.extend(f"Dropped: {name} {_json(schedule[name])}." for name in sorted(schedule.keys() - set(_OF_SCHEDULE)))
    window = schedule.get("FlexibleTimeWindow") or {}
    for part, known in _OF_PART.items():
        found = (schedule if part == "FlexibleTimeWindow" else target).get(part) or {}
        notes.extend(f"Dropped: {part}.{name} {_json(found[name])}." for name in sorted(found.keys() - set(known)))
    for name, values in _VALUES.items():
        value = (window if name == "Mode" else schedule).get(name)
        if value is not None and value not in values:
            notes.append(f"Its {name} {_json(value)} is unknown here, and is taken for {values[0]}.")


def _form(schedule: Mapping[str, Any], notes: list[str], now: datetime) -> dict[str, Any]:
    expression = schedule["ScheduleExpression"].strip()
    call = _CALL.fullmatch(expression)
    if call is None:
        raise NoEqual(f"has an expression of another form: {expression}")
    name = schedule.get("ScheduleExpressionTimezone") or "UTC"
    try:
        zone = zone_of(name)
    except ValueError as error:
        raise NoEqual(
            f"has a time zone that {error}" if "pip" in str(error) else f"has a time zone that is unknown here: {error}"
        ) from None
    kind, inner = call[1], call[2].strip()
    window = schedule.get("FlexibleTimeWindow") or {}
    spread = {"jitter_seconds": int(window["MaximumWindowInMinutes"]) * 60} if window.get("Mode") == "FLEXIBLE" else {}
    others = {**({"time_zone": name} if name != "UTC" else {}), **spread}
    if kind == "at":
        return {"at": _written(_once(inner, zone, now)), **others}
    start, end = schedule.get("StartDate"), schedule.get("EndDate")
    if end is not None and end <= now:
        raise NoEqual(f"has ended at {_written(end)}")
    if end is not None and end.year - now.year > 100:
        notes.append(f"Its end in the year {end.year} is dropped: it is more than a hundred years ahead.")
        end = None
    if kind == "rate":
        # EventBridge Scheduler counts from its creation, and starts within a minute.
        start = start or (schedule.get("CreationDate") or now).replace(microsecond=0)
        if start.year < 1970:
            raise NoEqual(f"counts from {_written(start)}, and a task counts from 1970 at the earliest")
        form = {"rate": _rate(inner, start, end, now)}
    else:
        form, start, end = _cron(inner, zone, start, end, now, notes)
    if start is not None and start > now + FURTHEST:
        raise NoEqual(f"starts at {_written(start)}, and a task starts within ten years")
    return {**form, **others, **({"start": _written(start)} if start else {}), **({"end": _written(end)} if end else {})}


def _once(inner: str, zone: tzinfo, now: datetime) -> datetime:
    if not _AT.fullmatch(inner):
        raise NoEqual(f"has a time in a form that AWS does not document: {inner}")
    try:
        local = datetime.fromisoformat(inner)
    except ValueError:
        raise NoEqual(f"is for a time that does not exist: {inner}") from None
    at = aws_cron.instant(local, zone)
    if at is None:
        raise NoEqual(f"is for a local time that the clock skips: {inner}")
    if at < now:
        raise NoEqual(f"was due at {_written(at)}")
    if at > now + FURTHEST:
        raise NoEqual(f"is due at {_written(at)}, and a task runs within ten years")
    return at


def _rate(inner: str, start: datetime, end: datetime | None, now: datetime) -> str:
    found = _RATE.fullmatch(inner)
    if found is None or int(found[1]) == 0:
        raise NoEqual(f"has a rate in a form that AWS does not document: {inner}")
    count = int(found[1])
    unit = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}[found[2]]
    if count > LONGEST_RATE // unit:
        raise NoEqual(f"has a rate of more than 366 days: {inner}")
    every = unit * count
    first = start if start > now else start + ((now - start) // every + 1) * every
    if end is not None and first >= end:
        raise NoEqual(f"has no further run before its end at {_written(end)}")
    return f"{count} {found[2]}{'s' if count > 1 else ''}"


def _cron(
    inner: str, zone: tzinfo, start: datetime | None, end: datetime | None, now: datetime, notes: list[str]
) -> tuple[dict[str, Any], datetime | None, datetime | None]:
    """Return the form of a cron expression, and the bounds of its schedule. Raises NoEqual."""
    times = aws_cron.read(inner)
    first, last = _years(times, zone, now)
    start = max((at for at in (start, first) if at is not None and at > now), default=None)
    end = min((at for at in (end, last) if at is not None), default=None)
    since = now if start is None else start - timedelta(microseconds=1)
    if next(times.runs(zone, since, end), None) is None:
        raise NoEqual(
            "never runs: no date matches, or the clock skips each of its times"
            if end is None
            else f"has no further run before its end at {_written(end)}"
        )
    if zone is timezone.utc:
        return {"cron": times.fields(fixed=False)}, start, end
    if len(times.hours) > 1:
        notes.append("Of two equal hours it runs in the first only, as AWS documents it.")
    return {"cron": times.fields(fixed=True), "dst_gap": "skip"}, start, end


def _years(times: aws_cron.Times, zone: tzinfo, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the first instant of the years that are left, and the first after them; None: no bound. Raises NoEqual."""
    this = now.astimezone(zone).year
    years = sorted(year for year in times.years if year >= this)
    if not years:
        raise NoEqual(f"has ended at {_written(datetime(max(times.years) + 1, 1, 1, tzinfo=zone))}")
    if years[-1] - years[0] + 1 != len(years):
        raise NoEqual(f"runs in years that are not in a row ({', '.join(map(str, years[:4]))} …): make a task for each")
    start = None if years[0] == this else datetime(years[0], 1, 1, tzinfo=zone)
    end = None if years[-1] == aws_cron.YEAR.high else datetime(years[-1] + 1, 1, 1, tzinfo=zone)
    return start, end


def _written(at: datetime) -> str:
    """The instant in UTC, to the millisecond, rounded up: a bound is never before the one that was given."""
    at = at.astimezone(timezone.utc)
    at += timedelta(microseconds=-at.microsecond % 1_000)
    return at.replace(tzinfo=None).isoformat(timespec="milliseconds" if at.microsecond else "seconds") + "Z"


def _retry(target: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    policy = {"MaximumRetryAttempts": RETRIES, "MaximumEventAgeInSeconds": EVENT_AGE, **(target.get("RetryPolicy") or {})}
    retries = policy["MaximumRetryAttempts"]
    if retries + 1 > MOST_ATTEMPTS:
        notes.append(f"It has {retries} retries; a job has at most {MOST_ATTEMPTS} attempts, over a longer time each.")
    if queue := target.get("DeadLetterConfig"):
        arn = queue.get("Arn", "")
        notes.append(f"Failed jobs are kept as dead letters; its queue {arn} gets none. Events of ended jobs: `events: true`.")
    return {"max_attempts": min(retries + 1, MOST_ATTEMPTS), "retry": {"max_elapsed_seconds": policy["MaximumEventAgeInSeconds"]}}


def _json(value: Any) -> str:
    return json.dumps(value, default=str)
