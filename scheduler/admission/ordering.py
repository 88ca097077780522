"""Who of the jobs of one ordering key may start: pure decisions over the head of their line.

Each open job has a marker in the line of its key, which stands by (scheduled time, creation, id). The first of them takes the turn,
and holds it from its start to its end, retries included; the others wait. A failed job whose `on_failure` is park leaves its marker
where it is: that is all there is to a parked key.

Markers are written before their jobs and taken away after them, so one may stand for nothing: it counts while it is young
enough for its job to be about to be stored, and is taken away after that.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from scheduler.model.job import Job, JobKey, Line, Marker, OrderKey, Turn
from scheduler.model.lifecycle import DEAD, is_open, state
from scheduler.model.spec import OnFailure

YOUNG_MS = 60_000  # so long a marker may be there before its job, or before its job is moved to it
KEPT_PARKED_MS = 3_600_000  # how often a job of a parked key is looked at: nothing but a resume lets it go on


@dataclass(frozen=True, slots=True)
class Start:
    """It may start once the turn is written as `turn` (None: it has it, and goes on)."""

    turn: Turn | None
    stale: tuple[Marker, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """It has to wait for the job `blocker`; `parked`: for a person, as that one has failed."""

    reason: str
    blocker: JobKey
    parked: bool = False


@dataclass(frozen=True, slots=True)
class LookAgain:
    """The line is not what it should be: take away what is `stale`, put what is `missing`, and look again."""

    stale: tuple[Marker, ...] = ()
    missing: Marker | None = None


@dataclass(frozen=True, slots=True)
class LookLater:
    """A marker before it may stand for a job that is being stored at this moment."""


Decision = Start | Wait | LookAgain | LookLater


class _Means(Enum):
    """What a marker stands for."""

    JOB = auto()  # an open job at its place
    PARKS = auto()  # a dead one that parks the key
    UNSURE = auto()  # perhaps a job that is about to be stored
    NOTHING = auto()
    NOT_YET = auto()  # nothing, but its job may be moved to it at this moment


def order_of(job: Job) -> OrderKey:
    """The line the job stands in. Raises ValueError if it has no ordering key."""
    if job.spec.ordering is None:
        raise ValueError(f"job {job.id} has no ordering key")
    return OrderKey(job.owner, job.spec.ordering.key)


def marker(job: Job, at: int = 0) -> Marker:
    """Its place in the line, put at the instant `at`."""
    return Marker(order_of(job), job.id, job.scheduled_at, job.created_at, job.redrives, at)


def parks(job: Job) -> bool:
    """Whether the job has ended in a way that parks its key."""
    return job.spec.ordering is not None and job.spec.ordering.on_failure is OnFailure.PARK and not is_open(job) and state(job) in DEAD


def has_begun(job: Job) -> bool:
    """Whether an attempt of its present life has started."""
    life = job.redriven_at or 0
    return job.charged + job.throttled > 0 or any(each.started_at is not None and each.picked_at >= life for each in job.attempts)


def decide(job: Job, line: Line, jobs: Mapping[JobKey, Job], now: int, *, asking: Collection[JobKey] = ()) -> Decision:
    """What follows for the claimed `job` at the head of its line. `jobs`: those that the line names, as far as they exist.

    `asking`: jobs claimed by whoever asks, which therefore have not started under their claims.
    """
    mine, stale = marker(job, now), list[Marker]()
    if mine not in line.markers and (not line.more or mine.position < line.markers[-1].position):
        return LookAgain(missing=mine)
    holds = holding(line, jobs, asking)
    if holds is not None:
        return Start(None) if holds.key == job.key else Wait(after(holds.id), holds.key)
    for each in line.markers:
        if each == mine:
            return Start(_turn(job, line, now), tuple(stale))
        means = _means(each, jobs.get(each.key), now)
        if means is _Means.JOB:
            return Wait(after(each.job), each.key)
        if means is _Means.PARKS:
            return Wait(f"order: its key {each.order.key} is parked, for job {each.job} failed", each.key, parked=True)
        if means is _Means.UNSURE:
            return LookLater()
        if means is _Means.NOTHING:
            stale.append(each)
    return LookAgain(tuple(stale))  # its own is behind what was read


def after(job_id: str) -> str:
    """Why a job waits for that one."""
    return f"order: it runs after job {job_id}"


def holding(line: Line, jobs: Mapping[JobKey, Job], asking: Collection[JobKey] = ()) -> Job | None:
    """The open job that had the last turn and may be running, or has run. One that was given back before it started has lost it."""
    job = jobs.get(line.turn.key) if line.turn is not None else None
    if job is None or not is_open(job):
        return None
    return job if has_begun(job) or (job.claim is not None and job.key not in asking) else None


def next_up(line: Line, jobs: Mapping[JobKey, Job]) -> Job | None:
    """The job whose turn is next, as far as the head of the line tells; None while one holds it, or the key is parked."""
    if holding(line, jobs) is not None:
        return None
    for each in line.markers:
        job = jobs.get(each.key)
        if job is not None and parks(job):
            return None
        if job is not None and is_open(job) and marker(job) == each:
            return job
    return None


def parked_by(line: Line, jobs: Mapping[JobKey, Job]) -> list[Marker]:
    """The dead jobs that park the key, in the order of the line."""
    return [each for each in line.markers if (job := jobs.get(each.key)) is not None and parks(job) and marker(job) == each]


def _means(each: Marker, job: Job | None, now: int) -> _Means:
    is_young = now - each.at < YOUNG_MS
    if job is None:
        return _Means.UNSURE if is_young else _Means.NOTHING
    if marker(job) != each:  # its time was changed, or it was redriven, or is about to be
        return _Means.NOT_YET if is_young else _Means.NOTHING
    if is_open(job):
        return _Means.JOB
    return _Means.PARKS if parks(job) else _Means.NOTHING


def _turn(job: Job, line: Line, now: int) -> Turn:
    """Always another version, even if the job had the last turn: whoever has read that one must not take it over."""
    return Turn(order_of(job), job.id, now, line.turn.version + 1 if line.turn is not None else 1)
