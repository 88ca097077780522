"""Cancel a job: at once if it has not started. A claimed job is flagged instead, and its executor drops it or stops its work."""

from scheduler.model import lifecycle, settlement
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Status
from scheduler.pipeline.follow_up import send_on
from scheduler.storage.ports import Change, Ports, Written

TRIES = 5
POLL_MS = 100


def cancel(key: JobKey, ports: Ports) -> Job:
    """Return the job after the request: cancelled, or running with `cancel_requested_at` set. Idempotent.

    A claimed job is flagged. If it still waits for its instant, this call waits until the executor has dropped it, at most until
    just after the instant. A running job runs on until its executor has stopped it. A job that waits for its call-back runs on
    until its worker, which learns of the request from its next heartbeat, has reported, or its grace is over.
    Raises NotFound, Unavailable, and Conflict if the job has finished otherwise.
    """
    for _ in range(TRIES):
        job = _require(ports.jobs.get(key))
        if not lifecycle.is_open(job):
            return _finished(job)
        if job.cancel_requested_at is not None and job.claim is not None:
            return _settled(job, ports)
        if job.claim is None:
            changed = lifecycle.cancel(job, ports.clock.now(), reason=settlement.CANCELLED, retention=ports.rules.retention)
            change = Change(job, changed)
        else:
            changed = settlement.flag(job, settlement.CANCELLED, ports.clock.now(), shards=ports.rules.shards)
            change = Change.of_slot(job, changed)
        (held,) = ports.jobs.change([change])
        if held is Written.REFUSED:
            raise Unavailable
        if held is Written.YES and job.claim is not None and not lifecycle.waits(job):
            return _settled(changed, ports)
        if held is Written.YES:
            send_on(changed, ports, now=ports.clock.now())
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


def _settled(job: Job, ports: Ports) -> Job:
    """Wait until the executor has dropped the flagged job or the instant has passed, and return the job."""
    if lifecycle.waits(job):
        return job
    give_up = min(job.due_at, ports.clock.now() + ports.rules.hold_ms) + POLL_MS
    while ports.clock.now() < give_up:
        ports.clock.sleep_until(ports.clock.now() + POLL_MS)
        current = ports.jobs.get(job.key)
        if current is None or not lifecycle.is_open(current):
            return _finished(_require(current))
        job = current
    return job
