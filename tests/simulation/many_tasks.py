"""A hundred thousand minutely tasks, scaled down: some of them, and a plan that works as much shorter in each minute.

Calls take 1 to 6 ms, and processor time is not counted (`python -m bench.tasks` measures it). The oracle: plan stores each run before it
is due.
"""

from unittest.mock import patch

from lab.world.faults import CALM
from scheduler.model import slots
from scheduler.model.spec import JobSpec
from scheduler.tasks import plan, service
from scheduler.tasks.service import NewTask
from tests.simulation.world import START, World

WANTED, TASKS, MINUTES = 100_000, 500, 25
SPREAD_MS = 450_000  # the tasks are created within this time
FIRST_MS = 8 * slots.MINUTE + 1_000  # the first plan


def many_tasks(seed: int) -> World:
    """Create the tasks and plan them every minute."""
    world = World(seed, CALM, concurrency=1)
    spec = JobSpec("log", {"takes": 1, "fails": 0})

    def create(number: int) -> None:
        service.create(NewTask("user", f"task {number}", spec, {"cron": "* * * * *"}), world.plain, random=number + 1)

    for number in range(TASKS):
        world.hub.spawn(lambda number=number: create(number), START + number * SPREAD_MS // TASKS)  # type: ignore[misc]
    for minute in range(MINUTES):
        world.hub.spawn(world._plan, START + FIRST_MS + minute * slots.MINUTE)
    with patch.object(plan, "WORK_MS", plan.WORK_MS * TASKS // WANTED):
        world.hub.run(START + FIRST_MS + MINUTES * slots.MINUTE)
    for job in world.jobs.rows.values():
        if job.created_at > job.scheduled_at:
            world._violation("planned_after_its_time", job.id)
    return world
