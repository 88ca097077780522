"""Reconciling a job that is still in its slot after the jobs of its minute were published: pure decisions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduler.admission.lane_state import resumed_lanes
from scheduler.model import callback_lease, lifecycle, slots
from scheduler.model.job import DueEntry, Job, Lane, LaneState, Status
from scheduler.model.rules import Rules

RECHECK_AFTER = 120_000  # ms from publishing the jobs of a minute (or from the end of the minute) to its first reconciling
STOP_GRACE = 60_000  # ms; a job that still runs this long after its time-out has lost its executor
BACKOFF = (120_000, 240_000, 480_000, 900_000)  # ms from one message of a job to the next one
REST_MS = 3_600_000  # a unit that waits only for paused lanes is read again after this time; a resume wakes it before
PIECE = 300  # entries that are reconciled at once
UNREADABLE_AGAIN_MS = 900_000  # an item that this version cannot read is checked again after this time
SKEW_MS = 5_000  # between the clock of the function that resumes a lane and the clock of the one that checks
CHECKS_MS = (300_000, 3_600_000)  # the later checks of a closed unit, in ms after its closing; the sweep finds what appears later still


@dataclass(frozen=True, slots=True)
class Leave:
    """The job is no longer in this slot, or is final: the index lagged. Nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Stay:
    """The job's lane is paused: the job stays in its slot, and its minute stays open."""


@dataclass(frozen=True, slots=True)
class Move:
    """Check the job again in `slot`; enqueue it now if `hand_over`."""

    slot: str
    hand_over: bool
    due_at: int | None = None  # a new due time: the end of the lease of a job that waits for its call-back


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The job's executor ended, or the worker that was to report: schedule the job again, or end it."""


def is_resumed(since: int, states: Mapping[Lane, LaneState], now: int) -> bool:
    """Whether a lane was resumed after `since`, when a unit began to wait for paused lanes.

    If that is uncertain, because the clocks may differ, the unit is woken once, `SKEW_MS` later: else it would be woken again and again.
    """
    uncertain = now >= since + SKEW_MS
    return bool(resumed_lanes(states, since - SKEW_MS if uncertain else since + 1))


def pieces(entries: Sequence[DueEntry]) -> list[Sequence[DueEntry]]:
    """Return the entries in the pieces in which they are reconciled."""
    return [entries[first : first + PIECE] for first in range(0, len(entries), PIECE)]


Decision = Leave | Stay | Move | TakeBack


def decide(job: Job | None, slot: str, now: int, rules: Rules, *, behind: bool, paused: bool = False) -> Decision:
    """Decide about a job that the index shows in `slot`; `job` is the stored record (None: it was deleted).

    A lane that is `behind` gets no second message, a lane that is `paused` gets none at all.
    """
    if job is None or job.slot != slot:
        return Leave()
    if lifecycle.waits(job):
        ends_at = callback_lease.ends_at(job)
        if job.awaited is not None and now >= ends_at:  # its message is lost: an executor checks the work in AWS
            return _move(job, now + BACKOFF[min(job.looks, len(BACKOFF) - 1)], now, rules, hand_over=not (behind or paused))
        placement = slots.place(ends_at, now, job.id, rules.shards)
        return TakeBack() if now >= callback_lease.over_at(job) else Move(placement.slot, placement.direct, ends_at)
    if lifecycle.state(job) is Status.RUNNING:
        return TakeBack() if is_lost(job, now) else _move(job, _lost_at(job), now, rules, hand_over=False)
    if paused:
        return Stay()
    if job.due_at > now:
        placement = slots.place(job.due_at, now, job.id, rules.shards)
        return Move(placement.slot, hand_over=placement.direct)
    pause = BACKOFF[min(job.looks, len(BACKOFF) - 1)]
    return _move(job, now + pause, now, rules, hand_over=not behind)


def is_lost(job: Job, now: int) -> bool:
    """Whether the claimed job has lost its executor: it would have stopped the work by now."""
    return now >= _lost_at(job)


def _lost_at(job: Job) -> int:
    return lifecycle.started_at(job) + job.spec.attempt_ms + STOP_GRACE


def lane_is_behind(backlog: int, lane: Lane, rules: Rules) -> bool:
    """Whether more messages wait in a lane than `max_backlog`, or than the dispatchers of a busy lane leave there by design."""
    return backlog > max(rules.max_backlog, rules.windows.get(lane, 0))


def _move(job: Job, at: int, now: int, rules: Rules, *, hand_over: bool) -> Move:
    return Move(slots.place(at, now, job.id, rules.shards).slot, hand_over)
