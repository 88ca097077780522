"""The audit trail of changes: actor, object, time. An entry is written before the change, and again with the status of the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KEPT_DAYS = 400
HIDDEN = "(not kept)"  # replaces a value that may contain secrets
_HIDES = frozenset(
    {"payload", "message", "password", "current_password", "new_password", "refresh_token", "headers", "secrets", "default_payload"}
)
_MOST = 300  # characters kept of each value


@dataclass(frozen=True, slots=True)
class Entry:
    """One requested change."""

    id: str  # sorts by time, as ids of jobs do
    at: int
    actor: str  # id of the user or machine client
    actor_name: str
    owner: str  # the owner of the object; `system` for an object that belongs to no user
    action: str  # "task.edit"
    object: str | None  # its id; None: not known yet
    request_id: str
    address: str  # the address of the client
    changes: Mapping[str, Any] = field(default_factory=dict)  # the requested values by field, without those that may be secret
    status: int | None = None  # of the answer; None: no answer yet, or it was not recorded
    ended_at: int | None = None


def redacted(body: Any) -> dict[str, Any]:
    """The fields of a request body as an entry stores them: secrets hidden, long values cut."""
    if not isinstance(body, Mapping):
        return {}
    return {name: HIDDEN if name in _HIDES else _brief(value) for name, value in body.items()}


def _brief(value: Any) -> Any:
    if isinstance(value, Mapping):
        return redacted(value)
    if isinstance(value, list):
        return [_brief(each) for each in value[:20]]
    return value[:_MOST] if isinstance(value, str) else value
