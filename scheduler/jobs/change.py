"""Change a job in place before it starts: its time, its content, its rules. One conditional write under a new fence.

An executor drops a message of the old fence. A claimed job with a key can be changed until its executor has fixed it, which it does by
a write just before the instant: the first of both writes is applied. Any other claimed job cannot be changed, not even while it waits for
its instant: an executor that cannot read it again just before the instant starts it as claimed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scheduler.admission import key_limits, ordering
from scheduler.admission.ordering_queue import join_queues, leave_queues
from scheduler.model import ids, instants, lifecycle, slots
from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, QueueEntry
from scheduler.model.rules import Rules
from scheduler.pipeline.enqueue import enqueue_if_due_soon
from scheduler.pipeline.follow_up import wake_line
from scheduler.storage.ports import KEY_RETENTION_MS, Change, Guard, Ports, Written

TRIES = 5
TIMES = ("scheduled_at", "start_by")  # for a scheduled run, only its task determines these fields


def reschedule(key: JobKey, changes: Mapping[str, Any], ports: Ports, *, check: Callable[[Job], None] = lambda job: None) -> Job:
    """Change the job to the fields in `changes`, enqueue it if it is due soon, and return it.

    `check` raises an error if the job, as it is now, must not be changed.

    `changes` has validated values by their names in the record; its `spec` has only the changed fields of the spec.
    Raises NotFound; Conflict if the job has started, is about to start, has finished or is being cancelled, or if its task
    determines its time; Invalid if it would end before it starts; TooLarge; Unavailable.
    """
    for _ in range(TRIES):
        now = ports.clock.now()
        before = ports.jobs.get(key)
        if before is None:
            raise NotFound("there is no such job")
        check(before)
        job = try_change(before, changes, ports, now)
        if job is not None:
            return job
    raise Unavailable("the job keeps changing; try again")


def try_change(before: Job, changes: Mapping[str, Any], ports: Ports, now: int) -> Job | None:
    """Change the job as `reschedule` does, if it is stored as it is given; None: another request or an executor changed it in between.

    `now` is an instant at which the job was read, or just before.
    """
    _check(before, changes, now)
    after = _changed(before, changes, now, ports.rules)
    if changes.get("spec") or changes.get("notifications"):
        ports.jobs.check(after.spec, after.notifications)
    if after.spec.limit is not None and after.spec.limit != before.spec.limit:
        key_limits.check(
            key_limits.Claim(after.owner, after.spec.limit, due_at=after.due_at, changes=_has_same_key(before, after)), ports, now
        )
    old, new = _entry(before), _entry(after)
    if new is not None and new != old and not all(join_queues([after], orders=ports.orders, now=now)):
        raise Unavailable
    if _outlasts_key(before, after) and ports.jobs.prolong_key(after) is Written.REFUSED:
        raise Unavailable
    (written,) = ports.jobs.change([Change(before, after, Guard.FENCE if before.claim is None else Guard.REVOKE)])
    if written is Written.REFUSED:
        raise Unavailable
    if written is Written.NO or not _is_ours(ports.jobs.get(before.key), changes):
        return None
    (job,) = enqueue_if_due_soon([after], now, ports)
    if old is not None and new != old:
        leave_queues([before], orders=ports.orders)
        wake_line(before, ports, now=ports.clock.now())
    return job


def _has_same_key(before: Job, after: Job) -> bool:
    """Whether the change is one of the limit of its key."""
    return before.spec.limit is not None and after.spec.limit is not None and before.spec.limit.key == after.spec.limit.key


def why_fixed(job: Job, now: int) -> str | None:
    """The reason why the job can no longer be changed; None: it can be changed."""
    if not lifecycle.is_open(job):
        return f"it has already ended: {lifecycle.state(job)}"
    if job.delay_ms is not None or lifecycle.has_started(job, now):
        return "it has started"
    if job.cancel_requested_at is not None:
        return "it is being cancelled"
    return "it is about to start" if job.claim is not None and not lifecycle.is_revocable(job) else None


def _check(job: Job, changes: Mapping[str, Any], now: int) -> None:
    """Raises Conflict if the job may not be changed to these fields."""
    why = why_fixed(job, now)
    if why is not None:
        raise Conflict(why)
    if job.origin is not None and job.origin.nominal_at is not None and any(name in changes for name in TIMES):
        raise Conflict("the job is a run of a schedule: to change its time, edit its task")
    if job.origin is not None and changes.get("notifications") is not None:
        raise Conflict("the job is a run of a task: its task has the receivers")


def _changed(job: Job, changes: Mapping[str, Any], now: int, rules: Rules) -> Job:
    """The changed job, in a slot that the tick has yet to read."""
    start = max(changes["scheduled_at"], now) if "scheduled_at" in changes else job.due_at
    _check_end(job, changes, max(start, now))
    fields = _fields(job, changes)
    slot = slots.place(start, now, job.id, rules.shards).slot
    return lifecycle.reschedule(job, slot=slot, fields={**fields, "due_at": start, "changed_at": now})


def _entry(job: Job) -> QueueEntry | None:
    """The job's entry in its ordering queue, if it has an ordering key."""
    return None if job.spec.ordering is None else ordering.entry_of(job)


def _outlasts_key(before: Job, after: Job) -> bool:
    """Whether the entry of the job's key may expire too early for the new time: it expires by an earlier time of the job."""
    return before.own_key is not None and after.scheduled_at > ids.time(before.id) + KEY_RETENTION_MS // 2


def _fields(job: Job, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields after the change; the job's own `spec` completes the changed part of the spec."""
    return {**changes, "spec": replace(job.spec, **changes.get("spec", {}))}


def _check_end(job: Job, changes: Mapping[str, Any], start: int) -> None:
    """Raises Invalid for the given field if the job would end before it starts."""
    if changes.get("start_by") is not None:
        instants.check_end("expires_at", changes["start_by"], start)
    elif "scheduled_at" in changes and "start_by" not in changes and job.start_by is not None and job.start_by <= start:
        raise Invalid.field("execute_at", f"must be earlier than its expires_at ({instants.render(job.start_by)})")


def _is_ours(stored: Job | None, changes: Mapping[str, Any]) -> bool:
    """Whether this change was written: another change at the same moment may have the same fence and slot."""
    return stored is not None and all(getattr(stored, name) == value for name, value in _fields(stored, changes).items())
