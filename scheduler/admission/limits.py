"""The limits of named targets: who may start when. Pure; `scheduler/admission/limit_gate.py` acts on it.

One record per limited target holds all there is to know. The **rate** is virtual scheduling (GCRA without a burst): each start gets an
instant of its own, one step after the one before it, and is held to it. The **places** are leases: who runs holds one until its work
comes back, or until its lease is over. Who would have to wait long stands in **line**: it gets a ticket, an instant at which to come again.
A ticket says only when to ask, so one that comes late loses nothing, and many that come at once do not start at once. The line moves one
step of the rate a ticket; where there is no rate, and for who came and found no place, at the pace at which places become free.

Hundreds of executors may ask at one moment. So a change of the record is not "if nobody has changed it": it says what it takes, and is
conditional on no more than makes that true. Who moved the end of the line meanwhile stands before us, and we get what comes behind it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler.model.job import JobKey
from scheduler.targets.named_target import NamedTarget

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
    """What of a target's limits is in use."""

    target: str
    next_us: int = 0  # the end of the line: the first ticket, in microseconds, that nobody has
    start_us: int = 0  # the first instant to start at that nobody has, in microseconds
    places: tuple[Place, ...] = ()
    took_ms: int = USUAL_MS  # how long jobs held their places lately, by and large
    stored: bool = False  # False: nothing is, so far


@dataclass(frozen=True, slots=True)
class Move:
    """One of the two ends, of the line or of the starts, moved on by `by_us` from `base_us`; `given` says what each job has got."""

    base_us: int
    by_us: int
    behind: bool  # `base_us` was the end; what others add to it meanwhile comes before this. False: the end was, and must be, before it
    latest_us: int | None = None  # others must not have come farther than this
    given: tuple[tuple[JobKey, int], ...] = ()

    def begins_at(self, end_us: int) -> int | None:
        """Where it begins if the end is there now, in microseconds; None: it does not hold any more."""
        if not self.behind:
            return self.base_us if end_us < self.base_us else None
        return end_us if self.base_us <= end_us and (self.latest_us is None or end_us <= self.latest_us) else None


@dataclass(frozen=True, slots=True)
class Use:
    """One change of a target's usage, all of it or nothing. It holds if both moves do, if there is room and all of `drops` are there."""

    target: str
    first: bool = False  # nothing is stored so far, and must not be
    line: Move | None = None
    starts: Move | None = None
    takes: tuple[Place, ...] = ()
    drops: tuple[Place, ...] = ()
    most: int | None = None  # how many places there are
    took_ms: int | None = None

    @property
    def room(self) -> int | None:
        """How many places may be taken before it; None: any number."""
        return self.most + len(self.drops) - len(self.takes) if self.takes and self.most is not None else None


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

    place: Place | None = None


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


def admit(
    usage: Usage, limit: NamedTarget, asks: Sequence[Ask], now: int, gone: Collection[Place] = ()
) -> tuple[Use | None, dict[JobKey, Answer]]:
    """What to answer each, in order, once the change has been made; None: there is none to make. See `confirmed`.

    Who asks again is answered again: a place is known by job and fence, an instant by who has it. Who asks for an attempt that is over,
    while a later one has the place, is not answered: it is of an executor that has lost the job and does not know yet. `gone`: places
    whose attempts are known to be over.
    """
    plan, answers = _Plan(usage, limit, now, gone), dict[JobKey, Answer]()
    for ask in asks:
        mine = plan.held.get(ask.job)
        if mine is not None and mine.fence == ask.fence:
            answers[ask.job] = Start(mine)
        elif mine is None or mine.fence < ask.fence:
            answers[ask.job] = plan.answer(ask)
    return plan.use(), answers


def confirmed(answers: Mapping[JobKey, Answer], use: Use, after: Usage) -> dict[JobKey, Answer]:
    """The answers after the change was made, which stand as much later as others had moved the ends on meanwhile."""
    moved: dict[JobKey, Answer] = {job: Ticket(at) for job, at in _given(use.line, after.next_us)}
    moved |= {job: At(at) for job, at in _given(use.starts, after.start_us)}
    return {job: answer if isinstance(answer, Start | Full) else moved.get(job, answer) for job, answer in answers.items()}


def _given(move: Move | None, end_us: int) -> Iterator[tuple[JobKey, int]]:
    if move is not None:
        later_us = end_us - move.by_us - move.base_us
        yield from ((job, _ms(at_us + later_us)) for job, at_us in move.given)


def used(usage: Usage, use: Use) -> Usage | None:
    """The usage after the change; None: it does not hold."""
    line, starts = _moved(usage.next_us, use.line), _moved(usage.start_us, use.starts)
    full = use.room is not None and len(usage.places) > use.room
    if line is None or starts is None or full or usage.stored == use.first or not set(use.drops) <= set(usage.places):
        return None
    taken = {place.job for place in use.takes}
    kept = tuple(place for place in usage.places if place not in use.drops and place.job not in taken)
    took_ms = usage.took_ms if use.took_ms is None else use.took_ms
    return Usage(usage.target, line, starts, kept + use.takes, took_ms, stored=True)


def _moved(end_us: int, move: Move | None) -> int | None:
    if move is None:
        return end_us
    begins_us = move.begins_at(end_us)
    return None if begins_us is None else begins_us + move.by_us


def freed(target: str, ended: Sequence[Place], took_ms: int, now: int) -> Use:
    """The change that frees these places, whose attempts have ended; `took_ms` as it was seen last."""
    for place in ended:
        took = now - place.since
        took_ms = min(took, took_ms * UP // DOWN + 1) if took > took_ms else max(took, took_ms * DOWN // UP, 1)
    return Use(target, drops=tuple(ended), took_ms=took_ms)


@dataclass(slots=True)
class _End:
    """One of the two ends, while it is given away piece by piece."""

    read_us: int
    end_us: int
    base_us: int | None = None
    given: list[tuple[JobKey, int]] = field(default_factory=list)

    def give(self, job: JobKey, at_us: int, step_us: int) -> int:
        self.base_us = at_us if self.base_us is None else self.base_us
        self.given.append((job, at_us))
        self.end_us = at_us + step_us
        return _ms(at_us)

    def move(self, latest_us: int | None = None) -> Move | None:
        if self.base_us is None:
            return None
        return Move(self.base_us, self.end_us - self.base_us, self.base_us == self.read_us, latest_us, tuple(self.given))


class _Plan:
    """What is given away of a usage, ask by ask."""

    def __init__(self, usage: Usage, limit: NamedTarget, now: int, gone: Collection[Place]) -> None:
        self.usage, self.limit, self.now = usage, limit, now
        self.line, self.starts = _End(usage.next_us, usage.next_us), _End(usage.start_us, usage.start_us)
        self.held = {place.job: place for place in usage.places if place.until > now and place not in gone}
        self.takes: list[Place] = []
        self.near_us = 0  # the starts must not have come farther than this, lest somebody is held for long ...
        self.at_once = False  # ... or is told to start now, and late

    def use(self) -> Use | None:
        """All of it; None if it is nothing."""
        starts = self.starts.move(self.starts.base_us if self.at_once else self.near_us)
        if self.line.base_us is None and starts is None and not self.takes:
            return None
        kept = set(self.held.values())
        drops = tuple(place for place in self.usage.places if place not in kept) if self.takes else ()
        return Use(self.usage.target, not self.usage.stored, self.line.move(), starts, tuple(self.takes), drops, self.limit.concurrency)

    def answer(self, ask: Ask) -> Answer:
        """To who has no place."""
        self.held.pop(ask.job, None)  # of an attempt that is over
        limit = self.limit.concurrency
        has_room = limit is None or len(self.held) < limit
        told = self._turn(ask, has_room=has_room)
        if told is not None:
            return told
        if not has_room:
            return Full()
        if limit is None:
            return Start()
        place = self.held[ask.job] = Place(ask.job, ask.fence, self.now, self.now + ask.timeout_ms + LEASE_MS)
        self.takes.append(place)
        return Start(place)

    def _turn(self, ask: Ask, *, has_room: bool) -> At | Ticket | None:
        """What to wait for; None: it may start, if there is a place."""
        now = self.now
        if ask.start is not None and now <= ask.start + LATE_MS:
            return At(ask.start) if ask.start > now else None
        earliest_us = max(ask.earliest, now) * 1_000
        is_far = self.starts.end_us > earliest_us + NEAR_MS * 1_000
        if ask.ticket is None or ask.again or is_far:
            others_wait = self.line.end_us > earliest_us
            if others_wait or ask.again or is_far or not has_room:
                ticket = self._in_line(ask, earliest_us)
                if ticket > now:
                    return Ticket(ticket)
        elif ask.ticket > now:
            return Ticket(ask.ticket)
        if self.limit.rate is None:
            return At(ask.earliest) if ask.earliest > now else None
        self.near_us = self.near_us or earliest_us + NEAR_MS * 1_000
        at = self.starts.give(ask.job, max(self.starts.end_us, earliest_us), round(1_000_000 / self.limit.rate))
        self.at_once = self.at_once or at <= now
        return At(at) if at > now else None

    def _in_line(self, ask: Ask, earliest_us: int) -> int:
        """A ticket at the end of the line."""
        step_us = 0 if self.limit.rate is None else round(1_000_000 / self.limit.rate)
        if self.limit.concurrency is not None and (ask.again or self.limit.rate is None):
            step_us = max(step_us, min(round(self.usage.took_ms * 1_000 * PACE / self.limit.concurrency), LONGEST_STEP_US))
        return self.line.give(ask.job, max(self.line.end_us, self.starts.end_us, earliest_us), step_us)


def _ms(at_us: int) -> int:
    """No sooner than that."""
    return -(-at_us // 1_000)
