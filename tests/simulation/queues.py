"""Long queues in a world without faults: jobs that wait for a limited target, and jobs of one ordering key. The oracles:

    idle_target         a limited target stood idle for `IDLE_MS` longer than its limits explain, while a job for it was due
    waited_beside       a job of a user without a backlog waited longer than a step of the rate, or an end, and `BESIDE_MS`
    claimed_in_queue    a job was claimed more than `CLAIMS` times although none of its attempts failed
    more_at_once        as in `limited`

The scenes: a backlog that waits, is cancelled or expires; a limit that is raised or removed; slots that are kept until a call-back.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self

from lab.world.faults import Rates
from lab.world.hub import Killed
from lab.world.layers import Layer
from scheduler.model import lifecycle, operation, slots
from scheduler.model.job import Job, JobKey, Outcome
from scheduler.model.named_target import NamedTarget
from scheduler.model.operation import Action, Filter
from scheduler.model.rules import Rules
from scheduler.model.spec import CallBack, JobSpec, Ordering
from scheduler.operations import requests
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.submit import NewJob, Submission, submit_all
from tests.simulation.oracles import Counted
from tests.simulation.stepped import SteppedWorld
from tests.simulation.world import START

IDLE_MS = 3_000  # a release step comes every second or two, and a message takes some time
BESIDE_MS = 2_000
CLAIMS = 4
BACKLOG = 300
DUE, ACT, BESIDE = START + 60_000, START + 120_000, START + 180_000  # of the backlog, of what happens to it, and of the other user's job


class QueuesWorld(SteppedWorld):
    """A world with one target, `inv`, whose limits are `limit`."""

    def __init__(self, seed: int, **limit: Any) -> None:
        self.claims: Counter[JobKey] = Counter()
        super().__init__(seed, Rates(lag_ms=300), rules=Rules(shards=2), concurrency=20)
        self.processes = [DirectPath(self.plain)]
        self._posted = self._full_at = 0
        self.limited.targets = dict(self.limited.targets)  # the limit of this world alone changes
        self.set_limit(**limit)

    def _wrap(self, name: str, port: Any) -> Any:
        port = super()._wrap(name, port)
        return Counted(name, port, Counter(), self._claimed) if name == "jobs" else port

    def _claimed(self, keys: Sequence[JobKey]) -> None:
        """Count the claims of jobs, without the checks of leases of jobs that wait for their call-back."""
        found = self.jobs.rows
        self.claims.update(key for key in keys if key not in found or not lifecycle.waits(found[key]))

    def set_limit(self, **limit: Any) -> None:
        """Change the target, as an administrator does."""
        target = NamedTarget("inv", "log", 0, 0, "ada", "ada", **limit)
        self.limited.targets["inv"] = self.limited.store.rows["inv"] = target
        self._changed_at = self.hub.time

    def post(self, owner: str, count: int, at: int, due: int, takes: int = 1, *, expires: int | None = None, **spec: Any) -> None:
        payload = {"takes": takes, "fails": 0}
        made = NewJob(owner, JobSpec("log", payload, timeout_ms=300_000, **spec), due, expires_at=expires)

        def call() -> None:
            asked = [Submission(made, self._posted + number) for number in range(1, count + 1)]
            self._posted += count
            submit_all(asked, self._ports(), direct=self._direct())

        self.hub.spawn(call, at)

    def cancel(self, owner: str, at: int) -> None:
        """Cancel all jobs of the owner."""
        self.hub.spawn(
            lambda: requests.start(operation.new(owner, at, 1, Action.CANCEL_JOBS, Filter(type="log"), rate=1_000), self._ports()), at
        )

    def go(self, minutes: int) -> Self:
        end = START + minutes * slots.MINUTE
        self._schedule(self._tick, end)
        for at in range(DUE, end, 1_000):
            self.hub.at(at, self._look)
        self.hub.run(end)
        for key, claims in self.claims.items():
            job = self.jobs.rows[key]
            if claims > CLAIMS and all(each.outcome is Outcome.SUCCEEDED for each in job.attempts):
                self._violation("claimed_in_queue", f"{key.id} claimed {claims} times")
        for job in self.jobs.rows.values():
            if job.owner == "beside" and lifecycle.is_open(job):
                self._violation("waited_beside", f"{job.id} for ever")
        return self

    def _look(self) -> None:
        """Check whether the target stands idle while a job for it is due."""
        limit, now = self.limited.targets["inv"], self.hub.time
        step_ms = 0 if limit.rate is None else round(1_000 / limit.rate)
        if now - max(self.limited.last_start("inv"), self._free_since(limit), self._changed_at) < step_ms + IDLE_MS:
            return
        waiting = (job for job in self.jobs.rows.values() if job.spec.target == "inv" and lifecycle.is_open(job) and job.claim is None)
        if any(job.due_at < now - step_ms - IDLE_MS and (job.start_by or now + 1) > now for job in waiting):
            self._violation("idle_target", f"at {now - START}")

    def _free_since(self, limit: NamedTarget) -> int:
        """Return since when fewer jobs run than may; now, if none is free."""
        if limit.concurrency is not None and self.limited.at_work("inv") >= limit.concurrency:
            self._full_at = self.hub.time
        return self._full_at

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        limit = self.limited.targets["inv"]
        step_ms = 0 if limit.rate is None else round(1_000 / limit.rate)
        longest = step_ms + BESIDE_MS + (0 if limit.concurrency is None else int(job.spec.payload["takes"]))
        if job.owner == "beside" and now - job.due_at > longest:
            self._violation("waited_beside", f"{job.id} by {now - job.due_at} ms")


def _backlog(seed: int, then: Callable[[QueuesWorld], object], *, takes: int = 1, expires: int | None = None, **limit: Any) -> QueuesWorld:
    """A user has a backlog, something happens to it, and later another user has one job."""
    world = QueuesWorld(seed, **limit)
    world.post("crowd", BACKLOG, START + 1_000, DUE, takes, expires=expires, target="inv")
    then(world)
    world.post("beside", 1, START + 2_000, BESIDE + seed * 317, takes, target="inv")
    return world.go(6)


def waiting(seed: int) -> QueuesWorld:
    return _backlog(seed, lambda world: None, rate=0.4)


def cancelled(seed: int) -> QueuesWorld:
    return _backlog(seed, lambda world: world.cancel("crowd", ACT), rate=0.5)


def expired(seed: int) -> QueuesWorld:
    """The user of the expired backlog has one more job, which does not expire."""
    return _backlog(seed, lambda world: world.post("crowd", 1, START + 1_500, ACT, target="inv"), expires=ACT, rate=1.0)


def raised(seed: int) -> QueuesWorld:
    return _backlog(seed, lambda world: world.hub.at(ACT, lambda: world.set_limit(rate=20.0)), rate=0.2)


def removed(seed: int) -> QueuesWorld:
    return _backlog(seed, lambda world: world.hub.at(ACT, world.set_limit), rate=0.2)


def one_at_once(seed: int) -> QueuesWorld:
    return _backlog(seed, lambda world: None, takes=700, concurrency=1)


def long_jobs(seed: int) -> QueuesWorld:
    return _backlog(seed, lambda world: world.hub.at(ACT, lambda: world.set_limit(concurrency=4)), takes=20_000, concurrency=2)


def reporting(seed: int) -> QueuesWorld:
    """Jobs that report by call-back use the slots of a target."""
    world = QueuesWorld(seed, concurrency=2)
    world.post("crowd", 30, START + 1_000, DUE, 100, target="inv", callback=CallBack(10_000, 120_000))
    return world.go(10)


def ordered(seed: int) -> QueuesWorld:
    """Many jobs of one ordering key are due at one instant."""
    world = QueuesWorld(seed)
    world.post("crowd", BACKLOG, START + 1_000, DUE, 5_000, ordering=Ordering("key"))
    return world.go(27)


class Crashing(QueuesWorld):
    """A world in which the invocation of one effect on the target queue, the lanes or the work queue ends just after it."""

    EFFECTS = ("use", "use_together", "join_queue", "change_queue", "note_queue_user", "drop_queue_user", "drop_queue", "send")

    def __init__(self, seed: int, fatal: int, **limit: Any) -> None:
        self._fatal, self.effects = fatal, 0
        super().__init__(seed, **limit)

    def _wrap(self, name: str, port: Any) -> Any:
        port = super()._wrap(name, port)
        return _Fatal(port, self._effect) if name in ("targets", "lanes", "work") else port

    def _effect(self, name: str) -> None:
        self.effects += name in self.EFFECTS and self.hub.time > DUE
        if self.effects == self._fatal and name in self.EFFECTS:
            self.effects += 1
            raise Killed


class _Fatal(Layer):
    """A port that reports its effects."""

    def __init__(self, port: Any, done: Callable[[str], None]) -> None:
        super().__init__(port)
        self._done = done

    def around(self, name: str, effect: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            answer = effect(*args, **more)
            self._done(name)
            return answer

        return call


def crashed(fatal: int, **limit: Any) -> Crashing:
    """An executor or a release step ends after this effect."""
    world = Crashing(1, fatal, **limit)
    world.post("crowd", 30, START + 1_000, DUE + 100, 300, target="inv")
    world.go(14)
    return world


SCENES = (waiting, cancelled, expired, raised, removed, one_at_once, long_jobs, reporting, ordered)
