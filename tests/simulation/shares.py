"""One user's long jobs, retries and jobs for now beside a few jobs of another user, and what happens without each bound.

The lanes have 20 executors. Anton does one thing that keeps many of them busy; Berta has a job every five seconds. The oracle is how late
Berta's jobs start while Anton's wait.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from lab.world.faults import Rates
from scheduler.model import ids, slots
from scheduler.model.job import Job, Lane
from scheduler.model.rules import Rules
from scheduler.model.spec import Jitter, JobSpec, RetryPolicy
from scheduler.pipeline import packs
from scheduler.pipeline.batch_writes import BatchWrites
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import NewJob, Submission, submit_all
from scheduler.sharing import pins, window
from tests.simulation.world import START, World

EXECUTORS = 20
AT = START + 7 * slots.MINUTE
LASTS_MS = 120_000  # of Berta's jobs
LONG_MS = 600_000
PROCESSES = 12  # of the API


class Beside(World):
    """A world without faults, with Anton's and Berta's jobs only. `waits`: how late each attempt of Berta's started (ms)."""

    def __init__(self, seed: int = 1, *, fails: int = 0) -> None:
        windows = {Lane.ONE_TIME: EXECUTORS * 10, Lane.RECURRING: EXECUTORS * 10, Lane.RETRY: EXECUTORS}
        super().__init__(seed, Rates(lag_ms=300), rules=Rules(shards=4, windows=windows), concurrency=EXECUTORS)
        self.processes = [DirectPath(self.plain) for _ in range(PROCESSES)]
        self.waits: list[int] = []
        self._started_at: dict[str, list[int]] = {}
        self.expected = LASTS_MS // 5_000 * (1 + fails)
        for at in range(AT + 20_000, AT + 20_000 + LASTS_MS, 5_000):
            self.post("berta", 1, START + 1_000, at, fails=fails)

    def post(self, owner: str, count: int, at: int, execute_at: int | None = None, *, takes: int = 1, fails: int = 0) -> None:
        retry = RetryPolicy(base_ms=1_000, jitter=Jitter.NONE)
        spec = JobSpec("log", {"takes": takes, "fails": fails}, timeout_ms=900_000, retry=retry)

        def call() -> None:
            asked = [Submission(NewJob(owner, spec, execute_at), self.random.getrandbits(ids.RANDOM_BITS)) for _ in range(count)]
            submit_all(asked, self._ports(), direct=self._direct())

        self.hub.spawn(call, at)

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        self._started_at.setdefault(job.owner, []).append(now)
        if job.owner == "berta":
            self.waits.append(now - job.due_at)

    def run_until(self, end: int) -> None:
        self._schedule(self._tick, end)
        self.hub.run(end)

    def starts_of(self, owner: str) -> list[int]:
        """When each attempt of this owner's jobs started (ms)."""
        return self._started_at.get(owner, [])

    def claims_of(self, owner: str) -> list[int]:
        """How often each job of this owner was claimed."""
        return [job.fence for job in self.jobs.rows.values() if job.owner == owner]

    def delays(self) -> list[int]:
        """Run until all of Berta's jobs should have started; return how late each attempt did (ms)."""
        end = AT + 20_000 + LASTS_MS + 60_000
        self.run_until(end)
        missing = [end - AT] * (self.expected - len(self.waits))  # attempts that have not started
        return self.waits + missing


def long_jobs(seed: int = 1, apart_ms: int = 1_200, count: int = 2 * EXECUTORS) -> Beside:
    """Long jobs of Anton, each planned for an instant of its own."""
    world = Beside(seed)
    for number in range(count):
        world.post("anton", 1, START + 1_000, AT + number * apart_ms, takes=LONG_MS)
    return world


def jobs_for_now(seed: int = 1) -> Beside:
    """1,000 jobs of five seconds a second, through all processes of the API."""
    world = Beside(seed)
    for number in range(750):
        world.post("anton", 20, AT + number * 20, takes=5_000)
    return world


def retries(seed: int = 1) -> Beside:
    """300 jobs that fail after almost two seconds, and again: none of them is long."""
    world = Beside(seed, fails=1)
    world.post("anton", 300, START + 1_000, AT, takes=1_900, fails=2)
    return world


def long_retries(seed: int = 1) -> Beside:
    """200 jobs that fail after ten seconds, and again."""
    world = Beside(seed, fails=1)
    world.post("anton", 200, START + 1_000, AT, takes=10_000, fails=2)
    return world


@contextmanager
def no_bound_on_long_jobs() -> Iterator[None]:
    with patch.object(pins, "is_within", lambda *args: True):
        yield


@contextmanager
def a_bound_of_each_process() -> Iterator[None]:
    """The direct path as if each process admitted 100 jobs a second and knew of no other, with a message for each job."""
    with (
        patch.object(DirectPath, "_allowed", lambda path, owner, lane, jobs, now: list(jobs)),
        patch.object(packs, "direct", lambda *args: 1),
    ):
        yield


@contextmanager
def retries_past_the_door() -> Iterator[None]:
    with patch.object(BatchWrites, "place_retries", lambda writes, after, now: after):
        yield


@contextmanager
def retries_that_are_counted_late() -> Iterator[None]:
    with patch.object(pins, "was_long", lambda job: False):
        yield


@contextmanager
def long_jobs_that_count_twice() -> Iterator[None]:
    """A window from which the pinned executors are taken, and their jobs once more."""
    base = window._Gate.base
    with patch.object(window._Gate, "base", lambda gate, due_at, now, in_hand: base(gate, due_at, now, 0)):
        yield


Scene = Callable[[int], Beside]  # of a seed
SCENES: dict[str, tuple[Scene, Any]] = {
    "long jobs": (long_jobs, no_bound_on_long_jobs),
    "jobs for now": (jobs_for_now, a_bound_of_each_process),
    "retries": (retries, retries_past_the_door),
    "long retries": (long_retries, retries_that_are_counted_late),
    "long retries in a window": (long_retries, long_jobs_that_count_twice),
}


def late(made: Scene, seeds: Sequence[int]) -> int:
    """How late Berta's attempts start in these runs of a scene (ms), but for one a run: the runs are judged together, so none decides."""
    delays, worlds = [], [made(seed) for seed in seeds]
    for world in worlds:
        delays += world.delays()
        assert not world.report.violations
    return sorted(delays)[-1 - len(worlds)]
