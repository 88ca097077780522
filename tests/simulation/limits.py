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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise, zip_longest
from random import Random
from typing import Any, Literal, NamedTuple

from bench import prices
from bench.results import write
from bench.scale import SHARES
from bench.scaling import COLD_MS, FIRST, LIMIT, MORE_A_MINUTE, POLLER_HOUR
from infra.account import LEAST_ACCOUNT, USUAL
from infra.options import Options
from infra.settings import HELD, settings_for
from lab.world.clock import SimClock
from lab.world.faults import CALM, Faults, Faulty
from lab.world.hub import Hub
from lab.world.pools import SimPool, outcome
from lab.world.queues import SimWork
from lab.world.tables import LaggingJobs
from lambdas._make_way import MOST as WARMED
from lambdas._pool import THREADS, ahead
from scheduler.insight import scaling
from scheduler.insight.project import project
from scheduler.insight.provision import provision
from scheduler.insight.scale import scale
from scheduler.model import ids, lifecycle, slots
from scheduler.model.job import Delivery, Finished, Job, JobKey, Lane, Message, Result, TaskHead
from scheduler.model.named_target import NamedTarget
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.model.target_usage import UsageChange
from scheduler.model.work import WorkDelivery
from scheduler.operations.step import step
from scheduler.pipeline.execute import execute
from scheduler.pipeline.process import Process
from scheduler.pipeline.tick import tick
from scheduler.pipeline.worker import hidden_s, work
from scheduler.storage.aws import keys
from scheduler.storage.aws.batches import chunks as batches
from scheduler.storage.aws.stream import JobChange
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.counters import MemoryCounters
from scheduler.storage.memory.ordering_queues import MemoryOrderingQueues
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryLanes, MemoryLedger
from scheduler.storage.memory.targets import MemoryTargets
from scheduler.storage.memory.tasks import MemoryReceipts, MemoryTasks
from scheduler.storage.ports import Change, ChangeResult, ClaimRequest, ClaimResult, Pool, Written
from scheduler.targets.call_limit import CallLimit, Waiting, patience
from scheduler.targets.fetch_call import AHEAD_MS, unstarted
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
BATCH = 10
CONNECTIONS = 16  # of a dispatcher to SNS
PUBLISH_MS = 15  # duration of a publish call
AHEAD = 12 * slots.MINUTE  # the scene begins this long before the first instant: `scale` looks ten minutes ahead
STORED_AHEAD = slots.HORIZON  # the stream's jobs are all stored this long before their minute
EXECUTOR_GB = 1.0  # as in prod
NEVER = 10**9
IN_PROD = 100  # pollers of the one-time lane at most, in the stage prod
USAGE_BYTES, PLACE_BYTES = 150, 94  # of an item of usage without concurrency slots, and of each slot in it
AT_ONCE, LIMITED_JOBS, LIMITED_MS = 500, 5_000, 1_000  # the scene of the limit
SMALL, SMALL_TAKEN = LEAST_ACCOUNT, 4  # the scene of the account: its executions, and those of two other lanes
NOTICES, NOTICE_MS, NOTICE_EVERY_MS = 2, 1_000, 2_000  # functions that run all the time: how many, for how long, how often
REQUEST_MS, REQUEST_EVERY_MS = 90, 40  # of the API beside calls of URLs
SEND_MS = 10  # from an executor to Lambda, or back
SEEN_MS = 20  # an executor sees a result at most so much later
NOT_SENT = unstarted("busy")
FEW_CALLS = 2_000  # ... in a stage that does not know its account
MOST_DEFERRALS = 2
ACCOUNTS = (1_000, 10_000)  # of the scene of calls
SMALL_CROWD, LONG_JOBS, LONG_MS, PER_MINUTE = 2_000, 20, 5 * slots.MINUTE, 300
TOP = 10_000  # jobs a second of the scene of the top
PARTS = ("burst", "lifted", "owner", "limit", "account", "http", "hour", "top", "api")
LARGE = ("owner", "http", "top", "api")  # these are run only by name


@dataclass(frozen=True)
class Limits:
    """The limits of AWS for one account and region."""

    first: int = FIRST  # executors at once
    more_a_minute: int = MORE_A_MINUTE
    most: int = LIMIT  # of a mapping that scales by itself
    cold_ms: int = COLD_MS
    environments: int = 1_000  # new environments in ten seconds, also at once
    polls: int = 10  # polls a second of one poller
    alarm_ms: int = 90_000  # from a metric to the call of its alarm
    pollers_ms: int = 60_000  # from a change of the pollers to its effect
    sns: int = 30_000  # messages a second; us-east-1
    partition: int = 1_000  # write units a second
    account: int = NEVER  # executions of the account at once
    reserved: Mapping[str, int] = field(default_factory=dict)  # of these by function
    taken: int = 0  # of these by functions that are not in the model: all the time
    steps: int = NEVER  # of the engine at once


LIFTED: dict[str, Callable[[Limits], Limits]] = {
    "executors": lambda limits: replace(limits, first=NEVER, environments=NEVER, polls=NEVER),
    "polls": lambda limits: replace(limits, polls=NEVER),
    "cold starts": lambda limits: replace(limits, cold_ms=0),
    "SNS": lambda limits: replace(limits, sns=NEVER),
    "partitions": lambda limits: replace(limits, partition=NEVER),
}


class Allowance:
    """A rate limit of `rate` a second, of which a second's worth may come at once; further callers wait in order."""

    def __init__(self, rate: float, at_once: float | None = None) -> None:
        self._step, self._saved = 1_000 / rate, 1_000 * (1.0 if at_once is None else at_once / rate)
        self._next = float("-inf")

    def wait(self, now: int, count: int = 1) -> int:
        """Take `count` more, and return the milliseconds until they are allowed."""
        self._next = max(self._next, now - self._saved) + count * self._step
        return max(0, round(self._next) - now)


class Place(NamedTuple):
    """A partition of the table or of an index."""

    kind: Literal["table", "due", "failures"]
    partition: str


class LimitedJobs(LaggingJobs):
    """A jobs table with a write limit for each partition of the table and of its indexes. Ended jobs are deleted."""

    def __init__(self, hub: Hub, limits: Limits, waits: Counter[str], *, kilobytes: int = 1) -> None:
        super().__init__(hub, Faults(CALM, Random(1), hub), lambda before, after: None, lambda job: None)
        self._partitions: dict[Place, Allowance] = defaultdict(lambda: Allowance(limits.partition))
        self._waits, self._kilobytes = waits, kilobytes
        self.ended = 0
        self.deferrals: Counter[JobKey] = Counter()  # how often each job went back to its lane

    def keep(self, job: Job) -> None:
        """Store a job that was created before the scene."""
        self._store(None, job)

    def put(self, job: Job) -> bool:
        self._write([*self._places(None, job)])
        return super().put(job)

    def put_many(self, jobs: Sequence[Job]) -> list[Written]:
        self._write([place for job in jobs for place in self._places(None, job)])
        for job in jobs:
            self.keep(job)
        return [Written.YES] * len(jobs)

    def claim(self, requests: Sequence[ClaimRequest]) -> list[ClaimResult | None]:
        self._write([_of_table(request.key) for request in requests])
        return super().claim(requests)

    def change(self, changes: Sequence[Change]) -> list[Written]:
        self._write([place for each in changes for place in self._places(each.before, each.after)])
        done = super().change(changes)
        for each in changes:
            if each.after.fence > each.before.fence:
                self.deferrals[each.before.key] += 1
            if each.after.slot is None and self.rows.pop(each.before.key, None) is not None:
                self._placed.pop(each.before.key)
                self._there.pop("", None)
                self.ended += 1
        return done

    @staticmethod
    def _places(before: Job | None, after: Job) -> Iterator[Place]:
        """The partitions that a put or a change writes."""
        yield _of_table(after.key)
        former = before and before.slot
        yield from (Place("due", slot) for slot in (former, after.slot) if slot and former != after.slot)
        was, now = before is not None and lifecycle.state(before) in lifecycle.DEAD, lifecycle.state(after) in lifecycle.DEAD
        if was != now:
            yield Place("failures", _of_table(after.key).partition)

    def _write(self, places: Sequence[Place]) -> None:
        """Write to all places at the same time: the call ends with its slowest write."""
        now, longest = self._hub.time, 0
        for place in places:
            wait = self._partitions[place].wait(now, self._kilobytes if place.kind == "table" else 1)
            name = f"{place.kind} partitions"
            self._waits[name], longest = max(self._waits[name], wait), max(longest, wait)
        self._hub.sleep_until(now + longest)


def _of_table(key: JobKey) -> Place:
    return Place("table", keys.partition(key.owner, ids.partition(key.id)))


class LimitedTargets(MemoryTargets):
    """Named targets whose items of usage have the write limit of a partition each; a write costs a unit for each KB of its item."""

    def __init__(self, hub: Hub, limits: Limits, waits: Counter[str]) -> None:
        super().__init__()
        self._hub, self._waits = hub, waits
        self._partitions: dict[str, Allowance] = defaultdict(lambda: Allowance(limits.partition))
        self.busiest: Counter[str] = Counter()  # units written to each item

    def use(self, uses: Sequence[UsageChange]) -> list[ChangeResult]:
        stored, now, wait = self.usages([use.target for use in uses]), self._hub.time, 0
        for use in uses:
            size = USAGE_BYTES + PLACE_BYTES * (len(stored[use.target].places) if use.target in stored else 0)
            self.busiest[use.target] += -(-size // 1_024)
            wait = max(wait, self._partitions[use.target].wait(now, -(-size // 1_024)))
        self._waits["usage partitions"] = max(self._waits["usage partitions"], wait)
        self._hub.sleep_until(now + wait)
        return super().use(uses)


class LimitedLanes(MemoryLanes):
    """Queues behind an SNS topic with a rate limit."""

    def __init__(self, hub: Hub, limits: Limits, waits: Counter[str], arrived: Callable[[Lane, int], None]) -> None:
        super().__init__()
        self._hub, self._waits, self._arrived, self._random = hub, waits, arrived, Random(2)
        self._sns = Allowance(limits.sns)

    def now(self) -> int:
        return self._hub.time

    def add(self, message: Message, visible_at: int) -> None:
        super().add(message, visible_at)
        self._arrived(message.lane, max(visible_at, self._hub.time))

    def extend(self, lane: Lane, receipts: Sequence[str], seconds: int) -> set[str]:
        self._arrived(lane, self._hub.time + seconds * 1_000)
        return super().extend(lane, receipts, seconds)

    def publish(self, messages: Sequence[Message]) -> list[Message]:
        calls = -(-len(messages) // BATCH)
        wait = self._sns.wait(self._hub.time, len(messages))
        self._waits["SNS"] = max(self._waits["SNS"], wait)
        for first in range(0, len(messages), BATCH):
            arrives = self._hub.time + wait + PUBLISH_MS * (first // BATCH // CONNECTIONS + 1) + self._random.randint(5, 40)
            for message in messages[first : first + BATCH]:
                self.add(message, arrives)
        self._hub.sleep_until(self._hub.time + wait + PUBLISH_MS * -(-calls // CONNECTIONS))
        return []


@dataclass
class Executors:
    """An event source mapping and its Lambda function: the number of executors, and the polls."""

    hub: Hub
    limits: Limits
    kept: int = 0  # pollers kept ready; 0: AWS scales by itself
    most: int = 0  # executors that ran at once
    busy: int = 0
    colds: int = 0
    busy_ms: int = 0
    batches: int = 0
    poller_ms: int = 0
    by_second: Counter[int] = field(default_factory=Counter)  # the most executors that ran at once in each second
    _counted: int = 0  # the last second in `by_second`
    _since: int | None = None  # when AWS began to scale
    _idle: list[Process] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._environments = Allowance(self.limits.environments / 10, at_once=self.limits.environments)
        self._polls = Allowance(1)
        self._polled_at: tuple[int, Allowance] = (0, self._polls)

    def keep(self, pollers: int) -> None:
        """Change the pollers that are kept ready. After the last ones AWS scales from its beginning."""
        self.kept = pollers
        if not pollers:
            self._since = None

    @property
    def may(self) -> int:
        if self.kept:
            return self.kept * scaling.EXECUTORS_EACH if self.limits.first < NEVER else NEVER
        if self._since is None:
            self._since = self.hub.time
        grown = (self.hub.time - self._since) * self.limits.more_a_minute // slots.MINUTE
        return min(self.limits.first + grown, max(self.limits.most, self.limits.first))

    def poll_wait(self) -> int:
        pollers = self.kept or self.may
        if self._polled_at[0] != pollers:
            self._polled_at = (pollers, Allowance(pollers * self.limits.polls, at_once=pollers))
        return self._polled_at[1].wait(self.hub.time)

    def enter(self, make_one: Callable[[], Process]) -> tuple[Process, int]:
        """Take an environment; returns it and the milliseconds until it is ready."""
        self._change(1)
        self.batches += 1
        if self._idle:
            return self._idle.pop(), 0
        self.colds += 1
        return make_one(), self._environments.wait(self.hub.time) + self.limits.cold_ms

    def leave(self, environment: Process, began: int) -> None:
        self._change(-1)
        self.busy_ms += self.hub.time - began
        self._idle.append(environment)

    def _change(self, by: int) -> None:
        """Change the number that run. It counts in every second since the last change, too."""
        now = self.hub.time // 1_000
        for second in range(self._counted or now, now + 1):
            self.by_second[second] = max(self.by_second[second], self.busy)
        self._counted = now
        self.busy += by
        self.by_second[now] = max(self.by_second[now], self.busy)
        self.most = max(self.most, self.busy)


class Account:
    """The executions of the account. One that finds no room is throttled.

    A function with a reservation has this number of its own, and no more; all others share the rest.
    """

    def __init__(self, most: int, reserved: Mapping[str, int] | None = None) -> None:
        self._most = {**(reserved or {}), "": most - sum((reserved or {}).values())}
        self._busy: Counter[str] = Counter()
        self.most: Counter[str] = Counter()  # at once, by reservation

    @contextmanager
    def execution(self, function: str = "") -> Iterator[bool]:
        """Take one while the block runs; yields whether there is room for it."""
        fits = self.take(function)
        try:
            yield fits
        finally:
            if fits:
                self.leave(function)

    def take(self, function: str) -> bool:
        """Take one if there is room."""
        pool = function if function in self._most else ""
        if self._busy[pool] >= self._most[pool]:
            return False
        self._busy[pool] += 1
        self.most[pool] = max(self.most[pool], self._busy[pool])
        return True

    def leave(self, function: str) -> None:
        self._busy[function if function in self._most else ""] -= 1

    @property
    def is_full(self) -> bool:
        return self._busy[""] >= self._most[""]


class Fetch:
    """The function that calls URLs: its environments, each with a cold start, and how fast Lambda makes them."""

    def __init__(self, hub: Hub, limits: Limits, account: Account) -> None:
        self._hub, self._limits, self._account = hub, limits, account
        self._idle, self._new, self._new_at = 0, float(limits.environments), hub.time
        self.busy = self.most = self.colds = self.calls = self.refused = self.busy_ms = 0

    def begin(self) -> int | None:
        """Begin an invocation; returns the milliseconds until its environment is ready, or None if Lambda refuses it."""
        now, self.calls = self._hub.time, self.calls + 1
        self._new = min(self._new + (now - self._new_at) * self._limits.environments / 10_000, float(self._limits.environments))
        self._new_at = now
        if (not self._idle and self._new < 1) or not self._account.take("fetch"):
            self.refused += 1
            return None
        self.busy += 1
        self.most = max(self.most, self.busy)
        if self._idle:
            self._idle -= 1
            return 0
        self._new, self.colds = self._new - 1, self.colds + 1
        return self._limits.cold_ms

    def end(self, began: int) -> None:
        """End the invocation that began at `began`."""
        self._account.leave("fetch")
        self.busy, self._idle, self.busy_ms = self.busy - 1, self._idle + 1, self.busy_ms + self._hub.time - began


class HttpPool:
    """The pool of an executor whose jobs call URLs by `fetch`: each waits for its place in the executor's real `CallLimit`.

    The executor sees a result up to `SEEN_MS` after it came.
    """

    def __init__(self, hub: Hub, fetch: Fetch, limit: CallLimit, started: Callable[[Job, int], None]) -> None:
        self._hub, self._fetch, self._limit, self._started = hub, fetch, limit, started
        self._running = 0
        self._done: list[Finished] = []

    def has_room(self, job: Job) -> bool:
        return True

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        self._running += 1
        until = self._hub.time + patience(job.fence - 1, job.spec.timeout_ms)
        waiting = Waiting(lambda: self._send(job, waiting), lambda: self._finish(job, self._hub.time, self._hub.time, NOT_SENT), until)
        self._limit.add(waiting)

    def warm(self) -> None:
        """Start an environment ahead (`lambdas._make_way`)."""
        if self._limit.take():
            self._hub.at(self._hub.time + SEND_MS, self._warmed)

    def wait(self, until: int) -> list[Finished]:
        while not self._done and self._hub.time < until:
            self._limit.look()
            self._hub.sleep_until(min(self._hub.time + SEEN_MS, until) if self._running else until)
        done, self._done = self._done, []
        self._running -= len(done)
        return done

    def cancel(self, job: Job) -> None:
        raise NotImplementedError("nobody cancels a job of these scenes")

    def kill(self, job: Job) -> None:
        raise NotImplementedError("as above")

    def stop(self) -> None:
        raise NotImplementedError("no lease is lost in these scenes")

    def _send(self, job: Job, waiting: Waiting) -> None:
        self._hub.at(self._hub.time + SEND_MS, lambda: self._arrive(job, waiting))

    def _arrive(self, job: Job, waiting: Waiting) -> None:
        arrived, ready_in = self._hub.time, self._fetch.begin()
        if ready_in is None:
            self._hub.at(arrived + SEND_MS, lambda: self._refused(waiting))
            return
        begins = max(job.due_at, arrived + ready_in)
        ends = begins + int(job.spec.payload["takes"])
        self._hub.at(begins, lambda: self._started(job, begins))
        self._hub.at(ends, lambda: self._fetch.end(arrived))
        self._hub.at(ends + SEND_MS, lambda: self._answered(job, begins, ends))

    def _refused(self, waiting: Waiting) -> None:
        self._limit.refused()
        self._limit.add(waiting, again=True)

    def _answered(self, job: Job, began: int, ended: int) -> None:
        self._limit.answered()
        self._finish(job, began, ended, outcome(job, ended - began))

    def _finish(self, job: Job, began: int, ended: int, what: Result) -> None:
        self._done.append(Finished(job, began, ended, what))

    def _warmed(self) -> None:
        arrived, ready_in = self._hub.time, self._fetch.begin()
        if ready_in is None:
            self._hub.at(arrived + SEND_MS, self._limit.refused)
            return
        self._hub.at(arrived + ready_in, lambda: self._fetch.end(arrived))
        self._hub.at(arrived + ready_in + SEND_MS, self._limit.answered)


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
        self.executors = Executors(self.hub, limits)
        self.account = Account(limits.account - limits.taken, limits.reserved)
        self.fetch = Fetch(self.hub, limits, self.account)
        self._limits: dict[int, CallLimit] = {}  # by executor
        self.steps = 0
        self.throttled: Counter[str] = Counter()  # executions that found no room, by function
        self.ticks = array("q")  # when they ran
        self.kept = self.most_kept = 0  # pollers as they were set last, and the most
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
            done = work(delivery, self.ports, operation=step)
            self.steps -= 1
        if done.next_at is None:
            self.work.delete(delivery.receipt)
        else:
            self.work.hide(delivery.receipt, hidden_s(done.next_at, self.hub.time))

    def _scale(self) -> None:
        rang, self.rings = self.rings, scale(self.ports, random=0).required > scaling.FOLLOWED
        if self.rings and not rang:  # an alarm calls only when it begins to ring
            self.hub.spawn(self._provision, self.hub.time + self.limits.alarm_ms)
        self.executors.poller_ms += self.kept * slots.MINUTE

    def _provision(self) -> None:
        provision(self.ports)

    def pollers(self, lane: Lane) -> int:
        return self.kept

    def keep_pollers(self, lane: Lane, count: int) -> None:
        self.kept, self.most_kept = count, max(self.most_kept, count)
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
        environment, ready_in = self.executors.enter(self._environment)
        self.hub.sleep_until(began + ready_in)
        for item in batch:
            self._way |= {single.key: (single.sent_at, began) for single in item.message.singles()}
        pool = self._pool(environment, batch)
        left = execute(Lane.ONE_TIME, batch, self.ports, environment, pool=pool, request_id=f"r{self.executors.batches}")
        for item in batch:
            if item.message_id not in left:
                self.lanes.delete(Lane.ONE_TIME, item.receipt)
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
        "executors": executors.busy_ms / 1_000 * EXECUTOR_GB * prices.GB_SECOND + executors.batches * prices.INVOCATION,
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
        "pollers_at_the_end": scene.kept,
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
    return Rules(shards=shards, units=UNITS, windows=windows, crowds={Lane.ONE_TIME: executors * HELD})


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
