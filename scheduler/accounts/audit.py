"""The audit trail of changes: actor, object, time. An entry is written before the change, and again with the status of the answer."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

HIDDEN = "(not kept)"  # replaces a value that may contain secrets
_HIDES = frozenset(
    {"payload", "message", "password", "current_password", "new_password", "refresh_token", "headers", "secrets"}
    | {"token", "code", "verifier"}
    | {"address"}  # of a receiver: everybody who knows the URL of a channel can write in it
    | {"defaults", "locked", "payload_schema"}  # of a named target: only administrators see them
)
PERSONAL = frozenset({"username", "email", "subject"})  # fields that an entry does not have: nobody can erase them with the person
CUT = "…"  # replaces what an entry has no room for
MOST_BYTES = 3_072  # of the changes: an entry then has at most 4 KB, whatever a request contains
_FIELDS, _NAME = 40, 50  # kept of each object: fields, and characters of their names
_ELEMENTS = 20  # kept of each list
_MOST = 300  # characters kept of each value
_DEPTH = 6  # levels of objects and lists below a field


def redacted(body: Any) -> dict[str, Any]:
    """The fields of a request body as an entry stores them: secrets hidden, long values cut, at most `MOST_BYTES` as JSON."""
    if not isinstance(body, Mapping):
        return {}
    shown: dict[str, Any] = {}
    left = MOST_BYTES - _size({CUT: CUT})
    for name, value in _first(body, 0).items():
        each, short = {name: value}, {name: CUT}
        chosen = each if _size(each) <= min(left, MOST_BYTES // 2) else short
        left -= _size(chosen)
        if left < 0:
            return shown | {CUT: CUT}
        shown |= chosen
    return shown


def _first(body: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """The first fields of an object."""
    shown = {name[:_NAME]: HIDDEN if name in _HIDES else _brief(body[name], depth) for name in islice(body, _FIELDS)}
    return shown if len(body) <= _FIELDS else shown | {CUT: f"{len(body) - _FIELDS} more fields"}


def _brief(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping | list) and depth == _DEPTH:
        return CUT
    if isinstance(value, Mapping):
        return _first(value, depth + 1)
    if isinstance(value, list):
        return [_brief(each, depth + 1) for each in value[:_ELEMENTS]]
    return value[:_MOST] if isinstance(value, str) else value


def _size(value: Any) -> int:
    return len(json.dumps(value))
