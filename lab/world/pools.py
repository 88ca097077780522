"""The pools of executors: one whose jobs end as a test says, and one on the hub whose jobs end as their payloads say."""

from collections.abc import Callable
from functools import partial
from random import Random

from lab.world.clock import FixedClock, SimClock
from lab.world.hub import Hub
from scheduler.model.job import Awaited, Failure, FailureKind, Finished, Job, JobKey, Result, TaskHead

AT_ONCE = 40  # jobs that an executor can run in parallel


class ScriptedPool:
    """The port `Pool`: every job takes `takes` ms and ends as `result` says. `starts` has the started jobs and their starts.

    A cancelled job ends `stops_after` ms later as a failure; None: it ignores the request.
    """

    def __init__(self, clock: FixedClock, *, takes: int = 10, result: Result | None = None, stops_after: int | None = 50) -> None:
        self.clock, self.takes, self.result, self.stops_after = clock, takes, result or Result("done"), stops_after
        self.starts: list[tuple[Job, int]] = []
        self.cancels: list[tuple[JobKey, int]] = []
        self.kills: list[tuple[JobKey, int]] = []
        self.stopped = False
        self._running: list[Finished] = []

    def has_room(self, job: Job) -> bool:
        return True

    def intent(self, job: Job, task: TaskHead | None) -> Awaited | None:
        return Awaited(job.fence) if job.spec.type == "ecs" else None

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        now = self.clock.now()
        self.starts.append((job, now))
        self._running.append(Finished(job, now, now + self.takes, self.result))

    def wait(self, until: int) -> list[Finished]:
        ends = min((item.ended_at for item in self._running), default=until)
        self.clock.sleep_until(min(ends, until))
        now = self.clock.now()
        done = [item for item in self._running if item.ended_at <= now]
        self._running = [item for item in self._running if item.ended_at > now]
        return done

    def cancel(self, job: Job) -> None:
        now = self.clock.now()
        self.cancels.append((job.key, now))
        if self.stops_after is not None:
            stopped = Result(failure=Failure(FailureKind.TIMEOUT, "stopped"))
            ends = now + self.stops_after
            self._running = [
                item._replace(ended_at=ends, result=stopped) if item.job.key == job.key and item.ended_at > ends else item
                for item in self._running
            ]

    def kill(self, job: Job) -> None:
        self.kills.append((job.key, self.clock.now()))
        self._running = [item for item in self._running if item.job.key != job.key]

    def stop(self) -> None:
        self.stopped = True
        self._running.clear()


class SimPool:
    """The pool of an executor: each job takes the time, and has the outcome, that its payload specifies. It begins at its instant, if its
    executor still lives then."""

    def __init__(
        self,
        hub: Hub,
        clock: SimClock,
        random: Random,
        started: Callable[[Job, int], None],
        *,
        at_once: int = AT_ONCE,
        overfull: Callable[[Job], None] = lambda job: None,
        stopped: Callable[[Job, int], None] = lambda job, ends: None,
    ) -> None:
        self._overfull, self._stopped = overfull, stopped
        self._hub, self._clock, self._random, self._started, self._at_once = hub, clock, random, started, at_once
        self._running: list[tuple[int, Job, int, Result]] = []  # end, job, start by the executor's clock, result

    def has_room(self, job: Job) -> bool:
        return len(self._running) < self._at_once

    def intent(self, job: Job, task: TaskHead | None) -> Awaited | None:
        return None

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        now = self._clock.now()
        if not self.has_room(job):
            self._overfull(job)
        took, wait = min(int(job.spec.payload["takes"]), job.spec.timeout_ms), self._ahead(job, now)
        self._running.append((self._hub.time + wait + took, job, now + wait, outcome(job, took)))
        if wait:
            self._hub.at(self._hub.time + wait, partial(self._begin, job))
        else:
            self._started(job, now)

    def _ahead(self, job: Job, now: int) -> int:
        """Milliseconds until the job's instant."""
        return max(job.due_at - now, 0)

    def _begin(self, job: Job) -> None:
        if any(each[1] is job for each in self._running):
            self._started(job, self._clock.now())

    def wait(self, until: int) -> list[Finished]:
        hub = self._hub
        wake = max(until - (self._clock.now() - hub.time), hub.time)
        if not self._running:
            hub.sleep_until(wake)
            return []
        ends = min([each[0] for each in self._running])
        hub.sleep_until(min(max(ends, hub.time), wake))
        now = hub.time
        if ends > now:
            return []
        done = [each for each in self._running if each[0] <= now]
        self._running = [each for each in self._running if each[0] > now]
        return [Finished(job, started, self._clock.now(), result) for _, job, started, result in done]

    def cancel(self, job: Job) -> None:
        """End the work within a second, as a cooperative target does."""
        ends, stopped = self._hub.time + self._random.randint(10, 1_000), Result(failure=Failure(FailureKind.TIMEOUT, "stopped"))
        self._running = [
            (ends, item, started, stopped) if item.key == job.key and end > ends else (end, item, started, result)
            for end, item, started, result in self._running
        ]
        self._stopped(job, ends)

    def kill(self, job: Job) -> None:
        self._running = [each for each in self._running if each[1].key != job.key]

    def stop(self) -> None:
        self._running.clear()


def outcome(job: Job, took: int) -> Result:
    """Return the result of the job's target: it fails as many times as its payload specifies."""
    if took >= job.spec.timeout_ms:
        return Result(failure=Failure(FailureKind.TIMEOUT, "its time-out passed"))
    if job.charged < int(job.spec.payload["fails"]):
        return Result(failure=Failure(FailureKind.RETRYABLE, "simulated"))
    return Result(output="done")
