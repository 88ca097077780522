"""Records for tests; what a test is about, it names."""

import itertools
from dataclasses import replace
from typing import Any

from scheduler import ids, lifecycle, slots
from scheduler.lifecycle import Event
from scheduler.model import Claim, Failure, Job, JobKey, Lane, Message, Origin, Result, TaskKey
from scheduler.ports import ClaimRequest

NOW = 1_795_000_000_000  # some day in November 2026
_numbers = itertools.count(1)


def job(**fields: Any) -> Job:
    at = fields.pop("at", NOW)
    chosen: dict[str, Any] = {
        "owner": "ada",
        "id": ids.new(at, next(_numbers)),
        "type": "log",
        "payload": {"message": "hello"},
        "scheduled_at": at,
        "due_at": at,
        "created_at": NOW - 60_000,
        "slot": slots.slot(slots.minute_of(at), "any", 16),
    }
    return Job(**(chosen | fields))


def run(task: TaskKey, **fields: Any) -> Job:
    """A run of a task."""
    at = fields.get("at", NOW)
    chosen = {"owner": task.owner, "id": ids.run(at, task.id, 1), "lane": Lane.RECURRING, "origin": Origin(task.id, 1, at)}
    return job(**(chosen | fields))


def request(job: Job, **fields: Any) -> ClaimRequest:
    chosen: dict[str, Any] = {"message_id": "m1", "nonce": "m1/r1/1", "at": NOW, "alone": False, "due_by": NOW + 5_000}
    return ClaimRequest(**({"key": job.key, "fence": job.fence} | chosen | fields))


def succeeded(job: Job, at: int = NOW + 100) -> Job:
    return lifecycle.apply(job, Event.SUCCEED, at, started_at=NOW, result=Result("hello", {"status": 200}))


def failed(job: Job, at: int = NOW + 100) -> Job:
    return lifecycle.apply(job, Event.FAIL, at, started_at=NOW, result=Result(failure=Failure("permanent", "no")), reason="no")


def retried(job: Job, slot: str, due_at: int = NOW + 30_000) -> Job:
    failure = Result(failure=Failure("retryable", "later"))
    return lifecycle.apply(job, Event.RETRY, NOW + 100, started_at=NOW, result=failure, due_at=due_at, slot=slot)


def rescheduled(job: Job, at: int) -> Job:
    slot = slots.slot(slots.minute_of(at), "any", 16)
    return lifecycle.apply(job, Event.RESCHEDULE, NOW, slot=slot, fields={"scheduled_at": at, "due_at": at})


def moved(job: Job, slot: str) -> Job:
    return lifecycle.apply(job, Event.MOVE, NOW, slot=slot, looked=True)


def flagged(job: Job) -> Job:
    return lifecycle.apply(job, Event.FLAG, NOW)


def cancelled(job: Job) -> Job:
    return lifecycle.apply(job, Event.CANCEL, NOW, reason="asked for")


def buried(job: Job) -> Job:
    return lifecycle.apply(job, Event.BURY, NOW)


def claimed(job: Job, nonce: str = "m1/r1/1") -> Job:
    return lifecycle.apply(job, Event.CLAIM, NOW, claim=Claim("m1", nonce, NOW, False))


def message(**fields: Any) -> Message:
    chosen: dict[str, Any] = {"key": JobKey("ada", ids.new(NOW, next(_numbers))), "fence": 1, "lane": Lane.ONE_TIME, "due_at": NOW}
    return replace(Message(**chosen), **fields)
