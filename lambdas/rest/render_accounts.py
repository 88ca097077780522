"""Users and the audit trail as the API shows them."""

from typing import Any

from scheduler.accounts.access import Caller
from scheduler.accounts.audit import Entry
from scheduler.accounts.model import Quotas
from scheduler.accounts.user_admin import Known
from scheduler.model.instants import render as write


def me(caller: Caller, weight: float, allowed: Quotas) -> dict[str, Any]:
    """Who somebody is."""
    return {
        "id": caller.id,
        "username": caller.name,
        "role": None if caller.role is None else str(caller.role),
        "scopes": sorted(map(str, caller.scopes)),
        "job_weight": weight,
        "allowed": quotas(allowed),
    }


def account(known: Known, allowed: Quotas, machine: bool) -> dict[str, Any]:
    """A user, or a machine client."""
    record = known.account
    return {
        "id": record.id,
        "username": record.username,
        "role": None if machine else str(record.role),
        "enabled": record.enabled,
        "job_weight": record.job_weight,
        "quotas": quotas(known.profile.quotas),
        "allowed": quotas(allowed),
        "created_at": None if machine else write(record.created_at),
    }


def quotas(record: Quotas) -> dict[str, Any]:
    return {"max_jobs": record.max_jobs, "creates_per_second": record.creates_per_second}


def entry(record: Entry) -> dict[str, Any]:
    """An entry of the audit trail."""
    names = ("id", "actor", "actor_name", "owner", "action", "object", "status", "address", "request_id")
    shown = {name: getattr(record, name) for name in names}
    ended = None if record.ended_at is None else write(record.ended_at)
    return shown | {"at": write(record.at), "ended_at": ended, "changes": dict(record.changes)}
