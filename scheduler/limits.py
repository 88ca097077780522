"""The limits of named targets: who may start when. Pure; `services/limit_gate.py` acts on it.

One record per limited target holds both limits. The **line** is virtual scheduling (GCRA, with a burst of one): each job that cannot
start at once gets an instant of its own, one step after the one before it, and comes back exactly then. The **places** are leases: who
runs holds one until it ends, or until its lease is over. The step is that of the rate; where there is none, or for a job that came at its
instant and found no place, it is not shorter than the pace at which places become free, so that of many that wait not all come back.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler.model import JobKey
from scheduler.named_target import NamedTarget

LATE_MS = 1_000  # a job this much late for its instant still has it; a later one gets another
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
    next_us: int = 0  # the end of the line: the first instant, in microseconds, that nobody has
    places: tuple[Place, ...] = ()
    took_ms: int = USUAL_MS  # how long jobs held their places lately, by and large
    version: int = 0  # 0: not stored yet


@dataclass(frozen=True, slots=True)
class Ask:
    """A job that wants to start, at `earliest` or later; `instant` is the one that it was given before."""

    job: JobKey
    fence: int
    timeout_ms: int
    earliest: int
    instant: int | None = None
    again: bool = False  # it has come at an instant, and found no place


@dataclass(frozen=True, slots=True)
class Start:
    """Its instant has come, and it has a place if it needs one."""


@dataclass(frozen=True, slots=True)
class Later:
    """It has this instant."""

    at: int


@dataclass(frozen=True, slots=True)
class Full:
    """Its instant has come, and no place is free."""


Answer = Start | Later | Full


def admit(usage: Usage, limit: NamedTarget, asks: Sequence[Ask], now: int) -> tuple[Usage, Mapping[JobKey, Answer]]:
    """What to answer each, in order, and the usage after it: the same one if nothing was given away.

    Who asks again is answered again: a place is known by job and fence, an instant by who has it.
    """
    held = {place.job: place for place in usage.places if place.until > now}
    next_us, answers = usage.next_us, dict[JobKey, Answer]()
    for ask in asks:
        mine = held.get(ask.job)
        if mine is not None and mine.fence == ask.fence:
            answers[ask.job] = Start()
            continue
        held.pop(ask.job, None)  # of an attempt that is over
        has_room = limit.concurrency is None or len(held) < limit.concurrency
        instant = ask.instant
        if instant is None or now > instant + LATE_MS:
            earliest_us = max(ask.earliest, now) * 1_000
            is_free = limit.rate is None and has_room and next_us <= earliest_us  # nobody waits, and no rate has to be kept
            instant_us = max(next_us, earliest_us)
            next_us = next_us if is_free else instant_us + _step_us(usage, limit, paced=ask.again or limit.rate is None)
            instant = -(-instant_us // 1_000)
        if instant > now:
            answers[ask.job] = Later(instant)
        elif not has_room:
            answers[ask.job] = Full()
        else:
            answers[ask.job] = Start()
            if limit.concurrency is not None:
                held[ask.job] = Place(ask.job, ask.fence, now, now + ask.timeout_ms + LEASE_MS)
    places = tuple(held.values())
    if (next_us, places) == (usage.next_us, usage.places):
        return usage, answers
    return replace(usage, next_us=next_us, places=places, version=usage.version + 1), answers


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


def _step_us(usage: Usage, limit: NamedTarget, *, paced: bool) -> int:
    """From one instant of the line to the next."""
    rate_us = 0 if limit.rate is None else round(1_000_000 / limit.rate)
    if limit.concurrency is None or not paced:
        return rate_us
    return max(rate_us, min(round(usage.took_ms * 1_000 * PACE / limit.concurrency), LONGEST_STEP_US))
