"""Users who act on many jobs at once in a simulated world, while another user has planned jobs and the engine has few steps; and oracles.

too_many_operations      more than five operations of a user ran at once
operation_open           an operation never ended
counted_wrong            the counts of an operation are not those of the jobs that it cancelled
left_open                an operation that was done left a job that matched since its start and was not changed after it
cancelled_anyway         an operation cancelled a job that its owner had changed after the start
off_its_rate             an operation was much faster or slower than its rate
late_beside_operations   a planned job of another user started late, in a world without faults

In a share of the runs the table refuses to change one of the jobs: it counts as failed. Each operation has its own jobs. Users move
some of them, ahead and back, in some runs again and again: these stay. In others the steps of operations die.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from lab.world.faults import CALM, Rates
from lab.world.hub import Killed
from scheduler.jobs.change import reschedule
from scheduler.model import ids, lifecycle, operation, slots
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, JobKey
from scheduler.model.operation import MAX_RUNNING, Action, Filter, Operation, State
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.model.work import WorkDelivery
from scheduler.operations import requests
from scheduler.pipeline.submit import NewJob, Submission, submit_all
from scheduler.storage.ports import Change, Written
from tests.simulation.world import START, Report, World

BULK = Rates(lag_ms=300, refuse=0.003, slow=0.0005)
USERS = ("acts", "acts too")
TOGETHER = 8  # operations that a user starts at the same moment
JOBS = (1, 30, 120)  # of an operation
RATES = (1, 5, 50, 1_000)
AT = START + 7 * slots.MINUTE  # when they start
AHEAD_MS = (1_200_000, 7_200_000)
LATE_MS = 1_000
DIES = 0.05  # of the writes of progress, in some runs: the step dies there
MOVES = 8  # of a job, in some runs
SPARE_MS = 180_000  # an operation may take this much longer than its rate needs: its message may be lost, and tables refuse
EARLY_MS = 8_000  # it may make up for a delay, and it does the work of some seconds at once


class Wanted(NamedTuple):
    """An operation that a user wants: it cancels the jobs with its tag."""

    owner: str
    tag: str
    rate: int


class BulkWorld(World):
    """A world whose engine carries out at most `steps` at once, as the mapping of the work queue does."""

    def __init__(self, seed: int, rates: Rates = BULK, *, steps: int = 2, moves: int = 0, dies: float = 0.0) -> None:
        self.free, self.pauses, self.calm, self.moves, self.dies = steps, Random(seed + 5), rates == CALM and not dies, moves, dies
        super().__init__(seed, rates, rules=Rules(shards=2))
        self.bad: set[JobKey] = set()
        plain_add, plain_change, plain_progress = self.operations.add, self.jobs.change, self.operations.change

        def add(made: Operation, place: int, former: str | None) -> bool:
            added = plain_add(made, place, former)
            if added and sum(each.owner == made.owner for each in self.operations.running()) > MAX_RUNNING:
                self._violation("too_many_operations", made.id)
            return added

        def change(changes: Sequence[Change]) -> list[Written]:
            held = iter(plain_change([change for change in changes if change.before.key not in self.bad]))
            return [Written.REFUSED if change.before.key in self.bad else next(held) for change in changes]

        def progress(before: Operation, after: Operation) -> bool:
            if before.lease_until > self.hub.time and dies and self.random.random() < dies:
                raise Killed
            return plain_progress(before, after)

        self.operations.add = add  # type: ignore[method-assign]
        self.operations.change = progress  # type: ignore[method-assign]
        self.jobs.change = change  # type: ignore[method-assign]

    def act(self) -> Report:
        """Plan jobs, start operations on them, and judge."""
        end = AT + (40 if self.dies else 12) * slots.MINUTE
        self._schedule(self._tick, end)
        for user in USERS:
            for number in range(TOGETHER):
                self._plan_operation(Wanted(user, f"{number}", self.random.choice(RATES)), self.random.choice(JOBS))
        for second in range(-30, 240, 5):
            self._plan_jobs([NewJob("plans", JobSpec("log", {"takes": 1, "fails": 0}), AT + second * 1_000)])
        self.hub.run(end)
        return self._judge()

    def _plan_jobs(self, wanted: list[NewJob]) -> None:
        asked = [Submission(each, self.random.getrandbits(ids.RANDOM_BITS)) for each in wanted]
        self.hub.at(START + self.random.randint(1_000, 5_000), lambda: submit_all(asked, self.plain) and None)

    def _plan_operation(self, wanted: Wanted, count: int) -> None:
        spec = JobSpec("log", {"takes": 1, "fails": 0}, tags=(wanted.tag,))
        self._plan_jobs([NewJob(wanted.owner, spec, AT + self.random.randint(*AHEAD_MS)) for _ in range(count)])
        self.hub.at(AT - 1_000, lambda: self._plan_trouble(wanted))
        self.hub.spawn(lambda: self._start(wanted), AT)

    def _start(self, wanted: Wanted) -> None:
        filter, number = Filter(tags=(wanted.tag,)), self.random.getrandbits(40)
        made = operation.new(wanted.owner, self.hub.time, number, Action.CANCEL_JOBS, filter, rate=wanted.rate)
        try:
            requests.start(made, self._ports())
        except (Conflict, Unavailable):
            return

    def _plan_trouble(self, wanted: Wanted) -> None:
        """Let the user move some of the jobs while they are cancelled, and the table refuse one."""
        mine = sorted(self._of(wanted.owner, wanted.tag), key=lambda job: job.id)
        if self.random.random() < 0.2:
            self.bad.add(self.random.choice(mine).key)
        took_ms = len(mine) * 1_000 // wanted.rate
        for job in mine if self.moves else self.random.sample(mine, len(mine) // 10):
            for _ in range(self.moves or 1):
                to, at = AT + self.random.randint(*AHEAD_MS), AT + self.random.randint(0, 2 * took_ms if self.moves else took_ms)
                self.hub.spawn(lambda key=job.key, to=to: self._move(key, to), at)  # type: ignore[misc]

    def _move(self, key: JobKey, to: int) -> None:
        try:
            reschedule(key, {"scheduled_at": to}, self._ports())
        except (Conflict, Unavailable):
            return

    def _of(self, owner: str, tag: str) -> list[Job]:
        return [job for job in self.jobs.rows.values() if job.owner == owner and job.spec.tags == (tag,)]

    def _step(self, delivery: WorkDelivery) -> None:
        while not self.free:
            self.hub.sleep_until(self.hub.time + self.pauses.randint(20, 200))
        self.free -= 1
        try:
            super()._step(delivery)
        finally:
            self.free += 1

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        if self.calm and job.owner == "plans" and now - job.scheduled_at > LATE_MS:
            self._violation("late_beside_operations", f"{job.id} by {now - job.scheduled_at} ms")

    def _judge(self) -> Report:
        for record in self.operations.rows.values():
            self._judge_operation(record)
        self.report.faults = self.faults.counts
        self.report.statuses = Counter(record.state for record in self.operations.rows.values())
        return self.report

    def _judge_operation(self, record: Operation) -> None:
        (tag,) = record.filter.tags
        mine = self._of(record.owner, tag)
        cancelled = sum(job.cancelled_at is not None for job in mine)
        bad = sum(job.key in self.bad for job in mine)
        if record.state is not State.DONE or record.ended_at is None:
            self._violation("operation_open", record.id)
            return
        theirs = [job for job in mine if (job.changed_at or 0) > record.started_at]
        counts = {"done": record.done, "failed": record.failed}
        if counts != {"done": cancelled, "failed": bad} or record.skipped > len(theirs):
            self._violation("counted_wrong", f"{record.id}: {counts}, {record.skipped} skipped; {cancelled} cancelled, {bad} bad")
        for job in mine:
            if lifecycle.is_open(job) and job.key not in self.bad and job not in theirs:
                self._violation("left_open", job.id)
            if job.cancelled_at is not None and job in theirs:
                self._violation("cancelled_anyway", job.id)
        due_ms, took_ms = record.matched * 1_000 // record.rate, record.ended_at - record.started_at
        if not due_ms - EARLY_MS <= took_ms <= due_ms + SPARE_MS and not self.dies:
            self._violation("off_its_rate", f"{record.id}: {took_ms} ms instead of {due_ms} ms")


def bulk(seed: int) -> World:
    """Two users start many operations at the same moment; nothing else is amiss."""
    world = BulkWorld(seed, CALM)
    world.act()
    return world


def moving_bulk(seed: int) -> World:
    """The same, while the users move each of the jobs again and again."""
    world = BulkWorld(seed, CALM, moves=MOVES)
    world.act()
    return world


def dying_bulk(seed: int) -> World:
    """The same as the first, while the steps of operations die before they store their progress."""
    world = BulkWorld(seed, CALM, dies=DIES)
    world.act()
    return world


def refused_bulk(seed: int) -> World:
    """The same, while the tables refuse and delay calls now and then."""
    world = BulkWorld(seed)
    world.act()
    return world
