"""The jobs of a batch that are running: the executor starts them, checks them for cancels, collects results, and kills stuck ones."""

from dataclasses import dataclass, field

from scheduler.model.errors import Unavailable
from scheduler.model.job import Failure, FailureKind, Finished, Job, JobKey, Result, TaskHead
from scheduler.storage.ports import Pool, Ports

CHECK_MS = 2_000  # how often running jobs are checked for a requested cancel
GRACE_MS = 30_000  # how long a job may continue after its cancel


@dataclass(slots=True)
class _Started:
    job: Job  # as last read: if a cancel is requested, the record shows that, and the job is settled accordingly
    at: int
    stop_by: int | None = None


@dataclass(slots=True)
class RunningJobs:
    """The jobs that run in the pool. Most batches are done before the first check, and read nothing."""

    pool: Pool
    ports: Ports
    _started: dict[JobKey, _Started] = field(default_factory=dict)
    _check_at: int = 0

    def __bool__(self) -> bool:
        return bool(self._started)

    def has_room(self, job: Job) -> bool:
        """See `Pool.has_room`."""
        return self.pool.has_room(job)

    def start(self, job: Job, not_after: int | None, task: TaskHead | None) -> None:
        """Start the job's work, at `not_after` (ms) at the latest: see `Pool.start`."""
        now = self.ports.clock.now()
        if not self._started:
            self._check_at = now + CHECK_MS
        self._started[job.key] = _Started(job, max(now, job.due_at))  # the pool may get it ahead of its instant
        self.pool.start(job, not_after, task)

    def wait(self, until: int) -> list[Finished]:
        """Return the jobs that finished by `until` (ms); a result after the kill of its job is ignored."""
        if not (ended := self.pool.wait(until)):
            return []
        back = [(done, self._started.pop(done.job.key, None)) for done in ended]
        return [done if started.job is done.job else done._replace(job=started.job) for done, started in back if started is not None]

    def next_check(self) -> int | None:
        """Return when `check` has something to do (ms), or None."""
        if not self._started:
            return None
        stops = [each.stop_by for each in self._started.values() if each.stop_by]
        return min(self._check_at, *stops) if stops else self._check_at

    def check(self) -> list[Finished]:
        """When it is time, cancel the jobs whose cancel was requested. Returns the ones killed, since they did not stop within `GRACE_MS`.

        A killed job is finished, even if its work still runs.
        """
        at = self.next_check()
        if at is None or (now := self.ports.clock.now()) < at:
            return []
        if now >= self._check_at:
            self._check_at = now + CHECK_MS
            self._ask(now)
        over = [each for each in self._started.values() if each.stop_by is not None and each.stop_by <= now]
        if not over:
            return []
        for each in over:
            del self._started[each.job.key]
            self.pool.kill(each.job)
        failure = Failure(FailureKind.CANCELLED, f"it did not stop within {GRACE_MS // 1000} s")
        return [Finished(each.job, each.at, now, Result(failure=failure)) for each in over]

    def owners(self, since: int | None = None) -> set[str]:
        """Return the owners of the running jobs; with `since` (ms), of those that have run since then or before."""
        return {each.job.owner for each in self._started.values() if since is None or each.at <= since}

    def stop(self) -> list[Job]:
        """End all work, and return the jobs as last read. No result of them is returned later."""
        self.pool.stop()
        jobs = [each.job for each in self._started.values()]
        self._started.clear()
        return jobs

    def _ask(self, now: int) -> None:
        working = {key: each for key, each in self._started.items() if each.stop_by is None}
        try:
            stored = self.ports.jobs.get_many(list(working)) if working else {}
        except Unavailable:
            return  # the next check is soon
        for key, job in stored.items():
            ours = working[key]
            if job.cancel_requested_at is not None and job.claim == ours.job.claim and job.fence == ours.job.fence:
                ours.job = job
                if job.awaited is None:  # else it starts work in AWS, or checks it: the next check stops that work
                    ours.stop_by = now + GRACE_MS
                    self.pool.cancel(job)
