"""Tasks from schedules of Amazon EventBridge Scheduler, by the answers of its `GetSchedule`.

Source of the formats: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html and the API reference of GetSchedule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

from punctual.plan.export import Entry, proposed

DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MOST_ATTEMPTS = 25
KEYWORDS = {
    "<aws.scheduler.scheduled-time>": ("{{nominal_at}}", ""),
    "<aws.scheduler.attempt-number>": ("{{attempt}}", ""),
    "<aws.scheduler.execution-id>": ("{{job.id}}", "The execution id becomes the id of the job, which is the same in every attempt."),
    "<aws.scheduler.schedule-arn>": ("{{task.key}}", "The ARN of the schedule becomes the key of the task."),
}
_CALL = re.compile(r"(rate|cron|at)\((.*)\)")


class NoEqual(ValueError):
    """A schedule cannot be expressed as a task; the message has the reason."""


def entry(schedule: Mapping[str, Any], taken: set[str], *, now: datetime, target: str | None = None) -> Entry:
    """Return the task that runs as a schedule does. Its key is the schedule's name, with the group in front if that is not `default`.

    `target` is the named target for schedules whose own target has no type here. `taken` has the keys of other tasks, and gets this one.
    Raises NoEqual.
    """
    if schedule.get("State") == "DISABLED":
        raise NoEqual("is disabled, and a new task is active: enable it, or create the task and pause it")
    notes: list[str] = []
    group = schedule.get("GroupName", "default")
    key = proposed(schedule["Name"] if group == "default" else f"{group}.{schedule['Name']}", taken)
    body: dict[str, Any] = {"key": key, "name": schedule["Name"]}
    if schedule.get("Description"):
        body["description"] = schedule["Description"]
    body["schedule"] = _form(schedule, notes, now)
    body |= _content(schedule["Target"], notes, target) | _retry(schedule["Target"], notes)
    if schedule.get("KmsKeyArn"):
        notes.append("Its own KMS key is not taken over: the stage has one for all tables.")
    taken.add(key)
    return Entry(body, [f"{group}/{schedule['Name']}: {schedule['ScheduleExpression']}", *notes])


def _form(schedule: Mapping[str, Any], notes: list[str], now: datetime) -> dict[str, Any]:
    expression = schedule["ScheduleExpression"].strip()
    call = _CALL.fullmatch(expression)
    if call is None:
        raise NoEqual(f"has an expression of another form: {expression}")
    zone = schedule.get("ScheduleExpressionTimezone") or "UTC"
    kind, inner = call[1], call[2].strip()
    jitter = schedule.get("FlexibleTimeWindow") or {}
    spread = {"jitter_seconds": int(jitter["MaximumWindowInMinutes"]) * 60} if jitter.get("Mode") == "FLEXIBLE" else {}
    others = {**({"time_zone": zone} if zone != "UTC" else {}), **spread}
    start, end = schedule.get("StartDate"), schedule.get("EndDate")
    if kind == "at":
        at = datetime.fromisoformat(inner).replace(tzinfo=ZoneInfo(zone))
        if at < now:
            raise NoEqual(f"was due at {_instant(at)}")
        if schedule.get("ActionAfterCompletion") == "DELETE":
            notes.append("The task stays after its run, with its history.")
        return {"at": _instant(at), **others}
    if kind == "rate":
        form = {"rate": inner}
        start = start or schedule.get("CreationDate")  # from which EventBridge Scheduler counts
    else:
        fields, first, last = _cron(inner, zone)
        form = {"cron": fields, **({} if zone == "UTC" or _floats(fields) else {"dst_gap": "skip"})}
        start, end = max(_given(start, first), default=None), min(_given(end, last), default=None)
    if end is not None and end <= now:
        raise NoEqual(f"has ended at {_instant(end)}")
    return {**form, **others, **({"start": _instant(start)} if start else {}), **({"end": _instant(end)} if end else {})}


def _given(*instants: datetime | None) -> list[datetime]:
    return [at for at in instants if at is not None]


def _floats(cron: str) -> bool:
    """Whether a change of the clock skips and repeats nothing: its minute or its hour begins with `*`."""
    minute, hour, *_ = cron.split()
    return minute.startswith("*") or hour.startswith("*")


def _cron(inner: str, zone: str) -> tuple[str, datetime | None, datetime | None]:
    """Return the five fields of a cron expression with six, and the bounds of its years. Raises NoEqual."""
    fields = inner.split()
    if len(fields) != 6:
        raise NoEqual(f"has a cron expression without six fields: {inner}")
    minute, hour, day, month, weekday, year = fields
    if "W" in day.upper():
        raise NoEqual(f"uses W, the nearest weekday ({day})")
    day = "*" if day == "?" else day
    weekday = "*" if weekday == "?" else _weekdays(weekday)
    return " ".join((*map(_steps, (minute, hour, day, month), (59, 23, 31, 12)), weekday)), *_years(year, zone)


def _years(field: str, zone: str) -> tuple[datetime | None, datetime | None]:
    """Return the first instant of some years in a row, and the first after them. Raises NoEqual."""
    if field == "*":
        return None, None
    years = re.fullmatch(r"([0-9]{4})(?:-([0-9]{4}))?", field)
    if years is None:
        raise NoEqual(f"runs in years that are not in a row ({field}): make a task for each")
    first, last = int(years[1]), int(years[2] or years[1])
    return datetime(first, 1, 1, tzinfo=ZoneInfo(zone)), datetime(last + 1, 1, 1, tzinfo=ZoneInfo(zone))


def _steps(field: str, last: int) -> str:
    """Return a field with its steps as ranges: `5/15` counts from 5 to the end of the field. Names of months stay."""
    return ",".join(_step(each, last) for each in field.split(","))


def _step(part: str, last: int) -> str:
    begin, slash, step = part.partition("/")
    least = 0 if last in (59, 23) else 1
    if slash and begin.isdecimal():
        return f"*/{step}" if int(begin) == least else f"{begin}-{last}/{step}"
    low, _, high = begin.partition("-")
    if not slash and low.isdecimal() and high.isdecimal() and int(low) >= int(high):
        if low == high:
            return low
        return f"{low}-{last},{least}-{high}"
    return part


def _weekdays(field: str) -> str:
    """Return the days of the week by name: EventBridge Scheduler counts from 1, Sunday. Raises NoEqual."""
    if field.upper() == "L":
        return "SAT"
    if last := re.fullmatch(r"([1-7]|[A-Za-z]{3})L", field):
        return f"{_day(last[1])}L"
    if nth := re.fullmatch(r"([1-7]|[A-Za-z]{3})#([1-5])", field):
        return f"{_day(nth[1])}#{nth[2]}"
    parts = []
    for part in field.split(","):
        first, dash, last_ = part.partition("-")
        if not dash:
            parts.append(_day(first))
            continue
        begin, end = (DAYS.index(_day(each)) for each in (first, last_))
        days = [DAYS[(begin + number) % 7] for number in range((end - begin) % 7 + 1)]
        parts += [f"{days[0]}-{days[-1]}"] if begin < end else days
    return ",".join(parts)


def _day(text: str) -> str:
    if text.upper() in DAYS:
        return text.upper()
    if text in "1234567" and len(text) == 1:
        return DAYS[int(text) - 1]
    raise NoEqual(f"has a day of the week that is not known here: {text}")


def _instant(at: datetime) -> str:
    return at.astimezone(timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def _content(target: Mapping[str, Any], notes: list[str], named: str | None) -> dict[str, Any]:
    """Return what the task runs. Raises NoEqual."""
    arn = target["Arn"]
    service = arn.split(":")[2] if arn.count(":") >= 5 else ""
    data = _with_placeholders(_json(target.get("Input")), service, notes)
    if service == "lambda":
        return {"type": "lambda", "payload": {"function": arn, **_object("event", data), "mode": "async"}}
    if service == "sqs":
        group = (target.get("SqsParameters") or {}).get("MessageGroupId")
        return {"type": "sqs", "payload": {"queue": arn, "body": "" if data is None else data, **({"group": group} if group else {})}}
    if service == "sns":
        return {"type": "sns", "payload": {"topic": arn, "message": "" if data is None else data}}
    if service == "states":
        return {"type": "stepfunctions", "payload": {"state_machine": arn, **_object("input", data)}}
    if service == "events" and ":event-bus/" in arn:
        given = target.get("EventBridgeParameters") or {}
        payload = {"bus": arn, "source": given.get("Source", ""), "detail_type": given.get("DetailType", ""), **_object("detail", data)}
        return {"type": "eventbridge", "payload": payload}
    if named is not None:
        notes.append(f"Its target {arn} has no type here: the target {named} gets its input.")
        return {"target": named, "payload": {} if data is None else {"body": data}}
    raise NoEqual(f"has a target without a type here ({arn}): call it by a Lambda function, and give --target NAME")


def _json(text: str | None) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _with_placeholders(data: Any, service: str, notes: list[str]) -> Any:
    """Return the input with its keywords as placeholders. Raises NoEqual."""
    if isinstance(data, dict):
        return {name: _with_placeholders(value, service, notes) for name, value in data.items()}
    if isinstance(data, list):
        return [_with_placeholders(value, service, notes) for value in data]
    if not isinstance(data, str):
        return data
    text = data.replace("{{", "{{{{")
    for keyword, (placeholder, note) in KEYWORDS.items():
        if keyword in text:
            if placeholder == "{{attempt}}" and service == "states":
                raise NoEqual(f"has {keyword} in the input of a state machine, which is the same in every attempt")
            text = text.replace(keyword, placeholder)
            notes += [note] if note and note not in notes else []
    return text


def _object(name: str, data: Any) -> dict[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise NoEqual(f"has an input that is no JSON object, and a target that gets one: {str(data)[:40]}")
    return {name: data}


def _retry(target: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    policy = target.get("RetryPolicy") or {}
    found: dict[str, Any] = {}
    retries = policy.get("MaximumRetryAttempts")
    if retries is not None:
        found["max_attempts"] = min(retries + 1, MOST_ATTEMPTS)
        if retries + 1 > MOST_ATTEMPTS:
            notes.append(f"It has {retries} retries; a job has at most {MOST_ATTEMPTS} attempts, over a longer time each.")
    age = policy.get("MaximumEventAgeInSeconds")
    if age is not None:
        found["retry"] = {"max_elapsed_seconds": age}
    if target.get("DeadLetterConfig"):
        notes.append("Failed jobs are kept as dead letters; its own queue gets none. Events of ended jobs: `events: true`.")
    return found
