"""Owners who replay jobs that have ended in a simulated world, and the oracles of replays.

replayed_twice   more jobs replay an original than its owner requested
replay_kept      a replay has a key, an ordering key, an expiry or a task, or not the nominal time of its original
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from lab.world.faults import Faults
from lab.world.hub import Hub
from scheduler.jobs.history import find
from scheduler.jobs.replay import check_ended, replay
from scheduler.model import ids, lifecycle
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, JobKey
from scheduler.pipeline.submit import NewJob
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import Ports

WAITS_MS = (0, 100, 1_000, 60_000)  # after the end of a job


@dataclass
class Replayers:
    """Replays some jobs once or more. `ports()` returns the ports as one invocation sees them; `submit` posts as clients do."""

    hub: Hub
    faults: Faults
    random: Random
    ports: Callable[[], Ports]
    jobs: MemoryJobs
    submit: Callable[[Sequence[NewJob], Sequence[int]], None]
    violation: Callable[[str, str], None]
    requested: Counter[JobKey] = field(default_factory=Counter)  # the replays of each job
    _made: Counter[JobKey] = field(default_factory=Counter)

    def written(self, before: Job | None, after: Job) -> None:
        """Follow a write of the jobs table: check a new replay; in some cases a user replays a job that has ended."""
        if before is None and after.replay_of is not None:
            self._check(after, JobKey(after.owner, after.replay_of))
        if before is None or not lifecycle.is_open(before) or lifecycle.is_open(after):
            return
        while self.faults.strike("replays", self.faults.rates.replay):
            self.hub.spawn(lambda: self._replay(after.key), self.hub.time + self.random.choice(WAITS_MS))

    def _replay(self, key: JobKey) -> None:
        ports = self.ports()
        try:
            original = find(key, jobs=ports.jobs)
            check_ended(original, ports.clock.now())
        except (Conflict, Unavailable):
            return
        payload = {name: value for name, value in original.spec.payload.items() if name != "key"}  # that of a client's request
        new = replay(original, payload=payload, delay_ms=self.random.choice((None, 0, 20_000, 400_000)))
        self.requested[key] += 1
        self.submit([new], [self.random.getrandbits(ids.RANDOM_BITS)])

    def _check(self, new: Job, key: JobKey) -> None:
        self._made[key] += 1
        if self._made[key] > self.requested[key]:
            self.violation("replayed_twice", new.id)
        kept = (new.own_key, new.spec.ordering, new.start_by, new.origin)
        if any(each is not None for each in kept) or new.nominal_at != lifecycle.nominal_at(self.jobs.rows[key]):
            self.violation("replay_kept", new.id)
