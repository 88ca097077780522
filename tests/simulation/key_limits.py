"""Jobs with limits of keys in a world without faults, or with one crash. The oracles:

    idle_key            a key stood idle for `IDLE_MS` longer than its limit explains, while a job of it waited
    start_wasted        jobs that wait for a key used up the starts of their target
    left_of_key         a queue, or a record that does not expire within a day, is left of a key that is idle
    claimed_in_queue    as in `queues`
    more_at_once, above_rate    as in `limited`

The scenes: many keys with a crowd each at one instant, beside jobs without a limit; rates; a limit that is raised or lowered; call-backs;
jobs with two limits.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Self

from scheduler.admission import key_limits
from scheduler.model import lifecycle
from scheduler.model.job import Job
from scheduler.model.limiter import name_of
from scheduler.model.spec import CallBack, Limit
from scheduler.model.target_queue import QUEUE_PARTS
from scheduler.model.work import WorkKind
from tests.simulation.queues import DUE, Crashing
from tests.simulation.world import START

IDLE_MS = 4_000  # messages of steps are delayed by whole seconds
DAY_MS = 86_400_000
OWNER = "crowd"
PLAIN = "plain"  # the owner of jobs without a limit


class KeysWorld(Crashing):
    """A world whose jobs have limits of keys; one invocation dies after its effect number `fatal`."""

    def __init__(self, seed: int, keys: Mapping[str, Limit], fatal: int = -1, executors: int = 20, **target: Any) -> None:
        self._full_since: dict[str, int] = {}
        self._waits_since: dict[str, int] = {}
        self.steps = 0
        self.idle_ms = IDLE_MS
        super().__init__(seed, fatal, **target)
        self._concurrency = executors
        self.limited.keys = dict(keys)
        self.delays: dict[str, list[int]] = defaultdict(list)

    def change_limit(self, limit: Limit, at: int) -> None:
        """Let a change of a job set another limit for its key."""

        def change() -> None:
            key_limits.check(key_limits.Claim(OWNER, limit, changes=True), self._ports(), self.hub.time)
            self.limited.keys[limit.key] = limit
            self._changed_at = self.hub.time

        self.hub.spawn(change, at)

    def crowd(self, key: str, count: int, due: int = DUE, takes: int = 100, **spec: Any) -> None:
        self.post(OWNER, count, START + 1_000, due, takes, limit=self.limited.keys[key], **spec)

    def go(self, minutes: int) -> Self:
        super().go(minutes)
        for part in range(QUEUE_PARTS):
            for queue, _ in self.limited.store.queues(part):
                self._violation("left_of_key", f"the queue {queue.target}")
        names = [name_of(OWNER, key) for key in self.limited.keys]
        for name, usage in self.limited.store.usages(names).items():
            if usage.places or usage.queued_until > self.hub.time or not 0 < usage.expires <= self.hub.time + DAY_MS:
                self._violation("left_of_key", f"the record {name}")
        return self

    @property
    def left(self) -> int:
        """The number of jobs that have not ended."""
        return sum(lifecycle.is_open(job) for job in self.jobs.rows.values())

    def _step(self, delivery: Any) -> None:
        self.steps += delivery.item.kind is WorkKind.RELEASE
        super()._step(delivery)

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        self.delays[job.owner].append(now - job.due_at)

    def _look(self) -> None:
        """Check whether a key stands idle while a job of it waits."""
        now = self.hub.time
        waiting = {
            f"{job.owner}/{job.spec.limit.key}"
            for job in self.jobs.rows.values()
            if job.spec.limit is not None and lifecycle.is_open(job) and job.claim is None and job.due_at < now
        }
        self._waits_since = {name: self._waits_since.get(name, now) for name in waiting}
        for name, since in self._waits_since.items():
            limit = self.limited.keys[name.partition("/")[2]]
            if limit.concurrency is not None and self.limited.at_work(name) >= limit.concurrency:
                self._full_since[name] = now
            step_ms = 0 if limit.rate is None else limit.period_ms // limit.rate
            idle_since = max(since, self._full_since.get(name, 0), self.limited.last_start(name), self._changed_at)
            if now - idle_since >= step_ms + self.idle_ms:
                self._violation("idle_key", f"{name} at {now - START}")


def many(keys: int = 200, *, limited: bool = True) -> KeysWorld:
    """Many keys, each with 20 jobs of one instant, beside a job without a limit every 200 ms."""
    world = KeysWorld(1, {f"k{number}": Limit(f"k{number}", 2) for number in range(keys)}, executors=keys // 5)
    for key in world.limited.keys:
        world.post(OWNER, 20, START + 1_000, DUE, 100, limit=world.limited.keys[key] if limited else None)
    for number in range(600):
        world.post(PLAIN, 1, START + 1_500, DUE - 30_000 + number * 200, 20)
    world.idle_ms = 120_000  # the executors are busy
    return world.go(12)


def quick(seed: int) -> KeysWorld:
    world = KeysWorld(seed, {"k": Limit("k", 2)})
    world.crowd("k", 300, takes=50)
    return world.go(14)


def long_jobs(seed: int) -> KeysWorld:
    world = KeysWorld(seed, {"k": Limit("k", 2)})
    world.crowd("k", 20, takes=20_000)
    return world.go(14)


def even(seed: int) -> KeysWorld:
    world = KeysWorld(seed, {"k": Limit("k", None, 10, 60_000)})
    world.crowd("k", 100)
    return world.go(20)


def both(seed: int) -> KeysWorld:
    world = KeysWorld(seed, {"k": Limit("k", 1, 20, 60_000)})
    world.crowd("k", 40, takes=5_000)
    return world.go(14)


def raised(seed: int) -> KeysWorld:
    world = KeysWorld(seed, {"k": Limit("k", 1)})
    world.crowd("k", 100, takes=10_000)
    world.change_limit(Limit("k", 5), DUE + 60_000)
    return world.go(14)


def lowered(seed: int) -> KeysWorld:
    """More jobs run than the lower limit allows, until these end."""
    world = KeysWorld(seed, {"k": Limit("k", 5)})
    world.crowd("k", 40, takes=10_000)
    world.change_limit(Limit("k", 1), DUE + 15_000)
    return world.go(14)


def reporting(seed: int) -> KeysWorld:
    world = KeysWorld(seed, {"k": Limit("k", 2)})
    world.crowd("k", 30, takes=100, callback=CallBack(10_000, 120_000))
    return world.go(20)


def two_limits(seed: int) -> KeysWorld:
    """Jobs of a limited target, of which the first ones have the limit of a key that is full for long."""
    world = KeysWorld(seed, {"k": Limit("k", 1)}, rate=2.0)
    world.crowd("k", 40, takes=5_000, target="inv")
    world.post("others", 60, START + 1_200, DUE, 50, target="inv")
    world.go(14)
    if max(world.delays["others"]) > 40_000:
        world._violation("start_wasted", "jobs that wait for the key used starts of the target")
    return world


def crashed(fatal: int, limit: Limit) -> KeysWorld:
    world = KeysWorld(1, {"k": limit}, fatal)
    world.crowd("k", 30, DUE + 100, 300)
    return world.go(40)


SCENES: tuple[Callable[[int], KeysWorld], ...] = (quick, long_jobs, even, both, raised, lowered, reporting, two_limits)
