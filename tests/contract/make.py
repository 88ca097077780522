"""Records for tests. A test passes only the fields that it is about."""

import itertools
from typing import Any

from scheduler.model import ids, lifecycle, slots
from scheduler.model.job import (
    Claim,
    Failure,
    FailureKind,
    Job,
    JobKey,
    Lane,
    Message,
    Progress,
    Receipt,
    Result,
    RunInfo,
    RunLock,
    TaskKey,
)
from scheduler.model.schedule import Rate, Schedule
from scheduler.model.task import Task
from scheduler.storage.ports import ClaimRequest
from tests.conftest import with_spec

NOW = 1_795_000_000_000  # some day in November 2026
_numbers = itertools.count(1)


def job(**fields: Any) -> Job:
    at = fields.pop("at", NOW)
    chosen: dict[str, Any] = {
        "owner": "ada",
        "id": ids.new(at, next(_numbers)),
        "scheduled_at": at,
        "due_at": at,
        "created_at": NOW - 60_000,
        "slot": slots.slot(slots.minute_of(at), "any", 16),
    }
    return Job(**with_spec(chosen | fields))


def task(**fields: Any) -> Task:
    """A task that runs every five minutes."""
    chosen: dict[str, Any] = {
        "owner": "ada",
        "id": ids.new(NOW, next(_numbers)),
        "name": "a task",
        "schedule": Schedule(Rate(300_000, NOW)),
        "created_at": NOW,
        "updated_at": NOW,
        "planned_until": NOW + 600_000,
        "planned": 2,
        "replenish": "2026-11-20T10:01#03",
    }
    return Task(**with_spec(chosen | fields))


def holder(task: TaskKey | None = None, **fields: Any) -> RunLock:
    chosen: dict[str, Any] = {"task": task or TaskKey("ada", ids.new(NOW, next(_numbers))), "job": "a"}
    return RunLock(**(chosen | fields))


def receipt(**fields: Any) -> Receipt:
    chosen: dict[str, Any] = {"owner": "ada", "key": "order 17", "fingerprint": "f1", "at": NOW, "random": 2**75 - 1}
    return Receipt(**(chosen | fields))


def run(task: TaskKey, **fields: Any) -> Job:
    """A run of a task."""
    at = fields.get("at", NOW)
    chosen = {"owner": task.owner, "id": ids.run(at, task.id, 1), "lane": Lane.RECURRING, "origin": RunInfo(task.id, 1, at)}
    return job(**(chosen | fields))


def request(job: Job, **fields: Any) -> ClaimRequest:
    chosen: dict[str, Any] = {"message_id": "m1", "nonce": "m1/r1/1", "at": NOW, "alone": False, "due_by": NOW + 5_000}
    return ClaimRequest(**({"key": job.key, "fence": job.fence} | chosen | fields))


def succeeded(job: Job, at: int = NOW + 100) -> Job:
    return lifecycle.succeed(job, at, started_at=NOW, result=Result("hello", {"status": 200}))


def failed(job: Job, at: int = NOW + 100) -> Job:
    return lifecycle.fail(job, at, started_at=NOW, result=Result(failure=Failure(FailureKind.PERMANENT, "no")), reason="no")


def retried(job: Job, slot: str, due_at: int = NOW + 30_000) -> Job:
    failure = Result(failure=Failure(FailureKind.RETRYABLE, "later"))
    return lifecycle.retry(job, NOW + 100, started_at=NOW, result=failure, due_at=due_at, slot=slot)


def rescheduled(job: Job, at: int) -> Job:
    slot = slots.slot(slots.minute_of(at), "any", 16)
    return lifecycle.reschedule(job, slot=slot, fields={"scheduled_at": at, "due_at": at})


def redriven(job: Job, slot: str = "2026-11-20T10:09#03", at: int = NOW + 60_000) -> Job:
    return lifecycle.redrive(job, at, slot=slot)


def moved(job: Job, slot: str) -> Job:
    return lifecycle.move(job, slot=slot, reconciled=True)


def accepted(job: Job, slot: str = "2026-11-20T10:05#03", until: int = NOW + 300_000) -> Job:
    return lifecycle.accept(job, started_at=NOW, result=Result("queued"), lease_until=until, slot=slot)


def beaten(job: Job, until: int = NOW + 900_000, at: int = NOW + 90) -> Job:
    return lifecycle.heartbeat(job, at, lease_until=until, progress=Progress(0.25, "a quarter"))


def taken_back(job: Job, slot: str = "2026-11-20T10:09#03") -> Job:
    return lifecycle.take_back(job, NOW + 300_000, slot=slot)


def flagged(job: Job) -> Job:
    return lifecycle.flag(job, NOW)


def cancelled(job: Job) -> Job:
    return lifecycle.cancel(job, NOW, reason="asked for")


def buried(job: Job) -> Job:
    return lifecycle.bury(job)


def claimed(job: Job, nonce: str = "m1/r1/1") -> Job:
    return lifecycle.claim(job, claim=Claim("m1", nonce, NOW, False))


def message(**fields: Any) -> Message:
    chosen: dict[str, Any] = {"key": JobKey("ada", ids.new(NOW, next(_numbers))), "fence": 1, "lane": Lane.ONE_TIME, "due_at": NOW}
    return Message(**(chosen | fields))
