"""The limits of AWS for one account and region, as layers of the world: rates of partitions and of the topic, executors, executions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Generic, Literal, NamedTuple, TypeVar

from lab.world.calls import CALLS, ROUND_MS
from lab.world.faults import CALM, Faults
from lab.world.hub import Hub
from lab.world.pools import outcome
from lab.world.tables import LaggingJobs
from scheduler.insight import scaling
from scheduler.model import ids, lifecycle, slots
from scheduler.model.job import Finished, Job, JobKey, Lane, Message, Result, TaskHead
from scheduler.model.target_usage import UsageChange
from scheduler.storage.aws import keys
from scheduler.storage.memory.stores import MemoryLanes
from scheduler.storage.memory.targets import MemoryTargets
from scheduler.storage.ports import Change, ChangeResult, ClaimRequest, ClaimResult, Written
from scheduler.targets.call_limit import CallLimit, Waiting, patience
from scheduler.targets.fetch_call import unstarted

# The cold start is computed, not measured on AWS: 0.15 to 0.3 s for the environment with its code, 0.8 s for imports without bytecode,
# 0.2 to 0.4 s for clients made in the first invocation, 0.1 s for the first lease and claim: 1.3 to 1.8 s. With bytecode, and clients
# made before the first invocation, about 0.7 s are left by the same reckoning. The models keep the longer one until it is measured.
COLD_MS = 1_500
FIRST, MORE_A_MINUTE, LIMIT = 5, 300, 1_250  # executors of a queue that AWS scales by itself
POLLER_HOUR = 0.00925  # dollars
BATCH, SIDE_BY_SIDE = CALLS["publish"]
PUBLISH_MS = ROUND_MS["publish"]
NEVER = 10**9
USAGE_BYTES, PLACE_BYTES = 150, 94  # of an item of usage without concurrency slots, and of each slot in it
SEND_MS = 10  # from an executor to Lambda, or back
SEEN_MS = 20  # an executor sees a result at most so much later
NOT_SENT = unstarted("busy")
Process = TypeVar("Process")


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


class Allowance:
    """A rate limit of `rate` a second, of which a second's worth may come at once; further callers wait in order."""

    def __init__(self, rate: float, at_once: float | None = None) -> None:
        self._step, self._saved = 1_000 / rate, 1_000 * (1.0 if at_once is None else at_once / rate)
        self._next = float("-inf")

    def wait(self, now: int, count: int = 1) -> int:
        """Take `count` more, and return the milliseconds until they are allowed."""
        self._next = max(self._next, now - self._saved) + count * self._step
        return max(0, round(self._next) - now)


class Bucket:
    """A rate limit of `rate` a second, of which `most` may come at once; what does not fit is refused."""

    def __init__(self, rate: float, most: float, at: int = 0) -> None:
        self._rate, self._most, self._left, self._at = rate, most, most, at

    def has(self, now: int) -> bool:
        """Whether one more is allowed."""
        self._left, self._at = min(self._most, self._left + (now - self._at) / 1_000 * self._rate), now
        return self._left >= 1

    def take(self, now: int) -> bool:
        """Take one if it is allowed."""
        fits = self.has(now)
        self._left -= fits
        return fits


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
            arrives = self._hub.time + wait + PUBLISH_MS * (first // BATCH // SIDE_BY_SIDE + 1) + self._random.randint(5, 40)
            for message in messages[first : first + BATCH]:
                self.add(message, arrives)
        self._hub.sleep_until(self._hub.time + wait + PUBLISH_MS * -(-calls // SIDE_BY_SIDE))
        return []


class Environments(Generic[Process]):
    """The environments of a function, each with a cold start. Lambda makes new ones at a limited rate: further ones wait for it."""

    def __init__(self, hub: Hub, limits: Limits, make: Callable[[], Process]) -> None:
        self.hub, self.limits, self._make = hub, limits, make
        self.busy = self.most = self.colds = self.calls = self.busy_ms = 0  # `most` that were busy at once
        self._idle: list[Process] = []
        self._new = Allowance(limits.environments / 10, at_once=limits.environments)

    def enter(self) -> tuple[Process, int]:
        """Take an environment; returns it and the milliseconds until it is ready."""
        self._change(1)
        self.calls += 1
        if self._idle:
            return self._idle.pop(), 0
        self.colds += 1
        return self._make(), self._made_in() + self.limits.cold_ms

    def _made_in(self) -> int:
        """Begin to make a new environment, and return the milliseconds until Lambda does so."""
        return self._new.wait(self.hub.time)

    def leave(self, environment: Process, began: int) -> None:
        """Give it back after an invocation that began at `began`."""
        self._change(-1)
        self.busy_ms += self.hub.time - began
        self._idle.append(environment)

    def _change(self, by: int) -> None:
        self.busy += by
        self.most = max(self.most, self.busy)


class Executors(Environments[Process]):
    """An event source mapping and its Lambda function: the number of executors, and the polls."""

    def __init__(self, hub: Hub, limits: Limits, make: Callable[[], Process]) -> None:
        super().__init__(hub, limits, make)
        self.pollers_ready = 0  # pollers kept ready; 0: AWS scales by itself
        self.poller_ms = 0
        self.by_second = Counter[int]()  # the most executors that ran at once in each second
        self._counted = 0  # the last second in `by_second`
        self._since: int | None = None  # when AWS began to scale
        self._polls = 0, Allowance(1)  # of the last number of pollers

    def keep(self, pollers: int) -> None:
        """Change the pollers that are kept ready. After the last ones AWS scales from its beginning."""
        self.pollers_ready = pollers
        if not pollers:
            self._since = None

    @property
    def may(self) -> int:
        if self.pollers_ready:
            return self.pollers_ready * scaling.EXECUTORS_EACH if self.limits.first < NEVER else NEVER
        if self._since is None:
            self._since = self.hub.time
        grown = (self.hub.time - self._since) * self.limits.more_a_minute // slots.MINUTE
        return min(self.limits.first + grown, max(self.limits.most, self.limits.first))

    def poll_wait(self) -> int:
        pollers = self.pollers_ready or self.may
        if self._polls[0] != pollers:
            self._polls = (pollers, Allowance(pollers * self.limits.polls, at_once=pollers))
        return self._polls[1].wait(self.hub.time)

    def _change(self, by: int) -> None:
        """Change the number that run. It counts in every second since the last change, too."""
        now = self.hub.time // 1_000
        for second in range(self._counted or now, now + 1):
            self.by_second[second] = max(self.by_second[second], self.busy)
        self._counted = now
        super()._change(by)
        self.by_second[now] = max(self.by_second[now], self.busy)


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


class Fetch(Environments[None]):
    """The function that calls URLs. Lambda refuses what needs a new environment beyond the rate, or is over the account."""

    def __init__(self, hub: Hub, limits: Limits, account: Account) -> None:
        super().__init__(hub, limits, lambda: None)
        self._account, self.refused = account, 0
        self._bucket = Bucket(limits.environments / 10, limits.environments, hub.time)

    def begin(self) -> int | None:
        """Begin an invocation; returns the milliseconds until its environment is ready, or None if Lambda refuses it."""
        if (not self._bucket.has(self.hub.time) and not self._idle) or not self._account.take("fetch"):
            self.calls, self.refused = self.calls + 1, self.refused + 1
            return None
        _, ready_in = self.enter()
        return ready_in

    def _made_in(self) -> int:
        self._bucket.take(self.hub.time)
        return 0

    def end(self, began: int) -> None:
        """End the invocation that began at `began`."""
        self._account.leave("fetch")
        self.leave(None, began)


class HttpPool:
    """The pool of an executor whose jobs call URLs by `fetch`: each waits for its place in the executor's real `CallLimit`.

    The executor sees a result up to `SEEN_MS` after it came.
    """

    def __init__(self, hub: Hub, fetch: Fetch, limit: CallLimit, started: Callable[[Job, int], None]) -> None:
        self._hub, self._fetch, self._limit, self._started = hub, fetch, limit, started
        self._running = 0
        self._done: list[Finished] = []

    def intent(self, job: Job, task: object) -> None:
        """No job of it waits for work in AWS."""

    def has_room(self, job: Job) -> bool:
        return True

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        self._running += 1
        until = self._hub.time + patience(job.fence - 1, job.spec.timeout_ms)
        waiting = Waiting(lambda: self._send(job, waiting), lambda: self._finish(job, self._hub.time, self._hub.time, NOT_SENT), until)
        self._limit.add(waiting)

    def warm(self) -> None:
        """Start an environment ahead (`lambdas._fetch_warmer`)."""
        if self._limit.take():
            self._hub.at(self._hub.time + SEND_MS, self._warmed)

    def wait(self, until: int) -> list[Finished]:
        while not self._done and self._hub.time < until:
            self._limit.check()
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
