"""Records as the API shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scheduler.callbacks.reports import Beat
from scheduler.dead_letters.groups import Group, Overview
from scheduler.dead_letters.model import Redrive
from scheduler.jobs.ordering_keys import LineView
from scheduler.model import callback_lease, lifecycle
from scheduler.model.instants import render as instant
from scheduler.model.job import Attempt, CallBack, Failure, Job, Kept, LaneState, Misfire, Ordering, Page, Progress, RetryPolicy
from scheduler.model.notifications import Notifications
from scheduler.pipeline.output_store import Text
from scheduler.storage.ports import Session
from scheduler.targets.named_target import NamedTarget
from scheduler.tasks import schedule_form
from scheduler.tasks.schedule import Run, Skipped
from scheduler.tasks.task import Task
from scheduler.tasks.task import status as task_status


def job(record: Job, now: int) -> dict[str, Any]:
    """All there is to know of a job at `now`. Every field is always there, null where there is nothing to tell."""
    return {
        "id": record.id,
        "type": record.type,
        "target": record.target,
        "status": str(lifecycle.status(record, now)),
        "lane": str(record.lane),
        "shard_id": _shard(record),
        "payload": record.payload,
        "created_at": instant(record.created_at),
        "scheduled_at": instant(record.scheduled_at),
        "due_at": instant(record.due_at),
        "picked_at": _instant(record.claim.at if record.claim else record.picked_at),
        "started_at": _instant(_started(record, now)),
        **{name: _instant(getattr(record, name)) for name in lifecycle.FINAL_TIMES.values()},
        "start_delay_ms": lifecycle.delay(record, now),
        "late": lifecycle.is_late(record, now),
        "cancel_requested_at": _instant(record.cancel_requested_at),
        "max_attempts": record.max_attempts,
        "retry": _retry(record.retry),
        "timeout_seconds": record.timeout_ms // 1000,
        "callback": _callback(record.callback),
        "lease_until": _instant(callback_lease.ends_at(record)) if lifecycle.waits(record) else None,
        "heartbeat_at": _instant(record.heartbeat_at),
        "progress": _progress(record.progress),
        "attempts": [_attempt(each) for each in _with_outputs(record)],
        "output": record.output,
        "response": record.response,
        "reason": record.reason,
        "fingerprint": record.fingerprint,
        "redrives": record.redrives,
        "redriven_at": _instant(record.redriven_at),
        "tags": list(record.tags),
        **_ordering(record.ordering),
        **_origin(record),
    }


def page(record: Page, now: int) -> dict[str, Any]:
    """A page of jobs."""
    return {"jobs": [job(each, now) for each in record.jobs], "cursor": record.cursor}


def accepted(record: Job, now: int) -> dict[str, Any]:
    """What is new to whoever posted the job in a batch."""
    return {"id": record.id, "status": str(lifecycle.status(record, now)), "scheduled_at": instant(record.scheduled_at)}


def task(record: Task, runs: Sequence[Run], now: int) -> dict[str, Any]:
    """All there is to know of a task at `now`, and its next runs."""
    return _task(record, now) | {"next_runs": [run(each) for each in runs]}


def listed_task(record: Task, runs: Sequence[Run], now: int) -> dict[str, Any]:
    """The same with the first of its next runs only."""
    return _task(record, now) | {"next_run": run(runs[0]) if runs else None}


def _task(record: Task, now: int) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "description": record.description,
        "status": str(task_status(record, now)),
        "type": record.type,
        "target": record.target,
        "payload": record.payload,
        "schedule": None if record.schedule is None else schedule_form.write(record.schedule),
        "tags": list(record.tags),
        **_ordering(record.ordering),
        "overlap": str(record.overlap),
        "misfire": str(record.misfire) if record.is_recurring else None,
        "misfire_threshold_seconds": record.misfire_threshold_ms // 1000 if record.is_recurring else None,
        "max_catch_up": record.max_catch_up if record.is_recurring and record.misfire is Misfire.RUN_ALL else None,
        "max_attempts": record.max_attempts,
        "retry": _retry(record.retry),
        "timeout_seconds": record.timeout_ms // 1000,
        "callback": _callback(record.callback),
        "notifications": _notifications(record.notifications),
        "generation": record.generation,
        "created_at": instant(record.created_at),
        "updated_at": instant(record.updated_at),
        "inactive_at": _instant(record.inactive_at),
        "inactive_reason": record.inactive_reason,
    }


def run(record: Run | Skipped) -> dict[str, str | None]:
    """A run to come, or a skipped time, which has no `at`."""
    return {"nominal": instant(record.nominal), "at": _instant(record.at), "local": record.local, "odd": record.odd}


def lane(record: LaneState) -> dict[str, Any]:
    """A lane: whether it is paused and since when, or when it was last resumed, and why."""
    return {
        "lane": str(record.lane),
        "paused": record.paused_at is not None,
        "paused_at": _instant(record.paused_at),
        "resumed_at": _instant(record.resumed_at),
        "reason": record.reason,
    }


def target(record: NamedTarget, given: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
    """A named target; `whole`: with what only administrators see. `given`: the schema of what a job gives."""
    return {
        "name": record.name,
        "kind": record.kind,
        "description": record.description,
        "enabled": record.enabled,
        "given": dict(given),
        "rate": record.rate,
        "concurrency": record.concurrency,
        "defaults": dict(record.defaults) if whole else None,
        "locked": list(record.locked) if whole else None,
        "payload_schema": record.payload_schema if whole else None,
        "version": record.version,
        "created_at": instant(record.created_at),
        "created_by": record.created_by if whole else None,
        "updated_at": instant(record.updated_at),
        "updated_by": record.updated_by if whole else None,
    }


def dead_letters(record: Overview) -> dict[str, Any]:
    """Dead letters by error, and whether these are all."""
    return {"groups": [_group(each) for each in record.groups], "read": record.read, "complete": record.complete}


def _group(record: Group) -> dict[str, Any]:
    return {
        "fingerprint": record.fingerprint,
        "count": record.count,
        "error": _failure(record.sample),
        "types": sorted(record.types),
        "task_ids": sorted(record.tasks),
        "first_at": instant(record.first_at),
        "last_at": instant(record.last_at),
        "job_id": record.latest.key.id,
    }


def ordering_key(key: str, record: LineView) -> dict[str, Any]:
    """An ordering key: whose turn it is, whether it is parked, and how many wait."""
    parked = record.parked_by
    return {
        "ordering_key": key,
        "job_id": None if record.turn is None else record.turn.id,
        "parked_by": None if parked is None else parked.id,
        "parked_at": None if parked is None else _instant(parked.failed_at or parked.killed_at),
        "waiting": record.waiting,
        "more": record.more,
    }


def redrive(record: Redrive) -> dict[str, Any]:
    """A redrive and how far it is."""
    chosen = record.filter
    times = {"from": _instant(chosen.since), "to": _instant(chosen.until)}
    return {
        "id": record.id,
        "state": str(record.state),
        "filter": {"task": chosen.task, "type": chosen.type, "fingerprint": chosen.fingerprint} | times,
        "rate": record.rate,
        "limit": record.limit,
        "found": record.found,
        "redriven": record.redriven,
        "skipped": record.skipped,
        "started_at": instant(record.started_at),
        "ended_at": _instant(record.ended_at),
    }


def session(record: Session) -> dict[str, Any]:
    """A sign-in: the tokens, and who it is where that was asked."""
    shown: dict[str, Any] = {"token": record.token, "expire": instant(record.expire)}
    if record.refresh_token is not None:
        shown["refresh_token"] = record.refresh_token
    if record.user is not None:
        shown["user"] = {"id": record.user.id, "username": record.user.username, "job_weight": record.user.job_weight}
    return shown


def _origin(record: Job) -> dict[str, Any]:
    """What the job has of its task; and its expiry, which a run with a misfire rule does not have."""
    origin = record.origin
    expires_at = record.start_by if origin is None or origin.misfire is None else None
    return {
        "expires_at": _instant(expires_at),
        "task_id": None if origin is None else origin.task,
        "generation": None if origin is None else origin.generation,
        "nominal_at": None if origin is None else _instant(origin.nominal_at),
        "overlap": None if origin is None else str(origin.overlap),
        "misfire": None if origin is None or origin.misfire is None else str(origin.misfire),
    }


def _ordering(record: Ordering | None) -> dict[str, str | None]:
    return (
        {"ordering_key": None, "on_failure": None} if record is None else {"ordering_key": record.key, "on_failure": str(record.on_failure)}
    )


def _shard(record: Job) -> int | None:
    return None if record.slot is None else int(record.slot.partition("#")[2])


def _started(record: Job, now: int) -> int | None:
    """A claimed job has started once its instant has passed; nothing is written at that moment."""
    if record.claim is None:
        return record.started_at
    started = lifecycle.started_at(record)
    return started if started <= now else None


def _with_outputs(record: Job) -> Sequence[Attempt]:
    """Its attempts; the last one has its output too, which is the job's."""
    if not record.attempts:
        return ()
    *earlier, last = record.attempts
    return (*earlier, last if last.output else replace(last, output=record.output))


def _attempt(record: Attempt) -> dict[str, Any]:
    return {
        "number": record.fence,
        "picked_at": instant(record.picked_at),
        "started_at": _instant(record.started_at),
        "ended_at": instant(record.ended_at),
        "outcome": str(record.outcome),
        "failure": _failure(record.failure),
        "output": record.output,
        "log": record.log,
        "output_kept": "excerpt" if record.kept is Kept.CUT else "whole",
    }


def kept_text(record: Text, number: int) -> dict[str, Any]:
    """All of an output or a log."""
    return {"number": number, "text": record.text, "complete": record.complete}


def _failure(record: Failure | None) -> dict[str, Any] | None:
    if record is None:
        return None
    return {"kind": str(record.kind), "message": record.message, "retry_after_seconds": _seconds(record.retry_after_ms)}


def _retry(record: RetryPolicy) -> dict[str, Any]:
    """The policy as it may be posted again."""
    return {
        "base_seconds": _seconds(record.base_ms),
        "cap_seconds": _seconds(record.cap_ms),
        "jitter": str(record.jitter),
        "max_elapsed_seconds": _seconds(record.max_elapsed_ms),
        "on_timeout": record.on_timeout,
    }


def _callback(record: CallBack | None) -> dict[str, Any] | None:
    """As it may be posted again."""
    return None if record is None else {"lease_seconds": record.lease_ms // 1000, "max_seconds": record.max_ms // 1000}


def _notifications(record: Notifications | None) -> dict[str, Any] | None:
    """As it may be posted again."""
    if record is None:
        return None
    return {
        "emails": list(record.emails),
        "webhooks": [{"url": hook.url, "signing_secret": hook.signing_secret} for hook in record.webhooks],
        "on": [str(occasion) for occasion in record.on],
        "after_failures": record.after_failures,
        "digest_seconds": record.digest_ms // 1000,
    }


def _progress(record: Progress | None) -> dict[str, Any] | None:
    return None if record is None else {"fraction": record.fraction, "message": record.message}


def beat(record: Beat) -> dict[str, Any]:
    """The answer to a heartbeat."""
    return {"lease_until": instant(record.lease_until), "cancel_requested": record.cancel_requested}


def _seconds(ms: int | None) -> float | None:
    """Whole seconds without a fraction, for people."""
    return None if ms is None else ms // 1000 if ms % 1000 == 0 else ms / 1000


def _instant(at: int | None) -> str | None:
    return None if at is None else instant(at)
