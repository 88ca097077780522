"""A world whose executors die after each claim for half an hour, as after a bad deployment, and in which some jobs kill their executors.

failed_unstarted    a job failed although no executor ever started it
late_after_dying    a job starts later than `PATIENCE_MS` after executors live again
poison_open         a job that kills each executor that starts it has not ended, or was started more than `STARTS` times
"""

from collections import Counter
from collections.abc import Sequence

from lab.world.faults import CALM
from lab.world.hub import Killed
from lab.world.pools import SimPool
from scheduler.dead_letters.model import is_dead
from scheduler.model import lifecycle, retry, slots
from scheduler.model.job import Job, JobKey, TaskHead
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline.submit import NewJob
from scheduler.storage.ports import ClaimRequest, ClaimResult
from tests.simulation.world import START, Container, World

FROM_MS, MINUTES = 5 * slots.MINUTE, 30
PATIENCE_MS = retry.CRASH_WAITS_MS[-1] + slots.MINUTE
STARTS = 1 + retry.MAX_CRASHES
JOBS, POISON = 40, 5


class KilledPool(SimPool):
    """The pool of an executor that dies as it starts certain jobs."""

    starts: Counter[JobKey]

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        self.starts[job.key] += 1
        if job.spec.payload.get("kills"):
            raise Killed
        super().start(job, not_after, task)


class DyingWorld(World):
    """See the module."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, CALM, rules=Rules(shards=2))
        self.begun: Counter[JobKey] = Counter()
        self._dies_from, self._dies_until = START + FROM_MS, START + FROM_MS + MINUTES * slots.MINUTE
        claim = self.jobs.claim

        def dying(requests: Sequence[ClaimRequest]) -> list[ClaimResult | None]:
            done = claim(requests)
            if self._dies_from <= self.hub.time < self._dies_until and any(each is not None and each.won for each in done):
                raise Killed
            return done

        self.jobs.claim = dying  # type: ignore[method-assign]

    def _pool(self, container: Container) -> SimPool:
        pool = KilledPool(self.hub, container.ports.clock, self.random, self._started)
        pool.starts = self.begun
        return pool

    def post(self, at: int, due_at: int, *, kills: bool) -> None:
        spec = JobSpec("log", {"takes": 20, "fails": 0, "kills": kills}, max_attempts=1 + self.random.randrange(5))
        self.hub.spawn(lambda: self._post([NewJob("user", spec, due_at)]), at)

    def judge(self) -> None:
        for key in self._accepted:
            job = self.jobs.rows[key]
            if job.spec.payload["kills"]:
                if lifecycle.is_open(job) or self.begun[key] > STARTS:
                    self._violation("poison_open", key.id)
            elif is_dead(job) and not self.begun[key]:
                self._violation("failed_unstarted", key.id)
            elif job.completed_at is None or job.completed_at > max(self._dies_until, job.scheduled_at) + PATIENCE_MS:
                self._violation("late_after_dying", key.id)


def dying(seed: int) -> DyingWorld:
    """Run a world of this kind."""
    world = DyingWorld(seed)
    for number in range(JOBS + POISON):
        at = START + world.random.randrange(20 * slots.MINUTE)
        world.post(at, at + world.random.randrange(20 * slots.MINUTE), kills=number >= JOBS)
    end = world._dies_until + 40 * slots.MINUTE
    world._schedule(world._tick, end)
    world.hub.run(end)
    world.judge()
    return world
