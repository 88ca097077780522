"""Worlds of jobs that wait for others: with faults, and without, where each starts as soon as the last one has ended."""

from lab.world.faults import CALM, ROUGH
from scheduler.model.rules import Rules
from tests.simulation.oracles import WatchedWorld
from tests.simulation.world import World

JOBS, MINUTES, AFTER = 60, 12, 200


def following(seed: int) -> World:
    """Return an ended world with faults in which most jobs wait for others."""
    world = World(seed, ROUGH)
    world.run(JOBS, MINUTES, after=AFTER)
    return world


def following_calmly(seed: int) -> World:
    """Return an ended world without faults."""
    world = WatchedWorld(seed, CALM, rules=Rules(shards=2))
    world.run(JOBS, MINUTES, after=AFTER, wind_down=60)
    return world
