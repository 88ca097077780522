"""A world whose lanes are paused and resumed again and again, with jobs of every kind, and the oracle of the resume.

The oracle: a job that was due when its lane was resumed, and waited for nothing else, is claimed within `PATIENCE_MS`; if the message of
the resume is lost, within `LOST_MS`. A job that waits for the report of its worker is taken back at the end of its lease. It judges no
lane that is paused again before, and there are always executors enough. `waited` counts the judged jobs by kind.
"""

from collections import Counter
from collections.abc import Sequence

from lab.world.faults import CALM, Rates
from scheduler.admission.lane_state import pause, resume
from scheduler.model import callback_lease, lifecycle, slots
from scheduler.model.job import Job, JobKey, Lane, RequeueCause, Unit
from scheduler.model.rules import Rules
from scheduler.model.work import WorkItem, WorkKind
from scheduler.storage.memory.stores import QueuedWork
from tests.simulation.world import START, World

PATIENCE_MS = 3_000  # two seconds, and the lag of the index
LOST_MS = 66_000  # the next tick, and what follows it
LASTS_MS = (1_000, 10_000, 60_000, 150_000)
GAPS_MS = (1_500, 10_000, 30_000)  # from a resume to the next pause
BEGIN_MINUTES, MINUTES = 2, 24
TAKES_MS = 200  # of a write in `MetWorld`: the message of a resume is worked off before


class ResumedWorld(World):
    """See the module."""

    def __init__(self, seed: int, rates: Rates = CALM, *, rules: Rules | None = None) -> None:
        super().__init__(
            seed,
            rates,
            rules=rules or Rules(shards=2, windows=dict.fromkeys(Lane, 1_000), direct_burst=5, direct_rate=1),
            concurrency=1_000,
        )
        self.waited: Counter[str] = Counter()
        self._claimed: dict[JobKey, int] = {}  # when each job was last claimed
        self._paused_at: dict[Lane, int] = {}  # the last pause of each lane
        self._loses_resume = False
        self._add = self.work.add
        self.work.add = self._add_or_lose  # type: ignore[method-assign]

    def plan_all_pauses(self, until: int) -> None:
        """Pause some or all lanes from the second minute on, again and again, and resume them."""
        at = START + BEGIN_MINUTES * slots.MINUTE
        while at < until:
            lanes = self.random.choice((tuple(Lane), tuple(Lane), (Lane.ONE_TIME,), (Lane.RETRY, Lane.RECURRING)))
            lasts, is_lost = self.random.choice(LASTS_MS), self.random.random() < 0.2
            self.hub.at(at, lambda lanes=lanes: self._pause(lanes))  # type: ignore[misc]
            self.hub.at(at + lasts, lambda lanes=lanes, is_lost=is_lost: self._resume(lanes, is_lost))  # type: ignore[misc]
            at += lasts + (LOST_MS + 1_000 if is_lost else self.random.choice(GAPS_MS))

    def _pause(self, lanes: Sequence[Lane]) -> None:
        self._paused_at |= dict.fromkeys(lanes, self.hub.time)
        pause(lanes, None, self.plain)

    def _resume(self, lanes: Sequence[Lane], is_lost: bool) -> None:
        now = self.hub.time
        self._loses_resume = is_lost
        resume(lanes, None, self.plain)
        self._loses_resume = False
        due = {key: job.fence for key, job in self.jobs.rows.items() if job.lane in lanes and self._is_judged(job, now)}
        patience = LOST_MS if is_lost else PATIENCE_MS
        self.hub.at(now + patience, lambda: self._judge_resume(due, now))

    def _add_or_lose(self, item: WorkItem, visible_at: int) -> QueuedWork:
        made = self._add(item, visible_at)
        if self._loses_resume and item.kind is WorkKind.RESUME:
            del self.work.queued[made.message_id]
        return made

    def _watch(self, before: Job | None, after: Job) -> None:
        super()._watch(before, after)
        if after.claim is not None and (before is None or before.claim is None):
            self._claimed[after.key] = self.hub.time

    def _is_judged(self, job: Job, now: int) -> bool:
        """Whether the job is due, and waits for its lane alone: no gate has requeued it for another reason, or it was woken since."""
        if not lifecycle.is_open(job) or job.due_at > now or job.cancel_requested_at is not None:
            return False
        if lifecycle.waits(job):
            return callback_lease.over_at(job) <= now - PATIENCE_MS
        is_free = job.reason is None or job.requeue_cause is RequeueCause.PAUSED
        return job.claim is None and (is_free or slots.is_always_open(job.slot or ""))

    def _judge_resume(self, due: dict[JobKey, int], resumed_at: int) -> None:
        for key, fence in due.items():
            job = self.jobs.rows.get(key)
            if job is None or self._paused_at.get(job.lane, 0) > resumed_at:
                continue
            kind = kind_of(job)
            self.waited[kind] += 1
            if job.fence == fence and self._is_judged(job, self.hub.time) and self._claimed.get(key, 0) < resumed_at:
                self._violation("late_after_resume", f"{job.id} ({kind})")


class MetWorld(ResumedWorld):
    """Each resume comes while a step still has the unit that is about to wait for it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._paused: set[Lane] = set()
        self._write_unit = self.ledger.change_unit
        self.ledger.change_unit = self._change_unit  # type: ignore[method-assign]

    def _pause(self, lanes: Sequence[Lane]) -> None:
        super()._pause(lanes)
        self._paused |= set(lanes)

    def _resume(self, lanes: Sequence[Lane], is_lost: bool) -> None:
        super()._resume(lanes, is_lost)
        self._paused -= set(lanes)

    def _change_unit(self, before: Unit, after: Unit) -> bool:
        if after.resting and self._paused and after.next_at > self.hub.time + slots.MINUTE // 2:
            self._resume(sorted(self._paused), False)
            self.hub.sleep_until(self.hub.time + TAKES_MS)
        return self._write_unit(before, after)


def met(seed: int) -> MetWorld:
    """Run a world of this kind, without faults."""
    world = MetWorld(seed)
    world.plan_all_pauses(START + MINUTES * slots.MINUTE)
    world.run(200, MINUTES, tasks=4, ordered=0, wind_down=60)
    return world


def kind_of(job: Job) -> str:
    """Return what the job is, and what it may wait for."""
    if lifecycle.is_open(job) and lifecycle.waits(job):
        return "silent worker"
    if job.attempts:
        return "retry"
    if job.origin is not None:
        return "run" if job.origin.nominal_at is not None else "run now"
    for kind, has in (("ordering key", job.spec.ordering), ("limited target", job.spec.target), ("call-back", job.spec.callback)):
        if has is not None:
            return kind
    return "planned" if job.scheduled_at - job.created_at > slots.HORIZON + slots.MINUTE else "direct"


def resumed_often(seed: int) -> ResumedWorld:
    """Run a world of this kind, without faults."""
    world = ResumedWorld(seed)
    end = START + MINUTES * slots.MINUTE
    world.plan_all_pauses(end)
    world.run(400, MINUTES, tasks=8, ordered=60, wind_down=60)
    return world
