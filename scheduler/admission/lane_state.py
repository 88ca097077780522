"""Pause lanes and resume them, and know of it while working.

An accepted job of a paused lane waits in its slot: dispatch publishes nothing, recheck leaves it where it is, executors
start nothing. After the resume its misfire rule decides, as after any delay.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from scheduler.admission.breaker import Breaker
from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane, LaneState
from scheduler.storage.ports import Ledger, Ports

LOOK_MS = 1_000  # who works for longer reads the states so often
SEEN_MS = 2_500  # an executor starts nothing by an older look; just before an instant a hundred of them have better things to do
TRUSTED_MS = 5_000  # while the ledger refuses, a batch is begun by what was read so lately

log = logging.getLogger(__name__)


def pause(lanes: Collection[Lane], reason: str | None, ports: Ports) -> list[LaneState]:
    """Pause these lanes; the states of all. One that is paused stays so from when it was; a new reason replaces the old one."""
    stored = ports.ledger.watched().lanes
    for lane in lanes:
        before = stored.get(lane, LaneState(lane))
        if before.paused_at is None or reason not in (None, before.reason):
            since = ports.clock.now() if before.paused_at is None else before.paused_at
            stored[lane] = LaneState(lane, paused_at=since, reason=reason)
            ports.ledger.set_lane_state(stored[lane])
    return _all(stored)


def resume(lanes: Collection[Lane], reason: str | None, ports: Ports) -> list[LaneState]:
    """Resume these lanes; the states of all. One that is not paused stays as it is."""
    stored = ports.ledger.watched().lanes
    for lane in lanes:
        if lane in stored and stored[lane].paused_at is not None:
            stored[lane] = LaneState(lane, resumed_at=ports.clock.now(), reason=reason)
            ports.ledger.set_lane_state(stored[lane])
    return _all(stored)


def states(ledger: Ledger) -> list[LaneState]:
    """The states of all lanes."""
    return _all(ledger.watched().lanes)


def _all(stored: Mapping[Lane, LaneState]) -> list[LaneState]:
    return [stored.get(lane, LaneState(lane)) for lane in Lane]


@dataclass(slots=True)
class Watch:
    """What one who works for a while knows of lanes and breakers: read at most every `LOOK_MS`, and kept while the ledger refuses."""

    ports: Ports
    known: Mapping[Lane, LaneState] | None = None  # None: never read
    paused: frozenset[Lane] = field(default_factory=frozenset)
    breakers: Mapping[str, Breaker] = field(default_factory=dict)  # those that are not closed
    read_at: int = 0  # when `known` was asked for
    tried_at: int = 0

    def is_due(self, age_ms: int = LOOK_MS) -> bool:
        return self.ports.clock.now() - self.tried_at >= age_ms

    def is_paused(self, lane: Lane, age_ms: int = LOOK_MS, *, trust_ms: int | None = None) -> bool:
        """By the last look, or a new one if that is older.

        Raises Unavailable if it is not known at all or, while the ledger refuses, not known as lately as `trust_ms`.
        """
        if not self._is_believed(trust_ms):
            self.tried_at = 0
        elif not self.is_due(age_ms):
            return lane in self.paused
        self.look()
        if not self._is_believed(trust_ms):
            raise Unavailable("the states of the lanes cannot be read")
        return lane in self.paused

    def _is_believed(self, trust_ms: int | None) -> bool:
        return self.known is not None and (trust_ms is None or self.ports.clock.now() - self.read_at <= trust_ms)

    def look(self) -> bool:
        """Read the states if it is time. Whether other lanes are paused now than before."""
        if not self.is_due():
            return False
        now = self.tried_at = self.ports.clock.now()
        try:
            watched = self.ports.ledger.watched()
        except Unavailable as error:
            log.warning("the states of the lanes cannot be read for now", extra={"known": self.known is not None, "error": str(error)})
            return False
        self.known, self.breakers = watched.lanes, watched.breakers
        before, self.read_at, self.paused = self.paused, now, paused_lanes(self.known)
        return self.paused != before


def paused_lanes(states: Mapping[Lane, LaneState]) -> frozenset[Lane]:
    return frozenset(lane for lane, state in states.items() if state.paused_at is not None)


def resumed_lanes(states: Mapping[Lane, LaneState], since: int) -> frozenset[Lane]:
    """The lanes that were resumed at `since` or later, and not paused again."""
    return frozenset(lane for lane, state in states.items() if state.resumed_at is not None and state.resumed_at >= since)
