"""A world in which several runs of a task come at once, under each overlap rule, and the oracle of run locks.

The oracle: no run that is due waits for longer than `PATIENCE_MS` while no other run of its task is at work: it would wait for a run lock
that nobody has (`waits_for_nobody`). If runs replace each other, the newest of a task succeeds (`newest_replaced`). `counts` has the
ends of the runs.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from lab.world.faults import CALM, Rates
from lab.world.hub import Hub
from lab.world.layers import Layer
from scheduler.model import ids, lifecycle
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Lane, Overlap, Status, TaskKey
from scheduler.model.spec import JobSpec
from scheduler.tasks import service as verbs
from scheduler.tasks.service import NewTask
from tests.simulation.stepped import SteppedWorld
from tests.simulation.world import START

PATIENCE_MS = 2_000
LOOK_MS = 250
ROUND_MS = 40_000  # from one round to the next
RUNS = (4, 6, 6, 6)  # runs of a task that come at once ...
APART_MS = (0, 0, 40, 400)  # ... within this time
SLOWER, SLOWER_MS = 0.2, (5, 120)  # the share of calls that take longer, and how much
TAKES = (300, 6_000, 6_000)


class Uneven(Layer):
    """A port of which some calls take longer than others, so that executors overtake each other between any two of their calls."""

    def __init__(self, port: Any, hub: Hub, random: Random) -> None:
        super().__init__(port)
        self._hub, self._random = hub, random

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._random.random() < SLOWER:
                self._hub.sleep_until(self._hub.time + self._random.randint(*SLOWER_MS))
            return effect(*args, **kwargs)

        return call


class OverlapWorld(SteppedWorld):
    """See the module. Each message has an executor of its own, as when many executors are ready. In half of the worlds calls are uneven."""

    def __init__(self, seed: int, rates: Rates = CALM) -> None:
        self._is_uneven = bool(seed % 2)
        super().__init__(seed, rates, concurrency=1_000)
        self.counts: Counter[str] = Counter()
        self._waits_since: dict[JobKey, int] = {}
        receive = self.lanes.receive
        self.lanes.receive = lambda lane, limit, now: receive(lane, 1, now)  # type: ignore[method-assign]

    def _wrap(self, name: str, port: Any) -> Any:
        port = super()._wrap(name, port)
        return Uneven(port, self.hub, self.random) if name in ("jobs", "tasks") and self._is_uneven else port

    def _poll(self, lane: Lane) -> None:
        super()._poll(lane)
        if any(queued.visible_at <= self.hub.time for queued in self.lanes.queues[lane].values()):
            self._wake(lane)

    def plan_rounds(self, rounds: int, overlap: Overlap) -> int:
        """Plan this number of rounds, each with a task of its own; return when the last one is over."""
        for number in range(rounds):
            at = START + (number + 1) * ROUND_MS
            self.hub.spawn(partial(self._round, number, overlap), at)
        end = START + (rounds + 2) * ROUND_MS
        for at in range(START, end, LOOK_MS):
            self.hub.at(at, self._look)
        return end

    def _round(self, number: int, overlap: Overlap) -> None:
        spec = JobSpec("log", {"takes": self.random.choice(TAKES), "fails": 0}, timeout_ms=60_000)
        task = verbs.create(
            NewTask(owner=f"user{number}", name="a task", schedule=None, spec=spec, overlap=overlap), self._ports(), random=number
        )
        apart = self.random.choice(APART_MS)
        for _ in range(self.random.choice(RUNS)):
            self.hub.spawn(partial(self._run, task.key), self.hub.time + 100 + self.random.randint(0, apart))

    def _run(self, task: TaskKey) -> None:
        try:
            verbs.run_now(task, self._ports(), random=self.random.getrandbits(ids.RANDOM_BITS))
        except Unavailable:
            self.faults.counts["run refused"] += 1

    def _look(self) -> None:
        now, runs = self.hub.time, [job for job in self.jobs.rows.values() if job.origin is not None and lifecycle.is_open(job)]
        at_work = {_task(job) for job in runs if job.claim is not None}
        waiting = [job.key for job in runs if job.claim is None and job.due_at <= now and _task(job) not in at_work]
        self._waits_since = {key: self._waits_since.get(key, now) for key in waiting}
        for key, since in self._waits_since.items():
            if since + PATIENCE_MS < now <= since + PATIENCE_MS + LOOK_MS:
                self._violation("waits_for_nobody", key.id)

    def end(self, until: int) -> None:
        """Run the world to its end, and count the ends of its runs."""
        self.hub.run(until)
        self.counts.update(str(lifecycle.status(job, until)) for job in self.jobs.rows.values())
        newest: dict[TaskKey | None, Job] = {}
        for job in sorted(self.jobs.rows.values(), key=lambda job: (job.scheduled_at, job.id)):
            newest[_task(job)] = job
        for job in newest.values():
            if _replaces(job) and lifecycle.state(job) is not Status.SUCCEEDED:
                self._violation("newest_replaced", job.id)


def _task(job: Job) -> TaskKey | None:
    return None if job.origin is None else TaskKey(job.owner, job.origin.task)


def _replaces(job: Job) -> bool:
    return job.origin is not None and job.origin.overlap is Overlap.CANCEL_RUNNING


def at_once(seed: int, overlap: Overlap = Overlap.CANCEL_RUNNING, rounds: int = 50) -> OverlapWorld:
    """Run a world of this kind, without faults."""
    world = OverlapWorld(seed)
    world.end(world.plan_rounds(rounds, overlap))
    return world
