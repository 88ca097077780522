"""Users who post jobs that wait for others in a simulated world, and the oracles of that rule.

    started_before_predecessor   a job started although a job that it waits for had not ended, or not with the success that it needs
    successor_never_decided      a job did not end although all jobs that it waits for had
    skipped_though_met           a job was skipped although all jobs that it waits for ended as it needs

The stream of the jobs table is played here, too: it brings each end to project, at least once, and up to half a minute later.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from lab.world.faults import Faults
from lab.world.hub import Hub
from scheduler.model import ids, lifecycle
from scheduler.model.after import PREFIX, Predecessor, When
from scheduler.model.errors import Unavailable
from scheduler.model.job import Job, JobKey, Status
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkItem
from scheduler.pipeline.followers import of_ended
from scheduler.pipeline.predecessors import Named
from scheduler.pipeline.submit import NewJob
from scheduler.storage.memory.stores import MemoryJobs

OWNER = "follower"
TAKES = (1, 1, 20, 500, 4_000)
FAILS = (0, 0, 0, 0, 0, 1, 5)
AHEAD_MS = (None, None, None, -5_000, 30_000, 400_000)
STREAM_MS = 30_000  # for which Lambda gathers the changes of a stream
RECENT = 40  # jobs among which a new one chooses its predecessors
Shape = Sequence[tuple[int, ...]]  # of each job of a call, the places of its predecessors
CHAIN: Shape = ((), (0,), (1,), (2,), (3,))
DIAMOND: Shape = ((), (0,), (0,), (1, 2))
FAN_IN: Shape = (*((),) * 8, tuple(range(8)))
FAN_OUT: Shape = ((), *((0,),) * 30)  # more than an executor cares for
LATER_FIRST: Shape = ((1, 2), (2,), ())
SHAPES = (CHAIN, DIAMOND, FAN_IN, FAN_OUT, LATER_FIRST)


@dataclass
class Successors:
    """Posts jobs that wait for others, plays the stream, and checks the promises."""

    hub: Hub
    faults: Faults
    random: Random
    jobs: MemoryJobs
    send: Callable[[Sequence[WorkItem]], list[WorkItem]]
    submit: Callable[[Sequence[NewJob], Sequence[int]], None]  # jobs, and the randoms of their ids
    violation: Callable[[str, str], None]
    starts: int = 0
    skipped: int = 0
    _recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))
    _ended_at: dict[JobKey, int] = field(default_factory=dict)
    _ends: dict[JobKey, set[Status]] = field(default_factory=lambda: defaultdict(set))  # a redriven job may end in several ways
    _calls: int = 0

    # actions

    def plan_posts(self, count: int, start: int, end: int) -> None:
        """Post about `count` jobs between `start` and `end`."""
        while count > 0:
            shape = self.random.choice((*SHAPES, None, None, None))
            self.hub.spawn(lambda shape=shape: self._post(shape, end), self.random.randint(start, end - 1))  # type: ignore[misc]
            count -= 1 if shape is None else len(shape)

    def _post(self, shape: Shape | None, end: int) -> None:
        self._calls += 1
        if shape is None:
            known = [Named(self._when(), job=id) for id in self.random.sample(list(self._recent), min(len(self._recent), 3))]
            asked = [self._new_job(end, known)]
        else:
            keys = [f"after-{self._calls}-{place}" for place in range(len(shape))]
            asked = [
                self._new_job(end, [Named(self._when(), key=keys[other]) for other in others], keys[place])
                for place, others in enumerate(shape)
            ]
        self.submit(asked, sorted(self.random.getrandbits(ids.RANDOM_BITS) for _ in asked))

    def _when(self) -> When:
        return self.random.choice((When.SUCCEEDED, When.SUCCEEDED, When.ENDED))

    def _new_job(self, end: int, named: Sequence[Named], key: str | None = None) -> NewJob:
        payload = {"takes": self.random.choice(TAKES), "fails": self.random.choice(FAILS)}
        ahead = self.random.choice(AHEAD_MS)
        at = None if ahead is None else min(self.hub.time + ahead, end)
        expires_at = None if self.random.random() > 0.1 else max(at or 0, self.hub.time) + 600_000
        return NewJob(OWNER, JobSpec("log", payload, timeout_ms=60_000, key=key), at, expires_at, after=tuple(named))

    # oracles

    def started(self, job: Job) -> None:
        """Check the start of a job."""
        if not job.after:
            return
        self.starts += 1
        for each in job.after:
            ends = self._ends[JobKey(job.owner, each.id)]
            if not ends or (each.when is When.SUCCEEDED and Status.SUCCEEDED not in ends):
                self.violation("started_before_predecessor", f"{job.id} before {each.id}")

    def written(self, before: Job | None, after: Job) -> None:
        """Follow a write of the jobs table."""
        if before is None and after.owner == OWNER:
            self._recent.append(after.id)
        if not lifecycle.is_open(after):
            self._ends[after.key].add(lifecycle.state(after))
            self._ended_at[after.key] = self.hub.time
            if after.after and after.skipped_at is not None and (after.reason or "").startswith(PREFIX):
                self.skipped += 1
                if all(self._may_pass(after, each) for each in after.after):
                    self.violation("skipped_though_met", f"{after.id}: {after.reason}")
        if (step := of_ended(before, after)) is not None:
            self.hub.at(self.hub.time + self.random.randint(1, STREAM_MS), lambda: self._project(step))

    def free_since(self, job: Job) -> int:
        """Return when the last of its predecessors ended (ms)."""
        return max((self._ended_at.get(JobKey(job.owner, each.id), 0) for each in job.after), default=0)

    def judge(self) -> None:
        """Check the jobs that have not ended."""
        for job in [job for job in self.jobs.rows.values() if job.after and lifecycle.is_open(job)]:
            if all(self._ends[JobKey(job.owner, each.id)] for each in job.after):
                self.violation("successor_never_decided", job.id)

    def _may_pass(self, job: Job, each: Predecessor) -> bool:
        return each.when is When.ENDED or self._ends[JobKey(job.owner, each.id)] == {Status.SUCCEEDED}

    def _project(self, step: WorkItem) -> None:
        """Lambda delivers a batch again until it is projected."""
        try:
            refused: Any = self.send([step])
        except Unavailable:
            refused = [step]
        if refused:
            self.hub.at(self.hub.time + 1_000, lambda: self._project(step))
