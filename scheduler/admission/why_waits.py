"""The reason why a job waits, at the instant of a read. Pure.

The reason that is stored with a job was true when it was written. A pause writes no job, and a breaker that closes writes none either: so
the reasons of both follow from the states of the lanes and breakers, and a stored one that is over is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.admission import breaker as breakers
from scheduler.model import after, slots
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.instants import render
from scheduler.model.job import Job, Lane, LaneState, RequeueCause

DERIVED = (RequeueCause.PAUSED, RequeueCause.BREAKER)


@dataclass(frozen=True, slots=True)
class Seen:
    """The states of the lanes and the breakers that are not closed, as they were read."""

    lanes: Mapping[Lane, LaneState] = field(default_factory=dict)
    breakers: Mapping[Circuit, Breaker] = field(default_factory=dict)


def is_due(job: Job, now: int) -> bool:
    """Whether the job is due and no executor has it. One that waits for other jobs is not due."""
    return _is_waiting(job) and job.due_at <= now and not after.waits(job.after)


def depends(job: Job, now: int) -> bool:
    """Whether the reason of this job may follow from `Seen`."""
    return is_due(job, now) or (_is_waiting(job) and job.requeue_cause in DERIVED)


def reason(job: Job, seen: Seen | None, now: int) -> str | None:
    """The reason why the job waits or ended. None: there is none, or it is over. `seen` None: as it is stored."""
    if _is_waiting(job) and after.waits(job.after):
        return after.why_waits(job.after)
    if _is_waiting(job) and (job.reason or "").startswith(after.PREFIX):
        return None  # it waits no longer
    if seen is None or not _is_waiting(job):
        return job.reason
    state = seen.lanes.get(job.lane)
    if state is not None and state.paused_at is not None and (is_due(job, now) or _waits_for_lane(job)):
        return paused(state)
    if _waits_for_lane(job):
        return None
    return _of_breaker(job, seen, now) if job.requeue_cause is RequeueCause.BREAKER else job.reason


def paused(state: LaneState) -> str:
    """The pause in words: since when, by whom and why."""
    by = f" by {state.paused_by_name}" if state.paused_by_name else ""
    why = f": {state.reason}" if state.reason else ""
    return f"its lane {state.lane} is paused since {render(state.paused_at or 0)}{by}{why}"


def open_breaker(found: Breaker, now: int) -> str:
    """The reason of a job that waits for this breaker."""
    what = f"open until {render(found.until)}" if now < found.until else "another job is trying it"
    return f"breaker: {found.circuit.name} does not answer; {what}"


def _of_breaker(job: Job, seen: Seen, now: int) -> str | None:
    circuit = breakers.circuit(job)
    found = None if circuit is None else seen.breakers.get(circuit)
    if found is not None:
        return open_breaker(found, now)
    if circuit is None or job.due_at <= now:
        return None
    return f"breaker: {circuit.name} answers again; the job starts at {render(job.due_at)}"


def _is_waiting(job: Job) -> bool:
    return job.slot is not None and job.claim is None


def _waits_for_lane(job: Job) -> bool:
    """Whether the job was sent away by the pause of its lane, and not since its owner is disabled."""
    in_room = job.slot is not None and slots.owner_of_room(slots.minute(job.slot)) is not None
    return job.requeue_cause is RequeueCause.PAUSED and not in_room
