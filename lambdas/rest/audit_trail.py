"""Entries of the audit trail: an entry is written before its change, and completed with the status of the answer."""

import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lambdas import _runtime
from lambdas._logger import logger
from lambdas.rest import envelope
from lambdas.rest.client_address import client_address
from scheduler.accounts import api_keys
from scheduler.accounts.access import Caller
from scheduler.accounts.audit import PERSONAL, redacted
from scheduler.accounts.quota import MANY
from scheduler.model import ids
from scheduler.model.audit import AuditEntry
from scheduler.model.errors import SchedulerError, Unavailable

# path parameters that name the changed object
_OBJECTS = (
    *("job_id", "group_id", "task_id", "redrive_id", "operation_id", "ordering_key", "key", "invitation_id", "user_id", "team_id"),
    *("key_id", "principal_id", "message_id", "name", "receiver", "calendar_name"),
)
REFUSALS_MS = 60_000  # each process notes at most one refusal of a program in this time

_refused: dict[str, int] = {}  # when the last one was noted, by actor


def recorded(
    event: Mapping[str, Any], action: str, caller: Caller, owner: str, arguments: Mapping[str, str], body: Any, proceed: Callable[[], Any]
) -> Any:
    """The answer of `proceed`, with an entry in the audit trail. Raises Unavailable if it cannot be written; then nothing is changed."""
    ports = _runtime.api()
    now = ports.clock.now()
    named = next((arguments[name] for name in _OBJECTS if name in arguments), None)
    of_owner = next((arguments[name] for name in ("team_id", "user_id") if name in arguments), None)
    of_user = action.startswith(("user.", "team.")) and of_owner is not None and re.fullmatch(r"[A-Za-z0-9-]{1,64}", of_owner) is not None
    of = of_owner if of_user and of_owner else owner  # the changed user, or the managers of the team, may read the entry
    changes = {name: value for name, value in redacted(body).items() if name not in PERSONAL}
    entry = replace(
        _entry(event, action, caller, of), at=now, object=None if named is None else api_keys.without_secrets(named)[:128], changes=changes
    )
    ports.trail.write(entry)
    try:
        answered = proceed()
    except SchedulerError as error:
        _end(entry, envelope.status(error), None)
        raise
    _end(entry, answered.status_code, answered.headers.get("Location"))
    return answered


def note_refusal(event: Mapping[str, Any], caller: Caller, action: str, status: int, key: str | None = None) -> None:
    """Note that a program was refused. `key`: the id of a key that nobody has. If the entry cannot be written, the log has it."""
    ports = _runtime.api()
    now, actor = ports.clock.now(), caller.key or caller.id
    logger.warning("a program was refused", extra={"actor": actor, "action": action, "key": key})
    if 0 <= now - _refused.get(actor, -REFUSALS_MS) < REFUSALS_MS:
        return
    _refused.pop(actor, None)
    _refused[actor] = now
    if len(_refused) > MANY:
        del _refused[next(iter(_refused))]
    with suppress(Unavailable):
        begun = _entry(event, "access.refuse", caller, caller.owner)
        entry = replace(begun, object=key, changes={"action": action}, status=status, ended_at=now)
        ports.trail.write(entry)


def _entry(event: Mapping[str, Any], action: str, caller: Caller, owner: str) -> AuditEntry:
    ports = _runtime.api()
    now = ports.clock.now()
    return AuditEntry(
        id=ids.new(now, secrets.randbits(ids.RANDOM_BITS), partitions=1),
        at=now,
        actor=caller.id,
        key=caller.key,
        owner=owner,
        action=action,
        object=None,
        request_id=str(event["requestContext"]["requestId"]),
        address=client_address(event, ports.settings.get("origin_secret")),
    )


def _end(entry: AuditEntry, status: int, made: str | None) -> None:
    """Complete an entry. If that fails, the entry shows only the request: better than an error for a change that was made."""
    ports = _runtime.api()
    object = entry.object or (made.rpartition("/")[2] if made else None)  # a created object is named by the answer's Location
    try:
        ports.trail.write(replace(entry, status=status, ended_at=ports.clock.now(), object=object))
    except Unavailable as error:
        logger.warning("could not complete an entry of the audit trail", extra={"entry": entry.id, "error": str(error)})
