"""A world without faults, but for the clock of every third tick: it is wrong by up to two hours.

late_though_free    a planned job starts a second late or later although its lane is free (`tests/simulation/oracles.py`)
"""

from random import Random

from lab.world.clock import SimClock
from lab.world.faults import CALM
from scheduler.model import slots
from scheduler.model.rules import Rules
from scheduler.pipeline.tick import tick
from tests.simulation.oracles import WatchedWorld
from tests.simulation.world import START

AHEAD_MS = (61_000, 90_000, 150_000, 240_000, 290_000, 600_000, 1_800_000, 3_600_000, 7_200_000)
OFFS_MS = (*AHEAD_MS, *(-ahead for ahead in AHEAD_MS))
MINUTES = 24


class WrongTicks(WatchedWorld):
    """See the module."""

    _ticks = 0

    def _violation(self, kind: str, job_id: str) -> None:
        if kind != "churn":  # packs with a job that reports by call-back are claimed often, whatever the ticks do
            super()._violation(kind, job_id)

    def _tick(self) -> None:
        self._ticks += 1
        if self._ticks % 3 or self.hub.time > START + MINUTES * slots.MINUTE:
            super()._tick()
            return
        off = Random(f"{self.report.seed} {self._ticks}").choice(OFFS_MS)
        tick(self.plain.but(clock=SimClock(self.hub, off)))


def wrong_ticks(seed: int) -> WrongTicks:
    """Run the world. Its ledger begins with a right clock."""
    world = WrongTicks(seed, CALM, rules=Rules(shards=2, units=1 + seed % 2))
    world.run(400, MINUTES, tasks=4, wind_down=150)
    return world
