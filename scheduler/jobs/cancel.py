"""Cancel jobs: at once if they have not started. A claimed job is flagged instead, and its executor drops it or stops its work."""

from collections import Counter
from collections.abc import Sequence

from scheduler.jobs import stock
from scheduler.model import lifecycle, settlement
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Status
from scheduler.pipeline.change_many import change_many
from scheduler.pipeline.follow_up import send_on, wake
from scheduler.storage.ports import Change, Ports, Written

TRIES = 40  # puts by the key of a job may change it this often in between
POLL_MS = 100


def cancel(key: JobKey, ports: Ports) -> Job:
    """Return the job after the request: cancelled, or running with `cancel_requested_at` set. Idempotent.

    A claimed job is flagged. If it still waits for its instant, this call waits until the executor has dropped it, at most until
    just after the instant. A running job continues until its executor has stopped it. A job that waits for its call-back continues
    until its worker, which gets the request with its next heartbeat, has reported, or its grace period has ended.
    Raises NotFound, Unavailable, and Conflict if the job has finished otherwise.
    """
    for _ in range(TRIES):
        job = _require(ports.jobs.get(key))
        if not lifecycle.is_open(job):
            return _finished(job)
        if job.cancel_requested_at is not None and job.claim is not None:
            return _settled(job, ports)
        change = _cancelling(job, ports)
        (written,) = ports.jobs.change([change])
        if written is Written.REFUSED:
            raise Unavailable
        if written is Written.YES and job.claim is not None and not lifecycle.waits(job):
            return _freed(_settled(change.after, ports), ports)
        if written is Written.YES:
            send_on(_freed(change.after, ports), ports, now=ports.clock.now())
            return change.after
    raise Unavailable("the job keeps changing; try again")


def cancel_many(jobs: Sequence[Job], ports: Ports) -> tuple[list[Job], list[Job]]:
    """Cancel or flag these open jobs as `cancel` does, without waiting for their executors.

    Returns the changed jobs, and the jobs that the table refuses to change. A job that was changed in between is in neither.
    """
    changed, refused = change_many([_cancelling(job, ports) for job in jobs], ports)
    now = ports.clock.now()
    ended = [job for job in changed if not lifecycle.is_open(job)]
    wake(ended, ports, now=now)
    for owner, count in Counter(job.owner for job in ended).items():
        stock.free(owner, count, ports)
    for job in changed:
        if lifecycle.is_open(job) and lifecycle.waits(job):
            send_on(job, ports, now=now)
    return changed, refused


def is_cancelled_since(job: Job, at: int) -> bool:
    """Whether a user has cancelled the job at `at` or later, or has requested it."""
    is_cancelled = lifecycle.is_open(job) or (job.cancelled_at is not None and job.reason == settlement.CANCELLED)
    return is_cancelled and job.cancel_requested_at is not None and job.cancel_requested_at >= at


def _cancelling(job: Job, ports: Ports) -> Change:
    """The change that cancels an open job, or flags it if an executor has claimed it."""
    now = ports.clock.now()
    if job.claim is None:
        return Change(job, lifecycle.cancel(job, now, reason=settlement.CANCELLED, retention=ports.rules.retention))
    return Change.of_slot(job, settlement.flag(job, settlement.CANCELLED, now, ports.rules))


def _freed(job: Job, ports: Ports) -> Job:
    stock.free(job.owner, int(not lifecycle.is_open(job)), ports)
    return job


def _require(job: Job | None) -> Job:
    if job is None:
        raise NotFound("there is no such job")
    return job


def _finished(job: Job) -> Job:
    state = lifecycle.state(job)
    if state is not Status.CANCELLED:
        raise Conflict(f"the job has already ended: {state}")
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
