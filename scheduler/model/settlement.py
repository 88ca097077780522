"""The job after the end of an attempt: pure decisions over the lifecycle, shared by execute, reconcile and bury.

Each function returns the job to write. Instants are in ms; `shards` is the number of slots of a minute.
"""

from scheduler.model import callback_lease, lifecycle, retry, slots
from scheduler.model.job import FailureKind, Finished, Job, RequeueCause, Result
from scheduler.model.lifecycle import NO_RESULT, Retention

MAX_BURIALS = 3  # a job fails when its message reaches a dead-letter queue this often under one fence, unstarted
CANCELLED = "cancelled by request"


def settle(done: Finished, now: int, *, shards: int, retention: Retention) -> Job:
    """The job after its work ended: final as of the end of the work, or scheduled again in the retry lane.

    If a cancel was requested, a failed attempt cancels the job and an attempt that still succeeded completes it.
    """
    job, result, end = done.job, done.result, done.ended_at
    if result.failure is None:
        return lifecycle.succeed(job, end, started_at=done.started_at, result=result, retention=retention)
    if job.cancel_requested_at is not None:
        return cancel(job, end, retention=retention, started_at=done.started_at, result=result)
    decision = retry.decide(job, result.failure, now)
    if isinstance(decision, retry.GiveUp):
        return _given_up(done, result.failure.kind, decision.reason, now, retention)
    slot = slots.place(decision.at, now, job.shard_key, shards).slot
    return lifecycle.retry(job, end, started_at=done.started_at, result=result, due_at=decision.at, slot=slot)


def returned(done: Finished, now: int, *, shards: int, retention: Retention) -> Job:
    """The job after its target answered: accepted if it reports by call-back and the answer has no failure, else settled."""
    job = done.job
    if job.spec.callback is None or done.result.failure is not None:
        return settle(done, now, shards=shards, retention=retention)
    until = callback_lease.lease(job, now)
    slot = slots.place(until, now, job.shard_key, shards).slot
    return lifecycle.accept(job, started_at=done.started_at, result=done.result, lease_until=until, slot=slot)


def _given_up(done: Finished, kind: FailureKind, reason: str, now: int, retention: Retention) -> Job:
    job, start, result = done.job, done.started_at, done.result
    if kind is FailureKind.TIMEOUT:
        reason = reason if reason == retry.TIMED_OUT else f"{retry.TIMED_OUT}; {reason}"
        return lifecycle.kill(job, done.ended_at, started_at=start, result=result, reason=reason, retention=retention)
    return lifecycle.fail(job, now, started_at=start, result=result, reason=reason, retention=retention)


def cancel(job: Job, now: int, *, retention: Retention, started_at: int | None = None, result: Result = NO_RESULT) -> Job:
    """The job after a requested cancel. `started_at` if its work had begun; `result` if the work returned one."""
    reason = job.reason or CANCELLED
    return lifecycle.cancel(job, now, reason=reason, started_at=started_at, result=result, retention=retention)


def flag(job: Job, reason: str, now: int, *, shards: int) -> Job:
    """The claimed job after a cancel was requested. A job that waits for its call-back is checked again at the end of its grace."""
    flagged = lifecycle.flag(job, now, reason=reason)
    if not lifecycle.waits(job):
        return flagged
    at = callback_lease.ends_at(flagged)
    return lifecycle.flag(flagged, now, due_at=at, slot=slots.place(at, now, job.shard_key, shards).slot)


def requeue(
    job: Job,
    cause: RequeueCause,
    reason: str,
    now: int,
    *,
    shards: int,
    at: int | None = None,
    reserved: bool = False,
    look_at: int | None = None,
) -> Job:
    """The claimed job back in its lane, since it may not start yet, or not before `at`; `reserved` if a limit has reserved that instant.

    Its slot is that of `look_at` if this is later than its due time.

    A pause of its lane changes neither slot nor due time. The cause PAUSED is recorded, so that the misfire rule still applies, unless
    the job waited for another reason before.
    """
    if cause is RequeueCause.PAUSED:
        if job.reason:
            return lifecycle.requeue(job, reason=job.reason, cause=job.requeue_cause)
        return lifecycle.requeue(job, reason=reason, cause=cause)
    due_at = max(job.due_at, at or 0)
    slot = slots.place(max(due_at, look_at or 0), now, job.shard_key, shards).slot
    reserved_at = due_at if reserved else None
    return lifecycle.requeue(job, slot=slot, due_at=due_at, reason=reason, reserved_at=reserved_at)


def take_back(job: Job, now: int, *, shards: int, retention: Retention) -> Job:
    """The running job after its executor died, or its worker if it reports by call-back.

    It goes to the retry lane; or it ends, if a cancel was requested or no attempt may follow.
    """
    start: int | None = lifecycle.started_at(job)
    if start is not None and start > now:
        start = None  # the executor died before the instant
    if job.cancel_requested_at is not None:
        return cancel(job, now, retention=retention, started_at=start)
    failure, result = lifecycle.CRASHED, Result(failure=lifecycle.CRASHED)
    if lifecycle.waits(job):
        failure = callback_lease.silence(job, now)
        result = Result(job.output, job.response, failure)
        if failure.kind is FailureKind.TIMEOUT:
            return settle(Finished(job, lifecycle.started_at(job), now, result), now, shards=shards, retention=retention)
    decision = retry.decide(job, failure, now)
    if isinstance(decision, retry.GiveUp):
        return lifecycle.fail(job, now, started_at=start, result=result, reason=decision.reason, retention=retention)
    return lifecycle.take_back(job, now, slot=slots.place(now, now, job.shard_key, shards).slot, failure=failure)


def bury(job: Job, message_id: str, fence: int, now: int, *, retention: Retention) -> Job | None:
    """The job after its message reached a dead-letter queue; None if the message does not concern the job any more.

    A running job fails if this very message brought it. A scheduled job keeps its slot, and fails at the `MAX_BURIALS`-th time.
    """
    if not lifecycle.is_open(job) or job.fence != fence:
        return None
    if job.claim is not None:
        if job.claim.message_id != message_id or lifecycle.waits(job):  # the lease, not a message, ends a job that waits for a call-back
            return None
        start = lifecycle.started_at(job)
        result = Result(failure=lifecycle.CRASHED)
        reason = "no executor could settle it: its message reached the dead-letter queue"
        return lifecycle.fail(job, now, started_at=start if start <= now else None, result=result, reason=reason, retention=retention)
    if job.buried + 1 >= MAX_BURIALS:
        reason = f"it could not be started: its messages reached the dead-letter queue {MAX_BURIALS} times"
        return lifecycle.fail(job, now, reason=reason, retention=retention)
    return lifecycle.bury(job)
