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
_CALL = re.compile(r"(rate|cron|at)\((.*)\)")


class NoEqual(ValueError):
    """A schedule cannot be expressed as a task; the message has the reason."""


def entry(schedule: Mapping[str, Any], taken: set[str], *, target: str | None = None) -> Entry:
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
    body["schedule"] = _form(schedule, notes)
    body |= _content(schedule["Target"], notes, target) | _retry(schedule["Target"], notes)
    if schedule.get("KmsKeyArn"):
        notes.append("Its own KMS key is not taken over: the stage has one for all tables.")
    taken.add(key)
    return Entry(body, [f"{group}/{schedule['Name']}: {schedule['ScheduleExpression']}", *notes])


def _form(schedule: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    expression = schedule["ScheduleExpression"].strip()
    call = _CALL.fullmatch(expression)
    if call is None:
        raise NoEqual(f"has an expression of another form: {expression}")
    zone = schedule.get("ScheduleExpressionTimezone") or "UTC"
    window: dict[str, Any] = {}
    for name, ours in (("StartDate", "start"), ("EndDate", "end")):
        if schedule.get(name):
            window[ours] = _instant(schedule[name])
    kind, inner = call[1], call[2].strip()
    if kind == "at":
        form = {"at": _instant(datetime.fromisoformat(inner).replace(tzinfo=ZoneInfo(zone)))}
        window = {}
    elif kind == "rate":
        form = {"rate": inner}
        if "start" not in window and schedule.get("CreationDate"):
            window["start"] = _instant(schedule["CreationDate"])  # from which EventBridge Scheduler counts
    else:
        form = {"cron": _cron(inner)}
    jitter = schedule.get("FlexibleTimeWindow") or {}
    spread = {"jitter_seconds": int(jitter["MaximumWindowInMinutes"]) * 60} if jitter.get("Mode") == "FLEXIBLE" else {}
    if kind == "at" and schedule.get("ActionAfterCompletion") == "DELETE":
        notes.append("The task stays after its run, with its history.")
    return {**form, **({"time_zone": zone} if zone != "UTC" else {}), **window, **spread}


def _cron(inner: str) -> str:
    """Return the five fields of a cron expression with six. Raises NoEqual."""
    fields = inner.split()
    if len(fields) != 6:
        raise NoEqual(f"has a cron expression without six fields: {inner}")
    minute, hour, day, month, weekday, year = fields
    if year != "*":
        raise NoEqual(f"runs in certain years only ({year}): give the task a start and an end")
    if "W" in day.upper():
        raise NoEqual(f"uses W, the nearest weekday ({day})")
    day = "*" if day == "?" else day
    weekday = "*" if weekday == "?" else _weekdays(weekday)
    return " ".join((*map(_steps, (minute, hour, day, month), (59, 23, 31, 12)), weekday))


def _steps(field: str, last: int) -> str:
    """Return a field with its steps as ranges: `5/15` counts from 5 to the end of the field. Names of months stay."""
    return ",".join(_step(each, last) for each in field.split(","))


def _step(part: str, last: int) -> str:
    start, slash, step = part.partition("/")
    if not slash or start == "*" or "-" in start:
        return part
    least = 0 if last in (59, 23) else 1
    return f"*/{step}" if start == str(least) else f"{start}-{last}/{step}"


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
    data = _json(target.get("Input"))
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
