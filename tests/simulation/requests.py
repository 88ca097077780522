"""A thousand API requests a second against AWS's limits, in virtual time: the real quota gate and the real `submit`, one environment each.

Modelled: API Gateway's limits of the stage and of its writing routes (token buckets), one request at a time in an environment of Lambda,
cold starts, a thousand new environments in ten seconds, a thousand executions in the account, DynamoDB's write units of a partition,
calls of 1 to 6 ms. The processor time of a request is that of `make bench`, at the share of a core that the function's memory buys.
Not modelled: the network, TLS, the check of the token in API Gateway, requests of more than one job.
"""

import math
from collections import Counter, defaultdict
from functools import partial
from itertools import chain
from typing import Any

from bench import prices
from infra.settings import Settings
from lab.world.calls import WHOLE_CORE_MB
from lab.world.clock import SimClock
from lab.world.faults import CALM, Faults, Faulty
from lab.world.hub import Hub
from lab.world.limits import Bucket, Environments, LimitedJobs, Limits
from scheduler.accounts.quota import QuotaGate
from scheduler.model import ids, slots
from scheduler.model.errors import TooMany
from scheduler.model.job import JobKey
from scheduler.model.spec import JobSpec
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import NewJob, submit
from scheduler.storage.memory.ports import MemoryPorts
from tests.simulation import limits as aws

API_RATE = 1_000  # requests a second
WRITES = 0.6  # share of the requests that create a job; the others read one
CPU_MS = 0.63  # of a whole core for a request: bench/results, cpu.api_ms
ACCOUNT = 1_000  # executions at once
AHEAD = 20 * slots.MINUTE  # the created jobs are due this much later: none starts in the scene


class Gateway:
    """API Gateway's throttles of the whole stage and of its writing routes."""

    def __init__(self, settings: Settings) -> None:
        self._all, self._writes = Bucket(settings.api_rate, settings.api_burst), Bucket(settings.write_rate, settings.write_burst)

    def admits(self, writes: bool, now: int) -> bool:
        return self._all.take(now) and (not writes or self._writes.take(now))


class Requests:
    """One deployment's API under load."""

    def __init__(self, settings: Settings, owners: int) -> None:
        self.hub, self.settings, self.owners = Hub(aws.AT), settings, owners
        self.waits: Counter[str] = Counter()
        limits = Limits()
        self.jobs = LimitedJobs(self.hub, limits, self.waits)
        faults = Faults(CALM, aws.Random(4), self.hub)
        self.ports = MemoryPorts(SimClock(self.hub, 0), settings.deployed, jobs=Faulty(self.jobs, faults))
        self.gateway = Gateway(settings)
        self.functions = Environments(self.hub, limits, self._environment)
        self.random, self.begin = aws.Random(5), aws.Random(6)
        self.refused: Counter[str] = Counter()
        self.took: dict[int, list[int]] = defaultdict(list)  # milliseconds, by second of the request
        self.busiest: Counter[int] = Counter()  # executions at once, by second
        self.stored: list[JobKey] = []
        self._cpu_ms = math.ceil(CPU_MS * WHOLE_CORE_MB / settings.memory_mb["api"])

    def run(self, rate: int, seconds: int) -> None:
        at, end = float(aws.AT), aws.AT + seconds * 1_000
        while (at := at + self.random.expovariate(rate / 1_000)) < end:
            self.hub.spawn(partial(self._request, self.random.random() < WRITES), int(at))
        self.hub.run(end + slots.MINUTE)

    def _request(self, writes: bool) -> None:
        began = self.hub.time
        if not self.gateway.admits(writes, began):
            self.refused["API Gateway"] += 1
            return
        if self.functions.busy >= ACCOUNT:
            self.refused["Lambda"] += 1
            return
        environment, ready_in = self.functions.enter()
        second = (began - aws.AT) // 1_000
        self.busiest[second] = max(self.busiest[second], self.functions.busy)
        if ready_in:
            self.hub.sleep_until(began + ready_in)
        ready = self.hub.time
        self.hub.sleep_until(ready + self._cpu_ms)
        try:
            self._serve(writes, *environment)
        except TooMany:
            self.refused["quota"] += 1
        self.functions.leave(environment, ready)
        self.took[second].append(self.hub.time - began)

    def _environment(self) -> tuple[QuotaGate, DirectPath]:
        return QuotaGate(self.ports, self.begin.random), DirectPath(self.ports)

    def _serve(self, writes: bool, quotas: QuotaGate, direct: DirectPath) -> None:
        if not writes:
            key = self.stored[self.random.randrange(len(self.stored))] if self.stored else JobKey("user0", "none")
            self.ports.jobs.get(key)
            return
        owner = f"user{self.random.randrange(self.owners)}"
        quotas.admit(owner, 1)
        at = self.hub.time + AHEAD + self.random.randrange(10 * slots.MINUTE)
        request = NewJob(owner, JobSpec("log", {"message": "hello"}), execute_at=at)
        job = submit(request, self.ports, random=self.random.getrandbits(ids.RANDOM_BITS), direct=direct)
        self.stored.append(job.key)


def requests(settings: Settings, *, seconds: int = 60, rate: int = API_RATE, owners: int = aws.OWNERS) -> dict[str, Any]:
    """Return the figures of `rate` requests a second, six of ten of which create a job."""
    scene = Requests(settings, owners)
    scene.run(rate, seconds)
    took = list(chain.from_iterable(scene.took.values()))
    answered = max(len(took), 1)
    gb = settings.memory_mb["api"] / 1_024
    dollars = prices.HTTP_API + prices.INVOCATION + scene.functions.busy_ms / answered / 1_000 * gb * prices.GB_SECOND
    return {
        "requests": len(took) + scene.refused["API Gateway"] + scene.refused["Lambda"],
        "answered": len(took),
        "refused": dict(scene.refused),
        "jobs_created": len(scene.stored),
        "p50_ms": aws.share(took, 50),
        "p99_ms": aws.share(took, 99),
        "p99_from_second_5_ms": aws.share(list(chain.from_iterable(ms for second, ms in scene.took.items() if second >= 5)), 99),
        "most_executions": scene.functions.most,
        "cold_starts": scene.functions.colds,
        "longest_wait_ms": {name: wait for name, wait in scene.waits.items() if wait},
        "dollars_a_million": round(dollars * prices.MILLION, 2),
        "series": [[second, aws.share(ms, 50), aws.share(ms, 99), scene.busiest[second]] for second, ms in sorted(scene.took.items())],
    }
