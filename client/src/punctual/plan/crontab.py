"""Tasks from a crontab (crontab(5)): each line becomes a task that hands its command to a target.

Punctual runs no shell commands. A target of yours gets the command: a named target, or a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from punctual.plan.export import Entry, proposed

_SETTING = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")
_ZONE = "CRON_TZ"  # of cronie; TZ is only part of a command's environment
NAME_LENGTH = 80
Handed = dict[str, str]  # the command, and if there are any its standard input and its user


@dataclass
class Found:
    """The tasks of a crontab, and the lines that have no equal: line number, text, reason."""

    entries: list[Entry] = field(default_factory=list)
    refused: list[tuple[int, str, str]] = field(default_factory=list)


def read(text: str, content: Callable[[Handed], Mapping[str, Any]], *, time_zone: str | None, with_user: bool = False) -> Found:
    """Return the tasks of a crontab. `content` makes the fields of a task that say what it runs: `to_url`, `to_target`.

    `time_zone` is that of the machine; `CRON_TZ` in the crontab goes before it. With None, lines without CRON_TZ are refused.
    `with_user`: a line names a user before the command, as in /etc/crontab. Comments above a line stay with its task.
    """
    found = Found()
    comments: list[str] = []
    zone = time_zone
    noted: dict[str, str] = {}
    taken: set[str] = set()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped:
            continue
        if stripped.startswith("#"):
            comments.append(stripped.lstrip("# ").rstrip())
        elif setting := _SETTING.match(line):
            name, value = setting[1], setting[2].strip("'\"")
            zone = value if name == _ZONE else zone
            noted |= {} if name == _ZONE else {name: value}
        else:
            try:
                body = _task(stripped, content, zone, with_user, taken)
            except ValueError as reason:
                found.refused.append((number, stripped, str(reason)))
            else:
                settings = [f"{name}={value}" for name, value in noted.items()]
                note = [f"The crontab sets {', '.join(settings)}: set it where the command runs."] if settings else []
                found.entries.append(Entry(body, [*comments, f"line {number}: {stripped}", *note]))
            comments = []
    return found


def to_url(url: str) -> Callable[[Handed], Mapping[str, Any]]:
    """Send each command to a URL, by POST."""
    return lambda handed: {"type": "http", "payload": {"method": "POST", "url": url, "body": handed}}


def to_target(name: str, field: str) -> Callable[[Handed], Mapping[str, Any]]:
    """Hand each command to a named target, in this field of its payload."""
    return lambda handed: {"target": name, "payload": {field: handed}}


def _task(
    line: str, content: Callable[[Handed], Mapping[str, Any]], zone: str | None, with_user: bool, taken: set[str]
) -> Mapping[str, Any]:
    cron, rest = _schedule(line)
    if zone is None:
        raise ValueError("is in the time zone of its machine: give --time-zone")
    user = ""
    if with_user:
        user, *others = rest.split(None, 1)
        rest = "".join(others)
    if not rest:
        raise ValueError("has no command")
    command, stdin = _command(rest)
    handed = {"command": command, **({"stdin": stdin} if stdin else {}), **({"user": user} if user else {})}
    key = proposed(command[:NAME_LENGTH], taken)
    taken.add(key)
    schedule = {"cron": cron, **({"time_zone": zone} if zone != "UTC" else {})}
    return {"key": key, "name": command[:NAME_LENGTH], "schedule": schedule, **content(_literal(handed))}


def _literal(handed: Handed) -> Handed:
    """The same with braces that are no placeholders."""
    return {name: value.replace("{{", "{{{{") for name, value in handed.items()}


def _schedule(line: str) -> tuple[str, str]:
    if line.startswith("@"):
        word, *others = line.split(None, 1)
        rest = "".join(others)
        if word.lower() == "@reboot":
            raise ValueError("@reboot has no time: start it with the machine instead")
        return word.lower(), rest.strip()
    parts = line.split(None, 5)
    if len(parts) < 6:
        raise ValueError("needs five fields and a command")
    return " ".join(parts[:5]), parts[5]


def _command(rest: str) -> tuple[str, str]:
    """Return the command and its standard input: an unescaped % ends the command, and each further one is a new line."""
    command, *lines = re.split(r"(?<!\\)%", rest)
    return command.replace("\\%", "%").strip(), "\n".join(each.replace("\\%", "%") for each in lines)
