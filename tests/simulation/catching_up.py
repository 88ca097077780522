"""A world whose lanes are paused while tasks with `run_all` and overlap `skip` are due, whose runs are shorter than their interval.

The oracle: no run is skipped for overlap. None would meet another one if all were in time, so each of them belongs to the catching up.
"""

from lab.world.faults import CALM
from scheduler.admission.lane_state import pause, resume
from scheduler.model import slots
from scheduler.model.job import Lane, Misfire, Overlap
from scheduler.model.spec import JobSpec
from scheduler.tasks import service
from scheduler.tasks.service import NewTask
from tests.simulation.world import START, World

PAUSES = ((6, 9), (20, 26))  # minutes
END = 60 * slots.MINUTE
TAKES = (1, 5_000, 20_000, 40_000)


def catching_up(seed: int) -> World:
    """Run the tasks and pause their lane twice, a few seconds after some of them are due."""
    world = World(seed, CALM)
    world._schedule(world._tick, START + END)
    world._schedule(world._plan, START + END)
    for number, takes in enumerate(TAKES):
        spec = JobSpec("log", {"takes": takes, "fails": 0}, timeout_ms=120_000)
        new = NewTask(
            f"user{number}", "catches up", spec, {"cron": "* * * * *"}, overlap=Overlap.SKIP, misfire=Misfire.RUN_ALL, max_catch_up=100
        )
        world.hub.spawn(lambda new=new, number=number: service.create(new, world.plain, random=number), START + 1_000)  # type: ignore[misc]
    for begin, end in PAUSES:
        offset = world.random.randint(0, slots.MINUTE)
        world.hub.at(START + begin * slots.MINUTE + offset, lambda: pause((Lane.RECURRING,), None, world.plain))
        world.hub.at(START + end * slots.MINUTE + offset, lambda: resume((Lane.RECURRING,), None, world.plain))
    world.hub.run(START + END)
    for job in world.jobs.rows.values():
        if (job.reason or "").startswith("overlap"):
            world._violation("skipped_while_catching_up", job.id)
    return world
