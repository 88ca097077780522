"""Placeholders in the strings of a payload, such as `{{scheduled_at}}`: checked when a job is created, replaced when it runs. Pure.

Names of fields are no strings of the payload: they are neither checked nor replaced. `{{{{` stands for a literal `{{`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from scheduler.model import instants
from scheduler.targets.job_context import JobContext

OPEN = "{{"
ATTEMPT = "attempt"
MOST = 100  # placeholders of one payload: each may become a text of some hundred characters
DEEPEST = 100  # levels of a payload with placeholders: replacing them takes a call for each level
_LONGEST = 100  # characters between the braces, which bounds the search for their end
_FOUND = re.compile(r"\{\{(?:(\{\{)|([^{}]{0,100})\}\}|(?!\{))")  # of three braces before a name the first one is text

Path = tuple[str | int, ...]
Encode = Callable[[str], str]


def _clock(pattern: str) -> Callable[[int], str]:
    return lambda at: (instants.EPOCH + timedelta(milliseconds=at)).strftime(pattern)


# Not %Y: it writes a year before 1000 with fewer digits.
_FORMATS: dict[str, Callable[[int], str]] = {
    "date": lambda at: instants.render(at)[:10],
    "time": _clock("%H:%M:%S"),
    "year": lambda at: instants.render(at)[:4],
    "month": _clock("%m"),
    "day": _clock("%d"),
    "hour": _clock("%H"),
    "minute": _clock("%M"),
    "unix": lambda at: str(at // 1_000),
    "unix_ms": str,
}


def _instant(name: str, write: Callable[[int], str]) -> Callable[[JobContext], str]:
    return lambda context: "" if (at := getattr(context, name)) is None else write(at)


def _text(name: str) -> Callable[[JobContext], str]:
    return lambda context: "" if (value := getattr(context, name)) is None else str(value)


_INSTANTS = ("scheduled_at", "nominal_at")
_TEXTS = {name.replace("_", "."): _text(name) for name in ("job_id", "job_key", "group_id", "task_id", "task_name", "task_key")}
VALUES: Mapping[str, Callable[[JobContext], str]] = {
    **{name: _instant(name, instants.render) for name in _INSTANTS},
    **{f"{name}:{form}": _instant(name, write) for name in _INSTANTS for form, write in _FORMATS.items()},
    **_TEXTS,
    ATTEMPT: _text(ATTEMPT),
}
"""Every placeholder, and the text that replaces it: an empty one if the job has no such value."""

KNOWN = f"{', '.join((*_INSTANTS, *_TEXTS, ATTEMPT))}; after {' and '.join(_INSTANTS)} a format: {', '.join(_FORMATS)}"
LITERAL = f"write {OPEN * 2} for a literal {OPEN}"


def used_in(payload: Mapping[str, Any]) -> bool:
    """Whether a payload has to be rendered when it runs."""
    if OPEN not in json.dumps(payload, ensure_ascii=False):
        return False
    return any(isinstance(value, str) and OPEN in value for _, value in _values(payload))


def broken(payload: Mapping[str, Any], *, equal_attempts: bool = False) -> Iterator[tuple[Path, str]]:
    """The rules that the placeholders of a payload break, each with its field. `equal_attempts`: no attempt may differ from another."""
    if not used_in(payload):
        return
    count = 0
    for path, value in _values(payload):
        if len(path) > DEEPEST:
            yield path[:1], f"is nested deeper than {DEEPEST} levels, which a payload with placeholders must not be"
            return
        for found in _FOUND.finditer(value) if isinstance(value, str) else ():
            literal, name = found.groups()
            if literal:
                continue
            count += 1
            if count > MOST:
                yield (), f"has more than {MOST} placeholders"
                return
            if rule := _rule(name, equal_attempts):
                yield path, rule
                break


def rendered(payload: Mapping[str, Any], context: JobContext, encodings: Mapping[str, Encode]) -> dict[str, Any]:
    """The payload with its placeholders replaced by the values of the run.

    `encodings`: for a payload field whose strings are restricted, the encoding of the values in it.
    """
    return {name: _rendered(value, context, encodings.get(name, str)) for name, value in payload.items()}


def leaves_path(written: str, url: str) -> bool:
    """Whether a placeholder has made a segment of the URL's path a dot segment. Clients and servers remove those, with the one before.

    Their percent-encoded forms are removed too (https://url.spec.whatwg.org/#double-dot-path-segment). A slash in a value is encoded; some
    servers decode it first, so that one segment becomes several.
    """
    changed = [after for before, after in zip(_segments(written), _segments(url), strict=False) if before != after]
    return any(_is_dots(part) for segment in changed for part in _SLASH.split(segment))


_SLASH = re.compile(r"%2f|%5c|\\", re.IGNORECASE)


def _segments(url: str) -> list[str]:
    return re.split("[?#]", url, maxsplit=1)[0].split("/")


def _is_dots(segment: str) -> bool:
    """Some servers ignore parameters of a segment, as in `..;v=1`."""
    return segment.partition(";")[0].lower().replace("%2e", ".") in (".", "..")


def _rule(name: str | None, equal_attempts: bool) -> str | None:
    if name is None:
        return f"has {OPEN} without an end within {_LONGEST} characters; {LITERAL}"
    name = name.strip()
    if name not in VALUES:
        return f"there is no placeholder {OPEN}{name}}}}}; known: {KNOWN}; {LITERAL}"
    if name == ATTEMPT and equal_attempts:
        return f"cannot have {OPEN}{ATTEMPT}}}}}: it must be the same in every attempt"
    return None


def _values(payload: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """Every value at any depth, with its path."""
    left: list[tuple[Path, Any]] = [((), payload)]
    while left:
        path, value = left.pop()
        yield path, value
        if isinstance(value, Mapping):
            left += [((*path, name), each) for name, each in reversed([*value.items()])]
        elif isinstance(value, list):
            left += [((*path, number), each) for number, each in reversed([*enumerate(value)])]


def _rendered(value: Any, context: JobContext, encode: Encode) -> Any:
    if isinstance(value, str):
        return _FOUND.sub(lambda found: _in_place_of(found, context, encode), value) if OPEN in value else value
    if isinstance(value, Mapping):
        return {name: _rendered(each, context, encode) for name, each in value.items()}
    if isinstance(value, list):
        return [_rendered(each, context, encode) for each in value]
    return value


def _in_place_of(found: re.Match[str], context: JobContext, encode: Encode) -> str:
    literal, name = found.groups()
    if literal:
        return OPEN
    value = VALUES.get((name or "").strip())
    return found[0] if value is None else encode(value(context))  # unknown: of another version, or not checked
