"""Tasks from a crontab (crontab(5)): each line becomes a task that hands its command to a target.

Punctual runs no shell commands. A target of yours gets the command: a named target, or a URL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from punctual.plan.export import Entry, proposed

_SETTING = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")
_ZONES = ("CRON_TZ", "TZ")
_NOTED = ("SHELL", "PATH", "MAILTO", "HOME", "LOGNAME", "MAILFROM")
NAME_LENGTH = 80


@dataclass
class Found:
    """The tasks of a crontab, and the lines that have no equal: line number, text, reason."""

    entries: list[Entry] = field(default_factory=list)
    refused: list[tuple[int, str, str]] = field(default_factory=list)


def read(text: str, what: Mapping[str, Any], *, time_zone: str = "UTC", with_user: bool = False) -> Found:
    """Return the tasks of a crontab. `what` has `http` (a URL) or `target` (the name of a target): it gets the command.

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
            comments = []
        elif stripped.startswith("#"):
            comments.append(stripped.lstrip("# ").rstrip())
        elif setting := _SETTING.match(line):
            name, value = setting[1], setting[2].strip("'\"")
            zone = value if name in _ZONES else zone
            noted |= {} if name in _ZONES else {name: value}
        else:
            try:
                body = _task(stripped, what, zone, with_user, taken)
            except ValueError as reason:
                found.refused.append((number, stripped, str(reason)))
            else:
                settings = [f"{name}={value}" for name, value in noted.items()]
                note = [f"The crontab sets {', '.join(settings)}: set it where the command runs."] if settings else []
                found.entries.append(Entry(body, [*comments, f"line {number}: {stripped}", *note]))
            comments = []
    return found


def _task(line: str, what: Mapping[str, Any], zone: str, with_user: bool, taken: set[str]) -> Mapping[str, Any]:
    cron, rest = _schedule(line)
    user = ""
    if with_user:
        user, _, rest = rest.partition(" ")
        rest = rest.strip()
    if not rest:
        raise ValueError("has no command")
    command, stdin = _command(rest)
    handed = {"command": command, **({"stdin": stdin} if stdin else {}), **({"user": user} if user else {})}
    key = proposed(command[:NAME_LENGTH], taken)
    taken.add(key)
    if "http" in what:
        content: Mapping[str, Any] = {"type": "http", "payload": {"method": "POST", "url": what["http"], "body": handed}}
    else:
        content = {"target": what["target"], "payload": {"body": handed}}
    schedule = {"cron": cron, **({"time_zone": zone} if zone != "UTC" else {})}
    return {"key": key, "name": command[:NAME_LENGTH], "schedule": schedule, **content}


def _schedule(line: str) -> tuple[str, str]:
    if line.startswith("@"):
        word, _, rest = line.partition(" ")
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
