"""Users who redrive the dead letters of ordering keys and of keys of their own in a simulated world; and the oracles.

redriven_out_of_order   a redriven job of an ordering key started after a later job of the key that the same redrive redrove
redriven_beside         a job was redriven although another job that had not ended had its key
redrive_open            a redrive never ended, or jobs that it redrove never did
miscounted              the counts of a redrive are not those of the jobs that it redrove, refused and skipped

The table refuses some of the redrives at first. So jobs of one chunk are redriven at different moments.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from lab.world.faults import CALM, Rates
from lab.world.hub import Killed
from scheduler.admission import ordering
from scheduler.dead_letters.model import is_dead
from scheduler.jobs import by_key
from scheduler.model import ids, lifecycle, operation, slots
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, JobKey, OrderKey
from scheduler.model.operation import Action, Filter, State
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec, OnFailure, Ordering
from scheduler.operations import requests
from scheduler.pipeline.submit import NewJob, Submission, submit_all
from scheduler.storage.ports import Change, Written
from tests.simulation.world import START, Report, World

USERS = ("redrives", "redrives too")
KEYS = 3  # ordering keys of a user
JOBS = (12, 40)  # of an ordering key
TOGETHER = (1, 2, 12)  # jobs created by one call
RATES = (2, 10, 50, 1_000)
FAIL_AT = START + 5 * slots.MINUTE
REDRIVE_AT = START + 15 * slots.MINUTE
NAMED = 10  # jobs of a user with keys of their own; others take half of the keys
REFUSED = 0.1  # of the redrives of a job: refused once or twice
DIES = 0.1  # of the writes of progress: the step dies there
TROUBLED = Rates(lag_ms=300, refuse=0.002, slow=0.0005)


class RedriveWorld(World):
    """A world in which jobs fail, their cause is fixed, and users redrive them."""

    def __init__(self, seed: int, rates: Rates, *, dies: float = 0.0) -> None:
        super().__init__(seed, rates, rules=Rules(shards=2), concurrency=10)
        self.starts_again: dict[tuple[str | None, OrderKey], list[Job]] = defaultdict(list)
        self.conflicts: set[JobKey] = set()
        self._refusals: dict[JobKey, int] = {}
        plain_change, plain_progress = self.jobs.change, self.operations.change

        def change(changes: Sequence[Change]) -> list[Written]:
            held = iter(plain_change([each for each in changes if not self._is_refused(each)]))
            return [Written.REFUSED if self._refusals.get(each.before.key, 0) else next(held) for each in changes]

        def progress(before: operation.Operation, after: operation.Operation) -> bool:
            if before.lease_until > self.hub.time and self.random.random() < dies:
                raise Killed
            return plain_progress(before, after)

        self.jobs.change = change  # type: ignore[method-assign]
        self.operations.change = progress  # type: ignore[method-assign]

    def act(self) -> Report:
        """Let jobs fail, redrive them, and judge."""
        end = REDRIVE_AT + 15 * slots.MINUTE
        self._schedule(self._tick, end)
        for user in USERS:
            for number in range(KEYS):
                self._plan_key(user, Ordering(f"key-{number}", OnFailure.CONTINUE), self.random.choice(JOBS))
            self._plan_named(user)
        self.hub.at(REDRIVE_AT - slots.MINUTE, self._heal)
        for user in USERS:
            self.hub.spawn(lambda user=user: self._redrive(user), REDRIVE_AT)  # type: ignore[misc]
        self.hub.run(end)
        return self._judge()

    def _plan_key(self, user: str, rule: Ordering, count: int) -> None:
        """Jobs of one key for a few instants, created in any order of their ids."""
        instants = [FAIL_AT + self.random.randint(0, 60_000) for _ in range(3)]
        while count > 0:
            together, at = min(self.random.choice(TOGETHER), count), self.random.choice(instants)
            self._post_spec([JobSpec("log", {"takes": 1, "fails": 1}, max_attempts=1, ordering=rule)] * together, user, at)
            count -= together

    def _plan_named(self, user: str) -> None:
        for number in range(NAMED):
            spec = JobSpec("log", {"takes": 1, "fails": 1}, max_attempts=1, key=f"name {number}")
            self._post_spec([spec], user, FAIL_AT)
            if number % 2:
                other = NewJob(user, spec, REDRIVE_AT + 60 * slots.MINUTE)
                self.hub.spawn(lambda other=other: self._put(other), REDRIVE_AT - 30_000)  # type: ignore[misc]

    def _post_spec(self, specs: Sequence[JobSpec], user: str, at: int) -> None:
        asked = [Submission(NewJob(user, spec, at), self.random.getrandbits(ids.RANDOM_BITS)) for spec in specs]
        asked.sort(key=lambda each: each.random)
        self.hub.at(START + self.random.randint(1_000, 60_000), lambda: submit_all(asked, self.plain) and None)

    def _put(self, new: NewJob) -> None:
        by_key.put(new, self.plain, random=self.random.getrandbits(ids.RANDOM_BITS))

    def _heal(self) -> None:
        for job in self.jobs.rows.values():
            job.spec.payload["fails"] = 0  # type: ignore[index]

    def _redrive(self, user: str) -> None:
        made = operation.new(user, self.hub.time, self.random.getrandbits(40), Action.REDRIVE, Filter(), rate=self.random.choice(RATES))
        try:
            requests.start(made, self._ports())
        except (Conflict, Unavailable):
            return

    def _is_refused(self, change: Change) -> bool:
        key = change.before.key
        if change.after.redrives == change.before.redrives or change.after.spec.key is not None:
            return False
        left = self._refusals.get(key)
        if left is None:
            left = 1 + self.random.randint(1, 2) if self.random.random() < REFUSED else 0
        else:
            left = max(left - 1, 0)
        self._refusals[key] = left
        return left > 0

    # oracles

    def _watch(self, before: Job | None, after: Job) -> None:
        super()._watch(before, after)
        if before is None or not is_dead(before) or after.own_key is None:
            return
        others = [job for job in self.jobs.rows.values() if job.own_key == after.own_key and job.key != after.key]
        if any(lifecycle.is_open(job) for job in others):
            self._violation("redriven_beside", after.id)

    def _started(self, job: Job, now: int) -> None:
        super()._started(job, now)
        if job.spec.ordering is not None and job.redrives and not ordering.has_begun(job):
            self.starts_again[job.redriven_by, ordering.order_of(job)].append(job)

    def _judge(self) -> Report:
        for started in self.starts_again.values():
            for one, other in pairwise(started):
                if ordering.entry_of(other).position < ordering.entry_of(one).position:
                    self._violation("redriven_out_of_order", f"{one.id} before {other.id}")
        for record in self.operations.rows.values():
            mine = [job for job in self.jobs.rows.values() if job.owner == record.owner and job.scheduled_at < REDRIVE_AT]
            redriven = [job for job in mine if job.redriven_by == record.id]
            beside = sum(is_dead(job) for job in mine if job.spec.key is not None)
            if record.state is not State.DONE or any(lifecycle.is_open(job) for job in redriven):
                self._violation("redrive_open", record.id)
            elif (record.done, record.conflicts, record.failed, record.skipped) != (len(redriven), beside, 0, 0):
                self._violation("miscounted", f"{record.id}: {record.done} done of {len(redriven)}, {record.conflicts} of {beside}")
        self.report.faults = self.faults.counts
        return self.report


def redriven(seed: int) -> World:
    """Two users redrive their dead letters; nothing else is amiss but refusals of single jobs."""
    world = RedriveWorld(seed, CALM)
    world.act()
    return world


def redriven_by_dying_steps(seed: int) -> World:
    """The same, while steps of the redrives die after they changed jobs and before they counted them."""
    world = RedriveWorld(seed, CALM, dies=DIES)
    world.act()
    return world


def redriven_in_trouble(seed: int) -> World:
    """The same without deaths, while the tables refuse and delay calls now and then."""
    world = RedriveWorld(seed, TROUBLED)
    world.act()
    return world
