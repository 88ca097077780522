"""The state machine of a job: one table of transitions and one function per event.

The state is never stored. A job without a slot is final, and its times show its end. A job with a slot is open, and running
while it has a claim. `docs/internals/lifecycle.md` draws `TRANSITIONS`; a test compares both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import takewhile
from typing import Any

from scheduler.model import after, attempt_output, fingerprint
from scheduler.model.errors import IllegalTransition
from scheduler.model.job import (
    Attempt,
    Awaited,
    Claim,
    Failure,
    FailureKind,
    Job,
    Lane,
    Outcome,
    Progress,
    RequeueCause,
    Result,
    Status,
    changed,
)

RETAINED_ATTEMPTS = attempt_output.RETAINED_ATTEMPTS
LATE_MS = 10_000  # a start this much after the scheduled time is late (the bound of the start-delay alarm)
DAY_S = 86_400
LONGEST_FAILURE = 1_000  # characters of a failure's message: those of five attempts must not make an item too large to settle

FINAL_TIMES = {
    Status.SUCCEEDED: "completed_at",
    Status.FAILED: "failed_at",
    Status.KILLED: "killed_at",
    Status.CANCELLED: "cancelled_at",
    Status.SKIPPED: "skipped_at",
}
DEAD = (Status.FAILED, Status.KILLED)
Changes = dict[str, Any]  # new values of a job's fields, by name
UNCHARGED = (FailureKind.THROTTLED, FailureKind.REFUSED)  # kinds of failed attempts that use up none of `max_attempts`
_OUTCOMES = {FailureKind.TIMEOUT: Outcome.KILLED, FailureKind.CRASHED: Outcome.CRASHED}  # of failed attempts; other kinds: FAILED

CRASHED = Failure(FailureKind.CRASHED, "its executor died")
UNSTARTED = "its executors die before they start it; it is tried again at least every 15 minutes"
NO_RESULT = Result()


class Event(StrEnum):
    """An event in the life of a job."""

    CLAIM = "claim"  # an executor claims it
    ACCEPT = "accept"  # its target has accepted it, and its worker or AWS works on it; no executor does
    INTEND = "intend"  # its executor is about to start work in AWS, whose end is awaited
    HEARTBEAT = "heartbeat"  # its worker is alive
    FIX = "fix"  # its executor is about to start the job of a key, which its owner can no longer change
    START = "start"  # its executor is about to start the work; recorded only of a job that has crashed before
    SUCCEED = "succeed"  # its target reported success
    RETRY = "retry"  # its attempt failed and another one follows
    FAIL = "fail"  # its attempt failed and none follows
    KILL = "kill"  # its last attempt exceeded its time-out
    TAKE_BACK = "take_back"  # its executor ended early; it goes to the retry lane
    CANCEL = "cancel"  # a cancel was requested, and no work continues
    FLAG = "flag"  # a cancel is requested of a claimed job; its executor decides
    SKIP = "skip"  # a rule decided against the run
    REQUEUE = "requeue"  # its instant has come, but another job must end first, or its lane or target is not free
    RESCHEDULE = "reschedule"  # its owner changed its time or content before it started
    MOVE = "move"  # the scheduler will check it again in another slot
    BURY = "bury"  # its message reached a dead-letter queue although it never started
    REDRIVE = "redrive"  # it failed or was killed, and its owner requests that it runs again from the start


TRANSITIONS: dict[Event, dict[Status, Status]] = {
    Event.CLAIM: {Status.SCHEDULED: Status.RUNNING},
    Event.ACCEPT: {Status.RUNNING: Status.RUNNING},
    Event.INTEND: {Status.RUNNING: Status.RUNNING},
    Event.HEARTBEAT: {Status.RUNNING: Status.RUNNING},
    Event.FIX: {Status.RUNNING: Status.RUNNING},
    Event.START: {Status.RUNNING: Status.RUNNING},
    Event.SUCCEED: {Status.RUNNING: Status.SUCCEEDED},
    Event.RETRY: {Status.RUNNING: Status.SCHEDULED},
    Event.FAIL: {Status.RUNNING: Status.FAILED, Status.SCHEDULED: Status.FAILED},
    Event.KILL: {Status.RUNNING: Status.KILLED},
    Event.TAKE_BACK: {Status.RUNNING: Status.SCHEDULED},
    Event.CANCEL: {Status.SCHEDULED: Status.CANCELLED, Status.RUNNING: Status.CANCELLED},
    Event.FLAG: {Status.RUNNING: Status.RUNNING},
    Event.SKIP: {Status.SCHEDULED: Status.SKIPPED, Status.RUNNING: Status.SKIPPED},
    Event.REQUEUE: {Status.RUNNING: Status.SCHEDULED},
    Event.RESCHEDULE: {Status.SCHEDULED: Status.SCHEDULED, Status.RUNNING: Status.SCHEDULED},
    Event.MOVE: {Status.SCHEDULED: Status.SCHEDULED, Status.RUNNING: Status.RUNNING},
    Event.BURY: {Status.SCHEDULED: Status.SCHEDULED},
    Event.REDRIVE: {Status.FAILED: Status.SCHEDULED, Status.KILLED: Status.SCHEDULED},
}
TRIES_AGAIN = (Event.RETRY, Event.TAKE_BACK, Event.REDRIVE)  # these move the job to the retry lane
HANDS_BACK = (*TRIES_AGAIN, Event.REQUEUE, Event.RESCHEDULE)  # these raise the fence


@dataclass(frozen=True, slots=True)
class Retention:
    """The time for which final jobs are stored."""

    days: int = 30
    failure_days: int = 90


USUAL_RETENTION = Retention()


def state(job: Job) -> Status:
    """The state of the stored job: any status except QUEUED, which depends on the time. Raises IllegalTransition for a broken record."""
    if job.slot is not None:
        return Status.SCHEDULED if job.claim is None else Status.RUNNING
    for status, time in FINAL_TIMES.items():
        if getattr(job, time) is not None:
            return status
    raise IllegalTransition(f"job {job.id} has neither a slot nor an end")


def status(job: Job, now: int) -> Status:
    """The status of the job at `now`, as users see it."""
    stored = state(job)
    if stored is Status.RUNNING:
        return Status.RUNNING if has_started(job, now) else Status.QUEUED  # claimed, and waiting for its instant
    if stored is Status.SCHEDULED and job.due_at <= now and not after.waits(job.after):
        return Status.QUEUED
    return stored


def is_open(job: Job) -> bool:
    """Whether the job is not final."""
    return job.slot is not None


def followed(job: Job, until: int) -> Job:
    """Return the job after it was noted that another job waits for its end. If it has ended, its record is kept for that long."""
    expires = job.expires if job.expires is None else max(job.expires, until // 1000)
    return changed(job, followed=until, expires=expires)


def seen(job: Job, slot: str | None, fence: int, claim: Claim | None, cancel_requested_at: int | None) -> Job:
    """Return the job with the fields of a later read."""
    if (slot, fence, claim, cancel_requested_at) == (job.slot, job.fence, job.claim, job.cancel_requested_at):
        return job
    return changed(job, slot=slot, fence=fence, claim=claim, cancel_requested_at=cancel_requested_at)


def started_at(job: Job) -> int:
    """When the attempt of a claimed job starts or started (ms). A claim may be early, a start never is.

    Raises IllegalTransition for a job that is not claimed.
    """
    if job.claim is None:
        raise IllegalTransition(f"job {job.id} is not claimed")
    if job.started_at is not None:
        return job.started_at  # stored: it waits for its call-back, and its due time is the end of its lease; or it has crashed before
    return max(job.claim.at, job.due_at)


def is_revocable(job: Job) -> bool:
    """Whether a change by the owner of the claimed job revokes the claim. Only a job with a key is: its executor fixes it by a write."""
    return job.claim is not None and job.claim.revocable and job.own_key is not None


def has_started(job: Job, now: int) -> bool:
    """Whether an attempt of the job has started by `now`. No executor starts a job that is revocable."""
    return job.claim is not None and not is_revocable(job) and started_at(job) <= now


def waits(job: Job) -> bool:
    """Whether the job runs without an executor: its worker reports by call-back, or the end of its work in AWS is awaited."""
    return job.claim is not None and job.claim.lease_until is not None


def first_end(job: Job) -> int | None:
    """When the first attempt of the job ended, as far as its history goes back, or the job itself; None: neither has ended."""
    if job.attempts:
        return job.attempts[0].ended_at
    return next((at for name in FINAL_TIMES.values() if (at := getattr(job, name)) is not None), None)


def nominal_at(job: Job) -> int:
    """The time for which the work of the job is: by the schedule, before jitter; of a replay that of its original."""
    planned = job.nominal_at if job.origin is None else job.origin.nominal_at
    return job.scheduled_at if planned is None else planned


def delay(job: Job, now: int) -> int | None:
    """The first start minus the scheduled time, in ms; None while the job has not started."""
    if job.delay_ms is not None:
        return job.delay_ms
    if has_started(job, now):
        return started_at(job) - job.scheduled_at
    return None


def is_late(job: Job, now: int) -> bool:
    """Whether the job is late: submitted for a past time, or not started `LATE_MS` after its time. One that waits for others never is."""
    if job.after:
        return False
    delayed = delay(job, now)
    if delayed is None:
        delayed = now - job.scheduled_at if is_open(job) else 0
    return job.scheduled_at < job.created_at or delayed >= LATE_MS


def marks(job: Job) -> tuple[object, ...]:
    """Values that differ between any two states of one job. A writer that got no answer recognizes its own write by them."""
    ends = tuple(getattr(job, name) for name in FINAL_TIMES.values())
    claim = (job.claim.nonce, job.claim.revocable) if job.claim else None
    return (job.fence, job.slot, job.due_at, claim, job.buried, job.cancel_requested_at is None, job.redriven_by, ends)


# Events: one function each, of the event's name, that returns the job after the event. Each raises IllegalTransition if the table has no
# arrow for it. The functions of final events take the `retention` of the job; `at` is the instant (ms) of the event.


def claim(job: Job, *, claim: Claim) -> Job:
    """An executor claims the job."""
    return _same_fence(job, Event.CLAIM, {"claim": claim})


def accept(job: Job, *, started_at: int, result: Result, lease_until: int, slot: str) -> Job:
    """The target has accepted the job, or the work in AWS goes on. Its due time becomes the end of its lease, at which it is checked; its
    start is stored."""
    changes = {
        "claim": replace(job.claim, lease_until=lease_until) if job.claim is not None else None,
        "due_at": lease_until,
        "slot": slot,
        "started_at": started_at,
        "delay_ms": job.delay_ms if job.delay_ms is not None else started_at - job.scheduled_at,
        "reason": job.reason if job.cancel_requested_at is not None else result.awaited and result.awaited.stopping,
        "requeue_cause": None,
        "output": result.output,
        "response": result.response,
        "awaited": result.awaited,
        "looks": 0,
    }
    return _same_fence(job, Event.ACCEPT, changes)


def intend(job: Job, awaited: Awaited) -> Job:
    """The executor of the claimed job is about to start work in AWS whose end is awaited."""
    return _same_fence(job, Event.INTEND, {"awaited": awaited})


def heartbeat(job: Job, at: int, *, lease_until: int, progress: Progress | None = None) -> Job:
    """The worker extends the lease. Due time and slot stay: the check at the old end of the lease finds the longer one.

    A heartbeat may be stored before the write that accepts the job; the claim then has no lease to extend.
    """
    claim = replace(job.claim, lease_until=lease_until) if job.claim is not None and waits(job) else job.claim
    return _same_fence(job, Event.HEARTBEAT, {"claim": claim, "heartbeat_at": at, "progress": progress or job.progress})


def fix(job: Job) -> Job:
    """The executor of the revocable job is about to start it: from now on its owner cannot change it."""
    return _same_fence(job, Event.FIX, {"claim": replace(job.claim, revocable=False) if job.claim is not None else None})


def start(job: Job, at: int) -> Job:
    """The executor of a job that has crashed before starts its work at `at`. A crash from now on is charged: see `is_charged`."""
    return _same_fence(job, Event.START, {"started_at": at})


def succeed(job: Job, at: int, *, started_at: int, result: Result, retention: Retention = USUAL_RETENTION) -> Job:
    """The attempt succeeded with this result."""
    changes = _attempted(job, at, Outcome.SUCCEEDED, started_at, result)
    changes |= {"charged": job.charged + 1, "reason": None, "output": result.output, "response": result.response}
    return _ended(job, Event.SUCCEED, at, changes, retention)


def retry(job: Job, at: int, *, started_at: int, result: Result, due_at: int, slot: str) -> Job:
    """The attempt failed; the next one may start at `due_at`, in the retry lane."""
    changes: Changes = {"due_at": due_at, "slot": slot, "reason": None, "requeue_cause": None}
    changes["awaited"] = _still_open(job, unclear=result.unclear)
    return _next_fence(job, Event.RETRY, _failed(job, at, started_at, result) | changes)


def fail(
    job: Job,
    at: int,
    *,
    reason: str | None = None,
    started_at: int | None = None,
    result: Result = NO_RESULT,
    retention: Retention = USUAL_RETENTION,
) -> Job:
    """The job failed: with a `result` if an attempt of it failed; a job that fails unclaimed has neither attempt nor result."""
    changes = _failed(job, at, started_at, result) if job.claim is not None else {}
    return _ended(job, Event.FAIL, at, changes | {"reason": reason or job.reason}, retention)


def kill(job: Job, at: int, *, started_at: int, result: Result, reason: str | None = None, retention: Retention = USUAL_RETENTION) -> Job:
    """The last attempt exceeded its time-out."""
    changes = _failed(job, at, started_at, result) | {"reason": reason or job.reason}
    return _ended(job, Event.KILL, at, changes, retention)


def take_back(job: Job, at: int, *, slot: str, due_at: int | None = None, failure: Failure = CRASHED) -> Job:
    """The executor ended; the job goes to the retry lane, due at `due_at` (default: now). Only some crashes are charged: `is_charged`."""
    start = crashed_start(job, at)
    charge = 1 if is_charged(job) else 0
    changes = _attempted(job, at, Outcome.CRASHED, start, Result(failure=failure))
    changes |= {"due_at": due_at or at, "slot": slot, "charged": job.charged + charge, "crashes": job.crashes + charge}
    changes |= {"reason": UNSTARTED} if start is None else {}
    return _next_fence(job, Event.TAKE_BACK, changes)


def cancel(
    job: Job,
    at: int,
    *,
    reason: str | None = None,
    started_at: int | None = None,
    result: Result = NO_RESULT,
    retention: Retention = USUAL_RETENTION,
) -> Job:
    """The job is cancelled. `started_at` if its work had begun, which adds an attempt; `result` if the work returned one."""
    stopped = _attempted(job, at, Outcome.CANCELLED, started_at, replace(result, failure=None)) if started_at is not None else {}
    changes = stopped | {"reason": reason or job.reason, "cancel_requested_at": job.cancel_requested_at or at}
    return _ended(job, Event.CANCEL, at, changes, retention)


def flag(job: Job, at: int, *, reason: str | None = None, due_at: int | None = None, slot: str | None = None) -> Job:
    """A cancel is requested of the claimed job. For a job that waits for its call-back, `due_at` and `slot` are the end of its grace."""
    check = {"due_at": due_at, "slot": slot} if due_at is not None and slot is not None and waits(job) else {}
    why = {"reason": reason, "requeue_cause": None} if reason else {}
    return _same_fence(job, Event.FLAG, {"cancel_requested_at": job.cancel_requested_at or at} | why | check)


def skip(job: Job, at: int, *, reason: str, retention: Retention = USUAL_RETENTION) -> Job:
    """The rule that `reason` names decided against the run."""
    return _ended(job, Event.SKIP, at, {"reason": reason}, retention)


def requeue(
    job: Job,
    *,
    reason: str,
    cause: RequeueCause | None = None,
    slot: str | None = None,
    due_at: int | None = None,
) -> Job:
    """The claimed job goes back to its lane before it started.

    `cause` is given only if it is to be recorded; `slot` and `due_at` only if they change.
    """
    changes = {"slot": slot, "due_at": due_at}
    why: Changes = {"reason": reason, "requeue_cause": cause}
    if job.awaited is not None and job.awaited.fence == job.fence:
        why["awaited"] = None  # it was to start with this attempt, and has not: its content may change now
    return _next_fence(job, Event.REQUEUE, why | {name: value for name, value in changes.items() if value is not None})


def reschedule(job: Job, *, slot: str, fields: Mapping[str, Any]) -> Job:
    """The owner changed the job, which is not claimed, or revocable. `fields`: the new values, by name."""
    return _next_fence(job, Event.RESCHEDULE, {"slot": slot, **fields})


def move(job: Job, *, slot: str, reconciled: bool = False, due_at: int | None = None) -> Job:
    """The job is checked again in `slot`. `reconciled`: reconciling found it not started."""
    return _same_fence(job, Event.MOVE, {"slot": slot, "due_at": due_at or job.due_at, "looks": job.looks + reconciled})


def release(job: Job, at: int, *, slot: str) -> Job:
    """The job that waited for its limited target may start at `at`, and is enqueued. It keeps its due time: so it keeps its place."""
    return _same_fence(job, Event.MOVE, {"slot": slot, "released_at": at})


def wait_elsewhere(job: Job, *, slot: str, reason: str) -> Job:
    """The job that waits for one of its limits waits for another one now."""
    return _same_fence(job, Event.MOVE, {"slot": slot, "reason": reason})


def bury(job: Job) -> Job:
    """The message of the scheduled job reached a dead-letter queue; the job keeps its slot."""
    return _same_fence(job, Event.BURY, {"buried": job.buried + 1})


def redrive(job: Job, at: int, *, slot: str, by: str | None = None) -> Job:
    """The dead job is scheduled again, due at once, with all its attempts. Its start deadline no longer applies. Its history stays.

    `by` identifies the request.
    """
    ends = dict.fromkeys((*FINAL_TIMES.values(), "expires", "fingerprint", "start_by", "cancel_requested_at", "reason"))
    life: Changes = {"redrives": job.redrives + 1, "redriven_at": at, "redriven_by": by, "charged": 0, "throttled": 0, "crashes": 0}
    life["awaited"] = _still_open(job)
    return _next_fence(job, Event.REDRIVE, attempt_output.superseded(job) | ends | life | {"slot": slot, "due_at": at})


def next_attempt(job: Job) -> int:
    """The number of the next attempt, or of the running one: attempts are numbered from 1, and a redrive continues the numbers."""
    return job.dropped + len(job.attempts) + 1


def numbered_attempts(job: Job) -> list[tuple[int, Attempt]]:
    """The attempts in the job's history, each with its number."""
    return list(enumerate(job.attempts, job.dropped + 1))


def is_charged(job: Job) -> bool:
    """Whether a crash under the present claim uses up an attempt: the work had started alone in its executor, or its worker has it.

    Only a stored start proves that the work had started: see `notes_start`.
    """
    return job.claim is not None and (waits(job) or (job.claim.alone and job.started_at is not None))


def notes_start(job: Job) -> bool:
    """Whether the executor of the claimed job stores the start just before it: the job runs alone, and `has_crashed`."""
    return job.claim is not None and job.claim.alone and has_crashed(job)


def crashed_start(job: Job, at: int) -> int | None:
    """When the attempt of the claimed job started whose executor has ended by `at`; None: it did not start.

    It may have started, unless the executor ended before the instant, or stores starts and has stored none.
    """
    start = started_at(job)
    return None if start > at or is_revocable(job) or (job.started_at is None and notes_start(job)) else start


def has_only_died(job: Job) -> bool:
    """Whether the executor of the last attempt ended before the start, and no attempt was charged or throttled: the job still waits."""
    last = job.attempts[-1] if job.attempts else None
    died = last is not None and last.outcome is Outcome.CRASHED and last.started_at is None and last in _of_this_life(job)
    return died and job.charged == job.throttled == 0


def has_crashed(job: Job) -> bool:
    """Whether an attempt of this life of the job crashed, as far as its history goes back."""
    return any(attempt.outcome is Outcome.CRASHED for attempt in _of_this_life(job))


def crashes_in_row(job: Job) -> int:
    """The number of crashes in a row at the end of this life of the job; at most `RETAINED_ATTEMPTS`."""
    return len([*takewhile(lambda attempt: attempt.outcome is Outcome.CRASHED, reversed(_of_this_life(job)))])


def _of_this_life(job: Job) -> list[Attempt]:
    return [attempt for attempt in job.attempts if attempt.picked_at >= (job.redriven_at or 0)]


def _arrow(job: Job, event: Event) -> Status:
    """The status that `event` leads to. Raises IllegalTransition if the table has no such arrow."""
    before = state(job)
    after = TRANSITIONS[event].get(before)
    if after is None:
        raise IllegalTransition(f"{event} of a job that is {before}")
    return after


def _same_fence(job: Job, event: Event, changes: Changes) -> Job:
    _arrow(job, event)
    return changed(job, **changes)


def _next_fence(job: Job, event: Event, changes: Changes) -> Job:
    _arrow(job, event)
    lane = Lane.RETRY if event in TRIES_AGAIN else changes.get("lane", job.lane)
    fresh = dict.fromkeys(("picked_at", "started_at", "heartbeat_at", "progress", "claim", "released_at"))
    return changed(job, **changes | {"fence": job.fence + 1, "lane": lane, "looks": 0, "buried": 0} | fresh)


def _ended(job: Job, event: Event, at: int, changes: Changes, retention: Retention) -> Job:
    status = _arrow(job, event)
    days = retention.failure_days if status in DEAD else retention.days
    changes |= {FINAL_TIMES[status]: at, "slot": None, "claim": None, "requeue_cause": None, "expires": at // 1000 + days * DAY_S}
    if job.followed is not None:
        changes["expires"] = max(changes["expires"], job.followed // 1000)
    ended = changed(job, **changes)
    return changed(ended, fingerprint=fingerprint.of_job(ended)) if status in DEAD else ended


def _still_open(job: Job, *, unclear: bool = True) -> Awaited | None:
    """The start in AWS that the next attempt repeats: its answer was lost with the executor, or has not come.

    Not `unclear`: AWS has refused the start under this fence. A start of an earlier attempt may have happened nevertheless.
    """
    awaited = job.awaited
    return awaited if awaited is not None and awaited.id is None and (unclear or awaited.fence < job.fence) else None


def _attempted(job: Job, at: int, outcome: Outcome, started: int | None, result: Result) -> Changes:
    """The changes that add an attempt to the job's history. An output that the job has belongs to the attempt before, and moves there."""
    claim, failure = job.claim, result.failure
    if claim is None:
        return {}
    if failure is not None and len(failure.message) > LONGEST_FAILURE:
        failure = replace(failure, message=failure.message[:LONGEST_FAILURE])
    attempt = Attempt(job.fence, claim.at, started, at, outcome, failure, result.log, preview=result.preview)
    changes = attempt_output.superseded(job)
    history = (*changes.get("attempts", job.attempts), attempt)
    changes["attempts"] = history[-RETAINED_ATTEMPTS:]
    if len(history) > RETAINED_ATTEMPTS:
        changes["dropped"] = job.dropped + len(history) - RETAINED_ATTEMPTS
    if job.delay_ms is None and started is not None:
        changes["delay_ms"] = started - job.scheduled_at
    changes |= {"picked_at": claim.at, "started_at": started}
    return changes


def _failed(job: Job, at: int, started: int | None, result: Result) -> Changes:
    kind = result.failure.kind if result.failure is not None else FailureKind.RETRYABLE
    outcome = _OUTCOMES.get(kind, Outcome.FAILED)
    free = 1 if kind in UNCHARGED else 0
    return _attempted(job, at, outcome, started, result) | {
        "charged": job.charged + 1 - free,
        "throttled": job.throttled + free,
        "output": result.output,
        "response": result.response,
    }
