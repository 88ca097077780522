"""Containers that jobs wait for: AWS starts one for each token, ends it, and announces that late, twice or never; and the oracles of ends.

`python -m tests.simulation.containers --seeds 200` runs worlds in which most jobs wait for containers.
"""

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from lab.world.faults import CALM, ROUGH, Faults
from lab.world.hub import Hub
from lab.world.pools import SimPool
from scheduler.callbacks.conclude import conclude
from scheduler.model import callback_lease, lifecycle
from scheduler.model.errors import Unavailable
from scheduler.model.job import Awaited, Failure, FailureKind, Job, JobKey, Outcome, Result, TaskHead
from scheduler.model.spec import RetryPolicy
from scheduler.storage.ports import Ports
from scheduler.targets import awaited_ends
from scheduler.targets.types import ecs

SHARE = 0.7  # of the jobs of a world with containers
TAKES = (1_000, 5_000, 45_000, 200_000, 900_000, 3_000_000)  # ms from the start of a container to its end
TIMEOUTS = (120_000, 600_000, 7_200_000)
STOPS_MS = 30_000  # a container stops this long after SIGTERM at the latest
CLUSTER = "arn:aws:ecs:eu-west-1:123456789012:cluster/jobs"


@dataclass
class Container:
    """A container that AWS runs."""

    key: JobKey
    fence: int
    arn: str
    started_at: int
    ends_at: int
    code: int
    stop: str | None = None  # the reason with which it was stopped; AWS cut it short

    def is_over(self, now: int) -> bool:
        return now >= self.ends_at

    @property
    def outcome(self) -> Outcome:
        """The outcome of an attempt that ends with it: the scheduler's stop counts, and not what it exits with."""
        if self.stop is not None:
            return Outcome.KILLED if self.stop.startswith("Punctual timeout") else Outcome.CANCELLED
        return Outcome.SUCCEEDED if self.code == 0 else Outcome.FAILED

    def described(self, now: int) -> dict[str, Any]:
        """Its description, which is also the detail of its event."""
        over, stopped = self.is_over(now), self.stop is not None
        return {
            "taskArn": self.arn,
            "startedBy": f"punctual/{self.key.owner}/{self.key.id}/{self.fence}",
            "lastStatus": "STOPPED" if over else "RUNNING",
            "stopCode": ("UserInitiated" if stopped else "EssentialContainerExited") if over else None,
            "stoppedReason": self.stop if over else None,
            "containers": [{"name": "main", **({"exitCode": 143 if stopped else self.code} if over else {})}],
        }


@dataclass
class Containers:
    """Amazon ECS as the executors of a world see it, and the oracles of its jobs."""

    hub: Hub
    faults: Faults
    random: Random
    ports: Callable[[], Ports]  # as one invocation sees them
    violation: Callable[[str, str], None]
    counts: Counter[str] = field(default_factory=Counter)
    share: float = SHARE
    takes: Sequence[int] = TAKES
    timeouts: Sequence[int] = TIMEOUTS
    fails: Sequence[int] = (0, 0, 0, 1, 5)
    faithful: bool = False  # every event comes once and soon, and every call is answered
    late_ms: list[int] = field(default_factory=list)  # from the ends of containers to those of their jobs
    by_token: dict[tuple[JobKey, int], Container] = field(default_factory=dict)
    by_arn: dict[str, Container] = field(default_factory=dict)

    @property
    def is_faulty(self) -> bool:
        return self.faults.on and not self.faithful

    def spec_fields(self) -> dict[str, Any] | None:
        """The fields of a new job's spec that make it wait for a container; None: it is another job."""
        if self.random.random() >= self.share:
            return None
        payload = {"takes": 100, "fails": self.random.choice(self.fails), "runs": self.random.choice(self.takes)}
        policy = RetryPolicy(base_ms=1_000, on_timeout=self.random.random() < 0.5)
        return {
            "type": "ecs",
            "payload": payload,
            "timeout_ms": self.random.choice(self.timeouts),
            "retry": policy,
            "target": None,
            "callback": None,
        }

    def begun(self, job: Job) -> Result:
        """Answer RunTask. The same token gets the same container."""
        assert job.awaited is not None
        if self.is_faulty and self.random.random() < 0.1:
            return Result(failure=Failure(FailureKind.THROTTLED, "ThrottlingException"))
        token, now = (job.key, job.awaited.fence), self.hub.time
        container = self.by_token.get(token)
        if container is None:
            for other in self.by_token.values():
                if other.key == job.key and not other.is_over(now):
                    self.violation("started_twice", job.id)
            container = self._start(token, job)
        else:
            self.counts["start repeated"] += 1
        if self.is_faulty and self.random.random() < 0.05:
            self.counts["answer to a start lost"] += 1
            return Result(failure=Failure(FailureKind.THROTTLED, "no answer"), unclear=True)
        return awaited_ends.goes_on(replace(job.awaited, id=container.arn, start_by=now + 600_000))

    def _start(self, token: tuple[JobKey, int], job: Job) -> Container:
        number, now = len(self.by_arn), self.hub.time
        code = 3 if job.charged < int(job.spec.payload["fails"]) else 0
        arn = f"arn:aws:ecs:eu-west-1:123456789012:task/jobs/{number}"
        container = Container(token[0], token[1], arn, now, now + int(job.spec.payload["runs"]), code)
        self.by_token[token] = self.by_arn[arn] = container
        self.counts["container"] += 1
        self._announce(container)
        return container

    def _announce(self, container: Container) -> None:
        """Send the event of its end, perhaps late, twice or never."""
        times = self.random.choice((0, 0, 1, 1, 1, 2)) if self.is_faulty else 1
        for _ in range(times):
            late = self.random.choice((0, 500, 20_000)) if self.is_faulty else 200
            self.hub.spawn(lambda late=late, at=container.ends_at: self._event(container, at, late), container.ends_at)  # type: ignore[misc]

    def _event(self, container: Container, at: int, late: int) -> None:
        if container.ends_at != at:
            return  # it was stopped since, and has another event
        self.hub.sleep_until(self.hub.time + late)
        event = {"source": "aws.ecs", "detail-type": "ECS Task State Change", "detail": container.described(self.hub.time)}
        try:
            ended = conclude(event, self.ports())
        except Unavailable:
            self.counts["event refused"] += 1
        else:
            self.counts["event ended a job" if ended else "event changed nothing"] += 1

    def check(self, job: Job, now: int) -> Result:
        """Answer DescribeTasks, and StopTask if the job must stop."""
        awaited = job.awaited
        assert awaited is not None and awaited.id is not None
        container = self.by_arn[awaited.id]
        self.counts["check"] += 1
        if self.is_faulty and self.random.random() < 0.1:
            return awaited_ends.goes_on(awaited)  # throttled
        if self.hub.time - container.started_at < 60_000 and self.random.random() < 0.2:
            return awaited_ends.unknown(job, awaited, "the task", now, lifecycle.started_at(job))
        if (ended := ecs.judged(container.described(self.hub.time), awaited)) is not None:
            return ended
        why = callback_lease.must_stop(job, now)
        if why is not None and container.stop is None:
            container.stop = awaited_ends.stop_reason(why)
            container.ends_at = min(container.ends_at, self.hub.time + self.random.randint(1_000, STOPS_MS))
            self.counts["container stopped"] += 1
            self._announce(container)
        stopping = awaited.stopping if why is None else f"the task is being stopped: {why.message}"
        return awaited_ends.goes_on(replace(awaited, start_by=None, stopping=stopping))

    def written(self, before: Job, after: Job) -> None:
        """Check a write of the jobs table: no attempt ends before its container, and none otherwise than that."""
        if after.spec.type != "ecs" or before.attempts is after.attempts or before.claim is None:
            return
        last, container = after.attempts[-1], self._of(before)
        if container is None:
            return
        if last.outcome is Outcome.CRASHED:
            if lifecycle.waits(before):  # no executor worked on it, and AWS knew it all the time
                self.violation("ended_wrongly", after.id)
            return
        if before.awaited is not None and before.awaited.id is None and last.outcome is not Outcome.SUCCEEDED:
            return  # the answer to its start was lost, or it was refused: the next attempt repeats it
        self.late_ms.append(self.hub.time - container.ends_at)
        expected = {container.outcome}
        if after.cancel_requested_at is not None and container.outcome is not Outcome.SUCCEEDED:
            expected.add(Outcome.CANCELLED)
        if not container.is_over(self.hub.time) or last.outcome not in expected:
            self.violation("ended_wrongly", after.id)

    def _of(self, job: Job) -> Container | None:
        return None if job.awaited is None else self.by_token.get((job.key, job.awaited.fence))

    def judge(self, jobs: Callable[[JobKey], Job | None]) -> None:
        """After the last fault: no job still waits, and no container runs on whose job has ended."""
        for container in self.by_arn.values():
            job = jobs(container.key)
            if job is not None and lifecycle.is_open(job):
                self.violation("never_ended", job.id)


class AwaitingPool(SimPool):
    """A pool whose `ecs` jobs start containers, and check them."""

    containers: Containers

    def intent(self, job: Job, task: TaskHead | None) -> Awaited | None:
        return Awaited(job.fence, json.dumps({"cluster": CLUSTER})) if job.spec.type == "ecs" else None

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        if job.spec.type != "ecs":
            return super().start(job, not_after, task)
        now, took = self._clock.now(), self.containers.random.choice((20, 80, 1_500))
        if lifecycle.waits(job):
            self._running.append((self._hub.time + took, job, now, self.containers.check(job, now)))
            return
        wait = self._ahead(job, now)
        self._running.append((self._hub.time + wait + took, job, now + wait, Result()))
        if wait:
            self._hub.at(self._hub.time + wait, partial(self._begin, job))
        else:
            self._call(job)

    def _begin(self, job: Job) -> None:
        if job.spec.type != "ecs":
            super()._begin(job)
        elif any(each[1] is job for each in self._running):
            self._call(job)

    def _call(self, job: Job) -> None:
        """Call RunTask: from now on its effect is there, whatever happens to the executor."""
        if job.awaited is not None and (job.key, job.awaited.fence) not in self.containers.by_token:
            self._started(job, self._clock.now())  # a repeated start changes nothing, even if an event has ended its job meanwhile
        result = self.containers.begun(job)
        self._running = [(end, each, at, result if each is job else other) for end, each, at, other in self._running]

    def cancel(self, job: Job) -> None:
        if job.spec.type != "ecs":
            super().cancel(job)


def main(arguments: list[str]) -> int:
    from tests.simulation.world import World

    parser = argparse.ArgumentParser(prog="python -m tests.simulation.containers", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many worlds, from seed 1 (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=400, help="jobs of a world (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    counts, violations = Counter[str](), Counter[str]()
    for seed in range(1, chosen.seeds + 1):
        report = World(seed, CALM if seed % 5 == 0 else ROUGH, awaited=True).run(chosen.jobs, 15, wind_down=250)
        counts += report.faults
        violations += report.violations
        if report.violations:
            print(f"seed {seed}: {dict(report.violations)} {report.examples[:3]}", flush=True)
    for name in ("container", "start repeated", "answer to a start lost", "check", "container stopped", "event ended a job"):
        print(f"{name:25} {counts[name]:>9,}")
    print(json.dumps({"seeds": chosen.seeds, "violations": dict(violations)}))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
