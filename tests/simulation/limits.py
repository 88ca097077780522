"""`python -m tests.simulation.limits`: runs the real services against AWS's limits, in virtual time, and shows start delays and causes.

Every job goes through the real tick, dispatch and execute; the real scale and provision set the pollers. AWS is a model (`Limits`, from
its own documentation):

- Lambda starts a lane's executors as SQS's event source mapping does: five at once, 300 more a minute, up to the lane's limit; or ten for
  each poller that is kept ready. A poller receives ten times a second, up to ten messages each time. (For pollers that AWS scales by
  itself, only their concurrency is documented: one executor each, here. Pollers beyond those kept ready, which AWS may add, are left out.)
  Environments grow by 1,000 in ten seconds; a new one has a cold start.
- CloudWatch's alarm calls provision 90 s after scale has emitted what is required: a period of a minute, its evaluation, the call. Changed
  pollers are there a minute later. AWS documents neither; both are assumed, and AWS bills the pollers from the call on.
- SNS accepts a fixed number of messages a second in the account, over all publishers; a dispatcher publishes tens on 16 connections.
- DynamoDB writes 1,000 units a second in one partition: of the table (`ids.PARTITIONS` of each user), of its due index (one a slot)
  and of its index of failures (as the table). A second's worth may come at once; the model saves up no more than that, and splits no
  partition. A write to the table costs a unit for each KB of the job's item, one to an index one unit. The index of moved jobs has no
  part: no job of these scenes is moved.
- Lambda refuses what is over a reservation, over the executions of the account, or beyond a thousand new environments in ten seconds.
  Only the scenes of an account know its executions. A refusal takes 20 ms; the executors' own rule (`call_limit`) is the real one.
- Calls take 1 to 6 ms, the index lags up to 300 ms.

Not in the model: the processor time of our own code (`make bench` measures it), faults (`make simulate`), the account's other functions.

    the burst    50,000 jobs of 200 ms within one second, at the top of an hour: with AWS's own scaling, and with pollers that the alarm,
                 `provision` and `scale` keep ready by the real counters; then with one limit lifted at a time, which shows the
                 bottleneck, and with less favourable settings
    the limit    5,000 jobs of a second for one named target that takes 500 at once: with its concurrency slots over several items, and
                 with all of them in one item
    the account  a new account, which allows ten executions at once: a crowd, long jobs and a stream of jobs while both other lanes are
                 full and notices and requests come all the time; with the executors that the option `account_concurrency` leaves, and
                 with those of a usual stage
    the calls    50,000 jobs of one instant that call a URL, which answers after 200 ms, beside 20 requests a second to the API: in accounts
                 of 1,000 and 10,000 executions that the stage `prod` keeps within; 2,000 such jobs in one of 1,000 that `dev` knows or not
    one owner    the burst, and a stream of 5,000,000 jobs an hour, of one user, with items of 2 KB; the burst also with jobs that all fail
    the hour     5,000,000 jobs an hour. It takes forty minutes of processor time, so by default only its first `--minutes` run, in full;
                 from the second or third on each minute is like the one before (the table shows it)
    the top      10,000 jobs a second for `--minutes`. Ten minutes of it take half an hour of processor time for each of its two scenes,
                 and 8 GB of memory each
    the API      1,000 requests a second (`tests/simulation/requests.py`)

`--owners`, `--kilobytes` and `--failing` change the jobs of the burst, the hour and the top.
Scenes run side by side on the processors; `--processes 1` runs them one by one, which takes less memory. With `--record NAME` they are
written to `bench/results/NAME.json`; `python -m bench.pages` writes docs/concepts/scale.md from it.
The last line is JSON.
"""

import argparse
import gc
import json
import logging
import os
import sys
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise, zip_longest
from random import Random
from typing import Any, NamedTuple

from bench import prices
from bench.results import write
from bench.scale import SHARES
from infra.account import LEAST_ACCOUNT, USUAL
from infra.options import Options
from infra.settings import EXECUTOR_JOBS, settings_for
from lab.world.clock import SimClock
from lab.world.faults import CALM, Faults, Faulty
from lab.world.hub import Hub
from lab.world.limits import (
    BATCH,
    FIRST,
    NEVER,
    POLLER_HOUR,
    Account,
    Executors,
    Fetch,
    HttpPool,
    LimitedJobs,
    LimitedLanes,
    LimitedTargets,
    Limits,
)
from lab.world.pools import SimPool
from lab.world.queues import SimWork, end_batch, end_step
from lambdas._fetch_warmer import MOST as WARMED
from lambdas._pool import THREADS, ahead
from scheduler.insight import scaling
from scheduler.insight.project import project
from scheduler.insight.provision import provision
from scheduler.insight.scale import scale
from scheduler.jobs import group_steps
from scheduler.model import ids, slots
from scheduler.model.job import Delivery, Job, JobKey, Lane
from scheduler.model.named_target import NamedTarget
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkDelivery
from scheduler.monitors import steps
from scheduler.operations.step import step
from scheduler.pipeline.execute import execute
from scheduler.pipeline.process import Process
from scheduler.pipeline.tick import tick
from scheduler.pipeline.worker import work
from scheduler.storage.aws.batches import chunks as batches
from scheduler.storage.aws.stream import JobChange
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.counters import MemoryCounters
from scheduler.storage.memory.ordering_queues import MemoryOrderingQueues
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryLedger
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.storage.ports import Pool
from scheduler.targets.call_limit import CallLimit
from scheduler.targets.fetch_call import AHEAD_MS
from scheduler.targets.named_target import slots_beside
from tests.contract import make

AT = slots.start_of("2026-11-20T11:00")  # the top of an hour
OWNERS = 20
ONE_OWNER_KB = 2  # of an item in the scenes of one owner
A_CALL = 1_000  # jobs of a call that creates some
BURST_CREATED_MS = 10_000  # the jobs of the burst are created within this time
SHARDS, UNITS = 64, 8  # of a minute: for ten thousand jobs a second
JOB_MS = 200
PER_HOUR = 5_000_000
BURST = 50_000
AHEAD = 12 * slots.MINUTE  # the scene begins this long before the first instant: `scale` looks ten minutes ahead
STORED_AHEAD = slots.HORIZON  # the stream's jobs are all stored this long before their minute
EXECUTOR_GB = 1.0  # as in prod
IN_PROD = 100  # pollers of the one-time lane at most, in the stage prod
AT_ONCE, LIMITED_JOBS, LIMITED_MS = 500, 5_000, 1_000  # the scene of the limit
SMALL, SMALL_TAKEN = LEAST_ACCOUNT, 4  # the scene of the account: its executions, and those of two other lanes
NOTICES, NOTICE_MS, NOTICE_EVERY_MS = 2, 1_000, 2_000  # functions that run all the time: how many, for how long, how often
REQUEST_MS, REQUEST_EVERY_MS = 90, 40  # of the API beside calls of URLs
FEW_CALLS = 2_000  # ... in a stage that does not know its account
MOST_DEFERRALS = 2
ACCOUNTS = (1_000, 10_000)  # of the scene of calls
SMALL_CROWD, LONG_JOBS, LONG_MS, PER_MINUTE = 2_000, 20, 5 * slots.MINUTE, 300
TOP = 10_000  # jobs a second of the scene of the top
PARTS = ("burst", "lifted", "owner", "limit", "account", "http", "hour", "top", "api")
LARGE = ("owner", "http", "top", "api")  # these are run only by name


LIFTED: dict[str, Callable[[Limits], Limits]] = {
    "executors": lambda limits: replace(limits, first=NEVER, environments=NEVER, polls=NEVER),
    "polls": lambda limits: replace(limits, polls=NEVER),
    "cold starts": lambda limits: replace(limits, cold_ms=0),
    "SNS": lambda limits: replace(limits, sns=NEVER),
    "partitions": lambda limits: replace(limits, partition=NEVER),
}


class Load(NamedTuple):
    """The jobs of a scene."""

    owners: int = OWNERS
    kilobytes: int = 1  # of an item, rounded up
    failing: bool = False  # all fail, and are not tried again
    http: bool = False  # all call URLs, by the function `fetch`


class Scene:
    """One deployment under load in the lane of one-time jobs."""

    def __init__(self, limits: Limits, rules: Rules, *, most_pollers: int = 0, load: Load | None = None) -> None:
        self.load = load or Load()
        self.limits = limits
        rules = replace(rules, most_pollers={Lane.ONE_TIME: most_pollers} if most_pollers else {})
        self.hub, self.rules, self.random = Hub(AT - AHEAD), rules, Random(3)
        self.waits: Counter[str] = Counter()
        self.jobs = LimitedJobs(self.hub, limits, self.waits, kilobytes=self.load.kilobytes)
        self.ledger, self.users, self.orders = MemoryLedger(), MemoryUsers(), MemoryOrderingQueues()
        self.targets = LimitedTargets(self.hub, limits, self.waits)
        self.tasks, self.counters = MemoryTasks(self.jobs, MemoryReceipts()), MemoryCounters()
        self.lanes = LimitedLanes(self.hub, limits, self.waits, lambda lane, at: self.hub.at(at, self._wake))
        self.executors = Executors(self.hub, limits, self._environment)
        self.account = Account(limits.account - limits.taken, limits.reserved)
        self.fetch = Fetch(self.hub, limits, self.account)
        self._limits: dict[int, CallLimit] = {}  # by executor
        self.steps = 0
        self.throttled: Counter[str] = Counter()  # executions that found no room, by function
        self.ticks = array("q")  # when they ran
        self.pollers_ready = self.most_kept = 0  # pollers as they were set last, and the most
        self.kept_since = [(AT - AHEAD, 0)]  # every change of the pollers
        self.rings = False  # the alarm on what is required
        self.delays: dict[int, array[int]] = defaultdict(lambda: array("i"))  # by second of the due time
        self.parts = {name: array("i") for name in ("left late", "waited for an executor", "in the executor")}
        self.stored = self._numbers = 0
        self.starts = array("q")
        self._way: dict[JobKey, tuple[int, int]] = {}  # by job: when it left dispatch, and when an executor received it
        self._waking = False
        faults = Faults(CALM, Random(4), self.hub)
        own = {name: Faulty(getattr(self, name), faults) for name in ("jobs", "ledger", "users", "orders", "tasks", "lanes", "targets")}
        vars(own["lanes"])["publish"] = self.lanes.publish  # it takes its time by itself
        self.work = SimWork(self.hub, faults, self._step)
        self.ports = MemoryPorts(SimClock(self.hub, 0), rules, functions=self, counters=self.counters, work=self.work, **own)

    # load

    def store(self, instants: Sequence[int], takes: int = JOB_MS, target: str | None = None) -> None:
        """Store a job due at each instant, before the scene begins."""
        for job in self._made(instants, takes, target):
            self.jobs.keep(job)

    def create(self, instants: Sequence[int], over_ms: int, takes: int = JOB_MS) -> None:
        """Create a job due at each instant, in calls at equal distances over this time, or longer if the table is slower."""
        begin, calls = self.hub.time, batches(instants, A_CALL)
        for number, part in enumerate(calls):
            self.hub.sleep_until(max(begin + over_ms * number // len(calls), self.hub.time))
            self.jobs.put_many(list(self._made(part, takes, None)))

    def _made(self, instants: Sequence[int], takes: int, target: str | None) -> Iterator[Job]:
        what = "http" if self.load.http else "log"
        spec = JobSpec(what, {"takes": takes, "fails": int(self.load.failing)}, target=target, max_attempts=1 if self.load.failing else 3)
        self.stored += len(instants)
        for at in instants:
            self._numbers += 1
            job_id = ids.new(at, self.random.getrandbits(ids.RANDOM_BITS))
            owner = f"user{self._numbers % self.load.owners}"
            slot = slots.slot(slots.minute_of(at), job_id, self.rules.shards)
            job = Job(owner, job_id, spec, at, at, at - STORED_AHEAD, slot)
            object.__setattr__(job, "__dict__", dict(vars(job)))  # in half the memory: millions wait at once
            yield job

    def count(self, instants: Sequence[int], each: int = 1, takes: int = JOB_MS) -> None:
        """Count these jobs in the counters, each `each` times, and the duration of such jobs."""
        claimed = make.claimed(make.job(at=AT - 20 * slots.MINUTE))
        ended = replace(make.succeeded(claimed, AT - 20 * slots.MINUTE + takes), started_at=AT - 20 * slots.MINUTE)
        changes = [JobChange(f"{0:040d}", claimed, ended)]
        changes += [JobChange(f"{number:040d}", None, make.job(at=at)) for number, at in enumerate(instants, 1)]
        for first in range(0, len(changes), 250):
            project("s", changes[first : first + 250], self.ports)
        for (partition, _, _), amounts in self.counters.rows.items():
            if partition.startswith("load#"):
                amounts.update({name: amount * (each - 1) for name, amount in amounts.items()})

    def run(self, until: int) -> None:
        for at in range(AT - AHEAD + 7_000, until, slots.MINUTE):
            self.hub.spawn(self._tick, at)
            if self.rules.most_pollers:
                self.hub.spawn(self._scale, at)
        self.hub.run(until)
        while self.jobs.ended < self.stored and self.hub.time < until + 45 * slots.MINUTE:
            self.hub.spawn(self._tick, self.hub.time + 7_000)
            if self.rules.most_pollers:
                self.hub.spawn(self._scale, self.hub.time + 8_000)
            self.hub.run(self.hub.time + slots.MINUTE)

    # invocations

    def _tick(self) -> None:
        """Lambda tries a throttled asynchronous call again after 1, 2, 4 ... seconds, and drops it after a minute."""
        until, pause = self.hub.time + slots.MINUTE, 1_000
        while self.hub.time < until:
            with self.account.execution("tick") as fits:
                if fits:
                    self.ticks.append(self.hub.time)
                    tick(self.ports)
                    return
            self.throttled["tick"] += 1
            self.hub.sleep_until(self.hub.time + pause)
            pause *= 2

    def notices(self, until: int) -> None:
        """Run another function again and again; each takes an execution if there is room."""
        while self.hub.time < until:
            with self.account.execution() as fits:
                self.throttled["notices"] += not fits
                self.hub.sleep_until(self.hub.time + NOTICE_MS)
            self.hub.sleep_until(self.hub.time + NOTICE_EVERY_MS - NOTICE_MS)

    def requests(self, until: int) -> None:
        """Send a request to the API every `REQUEST_EVERY_MS`."""
        while self.hub.time < until:
            self.hub.spawn(self._request)
            self.hub.sleep_until(self.hub.time + REQUEST_EVERY_MS)

    def _request(self) -> None:
        with self.account.execution("api") as fits:
            self.throttled["api"] += not fits
            self.hub.sleep_until(self.hub.time + REQUEST_MS)

    def _step(self, delivery: WorkDelivery) -> None:
        """Carry out one step of the engine, as the event source mapping of the work queue does. A throttled one comes again."""
        with self.account.execution("dispatch") as fits:
            if not fits or self.steps >= self.limits.steps:
                self.throttled["dispatch"] += not fits
                self.work.hide(delivery.receipt, 1)
                return
            self.steps += 1
            done = work(delivery, self.ports, operation=step, group=group_steps.step, monitor=steps.step)
            self.steps -= 1
        end_step(self.work, delivery, done, self.hub.time)

    def _scale(self) -> None:
        rang, self.rings = self.rings, scale(self.ports, random=0).required > scaling.FOLLOWED
        if self.rings and not rang:  # an alarm calls only when it begins to ring
            self.hub.spawn(self._provision, self.hub.time + self.limits.alarm_ms)
        self.executors.poller_ms += self.pollers_ready * slots.MINUTE

    def _provision(self) -> None:
        provision(self.ports)

    def pollers(self, lane: Lane) -> int:
        return self.pollers_ready

    def keep_pollers(self, lane: Lane, count: int) -> None:
        self.pollers_ready, self.most_kept = count, max(self.most_kept, count)
        self.kept_since.append((self.hub.time, count))
        self.hub.at(self.hub.time + self.limits.pollers_ms, lambda: self.executors.keep(count))

    def _wake(self) -> None:
        if not self._waking:
            self._waking = True
            self.hub.at(self.hub.time + self.executors.poll_wait(), self._poll)

    def _poll(self) -> None:
        self._waking = False
        if self.executors.busy >= self.executors.may or self.account.is_full:
            self.hub.at(self.hub.time + 50, self._wake)  # an executor may be free soon
            return
        batch = self.lanes.receive(Lane.ONE_TIME, BATCH, self.hub.time)
        if batch:
            self.hub.spawn(lambda: self._execute(batch))
            self._wake()

    def _execute(self, batch: Sequence[Delivery]) -> None:
        with self.account.execution():
            self._run(batch)
        self._wake()

    def _run(self, batch: Sequence[Delivery]) -> None:
        began = self.hub.time
        environment, ready_in = self.executors.enter()
        self.hub.sleep_until(began + ready_in)
        for item in batch:
            self._way |= {single.key: (single.sent_at, began) for single in item.message.singles()}
        pool = self._pool(environment, batch)
        left = execute(Lane.ONE_TIME, batch, self.ports, environment, pool=pool, request_id=f"r{self.executors.calls}")
        end_batch(self.lanes, Lane.ONE_TIME, batch, left)
        self.executors.leave(environment, began)

    def _pool(self, environment: Process, batch: Sequence[Delivery]) -> Pool:
        if not self.load.http:
            return SimPool(self.hub, self.ports.clock, self.random, self._started, at_once=THREADS)
        if id(environment) not in self._limits:
            self._limits[id(environment)] = CallLimit(self.rules.calls_at_once, lambda: self.hub.time, self.random.random)
        limit = self._limits[id(environment)]
        pool = HttpPool(self.hub, self.fetch, limit, self._started)
        early = sum(single.due_at > self.hub.time for item in batch for single in item.message.singles())
        for _ in range(min(early, WARMED)):
            pool.warm()
        return pool

    def _environment(self) -> Process:
        http = self.load.http
        return Process.of(Lane.ONE_TIME, str(self.executors.colds % 8), self.ports, lambda _, jobs: AHEAD_MS if http else ahead(jobs))

    def _started(self, job: Job, now: int) -> None:
        self.starts.append(now)
        left, got = self._way.pop(job.key)  # of its last message
        due = job.scheduled_at  # a job that was deferred is late by that time, too
        self.delays[due // 1_000].append(now - due)
        self.parts["left late"].append(max(left - due, 0))
        self.parts["waited for an executor"].append(max(got - max(left, due), 0))
        self.parts["in the executor"].append(now - max(got, due))


def share(values: Sequence[int], percent: int) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] if ordered else 0


def result(scene: Scene) -> dict[str, Any]:
    """Return the figures of a scene."""
    delays = list(chain.from_iterable(scene.delays.values()))
    executors = scene.executors
    dollars = {
        "pollers": executors.poller_ms / 3_600_000 * POLLER_HOUR,
        "executors": executors.busy_ms / 1_000 * EXECUTOR_GB * prices.GB_SECOND + executors.calls * prices.INVOCATION,
    }
    return {
        "jobs": scene.stored,
        "ended": scene.jobs.ended,
        "early": sum(delay < 0 for delay in delays),
        "started_twice": len(delays) - scene.stored,
        "p50_ms": share(delays, 50),
        "p99_ms": share(delays, 99),
        "max_ms": max(delays, default=0),
        "most_executors": executors.most,
        "most_pollers": scene.most_kept,
        "pollers_at_the_end": scene.pollers_ready,
        "cold_starts": executors.colds,
        "p99_of_its_parts_ms": {name: share(values, 99) for name, values in scene.parts.items()},
        "longest_wait_ms": {name: wait for name, wait in scene.waits.items() if wait},
        "dollars": {name: round(amount, 3) for name, amount in dollars.items()},
        "quantiles_ms": [share(delays, percent) for percent in SHARES],
        "series": series(scene),
    }


def series(scene: Scene) -> list[list[float]]:
    """Return at most 300 rows over the due times: seconds since the first, p50 and p99 of the start delays (ms), the most executors that
    ran at once, the pollers kept ready at its end. Of a long scene a row covers several seconds.
    """
    if not scene.delays:
        return []
    first, last = min(scene.delays), max(scene.delays)
    each, rows = max(1, (last - first) // 300 + 1), []
    for begin in range(first, last + 1, each):
        span = range(begin, begin + each)
        delays = list(chain.from_iterable(scene.delays.get(second, ()) for second in span))
        busy = max(scene.executors.by_second[second] for second in span)
        pollers = [count for at, count in scene.kept_since if at + scene.limits.pollers_ms < (begin + each) * 1_000][-1]
        rows.append([begin - first, share(delays, 50), share(delays, 99), busy, pollers])
    return rows


def rules(executors: int, shards: int = SHARDS) -> Rules:
    """Return the rules of a deployment with this number of executors in the lane."""
    windows = {Lane.ONE_TIME: executors * BATCH, Lane.RECURRING: 1_000}
    return Rules(shards=shards, units=UNITS, windows=windows, crowds={Lane.ONE_TIME: executors * EXECUTOR_JOBS})


def burst(
    jobs: int,
    *,
    predicted: bool,
    limits: Limits | None = None,
    load: Load | None = None,
    shards: int = SHARDS,
    most_pollers: int = scaling.MOST,
    takes: int = JOB_MS,
) -> dict[str, Any]:
    """Run `jobs`, each of `takes` ms, within the first second of the hour."""
    limits = limits or Limits()
    most = most_pollers if predicted else 0
    of_deployment = rules(most * scaling.EXECUTORS_EACH if predicted else limits.most, shards)
    scene = Scene(limits, of_deployment, most_pollers=most, load=load)
    instants = [AT + scene.random.randrange(1_000) for _ in range(jobs)]
    scene.hub.spawn(partial(scene.create, instants, BURST_CREATED_MS, takes), AT - AHEAD)
    if predicted:
        scene.count(instants, takes=takes)
    scene.run(AT + (30 if predicted else 3) * slots.MINUTE)  # the number of pollers falls slowly, and they cost until then
    return result(scene)


def limited(jobs: int = LIMITED_JOBS, *, spread: bool, limits: Limits | None = None) -> dict[str, Any]:
    """Run jobs of a second, all due at once, for a target that takes `AT_ONCE` of them; `spread`: its slots lie over several items."""
    limits = limits or Limits(first=200)
    scene = Scene(limits, replace(rules(limits.most), ready_executors=limits.first))
    beside = slots_beside(None, AT_ONCE) if spread else 0
    scene.targets.put(None, NamedTarget("t", "log", 0, 0, "ada", "ada", concurrency=AT_ONCE, beside=beside))
    scene.store([AT] * jobs, LIMITED_MS, "t")
    scene.run(AT + slots.MINUTE)
    starts = sorted(scene.starts)
    at_once = [bisect_right(starts, at) - bisect_right(starts, at - LIMITED_MS) for at in starts]
    first, last = starts[0] + LIMITED_MS, starts[len(starts) * 8 // 10]  # while many jobs wait
    busy = [bisect_right(starts, at) - bisect_right(starts, at - LIMITED_MS) for at in range(first, max(last, first + 1), 20)]
    seconds = (starts[-1] + LIMITED_MS - starts[0]) / 1_000
    units = {"most of an item": max(scene.targets.busiest.values()) / seconds, "in all": scene.targets.busiest.total() / seconds}
    return result(scene) | {
        "most_at_once": max(at_once),
        "mean_at_once": round(sum(busy) / len(busy)),  # from the second second on, while many jobs wait
        "units_a_second": {name: round(number) for name, number in units.items()},
    }


def small_account(*, known: bool, minutes: int = 10) -> dict[str, Any]:
    """Run a crowd, long jobs and a stream of jobs in an account with ten executions, four of which two other lanes take.

    `known`: the stage keeps within them (option `account_concurrency`).
    """
    settings = settings_for("dev", Options(account_concurrency=SMALL if known else 0))
    most = settings.concurrency[Lane.ONE_TIME]
    limits = Limits(first=min(FIRST, most), most=most, account=SMALL, taken=SMALL_TAKEN, steps=settings.steps)
    scene = Scene(limits, settings.deployed)
    scene.store([AT] * SMALL_CROWD)
    scene.store([AT] * LONG_JOBS, LONG_MS)
    scene.store([AT + number * slots.MINUTE // PER_MINUTE for number in range(minutes * PER_MINUTE)])
    end = AT + (minutes + 2) * slots.MINUTE
    for number in range(NOTICES):
        scene.hub.spawn(partial(scene.notices, end), AT - AHEAD + number * 700)
    scene.run(end)
    gaps = [later - earlier for earlier, later in pairwise(scene.ticks)]
    return result(scene) | {"longest_without_tick_s": max(gaps) / 1_000, "throttled": dict(scene.throttled)}


def http_crowd(
    jobs: int = BURST, *, stage: str = "prod", account: int, known: bool = True, takes: int = JOB_MS, limits: Limits | None = None
) -> dict[str, Any]:
    """Run jobs of one instant that each call a URL for `takes` ms, beside requests to the API.

    `known`: the stage keeps within its account (option `account_concurrency`).
    """
    settings = settings_for(stage, Options(account_concurrency=account if known else 0))
    most, pollers = settings.concurrency[Lane.ONE_TIME], settings.rules.most_pollers.get(Lane.ONE_TIME, 0)
    limits = replace(
        limits or Limits(), first=min(FIRST, most), most=most, account=account, reserved=settings.reserved, steps=settings.steps
    )
    scene = Scene(limits, replace(settings.deployed, lag_canary=False), most_pollers=pollers, load=Load(http=True))
    scene.hub.spawn(partial(scene.create, [AT] * jobs, BURST_CREATED_MS, takes), AT - AHEAD)
    if pollers:
        scene.count([AT] * jobs, takes=takes)
    end = AT + slots.MINUTE
    scene.hub.spawn(partial(scene.requests, end), AT - slots.MINUTE)
    scene.run(end)
    deferrals = scene.jobs.deferrals
    return result(scene) | {
        "all_started_after_ms": max(scene.starts) - AT,
        "most_calls": scene.fetch.most,
        "calls": scene.fetch.calls,
        "calls_refused": scene.fetch.refused,
        "cold_fetches": scene.fetch.colds,
        "deferrals": deferrals.total(),
        "most_deferrals": max(deferrals.values(), default=0),
        "most_executions": sum(scene.account.most.values()),
        "throttled": {name: count for name, count in scene.throttled.items() if count},
        "violations": list(_violations(scene, jobs)),
    }


def _violations(scene: Scene, jobs: int) -> Iterator[str]:
    """Yield what must not happen beside calls of URLs."""
    for name, count in sorted(scene.throttled.items()):
        if count:
            yield f"{name} was throttled"
    if max(scene.jobs.deferrals.values(), default=0) > MOST_DEFERRALS:
        yield "a job was deferred too often"
    if scene.fetch.refused > jobs:
        yield "Lambda refused too many calls"


def stream(minutes: int, per_hour: int, *, predicted: bool, load: Load | None = None) -> dict[str, Any]:
    """Run the first minutes of an hour with `per_hour` jobs. Those of a minute are created in the sixth minute before it."""
    limits, most = Limits(), scaling.MOST if predicted else 0
    scene = Scene(limits, rules(most * scaling.EXECUTORS_EACH if predicted else limits.most), most_pollers=most, load=load)
    per_minute, every = per_hour // 60, [AT + number * slots.MINUTE for number in range(minutes)]
    name = "predicted" if predicted else "AWS by itself"

    def store(begin: int) -> None:
        print(f"  … {name}: stores minute {every.index(begin) + 1} of {minutes}", file=sys.stderr, flush=True)
        due = [begin + number * slots.MINUTE // per_minute for number in range(per_minute)]
        scene.create(due, slots.MINUTE)
        gc.collect()  # the program switches the collector off: what ended since is in cycles

    for begin in every:
        scene.hub.spawn(partial(store, begin), begin - STORED_AHEAD - slots.MINUTE)
    if predicted:
        scene.count([begin + number * slots.MINUTE // per_minute for begin in every for number in range(0, per_minute, 100)], each=100)
    scene.run(every[-1] + 2 * slots.MINUTE)
    minutes_delays = [list(chain.from_iterable(scene.delays[at // 1_000 + second] for second in range(60))) for at in every]
    by_minute = [{"p50_ms": share(delays, 50), "p99_ms": share(delays, 99)} for delays in minutes_delays]
    return result(scene) | {"by_minute": by_minute}


def chosen(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Yield the scenes that the options choose: name and function, which returns the figures."""

    def includes(part: str) -> bool:
        return options.only == part or (options.only is None and part not in LARGE)

    load = Load(options.owners, options.kilobytes, options.failing)
    if includes("burst"):
        yield "burst, AWS by itself", partial(burst, options.jobs, predicted=False, load=load)
        yield "burst, predicted: pollers kept ready", partial(burst, options.jobs, predicted=True, load=load)
        in_prod = partial(burst, options.jobs, predicted=True, most_pollers=IN_PROD, load=load)
        yield f"burst, predicted, at most {IN_PROD} as in prod", in_prod
    if includes("owner"):
        one, size = Load(1, ONE_OWNER_KB), f"one user, {ONE_OWNER_KB} KB"
        yield f"burst, {size}, AWS by itself", partial(burst, options.jobs, predicted=False, load=one)
        yield f"burst, {size}, predicted", partial(burst, options.jobs, predicted=True, load=one)
        yield f"burst, {size}, all fail, AWS by itself", partial(burst, options.jobs, predicted=False, load=one._replace(failing=True))
        yield f"burst, {size}, all fail, predicted", partial(burst, options.jobs, predicted=True, load=one._replace(failing=True))
        yield f"{options.per_hour:,} an hour, {size}", partial(stream, options.minutes, options.per_hour, predicted=False, load=one)
    if includes("lifted"):
        predicted = partial(burst, options.jobs, predicted=True)
        for name, lift in LIFTED.items():
            yield f"burst, predicted, lifted: {name}", partial(predicted, limits=lift(Limits()))
        yield "burst, predicted, 16 shards", partial(predicted, shards=16)
        yield "burst, predicted, where SNS takes 1,500 a second", partial(predicted, limits=Limits(sns=1_500))
    if includes("limit"):
        yield f"a limit of {AT_ONCE} at once, over several items", partial(limited, spread=True)
        yield f"a limit of {AT_ONCE} at once, in one item", partial(limited, spread=False)
    if includes("account"):
        yield f"an account with {SMALL} executions, kept within", partial(small_account, known=True)
        yield f"an account with {SMALL} executions, unknown", partial(small_account, known=False)
    if includes("http"):
        for account in ACCOUNTS:
            yield f"calls of URLs, an account of {account:,}, kept within", partial(http_crowd, options.jobs, account=account)
        for known in (True, False):
            name = f"{FEW_CALLS:,} calls of URLs, dev, an account of {USUAL:,}, {'kept within' if known else 'unknown'}"
            yield name, partial(http_crowd, FEW_CALLS, stage="dev", account=USUAL, known=known)
    if includes("top"):
        yield f"{TOP:,} a second, predicted", partial(stream, options.minutes, TOP * 3_600, predicted=True, load=load)
        yield f"{TOP:,} a second, AWS by itself", partial(stream, options.minutes, TOP * 3_600, predicted=False, load=load)
    if includes("api"):
        from tests.simulation.requests import API_RATE, requests  # that module builds on this one

        for stage in ("prod", "dev"):
            yield f"{API_RATE:,} requests a second, {stage}", partial(requests, settings_for(stage), seconds=60 * options.minutes)
    if includes("hour"):
        for name, predicts in (("AWS by itself", False), ("predicted", True)):
            yield f"{options.per_hour:,} an hour, {name}", partial(stream, options.minutes, options.per_hour, predicted=predicts, load=load)


def _prepare() -> None:
    """Prepare a process that runs scenes."""
    logging.disable(logging.CRITICAL)
    gc.disable()


def _run(scene: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    seen = scene()
    gc.collect()  # frees the rest of the scene
    return seen


def show(name: str, seen: dict[str, Any]) -> None:
    if "dollars" not in seen:  # a scene of requests
        print(name, {key: value for key, value in seen.items() if key != "series"}, flush=True)
        return
    parts = ", ".join(f"{part} {ms / 1000:.2f}" for part, ms in seen["p99_of_its_parts_ms"].items())
    cost = " + ".join(f"${amount} {what}" for what, amount in seen["dollars"].items())
    lines = [
        f"p50 {seen['p50_ms'] / 1000:7.2f} s  p99 {seen['p99_ms'] / 1000:7.2f} s  max {seen['max_ms'] / 1000:7.2f} s  "
        f"executors {seen['most_executors']:5d}  pollers {seen['most_pollers']:3d}  {cost}",
        f"p99 in s: {parts}; longest waits in ms: {seen['longest_wait_ms']}",
    ]
    if "units_a_second" in seen:
        lines.append(f"at once: {seen['mean_at_once']} on average, {seen['most_at_once']} at most; units: {seen['units_a_second']}")
    if "most_calls" in seen:
        lines.append(
            f"all started after {seen['all_started_after_ms'] / 1000:.1f} s; "
            f"calls at once {seen['most_calls']}, refused {seen['calls_refused']}; "
            f"deferrals {seen['deferrals']}, of a job {seen['most_deferrals']}; throttled: {seen['throttled']}"
        )
    elif "throttled" in seen:
        lines.append(f"longest time without a tick: {seen['longest_without_tick_s']} s; throttled: {seen['throttled']}")
    for number, minute in enumerate(seen.get("by_minute", ()), 1):
        lines.append(f"minute {number}: p50 {minute['p50_ms']} ms, p99 {minute['p99_ms']} ms")
    for title, line in zip_longest([name], lines, fillvalue=""):
        print(f"{title:48s} {line}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the real services against AWS's limits, in virtual time.")
    parser.add_argument("--jobs", type=int, default=BURST, help=f"jobs of the burst (default {BURST})")
    parser.add_argument("--minutes", type=int, default=3, help="minutes of the hour to run (default 3)")
    parser.add_argument("--per-hour", type=int, default=PER_HOUR, help=f"jobs of the hour (default {PER_HOUR})")
    parser.add_argument("--owners", type=int, default=OWNERS, help=f"users who share the load (default {OWNERS})")
    parser.add_argument("--kilobytes", type=int, default=1, help="size of a job's item, rounded up (default 1)")
    parser.add_argument("--failing", action="store_true", help="all jobs fail, and are not tried again")
    parser.add_argument("--only", choices=PARTS, help="run only one of the parts")
    processors = os.cpu_count() or 1
    parser.add_argument(
        "--processes", type=int, default=processors, help=f"scenes that run at the same time (default: the processors, here {processors})"
    )
    parser.add_argument("--record", metavar="NAME", help="write bench/results/NAME.json, from which python -m bench.pages writes the docs")
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    with ProcessPoolExecutor(options.processes, initializer=_prepare) as pool:
        started = {name: pool.submit(_run, scene) for name, scene in chosen(options)}
        for name, running in started.items():
            found[name] = running.result()
            show(name, found[name])
    wrong = [
        name
        for name, seen in found.items()
        if "ended" in seen and (seen["ended"] != seen["jobs"] or seen["early"] or seen["started_twice"] or seen.get("violations"))
    ]
    if options.record:
        write(options.record, {"arguments": " ".join(sys.argv[1:]), "scenes": found})
    for seen in found.values():
        seen.pop("series")  # too long for a line
    print(json.dumps({"scenes": found, "wrong": wrong}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
