"""Users who post jobs with ordering keys in a simulated world, and resume the keys that failures pause; and the oracles of order."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from lab.world.faults import Faults
from lab.world.hub import NEVER, Hub
from scheduler.admission import ordering
from scheduler.jobs import ordering_keys
from scheduler.model import ids
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, JobKey, OrderKey, QueueEntry
from scheduler.model.lifecycle import is_open
from scheduler.model.spec import JobSpec, OnFailure, Ordering
from scheduler.pipeline.submit import NewJob
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import Ports

OWNER = "queuer"
TAKES = (1, 1, 20, 500, 4_000, 20_000)
SETTLED_MS = 30_000  # a job stored this long before the start of another one was visible to that one's gate: some calls are slow


@dataclass
class Queuers:
    """Posts jobs of a few keys, and checks their promises."""

    hub: Hub
    faults: Faults
    random: Random
    ports: Callable[[], Ports]
    jobs: MemoryJobs
    submit: Callable[[Sequence[NewJob], Sequence[int]], None]  # jobs, and the randoms of their ids
    violation: Callable[[str, str], None]
    starts: int = 0
    waited: int = 0  # starts of jobs that waited for others
    paused: int = 0  # failures that paused a key
    _placed: dict[JobKey, int] = field(default_factory=dict)  # since when a job has its position in its ordering queue
    _entries: dict[OrderKey, dict[JobKey, QueueEntry]] = field(default_factory=lambda: defaultdict(dict))  # of jobs that are open or pause
    _at_work: dict[OrderKey, set[JobKey]] = field(default_factory=lambda: defaultdict(set))
    _died: dict[JobKey, int] = field(default_factory=dict)
    _resumed: dict[OrderKey, int] = field(default_factory=dict)

    # actions

    def plan_posts(self, count: int, start: int, end: int) -> None:
        """Post `count` jobs between `start` and `end`, one or several a call; check the keys regularly until long after."""
        keys = [
            Ordering(f"key-{number}", OnFailure.PAUSE if number % 2 == 0 else OnFailure.CONTINUE) for number in range(max(2, count // 25))
        ]
        while count > 0:
            together = min(self.random.choice((1, 2, 10)), count)
            rule, at = self.random.choice(keys), self.random.randint(start, end - 1)
            self.hub.spawn(lambda rule=rule, together=together: self._post(rule, together, end), at)  # type: ignore[misc]
            count -= together
        for rule in keys:
            for at in range(start, end + 4_800_000, 120_000):
                self.hub.spawn(lambda rule=rule: self._maybe_resume(OrderKey(OWNER, rule.key)), at)  # type: ignore[misc]

    def _post(self, rule: Ordering, together: int, end: int) -> None:
        asked, now = [], self.hub.time
        at = self.random.choice((None, None, now - 5_000, now + 3_000, now + 100_000, now + 400_000))
        for _ in range(together):
            fails = self.random.choice((0, 0, 0, 0, 1, 1, 5))
            payload = {"takes": self.random.choice(TAKES), "fails": fails}
            asked.append(NewJob(OWNER, JobSpec("log", payload, timeout_ms=60_000, ordering=rule), at and min(at, end)))
        self.submit(asked, sorted(self.random.getrandbits(ids.RANDOM_BITS) for _ in asked))

    def _maybe_resume(self, order: OrderKey) -> None:
        """In some cases, resume a paused key; after the faults, in all cases."""
        if self.faults.on and self.random.random() < 0.7:
            return
        self._resumed[order] = NEVER  # the call may also resume a key that a failure pauses during the call
        try:
            ordering_keys.resume(order, self.ports())
        except (Conflict, Unavailable):
            return
        finally:
            self._resumed[order] = self.hub.time

    # oracles

    def is_paused(self, job: Job) -> bool:
        """True if the job waits behind a failed job until a user resumes their key."""
        if job.spec.ordering is None or job.claim is not None:
            return False
        others, mine = self._entries[ordering.order_of(job)], ordering.entry_of(job).position
        pausing = [entry for key, entry in others.items() if (found := self.jobs.get(key)) is not None and ordering.pauses(found)]
        return any(entry.position < mine for entry in pausing)

    def started(self, job: Job) -> None:
        """Check a start: the only one of its key, in order, and not of a paused key."""
        if job.spec.ordering is None:
            return
        self.starts += 1
        self.waited += job.fence > 1 and not ordering.has_begun(job)
        order, mine = ordering.order_of(job), ordering.entry_of(job)
        for key, entry in self._entries[order].items():
            other = self.jobs.get(key)
            if other is None or key == job.key:
                continue
            if other.claim is not None and other.key in self._at_work[order]:
                self.violation("two_of_a_key", f"{job.id} beside {other.id}")
            if self._placed[key] < self.hub.time - SETTLED_MS and entry.position < mine.position:
                if is_open(other) and not ordering.has_begun(job):
                    self.violation("out_of_line", f"{job.id} before {other.id}")
                if ordering.pauses(other) and self._died[key] > self._resumed.get(order, 0) and not ordering.has_begun(job):
                    self.violation("started_in_paused_key", f"{job.id} behind {other.id}")
        self._at_work[order].add(job.key)

    def written(self, before: Job | None, after: Job) -> None:
        """Follow a write of the jobs table."""
        if after.spec.ordering is None:
            return
        order, entry = ordering.order_of(after), ordering.entry_of(after)
        entries = self._entries[order]
        if is_open(after) and entries.get(after.key) != entry:
            self._placed[after.key] = self.hub.time
        if is_open(after) or ordering.pauses(after):
            entries[after.key] = entry
        else:
            entries.pop(after.key, None)
        if after.claim is None:
            self._at_work[order].discard(after.key)
        if ordering.pauses(after):
            self.paused += 1
            self._died[after.key] = self.hub.time
