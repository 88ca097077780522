"""Worlds about what dispatchers read: a crowd larger than a step, an index that lags, processes that end after they stored a job.

others_late, jobs_left     of `crowded_instant`: another user's job waits for the crowd, or the crowd does not end
late_by_index              a job of the overflow starts later than twice the lag of the index, and `SLACK_MS`
late_after_crash           ... more than `TICK_MS` after its time, though a tick could send its work
"""

from collections.abc import Collection

from lab.world.faults import Rates
from scheduler.model import slots
from scheduler.model.job import Job
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from tests.simulation import scenes
from tests.simulation.crowds import CrowdWorld
from tests.simulation.stepped import SteppedWorld
from tests.simulation.world import START

LAGS_MS = (0, 1_000, 3_000, 5_000, 8_000, 15_000, 40_000)
SLACK_MS, TICK_MS = 5_000, 65_000
PHASE_MS = 6 * slots.MINUTE  # from one lag to the next
LATE_MS = 2_500  # from the first jobs of a phase to the late one: its process finds the unit's lease taken
CROWD = 2_400


def crowded_instant(seed: int) -> CrowdWorld:
    """Three users have more jobs for one instant than the steps of the minute hold."""
    world = scenes.instant_world(CROWD, seed=seed)
    for broken in scenes.broken(scenes.instant_result(world)):
        world._violation(broken.replace(" ", "_"), "crowd")
    return world


class EndedProcess(DirectPath):
    """A process that ends once its jobs are stored."""

    def start(self, taken: Collection[str]) -> None:
        pass


class LateWorld(SteppedWorld):
    """Jobs for now go through the overflow, in one phase after the other; the index shows those of a phase late."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, Rates(lag_ms=300), rules=Rules(shards=4, direct_burst=5, direct_rate=1), concurrency=20)
        self.processes = [DirectPath(self.plain)]
        self._lag = 0
        self._number = 0
        self._late: dict[str, tuple[str, int]] = {}  # by job: what it violates if it starts after the instant
        shown = self.jobs._when

        def when(slot: str) -> int:
            if slots.is_overflow(slot) and self._lag:
                self.jobs._shown[slot] = max(self.jobs._shown.get(slot, 0), self.hub.time + self._lag)
                return self.jobs._shown[slot]
            return shown(slot)

        self.jobs._when = when  # type: ignore[method-assign]

    def plan_phases(self) -> int:
        """Return the end of the last phase."""
        at = START + 5 * slots.MINUTE
        for lag in LAGS_MS:
            self._plan_phase(at, lag)
            at += PHASE_MS
        self.hub.spawn(lambda: self._store(30, "late_after_crash", TICK_MS, is_lost=True), at)
        return at + PHASE_MS

    def _plan_phase(self, at: int, lag: int) -> None:
        self.hub.at(at - 1, lambda: setattr(self, "_lag", lag))
        self.hub.at(at + LATE_MS + 1, lambda: setattr(self, "_lag", 0))
        for after, count in ((0, 30), (LATE_MS, 1)):
            self.hub.spawn(lambda count=count: self._store(count, "late_by_index", 2 * lag + SLACK_MS), at + after)  # type: ignore[misc]

    def _store(self, count: int, kind: str, by_ms: int, *, is_lost: bool = False) -> None:
        requests = [NewJob("user", JobSpec("log", {"takes": 1, "fails": 0})) for _ in range(count)]
        asked = [Submission(each, self._number + number) for number, each in enumerate(requests)]
        self._number += count
        direct = EndedProcess(self.plain) if is_lost else self._direct()
        at = self.hub.time
        for answer in submit_all(asked, self._ports(), direct=direct):
            assert isinstance(answer, Accepted)
            self._late[answer.job.id] = kind, at + by_ms

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        kind, by = self._late.pop(job.id, ("", now))
        if now > by:
            self._violation(kind, f"{job.id} by {now - by} ms")


def late_index(seed: int) -> LateWorld:
    """The index shows jobs of the overflow late, and a process ends before it sends the overflow's work."""
    world = LateWorld(seed)
    end = world.plan_phases()
    world._schedule(world._tick, end)
    world.hub.run(end)
    for job_id, (kind, _) in world._late.items():
        world._violation(kind, job_id)
    return world
