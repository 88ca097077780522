"""The schedule of a line of a crontab: read as Debian's cron reads it, or refused with the reason.

`L`, `15W` and `FRI#2` are read as in a schedule of Punctual: the sources below give them no meaning.

Sources: crontab(5) of Debian's cron, of cronie (`~`, `-` in front), of FreeBSD (`@every_minute`, `-n`, `-q`) and OpenBSD (`-s`);
anacrontab(5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

WORDS = {
    "@yearly": "@yearly",
    "@annually": "@annually",
    "@monthly": "@monthly",
    "@weekly": "@weekly",
    "@daily": "@daily",
    "@midnight": "@midnight",
    "@hourly": "@hourly",
    "@every_minute": "* * * * *",
}
LONGEST = 256  # characters of an expression
# Users of common packages. None of them is the name of a command.
USERS = ("root", "www-data", "nobody", "daemon", "munin", "logcheck", "smmsp", "list", "_apt")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_ITEM = re.compile(r"(?:(\*)|([0-9]{1,9}|[A-Z]{3})(?:-([0-9]{1,9}|[A-Z]{3}))?)(?:/([0-9]{1,9}))?")
_LIKE_A_FIELD = re.compile(
    r"[-0-9*,/?#~]*[0-9*?][-0-9*,/?#~LW]*|\?|(?:MON|TUE|WED|THU|FRI|SAT|SUN)(?:[-,#](?:[A-Z]{3}|[0-9]))*", re.IGNORECASE
)
_COUNTED = {  # L, 15W and FRI#2: the number is the day of the month that must exist, or the day of the week
    "day of the month": re.compile(r"LW?|L-(?P<back>[1-9]|[12][0-9]|30)|(?P<number>[0-9]{1,2})W"),
    "day of the week": re.compile(r"(?P<number>[0-9]|[A-Z]{3})(?:L|#[1-5])"),
}
_OF_OTHERS = (
    ("~", "uses ~, a random time: write a time, and jitter_seconds"),
    ("?", "uses ?, as Quartz and AWS do: a crontab has five fields and *"),
    ("@", "uses @, which a crontab has not"),
    ("!", "uses !, which a crontab has not"),
)


@dataclass(frozen=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def value(self, text: str) -> int:
        if text in self.names:
            return self.low + self.names.index(text)
        if not text.isdecimal():
            raise ValueError(f"has a {self.name} that is not known: {text}")
        if not self.low <= int(text) <= self.high:
            raise ValueError(f"has a {self.name} beyond {self.low} to {self.high}: {text}")
        return int(text)


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 7, _WEEKDAYS),
)


def split(line: str) -> tuple[str, str]:
    """Return the schedule of a line, as Punctual reads it, and the rest of the line. Raises ValueError with the reason."""
    if line.startswith("@"):
        word, *others = line.split(None, 1)
        rest = "".join(others).strip()
        if word.lower() == "@reboot":
            raise ValueError("@reboot has no time: start it with the machine instead")
        if word.lower() not in WORDS:
            raise ValueError(f"{word[:20]} is none of the words {', '.join(WORDS)}")
        if rest.split(None, 1)[:1] and rest.split(None, 1)[0].isdecimal():
            raise ValueError("has a number after its period, as in an anacrontab: write a time of the day")
        return WORDS[word.lower()], rest
    # A dash in front keeps cron's own log silent.
    parts = re.split(r"[ \t]+", re.sub(r"^-(?=[0-9*])", "", line), maxsplit=5)
    if len(parts) >= 4 and re.fullmatch(r"[0-9]+", parts[0]) and re.fullmatch(r"[0-9]+", parts[1]) and _is_anacron(parts[2]):
        raise ValueError("has a period, a delay and a name, as in an anacrontab: write a time of the day")
    if len(parts) < 6:
        raise ValueError("needs five fields and a command")
    check(parts[:5])
    if _LIKE_A_FIELD.fullmatch(parts[5].split(None, 1)[0]):
        raise ValueError("has more than five fields: a crontab has no seconds and no years")
    return " ".join(parts[:5]), parts[5]


def _is_anacron(text: str) -> bool:
    return re.fullmatch(r"(?!L-[0-9])[A-Za-z][A-Za-z0-9_.-]{3,}", text) is not None


def check(fields: list[str]) -> None:
    """Raises ValueError with the reason if Punctual does not accept the five fields, or would read them otherwise than cron."""
    numbers = [_numbers(rule, text) for rule, text in zip(_FIELDS, fields, strict=True)]
    longest = max((date(2000 + month // 12, month % 12 + 1, 1) - date(2000, month, 1)).days for month in numbers[3])
    if min(numbers[2]) > longest:
        raise ValueError("names a date that never comes")
    if len(" ".join(fields)) > LONGEST:
        raise ValueError(f"has an expression of more than {LONGEST} characters")


def _numbers(rule: _Field, text: str) -> set[int]:
    for sign, reason in _OF_OTHERS:
        if sign in text:
            raise ValueError(reason)
    items = text.upper().split(",")
    if len(items) > 1 and "*" in items:
        raise ValueError(f"has * in a list, where it leaves the rest without meaning: {text}")
    pattern = _COUNTED.get(rule.name)
    counted = [found for item in items if pattern and (found := pattern.fullmatch(item))]
    if counted and len(counted) < len(items) and rule.name == "day of the week":
        raise ValueError(f"has # or L beside plain days of the week: make two lines of {text}")
    others = [item for item in items if not (pattern and pattern.fullmatch(item))]
    return {_counted(rule, found) for found in counted} | {number for item in others for number in _item(rule, item)}


def _counted(rule: _Field, found: re.Match[str]) -> int:
    parts = found.groupdict()
    if parts.get("back"):
        return int(parts["back"]) + 1
    return rule.value(parts["number"]) if parts["number"] else 1


def _item(rule: _Field, item: str) -> range:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise ValueError(f"has a {rule.name} of another form: {item[:40] or 'an empty one'}")
    star, low, high, step = found.groups()
    top = 6 if rule.name == "day of the week" else rule.high
    if star:
        first, last = rule.low, top
    elif high:
        first, last = rule.value(low), rule.value(high)
        last = 7 if high == "SUN" and first > 0 else last
        if first == last:
            raise ValueError(f"has a range of one, which some read as all: write {low} in place of {item}")
        if first > last:
            raise ValueError(f"has a range that goes backwards: {item}")
    elif step:
        raise ValueError(f"has a step without a range, which crons read in two ways: {item}")
    else:
        first = last = rule.value(low)
    if step and not 1 <= int(step) <= last - first:
        raise ValueError(f"has a step that leaves its range at once: {item}")
    return range(first, last + 1, int(step or 1))
