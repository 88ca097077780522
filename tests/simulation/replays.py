"""Users who replay their ended jobs by a filter in a simulated world; and the oracles.

not_replayed      an operation that was done left a job that had ended before its start
original_changed  a replay changed its original
replay_open       an operation never ended, or a replay never did
miscounted        the counts of an operation are not those of the jobs that it replayed

`replayed_twice` of `replayers` also applies: an operation requests one replay of each job that has ended before its start. The table
refuses some of the replays at first, and in some runs the steps die after they stored replays and before they counted them.
"""

from collections import Counter
from collections.abc import Sequence

from lab.world.faults import CALM, Rates
from lab.world.hub import Killed
from scheduler.model import ids, lifecycle, operation, slots
from scheduler.model.errors import Conflict, Unavailable
from scheduler.model.job import Job, JobKey
from scheduler.model.operation import Action, Filter, Operation, State
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.operations import requests
from scheduler.operations.replay_jobs import RAN
from scheduler.pipeline.submit import NewJob, Submission, submit_all
from scheduler.storage.ports import Written
from tests.simulation.world import START, Report, World

USERS = ("replays", "replays too")
JOBS = (30, 150)
RATES = (5, 50, 1_000)
FIRST = START + 5 * slots.MINUTE
REPLAY_AT = START + 10 * slots.MINUTE
REFUSED = 0.05  # of the puts of replays
DIES = 0.3  # of the writes of progress: the step dies there
TROUBLED = Rates(lag_ms=300, refuse=0.002, slow=0.0005)


class ReplayWorld(World):
    """A world in which users replay what they did, while more jobs of theirs go on."""

    def __init__(self, seed: int, rates: Rates, *, dies: float = 0.0) -> None:
        super().__init__(seed, rates, rules=Rules(shards=2), concurrency=10)
        self.dies = dies
        plain_put, plain_progress = self.jobs.put_many, self.operations.change

        def put(drafts: Sequence[Job]) -> list[Written]:
            refused = {job.key for job in drafts if job.replay_of is not None and self.random.random() < REFUSED}
            held = iter(plain_put([job for job in drafts if job.key not in refused]))
            return [Written.REFUSED if job.key in refused else next(held) for job in drafts]

        def progress(before: Operation, after: Operation) -> bool:
            if before.lease_until > self.hub.time and self.random.random() < dies:
                raise Killed
            return plain_progress(before, after)

        self.jobs.put_many = put  # type: ignore[method-assign]
        self.operations.change = progress  # type: ignore[method-assign]
        self._originals: dict[str, dict[JobKey, Job]] = {}  # the jobs to replay, as they were at the start of each operation

    def act(self) -> Report:
        """Let jobs end, replay them, and judge."""
        end = REPLAY_AT + (80 if self.dies else 20) * slots.MINUTE  # another step continues 30 s after a death
        self._schedule(self._tick, end)
        for user in USERS:
            self._plan_jobs(user, FIRST, REPLAY_AT - 60_000)
            self._plan_jobs(user, REPLAY_AT - 60_000, REPLAY_AT + 60_000)
            self.hub.spawn(lambda user=user: self._start(user), REPLAY_AT)  # type: ignore[misc]
        self.hub.run(end)
        return self._judge()

    def _plan_jobs(self, user: str, since: int, until: int) -> None:
        spec = JobSpec("log", {"takes": 1, "fails": 0}, max_attempts=1)
        failing = JobSpec("log", {"takes": 1, "fails": 1}, max_attempts=1)
        specs = [self.random.choice((spec, spec, failing)) for _ in range(self.random.choice(JOBS))]
        wanted = [NewJob(user, each, self.random.randint(since, until)) for each in specs]
        asked = [Submission(each, self.random.getrandbits(ids.RANDOM_BITS)) for each in wanted]
        self.hub.at(START + self.random.randint(1_000, 60_000), lambda: submit_all(asked, self.plain) and None)

    def _start(self, user: str) -> None:
        made = operation.new(user, self.hub.time, self.random.getrandbits(40), Action.REPLAY_JOBS, Filter(), rate=self.random.choice(RATES))
        mine = [job for job in self.jobs.rows.values() if job.owner == user and not lifecycle.is_open(job)]
        self._originals[made.id] = {job.key: job for job in mine if lifecycle.state(job) in RAN}
        try:
            requests.start(made, self._ports())
            self.replayers.requested.update(self._originals[made.id].keys())
        except (Conflict, Unavailable):
            self._originals.pop(made.id)

    def _judge(self) -> Report:
        for id, originals in self._originals.items():
            self._judge_operation(id, originals)
        self.report.faults = self.faults.counts
        return self.report

    def _judge_operation(self, id: str, originals: dict[JobKey, Job]) -> None:
        record = next(each for each in self.operations.rows.values() if each.id == id)
        replays = [job for job in self.jobs.rows.values() if job.owner == record.owner and job.replay_of is not None]
        counts = Counter(JobKey(job.owner, job.replay_of or "") for job in replays)
        if record.state is not State.DONE or any(lifecycle.is_open(job) for job in replays):
            self._violation("replay_open", id)
        for key, before in originals.items():
            if not counts[key]:
                self._violation("not_replayed", key.id)
            if self.jobs.rows[key] != before:
                self._violation("original_changed", key.id)
        if (record.done, record.skipped, record.failed) != (len(replays), 0, 0):
            self._violation("miscounted", f"{id}: {record.done} done of {len(replays)}, {record.skipped} skipped, {record.failed} failed")


def replayed(seed: int) -> World:
    """Two users replay their jobs; nothing else is amiss but refusals of single puts."""
    world = ReplayWorld(seed, CALM)
    world.act()
    return world


def replayed_by_dying_steps(seed: int) -> World:
    """The same, while steps die after they stored replays and before they counted them."""
    world = ReplayWorld(seed, CALM, dies=DIES)
    world.act()
    return world


def replayed_in_trouble(seed: int) -> World:
    """The same without deaths, while the tables refuse and delay calls now and then."""
    world = ReplayWorld(seed, TROUBLED)
    world.act()
    return world
