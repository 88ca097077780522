"""The job after the end of an attempt: pure decisions over the lifecycle, shared by execute, reconcile and bury.

Each function returns the job to write. Instants are in ms.
"""

from scheduler.model import callback_lease, lifecycle, retry, slots
from scheduler.model.job import Failure, FailureKind, Finished, Job, RequeueCause, Result, changed
from scheduler.model.lifecycle import NO_RESULT
from scheduler.model.rules import Rules

CANCELLED = "cancelled by request"
NOT_STARTED_MS = (250, 30_000)  # the wait of a job whose work did not begin: it doubles with the fence, from the first to the second
BURIED = Failure(FailureKind.CRASHED, "no executor could settle it: its message reached the dead-letter queue")


def settle(done: Finished, now: int, rules: Rules) -> Job:
    """The job after its work ended: final as of the end of the work, or scheduled again in the retry lane.

    If a cancel was requested, a failed attempt cancels the job and an attempt that still succeeded completes it.
    """
    job, result, end = done.job, done.result, done.ended_at
    if result.failure is None:
        return lifecycle.succeed(job, end, started_at=done.started_at, result=result, retention=rules.retention)
    if job.cancel_requested_at is not None:
        return cancel(job, end, rules, started_at=done.started_at, result=result)
    decision = retry.decide(job, result.failure, now)
    if isinstance(decision, retry.GiveUp):
        return _without_retry(done, result.failure.kind, decision.reason, now, rules)
    slot = slots.place(decision.at, now, job.id, rules.shards).slot
    return lifecycle.retry(job, end, started_at=done.started_at, result=result, due_at=decision.at, slot=slot)


def returned(done: Finished, now: int, rules: Rules) -> Job:
    """The job after its target answered: accepted if it reports by call-back, or its work goes on in AWS, and the answer has no failure;
    else settled.

    A job whose work did not begin is requeued: nothing is charged, and its gates decide again.
    """
    job, result = done.job, done.result
    if result.unstarted:
        return _not_started(done, now, rules)
    if lifecycle.waits(job):  # a check of its work in AWS
        done = done._replace(started_at=lifecycle.started_at(job))
    if result.failure is not None or (result.awaited is None and (job.spec.callback is None or job.awaited is not None)):
        return settle(done, now, rules)
    until = callback_lease.lease(job if result.awaited is None else changed(job, awaited=result.awaited), now)
    slot = slots.place(until, now, job.id, rules.shards).slot
    return lifecycle.accept(job, started_at=done.started_at, result=done.result, lease_until=until, slot=slot)


_RECORDED = (RequeueCause.MISFIRE, RequeueCause.CROWDED, RequeueCause.BREAKER)


def _not_started(done: Finished, now: int, rules: Rules) -> Job:
    job, failure = done.job, done.result.failure
    if job.cancel_requested_at is not None:
        return cancel(job, now, rules)
    least, most = NOT_STARTED_MS
    wait = min(least << min(job.fence - 1, 20), most)
    return requeue(job, RequeueCause.LIMIT, failure.message if failure else "", now, rules, at=now + wait)


def still_safe(before: Job, after: Job, now: int, rules: Rules) -> Job:
    """`after` as it may be written now, some time after it was decided: dispatch of its new slot must not have begun."""
    if after.slot is None or after.slot == before.slot or slots.is_safe(after.slot, now):
        return after
    return lifecycle.move(after, slot=slots.place(after.due_at, now, after.id, rules.shards).slot)


def _without_retry(done: Finished, kind: FailureKind, reason: str, now: int, rules: Rules) -> Job:
    job, start, result = done.job, done.started_at, done.result
    if kind is FailureKind.TIMEOUT:
        passed = retry.timed_out(job)
        reason = reason if reason == passed else f"{passed}; {reason}"
        return lifecycle.kill(job, done.ended_at, started_at=start, result=result, reason=reason, retention=rules.retention)
    return lifecycle.fail(job, now, started_at=start, result=result, reason=reason, retention=rules.retention)


def cancel(job: Job, now: int, rules: Rules, *, started_at: int | None = None, result: Result = NO_RESULT) -> Job:
    """The job after a requested cancel. `started_at` if its work had begun; `result` if the work returned one."""
    reason = job.reason or CANCELLED
    return lifecycle.cancel(job, now, reason=reason, started_at=started_at, result=result, retention=rules.retention)


def flag(job: Job, reason: str, now: int, rules: Rules) -> Job:
    """The claimed job after a cancel was requested. A job that waits for its call-back is checked again at the end of its grace, and one
    whose work AWS does at once: an executor stops that."""
    flagged = lifecycle.flag(job, now, reason=reason)
    if not lifecycle.waits(job):
        return flagged
    at = callback_lease.ends_at(flagged)
    return lifecycle.flag(flagged, now, due_at=at, slot=slots.place(at, now, job.id, rules.shards).slot)


def requeue(
    job: Job,
    cause: RequeueCause,
    reason: str,
    now: int,
    rules: Rules,
    *,
    at: int | None = None,
    check_at: int | None = None,
    target: str | None = None,
    room: str | None = None,
) -> Job:
    """The claimed job back in its lane, since it may not start yet, or not before `at`; or in the queue of its limited `target`.

    Its slot is that of `check_at` if this is later than its due time.

    A pause (no `at`) moves it to the waiting `room`, by default that of its lane, and keeps its due time. The cause PAUSED is recorded, so
    that the misfire rule still applies, unless the job waited for another reason before. The cause MISFIRE is recorded, so that the runs
    behind it wait for it, CROWDED, so that the job goes straight back to its lane only once, and BREAKER, so that a read shows no
    reason that is over.
    """
    recorded = cause if cause in _RECORDED else None
    if cause is RequeueCause.PAUSED:
        keeps = job.reason and not lifecycle.has_only_died(job)
        reason, recorded = (job.reason or "", job.requeue_cause) if keeps else (reason, cause)
        if at is None:
            slot = slots.slot(room or slots.room_of(job.lane), job.id, rules.shards)
            return lifecycle.requeue(job, slot=slot, reason=reason, cause=recorded)
    if target is not None:
        return lifecycle.requeue(job, slot=slots.queued(target, job.owner, job.id), reason=reason)
    due_at = max(job.due_at, at or 0)
    slot = slots.place(max(due_at, check_at or 0), now, job.id, rules.shards).slot
    return lifecycle.requeue(job, slot=slot, due_at=due_at, reason=reason, cause=recorded)


def take_back(job: Job, now: int, rules: Rules, *, crash: Failure = lifecycle.CRASHED) -> Job:
    """The running job after its executor ended (`crash` describes it), or its worker if it reports by call-back.

    It goes to the retry lane; or it ends, if a cancel was requested or no attempt may follow.
    """
    start = lifecycle.crashed_start(job, now)
    if job.cancel_requested_at is not None:
        return cancel(job, now, rules, started_at=start)
    failure, result = crash, Result(failure=crash)
    if lifecycle.waits(job):
        failure = callback_lease.silence(job, now)
        result = Result(job.output, job.response, failure)
        if failure.kind is FailureKind.TIMEOUT:
            return settle(Finished(job, lifecycle.started_at(job), now, result), now, rules)
    decision = retry.decide(job, failure, now)
    if isinstance(decision, retry.GiveUp):
        return lifecycle.fail(job, now, started_at=start, result=result, reason=decision.reason, retention=rules.retention)
    slot = slots.place(decision.at, now, job.id, rules.shards).slot
    return lifecycle.take_back(job, now, slot=slot, due_at=decision.at, failure=failure)


def bury(job: Job, message_id: str, fence: int, now: int, rules: Rules) -> Job | None:
    """The job after its message reached a dead-letter queue; None if the message no longer concerns the job.

    A running job of this very message is taken back, as after the end of an executor. A scheduled job keeps its slot, however often
    this happens: the message only shows that no executor could claim the job.
    """
    if not lifecycle.is_open(job) or job.fence != fence:
        return None
    if job.claim is not None:
        if job.claim.message_id != message_id or lifecycle.waits(job):  # the lease, not a message, ends a job that waits for a call-back
            return None
        return take_back(job, now, rules, crash=BURIED)
    return lifecycle.bury(job)
