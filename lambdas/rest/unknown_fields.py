"""The field that a request probably means by an unknown one."""

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

LONGEST = 40  # characters of the longest name that is compared: every field is shorter

# By the name of a guess: what it may mean. The first one whose first word, up to a dot, is a field of the object.
MEANT: Mapping[str, Sequence[str]] = {
    "at": ("execute_at", "schedule.at"),
    "attempts": ("max_attempts",),
    "body": ("payload.body with type http",),
    "cron": ("schedule.cron",),
    "crons": ("cron", "schedule.cron"),
    "cron_expression": ("cron", "schedule.cron"),
    "every": ("schedule.every",),
    "execute_at": ("at", "schedule.at"),
    "http": ("payload with type http",),
    "in": ("delay",),
    "interval": ("rate", "schedule.rate"),
    "json": ("payload.body with type http",),
    "max_retries": ("max_attempts",),
    "rate": ("schedule.rate",),
    "retries": ("max_attempts",),
    "run_at": ("execute_at", "at", "schedule.at"),
    "on": ("weekdays",),
    "schedule": ("cron", "rate"),
    "time": ("execute_at", "at", "schedule.at"),
    "time_zone": ("schedule.time_zone",),
    "timeout": ("timeout_seconds",),
    "timezone": ("time_zone", "schedule.time_zone"),
    "tz": ("time_zone", "schedule.time_zone"),
    "uri": ("url", "payload.url with type http"),
    "url": ("payload.url with type http",),
    "when": ("execute_at", "at", "schedule.at"),
}


def hint(name: str, known: Collection[str]) -> str:
    """`; did you mean ...?` if a known name is near or meant, else nothing."""
    if len(name) > LONGEST:
        return ""
    meant = [each for each in MEANT.get(name.lower(), ()) if each.partition(" ")[0].partition(".")[0] in known]
    found = meant or difflib.get_close_matches(name, known, 1)
    return f"; did you mean {found[0]}?" if found else ""


def known_at(model: Any, place: Sequence[str | int]) -> Collection[str]:
    """The names of the fields at a place in a request of this model; none if it has no model."""
    for part in place:
        if isinstance(part, int):
            continue
        field = None if model is None else next((each for name, each in model.model_fields.items() if part in (name, each.alias)), None)
        model = None if field is None else next(_models(field.annotation), None)
    return () if model is None else [each.alias or name for name, each in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
