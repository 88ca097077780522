"""How an attempt ends for its job: pure decisions over the lifecycle, shared by execute, recheck and bury."""

from scheduler.model import callback_lease, lifecycle, retry, slots
from scheduler.model.job import FailureKind, Finished, Job, RequeueCause, Result
from scheduler.model.lifecycle import NO_RESULT, Retention

MAX_BURIALS = 3  # unstarted arrivals in a dead-letter queue that end a job
CANCELLED = "cancelled by request"


def settle(done: Finished, now: int, *, shards: int, retention: Retention) -> Job:
    """The job after its work came back: final as of the work's end, or scheduled again in the retry lane.

    Work of which a cancel was asked is cancelled whatever it says, unless it was faster and succeeded.
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
    """The job after its target answered: settled, or, if it reports by call-back and the answer is good, accepted."""
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
    """The job after the cancel that was asked of it; `started_at` if its work had begun, `result` if it came back."""
    reason = job.reason or CANCELLED
    return lifecycle.cancel(job, now, reason=reason, started_at=started_at, result=result, retention=retention)


def flag(job: Job, reason: str, now: int, *, shards: int) -> Job:
    """The claimed job of which a cancel is asked. One that waits for its call-back has a grace, and is looked at after it."""
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
    """The claimed job that may not start yet, or not before `at`, which a limit may have `reserved` for it.

    Its slot is that of `look_at`, if it is later.

    A pause of its lane leaves it where it is, with its misfire rule, unless it had another reason to wait before.
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
    """The running job whose executor (or, if it reports by call-back, worker) died: to the retry lane, unless a cancel was asked
    of it or nothing may follow."""
    start: int | None = lifecycle.started_at(job)
    if start is not None and start > now:
        start = None  # it died before the instant
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
    """The job after its message reached a dead-letter queue; None if the message has no say in it any more.

    Only a job running under this very message fails. A scheduled one keeps its slot, and fails at the third time.
    """
    if not lifecycle.is_open(job) or job.fence != fence:
        return None
    if job.claim is not None:
        if job.claim.message_id != message_id or lifecycle.waits(job):  # no message of its own: its lease says when it is over
            return None
        start = lifecycle.started_at(job)
        result = Result(failure=lifecycle.CRASHED)
        reason = "no executor could settle it: its message reached the dead-letter queue"
        return lifecycle.fail(job, now, started_at=start if start <= now else None, result=result, reason=reason, retention=retention)
    if job.buried + 1 >= MAX_BURIALS:
        reason = f"it could not be started: its messages reached the dead-letter queue {MAX_BURIALS} times"
        return lifecycle.fail(job, now, reason=reason, retention=retention)
    return lifecycle.bury(job)
