"""An entry of the audit trail."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RETENTION_DAYS = 400


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One requested change."""

    id: str  # sorts by time, as ids of jobs do
    at: int
    actor: str  # the id of a person, or the ARN of an AWS role; no name: nobody could erase it here
    owner: str  # the owner of the object; `system` for an object that belongs to no owner
    action: str  # "task.edit"
    object: str | None  # its id; None: not known yet
    request_id: str
    address: str  # the address of the client
    key: str | None = None  # the id of the API key by which the actor made the change
    changes: Mapping[str, Any] = field(default_factory=dict)  # the requested values by field, without those that may be secret
    status: int | None = None  # of the answer; None: no answer yet, or it was not recorded
    ended_at: int | None = None
