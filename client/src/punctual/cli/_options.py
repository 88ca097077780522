"""Options that several commands have, and how their values are read."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from typer import Option

from punctual.cli import _words as words
from punctual.cli._app import Refused

T = TypeVar("T")

Tags = Annotated[
    list[str] | None, Option("--tag", "-t", metavar="TAG", help="Only with this tag; repeat it for several, all of which are needed.")
]
Statuses = Annotated[list[str] | None, Option("--status", "-s", metavar="STATUS", help="Only with this status; repeat it for several.")]
Type = Annotated[str | None, Option("--type", help="Only of this type, such as http.")]
TaskId = Annotated[str | None, Option("--task", metavar="ID", help="Only runs of this task.")]
Lane = Annotated[str | None, Option("--lane", help="Only of this lane: one-time, recurring or retry.")]
Since = Annotated[
    str | None, Option("--since", metavar="WHEN", help="Only scheduled at or after: an instant, or a duration ago such as 1h.")
]
Until = Annotated[str | None, Option("--until", metavar="WHEN", help="Only scheduled before: an instant, or a duration ago.")]
All = Annotated[bool, Option("--all", help="All of them, without a filter.")]
Rate = Annotated[int | None, Option("--rate", metavar="N", help="At most N a second.")]
AtMost = Annotated[int | None, Option("--limit", metavar="N", help="Change at most N.")]
Limit = Annotated[int, Option("--limit", "-n", metavar="N", min=0, help="List at most N; 0 lists all.")]
DryRun = Annotated[bool, Option("--dry-run", help="Count them, and change nothing.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
Reason = Annotated[str | None, Option("--reason", help="The reason, shown to other users.")]
Everyone = Annotated[bool, Option("--everyone", help="Of all users and teams; for operators.")]
Key = Annotated[str | None, Option("--key", metavar="KEY", help="The one with this key of yours, instead of an id.")]
GroupId = Annotated[str | None, Option("--group", metavar="ID", help="Join this open group.")]
Detach = Annotated[bool, Option("--detach", help="Do not wait for the end.")]


def checked(name: str, read: Callable[[str], T], text: str) -> T:
    """Return the value of an option. Raises Refused with the option's name and the rule."""
    try:
        return read(text)
    except ValueError as error:
        raise Refused(f"{error}, not {text!r}", field=name) from error


def instant(name: str, text: str | None, now: datetime, read: Callable[[str, datetime], datetime] = words.ago) -> datetime | None:
    """Return the instant of an option: RFC 3339, or a duration from now. Raises Refused."""
    return None if text is None else checked(name, lambda value: read(value, now), text)


def present(**values: Any) -> dict[str, Any]:
    """Return the values that were given: neither None, nor False, nor empty."""
    return {name: value for name, value in values.items() if value not in (None, False, [], ())}


def text_of(name: str, value: str) -> str:
    """Return the text of an option: itself, of a file with `@FILE`, of the standard input with `@-`. Raises Refused."""
    if not value.startswith("@"):
        return value
    try:
        return sys.stdin.read() if value == "@-" else Path(value[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{value[1:]} cannot be read: {getattr(error, 'strerror', None) or error}", field=name) from error


def json_of(name: str, value: str) -> Any:
    """Return the JSON value of an option, which may be `@FILE` or `@-`. Raises Refused with line and column."""
    text = text_of(name, value)
    try:
        return json.loads(text)
    except ValueError as error:
        raise Refused(f"must be JSON: {error}", field=name, hint="In a shell, write it between single quotes: '{\"a\": 1}'") from error


def object_of(name: str, value: str) -> dict[str, Any]:
    """Return the JSON object of an option. Raises Refused."""
    found = json_of(name, value)
    if not isinstance(found, dict):
        raise Refused("must be a JSON object", field=name)
    return found


def pairs(name: str, values: Sequence[str] | None, separator: str) -> Mapping[str, str]:
    """Return the names and values of a repeated option such as `-H 'Accept: text/plain'`. Raises Refused."""
    found = dict[str, str]()
    for each in values or ():
        key, between, value = each.partition(separator)
        if not between or not key.strip():
            raise Refused(f"must be NAME{separator}VALUE, not {each!r}", field=name)
        found[key.strip()] = value.strip()
    return found
