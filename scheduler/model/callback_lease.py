"""Jobs that report by call-back: how long they may stay silent, and what becomes of one that has. Pure; see `docs/call-backs.md`."""

from scheduler.model import lifecycle
from scheduler.model.job import Failure, FailureKind, Job
from scheduler.model.spec import CallBack

GRACE_MS = 30_000  # how long a worker that was asked to stop may take to


def lease(job: Job, now: int) -> int:
    """Until when the claimed job need not be heard of again, if it is heard of now."""
    until = min(now + _policy(job).lease_ms, must_end_at(job))
    return until if job.cancel_requested_at is None else min(until, job.cancel_requested_at + GRACE_MS)


def ends_at(job: Job) -> int:
    """When the lease of a job that waits for its call-back ends. A cancel cuts it.

    A heartbeat may be answered before the write that accepts the job holds, whose lease is the older one then.
    """
    until = job.claim.lease_until if job.claim is not None else None
    ends = must_end_at(job) if until is None else until
    if job.heartbeat_at is not None:
        ends = max(ends, min(job.heartbeat_at + _policy(job).lease_ms, must_end_at(job)))
    return ends if job.cancel_requested_at is None else min(ends, job.cancel_requested_at + GRACE_MS)


def must_end_at(job: Job) -> int:
    """When the attempt is over, whatever its worker says."""
    return lifecycle.started_at(job) + _policy(job).max_ms


def silence(job: Job, now: int) -> Failure:
    """What it means that the lease of the job has passed."""
    policy = _policy(job)
    if now >= must_end_at(job):
        return Failure(FailureKind.TIMEOUT, f"it did not report within {policy.max_ms // 1000} s")
    return Failure(FailureKind.CRASHED, f"no heartbeat within {policy.lease_ms // 1000} s")


def _policy(job: Job) -> CallBack:
    return job.spec.callback or CallBack()
