"""Users who put, cancel and find jobs by keys of their own in a simulated world, often several at one key at once; and their oracles.

two_open_of_a_key     a job took a key from a job that had not ended, and had not started
followed_unasked      a job took a key from a job that goes on, though its put did not ask for that
put_again             a repeated put made a job beside or after its own one, which had the key
redriven_beside       a job was redriven while the job that had its key had not ended
put_run_twice         one attempt of the content of a put started twice, or as two jobs, though the put was sent once
put_lost              a put was answered, but its content or its time was never stored
key_forgotten         no job was found by a key that had one
answered_wrong        an answer names a job that the key did not have during the call
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from lab.world.faults import CALM, Rates
from lab.world.hub import Hub
from scheduler.jobs.by_key import (
    SINGLETON,
    OnConflict,
    OnStarted,
    Put,
    PutOutcome,
    PutRules,
    cancel_by_key,
    debounce,
    find_by_key,
    put,
    throttle,
)
from scheduler.model import ids, lifecycle, slots
from scheduler.model.errors import Conflict, Invalid, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, OwnKey
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec, Ordering
from scheduler.pipeline.submit import NewJob
from scheduler.storage.memory.stores import MemoryJobs
from scheduler.storage.ports import Ports
from tests.simulation.world import START, Report, World

OWNER = "namer"
TAKES = (1, 1, 20, 500, 4_000, 20_000)
TOGETHER = (1, 1, 2, 8)  # users who use one key at the same moment
ACTS = ("put",) * 6 + ("cancel", "find")
AHEAD_MS = (0, 0, 1_000, 1_500, 3_000, 30_000, 200_000, 400_000, 900_000)
RULES = (*[PutRules(rule, started) for rule in OnConflict for started in (OnStarted.REFUSE, OnStarted.REFUSE, OnStarted.FOLLOW)],)
NAMED_RULES = (debounce(None), debounce(2_500), debounce(2_500), throttle(5_000), throttle(20_000), SINGLETON)
BURST = 12  # puts by a debounce, one after the other, so that they come while an executor waits with the job
BETWEEN_MS = (50, 300, 300, 700)
TRIES = 4  # of a put without an answer
AGAIN_MS = (10, 500, 5_000)
LOST = 0.15  # share of answers of puts that their users never see


@dataclass
class Namers:
    """Uses a few keys, and checks their promises."""

    hub: Hub
    random: Random
    ports: Callable[[], Ports]
    jobs: MemoryJobs
    accept: Callable[[Job], None]
    cancelled: Callable[[JobKey], None]
    violation: Callable[[str, str], None]
    puts: int = 0
    outcomes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _begun: set[JobKey] = field(default_factory=set)  # jobs that were claimed at least once
    _had: dict[OwnKey, list[tuple[int, JobKey]]] = field(
        default_factory=lambda: defaultdict(list)
    )  # the jobs of each key, with their times
    _contents: dict[int, JobKey] = field(default_factory=dict)  # by the number of the put
    _times: set[tuple[JobKey, int]] = field(default_factory=set)
    _follows: set[int] = field(default_factory=set)  # the numbers of puts that ask for a follower
    _longest: dict[int, int] = field(default_factory=dict)  # the longest wait of puts that have one, by their numbers
    _repeated: set[int] = field(default_factory=set)  # the numbers of puts that were sent again: others may have come in between
    _ran: dict[int, tuple[JobKey, int]] = field(default_factory=dict)  # the last attempt that started of the content of each put

    # actions

    def plan_uses(self, count: int, start: int, end: int) -> None:
        """Let users put, cancel and find jobs `count` times, at a few keys."""
        keys = [OwnKey(OWNER, f"key {number}") for number in range(max(2, count // 40))]
        while count > 0:
            together, own, at = min(self.random.choice(TOGETHER), count), self.random.choice(keys), self.random.randint(start, end - 1)
            for _ in range(together):
                act = {"put": self._put, "cancel": self._cancel, "find": self._find}[self.random.choice(ACTS)]
                self.hub.spawn(lambda act=act, own=own: act(own), at + self.random.choice((0, 0, 1, 5)))  # type: ignore[misc]
            count -= together
            if self.random.random() < 0.1:
                self._plan_burst(own, at)

    def _plan_burst(self, own: OwnKey, at: int) -> None:
        rules, apart = self.random.choice(NAMED_RULES), self.random.choice(BETWEEN_MS)
        for number in range(BURST):
            self.hub.spawn(lambda: self._put(own, rules, 1_000), at + number * apart)

    def _put(self, own: OwnKey, rules: PutRules | None = None, ahead: int | None = None) -> None:
        self.puts += 1
        rules = rules or self.random.choice(RULES)
        if rules.on_started is OnStarted.FOLLOW:
            self._follows.add(self.puts)
        if rules.max_wait_ms is not None:
            self._longest[self.puts] = rules.max_wait_ms
        payload = {"takes": self.random.choice(TAKES), "fails": self.random.choice((0, 0, 0, 1, 5)), "put": self.puts}
        ordering = Ordering("line of namers") if own.key.endswith("3") else None
        spec = JobSpec("log", payload, timeout_ms=60_000, key=own.key, ordering=ordering)
        new = NewJob(own.owner, spec, delay_ms=ahead or self.random.choice(AHEAD_MS), put_by=str(self.puts))
        self._try_put(new, rules, self.random.getrandbits(ids.RANDOM_BITS), TRIES)

    def _try_put(self, new: NewJob, rules: PutRules, random: int, tries: int) -> None:
        """Put, and again later if there is no answer: a put may be repeated."""
        began, number = self.hub.time, new.spec.payload["put"]
        if tries < TRIES:
            self._repeated.add(number)
        try:
            done = put(new, self.ports(), random=random, rules=rules)
        except Conflict:
            self.outcomes["refused"] += 1
        except Invalid:
            self.violation("answered_wrong", f"put {number}")
        except Unavailable:
            if tries > 1:
                again = self.random.getrandbits(ids.RANDOM_BITS)
                retry = self.hub.time + self.random.choice(AGAIN_MS)
                self.hub.spawn(lambda: self._try_put(new, rules, again, tries - 1), retry)
        else:
            self._check_put(done, number, began)
            if tries > 1 and self.random.random() < LOST:
                retry = self.hub.time + self.random.choice(AGAIN_MS)
                self.hub.spawn(lambda: self._try_put(new, rules, random + 1, tries - 1), retry)

    def _check_put(self, done: Put, number: int, began: int) -> None:
        self.outcomes[done.outcome] += 1
        job = done.job
        is_content = done.outcome in (PutOutcome.CREATED, PutOutcome.REPLACED)
        if is_content and self._contents.get(number) != job.key:
            self.violation("put_lost", f"{job.id}, put {number}")
        if done.outcome not in (PutOutcome.UNCHANGED, PutOutcome.THROTTLED) and (job.key, job.scheduled_at) not in self._times:
            self.violation("put_lost", f"{job.id}, the time of put {number}")
        self._check_named(job, began)
        self.accept(job)

    def _cancel(self, own: OwnKey) -> None:
        began = self.hub.time
        try:
            job = cancel_by_key(own, self.ports())
        except NotFound:
            self._check_unknown(own, began)
        except (Conflict, Unavailable):
            self.outcomes["not cancelled"] += 1
        else:
            self.outcomes["cancelled"] += 1
            self._check_named(job, began)
            if not lifecycle.is_open(job):
                self.cancelled(job.key)

    def _find(self, own: OwnKey) -> None:
        began = self.hub.time
        try:
            self._check_named(find_by_key(own, self.ports()), began)
        except NotFound:
            self._check_unknown(own, began)
        except Unavailable:
            return

    # oracles

    def started(self, job: Job) -> None:
        """Check a start of a target."""
        if job.own_key is None:
            return
        number, attempt = job.spec.payload["put"], lifecycle.next_attempt(job)
        if number in self._ran.keys() - self._repeated and (self._ran[number][0] != job.key or self._ran[number][1] >= attempt):
            self.violation("put_run_twice", f"{job.id}, put {number}")
        self._ran[number] = job.key, attempt

    def written(self, before: Job | None, after: Job) -> None:
        """Check a write of the jobs table."""
        own = after.own_key
        if own is None or "put" not in after.spec.payload:
            return  # a successor has a key, too
        number = after.spec.payload["put"]
        if before is None:
            self._check_taken(own, after, number)
        elif not lifecycle.is_open(before):
            self._check_redriven(own, after)
        if before is None or not lifecycle.is_open(before):
            self._had[own].append((self.hub.time, after.key))
        if after.claim is not None:
            self._begun.add(after.key)
        self._contents[number] = after.key
        self._times.add((after.key, after.scheduled_at))

    def _check_taken(self, own: OwnKey, job: Job, number: int) -> None:
        """Check that the job that had the key has ended, or goes on as asked. Every other job of the key has lost it before."""
        if not self._had[own]:
            return
        former = self.jobs.rows[self._had[own][-1][1]]
        if former.put_by == job.put_by:
            self.violation("put_again", f"{job.id}, put {number}")
        if not lifecycle.is_open(former):
            return
        if former.created_at + self._longest.get(number, self.hub.time) <= self.hub.time:
            return  # its burst is over, even if it has not started yet
        if former.key not in self._begun:
            self.violation("two_open_of_a_key", f"{job.id} beside {former.id}")
        elif number not in self._follows:
            self.violation("followed_unasked", f"{job.id} beside {former.id}")

    def _check_named(self, job: Job, began: int) -> None:
        """Check that the key named the job at some time of a call that began then: no later job had taken it before."""
        assert job.own_key is not None
        later = [at for at, key in self._had[job.own_key] if at < began][-1:]
        since = max((at for at, key in self._had[job.own_key] if key == job.key), default=None)
        if since is None or (later and since < later[0]):
            self.violation("answered_wrong", job.id)

    def _check_redriven(self, own: OwnKey, job: Job) -> None:
        """Check that the job that had the key has ended. One that goes on beside it, as a put asked, has lost the key."""
        former = self._had[own][-1][1]
        if former != job.key and lifecycle.is_open(self.jobs.rows[former]):
            self.violation("redriven_beside", f"{job.id} beside {former.id}")

    def _check_unknown(self, own: OwnKey, began: int) -> None:
        if any(at < began for at, _ in self._had[own]):
            self.violation("key_forgotten", own.key)


class KeyedWorld(World):
    """A world in which users also name jobs by keys."""

    USES = 400  # puts, cancels and finds of a run

    def __init__(self, seed: int, rates: Rates, *, rules: Rules | None = None, concurrency: int = 50) -> None:
        super().__init__(seed, rates, rules=rules, concurrency=concurrency)
        ports: Any = self._ports
        self.namers = Namers(self.hub, Random(seed + 5), ports, self.jobs, self._accept, self._note_cancelled, self._violation)

    def run(
        self, jobs: int, minutes: int, *, tasks: int = 0, ordered: int = 0, groups: int = 0, after: int = 0, wind_down: int = 100
    ) -> Report:
        self.namers.plan_uses(self.USES, START, START + minutes * slots.MINUTE)
        return super().run(jobs, minutes, tasks=tasks, ordered=ordered, groups=groups, after=after, wind_down=wind_down)

    def _note_cancelled(self, key: JobKey) -> None:
        self._cancelled[key] = self.hub.time

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        self.namers.started(job)

    def _watch(self, before: Job | None, after: Job) -> None:
        super()._watch(before, after)
        self.namers.written(before, after)


def crowded_keys(seed: int) -> World:
    """Many users at few keys, with nothing amiss but the race."""
    world = KeyedWorld(seed, CALM)
    world.run(20, 6, wind_down=40)
    return world
