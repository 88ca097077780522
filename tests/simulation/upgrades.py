"""A deployment of new code under load: every process is a new one, and none of its jobs may be late.

Each function has its deployment in its rules, as `infra/function.py` renders it. A new process of an executor or a dispatcher has a cold
start. Dispatch changes first, and the executors seconds later. Executors that run at that moment end their batches.

    announced   a stream of jobs, through a deployment that `make deploy` announces
    dense       the same, in minutes whose jobs leave along time
    quiet       no job for some time around a deployment that nobody announces: the first ones after it meet cold executors

    late        a job started more than `LATE_MS` after its time
"""

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

from lab.world.limits import COLD_MS
from lambdas._pool import ahead
from scheduler.model import slots
from scheduler.model.job import Job, Lane
from scheduler.model.rules import Rules
from scheduler.model.work import WorkDelivery
from scheduler.pipeline import latency
from scheduler.pipeline.process import Process
from tests.simulation.deployments import DeployedWorld
from tests.simulation.stepped import KINDS
from tests.simulation.world import START, Container

LATE_MS = 10
ANNOUNCED_MS = 2 * slots.MINUTE  # a deployment publishes versions for at least this long before it moves an alias
APART_MS = 5_000  # from the change of dispatch to that of the executors
BEFORE, AFTER = 8, 6  # minutes of jobs around the deployment
BEFORE_RULES = Rules(shards=2, deployment="before")


class UpgradedWorld(DeployedWorld):
    """A world in which each new process of an executor, and each dispatcher, has a cold start."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, rules=BEFORE_RULES)
        self.latest = 0  # the longest delay (ms)
        self._idle: Counter[str] = Counter()  # warm dispatchers, by deployment

    def _container(self, lane: Lane) -> Container:
        now = self.settings["execute"].deployment
        self._warm[lane] = [each for each in self._warm[lane] if each.ports.rules.deployment == now]
        if self._warm[lane]:
            return self._warm[lane].pop()
        self.hub.sleep_until(self.hub.time + COLD_MS)
        ports = self._executors.but(clock=self._clock())
        return Container(ports, Process.of(lane, str(self._requests % latency.REPORTERS), ports, lambda _, jobs: ahead(jobs)))

    def _step(self, delivery: WorkDelivery) -> None:
        now = self.settings["dispatch"].deployment
        if self._idle[now]:
            self._idle[now] -= 1
        else:
            self.hub.sleep_until(self.hub.time + COLD_MS)
        super()._step(delivery)
        self._idle[now] += 1

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        delay = now - max(job.scheduled_at, job.created_at)
        self.latest = max(self.latest, delay)
        if delay > LATE_MS:
            self._violation("late", job.id)

    def release(self, at: int, *, announced: bool) -> None:
        """Deploy a new version at the instant `at`."""
        after = replace(BEFORE_RULES, deployment="after")
        others = [kind for kind in KINDS if kind != "execute"]
        if announced:
            self.hub.at(at - ANNOUNCED_MS, lambda: latency.expect_cold(self.ledger, BEFORE_RULES, at + 10 * slots.MINUTE))
        self.hub.at(at, lambda: self.deploy(dict.fromkeys(others, after)))
        self.hub.at(at + APART_MS, lambda: self.deploy({"execute": after}))


def upgraded(seed: int, *, announced: bool, per_minute: int = 60, quiet_ms: tuple[int, int] = (0, 0)) -> UpgradedWorld:
    """Run a stream of jobs, each created well before its time, over a deployment at some instant of a minute.

    `quiet_ms`: from when to when, seen from the deployment, no job is due.
    """
    world = UpgradedWorld(seed)
    first = START + slots.HORIZON + 3 * slots.MINUTE
    at = first + BEFORE * slots.MINUTE + world.random.randrange(slots.MINUTE)
    for number in range((BEFORE + AFTER) * per_minute):
        due = first + number * slots.MINUTE // per_minute + world.random.randrange(slots.MINUTE // per_minute)
        if not quiet_ms[0] <= due - at < quiet_ms[1]:
            world.post_one(due - slots.HORIZON - 2 * slots.MINUTE, due)
    world.release(at, announced=announced)
    world.run(0, BEFORE + AFTER + 10, wind_down=10)
    return world


def announced(seed: int = 1) -> UpgradedWorld:
    return upgraded(seed, announced=True)


def dense(seed: int = 1) -> UpgradedWorld:
    with patch("scheduler.pipeline.dispatch.SPARSE", -1):
        return upgraded(seed, announced=True)


def quiet(seed: int = 1) -> UpgradedWorld:
    with patch("scheduler.pipeline.dispatch.SPARSE", -1):
        return upgraded(seed, announced=False, quiet_ms=(-5_000, 65_000))
