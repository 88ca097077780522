"""Tasks from a crontab (crontab(5)): each line becomes a task that hands its command to a target.

Punctual runs no shell commands. A target of yours gets the command: a named target, or a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from punctual.plan import crontab_line
from punctual.plan.export import Entry, proposed, visible
from punctual.plan.zones import zone

_SETTING = re.compile(r"""\s*(?P<quote>["']?)(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)\s*=\s*(?P<value>.*?)\s*$""", re.DOTALL)
_ZONE, _DELAY = "CRON_TZ", "RANDOM_DELAY"  # of cronie; TZ is only part of a command's environment
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\$?(?::[A-Za-z0-9_.-]+)?(?:/[A-Za-z0-9_-]+)?")  # FreeBSD: with a group and a login class
LONGEST_DELAY = 1_440  # minutes
NAME_LENGTH = 80
Handed = dict[str, str]  # the command, and if there are any its standard input and its user
Content = Callable[[Handed], Mapping[str, Any]]


@dataclass
class Found:
    """The tasks of a crontab, and the lines that have no equal: line number, text, reason."""

    entries: list[Entry] = field(default_factory=list)
    refused: list[tuple[int, str, str]] = field(default_factory=list)


@dataclass
class _Settings:
    """The settings of the lines above: the time zone, the random delay in minutes, and the environment."""

    zone: str | None
    machine_zone: str | None
    delay: int = 0
    unknown_zone: str = ""
    noted: dict[str, str] = field(default_factory=dict)

    def set(self, name: str, value: str) -> None:
        """Raises ValueError with the reason; the setting is then as if the line was not there."""
        if len(value.split()) > 5 and _is_schedule(value.split()[1:6]):
            raise ValueError(f"has {name} in the line of a schedule: write CRON_TZ={value.split()[0]} in a line of its own")
        if name == _ZONE:
            self.unknown_zone = value  # of the lines below, if this raises
            if value:
                zone(value)
            self.zone, self.unknown_zone = value or self.machine_zone, ""
        elif name == _DELAY:
            if not value.isdecimal() or int(value) > LONGEST_DELAY:
                raise ValueError(f"RANDOM_DELAY must be a number of minutes up to {LONGEST_DELAY}, a day")
            self.delay = int(value)
        else:
            self.noted[name] = value

    def schedule(self, cron: str) -> dict[str, Any]:
        """Raises ValueError if the time zone is unknown."""
        if self.unknown_zone:
            raise ValueError(f"is in the time zone {self.unknown_zone[:40]}, which is unknown")
        if self.zone is None:
            raise ValueError("is in the time zone of its machine: give --time-zone")
        zoned = {"time_zone": self.zone} if self.zone != "UTC" else {}
        return {"cron": cron, **zoned, **({"jitter_seconds": self.delay * 60} if self.delay else {})}


def read(text: str, content: Content, *, time_zone: str | None, with_user: bool = False) -> Found:
    """Return the tasks of a crontab. `content` makes the fields of a task that say what it runs: `to_url`, `to_target`.

    `time_zone` is that of the machine; `CRON_TZ` in the crontab goes before it. With None, lines without CRON_TZ are refused.
    `with_user`: a line names a user before the command, as in /etc/crontab. Comments above a line stay with its task.
    Only a line feed ends a line, as for cron. Raises ValueError if the time zone is unknown.
    """
    if time_zone is not None:
        zone(time_zone)
    found = Found()
    comments: list[str] = []
    settings = _Settings(time_zone, time_zone)
    taken: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r").strip(" \t")
        if not line:
            continue
        if line.startswith("#"):
            comments.append(line.lstrip("# ").rstrip())
            continue
        try:
            _refuse_strange(line)
            if setting := _SETTING.fullmatch(line):
                value = setting["value"]
                quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
                settings.set(setting["name"], value[1:-1] if quoted else value)
                continue
            body = _task(line, content, settings, with_user, taken)
        except ValueError as reason:
            found.refused.append((number, line, str(reason)))
        else:
            noted = [f"{name}={value}" for name, value in settings.noted.items()]
            note = [f"The crontab sets {', '.join(noted)}: set it where the command runs."] if noted else []
            found.entries.append(Entry(body, [*comments, f"line {number}: {line}", *note]))
            taken.add(body["key"])
        comments = []
    return found


def to_url(url: str) -> Content:
    """Send each command to a URL, by POST."""
    return lambda handed: {"type": "http", "payload": {"method": "POST", "url": url, "body": handed}}


def to_target(name: str, field: str) -> Content:
    """Hand each command to a named target, in this field of its payload."""
    return lambda handed: {"target": name, "payload": {field: handed}}


def _task(line: str, content: Content, settings: _Settings, with_user: bool, taken: set[str]) -> dict[str, Any]:
    cron, rest = crontab_line.split(line)
    schedule = settings.schedule(cron)
    user = ""
    if with_user:
        user, *others = rest.split(None, 1) or [""]
        rest = "".join(others)
        if rest and not _USER.fullmatch(user):
            raise ValueError(f"names no user before the command: {user[:40]} is none")
    command, stdin = _command(rest)
    if not command:
        raise ValueError("has no command")
    first = command.split()[0]
    if not with_user and first in crontab_line.USERS:
        raise ValueError(f"begins its command with {first}, a user: give --user for lines with users")
    if first in ("-n", "-q", "-s"):
        raise ValueError(f"has the option {first} of BSD's cron before its command: take it out")
    if line.endswith("\\"):
        raise ValueError("ends with a backslash, and cron continues no lines")
    handed = {"command": command, **({"stdin": stdin} if stdin else {}), **({"user": user} if user else {})}
    name = " ".join(command.split())[:NAME_LENGTH].strip()
    body = {"key": proposed(name, taken), "name": name, "schedule": schedule, **content(literal(handed))}
    return body


def _is_schedule(fields: list[str]) -> bool:
    try:
        crontab_line.check(fields)
    except ValueError:
        return False
    return True


def _refuse_strange(line: str) -> None:
    """Raises ValueError for characters that editors hide."""
    if re.search(r"[\ud800-\udfff]", line):
        raise ValueError("is not UTF-8 text")
    if visible(line, keep="\t") != line:
        raise ValueError("has a control character")


def literal(handed: Handed) -> Handed:
    """The texts without placeholders."""
    return {name: value.replace("{{", "{{{{") for name, value in handed.items()}


def _command(rest: str) -> tuple[str, str]:
    """Return the command and its standard input: an unescaped % ends the command, and each further one is a new line."""
    command, *lines = re.split(r"(?<!\\)%", rest)
    return command.replace("\\%", "%").strip(), "\n".join(each.replace("\\%", "%") for each in lines)
