"""Users who change and retry single jobs, and operators who pause lanes, in a simulated world; and the oracle of pauses."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from lab.world.faults import Faults
from lab.world.hub import Hub
from scheduler.admission.lane_state import TRUSTED_MS, pause, resume
from scheduler.dead_letters.model import is_dead
from scheduler.jobs.change import reschedule
from scheduler.jobs.retry_job import retry_job
from scheduler.model import settlement, slots
from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Lane
from scheduler.storage.ports import Ports


@dataclass
class Operators:
    """`ports()` returns the ports as one invocation sees them. Pauses are set on the `plain` ones, without faults."""

    hub: Hub
    faults: Faults
    random: Random
    plain: Ports
    ports: Callable[[], Ports]
    violation: Callable[[str, str], None]
    _paused: dict[Lane, int] = field(default_factory=dict)  # since when
    _requests: Iterator[int] = field(default_factory=itertools.count)

    def plan_pauses(self, start: int, minutes: int) -> None:
        """In some runs, pause some lanes once, for seconds or for minutes."""
        if self.faults.strike("lanes paused", self.faults.rates.pause):
            self.hub.spawn(self._pause, start + self.random.randint(0, minutes) * slots.MINUTE)

    def _pause(self) -> None:
        lanes = self.random.choice(([Lane.ONE_TIME], [Lane.RECURRING], [Lane.RETRY], list(Lane)))
        pause(lanes, "holidays", self.plain)
        self._paused |= dict.fromkeys(lanes, self.hub.time)
        self.hub.sleep_until(self.hub.time + self.random.choice((5_000, 90_000, 600_000)))
        for lane in lanes:
            self._paused.pop(lane)
        resume(lanes, None, self.plain)

    def maybe_change(self, job: Job) -> None:
        """In some cases, change the job or try to: its time, its content, or both."""
        if self.faults.strike("changed", self.faults.rates.change):
            wait = self.random.choice((0, 1_000, 30_000, 120_000))
            self.hub.spawn(lambda: self._change(job.key), self.hub.time + wait)

    def _change(self, key: JobKey) -> None:
        wanted: dict[str, Any] = {"spec": {"tags": ("changed",)}}
        if self.random.random() < 0.8:
            wanted["scheduled_at"] = self.hub.time + self.random.choice((0, 2_000, 60_000, 300_000, 600_000))
        try:
            reschedule(key, wanted, self.ports())
        except (Conflict, Invalid, NotFound, Unavailable):
            return

    def written(self, before: Job | None, after: Job) -> None:
        """Follow a write of the jobs table: in some cases one or more users retry a job that has failed.

        Also check that bury takes back no job that runs under another message than a dead one.
        """
        if before is not None and before.claim is not None and after.attempts is not before.attempts:
            lanes: Any = self.plain.lanes
            if after.attempts and after.attempts[-1].failure == settlement.BURIED:
                if not any(before.claim.message_id in queue for queue in lanes.dead.values()):
                    self.violation("buried_alive", after.id)
        if not is_dead(after) or (before is not None and is_dead(before)):
            return
        while self.faults.strike("retried", self.faults.rates.retry):
            wait = self.random.choice((0, 100, 1_000, 1_000, 60_000, 300_000))
            self.hub.spawn(lambda: self._retry(after.key), self.hub.time + wait)

    def _retry(self, key: JobKey) -> None:
        try:
            retry_job(key, self.ports(), request=str(next(self._requests)))
        except (Conflict, NotFound, Unavailable):
            return

    def started(self, job: Job) -> None:
        """Check a start: its executor may trust an earlier read of the lane's state for `TRUSTED_MS`, no longer."""
        if self.hub.time > self._paused.get(job.lane, self.hub.time) + TRUSTED_MS:
            self.violation("started_in_paused_lane", job.id)
