"""Queues that say yes to old receipt handles, in a simulated world whose executors freeze often and whose messages come again.

An executor that was frozen for longer than its lease must not start anything, even if the queue tells it that its lease is renewed.
"""

from dataclasses import replace

from lab.world.faults import ROUGH, Rates
from lab.world.queues import Lenience
from tests.simulation.world import World

FROZEN = replace(ROUGH, freeze=7 * ROUGH.freeze, redeliver=3 * ROUGH.redeliver)
LENIENT = {"jobs": 600, "minutes": 10, "tasks": 8, "ordered": 50, "wind_down": 95}  # one run in four needs the guard


class LenientWorld(World):
    """A world with such queues: every second seed changes the visibility, the others only say so."""

    def __init__(self, seed: int, rates: Rates = FROZEN, *, lenience: Lenience | None = None) -> None:
        super().__init__(seed, rates)
        self.lanes.lenience = lenience or (Lenience.SAID, Lenience.DONE)[seed % 2]
