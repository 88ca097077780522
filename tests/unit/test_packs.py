"""Packs: the jobs of a crowd travel together, and each keeps a life of its own."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lambdas._pool import THREADS
from scheduler.model import lifecycle, slots
from scheduler.model.job import Delivery, Job, JobKey, Lane, Message, Status, Unit, UnitKey
from scheduler.model.rules import Rules
from scheduler.model.spec import JobSpec
from scheduler.pipeline import packs
from scheduler.pipeline.bury import bury
from scheduler.pipeline.delivery import LEASE_MS, PUT_BACK_S, REFUSED_S
from scheduler.pipeline.direct_path import TOGETHER
from scheduler.pipeline.submit import NewJob
from scheduler.pipeline.waiting_jobs import BESIDE_MS, FULL_MS
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse, times

UNIT = UnitKey(slots.minute_of(NOW), 0)
OVERFLOW = UnitKey(slots.OVERFLOW, 0)


def packed(stage: Stage, *jobs: Job) -> Delivery:
    """Store jobs, send them in one message, and receive it."""
    for job in jobs:
        stage.jobs.put(job)
    messages = [Message(job.key, job.fence, job.lane, job.due_at, sent_at=stage.clock.at) for job in jobs]
    (pack,) = packs.pack(messages, lambda first: packs.MOST)
    stage.lanes.add(pack, stage.clock.at)
    (item,) = stage.receive(jobs[0].lane)
    return item


def statuses(stage: Stage, jobs: list[Job]) -> list[Status]:
    return [lifecycle.state(stage.stored(job)) for job in jobs]


def crowd(count: int = 5, due_at: int = NOW, **fields: Any) -> list[Job]:
    return [a_job(due_at=due_at, **fields) for _ in range(count)]


# the rule

LANES = st.sampled_from(Lane)


@given(st.lists(st.tuples(LANES, st.integers(0, 5_000)), max_size=60), st.integers(1, 7))
def test_each_job_is_in_one_pack_of_its_lane_in_order(jobs: list[tuple[Lane, int]], most: int) -> None:
    messages = [
        Message(JobKey("ada", str(number)), 1, lane, due_at) for number, (lane, due_at) in enumerate(sorted(jobs, key=lambda j: j[1]))
    ]
    made = packs.pack(messages, lambda first: most)
    for lane in Lane:
        singles = [single for pack in made if pack.lane is lane for single in pack.singles()]
        assert singles == [message for message in messages if message.lane is lane]
    for pack in made:
        dues = [single.due_at for single in pack.singles()]
        assert len(dues) <= (1 if pack.lane is Lane.RETRY else most) and max(dues) - min(dues) < packs.SPAN_MS


@pytest.mark.parametrize(
    ("crowd", "executors", "size"),
    [(1, 5, 1), (50, 5, 1), (60, 5, packs.LEAST), (1_000, 12, 83), (50_000, 5, packs.MOST)],
)
def test_the_size_follows_the_crowd_and_the_executors(crowd: int, executors: int, size: int) -> None:
    assert packs.size(crowd, executors) == size


@pytest.mark.parametrize(("crowd", "size"), [(2, 1), (3, 10), (51, 10), (1_000, 20), (50_000, packs.MOST)])
def test_late_jobs_fill_full_batches(crowd: int, size: int) -> None:
    assert packs.size(crowd, 5, late=True) == size


@pytest.mark.parametrize(("ready", "size"), [(0, packs.MOST), (20, 70), (1_860, packs.LEAST)])
def test_ready_executors_divide_a_crowd_into_packs_that_are_not_small(ready: int, size: int) -> None:
    assert packs.size(1_400, 5, ready=ready) == size
    assert packs.LEAST * packs.BATCH <= THREADS


def test_executors_kept_ready_make_no_crowd_of_a_few_jobs() -> None:
    assert packs.size(50, 5, ready=1_860) == 1


def test_a_crowd_leaves_earlier_the_larger_it_is_within_the_hold() -> None:
    assert packs.lead(1_000, 20_000) == packs.COLD_MS + 1_000
    assert packs.lead(50_000, 20_000) == 20_000 - packs.MARGIN_MS
    assert packs.lead(1_000, 0) == 0


# sending


def test_a_batch_of_a_thousand_jobs_for_one_instant_is_tens_of_messages() -> None:
    stage = Stage()
    jobs = stage.submit_all(*[NOW + 30_000] * 1_000)
    queued = stage.lanes.queues[Lane.ONE_TIME].values()
    assert {single.key for each in queued for single in each.message.singles()} == {job.key for job in jobs if job}
    assert len(queued) == 5 and {each.visible_at for each in queued} == {NOW + 26_000}  # the lead of the crowd ahead


@pytest.mark.parametrize("at", [None, NOW + 30_000])
@pytest.mark.parametrize(("jobs", "messages"), [(1, 1), (2, 2), (3, 1), (10, 1), (20, 2), (30, 2), (50, 2)])
def test_a_few_jobs_of_a_call_travel_in_two_messages_at_most(jobs: int, messages: int, at: int | None) -> None:
    stage = Stage()
    stage.submit_all(*[at] * jobs)
    assert len(stage.lanes.queues[Lane.ONE_TIME]) == messages == packs.messages(jobs, 5)
    assert jobs < 20 or packs.most_in(messages, 5) >= jobs


@pytest.mark.parametrize("processes", [1, 8])
def test_jobs_posted_one_by_one_for_one_instant_are_packed_by_the_overflow(processes: int) -> None:
    stage = Stage(rules=Rules(shards=1, direct_burst=10_000))
    jobs = [_post(stage, direct) for direct in [stage.direct() for _ in range(processes)] for _ in range(500 // processes)]
    alone = len(stage.lanes.queues[Lane.ONE_TIME])
    assert alone == TOGETHER * processes and sum(slots.is_overflow(job.slot or "") for job in jobs) == len(jobs) - alone
    assert not packs.is_crowd(alone, Rules().ready_executors)  # executors are left for the packs
    stage.clock.at = NOW + 27_000
    stage.lanes = Wrapped(stage.lanes, publish=_settling(stage))
    stage.dispatch(OVERFLOW)
    assert len(stage.lanes.queues[Lane.ONE_TIME]) - alone <= 12


@pytest.mark.parametrize(("calls", "expected"), [([50, 1], 2), ([500, 1], 1), ([1, 1], 2), ([1, 2], 1)])
def test_a_small_call_for_one_instant_needs_no_dispatcher(calls: list[int], expected: int) -> None:
    stage = Stage(rules=Rules(shards=1, direct_burst=10_000))
    direct = stage.direct()
    for count in calls:
        stage.post(*[_new()] * count, direct=direct)
    assert len(stage.lanes.queues[Lane.ONE_TIME]) == expected


def _new() -> NewJob:
    return NewJob("ann", JobSpec("log", {"message": "hello"}), NOW + 30_000)


def _post(stage: Stage, direct: Any) -> Job:
    (job,) = stage.post(_new(), direct=direct)
    assert job is not None
    return job


def _settling(stage: Stage) -> Any:
    def publish(verb: Any, messages: list[Message]) -> Any:
        for single in (single for message in messages for single in message.singles()):
            job = stage.stored(single.key)
            stage.jobs._store(job, replace(job, slot=None, completed_at=stage.clock.at))
        return verb(messages)

    return publish


@pytest.mark.parametrize(("lane", "messages"), [(Lane.ONE_TIME, 2), (Lane.RETRY, 300)])
def test_dispatch_packs_a_crowd_but_no_retries(lane: Lane, messages: int) -> None:
    stage, sent = Stage(rules=Rules(shards=1, ready_executors=1, windows={})), list[Message]()
    jobs = crowd(300, NOW + 30_000, lane=lane)
    for job in jobs:
        stage.jobs.put(job)
    stage.ledger.open_unit(Unit(UNIT, 0, 0))
    stage.lanes = Wrapped(stage.lanes, publish=lambda verb, batch: sent.extend(batch) or [])
    stage.dispatch_all(UNIT)
    assert len(sent) == messages
    assert sorted(single.key for message in sent for single in message.singles()) == sorted(job.key for job in jobs)


def _left(stage: Stage, jobs: list[Job]) -> list[tuple[int, int]]:
    """Dispatch the jobs. Returns each message as (time, jobs)."""
    for job in jobs:
        stage.jobs.put(job)
    stage.ledger.open_unit(Unit(UNIT, 0, 0))
    left = list[tuple[int, int]]()

    def publish(verb: Any, batch: list[Message]) -> Any:
        left.extend((stage.clock.now(), 1 + len(each.more)) for each in batch)
        return verb(batch)

    stage.lanes = Wrapped(stage.lanes, publish=publish)
    stage.dispatch_all(UNIT)
    return left


def test_packs_leave_one_after_the_other_if_each_executor_gets_one() -> None:
    left = _left(Stage(rules=Rules(shards=1, ready_executors=4)), crowd(200, NOW + 30_000))
    assert left == [(NOW + 30_000 - packs.lead(jobs, 20_000), 50) for jobs in (200, 150, 100, 50)]


def test_a_crowd_that_falls_due_during_a_second_leaves_in_whole_packs() -> None:
    jobs = [a_job(due_at=NOW + 30_000 + number) for number in range(200)]
    assert [count for _, count in _left(Stage(rules=Rules(shards=1, ready_executors=4)), jobs)] == [50] * 4


def test_a_crowd_of_more_packs_than_executors_leaves_at_once() -> None:
    left = _left(Stage(rules=Rules(shards=1, ready_executors=2)), crowd(600, NOW + 30_000))
    assert left == [(NOW + 30_000 - packs.lead(600, 20_000), packs.MOST)] * 3


def test_packs_keep_their_size_when_slots_are_read_again_between_them() -> None:
    stage = Stage(rules=Rules(shards=1, ready_executors=4))
    stage.clock.at = NOW - 10_000
    left = _left(stage, crowd(200, NOW + 2_600))  # read again at the start of the minute, NOW
    assert left == [(NOW + 2_600 - packs.lead(jobs, 20_000), 50) for jobs in (200, 150, 100, 50)]


@pytest.mark.parametrize(("ready", "reported_at", "messages"), [(10, NOW - 10_000, 10), (10, NOW - 400_000, 2), (300, NOW - 10_000, 12)])
def test_packs_are_smaller_while_pollers_are_kept_ready(ready: int, reported_at: int, messages: int) -> None:
    stage, sent = Stage(rules=Rules(shards=1, ready_executors=1)), list[Message]()
    stage.ledger.report_ready(Lane.ONE_TIME, ready, reported_at)
    for job in crowd(300, NOW + 30_000):
        stage.jobs.put(job)
    stage.ledger.open_unit(Unit(UNIT, 0, 0))
    stage.lanes = Wrapped(stage.lanes, publish=lambda verb, batch: sent.extend(batch) or [])
    stage.dispatch_all(UNIT)
    assert len(sent) == messages


def test_of_a_refused_pack_all_jobs_are_published_again() -> None:
    stage, sent = Stage(rules=Rules(shards=1, ready_executors=1)), list[Message]()
    jobs = crowd(100, NOW + 30_000)
    for job in jobs:
        stage.jobs.put(job)
    stage.ledger.open_unit(Unit(UNIT, 0, 0))
    taking = times(2, lambda verb, batch: list(batch))
    stage.lanes = Wrapped(stage.lanes, publish=lambda verb, batch: taking(lambda all_: sent.extend(all_) or [], batch))
    stage.dispatch_all(UNIT)
    assert {single.key for message in sent for single in message.singles()} == {job.key for job in jobs}


# executing


def test_all_jobs_of_a_pack_start_at_their_instants() -> None:
    stage = Stage()
    jobs = [a_job(due_at=NOW + 15_000 + 100 * number) for number in range(5)]
    pool = ScriptedPool(stage.clock)
    assert stage.execute([packed(stage, *jobs)], pool=pool) == []
    assert [(job.key, at) for job, at in pool.starts] == [(job.key, job.due_at) for job in jobs]
    assert statuses(stage, jobs) == [Status.SUCCEEDED] * 5 and not stage.lanes.queues[Lane.ONE_TIME]


def test_a_pack_that_is_too_early_is_hidden_as_a_whole() -> None:
    stage = Stage()
    jobs = crowd(3, NOW + stage.rules.crowd_hold_ms + 4_000)
    item = packed(stage, *jobs)
    assert stage.execute([item]) == [item.message_id]
    assert all(stage.stored(job).claim is None for job in jobs)
    stage.clock.advance(4_000)
    assert stage.execute(stage.receive()) == [] and statuses(stage, jobs) == [Status.SUCCEEDED] * 3


def test_a_cancelled_job_leaves_its_pack() -> None:
    stage = Stage()
    jobs = crowd(3)
    item = packed(stage, *jobs)
    gone = stage.stored(jobs[1])
    stage.jobs._store(gone, lifecycle.cancel(gone, NOW, reason="by its owner", retention=stage.rules.retention))
    assert stage.execute([item]) == []
    assert statuses(stage, jobs) == [Status.SUCCEEDED, Status.CANCELLED, Status.SUCCEEDED]


def test_a_refused_job_goes_back_alone_while_the_others_run() -> None:
    stage = Stage()
    jobs = crowd(3)
    item = packed(stage, *jobs)
    first = times(1, lambda verb, requests: [*verb(requests[:2]), None])
    assert stage.execute([item], jobs=Wrapped(stage.jobs, claim=first)) == []
    assert statuses(stage, jobs)[:2] == [Status.SUCCEEDED] * 2
    (alone,) = stage.lanes.queues[Lane.ONE_TIME].values()
    assert alone.message.singles()[0].key == jobs[2].key and not alone.message.more
    assert alone.visible_at == NOW + REFUSED_S[0] * 1_000
    stage.clock.advance(REFUSED_S[0] * 1_000)
    stage.execute(stage.receive())
    assert statuses(stage, jobs) == [Status.SUCCEEDED] * 3


def test_a_pack_is_delivered_again_if_its_job_cannot_be_requeued_alone() -> None:
    stage = Stage()
    jobs = crowd(3)
    item = packed(stage, *jobs)
    first = times(1, lambda verb, requests: [*verb(requests[:2]), None])
    stage.lanes = Wrapped(stage.lanes, send=refuse)
    assert stage.execute([item], jobs=Wrapped(stage.jobs, claim=first)) == [item.message_id]
    stage.clock.advance(LEASE_MS)
    assert stage.execute(stage.receive()) == [] and statuses(stage, jobs) == [Status.SUCCEEDED] * 3


def test_a_job_that_waits_leaves_a_second_delivery_of_its_pack() -> None:
    """The other jobs have ended: each further delivery of the pack would claim them for nothing."""
    stage = Stage()
    jobs = crowd(3)
    item = packed(stage, *jobs)
    first = times(1, lambda verb, requests: [*verb(requests[:2]), None])
    stage.execute([item], jobs=Wrapped(stage.jobs, claim=first))
    stage.lanes.queues[Lane.ONE_TIME].clear()
    stage.lanes.add(item.message, stage.clock.at)
    (again,) = stage.receive()
    refused = Wrapped(stage.jobs, claim=lambda verb, requests: [*verb(requests[:2]), None])
    assert stage.execute([again], jobs=refused) == []
    (alone,) = [each for each in stage.lanes.queues[Lane.ONE_TIME].values() if each.message.singles()[0].key == jobs[2].key]
    assert not alone.message.more


def test_a_refused_pack_is_deferred_as_a_whole() -> None:
    stage = Stage()
    item = packed(stage, *crowd(3))
    assert stage.execute([item], jobs=Wrapped(stage.jobs, claim=refuse)) == [item.message_id]
    assert len(stage.lanes.queues[Lane.ONE_TIME]) == 1
    stage.clock.advance(REFUSED_S[0] * 1_000)
    assert len(stage.receive()) == 1


def test_the_jobs_of_a_dead_executor_are_taken_back_each() -> None:
    stage = Stage()
    jobs = crowd(3)
    item = packed(stage, *jobs)
    for single in item.singles()[:2]:
        stage.claim(single)
    stage.clock.advance(LEASE_MS)
    assert stage.execute([item]) == []
    assert statuses(stage, jobs) == [Status.SCHEDULED] * 2 + [Status.SUCCEEDED]
    assert all(slots.is_overflow(stage.stored(job.key).slot or "") for job in jobs[:2])  # the overflow sends each in a message of its own


def test_a_pack_stays_while_a_claim_under_it_is_young() -> None:
    """An executor ended after it had claimed some jobs of the pack: no other message may contain these."""
    stage = Stage()
    jobs = crowd(3)
    item = packed(stage, *jobs)
    stage.claim(item.singles()[0])
    stage.clock.advance(LEASE_MS - 1_000)
    assert stage.execute([item]) == [item.message_id]
    assert statuses(stage, jobs)[1:] == [Status.SUCCEEDED] * 2
    stage.clock.advance(LEASE_MS)
    stage.execute(stage.receive())
    assert stage.waiting(Lane.RETRY) == [jobs[0].id]


def test_a_pack_whose_claims_are_all_young_is_deferred() -> None:
    stage = Stage()
    item = packed(stage, *crowd(2))
    for single in item.singles():
        stage.claim(single)
    assert stage.execute([item]) == [item.message_id]
    stage.clock.advance(PUT_BACK_S * 1_000)
    assert len(stage.receive()) == 1


class Narrow(ScriptedPool):
    """A pool with room for two jobs."""

    def has_room(self, job: Job) -> bool:
        return len(self._running) < 2


def test_jobs_for_which_an_executor_has_no_room_start_when_others_end() -> None:
    stage = Stage()
    jobs, pool = crowd(4), Narrow(stage.clock, takes=500)
    assert stage.execute([packed(stage, *jobs)], pool=pool) == []
    assert statuses(stage, jobs) == [Status.SUCCEEDED] * 4
    assert max(at for _, at in pool.starts) - NOW < FULL_MS


def test_jobs_without_room_for_long_go_to_another_executor() -> None:
    stage = Stage()
    jobs, pool = crowd(4), Narrow(stage.clock, takes=60_000)
    stage.execute([packed(stage, *jobs)], pool=pool)
    assert len(pool.starts) == 2 and statuses(stage, jobs) == [Status.SUCCEEDED] * 2 + [Status.SCHEDULED] * 2
    assert all(slots.is_overflow(stage.stored(job.key).slot or "") for job in jobs[2:])
    stage.lanes = Wrapped(stage.lanes, publish=lambda verb, batch: verb([each._replace(sent_at=stage.clock.now()) for each in batch]))
    stage.dispatch(OVERFLOW)
    other = ScriptedPool(stage.clock)
    stage.execute(stage.receive(), pool=other)
    assert len(other.starts) == 2 and {job.charged for job, _ in other.starts} == {0}


def test_a_job_beside_another_users_long_jobs_leaves_at_once() -> None:
    """It does not wait for the end of one of them in the overflow: some executors of its lane are free."""
    stage = Stage()
    long, other = crowd(2), a_job(owner="ben", due_at=NOW)
    batch = [packed(stage, *long), packed(stage, other)]
    stage.execute(batch, pool=Narrow(stage.clock, takes=60_000))
    (again,) = (each for each in stage.lanes.queues[Lane.ONE_TIME].values() if each.message.key == other.key)
    assert NOW + BESIDE_MS <= again.message.sent_at < NOW + FULL_MS
    assert stage.stored(other).charged == 0 and not slots.is_overflow(stage.stored(other).slot or "")
    stage.lanes.queues[Lane.ONE_TIME].clear()
    batch = [packed(stage, *crowd(2, NOW - 1_000)), *stage.hand(stage.stored(other))]
    stage.execute(batch, pool=Narrow(stage.clock, takes=60_000))
    assert slots.is_overflow(stage.stored(other).slot or ""), "it has met such jobs before: it would circle"


def test_a_job_waits_in_a_second_full_executor_for_a_short_job() -> None:
    """In a flood of short jobs each executor is full, and each has room within a second."""
    stage = Stage()
    other = a_job(owner="ben", due_at=NOW)
    stage.execute([packed(stage, *crowd(2)), packed(stage, other)], pool=Narrow(stage.clock, takes=60_000))
    stage.lanes.queues[Lane.ONE_TIME].clear()
    batch = [packed(stage, *crowd(2, NOW - 1_000)), *stage.hand(stage.stored(other))]
    stage.execute(batch, pool=Narrow(stage.clock, takes=BESIDE_MS * 2))
    assert statuses(stage, [other]) == [Status.SUCCEEDED] and stage.stored(other).fence == 2


def test_a_crowd_claims_and_settles_in_parts_and_keeps_its_lease() -> None:
    stage = Stage()
    jobs, calls, renewed = crowd(700, NOW + 5_000), list[int](), list[int]()

    def claim(verb: Any, requests: Any) -> Any:
        calls.append(len(requests))
        stage.clock.advance(7_000)
        return verb(requests)

    def extend(verb: Any, lane: Lane, receipts: Any, seconds: int) -> Any:
        renewed.append(len(receipts))
        return verb(lane, receipts, seconds)

    pack = [packed(stage, *jobs[first : first + 200]) for first in range(0, 700, 200)]
    stage.lanes = Wrapped(stage.lanes, extend=extend)
    assert stage.execute(pack, jobs=Wrapped(stage.jobs, claim=claim)) == []
    assert calls == [200, 200, 200, 100] and max(renewed) == 4  # one receipt for each message with any number of jobs
    assert statuses(stage, jobs) == [Status.SUCCEEDED] * 700


# the dead-letter queue


def test_the_jobs_of_a_buried_pack_are_settled_each() -> None:
    stage = Stage()
    jobs = crowd(3)
    item = packed(stage, *jobs)
    stage.claim(item.singles()[0])
    stage.clock.advance(LEASE_MS)
    done = bury([item], stage)
    assert (done.taken_back, done.unchanged, done.returned) == (1, 2, [])


def test_a_buried_pack_waits_for_the_lease_of_any_of_its_jobs() -> None:
    stage = Stage()
    item = packed(stage, *crowd(3))
    for single in item.singles()[:2]:
        stage.claim(single)
    assert bury([item], stage).returned == [item.message_id]
