"""What to do with a job that is still in its slot after its minute was handed out: pure decisions."""

from dataclasses import dataclass

from scheduler import lifecycle, slots
from scheduler.model import Job, Status

RECHECK_AFTER = 120_000  # from hand-out (or the end of the minute) to the first recheck
STOP_GRACE = 60_000  # a job still running so long after its time-out has lost its executor
BACKOFF = (120_000, 240_000, 480_000, 900_000)  # from one hand-over to the next one
LOOKS = (300_000, 900_000, 1_800_000, 3_600_000, 21_600_000, 86_400_000)  # later looks at a closed unit, after its closing


@dataclass(frozen=True, slots=True)
class Leave:
    """Not this slot's business any more: the index lagged, or the job is final."""


@dataclass(frozen=True, slots=True)
class Move:
    """Look again in `slot`; hand the job to its lane now if `hand_over`."""

    slot: str
    hand_over: bool


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Its executor died: hand it back."""


def decide(job: Job | None, slot: str, now: int, *, shards: int, behind: bool) -> Leave | Move | TakeBack:
    """What follows for `job` (as stored) found in `slot`. A lane that is `behind` gets no second message."""
    if job is None or job.slot != slot:
        return Leave()
    if lifecycle.state(job) is Status.RUNNING:
        lost_at = lifecycle.started_at(job) + job.timeout_ms + STOP_GRACE
        return TakeBack() if now >= lost_at else _move(job, lost_at, now, shards, hand_over=False)
    if job.due_at > now:
        placement = slots.place(job.due_at, now, job.id, shards)
        return Move(placement.slot, hand_over=placement.direct)
    pause = BACKOFF[min(job.looks, len(BACKOFF) - 1)]
    return _move(job, now + pause, now, shards, hand_over=not behind)


def lane_is_behind(backlog: int, allowed: int) -> bool:
    return backlog > allowed


def _move(job: Job, at: int, now: int, shards: int, *, hand_over: bool) -> Move:
    return Move(slots.place(at, now, job.id, shards).slot, hand_over)
