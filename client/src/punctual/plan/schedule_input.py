"""The input of a schedule of EventBridge Scheduler: its keywords become placeholders, and what would become another input is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from punctual.plan.aws_cron import NoEqual

ATTEMPT = "<aws.scheduler.attempt-number>"
KEYWORDS = {
    "<aws.scheduler.scheduled-time>": ("{{nominal_at:date}}T{{nominal_at:time}}Z", ""),
    ATTEMPT: ("{{attempt}}", ""),
    "<aws.scheduler.execution-id>": ("{{job.id}}", "The execution id becomes the id of the job, which is the same in every attempt."),
}
ARN = "<aws.scheduler.schedule-arn>"


class Bytes(str):
    """A text that is sent as bytes, in UTF-8: no placeholder is replaced in them."""

    __slots__ = ()


def notification(schedule: Mapping[str, Any]) -> str:
    """The notification that EventBridge Scheduler delivers for a schedule without an input."""
    parts = [*str(schedule.get("Arn") or "").split(":"), *([""] * 5)]
    return json.dumps(
        {
            "version": "0",
            "id": "<aws.scheduler.execution-id>",
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": parts[4],
            "time": "<aws.scheduler.scheduled-time>",
            "region": parts[3],
            "resources": [ARN],
            "detail": "{}",
        }
    )


def literal(text: str) -> str:
    """The text with no placeholder."""
    return text.replace("{{", "{{{{")


def replaced(text: str, schedule: Mapping[str, Any], notes: list[str]) -> str:
    """The text with its keywords as placeholders, and otherwise the same."""
    made = literal(text)
    for keyword, (placeholder, note) in KEYWORDS.items():
        if keyword in made:
            made = made.replace(keyword, placeholder)
            notes += [note] if note and note not in notes else []
    return made.replace(ARN, literal(schedule.get("Arn") or ARN))


def parsed(text: str) -> Any:
    """The input as JSON; text that is no JSON as it is. Raises NoEqual if it would become another one."""
    try:
        return json.loads(text, object_pairs_hook=_once_each, parse_float=_exact, parse_constant=_no_number)
    except NoEqual:
        raise
    except ValueError:
        return text


def with_placeholders(data: Any, schedule: Mapping[str, Any], notes: list[str]) -> Any:
    """The data with the keywords of its texts as placeholders, and with bytes in base64. Raises NoEqual."""
    if isinstance(data, Mapping):
        if any(keyword in name for name in data for keyword in (*KEYWORDS, ARN)):
            raise NoEqual("has a keyword in the name of a field of its input, where no placeholder is replaced")
        return {name: with_placeholders(each, schedule, notes) for name, each in data.items()}
    if isinstance(data, list):
        return [with_placeholders(each, schedule, notes) for each in data]
    if isinstance(data, Bytes):
        return _base64(data.replace(ARN, schedule.get("Arn") or ARN))
    return replaced(data, schedule, notes) if isinstance(data, str) else data


def data_of(text: str, schedule: Mapping[str, Any], notes: list[str]) -> Any:
    """The input as JSON with placeholders. Raises NoEqual."""
    return with_placeholders(parsed(text), schedule, notes)


def object_of(text: str, schedule: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """The input as a JSON object with placeholders, to which Punctual can add its field. Raises NoEqual."""
    data = parsed(text)
    if not isinstance(data, dict):
        raise NoEqual(f"has an input that is no JSON object, and a target that gets one: {json.dumps(text)[:40]}")
    if "punctual" in data:
        raise NoEqual("has a field `punctual` in its input, where Punctual puts the ids of the run")
    made: dict[str, Any] = with_placeholders(data, schedule, notes)
    return made


def _base64(text: str) -> str:
    if found := [keyword for keyword in KEYWORDS if keyword in text]:
        raise NoEqual(f"has {found[0]} in what is sent as bytes, where no placeholder is replaced")
    return base64.b64encode(text.encode()).decode()


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NoEqual("has a field twice in one object of its input")
    return found


def _exact(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")) or Decimal(repr(number)) != Decimal(text):
        raise NoEqual(f"has a number in its input that would be rounded: {text[:40]}")
    return number


def _no_number(text: str) -> float:
    raise NoEqual(f"has {text} in its input, which is no JSON")
