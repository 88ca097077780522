"""The jobs of a batch that are at work: started, looked after, back, or ended by force."""

from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.model.job import Failure, FailureKind, Finished, Job, JobKey, Result
from scheduler.storage.ports import Clock, Jobs, Pool

LOOK_MS = 2_000  # how often a batch that works so long looks whether a cancel was asked of its jobs
GRACE_MS = 30_000  # how long work that was asked to stop may take to


@dataclass(slots=True)
class _Started:
    job: Job  # as last seen: one of which a cancel is asked says so, and settles accordingly
    at: int
    stop_by: int | None = None


@dataclass(slots=True)
class Work:
    """What runs in the pool. Most batches are done before the first look, and read nothing."""

    pool: Pool
    jobs: Jobs
    clock: Clock
    _started: dict[JobKey, _Started] = field(default_factory=dict)
    _look_at: int = 0

    def __bool__(self) -> bool:
        return bool(self._started)

    def start(self, job: Job) -> None:
        now = self.clock.now()
        if not self._started:
            self._look_at = now + LOOK_MS
        self._started[job.key] = _Started(job, max(now, job.due_at))  # it may be sent ahead
        self.pool.start(job)

    def wait(self, until: int) -> list[Finished]:
        """What came back by `until`; a result that comes after its job was ended by force does not count."""
        back = [(done, self._started.pop(done.job.key, None)) for done in self.pool.wait(until)]
        return [done if started.job is done.job else done._replace(job=started.job) for done, started in back if started is not None]

    def next_look(self) -> int | None:
        """When `look` has something to do; None: never."""
        if not self._started:
            return None
        stops = [each.stop_by for each in self._started.values() if each.stop_by]
        return min(self._look_at, *stops) if stops else self._look_at

    def look(self) -> list[Finished]:
        """When it is time, ask what was flagged to stop. Returns what did not within its grace: over, whatever it still does."""
        now, at = self.clock.now(), self.next_look()
        if at is None or now < at:
            return []
        if now >= self._look_at:
            self._look_at = now + LOOK_MS
            self._ask(now)
        over = [each for each in self._started.values() if each.stop_by is not None and each.stop_by <= now]
        if not over:
            return []
        for each in over:
            del self._started[each.job.key]
            self.pool.kill(each.job)
        failure = Failure(FailureKind.CANCELLED, f"it did not stop within {GRACE_MS // 1000} s")
        return [Finished(each.job, each.at, now, Result(failure=failure)) for each in over]

    def stop(self) -> None:
        self.pool.stop()
        self._started.clear()

    def _ask(self, now: int) -> None:
        working = {key: each for key, each in self._started.items() if each.stop_by is None}
        try:
            stored = self.jobs.get_many(list(working)) if working else {}
        except Unavailable:
            return  # the next look is soon
        for key, job in stored.items():
            ours = working[key]
            if job.cancel_requested_at is not None and job.claim == ours.job.claim and job.fence == ours.job.fence:
                ours.job, ours.stop_by = job, now + GRACE_MS
                self.pool.cancel(job)
