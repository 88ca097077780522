"""Jobs with the limit of a key: who sets the limit, when its jobs start, wait and are released, and what is left of an idle key."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission import key_limits, limits, target_queue
from scheduler.admission.key_limits import Claim
from scheduler.callbacks.reports import report
from scheduler.callbacks.tokens import AttemptKey
from scheduler.model import slots
from scheduler.model.errors import Conflict
from scheduler.model.job import Attempt, Job, Outcome, Result
from scheduler.model.limiter import KeyLimit, name_of
from scheduler.model.named_target import NamedTarget
from scheduler.model.spec import CallBack, JobSpec, Limit
from scheduler.model.target_queue import queue_part
from scheduler.model.target_usage import Place, TargetUsage, UsageChange
from scheduler.model.work import WorkItem, WorkKind
from scheduler.pipeline import release
from scheduler.pipeline.follow_up import wake
from scheduler.pipeline.submit import Accepted, NewJob, Submission, submit_all
from scheduler.storage.memory.targets import MemoryTargets
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse

TWO = Limit("crm", concurrency=2)
NAME = name_of("ann", "crm")


class Keyed(Stage):
    """A stage whose jobs have limits."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: Any = MemoryTargets()

    def run(self, *jobs: Job, pool: ScriptedPool | None = None) -> ScriptedPool:
        pool = pool or ScriptedPool(self.clock)
        self.execute(self.hand(*jobs), pool=pool)
        return pool

    def usage(self, name: str = NAME) -> TargetUsage:
        return self.targets.usages([name]).get(name, TargetUsage(name))

    def occupy(self, limit: Limit, *places: Place, **fields: Any) -> None:
        """Jobs have these slots of the key."""
        name = name_of("ann", limit.key)
        self.targets.use([UsageChange(name, first=True, takes=places, limit=(None, KeyLimit(limit)), **fields)])

    def step(self, name: str = NAME, part: str = "") -> int | None:
        """One release step of the key; returns when the next one is due if this step has not sent its message."""
        self.work.send([WorkItem(WorkKind.RELEASE, name, part)])
        delivery = self.work.receive(self.clock.now())[-1]
        self.work.delete(delivery.receipt)
        return release.release(delivery, self)

    def steps(self) -> list[int]:
        """When the messages of steps are delivered, from now."""
        return sorted(each.visible_at - self.clock.now() for each in self.work.queued.values())

    def released(self) -> list[Job]:
        return [self.stored(item.message.key) for item in self.receive()]


def some(count: int, limit: Limit = TWO, **fields: Any) -> list[Job]:
    return [a_job(limit=limit, **fields) for _ in range(count)]


def running(stage: Keyed, count: int = 2) -> list[Place]:
    """The slots of jobs that executors have claimed."""
    jobs = [stage.claim(item) for item in stage.hand(*(a_job() for _ in range(count)))]
    return [Place(job.key, job.fence, stage.clock.now(), stage.clock.now() + 7_200_000) for job in jobs]


# Who sets the limit.


def test_the_first_job_of_a_key_sets_its_limit() -> None:
    claim = Claim("ann", TWO, due_at=NOW)
    first = key_limits.agreed(TargetUsage(NAME), claim, NOW)
    assert isinstance(first, KeyLimit) and first.limit == TWO and NOW + 60_000 <= first.until <= NOW + 120_000
    assert key_limits.agreed(TargetUsage(NAME, limit=first), claim, NOW) == first, "nothing to write"


@pytest.mark.parametrize(
    "usage",
    [
        TargetUsage(NAME, limit=KeyLimit(TWO, until=NOW + 1)),
        TargetUsage(NAME, limit=KeyLimit(TWO), queued_until=NOW + 1),
        TargetUsage(NAME, limit=KeyLimit(TWO), places=(Place(a_job().key, 1, NOW, NOW + 1),)),
        TargetUsage(NAME, limit=KeyLimit(TWO, "task 1"), queued_until=NOW + 1),
    ],
    ids=["a job is due later", "a job waits", "a job runs", "a task set it"],
)
def test_another_limit_of_a_key_in_use_is_refused(usage: TargetUsage) -> None:
    refused = key_limits.agreed(usage, Claim("ann", Limit("crm", concurrency=3), due_at=NOW), NOW)
    assert isinstance(refused, Conflict) and refused.details[0]["field"] == "limit" and "2 at once" in refused.message


def test_an_idle_key_takes_another_limit() -> None:
    after = key_limits.agreed(TargetUsage(NAME, limit=KeyLimit(TWO, until=NOW)), Claim("ann", Limit("crm", rate=1)), NOW)
    assert isinstance(after, KeyLimit) and after.limit == Limit("crm", rate=1)


def test_the_definition_that_set_a_limit_changes_it_at_once() -> None:
    usage = TargetUsage(NAME, limit=KeyLimit(TWO, "task 1", NOW + 9), queued_until=NOW + 9)
    after = key_limits.agreed(usage, Claim("ann", Limit("crm", concurrency=5), "task 1"), NOW)
    assert isinstance(after, KeyLimit) and after.limit.concurrency == 5


def test_jobs_of_one_call_with_two_limits_of_a_key() -> None:
    stage = Keyed()
    made = [NewJob("ann", JobSpec("log", {}, limit=Limit("crm", concurrency=n)), NOW) for n in (2, 3, 2)]
    first, second, third = submit_all([Submission(each, number) for number, each in enumerate(made)], stage)
    assert isinstance(first, Accepted) and isinstance(third, Accepted) and isinstance(second, Conflict)
    assert len(stage.jobs.rows) == 2 and stage.usage().limit is not None


def test_keys_of_different_owners_are_different_keys() -> None:
    stage = Keyed()
    submit_all([Submission(NewJob("ann", JobSpec("log", {}, limit=TWO), NOW), 1)], stage)
    submit_all([Submission(NewJob("eve", JobSpec("log", {}, limit=Limit("crm", rate=1)), NOW), 2)], stage)
    assert name_of("eve", "crm") != NAME and len(stage.targets.usages([NAME, name_of("eve", "crm")])) == 2


def test_a_raised_limit_requests_a_release_step() -> None:
    stage = Keyed()
    stage.occupy(TWO, queued_until=NOW + 9_000)
    stage.targets.use([UsageChange(NAME, limit=(KeyLimit(TWO), KeyLimit(TWO, "task 1")))])
    assert key_limits.agree([Claim("ann", Limit("crm", concurrency=5), "task 1")], stage, NOW) == [None]
    assert stage.asked == [WorkItem(WorkKind.RELEASE, NAME)]


# The gate.


def test_no_more_jobs_of_a_key_run_than_its_limit() -> None:
    stage = Keyed()
    jobs = some(5)
    pool = stage.run(*jobs, pool=ScriptedPool(stage.clock, takes=30_000))
    assert len(pool.starts) == 2
    back = [stage.stored(job) for job in jobs if slots.is_queued(stage.stored(job).slot or "")]
    assert len(back) == 3 and {job.slot for job in back} <= set(slots.queue(NAME, "ann"))
    assert (back[0].reason or "").startswith("limit: waits for key crm (2 of 2 running) since 20")
    assert {job.fence for job in back} == {2}, "each was claimed once"


def test_jobs_of_another_key_and_of_none_start_at_once() -> None:
    stage = Keyed()
    stage.occupy(TWO, *running(stage))
    pool = stage.run(*some(1), *some(1, Limit("other", concurrency=1)), a_job())
    assert [job.spec.limit and job.spec.limit.key for job, _ in pool.starts] in (["other", None], [None, "other"])


def test_a_job_without_a_limit_reads_no_usage() -> None:
    stage = Keyed()
    stage.targets = Wrapped(stage.targets, usages=refuse, use=refuse, targets=refuse)
    assert len(stage.run(a_job()).starts) == 1


def test_the_present_limit_of_the_key_applies_to_a_job_with_an_older_one() -> None:
    stage = Keyed()
    stage.occupy(Limit("crm", concurrency=1))
    pool = stage.run(*some(3), pool=ScriptedPool(stage.clock, takes=30_000))
    assert len(pool.starts) == 1


def test_an_end_frees_the_slot_and_wakes_the_queue() -> None:
    stage = Keyed()
    stage.run(*some(3), pool=ScriptedPool(stage.clock, takes=30_000))
    assert stage.usage().places == ()
    (item,) = set(stage.asked)
    assert item.of == NAME and item.kind is WorkKind.RELEASE


def test_a_job_takes_all_its_limits_or_none() -> None:
    stage = Keyed()
    stage.targets.put(None, NamedTarget("t", "log", NOW, NOW, "ada", "ada", concurrency=1))
    stage.occupy(TWO, *running(stage))
    (job,) = some(1, target="t")
    assert stage.run(job).starts == []
    assert stage.usage("t").places == (), "it holds nothing of the target while it waits for the key"
    assert stage.stored(job).slot in slots.queue(NAME, "ann")
    free = some(1, Limit("other", concurrency=1), target="t")
    pool = stage.run(*free, pool=ScriptedPool(stage.clock, takes=3_000))
    assert len(pool.starts) == 1 and stage.targets.usages(["t"])["t"].places == ()
    assert stage.usage(name_of("ann", "other")).taken == 1


def test_a_job_with_two_rates_starts_when_both_allow_it() -> None:
    stage = Keyed()
    stage.targets.put(None, NamedTarget("t", "log", NOW, NOW, "ada", "ada", rate=10.0))
    pool = stage.run(*some(3, Limit("crm", rate=4), target="t"))
    assert [at - NOW for _, at in pool.starts] == [0, 250, 500]


def test_a_refused_request_takes_nothing_of_the_other_rate() -> None:
    stage = Keyed()
    stage.targets.put(None, NamedTarget("t", "log", NOW, NOW, "ada", "ada", rate=10.0))
    stage.run(*some(1, Limit("crm", rate=1, period_ms=60_000), target="t"))
    before = stage.targets.usages(["t"])["t"].start_us
    assert stage.run(*some(1, Limit("crm", rate=1, period_ms=60_000), target="t")).starts == []
    assert stage.targets.usages(["t"])["t"].start_us == before


def test_jobs_of_two_targets_share_the_key_of_the_targets() -> None:
    stage = Keyed()
    for name in "ab":
        stage.targets.put(None, NamedTarget(name, "log", NOW, NOW, "ada", "ada", limit=Limit("host", concurrency=1)))
    jobs = [a_job(target="a"), a_job(target="b", owner="eve")]
    assert len(stage.run(*jobs, pool=ScriptedPool(stage.clock, takes=30_000)).starts) == 1


def test_a_report_frees_the_slot_of_its_key() -> None:
    stage = Keyed()
    (job,) = some(1, callback=CallBack())
    stage.run(job)
    assert len(stage.usage().places) == 1
    report(AttemptKey(job.key, 1), Result("done"), stage)
    assert stage.usage().places == ()


def test_the_end_of_a_job_without_executor_frees_its_slot() -> None:
    stage = Keyed()
    (job,) = some(1)
    stage.occupy(TWO, Place(job.key, 1, NOW, NOW + 600_000), queued_until=NOW + 9_000)
    stage.clock.advance(5_000)
    wake(
        [replace(job, slot=None, killed_at=NOW, fence=2, attempts=(Attempt(1, NOW, NOW, NOW, Outcome.CRASHED),))],
        stage,
        now=stage.clock.now(),
    )
    assert stage.usage().places == () and stage.asked == [WorkItem(WorkKind.RELEASE, NAME)]


# Release steps.


def queued(stage: Keyed, count: int, limit: Limit = TWO) -> list[Job]:
    """Jobs in the queue of the key."""
    name, jobs = name_of("ann", limit.key), list[Job]()
    for job in some(count, limit):
        jobs.append(replace(job, slot=slots.queued(name, "ann", job.id), fence=2))
        stage.jobs.put(jobs[-1])
    stage.targets.join_queue(name, "ann", stage.clock.now())
    return jobs


def test_a_step_releases_the_jobs_for_the_free_slots() -> None:
    stage = Keyed()
    stage.occupy(TWO)
    stage.targets.use([UsageChange(NAME, took_ms=60_000)])
    queued(stage, 5)
    assert stage.step() is None, "it has sent the message of the next step"
    assert len(stage.released()) == 2 and stage.steps() == [1_000]


def test_steps_come_after_growing_pauses_while_the_slots_stay_in_use() -> None:
    stage = Keyed()
    stage.occupy(TWO, *running(stage))
    queued(stage, 5)
    pauses = []
    for _ in range(13):
        stage.step()
        pauses += stage.steps()
        stage.work.queued.clear()
        stage.clock.advance(pauses[-1])
    assert pauses[:6] == [1_000, 1_000, 2_000, 4_000, 8_000, 16_000] and pauses[-1] == release.SLOWEST_MS
    assert stage.usage().queued_until > stage.clock.now(), "an end requests a step all the time"


def test_the_step_of_a_slow_rate_comes_just_before_its_next_start() -> None:
    stage = Keyed()
    slow = Limit("crm", rate=10, period_ms=60_000)
    stage.occupy(slow)
    queued(stage, 3, slow)
    stage.step()
    assert len(stage.released()) == 1
    (pause,) = stage.steps()
    assert 6_000 - limits.NEAR_MS <= pause < 6_000
    stage.work.queued.clear()
    stage.clock.advance(pause)
    stage.step()
    (second,) = stage.released()
    assert second.released_at == NOW + 6_000


def test_only_the_step_that_was_planned_last_goes_on() -> None:
    stage = Keyed()
    stage.occupy(TWO, *running(stage))
    queued(stage, 3)
    stage.step()
    planned = [item.part for item in stage.asked]
    stage.work.queued.clear()
    stage.step()
    assert len(stage.asked) == 1
    stage.work.queued.clear()
    assert stage.step(part=planned[0]) is None and stage.asked == [], "another step has begun since"


def test_a_crowd_that_joins_is_one_step() -> None:
    stage = Keyed()
    stage.occupy(TWO, *running(stage))
    queued(stage, 3)
    stage.step()
    epoch = stage.targets.queue(NAME)[0].epoch
    stage.work.queued.clear()
    assert stage.step(part=target_queue.JOINED) is None
    assert stage.targets.queue(NAME)[0].epoch == epoch


def test_a_waiting_job_moves_to_the_queue_of_the_limit_that_has_no_room() -> None:
    stage = Keyed()
    stage.targets.put(None, NamedTarget("t", "log", NOW, NOW, "ada", "ada", rate=1.0))
    stage.occupy(TWO, *running(stage))
    job = replace(a_job(target="t", limit=TWO), fence=2)
    job = replace(job, slot=slots.queued("t", "ann", job.id))
    stage.jobs.put(job)
    stage.targets.join_queue("t", "ann", NOW)
    stage.step("t")
    moved = stage.stored(job)
    assert moved.slot in slots.queue(NAME, "ann") and "key crm" in (moved.reason or "")
    assert stage.usage("t").start_us == 0, "no start is lost"


def test_a_released_job_with_two_rates_has_a_start_of_both() -> None:
    stage = Keyed()
    stage.targets.put(None, NamedTarget("t", "log", NOW, NOW, "ada", "ada", rate=10.0))
    slow = Limit("crm", rate=1)
    stage.occupy(slow)
    job = replace(a_job(target="t", limit=slow), fence=2)
    job = replace(job, slot=slots.queued(NAME, "ann", job.id))
    stage.jobs.put(job)
    stage.targets.join_queue(NAME, "ann", NOW)
    stage.step()
    assert stage.usage().start_us == (NOW + 1_000) * 1_000 and stage.targets.usages(["t"])["t"].start_us == (NOW + 100) * 1_000
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.receive(), pool=pool)
    assert [at - NOW for _, at in pool.starts] == [0] and stage.usage().start_us == (NOW + 1_000) * 1_000


def test_an_idle_key_leaves_no_queue_and_its_record_expires() -> None:
    stage = Keyed()
    stage.run(*some(1))
    usage = stage.usage()
    assert NOW + limits.RETENTION_MS <= usage.expires <= NOW + 2 * limits.RETENTION_MS
    stage.targets.join_queue(NAME, "ann", NOW)
    stage.targets.use([UsageChange(NAME, queued_until=NOW + 9_000)])
    for _ in range(40):
        stage.step()
        stage.work.queued.clear()
        stage.clock.advance(15_000)
    assert stage.targets.queue(NAME) == (None, []) and stage.usage().queued_until == 0


def test_a_job_that_expires_in_a_full_queue_is_sent_to_be_skipped() -> None:
    stage = Keyed()
    stage.occupy(TWO, *running(stage))
    (job,) = queued(stage, 1)
    stage.jobs.rows[job.key] = replace(job, start_by=NOW + 30_000)
    stage.step()
    stage.clock.advance(90_000)
    stage.step()
    assert not slots.is_queued(stage.stored(job).slot or "")


def test_a_lost_step_is_found_within_four_minutes() -> None:
    stage = Keyed()
    stage.occupy(TWO)
    queued(stage, 3)
    stage.clock.advance(60_000)
    found = [release.lost(stage, stage.clock.now() + minute * slots.MINUTE) for minute in range(4)]
    assert [item for items in found for item in items] == [WorkItem(WorkKind.RELEASE, NAME)]


def test_queues_of_keys_spread_over_parts() -> None:
    parts = [queue_part(name_of("ann", f"key {number}")) for number in range(1_000)]
    assert len(set(parts)) == 16 and queue_part("invoices") is None
