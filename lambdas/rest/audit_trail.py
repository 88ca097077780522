"""Entries of the audit trail: an entry is written before its change, and completed with the status of the answer."""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest import envelope
from lambdas.rest.client_address import client_address
from scheduler.accounts.access import Caller
from scheduler.accounts.audit import redacted
from scheduler.model import ids
from scheduler.model.audit import AuditEntry
from scheduler.model.errors import SchedulerError, Unavailable

# path parameters that name the changed object
_OBJECTS = ("job_id", "task_id", "redrive_id", "operation_id", "ordering_key", "key", "user_id", "message_id", "name")


def recorded(
    event: Mapping[str, Any], action: str, caller: Caller, owner: str, arguments: Mapping[str, str], body: Any, proceed: Callable[[], Any]
) -> Any:
    """The answer of `proceed`, with an entry in the audit trail. Raises Unavailable if it cannot be written; then nothing is changed."""
    ports, request = _runtime.api(), event["requestContext"]
    now = ports.clock.now()
    named = next((arguments[name] for name in _OBJECTS if name in arguments), None)
    of_user = action.startswith("user.") and named is not None and re.fullmatch(r"[A-Za-z0-9-]{1,64}", named) is not None
    entry = AuditEntry(
        id=ids.new(now, secrets.randbits(ids.RANDOM_BITS), partitions=1),
        at=now,
        actor=caller.id,
        actor_name=caller.name,
        owner=named if of_user and named else owner,  # the changed user may read the entry
        action=action,
        object=None if named is None else named[:128],
        request_id=str(request["requestId"]),
        address=client_address(event, ports.settings.get("origin_secret")),
        changes=redacted(body),
    )
    ports.trail.write(entry)
    try:
        answered = proceed()
    except SchedulerError as error:
        _end(entry, envelope.status(error), None)
        raise
    _end(entry, answered.status_code, answered.headers.get("Location"))
    return answered


def _end(entry: AuditEntry, status: int, made: str | None) -> None:
    """Complete an entry. If that fails, the entry shows only the request: better than an error for a change that was made."""
    ports = _runtime.api()
    object = entry.object or (made.rpartition("/")[2] if made else None)  # a created object is named by the answer's Location
    try:
        ports.trail.write(replace(entry, status=status, ended_at=ports.clock.now(), object=object))
    except Unavailable as error:
        logger.warning("could not complete an entry of the audit trail", extra={"entry": entry.id, "error": str(error)})
