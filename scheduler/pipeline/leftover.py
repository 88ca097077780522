"""What to do with a job that is still in its slot after its minute was handed out: pure decisions."""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.admission.lane_state import resumed_lanes
from scheduler.model import callback_lease, lifecycle, slots
from scheduler.model.job import Job, Lane, LaneState, Status, Unit

RECHECK_AFTER = 120_000  # from hand-out (or the end of the minute) to the first recheck
STOP_GRACE = 60_000  # a job still running so long after its time-out has lost its executor
BACKOFF = (120_000, 240_000, 480_000, 900_000)  # from one hand-over to the next one
REST_MS = 1_200_000  # a unit that waits only for paused lanes is left alone so long: a day's pause is 1,440 units to read
REST_AGAIN_MS = 300_000  # and looked at again so long before that ends: its rest has no gaps
RESUME_SLACK = 1_000  # a unit over so shortly after a resume may have been handed out by one who still saw the pause
SKEW_MS = 5_000  # between the clock that resumes and the one that looks
LOOKS = (300_000, 900_000, 1_800_000, 3_600_000, 21_600_000, 86_400_000)  # later looks at a closed unit, after its closing


@dataclass(frozen=True, slots=True)
class Leave:
    """Not this slot's business any more: the index lagged, or the job is final."""


@dataclass(frozen=True, slots=True)
class Stay:
    """Its lane is paused: it stays where it is, and keeps its minute open."""


@dataclass(frozen=True, slots=True)
class Move:
    """Look again in `slot`; hand the job to its lane now if `hand_over`."""

    slot: str
    hand_over: bool
    due_at: int | None = None  # another due time: when the lease of a job ends that waits for its call-back


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Its executor died, or the worker that was to report: hand it back."""


def decide(job: Job | None, slot: str, now: int, *, shards: int, behind: bool, paused: bool = False) -> Leave | Stay | Move | TakeBack:
    """What follows for `job` (as stored) found in `slot`. A lane that is `behind` gets no second message, one that is `paused` none."""
    if job is None or job.slot != slot:
        return Leave()
    if lifecycle.waits(job):
        ends_at = callback_lease.ends_at(job)
        placement = slots.place(ends_at, now, job.shard_key, shards)
        return TakeBack() if now >= ends_at else Move(placement.slot, placement.direct, ends_at)
    if lifecycle.state(job) is Status.RUNNING:
        lost_at = lifecycle.started_at(job) + job.spec.timeout_ms + STOP_GRACE
        return TakeBack() if now >= lost_at else _move(job, lost_at, now, shards, hand_over=False)
    if paused:
        return Stay()
    if job.due_at > now:
        placement = slots.place(job.due_at, now, job.shard_key, shards)
        return Move(placement.slot, hand_over=placement.direct)
    pause = BACKOFF[min(job.looks, len(BACKOFF) - 1)]
    return _move(job, now + pause, now, shards, hand_over=not behind)


def lane_is_behind(backlog: int, allowed: int) -> bool:
    return backlog > allowed


def rests(unit: Unit, states: Mapping[Lane, LaneState], now: int) -> bool:
    """Whether a unit waits only for paused lanes: who found that out has leased it from then on, and no lane was resumed since."""
    if unit.handed_out_at is None or unit.lease_until <= now:
        return False
    return not resumed_lanes(states, unit.lease_until - REST_MS - SKEW_MS)


def _move(job: Job, at: int, now: int, shards: int, *, hand_over: bool) -> Move:
    return Move(slots.place(at, now, job.shard_key, shards).slot, hand_over)
