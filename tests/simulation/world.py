"""A complete Punctual in virtual time: the real services over memory ports, faults between any two effects, and the oracles."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from typing import Any

from lab.world.clock import SimClock
from lab.world.faults import Faults, Faulty, Rates
from lab.world.hub import Hub, Killed
from lab.world.pools import SimPool
from lab.world.queues import Lenience, SimLanes, SimWork, end_batch, end_step
from lab.world.tables import LaggingJobs, WatchedLedger
from lambdas._pool import ahead
from scheduler.dead_letters.model import is_dead
from scheduler.jobs import group_steps
from scheduler.jobs.cancel import cancel
from scheduler.model import callback_lease, ids, lifecycle, slots
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Delivery, Job, JobKey, Lane, Status, Unit
from scheduler.model.rules import BATCH, Rules
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkDelivery
from scheduler.monitors import steps
from scheduler.operations.step import step
from scheduler.pipeline import delivery
from scheduler.pipeline.bury import bury
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.execute import execute
from scheduler.pipeline.process import Process
from scheduler.pipeline.submit import NewJob
from scheduler.pipeline.tick import tick
from scheduler.pipeline.worker import work
from scheduler.storage.memory.accounts import MemoryUsers
from scheduler.storage.memory.followers import MemoryFollowers
from scheduler.storage.memory.ordering_queues import MemoryOrderingQueues
from scheduler.storage.memory.ports import MemoryPorts
from scheduler.storage.memory.stores import MemoryOperations
from scheduler.storage.memory.tasks import MemoryReceipts
from scheduler.tasks.plan import plan
from tests.simulation.clients import Clients
from tests.simulation.containers import AwaitingPool, Containers
from tests.simulation.grouped import Groupers, WatchedGroups
from tests.simulation.limited import Limited
from tests.simulation.lineage import BURY, DISPATCH, EXECUTORS, Lineage
from tests.simulation.operators import Operators
from tests.simulation.people import LaggingTasks, People
from tests.simulation.queuers import Queuers
from tests.simulation.replayers import Replayers
from tests.simulation.successors import Successors
from tests.simulation.workers import Workers

START = slots.start_of("2026-11-20T10:00")
ROUND_MS = (1, 1, 10_000, 60_000, 60_000)  # users prefer whole minutes, so many jobs are due together
POSTED = (1,) * 10 + (2, 5, 20, 50)  # jobs posted in one call: one job in nine alone
OWNERS = ("user",) * 4 + ("other",)
# Durations of jobs. Executors check long jobs every two seconds, which costs time: a few long jobs are enough.
TAKES = (1, 1, 1, 1, 20, 20, 500, 500, 4_000, 4_000) * 100 + (45_000,) * 5 + (250_000,)
POLL_MS = 25  # between two polls of a queue by its event source mapping
FAILS = (0,) * 24 + (1, 1, 2, 5)  # how often their targets fail
# The ports that belong to one world:
PORTS = ("jobs", "tasks", "orders", "groups", "followers", "ledger", "lanes", "work", "receipts", "users", "operations")
DISPATCHERS_FREEZE = {"ledger": 20}  # factor of the rate of freezes around each port
EXECUTORS_FREEZE = {"jobs": 5, "tasks": 5, "orders": 5, "followers": 5, "targets": 5}
STUCK_MS = 360_000  # past its deadline by more than this, a running job is stuck
NARROW, MORE_MS = 2, 1_800_000  # most executors of a narrow lane, and how much longer it runs at a time while jobs are left


USUAL = {
    "jobs": 5_000,
    "minutes": 30,
    "tasks": 12,
    "ordered": 300,
    "groups": 20,
    "after": 200,
}  # the default run of `make simulate`, which finds the sabotages


@dataclass
class Report:
    """The result of a run. Every count in `violations` must be zero."""

    seed: int = 0
    jobs: int = 0
    accepted: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    delays: list[int] = field(default_factory=list)
    starts: int = 0
    runs: int = 0  # starts of runs of tasks, included in `starts`
    ordered: int = 0  # starts of jobs with ordering keys, included in `starts`
    waited: int = 0  # first starts of jobs that were requeued before, included in `ordered`
    paused: int = 0  # failures that paused a key
    after: int = 0  # starts of jobs that wait for others, included in `starts`
    skipped_after: int = 0  # jobs that were skipped because one that they wait for did not succeed


@dataclass
class Container:
    """A process of the executor: the state that it keeps from one batch to the next, until it dies."""

    ports: MemoryPorts
    process: Process


class World:
    """One run under the given rules and rates of faults. The same seed gives the same run. `awaited`: most jobs wait for containers."""

    FAULTY = (*PORTS, "targets")  # the ports that invocations see with faults

    def __init__(self, seed: int, rates: Rates, *, rules: Rules | None = None, concurrency: int = 50, awaited: bool = False) -> None:
        self.random = Random(seed)
        self.hub = Hub(START)
        self.faults = Faults(rates, Random(seed + 1), self.hub)
        self._seen: dict[tuple[int, int], Faulty] = {}
        self.rules = rules or self._usual_rules()
        self.jobs = LaggingJobs(self.hub, self.faults, self._watch, self._refused)
        self.ledger = WatchedLedger(self._fell, self._closed)
        self.lineage = Lineage(self.hub, self._violation)
        self.lanes = SimLanes(self.hub, self.faults, self._wake, self.lineage.sent)
        self.work = SimWork(self.hub, self.faults, self._step, self.lineage.sent)
        self.report = Report(seed)
        self.people = People(self.hub, self.faults, self.random, self._ports, self._violation)
        self.workers = Workers(self.hub, self.faults, self.random, self._ports, self._violation)
        awaiting = Containers(self.hub, self.faults, Random(seed + 6), self._ports, self._violation)
        self.containers = awaiting if awaited else None
        self.limited = Limited(self.hub, Random(seed + 3), Random(seed + 7), self._violation)
        self.receipts = MemoryReceipts()
        self.operations = MemoryOperations()
        self.users = MemoryUsers()
        self.users.set_weight("other", 3.0)
        self.orders = MemoryOrderingQueues()
        self.groups = WatchedGroups(lambda group: self.groupers.changed(group))
        self.followers = MemoryFollowers()
        self.tasks = LaggingTasks(self.hub, self.faults, self.jobs, self.receipts, self.people.stored)
        order = partial(_any_order, Random(seed + 5))
        self.plain = MemoryPorts(SimClock(self.hub, 0), self.rules, order=order, **{name: getattr(self, name) for name in PORTS})
        self.plain.targets = self.limited.store
        self._invocations, self._dispatchers, self._executors = (
            self._view(freeze) for freeze in ({}, DISPATCHERS_FREEZE, EXECUTORS_FREEZE)
        )
        self.processes = [DirectPath(self._invocations.but(clock=SimClock(self.hub, self.faults.skew()))) for _ in range(2)]
        self.operators = Operators(self.hub, self.faults, self.random, self.plain, self._ports, self._violation)
        self.clients = Clients(self.hub, self.faults, Random(seed + 4), self._ports, self._accept, self._violation)
        self.queuers = Queuers(self.hub, self.faults, Random(seed + 2), self._ports, self.jobs, self._submit, self._violation)
        self.groupers = Groupers(self.hub, self.faults, Random(seed + 7), self._ports, self.plain, self.jobs, self._violation)
        self.replayers = Replayers(self.hub, self.faults, Random(seed + 8), self._ports, self.jobs, self._submit, self._violation)
        self.successors = Successors(self.hub, self.faults, Random(seed + 9), self.jobs, self.work.send, self._submit, self._violation)
        self._busy: Counter[Lane] = Counter()
        self._polls: set[Lane] = set()  # lanes that are about to be polled
        self._full: set[Lane] = set()  # lanes whose executors were all busy when they were polled
        self._pollers = {lane: partial(self._poll, lane) for lane in Lane}
        self._warm: dict[Lane, list[Container]] = {lane: [] for lane in Lane}
        self._concurrency = concurrency
        self._accepted: set[JobKey] = set()
        self._cancelled: dict[JobKey, int] = {}
        self._starts: set[tuple[str, int]] = set()
        self._settled: set[tuple[str, int]] = set()
        self._requests = 0
        self._tick_off: tuple[int, int] = (0, 0)

    def _usual_rules(self) -> Rules:
        """Return the rules of the run. In one run of three the windows are so narrow that many jobs wait and go through the overflow.

        In one run of two so few executors are ready that a dozen jobs of one instant travel in packs. A window of 20 stands for two
        executors, of which a user may pin one.
        """
        ready = self.random.choice((1, 5))
        if self.random.randrange(3):
            return Rules(shards=2, ready_executors=ready)
        windows = {Lane.ONE_TIME: self.random.choice((5, 20)), Lane.RECURRING: self.random.choice((5, 1_000))}
        return Rules(shards=2, windows=windows, direct_burst=self.random.choice((1, 10)), direct_rate=1, ready_executors=ready)

    # the course of a run

    def run(
        self, jobs: int, minutes: int, *, tasks: int = 0, ordered: int = 0, groups: int = 0, after: int = 0, wind_down: int = 100
    ) -> Report:
        """In the first `minutes`, with faults, post `jobs`, `ordered` jobs with ordering keys and jobs that wait for others (`after`), make
        `groups`, and keep `tasks`.

        Then let the system recover without faults, and return the report. A narrow lane gets more time, as long as jobs end in it.
        """
        end = START + minutes * slots.MINUTE
        self._plan_outage(minutes)
        self.operators.plan_pauses(START, minutes)
        self._schedule(self._tick, end + wind_down * slots.MINUTE)
        if tasks:
            self._schedule(self._plan, end + wind_down * slots.MINUTE)
            self.people.plan_lives(tasks, START, end)
        self.queuers.plan_posts(ordered, START, end)
        self.groupers.plan(groups, START, end)
        self.successors.plan_posts(after, START, end)
        while jobs:
            together = min(self.random.choice(POSTED), jobs)
            self._plan_post(self.random.randint(START, end - 1), end, together)
            jobs -= together
        self.hub.run(end + 10 * slots.MINUTE)
        self.faults.on = False
        over = end + wind_down * slots.MINUTE
        self.hub.run(over)
        while self._is_narrow() and (left := self._left()):
            over += MORE_MS
            self._schedule(self._tick, over, since=over - MORE_MS)
            self.hub.run(over)
            if self._left() >= left:
                break
        return self._judge()

    def _is_narrow(self) -> bool:
        """Whether one executor, or the one that a user with long jobs may use, needs hours for a few thousand jobs."""
        return self.plain.rules.executors_of(Lane.ONE_TIME) <= NARROW

    def _left(self) -> int:
        """The number of accepted jobs that have not ended."""
        found = map(self.jobs.get, self._accepted)
        return sum(job is not None and lifecycle.is_open(job) and not self.queuers.is_paused(job) for job in found)

    def take_apart(self) -> None:
        """Break the references between the parts of an ended world: collecting these cycles would take a twentieth of its time."""
        for part in [part for part in vars(self).values() if hasattr(part, "__dict__") and part is not self.report]:
            vars(part).clear()
        vars(self).clear()

    def _plan_outage(self, minutes: int) -> None:
        if self.faults.strike("tick outage", self.faults.rates.outage):
            begin = START + self.random.randint(0, minutes) * slots.MINUTE
            self._tick_off = (begin, begin + self.random.randint(10, 60) * slots.MINUTE)
            self.workers.tick_off_until = self._tick_off[1]

    def _schedule(self, heartbeat: Callable[[], None], end: int, *, since: int = START) -> None:
        for due in range(since + self.random.randint(0, 59_999), end, slots.MINUTE):
            self.hub.at(due, lambda due=due: self._maybe(heartbeat, due))  # type: ignore[misc]

    def _maybe(self, heartbeat: Callable[[], None], due: int) -> None:
        rates = self.faults.rates
        if self.faults.strike("storm", rates.storm):
            self.jobs.storm()
        if self._tick_off[0] <= due < self._tick_off[1] or self.faults.strike("missing tick", rates.missing_tick):
            return
        late = self.random.randint(0, rates.late_tick_ms) if self.faults.on else 0
        for _ in range(2 if self.faults.strike("double tick", rates.double_tick) else 1):
            self.hub.spawn(heartbeat, due + late)

    def _plan_post(self, at: int, end: int, together: int) -> None:
        instant = self._instant(at, end) if self.random.random() < 0.7 else None  # one for all jobs of the call
        requests = [self._new_job(at, end, instant) for _ in range(together)]
        self.hub.spawn(lambda: self._post(requests), at)

    def _instant(self, at: int, end: int) -> int | None:
        ahead = self.random.choice((None, None, 5_000, 60_000, 200_000, 250_000, 400_000, 900_000, -5_000))
        if ahead is None:
            return None
        instant, step = at + self.random.randint(min(ahead, 0), max(ahead, 0)), self.random.choice(ROUND_MS)
        return min(instant - instant % -step, end)

    def _new_job(self, at: int, end: int, instant: int | None) -> NewJob:
        execute_at = instant or self._instant(at, end)
        takes = self.random.choice(TAKES)
        fails = self.random.choice(FAILS)
        timeout_ms = 60_000 if takes < 60_000 else 300_000
        expires_at = max(execute_at or at, at) + 90_000 if self.faults.strike("expiry", self.faults.rates.expire) else None
        payload, callback = {"takes": takes, "fails": fails}, self.workers.policy()
        target = self.limited.choose() if takes < 20_000 else None  # a long job would block all others of its target
        spec = JobSpec("log", payload, timeout_ms=timeout_ms, callback=callback, target=target)
        if takes < 20_000 and (limit := self.limited.choose_limit()) is not None:
            spec = replace(spec, limit=limit)
        if self.containers is not None and (fields := self.containers.spec_fields()) is not None:
            spec = replace(spec, **fields)
        return NewJob(self.random.choice(OWNERS), spec, execute_at, expires_at=expires_at)

    # invocations

    def _faulty(self, port: object, freeze: int = 1) -> Any:
        """Return the port as invocations see it. All share one wrapper, which has no state of an invocation."""
        if (found := self._seen.get((id(port), freeze))) is None:
            found = self._seen[(id(port), freeze)] = Faulty(port, self.faults, freeze=freeze)
        return found

    def _view(self, freeze: Mapping[str, int]) -> MemoryPorts:
        """Return the ports as invocations see them. `freeze` multiplies the rate of freezes of these ports."""
        return self.plain.but(**{name: self._faulty(getattr(self.plain, name), freeze.get(name, 1)) for name in self.FAULTY})

    def _ports(self) -> MemoryPorts:
        """Return the ports as one invocation sees them."""
        return self._invocations.but(clock=self._clock())

    def _clock(self) -> SimClock:
        return SimClock(self.hub, self.faults.skew())

    def _post(self, requests: list[NewJob]) -> None:
        self.report.jobs += len(requests)
        self._submit(requests, [self.random.getrandbits(ids.RANDOM_BITS) for _ in requests])

    def _submit(self, requests: Sequence[NewJob], randoms: Sequence[int]) -> None:
        self.clients.post(requests, randoms, self._direct())

    def _direct(self) -> DirectPath:
        return self.random.choice(self.processes)

    def _accept(self, job: Job) -> None:
        self._accepted.add(job.key)
        self.operators.maybe_change(job)
        if self.faults.strike("cancel", self.faults.rates.cancel):
            self.hub.spawn(lambda: self._cancel(job.key), self.hub.time + self.random.choice((0, 1_000, 30_000)))

    def _cancel(self, key: JobKey) -> None:
        try:
            job = cancel(key, self._ports())
        except (Conflict, NotFound, Unavailable):
            return
        if not lifecycle.is_open(job):
            self._cancelled[key] = self.hub.time

    def _tick(self) -> None:
        try:
            tick(self._ports())
        except Unavailable:
            self.faults.counts["tick failed"] += 1

    def _plan(self) -> None:
        try:
            plan(self._ports())
        except Unavailable:
            self.faults.counts["plan failed"] += 1

    def _step(self, delivery: WorkDelivery) -> None:
        """Carry out one step of the engine, as the event source mapping of the work queue does."""
        self.lineage.invoked(DISPATCH, [delivery.message_id])
        ports = self._dispatchers.but(clock=self._clock())
        done = work(delivery, ports, operation=step, group=group_steps.step, monitor=steps.step)
        self.faults.counts["through the overflow"] += done.published if delivery.item.of == slots.OVERFLOW else 0
        self.faults.counts["steps failed"] += done.failed
        end_step(self.work, delivery, done, ports.clock.now(), self._loses_delete)

    def _loses_delete(self) -> bool:
        return self.faults.strike("delete lost", self.faults.rates.refuse)

    def _wake(self, lane: Lane) -> None:
        """Let the event source mapping poll the lane soon: a message may be visible."""
        if lane not in self._polls:
            self._polls.add(lane)
            self.hub.at(self.hub.time + POLL_MS, self._pollers[lane])

    def _poll(self, lane: Lane) -> None:
        """Receive a batch and execute it, if an executor is free."""
        self._polls.discard(lane)
        if self._busy[lane] >= self._concurrency:
            self._full.add(lane)
            return
        batch = self.lanes.receive(lane, BATCH[lane], self.hub.time)
        if batch:
            self._busy[lane] += 1
            self.hub.spawn(lambda: self._execute(lane, batch))
        if len(batch) == BATCH[lane]:
            self._wake(lane)
        if self.lanes.dead[lane]:
            self.hub.spawn(lambda: self._bury(lane))

    def _execute(self, lane: Lane, batch: list[Any]) -> None:
        self._requests += 1
        self.lineage.invoked(EXECUTORS[lane], [item.message_id for item in batch])
        container = self._container(lane)
        pool = self._pool(container)
        try:
            left = execute(lane, batch, container.ports, container.process, pool=pool, request_id=f"r{self._requests}")
            self._warm[lane].append(container)
            end_batch(self.lanes, lane, batch, left, self._loses_delete)
        except Killed:
            pool.stop()
            if self.faults.strike("purged", self.faults.rates.purge):
                for item in batch:
                    self.lanes.queues[lane].pop(item.message_id, None)
            raise
        finally:
            self._busy[lane] -= 1
            if lane in self._full:
                self._full.remove(lane)
                self.hub.at(self.hub.time + 1, partial(self._wake, lane))

    def _pool(self, container: Container) -> SimPool:
        clock, stopped = container.ports.clock, self.limited.stopped
        kind = SimPool if self.containers is None else AwaitingPool
        pool = kind(self.hub, clock, self.random, self._started, overfull=self._overfull, stopped=stopped)
        if isinstance(pool, AwaitingPool) and self.containers is not None:
            pool.containers = self.containers
        return pool

    def _container(self, lane: Lane) -> Container:
        """Return a warm process, or a new one: always if none is warm, else in some cases."""
        if self._warm[lane] and self.random.random() < 0.95:
            return self._warm[lane].pop()
        ports = self._executors.but(clock=self._clock())
        return Container(ports, Process.of(lane, str(self._requests % 8), ports, lambda _, jobs: ahead(jobs)))

    def _bury(self, lane: Lane) -> None:
        dead = self.lanes.dead[lane]
        batch = [Delivery(q.message, q.message_id, q.receipt, q.receive_count) for q in list(dead.values())[:10]]
        self.lineage.invoked(BURY, [item.message_id for item in batch])
        try:
            done = bury(batch, self._ports())
        except Unavailable:
            pass
        else:
            for item in batch:
                if item.message_id not in done.returned:
                    dead.pop(item.message_id, None)
        if dead:
            self.hub.at(self.hub.time + POLL_MS, partial(self._wake, lane))

    # oracles

    def _violation(self, kind: str, job_id: str) -> None:
        self.report.violations[kind] += 1
        if len(self.report.examples) < 20:
            self.report.examples.append(f"{kind}: {job_id} at {self.hub.time - START} ms, seed {self.report.seed}")

    def _overfull(self, job: Job) -> None:
        self._violation("overfull", job.id)

    def _is_unleased(self, job: Job) -> bool:
        """Whether the job's message is hidden for as long as its queue hides a received one: its executor has set no lease."""
        queued = self.lanes.queues[job.lane].get(job.claim.message_id) if job.claim is not None else None
        lasts = queued.visible_at - self.hub.time if queued is not None else 0
        return lasts > delivery.LEASE_MS and self.lanes.lenience is Lenience.NO  # a lenient queue says yes and does nothing

    def _started(self, job: Job, now: int) -> None:
        """Check the start of a target; `now` is the time of the executor's clock."""
        self.report.starts += 1
        if now < job.due_at:
            self._violation("early", job.id)
        if (job.id, job.fence) in self._starts:
            self._violation("double_started", job.id)
        self._starts.add((job.id, job.fence))
        if job.key in self._cancelled:
            self._violation("started_after_cancel", job.id)
        stored = self.jobs.get(job.key)
        if stored is None or stored.fence != job.fence or stored.claim != job.claim:
            self._violation("started_stale", job.id)
        if self._is_unleased(job):
            self._violation("started_unleased", job.id)
        if job.start_by is not None and now >= job.start_by and self._must_keep_to(job):
            self._violation("started_too_late", job.id)
        self.operators.started(job)
        self.limited.started(job)
        self.people.started(job, now, self.jobs)
        self.workers.started(job)
        self.queuers.started(job)
        self.successors.started(job)
        if (
            not job.attempts and job.origin is None and job.spec.ordering is None and job.spec.target is None and not job.after
        ):  # other jobs also wait for reasons besides their instant
            self.report.delays.append(now - max(job.scheduled_at, job.created_at))

    @staticmethod
    def _must_keep_to(job: Job) -> bool:
        """True while the start deadline applies: an expiry until the first start, a misfire rule until the run was first requeued for a
        reason other than lateness."""
        return job.fence == 1 if job.origin is not None and job.origin.misfire is not None else job.delay_ms is None

    def _watch(self, before: Job | None, after: Job) -> None:
        """Check every write of the jobs table."""
        self.people.written(before, after, self.jobs)
        self.queuers.written(before, after)
        self.successors.written(before, after)
        self.clients.written(before, after)
        self.operators.written(before, after)
        self.limited.written(after)
        self.groupers.written(before, after)
        self.replayers.written(before, after)
        if before is None:
            return
        if not lifecycle.is_open(before) and not self._is_redrive(before, after):
            self._violation("changed_after_final", after.id)
        self.workers.written(before, after)
        if self.containers is not None:
            self.containers.written(before, after)
        if after.fence < before.fence:
            self._violation("fence_fell", after.id)
        if before.attempts is not after.attempts and (before.claim is None or after.attempts[-1].fence != before.fence):
            if _ends(before) != _ends(after):  # compared last: nearly always a new attempt is the only difference
                self._violation("settled_by_other", after.id)
        if before.claim is None and after.claim is not None and after.claim.at + self.rules.crowd_hold_ms < after.due_at:
            self._violation("claimed_early", after.id)
        if before.claim and after.failed_at and "dead-letter" in (after.reason or "") and not self._is_dead(before.claim.message_id):
            self._violation("buried_alive", after.id)
        if before.claim is not None and after.claim is None:
            if (before.id, before.fence) in self._settled:
                self._violation("double_settled", after.id)
            self._settled.add((before.id, before.fence))

    @staticmethod
    def _is_redrive(before: Job, after: Job) -> bool:
        """True for the only allowed change of an ended job: a redrive, under the next fence."""
        lives = (after.fence, after.redrives) == (before.fence + 1, before.redrives + 1)
        return lives and is_dead(before) and lifecycle.is_open(after) and after.claim is None and after.expires is None

    def _is_dead(self, message_id: str) -> bool:
        return any(message_id in queue for queue in self.lanes.dead.values())

    def _refused(self, job: Job) -> None:
        """Report that the table refused the settlement of the executor that holds the claim."""
        self._violation("settlement_refused", job.id)

    def _fell(self, unit: Unit) -> None:
        if not slots.is_always_open(unit.key.minute):  # the overflow is never done, so its progress may go back
            self._violation("unit_fell", unit.key.minute)

    def _closed(self, unit: Unit) -> None:
        if self.jobs.hidden(unit):
            self._violation("closed_blind", unit.key.minute)
        for key in [] if slots.is_always_open(unit.key.minute) else self.jobs.late_comers(unit):
            self._violation("closed_over", key.id)

    def _judge(self) -> Report:
        now = self.hub.time
        self.report.accepted = len(self._accepted)
        self.report.faults = self.faults.counts + self.workers.counts
        for key in self._accepted:
            job = self.jobs.get(key)
            if job is None:
                self._violation("lost", key.id)
                continue
            status = lifecycle.status(job, now)
            self.report.statuses[status] += 1
            stops_at = lifecycle.started_at(job) + job.spec.timeout_ms if job.claim else now
            over_at = callback_lease.ends_at(job) if lifecycle.waits(job) else stops_at
            if status is Status.RUNNING and now > over_at + STUCK_MS:
                self._violation("stuck", key.id)
            elif lifecycle.is_open(job) and not self.queuers.is_paused(job):
                self._violation("lost", key.id)
        oldest = self.ledger.open_units()[:1]
        if oldest and now - slots.start_of(oldest[0].key.minute) > 10 * slots.MINUTE:
            self._violation("ledger_open", oldest[0].key.minute)
        self.people.judge(self.jobs)
        self.groupers.judge()
        if self.containers is not None:
            self.containers.judge(self.jobs.get)
            self.report.faults += self.containers.counts
        self.limited.judge()
        self.successors.judge()
        self.report.after, self.report.skipped_after = self.successors.starts, self.successors.skipped
        self.report.runs = self.people.starts
        self.report.ordered, self.report.waited, self.report.paused = self.queuers.starts, self.queuers.waited, self.queuers.paused
        return self.report


def _any_order(random: Random, calls: int) -> list[int]:
    """Return the numbers of calls made side by side in the order of their effects: any."""
    return random.sample(range(calls), calls)


def _ends(job: Job) -> list[tuple[int, int]]:
    """Return fence and end of each attempt: the parts of an attempt that must not change later."""
    return [(attempt.fence, attempt.ended_at) for attempt in job.attempts]
