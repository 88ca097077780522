"""The reports of workers on jobs that wait for their call-back: heartbeats and results. Each report carries its attempt's token."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from scheduler.admission import limit_gate
from scheduler.callbacks import tokens
from scheduler.callbacks.tokens import AttemptKey, NotSigned
from scheduler.model import attempt_output, callback_lease, lifecycle, settlement
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Attempt, Finished, Job, Outcome, Preview, Progress, Result
from scheduler.pipeline.follow_up import send_on
from scheduler.storage.ports import Change, Guard, Ports, Secrets, Written
from scheduler.targets.base import CallBackAddress

TRIES = 5
SLACK_MS = 60_000  # a token outlives its attempt by this time: clocks differ


class HeartbeatAnswer(NamedTuple):
    """The answer to a heartbeat: the time limit for the next one, and whether the worker should stop."""

    lease_until: int
    cancel_requested: bool


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses to which workers report."""

    base: str  # of the API
    secrets: Secrets

    def of(self, job: Job, now: int) -> CallBackAddress:
        """The address for the attempt of the claimed job that starts now. Raises Unavailable if the signing keys cannot be read."""
        most = 0 if job.spec.callback is None else job.spec.callback.max_ms
        token = tokens.sign(AttemptKey(job.key, job.fence), now + job.spec.timeout_ms + most + SLACK_MS, self.secrets.keys(now)[0])
        return CallBackAddress(f"{self.base}/api/v1/jobs/{job.id}", token, job.fence)


def admit(token: str, job_id: str, secrets: Secrets, now: int) -> AttemptKey:
    """Return the attempt of the token. Raises NotSigned if the token was not signed for this job or has expired; Unavailable."""
    try:
        which = tokens.read(token, secrets.keys(now), now)
    except NotSigned:  # the signing key may be newer than the cached ones
        which = tokens.read(token, secrets.keys(now, newest=True), now)
    if which.key.id != job_id:
        raise NotSigned
    return which


def heartbeat(which: AttemptKey, progress: Progress | None, ports: Ports) -> HeartbeatAnswer:
    """Extend the lease of a worker. One write, which does not touch the due index. It never shortens a lease that a worker was granted.

    Raises NotFound, Conflict if the attempt has ended, Unavailable.
    """

    def beaten(job: Job, now: int) -> Job:
        if now >= callback_lease.must_end_at(job):
            raise Conflict(callback_lease.silence(job, now).message)
        return lifecycle.heartbeat(job, now, lease_until=callback_lease.lease(job, now), progress=progress)

    job = _changed(which, beaten, lambda job: None, ports, Guard.HEARTBEAT)
    until = callback_lease.ends_at(job) if lifecycle.waits(job) else callback_lease.lease(job, job.heartbeat_at or ports.clock.now())
    return HeartbeatAnswer(until, job.cancel_requested_at is not None)


def report(which: AttemptKey, result: Result, ports: Ports) -> Job:
    """Settle the attempt with its reported result, as an executor does, and return the job. Idempotent.

    Raises NotFound, Conflict if the attempt ended otherwise, Unavailable.
    """

    def settled(job: Job, now: int) -> Job:
        started_at = min(lifecycle.started_at(job), now)
        reported = replace(result, output=result.output or job.output, response=result.response or job.response)
        fits, whole = attempt_output.split(job, reported)  # a report has no full output: the API cannot store one
        fits = fits if whole is None else replace(fits, preview=Preview.CUT)
        return settlement.settle(Finished(job, started_at, now, fits), now, ports.rules)

    def again(job: Job) -> Job | None:
        return job if any(_has_result(attempt, which, result) for attempt in job.attempts) else None

    job = _changed(which, settled, again, ports)
    limit_gate.free(job, which.fence, ports)
    send_on(job, ports, now=ports.clock.now())
    return job


def _has_result(attempt: Attempt, which: AttemptKey, result: Result) -> bool:
    """Whether the attempt has ended with this result already: the worker repeats its report, as the answer was lost.

    A cancelled attempt keeps no failure: after a cancel, any failure that the worker reports has the same effect.
    """
    if attempt.fence != which.fence:
        return False
    if result.failure is None:
        return attempt.outcome is Outcome.SUCCEEDED
    return attempt.outcome is Outcome.CANCELLED or attempt.failure == result.failure


def _changed(
    which: AttemptKey, change: Callable[[Job, int], Job], again: Callable[[Job], Job | None], ports: Ports, guard: Guard = Guard.FENCE
) -> Job:
    """Apply the change to the job of the attempt and return the job; the stored job if `again` recognizes a repeated report."""
    for _ in range(TRIES):
        job = ports.jobs.get(which.key)
        if job is None:
            raise NotFound("there is no such job")
        if made := again(job):
            return made
        _check(job, which)
        after = change(job, ports.clock.now())
        (written,) = ports.jobs.change([Change(job, after, guard)])
        if written is Written.REFUSED:
            raise Unavailable
        if written is Written.YES:
            return after
    raise Unavailable("the job keeps changing; try again")


def _check(job: Job, which: AttemptKey) -> None:
    """Raises Conflict unless the attempt that the token is for is running."""
    if job.fence != which.fence:
        raise Conflict("the token's attempt has ended")
    if not lifecycle.is_open(job):
        raise Conflict(f"the job has already ended: {lifecycle.state(job)}")
    if job.claim is None:
        raise Conflict("the job is not running")
