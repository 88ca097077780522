"""The normal form of a task: every field that a request can set, with defaults filled in, as the server stores it.

A task of a file and a task of the API that are the same have the same normal form; a `PUT` answers `unchanged` for exactly these. The
API's own tests hold the defaults here against its code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

Json = dict[str, Any]

RETRY: Json = {"base_seconds": 1, "cap_seconds": 900, "jitter": "full", "max_elapsed_seconds": None, "on_timeout": True}
CALLBACK: Json = {"lease_seconds": 300, "max_seconds": 86_400}
NOTIFICATIONS: Json = {"emails": [], "webhooks": [], "on": ["failure", "recovery"], "after_failures": 1, "digest_seconds": 900}
WEBHOOK: Json = {"signing_secret": None, "format": "standard"}
SCHEDULE: Json = {"time_zone": "UTC", "jitter_seconds": 0, "dst_gap": "shift", "dst_overlap": "first"}

# The order is that of a file. Some defaults depend on the schedule: `defaults`.
FIELDS = (
    "key",
    "name",
    "description",
    "schedule",
    "type",
    "target",
    "payload",
    "overlap",
    "misfire",
    "misfire_threshold_seconds",
    "max_catch_up",
    "max_attempts",
    "retry",
    "timeout_seconds",
    "callback",
    "tags",
    "ordering_key",
    "on_failure",
    "notifications",
    "events",
)
_UNITS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_RATE = re.compile(r"(?i:rate)\(\s*([0-9]{1,9})\s+([A-Za-z]+)\s*\)|([0-9]{1,9})\s+([A-Za-z]+)")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def of_request(body: Mapping[str, Any], current: Mapping[str, Any] | None = None) -> Json:
    """The normal form of a task that is requested, in the place of `current` if that is given (a normal form).

    Some fields come from `current`, as on the server: the start of a rate, and payload fields that follow from others.
    """
    given = {name: value for name, value in body.items() if value is not None}
    if "message" in given:
        given |= {"type": "log", "payload": {"message": given["message"]}}
    if "target" in given:
        given.pop("type", None)  # it is the target's
    schedule = _schedule(given.get("schedule"), (current or {}).get("schedule"))
    full = _completed({**given, "schedule": schedule})
    full["payload"] = _with_implied(given, current)
    return full


def of_answer(task: Mapping[str, Any]) -> Json:
    """The normal form of a task as the API returns it."""
    given = {name: task[name] for name in FIELDS if task.get(name) is not None}
    if "target" in given:
        given.pop("type", None)
    return _completed({**given, "schedule": _schedule(given.get("schedule"), None)})


def is_same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two normal forms are equal. In a payload `true`, 1 and 1.0 differ, which are equal in Python."""
    return one == other and is_same_json(one["payload"], other["payload"])


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def minimal(full: Mapping[str, Any]) -> Json:
    """The shortest request with this normal form, its fields in the order of a file."""
    least = {name: full[name] for name in FIELDS if full[name] is not None and full[name] != defaults(full["schedule"])[name]}
    for name, usual in (("retry", RETRY), ("notifications", NOTIFICATIONS)):
        if name in least:
            least[name] = {part: value for part, value in least[name].items() if value != usual[part]}
    if "notifications" in least:
        hooks = least["notifications"].get("webhooks", ())
        shorter = [{part: value for part, value in hook.items() if part == "url" or value != WEBHOOK[part]} for hook in hooks]
        least["notifications"] |= {"webhooks": shorter} if shorter else {}
    if least.get("type") == "log" and least["payload"].keys() == {"message"}:
        message = least.pop("payload")["message"]
        del least["type"]
        least = {
            name: value
            for name in (*FIELDS[:4], "message", *FIELDS[4:])
            for value in [{**least, "message": message}.get(name)]
            if value is not None
        }
    return least


def defaults(schedule: Mapping[str, Any] | None) -> Json:
    """The values of absent fields of a task with this schedule; None stands for a field without a value."""
    recurs = schedule is not None and "at" not in schedule
    return {
        **dict.fromkeys(FIELDS),
        "payload": {},
        "overlap": "skip" if recurs else "allow",
        "misfire": "run_latest" if recurs else None,
        "misfire_threshold_seconds": 60 if recurs else None,
        "max_attempts": 3,
        "retry": RETRY,
        "timeout_seconds": 300,
        "tags": [],
        "events": False,
    }


def _completed(given: Mapping[str, Any]) -> Json:
    full = {**defaults(given["schedule"]), **{name: given[name] for name in FIELDS if given.get(name) is not None}}
    if full["misfire"] == "run_all" and full["max_catch_up"] is None:
        full["max_catch_up"] = 100
    full["retry"] = {name: round(value, 3) if isinstance(value, float) else value for name, value in {**RETRY, **full["retry"]}.items()}
    if full["callback"] is not None:
        full["callback"] = {**CALLBACK, **full["callback"]}
    if full["ordering_key"] is not None:
        full["on_failure"] = full["on_failure"] or "continue"
    if full["notifications"] is not None:
        told = {**NOTIFICATIONS, **full["notifications"]}
        hooks = [{**WEBHOOK, **{part: value for part, value in hook.items() if value is not None}} for hook in told["webhooks"]]
        full["notifications"] = {**told, "emails": _once(told["emails"]), "webhooks": _once(hooks), "on": _once(told["on"])}
    return full


def _once(values: list[Any]) -> list[Any]:
    return [value for number, value in enumerate(values) if value not in values[:number]]


def _schedule(form: Mapping[str, Any] | None, current: Mapping[str, Any] | None) -> Json | None:
    """The form with its instants in UTC, its rate in the largest unit, and without defaults. A rate keeps the start that it has."""
    if form is None:
        return None
    given = {name: value for name, value in form.items() if value is not None and value != SCHEDULE.get(name)}
    if "cron" in given:
        given["cron"] = " ".join(given["cron"].split())
    if "rate" in given:
        given["rate"] = _rate(given["rate"])
        if "start" not in given and current is not None and current.get("rate") == given["rate"]:
            given["start"] = current["start"]
    for name in ("at", "start", "end"):
        if name in given:
            given[name] = instant(given[name])
    return given


def _rate(rate: Any) -> str:
    """A rate as the API writes it; text that is none is left to the server's judgment."""
    if isinstance(rate, Mapping):
        every, unit = rate["every"], str(rate["unit"])
    else:
        found = _RATE.fullmatch(rate.strip())
        if found is None:
            return str(rate)
        every, unit = int(found[1] or found[3]), found[2] or found[4]
    seconds = every * _UNITS.get(unit.lower().removesuffix("s"), 0)
    if not seconds:
        return f"rate({every} {unit})"
    unit, size = next((unit, size) for unit, size in _UNITS.items() if seconds % size == 0)
    return f"rate({seconds // size} {unit}{'s' if seconds > size else ''})"


def instant(text: str) -> str:
    """An instant as the API writes it: in UTC, to the millisecond, rounded up. Text that is none is returned as it is."""
    found = re.fullmatch(r"(.{19})(?:\.([0-9]{1,9}))?(.+)", text)
    try:
        assert found is not None
        whole = datetime.fromisoformat(found[1].upper() + found[3].upper().replace("Z", "+00:00"))
        at = (whole - _EPOCH) // timedelta(milliseconds=1) - (-int((found[2] or "").ljust(9, "0")) // 1_000_000)
        return (_EPOCH + timedelta(milliseconds=at)).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    except (AssertionError, ValueError, TypeError, OverflowError):
        return text


def _with_implied(given: Mapping[str, Any], current: Mapping[str, Any] | None) -> Json:
    """The payload with the method that follows from a body; of a target, which may have the body, the current task tells."""
    payload = dict(given.get("payload") or {})
    before = (current or {}).get("payload") or {}
    posts = payload.get("body") is not None if given.get("type") == "http" else before.get("method") == "POST" and "target" in given
    return {"method": "POST", **payload} if posts and "method" not in payload else payload
