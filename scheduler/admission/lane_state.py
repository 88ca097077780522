"""Pause lanes, resume them, and cache their states while a process works.

An accepted job of a paused lane waits: a planned one in the slot of its minute, of which dispatch publishes nothing, and any other one in
the lane's waiting room. Executors start nothing. After the resume the job's misfire rule decides, as after any delay.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from scheduler.admission import why_waits
from scheduler.admission.why_waits import Seen
from scheduler.model.breaker import Breaker, Circuit
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, Lane, LaneState
from scheduler.model.work import WorkItem, WorkKind
from scheduler.sharing.pins import Pins, by_owner
from scheduler.storage.cache import Cache
from scheduler.storage.ports import Ledger, Ports

REFRESH_MS = 1_000  # how often a working process reads the states
SEEN_MS = 2_500  # an executor starts nothing by an older read; above LOOK_MS: else a hundred executors would read just before an instant
TRUSTED_MS = 5_000  # while the ledger refuses, a batch may begin by states of at most this age


class PausedBy(NamedTuple):
    """The author of a pause: the id and the name of a user. None: the scheduler itself."""

    id: str | None = None
    name: str | None = None


BY_ITSELF = PausedBy()


def pause(lanes: Collection[Lane], reason: str | None, ports: Ports, by: PausedBy = BY_ITSELF) -> list[LaneState]:
    """Pause these lanes and return the states of all.

    A paused lane keeps its `paused_at`; a new reason replaces the old one, and its author replaces the author of the pause.
    """
    stored = ports.ledger.watched().lanes
    for lane in lanes:
        before = stored.get(lane, LaneState(lane))
        if before.paused_at is None or reason not in (None, before.reason):
            since = ports.clock.now() if before.paused_at is None else before.paused_at
            stored[lane] = LaneState(lane, paused_at=since, reason=reason, paused_by=by.id, paused_by_name=by.name)
            ports.ledger.set_lane_state(stored[lane])
    return _all(stored)


def resume(lanes: Collection[Lane], reason: str | None, ports: Ports) -> list[LaneState]:
    """Resume these lanes and return the states of all. A lane that is not paused stays unchanged.

    A message of the work queue then wakes the units whose jobs waited, and the waiting rooms. If the queue refuses it, the next tick wakes
    them.
    """
    stored = ports.ledger.watched().lanes
    for lane in lanes:
        if lane in stored and stored[lane].paused_at is not None:
            stored[lane] = LaneState(lane, resumed_at=ports.clock.now(), reason=reason)
            ports.ledger.set_lane_state(stored[lane])
    ports.work.send([WorkItem(WorkKind.RESUME)])
    return _all(stored)


def forget_author(person: str, ledger: Ledger) -> None:
    """Erase the name of a person who is deleted from the pauses. The id stays."""
    for state in ledger.watched().lanes.values():
        if state.paused_by == person and state.paused_by_name is not None:
            ledger.set_lane_state(replace(state, paused_by_name=None))


def states(ledger: Ledger) -> list[LaneState]:
    """The states of all lanes."""
    return _all(ledger.watched().lanes)


def _all(stored: Mapping[Lane, LaneState]) -> list[LaneState]:
    return [stored.get(lane, LaneState(lane)) for lane in Lane]


class _States(NamedTuple):
    """The states that one read of the ledger returned."""

    lanes: Mapping[Lane, LaneState]
    paused: frozenset[Lane]
    breakers: Mapping[Circuit, Breaker]
    pins: Pins


_UNREAD = _States({}, frozenset(), {}, {})


@dataclass(slots=True)
class LaneStateCache:
    """The lane and breaker states for a working process: read at most every `REFRESH_MS`, and kept while the ledger refuses."""

    ports: Ports
    _states: Cache[None, _States] = field(init=False)

    def __post_init__(self) -> None:
        self._states = Cache("the lane states", self._read, REFRESH_MS, backs_off=False)

    @property
    def known(self) -> Mapping[Lane, LaneState] | None:
        """The states of the last read; None: they were never read."""
        states = self._states.peek(None)
        return None if states is None else states.lanes

    @property
    def paused(self) -> frozenset[Lane]:
        return (self._states.peek(None) or _UNREAD).paused

    @property
    def breakers(self) -> Mapping[Circuit, Breaker]:
        """The breakers that are open or half-open."""
        return (self._states.peek(None) or _UNREAD).breakers

    @property
    def pins(self) -> Pins:
        """The executors that long jobs keep busy, by lane and user."""
        return (self._states.peek(None) or _UNREAD).pins

    @property
    def read_at(self) -> int:
        """When the read of `known` began; 0: never."""
        return self._states.read_at(None) or 0

    @property
    def tried_at(self) -> int:
        """When the last try to read began; 0: never."""
        return self._states.tried_at(None) or 0

    def is_due(self) -> bool:
        return self._states.is_due(None, self.ports.clock.now())

    def is_paused(self, lane: Lane, age_ms: int = REFRESH_MS, *, trust_ms: int | None = None) -> bool:
        """Whether the lane is paused, by the last read; reads again if that is older than `age_ms`, or says that the lane is paused.

        So no job is sent away by an old read when its lane was just resumed.

        Raises Unavailable if the ledger refuses and the states were never read, or are older than `trust_ms`.
        """
        self._refresh(0 if lane in self.paused or not self._is_believed(trust_ms) else age_ms)
        if not self._is_believed(trust_ms):
            raise Unavailable("the lane states cannot be read")
        return lane in self.paused

    def _is_believed(self, trust_ms: int | None) -> bool:
        return self.known is not None and (trust_ms is None or abs(self.ports.clock.now() - self.read_at) <= trust_ms)

    def refresh(self, *, at_once: bool = False) -> bool:
        """Read the states if they are due, or `at_once`. Returns whether the set of paused lanes has changed. Never raises."""
        before = self.paused
        self._refresh(0 if at_once else REFRESH_MS)
        return self.paused != before

    def _refresh(self, age_ms: int) -> None:
        with suppress(Unavailable):
            self._states.get(None, self.ports.clock.now(), age_ms)

    def _read(self, keys: Sequence[None], now: int) -> dict[None, _States]:
        watched = self.ports.ledger.watched()
        return {None: _States(watched.lanes, paused_lanes(watched.lanes), watched.breakers, by_owner(watched.pins, now))}

    def concerning(self, jobs: Iterable[Job], now: int) -> Seen | None:
        """The states if the reason of one of these jobs may follow from them. Never raises.

        None: no reason does, or the states were never read.
        """
        if not any(why_waits.depends(job, now) for job in jobs):
            return None
        self.refresh()
        return None if self.known is None else Seen(self.known, self.breakers)


def paused_lanes(states: Mapping[Lane, LaneState]) -> frozenset[Lane]:
    return frozenset(lane for lane, state in states.items() if state.paused_at is not None)


def resumed_lanes(states: Mapping[Lane, LaneState], since: int) -> frozenset[Lane]:
    """The lanes that were resumed at `since` or later, and not paused again."""
    return frozenset(lane for lane, state in states.items() if state.resumed_at is not None and state.resumed_at >= since)
