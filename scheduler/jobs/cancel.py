"""Cancel a job: at once if it has not started; a claimed one is flagged, and its executor answers: it drops the job or stops its work."""

from scheduler.model import lifecycle, settlement
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Status
from scheduler.model.rules import Rules
from scheduler.pipeline.follow_up import send_on
from scheduler.storage.ports import Change, Clock, Jobs, Lanes, Orders, TaskGate, Written

TRIES = 5
POLL_MS = 100


def cancel(key: JobKey, *, jobs: Jobs, tasks: TaskGate, orders: Orders, lanes: Lanes, clock: Clock, rules: Rules) -> Job:
    """The job after the request: cancelled, or running with `cancel_requested_at` set. Idempotent.

    A job that is claimed but held to its instant is flagged; the answer waits, no longer than to just after the
    instant, for its executor to drop it. One that runs is flagged, and runs on until its executor has stopped it; one
    that waits for its call-back until its worker, told by the next heartbeat, has reported, or its grace is over.
    Raises NotFound, and Conflict if the job is finished otherwise.
    """
    for _ in range(TRIES):
        job = _require(jobs.get(key))
        if not lifecycle.is_open(job):
            return _finished(job)
        if job.cancel_requested_at is not None and job.claim is not None:
            return _settled(job, jobs, clock, rules)
        if job.claim is None:
            changed = lifecycle.cancel(job, clock.now(), reason=settlement.CANCELLED, retention=rules.retention)
            change = Change(job, changed)
        else:
            changed = settlement.flag(job, settlement.CANCELLED, clock.now(), shards=rules.shards)
            change = Change.of_slot(job, changed)
        (held,) = jobs.change([change])
        if held is Written.REFUSED:
            raise Unavailable
        if held is Written.YES and job.claim is not None and not lifecycle.waits(job):
            return _settled(changed, jobs, clock, rules)
        if held is Written.YES:
            send_on(changed, jobs=jobs, tasks=tasks, orders=orders, lanes=lanes, now=clock.now(), rules=rules)
            return changed
    raise Unavailable("the job keeps changing; try again")


def _require(job: Job | None) -> Job:
    if job is None:
        raise NotFound("there is no such job")
    return job


def _finished(job: Job) -> Job:
    state = lifecycle.state(job)
    if state is not Status.CANCELLED:
        raise Conflict(f"the job is finished: {state}")
    return job


def _settled(job: Job, jobs: Jobs, clock: Clock, rules: Rules) -> Job:
    """The flagged job once its executor has dropped it or its instant has passed, whichever comes first."""
    if lifecycle.waits(job):
        return job
    give_up = min(job.due_at, clock.now() + rules.hold_ms) + POLL_MS
    while clock.now() < give_up:
        clock.sleep_until(clock.now() + POLL_MS)
        current = jobs.get(job.key)
        if current is None or not lifecycle.is_open(current):
            return _finished(_require(current))
        job = current
    return job
