"""The limits of named targets: who may start when. Pure; `services/limit_gate.py` acts on it.

One record per limited target holds all there is to know. The **rate** is virtual scheduling (GCRA without a burst): each start gets an
instant of its own, one step after the one before it, and is held to it. The **places** are leases: who runs holds one until its work
comes back, or until its lease is over. Who would have to wait long stands in **line**: it gets a ticket, an instant at which to come again.
A ticket says only when to ask, so one that comes late loses nothing, and many that come at once do not start at once. The line moves one
step of the rate a ticket; where there is no rate, and for who came and found no place, at the pace at which places become free.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from scheduler.model import JobKey
from scheduler.named_target import NamedTarget
from scheduler.records import replace

NEAR_MS = 1_500  # a start that far ahead is waited for; for one farther away there is a ticket
LATE_MS = 250  # a job that much late for its start still has it
LEASE_MS = 60_000  # a place is held so much longer than the job's time-out, at most
PACE = 0.8  # of the time in which a place becomes free on average: who comes too soon waits a little, a free place for nobody
LONGEST_STEP_US = 5_000_000
USUAL_MS = 200  # how long jobs hold their places, while nothing was measured
UP, DOWN = 5, 4  # the measure moves by this ratio towards each job: it is a median, and one slow job does not stretch the line


@dataclass(frozen=True, slots=True)
class Place:
    """The right of one attempt to run."""

    job: JobKey
    fence: int
    since: int
    until: int  # whatever becomes of its executor


@dataclass(frozen=True, slots=True)
class Usage:
    """What of a target's limits is in use. `version` rises with every change, and is what every change is conditional on."""

    target: str
    next_us: int = 0  # the end of the line: the first ticket, in microseconds, that nobody has
    start_us: int = 0  # the first instant to start at that nobody has, in microseconds
    places: tuple[Place, ...] = ()
    took_ms: int = USUAL_MS  # how long jobs held their places lately, by and large
    version: int = 0  # 0: not stored yet
    writer: str = ""  # the attempt for which it was changed last: two may change the same to the same, and each would take it for its own


@dataclass(frozen=True, slots=True)
class Ask:
    """A job that wants to start, at `earliest` or later."""

    job: JobKey
    fence: int
    timeout_ms: int
    earliest: int
    ticket: int | None = None  # when it was told to come
    start: int | None = None  # the instant that it was given to start at
    again: bool = False  # it found no place for too long: back into the line


@dataclass(frozen=True, slots=True)
class Start:
    """Its instant has come, and it has a place if it needs one."""


@dataclass(frozen=True, slots=True)
class At:
    """It is to start at this instant."""

    at: int


@dataclass(frozen=True, slots=True)
class Ticket:
    """It is to ask at this instant."""

    at: int


@dataclass(frozen=True, slots=True)
class Full:
    """Its instant has come, and no place is free."""


Answer = Start | At | Ticket | Full


def admit(usage: Usage, limit: NamedTarget, asks: Sequence[Ask], now: int) -> tuple[Usage, Mapping[JobKey, Answer]]:
    """What to answer each, in order, and the usage after it: the same one if nothing was given away.

    Who asks again is answered again: a place is known by job and fence, an instant by who has it. Who asks for an attempt that is over,
    while a later one has the place, is not answered: it is of an executor that has lost the job and does not know yet.
    """
    held = {place.job: place for place in usage.places if place.until > now}
    after, answers = usage, dict[JobKey, Answer]()
    for ask in asks:
        mine = held.get(ask.job)
        if mine is not None and mine.fence == ask.fence:
            answers[ask.job] = Start()
            continue
        if mine is not None and mine.fence > ask.fence:
            continue
        held.pop(ask.job, None)  # of an attempt that is over
        has_room = limit.concurrency is None or len(held) < limit.concurrency
        after, answer = _turn(after, limit, ask, now, has_room=has_room)
        if answer is not None:
            answers[ask.job] = answer
        elif not has_room:
            answers[ask.job] = Full()
        else:
            answers[ask.job] = Start()
            if limit.concurrency is not None:
                held[ask.job] = Place(ask.job, ask.fence, now, now + ask.timeout_ms + LEASE_MS)
    places = tuple(held.values())
    after = after if places == after.places else replace(after, places=places)
    return (usage if after == usage else replace(after, version=usage.version + 1)), answers


def _turn(usage: Usage, limit: NamedTarget, ask: Ask, now: int, *, has_room: bool) -> tuple[Usage, At | Ticket | None]:
    """What to wait for; None: it may start, if there is a place."""
    if ask.start is not None and now <= ask.start + LATE_MS:
        return usage, (At(ask.start) if ask.start > now else None)
    earliest_us = max(ask.earliest, now) * 1_000
    is_far = usage.start_us > earliest_us + NEAR_MS * 1_000
    if ask.ticket is None or ask.again or is_far:
        others_wait = usage.next_us > earliest_us
        if others_wait or ask.again or is_far or not has_room:
            usage, ticket = _in_line(usage, limit, ask, earliest_us)
            if ticket > now:
                return usage, Ticket(ticket)
    elif ask.ticket > now:
        return usage, Ticket(ask.ticket)
    if limit.rate is None:
        return usage, (At(ask.earliest) if ask.earliest > now else None)
    at_us = max(usage.start_us, earliest_us)
    at = -(-at_us // 1_000)
    return replace(usage, start_us=at_us + round(1_000_000 / limit.rate)), (At(at) if at > now else None)


def _in_line(usage: Usage, limit: NamedTarget, ask: Ask, earliest_us: int) -> tuple[Usage, int]:
    """A ticket at the end of the line."""
    ticket_us = max(usage.next_us, usage.start_us, earliest_us)
    step_us = 0 if limit.rate is None else round(1_000_000 / limit.rate)
    if limit.concurrency is not None and (ask.again or limit.rate is None):
        step_us = max(step_us, min(round(usage.took_ms * 1_000 * PACE / limit.concurrency), LONGEST_STEP_US))
    return replace(usage, next_us=ticket_us + step_us), -(-ticket_us // 1_000)


def freed(usage: Usage, ended: Collection[tuple[JobKey, int]], now: int) -> Usage:
    """The usage after these attempts, by job and fence, have ended: the same one if none of them has a place."""
    left = tuple(place for place in usage.places if (place.job, place.fence) not in ended)
    if left == usage.places:
        return usage
    took_ms = usage.took_ms
    for place in usage.places:
        if (place.job, place.fence) in ended:
            took = now - place.since
            took_ms = min(took, took_ms * UP // DOWN + 1) if took > took_ms else max(took, took_ms * DOWN // UP, 1)
    return replace(usage, places=left, took_ms=took_ms, version=usage.version + 1)
