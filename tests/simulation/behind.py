"""A world in which plan is away again and again while people change their tasks.

The oracles are those of `people`: each time has its run or its record, whichever version of the task was to plan it, and no run that an
earlier version has started is planned again.
"""

from dataclasses import replace

from lab.world.faults import CALM, Rates
from scheduler.model import slots
from tests.simulation.world import START, World

MINUTES = 100
AWAY = (3, 60)  # minutes
ROUGH_PLAN = replace(CALM, crash=0.01, refuse=0.01, skew_ms=250)


class BehindWorld(World):
    """See the module."""

    def __init__(self, seed: int, rates: Rates = ROUGH_PLAN) -> None:
        super().__init__(seed, rates)
        self.people.acts = ("rename",) * 6 + ("edit", "edit", "pause", "run", "delete")
        self._away: list[tuple[int, int]] = []
        at = START + self.random.randint(5, 15) * slots.MINUTE
        while at < START + MINUTES * slots.MINUTE:
            back = at + self.random.randint(*AWAY) * slots.MINUTE
            self._away.append((at, back))
            at = back + self.random.randint(1, 4) * slots.MINUTE

    def _plan(self) -> None:
        if not any(begin <= self.hub.time < end for begin, end in self._away):
            super()._plan()


def changed_behind(seed: int) -> BehindWorld:
    """Run a world of this kind."""
    world = BehindWorld(seed)
    world.run(0, MINUTES, tasks=8, ordered=0, wind_down=70)
    return world
