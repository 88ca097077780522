"""Which lanes are paused, as an executor knows it."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.errors import Unavailable
from scheduler.model import Lane, LaneState
from scheduler.ports import Ledger

LOOK_MS = 1_000

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Pauses:
    """Read at most every `LOOK_MS`, whichever batch of this process asks. While the ledger refuses, what was known last counts."""

    _states: Mapping[Lane, LaneState] = field(default_factory=dict)
    _look_at: int = 0

    def is_paused(self, lane: Lane, ledger: Ledger, now: int) -> bool:
        if now >= self._look_at:
            self._look_at = now + LOOK_MS
            try:
                self._states = ledger.lane_states()
            except Unavailable:
                log.info("lanes not looked at: the ledger refuses for now")
        state = self._states.get(lane)
        return state is not None and state.paused_at is not None
