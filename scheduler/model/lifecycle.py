"""The state machine of a job: one table of transitions and the one function that applies an event.

The state is never stored. A job without a slot is final, and its times say how it ended; with a slot it is open, and
running while it has a claim. `docs/lifecycle.md` draws `TRANSITIONS`; a test holds the two equal.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from scheduler.model import attempt_output, fingerprint
from scheduler.model.errors import IllegalTransition
from scheduler.model.job import Attempt, Claim, Failure, Job, Lane, Outcome, Result, Status

KEPT_ATTEMPTS = attempt_output.KEPT_ATTEMPTS
LATE_MS = 10_000  # a start this long after the scheduled time is late (the bound of the start-delay alarm)
DAY_S = 86_400
KEPT_FAILURE = 1_000  # characters of a failure's message: five attempts of them must not make an item too large to settle

FINAL_TIMES = {
    Status.SUCCEEDED: "completed_at",
    Status.FAILED: "failed_at",
    Status.KILLED: "killed_at",
    Status.CANCELLED: "cancelled_at",
    Status.SKIPPED: "skipped_at",
}
DEAD = (Status.FAILED, Status.KILLED)
Changes = dict[str, Any]  # of a job's fields, by name
_OUTCOMES = {"timeout": Outcome.KILLED, "crashed": Outcome.CRASHED}  # of a failed attempt, by the kind of its failure

CRASHED = Failure("crashed", "its executor died")


class Event(StrEnum):
    """What can happen to a job."""

    CLAIM = "claim"  # an executor takes it
    ACCEPT = "accept"  # its target took it over and will report by call-back; no executor has it any more
    HEARTBEAT = "heartbeat"  # its worker lives
    SUCCEED = "succeed"  # its target answered well
    RETRY = "retry"  # its attempt failed and another one follows
    FAIL = "fail"  # its attempt failed and none follows
    KILL = "kill"  # its last attempt ran out of time
    TAKE_BACK = "take_back"  # its executor died; it goes to the retry lane
    CANCEL = "cancel"  # asked for, before the work started
    FLAG = "flag"  # a cancel is asked of a claimed job; its executor decides
    SKIP = "skip"  # a rule says no
    WAIT = "wait"  # its instant has come, but another job must end first, or what it needs is not free
    RESCHEDULE = "reschedule"  # its owner changed its time or content before it started
    MOVE = "move"  # the scheduler will look at it again in another slot
    BURY = "bury"  # its message reached a dead-letter queue though it never started
    REDRIVE = "redrive"  # it failed or was killed, and somebody wants it tried again from the start


TRANSITIONS: dict[Event, dict[Status, Status]] = {
    Event.CLAIM: {Status.SCHEDULED: Status.RUNNING},
    Event.ACCEPT: {Status.RUNNING: Status.RUNNING},
    Event.HEARTBEAT: {Status.RUNNING: Status.RUNNING},
    Event.SUCCEED: {Status.RUNNING: Status.SUCCEEDED},
    Event.RETRY: {Status.RUNNING: Status.SCHEDULED},
    Event.FAIL: {Status.RUNNING: Status.FAILED, Status.SCHEDULED: Status.FAILED},
    Event.KILL: {Status.RUNNING: Status.KILLED},
    Event.TAKE_BACK: {Status.RUNNING: Status.SCHEDULED},
    Event.CANCEL: {Status.SCHEDULED: Status.CANCELLED, Status.RUNNING: Status.CANCELLED},
    Event.FLAG: {Status.RUNNING: Status.RUNNING},
    Event.SKIP: {Status.SCHEDULED: Status.SKIPPED, Status.RUNNING: Status.SKIPPED},
    Event.WAIT: {Status.RUNNING: Status.SCHEDULED},
    Event.RESCHEDULE: {Status.SCHEDULED: Status.SCHEDULED},
    Event.MOVE: {Status.SCHEDULED: Status.SCHEDULED, Status.RUNNING: Status.RUNNING},
    Event.BURY: {Status.SCHEDULED: Status.SCHEDULED},
    Event.REDRIVE: {Status.FAILED: Status.SCHEDULED, Status.KILLED: Status.SCHEDULED},
}
TRIES_AGAIN = (Event.RETRY, Event.TAKE_BACK, Event.REDRIVE)  # these go on in the retry lane
HANDS_BACK = (*TRIES_AGAIN, Event.WAIT, Event.RESCHEDULE)  # these raise the fence


@dataclass(frozen=True, slots=True)
class Retention:
    """How long final jobs are kept."""

    days: int = 30
    failure_days: int = 90


USUAL_RETENTION = Retention()


def state(job: Job) -> Status:
    """The stored state: any status but QUEUED, which only a reader with a clock can tell."""
    if job.slot is not None:
        return Status.SCHEDULED if job.claim is None else Status.RUNNING
    for status, time in FINAL_TIMES.items():
        if getattr(job, time) is not None:
            return status
    raise IllegalTransition(f"job {job.id} has neither a slot nor an end")


def status(job: Job, now: int) -> Status:
    """What the job is doing at `now`, as people see it."""
    stored = state(job)
    if stored is Status.RUNNING:
        return Status.RUNNING if started_at(job) <= now else Status.QUEUED  # claimed, and held to its instant
    if stored is Status.SCHEDULED and job.due_at <= now:
        return Status.QUEUED
    return stored


def is_open(job: Job) -> bool:
    return job.slot is not None


def started_at(job: Job) -> int:
    """When the attempt of a claimed job starts or started: a claim may come early, a start never does."""
    if job.claim is None:
        raise IllegalTransition(f"job {job.id} is not claimed")
    if waits(job) and job.started_at is not None:
        return job.started_at  # it is due when its lease ends
    return max(job.claim.at, job.due_at)


def waits(job: Job) -> bool:
    """Whether it runs without an executor: its worker reports by call-back."""
    return job.claim is not None and job.claim.lease_until is not None


def is_move(before: Job, after: Job) -> bool:
    """Whether a change only says where to look next, and so must not undo another one. Who accepts a job has more to say."""
    if after.slot in (None, before.slot) or after.fence != before.fence:
        return False
    return waits(before) or not waits(after)


def delay(job: Job, now: int) -> int | None:
    """First start minus scheduled time, in ms; None while it has not started."""
    if job.delay_ms is not None:
        return job.delay_ms
    if job.claim is not None and started_at(job) <= now:
        return started_at(job) - job.scheduled_at
    return None


def is_late(job: Job, now: int) -> bool:
    """Posted for a time already past, or started (or, still open, not started) `LATE_MS` after its time."""
    delayed = delay(job, now)
    if delayed is None:
        delayed = now - job.scheduled_at if is_open(job) else 0
    return job.scheduled_at < job.created_at or delayed >= LATE_MS


def marks(job: Job) -> tuple[object, ...]:
    """What tells two states of one job apart: a writer whose answer was lost finds its own write by them."""
    ends = tuple(getattr(job, name) for name in FINAL_TIMES.values())
    nonce = job.claim.nonce if job.claim else None
    return (job.fence, job.slot, job.due_at, nonce, job.buried, job.cancel_requested_at is None, ends)


def apply(job: Job, event: Event, at: int, **data: Any) -> Job:
    """The job after `event` at the instant `at`. Raises IllegalTransition if the table has no such arrow.

    `data` by event: CLAIM `claim`; SUCCEED, RETRY, FAIL, KILL `started_at`, `result` (and RETRY `due_at`, `slot`); TAKE_BACK, REDRIVE
    `slot` (and TAKE_BACK `failure`, if it is another one); ACCEPT `started_at`, `result`, `lease_until`, `slot`; HEARTBEAT `lease_until`,
    `progress`; WAIT `slot`, `reason` (and `due_at`, `reserved_at`, if they are other ones); RESCHEDULE `slot`, `fields` (what changes, by
    name); MOVE `slot`, `looked` (and `due_at`); FLAG `reason` (and of a job that waits for its call-back `due_at`, `slot`);
    FAIL of a scheduled job, SKIP, CANCEL `reason`, and CANCEL of work that had begun `started_at` and perhaps `result`.
    Final events take `retention`.
    """
    before = state(job)
    after = TRANSITIONS[event].get(before)
    if after is None:
        raise IllegalTransition(f"{event} of a job that is {before}")
    changes = _EFFECTS[event](job, at, data)
    if event in HANDS_BACK:
        lane = Lane.RETRY if event in TRIES_AGAIN else changes.get("lane", job.lane)
        fresh = dict.fromkeys(("picked_at", "started_at", "heartbeat_at", "progress", "claim"))
        return replace(job, **changes | {"fence": job.fence + 1, "lane": lane, "looks": 0, "buried": 0} | fresh)
    if after in FINAL_TIMES:
        return _ended(job, changes, after, at, data.get("retention", USUAL_RETENTION))
    return replace(job, **changes)


def _ended(job: Job, changes: Changes, status: Status, at: int, retention: Retention) -> Job:
    days = retention.failure_days if status in DEAD else retention.days
    changes |= {FINAL_TIMES[status]: at, "slot": None, "claim": None, "expires": at // 1000 + days * DAY_S}
    ended = replace(job, **changes)
    return replace(ended, fingerprint=fingerprint.of_job(ended)) if status in DEAD else ended


def _claim(job: Job, at: int, data: dict[str, Any]) -> Changes:
    claim: Claim = data["claim"]
    return {"claim": claim}


def _accept(job: Job, at: int, data: dict[str, Any]) -> Changes:
    """Its lease is its due time now, at which somebody is to look; so its start is written down."""
    result, started, until = data["result"], data["started_at"], data["lease_until"]
    return {
        "claim": replace(job.claim, lease_until=until) if job.claim is not None else None,
        "due_at": until,
        "slot": data["slot"],
        "started_at": started,
        "delay_ms": job.delay_ms if job.delay_ms is not None else started - job.scheduled_at,
        "reason": None,
        "output": result.output,
        "response": result.response,
    }


def _heartbeat(job: Job, at: int, data: dict[str, Any]) -> Changes:
    """Due time and slot stay: who looks then finds the longer lease. A worker may be faster than the answer that accepts its job."""
    claim = replace(job.claim, lease_until=data["lease_until"]) if job.claim is not None and waits(job) else job.claim
    return {"claim": claim, "heartbeat_at": at, "progress": data.get("progress") or job.progress}


def _attempted(job: Job, at: int, data: dict[str, Any], outcome: Outcome, failure: Failure | None) -> Changes:
    """One more attempt in its history. What the job had put out was that of the attempt before."""
    claim, started = job.claim, data.get("started_at")
    if claim is None:
        return {}
    if failure is not None and len(failure.message) > KEPT_FAILURE:
        failure = replace(failure, message=failure.message[:KEPT_FAILURE])
    result: Result = data.get("result") or Result()
    attempt = Attempt(job.fence, claim.at, started, at, outcome, failure, result.log, kept=result.kept)
    changes = attempt_output.superseded(job)
    changes["attempts"] = (*changes.get("attempts", job.attempts), attempt)[-KEPT_ATTEMPTS:]
    if job.delay_ms is None and started is not None:
        changes["delay_ms"] = started - job.scheduled_at
    changes |= {"picked_at": claim.at, "started_at": started}
    return changes


def _succeed(job: Job, at: int, data: dict[str, Any]) -> Changes:
    result: Result = data["result"]
    changes = _attempted(job, at, data, Outcome.SUCCEEDED, None)
    changes |= {"charged": job.charged + 1, "reason": None, "output": result.output, "response": result.response}
    return changes


def _retry(job: Job, at: int, data: dict[str, Any]) -> Changes:
    return _failed(job, at, data) | {"due_at": data["due_at"], "slot": data["slot"], "reason": None}


def _failed(job: Job, at: int, data: dict[str, Any]) -> Changes:
    if job.claim is None:  # failed without a start: buried
        return {"reason": data["reason"]}
    result: Result = data["result"]
    outcome = _OUTCOMES.get(result.failure.kind if result.failure else "", Outcome.FAILED)
    throttled = 1 if result.failure and result.failure.kind == "throttled" else 0
    return _attempted(job, at, data, outcome, result.failure) | {
        "charged": job.charged + 1 - throttled,
        "throttled": job.throttled + throttled,
        "output": result.output,
        "response": result.response,
        "reason": data.get("reason") or job.reason,
    }


def _crash(job: Job, at: int, data: dict[str, Any]) -> Changes:
    """Alone in its batch, a job that lost its executor is charged; in company it may be innocent and is not."""
    start = started_at(job)
    changes = _attempted(job, at, {"started_at": start if start <= at else None}, Outcome.CRASHED, data.get("failure", CRASHED))
    charge = 1 if is_alone(job) else 0
    return changes | {"due_at": at, "slot": data["slot"], "charged": job.charged + charge, "crashes": job.crashes + charge}


def is_alone(job: Job) -> bool:
    """Whether a crash of the claimed job would be its own, and not that of a job beside it."""
    return job.claim is not None and (job.claim.alone or waits(job))


def _reason(job: Job, at: int, data: dict[str, Any]) -> Changes:
    return {"reason": data.get("reason")}


def _wait(job: Job, at: int, data: dict[str, Any]) -> Changes:
    due_at, reserved_at = data.get("due_at", job.due_at), data.get("reserved_at", job.reserved_at)
    return {"slot": data["slot"], "due_at": due_at, "reason": data["reason"], "reserved_at": reserved_at}


def _reschedule(job: Job, at: int, data: dict[str, Any]) -> Changes:
    return {"slot": data["slot"], **data["fields"]}


def _cancel(job: Job, at: int, data: dict[str, Any]) -> Changes:
    stopped = _attempted(job, at, data, Outcome.CANCELLED, None) if data.get("started_at") is not None else {}
    return stopped | {"reason": data.get("reason") or job.reason, "cancel_requested_at": job.cancel_requested_at or at}


def _flag(job: Job, at: int, data: dict[str, Any]) -> Changes:
    look = {"due_at": data["due_at"], "slot": data["slot"]} if waits(job) and "due_at" in data else {}
    return {"reason": data.get("reason") or job.reason, "cancel_requested_at": job.cancel_requested_at or at} | look


def _move(job: Job, at: int, data: dict[str, Any]) -> Changes:
    looks = job.looks + (1 if data.get("looked") else 0)
    return {"slot": data["slot"], "due_at": data.get("due_at") or job.due_at, "looks": looks}


def _bury(job: Job, at: int, data: dict[str, Any]) -> Changes:
    return {"buried": job.buried + 1}


def _redrive(job: Job, at: int, data: dict[str, Any]) -> Changes:
    """A new life, due at once: all attempts are its own again, and neither misfire nor expiry ends it. Its history stays."""
    ends = dict.fromkeys((*FINAL_TIMES.values(), "expires", "fingerprint", "start_by", "cancel_requested_at", "reason"))
    life = {"redrives": job.redrives + 1, "redriven_at": at, "charged": 0, "throttled": 0, "crashes": 0}
    return attempt_output.superseded(job) | ends | life | {"slot": data["slot"], "due_at": at}


_EFFECTS: dict[Event, Callable[[Job, int, dict[str, Any]], Changes]] = {
    Event.CLAIM: _claim,
    Event.ACCEPT: _accept,
    Event.HEARTBEAT: _heartbeat,
    Event.SUCCEED: _succeed,
    Event.RETRY: _retry,
    Event.FAIL: _failed,
    Event.KILL: _failed,
    Event.TAKE_BACK: _crash,
    Event.CANCEL: _cancel,
    Event.FLAG: _flag,
    Event.SKIP: _reason,
    Event.WAIT: _wait,
    Event.RESCHEDULE: _reschedule,
    Event.MOVE: _move,
    Event.BURY: _bury,
    Event.REDRIVE: _redrive,
}
