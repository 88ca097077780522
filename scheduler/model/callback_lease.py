"""The lease of a job that runs without an executor: its end, and the failure that follows from it. Pure.

A worker that reports by call-back extends its lease by heartbeats (`docs/reference/call-backs.md`). Work in AWS sends none: at the end of
each lease an executor checks whether it goes on (`docs/internals/awaited-ends.md`).
"""

from scheduler.model import lifecycle, retry
from scheduler.model.job import Awaited, Failure, FailureKind, Job
from scheduler.model.spec import CallBack

GRACE_MS = 30_000  # how long a worker may continue after a cancel was requested
CHECKS_MS = (30_000, 600_000)  # between two checks of work in AWS: half of the time since its start, from the first to the second
SKEW_MS = 5_000  # a job is taken from its worker this long after the end of its lease: the clocks of two functions differ


def lease(job: Job, now: int) -> int:
    """The end of the lease (ms) of the claimed job after a heartbeat at `now`. A requested cancel shortens it to `GRACE_MS`."""
    if job.awaited is not None:
        return _next_check(job, job.awaited, now)
    until = min(now + _policy(job).lease_ms, must_end_at(job))
    return until if job.cancel_requested_at is None else min(until, job.cancel_requested_at + GRACE_MS)


def ends_at(job: Job) -> int:
    """When the lease of a job that waits for its call-back ends (ms). A requested cancel shortens it to `GRACE_MS`.

    A heartbeat may be stored before the write that accepts the job. The lease of that write is then the older one, so the later end
    of both applies.
    """
    until = job.claim.lease_until if job.claim is not None else None
    if job.awaited is not None and until is not None:
        cancelled_at = job.cancel_requested_at if job.awaited.stopping is None else None
        return until if cancelled_at is None else min(until, cancelled_at)
    ends = must_end_at(job) if until is None else until
    if job.heartbeat_at is not None:
        ends = max(ends, min(job.heartbeat_at + _policy(job).lease_ms, must_end_at(job)))
    return ends if job.cancel_requested_at is None else min(ends, job.cancel_requested_at + GRACE_MS)


def over_at(job: Job) -> int:
    """From when on (ms) the job is taken from its worker: its lease has ended by the clock of the function that promised it, too.

    Work in AWS is checked then, which may be early.
    """
    return ends_at(job) + (0 if job.awaited is not None else SKEW_MS)


def is_half_over(job: Job, now: int) -> bool:
    """Whether the job waits for its call-back and half of a lease that begins with its acceptance has passed."""
    return job.claim is not None and job.claim.lease_until is not None and now >= job.claim.lease_until - _policy(job).lease_ms // 2


def must_end_at(job: Job) -> int:
    """The latest end of the attempt (ms), regardless of heartbeats."""
    return lifecycle.started_at(job) + _policy(job).max_ms


def must_stop(job: Job, now: int) -> Failure | None:
    """The reason for which the work in AWS of the job must be stopped at `now`; None: it may go on."""
    if job.cancel_requested_at is not None:
        return Failure(FailureKind.CANCELLED, job.reason or "its cancel was requested")
    return Failure(FailureKind.TIMEOUT, retry.timed_out(job)) if now >= must_end_at(job) else None


def _next_check(job: Job, awaited: Awaited, now: int) -> int:
    """When work in AWS is checked that goes on at `now`.

    At growing distances from its start, from the instant by which it must begin to run, or from when it must stop: AWS may refuse to stop
    it. At once if its cancel was requested while it was started.
    """
    if job.cancel_requested_at is not None and not lifecycle.waits(job):
        return now
    least, most = CHECKS_MS
    ends_at = must_end_at(job)
    stops_at = ends_at if now >= ends_at else None
    since = next(at for at in (job.cancel_requested_at, stops_at, awaited.start_by, lifecycle.started_at(job)) if at is not None)
    wait = min(max((now - since) // 2, least), most)
    return min(at for at in (now + wait, awaited.start_by, ends_at) if at is not None and at > now)


def silence(job: Job, now: int) -> Failure:
    """The failure of a job whose lease has passed: a time-out at `must_end_at`, before it a crash of the worker."""
    policy = _policy(job)
    if now >= must_end_at(job):
        return Failure(FailureKind.TIMEOUT, f"it did not report within {policy.max_ms // 1000} s")
    return Failure(FailureKind.CRASHED, f"no heartbeat within {policy.lease_ms // 1000} s")


def _policy(job: Job) -> CallBack:
    if job.awaited is not None:
        return CallBack(CHECKS_MS[0], job.spec.timeout_ms)
    return job.spec.callback or CallBack()
