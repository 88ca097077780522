"""Release steps: which jobs of a target queue start, in which order, and when the steps come."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission import target_queue
from scheduler.admission.lane_state import pause, resume
from scheduler.jobs.cancel import cancel_many
from scheduler.model import lifecycle, settlement, slots
from scheduler.model.job import Claim, Job, Lane, RequeueCause, Status
from scheduler.model.named_target import NamedTarget
from scheduler.model.rules import Rules
from scheduler.model.target_queue import QueueUser, Released, TargetQueue
from scheduler.model.target_usage import Place, TargetUsage, UsageChange
from scheduler.model.work import WorkItem, WorkKind
from scheduler.pipeline import later_checks, release
from scheduler.pipeline.worker import work
from scheduler.storage.memory.targets import MemoryTargets
from scheduler.storage.ports import Change, Written
from scheduler.targets.named_target import item_name, share_of
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times

RELEASE = WorkItem(WorkKind.RELEASE, "t")


class Queues(Stage):
    """A stage with one named target and jobs that wait for it."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.targets: Any = MemoryTargets()
        self.limit(**fields)

    def limit(self, **fields: Any) -> None:
        self.targets.rows["t"] = NamedTarget("t", "log", NOW, NOW, "ada", "ada", **fields)

    def queue(self, owner: str, count: int, **fields: Any) -> list[Job]:
        """Jobs of the owner in the queue, as the gate requeues them."""
        jobs = []
        for _ in range(count):
            claimed = a_job(owner=owner, target="t", claim=Claim("m", "n", NOW, False), **fields)
            jobs.append(settlement.requeue(claimed, RequeueCause.LIMIT, "limit", NOW, Rules(shards=2), target="t"))
            assert self.jobs.put(jobs[-1])
        self.targets.join_queue("t", owner, self.clock.now())
        return jobs

    def step(self) -> int | None:
        """One requested release step; returns when the next one is due."""
        self.work.send([RELEASE])
        (delivery,) = self.work.receive(self.clock.now())
        self.work.delete(delivery.receipt)
        return release.release(delivery, self)

    def released(self) -> list[Job]:
        """The jobs in the lane, in the order of their starts, without starting them."""
        jobs = list[Job]()
        while batch := self.receive():
            jobs += [self.stored(self.jobs.get(item.message.key)) for item in batch]
        return sorted(jobs, key=lambda job: job.released_at or 0)

    def usage(self) -> TargetUsage:
        return self.targets.usages(["t"]).get("t", TargetUsage("t"))


def owners(jobs: list[Job]) -> list[str]:
    return [job.owner for job in jobs]


def test_a_step_releases_the_starts_of_the_next_moments() -> None:
    stage = Queues(rate=2.0)
    stage.queue("ann", 10)
    assert stage.step() == NOW + target_queue.STEP_MS
    gone = stage.released()
    assert [job.released_at - NOW for job in gone if job.released_at] == [0, 500, 1_000, 1_500]
    assert all(not slots.is_queued(job.slot or "") and job.due_at == NOW for job in gone)
    assert stage.step() is not None and stage.released() == [], "the next start is too far ahead"
    stage.clock.advance(1_000)
    stage.step()
    assert len(stage.released()) == 2


def test_released_jobs_start_at_their_instants() -> None:
    stage = Queues(rate=2.0)
    stage.queue("ann", 3)
    stage.step()
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.receive(), pool=pool)
    assert [at - NOW for _, at in pool.starts] == [0, 500, 1_000]


def test_users_take_turns_by_their_weights() -> None:
    stage = Queues(rate=10.0)
    stage.queue("ann", 40)
    stage.queue("eve", 40)
    stage.users.set_weight("eve", 3.0)
    stage.step()
    gone = owners(stage.released())
    assert len(gone) == 16 and gone.count("eve") == 12
    assert "ann" in gone[:2]


def test_a_user_who_arrives_beside_a_backlog_is_next() -> None:
    stage = Queues(rate=1.0)
    stage.queue("ann", 100)
    for _ in range(5):
        stage.step()
        stage.clock.advance(1_000)
    stage.receive()
    stage.queue("eve", 2)
    gone: list[str] = []
    for _ in range(4):
        stage.step()
        gone += owners(stage.released())
        stage.clock.advance(1_000)
    assert gone == ["eve", "ann", "eve", "ann"]


def test_turns_go_on_after_a_step() -> None:
    users = {"a": QueueUser("t", "a", 1), "b": QueueUser("t", "b", 2)}
    turns = target_queue.fair_order(users, 5.0, {}, lambda owner: owner)
    assert [next(turns)[:2] for _ in range(4)] == [("a", "a"), ("b", "b")] * 2
    users = {"a": QueueUser("t", "a", 1, finish=9.0), "b": QueueUser("t", "b", 2, finish=2.0)}
    assert next(target_queue.fair_order(users, 5.0, {}, lambda owner: owner)) == ("b", "b", 5.0, 6.0), "no share is saved up"


def test_cancelled_and_stale_entries_use_up_no_start() -> None:
    stage = Queues(rate=1.0)
    jobs = stage.queue("ann", 10)
    entries = stage.jobs.waiting(slots.queue("t", "ann"), limit=100)
    cancel_many(jobs[:8], stage)
    stage.jobs = Wrapped(stage.jobs, waiting=lambda verb, *args, **more: entries)  # the index still shows them
    stage.step()
    assert [job.id for job in stage.released()] == [jobs[8].id, jobs[9].id]


def test_expired_jobs_use_up_no_start_and_are_skipped() -> None:
    stage = Queues(rate=1.0)
    expired = stage.queue("ann", 30, start_by=NOW - 1)
    (job,) = stage.queue("ann", 1)
    stage.step()
    pool = ScriptedPool(stage.clock)
    while batch := stage.receive():
        stage.execute(batch, pool=pool)
    assert [started.id for started, _ in pool.starts] == [job.id] and pool.starts[0][1] <= NOW + 1
    assert {lifecycle.state(stage.stored(each)) for each in expired} == {Status.SKIPPED}


@pytest.mark.parametrize("change", ["removed", "deleted", "disabled"])
def test_a_queue_without_a_limit_is_released_at_once(change: str) -> None:
    stage = Queues(rate=1.0)
    stage.queue("ann", 700)
    stage.step()
    if change == "deleted":
        del stage.targets.rows["t"]
    else:
        stage.limit(**({"rate": 1.0, "enabled": False} if change == "disabled" else {}))
    stage.step()
    assert stage.jobs.waiting(slots.queue("t", "ann"), limit=9) == [] and stage.usage().queued_until <= NOW


def test_a_raised_rate_releases_more_at_the_next_step() -> None:
    stage = Queues(rate=0.1)
    stage.queue("ann", 50)
    assert stage.step() == NOW + target_queue.IDLE_MS and len(stage.released()) == 1
    stage.clock.advance(2_000)
    stage.limit(rate=10.0)
    stage.step()
    assert len(stage.jobs.waiting(slots.queue("t", "ann"), limit=99)) == 50 - 1 - 16


def test_jobs_of_a_paused_lane_stay_in_the_queue() -> None:
    stage = Queues(rate=10.0)
    stage.queue("ann", 3, lane=Lane.RECURRING)
    stage.queue("ann", 2)
    pause((Lane.RECURRING,), "maintenance", stage)
    stage.step()
    assert len(stage.released()) == 2
    assert len(stage.jobs.waiting(slots.queue("t", "ann"), limit=9)) == 3


def test_jobs_of_a_lane_paused_for_long_leave_at_the_resume() -> None:
    stage = Queues(rate=10.0)
    jobs = stage.queue("ann", 3, lane=Lane.RECURRING)
    pause((Lane.RECURRING,), "maintenance", stage)
    while stage.clock.now() < NOW + 3 * target_queue.LINGER_MS:
        at = stage.step()
        assert at is not None, "somebody still waits"
        stage.clock.at = max(at, stage.clock.now() + 1)
    assert not stage.lanes.queues[Lane.RECURRING]
    resume((Lane.RECURRING,), None, stage)
    for _ in range(2):  # the resume, and the release step that it requests
        for delivery in stage.work.receive(stage.clock.now()):
            stage.work.delete(delivery.receipt)
            work(delivery, stage, operation=lambda *_: None, group=lambda *_: None, monitor=lambda *_: None)
    assert len(stage.receive(Lane.RECURRING)) == len(jobs)


def test_a_resume_requests_no_step_of_a_queue_that_has_one_soon() -> None:
    """A stage may have a thousand limited targets, and few steps at a time."""
    stage = Queues(rate=10.0)
    stage.queue("ann", 3)
    resume((Lane.RECURRING,), None, stage)
    (delivery,) = stage.work.receive(stage.clock.now())
    work(delivery, stage, operation=lambda *_: None, group=lambda *_: None, monitor=lambda *_: None)
    assert RELEASE not in stage.asked


# concurrency


def taken(stage: Queues, *jobs: Job, since: int = NOW) -> tuple[Place, ...]:
    places = tuple(Place(job.key, job.fence, since, since + 600_000) for job in jobs)
    assert stage.targets.use([UsageChange("t", first=True, takes=places, took_ms=60_000)])[0].done is Written.YES
    return places


def running(stage: Queues) -> Job:
    job = a_job(target="t", claim=Claim("m", "n", NOW, True))
    assert stage.jobs.put(job)
    return job


def test_no_job_is_released_while_long_jobs_have_all_slots() -> None:
    stage = Queues(concurrency=2)
    places = taken(stage, running(stage), running(stage))
    stage.queue("ann", 5)
    stage.targets.use([UsageChange("t", took_ms=60_000)])
    stage.clock.advance(10_000)
    stage.step()
    assert stage.released() == [] and stage.usage().queued_until > stage.clock.now()
    stage.targets.use([UsageChange("t", drops=places[:1])])
    stage.step()
    assert len(stage.released()) == 1
    stage.step()
    assert stage.released() == [], "the one that was released is on its way"


def test_the_slot_of_a_dead_attempt_is_found_within_seconds() -> None:
    stage = Queues(concurrency=1)
    dead = replace(a_job(target="t"), slot=None, completed_at=NOW)
    stage.jobs.put(dead)
    taken(stage, dead)
    stage.queue("ann", 1)
    stage.clock.advance(10_000)
    stage.step()
    assert stage.usage().places == () and len(stage.released()) == 1


def test_quick_jobs_are_released_ahead_of_the_ends() -> None:
    limit = NamedTarget("t", "log", NOW, NOW, "ada", "ada", concurrency=2)
    busy = TargetUsage("t", places=tuple(Place(a_job().key, 1, NOW, NOW + 9_999) for _ in range(2)), took_ms=100, taken=60)
    assert target_queue.slots_left([busy], limit, (), [Released(NOW - 2_000, 20, 20)], NOW) == 30, "twenty a second end"
    assert target_queue.slots_left([busy], limit, (), [Released(NOW - 2_000, 45, 20)], NOW) == 25, "five are on their way"
    assert target_queue.slots_left([busy], limit, (), [Released(NOW - 2_000, 2, 56)], NOW) == 3, "it grows with what ended lately"
    assert target_queue.slots_left([busy], limit, (), [], NOW) == 0, "nothing is known yet"
    assert target_queue.slots_left([replace(busy, took_ms=60_000)], limit, (), [Released(NOW - 2_000, 20, 20)], NOW) == 0
    free = replace(busy, places=())
    assert target_queue.slots_left([free], limit, (), [], NOW) == 2


@pytest.mark.parametrize(("beside", "pause_ms"), [(0, target_queue.IDLE_MS), (50, target_queue.STEP_MS)])
def test_a_target_with_further_items_has_a_step_each_second(beside: int, pause_ms: int) -> None:
    """The ends of long jobs request the steps, but a further item does not tell whether jobs wait."""
    stage = Queues(concurrency=1 + beside, beside=beside)
    target = stage.targets.rows["t"]
    for number in range(26 if beside else 1):
        taken = tuple(Place(a_job().key, 1, NOW, NOW + 99_999) for _ in range(share_of(target, number)))
        stage.targets.use([UsageChange(item_name("t", number), first=True, takes=taken, took_ms=5_000)])
    stage.queue("ann", 3)
    assert stage.step() == NOW + pause_ms


# steps


def test_steps_come_more_and_more_rarely_when_no_job_waits_and_end() -> None:
    stage = Queues(rate=100.0)
    stage.queue("ann", 1)
    stage.work.send([RELEASE])
    results = stage.work_off(until=NOW + 20 * 60_000)
    assert results[-1].next_at is None and len(results) < 60 and not any(result.failed for result in results)
    assert stage.targets.queue("t")[1] == [] and stage.asked == []


def test_a_user_who_joins_again_is_not_dropped() -> None:
    stage = Queues(rate=100.0)
    stage.targets.join_queue("t", "ann", NOW)
    (before,) = stage.targets.queue("t")[1]
    stage.targets.join_queue("t", "ann", NOW + 1)
    assert not stage.targets.drop_queue_user(before) and len(stage.targets.queue("t")[1]) == 1


def test_one_message_drives_the_steps_of_a_queue() -> None:
    stage = Queues(rate=0.1)
    stage.queue("ann", 100)
    for _ in range(5):
        stage.work.send([RELEASE])
    stage.work_off(until=NOW + 30_000)
    assert len(stage.asked) == 1


def test_a_step_that_another_worker_does_is_left_to_it() -> None:
    stage = Queues(rate=1.0)
    stage.queue("ann", 3)
    assert stage.targets.change_queue(None, TargetQueue("t", 1, NOW + 5_000, NOW, "other"))
    assert stage.step() is None and stage.released() == []
    stage.clock.advance(5_000)
    assert stage.step() is not None and len(stage.released()) == 2


def test_a_failed_step_frees_its_lease() -> None:
    stage = Queues(rate=1.0)
    stage.queue("ann", 3)
    stage.users = Wrapped(stage.users, weights=times(1, refuse))
    stage.work.send([RELEASE])
    assert [result.failed for result in stage.work_off()] == [True]
    assert stage.step() is not None and len(stage.released()) == 2


def test_starts_that_executors_assign_meanwhile_are_not_assigned_twice() -> None:
    stage = Queues(rate=2.0)
    stage.queue("ann", 10)
    real, pool = stage.targets, ScriptedPool(stage.clock)

    def meanwhile(verb: Any, uses: Any) -> Any:
        stage.targets = real
        stage.execute(stage.hand(a_job(owner="eve", target="t")), pool=pool)
        return verb(uses)

    stage.targets = Wrapped(real, use=times(1, meanwhile))
    stage.step()
    gone = [job.released_at - NOW for job in stage.released() if job.released_at]
    assert [at - NOW for _, at in pool.starts] == [0] and gone == [500, 1_000, 1_500]


def test_an_overdue_step_is_requested_by_the_checks() -> None:
    stage = Queues(rate=1.0)
    stage.queue("ann", 3)
    stage.step()
    stage.clock.advance(release.LOST_MS)
    assert release.lost(stage, stage.clock.now()) == []
    stage.clock.advance(2_000)
    later_checks.check(stage)
    assert stage.asked == [RELEASE]


def test_the_sweep_notes_users_whose_items_were_lost() -> None:
    stage = Queues(rate=1.0)
    stage.queue("ann", 1)
    (user,) = stage.targets.queue("t")[1]
    stage.targets.drop_queue_user(user)
    stage.clock.advance(later_checks.ORPHAN_MS + 1)
    while not stage.targets.queue("t")[1]:
        later_checks.check(stage)
    later_checks.check(stage)
    assert RELEASE in stage.asked


def test_a_job_that_ends_during_a_step_makes_room_in_it() -> None:
    stage = Queues(concurrency=1)
    stage.queue("ann", 2)
    (place,) = taken(stage, running(stage))
    stage.clock.advance(10_000)
    real = stage.targets

    def end(verb: Any, before: Any, after: Any) -> Any:
        if after.lease_until == 0:
            real.use([UsageChange("t", drops=(place,))])
        return verb(before, after)

    stage.targets = Wrapped(real, change_queue=times(2, end))  # it is leased, and left
    stage.step()
    assert len(stage.released()) == 1


def test_a_change_of_a_moved_job_is_not_undone() -> None:
    stage = Queues(rate=1.0)
    (job,) = stage.queue("ann", 1)
    moved = lifecycle.release(job, NOW, slot="2026-11-20T10:30#00")
    cancel_many([job], stage)
    assert stage.jobs.change([Change.of_slot(job, moved)]) == [Written.NO]
