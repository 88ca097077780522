"""The audit trail: who changed what and when. An entry is written before the change, and once more with how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KEPT_DAYS = 400
HIDDEN = "(not kept)"  # in place of what may hold secrets
_HIDES = frozenset({"payload", "message", "password", "current_password", "new_password", "headers", "secrets", "default_payload"})
_MOST = 300  # letters of each value


@dataclass(frozen=True, slots=True)
class Entry:
    """One change that somebody asked for."""

    id: str  # sorts by time, as ids of jobs do
    at: int
    actor: str  # id of the user or machine client
    actor_name: str
    owner: str  # whose object it is; `system` for what is everybody's
    action: str  # "task.edit"
    object: str | None  # id of it; None: not known yet
    request_id: str
    address: str  # where the request came from
    changes: Mapping[str, Any] = field(default_factory=dict)  # what was asked for, by field, without what may be secret
    status: int | None = None  # of the answer; None: there was none yet, or none at all
    ended_at: int | None = None


def told(asked: Any) -> dict[str, Any]:
    """Of a request body, what an entry keeps."""
    if not isinstance(asked, Mapping):
        return {}
    return {name: HIDDEN if name in _HIDES else _brief(value) for name, value in asked.items()}


def _brief(value: Any) -> Any:
    if isinstance(value, Mapping):
        return told(value)
    if isinstance(value, list):
        return [_brief(each) for each in value[:20]]
    return value[:_MOST] if isinstance(value, str) else value
