"""The executor runs one batch: lease, claim, wait, start, settle, return messages."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.gate import READ_AHEAD_MS, READ_SPREAD_MS
from scheduler.model import lifecycle, slots
from scheduler.model.job import Delivery, Failure, FailureKind, Job, Lane, Outcome, Result, Status
from scheduler.model.spec import Jitter, RetryPolicy
from scheduler.pipeline import delivery
from scheduler.pipeline.execute import FRESH_CLAIM_MS, SETTLE_TRIES
from scheduler.pipeline.latency import LatencyMeter
from scheduler.pipeline.running_jobs import GRACE_MS, LOOK_MS
from scheduler.storage.ports import Change, Guard, Written
from tests.conftest import NOW, ScriptedPool, a_delivery, a_job
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times

FAILING = Result(failure=Failure(FailureKind.RETRYABLE, "503"))


def test_a_due_job_runs_and_its_message_goes() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    pool = ScriptedPool(stage.clock, takes=70)
    assert stage.execute([item], pool=pool) == []
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.output, job.started_at, job.completed_at) == (Status.SUCCEEDED, "done", NOW, NOW + 70)
    assert stage.waiting(Lane.ONE_TIME) == [] and stage.jobs.due(job.slot or "")[0] == []


def test_no_job_starts_before_its_instant() -> None:
    stage = Stage()
    jobs = [a_job(due_at=NOW + offset) for offset in (4_000, 0, 1_500, 3_999)]
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(*jobs), pool=pool)
    assert sorted(at for _, at in pool.starts) == [NOW, NOW + 1_500, NOW + 3_999, NOW + 4_000]
    assert all(at == job.due_at for job, at in pool.starts)


def test_a_pool_that_keeps_instants_gets_jobs_ahead() -> None:
    stage = Stage()
    jobs = [a_job(due_at=NOW + offset) for offset in (4_000, 0, 1_500)]
    pool = ScriptedPool(stage.clock, takes=100)
    stage.execute(stage.hand(*jobs), pool=pool, ahead=lambda job: 40)
    assert sorted(at for _, at in pool.starts) == [NOW, NOW + 1_460, NOW + 3_960]


def test_a_job_to_be_read_again_is_not_sent_ahead_before_that() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000))
    pool, reads = ScriptedPool(stage.clock), []

    def read(verb: Any, keys: Any) -> Any:
        reads.append(stage.clock.now())
        return verb(keys)

    stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, get_many=read), ahead=lambda job: 1_900)
    ((_, at),) = pool.starts
    assert at == reads[0] <= NOW + 2_000 - READ_AHEAD_MS


def test_a_run_sent_ahead_is_late_only_by_its_instant() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000, start_by=NOW + 2_000))
    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool, ahead=lambda job: 40)
    assert pool.starts == []


def test_a_message_before_the_claim_window_is_deferred_a7() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + stage.rules.hold_ms + 1_500))
    assert stage.execute([item]) == [item.message_id]
    assert stage.stored(item.message.key).claim is None
    stage.clock.advance(1_999)
    assert stage.receive() == []
    stage.clock.advance(1)
    assert len(stage.receive()) == 1


def test_an_old_duplicate_of_a_requeued_job_starts_nothing_a7() -> None:
    stage = Stage()
    (old,) = stage.hand(a_job())
    job = stage.claim(old)
    later = lifecycle.retry(job, NOW, started_at=NOW, result=FAILING, due_at=NOW + 400_000, slot="2026-11-20T10:07#00")
    assert stage.jobs.change([Change(job, later)]) == [Written.YES]
    pool = ScriptedPool(stage.clock)
    assert stage.execute([old], pool=pool) == [] and pool.starts == []
    assert stage.stored(job) == later


def test_two_messages_of_one_job_in_one_batch_start_it_once_a1() -> None:
    stage = Stage()
    job = a_job()
    (one,) = stage.hand(job)
    stage.lanes.add(one.message, NOW)
    (other,) = stage.receive()
    pool = ScriptedPool(stage.clock)
    assert stage.execute([one, other], pool=pool) == [] and len(pool.starts) == 1


def test_two_copies_of_one_message_in_one_batch_start_it_once_a1() -> None:
    stage = Stage()
    (one,) = stage.hand(a_job())
    stage.lanes.extend(Lane.ONE_TIME, [one.receipt], 0)
    (copy,) = stage.receive()
    pool = ScriptedPool(stage.clock)
    stage.execute([one, copy], pool=pool)
    assert len(pool.starts) <= 1 and lifecycle.is_open(stage.stored(one.message.key)) == (not pool.starts)


# lease


def test_the_lease_is_set_before_the_claim_b10() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    order: list[str] = []

    def noted(name: str) -> Any:
        return lambda verb, *args: (order.append(name), verb(*args))[1]

    stage.execute([item], jobs=Wrapped(stage.jobs, claim=noted("claim")), lanes=Wrapped(stage.lanes, extend=noted("extend")))
    assert order[:2] == ["extend", "claim"]


def test_only_jobs_of_leased_messages_are_claimed_b10() -> None:
    """The executor sets the visibility by a batch call, which fails entry by entry."""
    stage = Stage()
    good, bad = stage.hand(a_job(), a_job())
    lanes = Wrapped(stage.lanes, extend=lambda verb, lane, receipts, seconds: verb(lane, receipts, seconds) - {bad.receipt})
    pool = ScriptedPool(stage.clock)
    assert stage.execute([good, bad], pool=pool, lanes=lanes) == [bad.message_id]
    assert [job.key for job, _ in pool.starts] == [good.message.key]
    assert stage.stored(bad.message.key).claim is None


def test_a_batch_that_cannot_be_leased_claims_nothing() -> None:
    stage = Stage()
    items = stage.hand(a_job(), a_job())
    left = stage.execute(items, lanes=Wrapped(stage.lanes, extend=refuse), jobs=Wrapped(stage.jobs, claim=lambda verb, asked: verb([])))
    assert left == sorted(item.message_id for item in items)


def test_long_work_keeps_its_message_hidden() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    beats: list[int] = []

    def extend(verb: Any, *args: Any) -> Any:
        beats.append(stage.clock.now() - NOW)
        assert stage.receive() == []
        return verb(*args)

    stage.execute([item], pool=ScriptedPool(stage.clock, takes=45_000), lanes=Wrapped(stage.lanes, extend=extend))
    assert beats == [0, 10_000, 20_000, 30_000, 40_000]
    assert lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


@pytest.mark.parametrize("failure", [refuse, lambda verb, *args: set()], ids=["refused", "not held"])
def test_a_lost_lease_stops_all_work_and_settles_nothing(failure: Any) -> None:
    stage = Stage()
    running, held = stage.hand(a_job(), a_job(due_at=NOW + 4_000))
    calls: list[int] = []

    def extend(verb: Any, *args: Any) -> Any:
        calls.append(stage.clock.now())
        return verb(*args) if len(calls) == 1 else failure(verb, *args)

    pool = ScriptedPool(stage.clock, takes=60_000)
    left = stage.execute([running, held], pool=pool, lanes=Wrapped(stage.lanes, extend=extend))
    assert left == sorted([running.message_id, held.message_id]) and pool.stopped
    assert NOW + delivery.LOST_MS <= stage.clock.now() < NOW + delivery.LEASE_MS
    assert lifecycle.state(stage.stored(running.message.key)) is Status.RUNNING


def test_one_missed_renewal_stops_nothing() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    calls: list[int] = []

    def extend(verb: Any, *args: Any) -> Any:
        calls.append(1)
        return refuse(verb) if len(calls) == 2 else verb(*args)

    stage.execute([item], pool=ScriptedPool(stage.clock, takes=35_000), lanes=Wrapped(stage.lanes, extend=extend))
    assert lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


def test_no_job_starts_if_the_last_read_outlasts_the_lease() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000))
    calls: list[int] = []

    def slow(verb: Any, *args: Any) -> Any:
        stage.clock.advance(31_000)
        return verb(*args)

    def extend(verb: Any, *args: Any) -> Any:
        calls.append(1)
        return verb(*args) if len(calls) == 1 else set()  # another executor has the message by now

    pool = ScriptedPool(stage.clock)
    left = stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, get_many=slow), lanes=Wrapped(stage.lanes, extend=extend))
    assert pool.starts == [] and left == [item.message_id]


def test_a_frozen_executor_goes_on_if_its_message_is_still_its_own() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000))

    def slow(verb: Any, *args: Any) -> Any:
        stage.clock.advance(31_000)
        return verb(*args)

    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, get_many=slow))
    assert len(pool.starts) == 1 and lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


# claim


def test_a_claim_with_a_lost_answer_is_continued_a1c() -> None:
    """The client library tries again under the same nonce, and the condition fails on its own write."""
    stage = Stage()
    (item,) = stage.hand(a_job())
    pool = ScriptedPool(stage.clock)

    def twice(verb: Any, requests: Any) -> Any:
        verb(requests)
        return verb(requests)

    assert stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, claim=twice)) == []
    assert len(pool.starts) == 1


@pytest.mark.parametrize("claim", [refuse, lost_answer, lambda verb, requests: [None] * len(requests)])
def test_when_the_table_refuses_the_claim_the_message_stays_a1d(claim: Any) -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    pool = ScriptedPool(stage.clock)
    assert stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, claim=claim)) == [item.message_id]
    assert pool.starts == []
    stage.clock.advance(60_000)
    assert len(stage.receive()) == 1


def test_a_message_repeated_within_the_lease_is_deferred_a1b() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    running = stage.claim(item)
    stage.clock.advance(5_000)
    pool = ScriptedPool(stage.clock)
    assert stage.execute([item], pool=pool) == [item.message_id]
    assert pool.starts == [] and stage.stored(running) == running
    assert len(stage.lanes.queues[Lane.ONE_TIME]) == 1


@pytest.mark.parametrize("alone", [True, False])
def test_the_job_of_a_dead_executor_goes_to_the_retry_lane_a1a_a6(alone: bool) -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    stage.claim(item, alone=alone)
    stage.clock.advance(delivery.LEASE_MS)
    assert stage.execute([item]) == []
    job = stage.stored(item.message.key)
    assert (job.fence, job.lane, job.charged, job.attempts[-1].outcome) == (2, Lane.RETRY, int(alone), Outcome.CRASHED)
    assert stage.waiting(Lane.RETRY) == [job.id] and stage.waiting(Lane.ONE_TIME) == []


def test_a_job_whose_message_is_lost_still_has_its_slot_a1d() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    job = stage.claim(item)
    stage.lanes.queues[Lane.ONE_TIME].clear()
    assert [entry.key for entry in stage.jobs.due(job.slot)[0]] == [job.key]


def test_a_batch_of_one_is_alone_and_a_batch_of_two_is_not_a6() -> None:
    for others in (0, 1):
        stage = Stage()
        items = stage.hand(a_job(), *(a_job() for _ in range(others)))
        claims: list[bool] = []
        jobs = Wrapped(stage.jobs, claim=lambda verb, requests, seen=claims: (seen.extend(r.alone for r in requests), verb(requests))[1])
        stage.execute(items, jobs=jobs)
        assert claims == [not others] * (others + 1)


def test_a_message_of_an_unknown_job_is_deleted() -> None:
    stage = Stage()
    assert stage.execute([a_delivery()], lanes=Wrapped(stage.lanes, extend=lambda verb, lane, receipts, seconds: set(receipts))) == []


# the last read


def cancel_while_held(stage: Stage, job: Job, at: int) -> Any:
    """A port on which the job is flagged at `at`, as a person would."""

    def get_many(verb: Any, keys: Any) -> Any:
        stored = stage.stored(job)
        if stage.clock.now() >= at and stored.cancel_requested_at is None:
            assert stage.jobs.change([Change(stored, lifecycle.flag(stored, at))]) == [Written.YES]
        return verb(keys)

    return Wrapped(stage.jobs, get_many=get_many)


def test_a_cancelled_waiting_job_is_dropped_before_its_instant_a9() -> None:
    stage = Stage()
    job, other = a_job(due_at=NOW + 3_000), a_job(due_at=NOW + 3_000)
    pool = ScriptedPool(stage.clock)
    assert stage.execute(stage.hand(job, other), pool=pool, jobs=cancel_while_held(stage, job, NOW + 1_000)) == []
    assert lifecycle.state(stage.stored(job)) is Status.CANCELLED
    assert [(started.key, at) for started, at in pool.starts] == [(other.key, NOW + 3_000)]


def test_the_last_read_covers_all_jobs_due_soon_a9() -> None:
    stage = Stage()
    reads: list[tuple[int, int]] = []
    jobs = [a_job(due_at=NOW + 3_000) for _ in range(9)]

    def get_many(verb: Any, keys: Any) -> Any:
        reads.append((NOW + 3_000 - stage.clock.now(), len(keys)))
        return verb(keys)

    stage.execute(stage.hand(*jobs), jobs=Wrapped(stage.jobs, get_many=get_many))
    ((ahead, count),) = reads
    assert READ_AHEAD_MS <= ahead <= READ_AHEAD_MS + READ_SPREAD_MS and count == 9


def test_a_job_claimed_at_its_instant_is_not_read_again() -> None:
    stage = Stage()
    stage.execute(stage.hand(a_job(), a_job(due_at=NOW + FRESH_CLAIM_MS)), jobs=Wrapped(stage.jobs, get_many=refuse, get=refuse))


def test_a_waiting_job_taken_back_meanwhile_is_not_started_a9() -> None:
    stage = Stage()
    job = a_job(due_at=NOW + 3_000)

    def get_many(verb: Any, keys: Any) -> Any:
        stored = stage.stored(job)
        back = lifecycle.take_back(stored, NOW, slot="2026-11-20T10:05#00")
        assert stage.jobs.change([Change(stored, back)]) == [Written.YES]
        return verb(keys)

    pool = ScriptedPool(stage.clock)
    assert stage.execute(stage.hand(job), pool=pool, jobs=Wrapped(stage.jobs, get_many=get_many)) == []
    assert pool.starts == []


def test_a_waiting_job_starts_even_if_the_last_read_is_refused() -> None:
    stage = Stage()
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(a_job(due_at=NOW + 3_000)), pool=pool, jobs=Wrapped(stage.jobs, get_many=refuse))
    assert [at for _, at in pool.starts] == [NOW + 3_000]


def test_a_cancel_requested_in_an_earlier_attempt_ends_the_job_a9() -> None:
    stage = Stage()
    pool = ScriptedPool(stage.clock)
    job = a_job(fence=2, cancel_requested_at=NOW - 1)
    assert stage.execute(stage.hand(job), pool=pool) == [] and pool.starts == []
    assert lifecycle.state(stage.stored(job)) is Status.CANCELLED


# settle


def test_a_retry_due_soon_is_enqueued_in_the_retry_lane() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    stage.execute([item], pool=ScriptedPool(stage.clock, result=FAILING))
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.fence, job.lane) == (Status.SCHEDULED, 2, Lane.RETRY)
    assert stage.waiting(Lane.RETRY) == [job.id] and slots.minute(job.slot or "") == slots.first_safe_minute(stage.clock.now())


def test_a_retry_due_much_later_waits_in_its_slot_only() -> None:
    stage = Stage()
    late = a_job(retry=RetryPolicy(700_000, 700_000, Jitter.NONE))
    stage.execute(stage.hand(late), pool=ScriptedPool(stage.clock, result=FAILING))
    assert stage.waiting(Lane.RETRY) == []
    assert slots.minute(stage.stored(late).slot or "") == slots.minute_of(stage.stored(late).due_at)


def test_a_long_job_is_retried_after_reconciling_moved_its_slot() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())

    class Moving(ScriptedPool):
        def start(self, job: Job) -> None:
            super().start(job)
            moved = lifecycle.move(job, slot="2026-11-20T10:09#00")
            assert stage.jobs.change([Change(job, moved, Guard.SLOT)]) == [Written.YES]

    assert stage.execute([item], pool=Moving(stage.clock, takes=5_000, result=FAILING)) == []
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.fence, job.charged) == (Status.SCHEDULED, 2, 1)
    assert stage.waiting(Lane.RETRY) == [job.id] and stage.jobs.due("2026-11-20T10:09#00")[0] == []


@pytest.mark.parametrize("change", [refuse, lost_answer, lambda verb, changes: [Written.REFUSED] * len(changes)])
def test_a_settlement_is_tried_again_while_the_table_refuses(change: Any) -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    assert stage.execute([item], jobs=Wrapped(stage.jobs, change=times(SETTLE_TRIES - 1, change))) == []
    assert lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


def test_a_job_that_cannot_be_settled_keeps_its_message_and_its_slot() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    assert stage.execute([item], jobs=Wrapped(stage.jobs, change=refuse)) == [item.message_id]
    job = stage.stored(item.message.key)
    assert lifecycle.state(job) is Status.RUNNING and len(stage.jobs.due(job.slot)[0]) == 1


def test_an_executor_without_the_fence_settles_nothing() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())

    class Overtaken(ScriptedPool):
        def start(self, job: Job) -> None:
            super().start(job)
            assert stage.jobs.change([Change(job, lifecycle.take_back(job, NOW, slot=job.slot))]) == [Written.YES]

    assert stage.execute([item], pool=Overtaken(stage.clock)) == []
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.fence, job.output) == (Status.SCHEDULED, 2, None)


def test_a_retry_that_cannot_be_enqueued_waits_in_its_slot() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    assert stage.execute([item], pool=ScriptedPool(stage.clock, result=FAILING), lanes=Wrapped(stage.lanes, send=refuse)) == []
    assert stage.stored(item.message.key).slot is not None and stage.waiting(Lane.RETRY) == []


def test_a_failing_job_does_not_affect_its_batch() -> None:
    stage = Stage()
    items = stage.hand(*(a_job() for _ in range(10)))
    bad = items[3].message.key

    class OneFails(ScriptedPool):
        def start(self, job: Job) -> None:
            self.result = FAILING if job.key == bad else Result("done")
            super().start(job)

    assert stage.execute(items, pool=OneFails(stage.clock)) == []
    states = [lifecycle.state(stage.stored(item.message.key)) for item in items]
    assert states.count(Status.SUCCEEDED) == 9 and states[3] is Status.SCHEDULED


# cancel of running work


def flag(stage: Stage, item: Delivery, at: int) -> Any:
    """A port on which the job is flagged at `at`, while it runs, as a person would."""

    def get_many(verb: Any, keys: Any) -> Any:
        for stored in verb([item.message.key]).values():
            if stage.clock.now() >= at and stored.claim is not None and stored.cancel_requested_at is None:
                assert stage.jobs.change([Change(stored, lifecycle.flag(stored, at, reason="asked"))]) == [Written.YES]
        return verb(keys)

    return Wrapped(stage.jobs, get_many=get_many)


def test_a_cancel_stops_a_running_job_within_two_seconds() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    pool = ScriptedPool(stage.clock, takes=60_000)
    assert stage.execute([item], pool=pool, jobs=flag(stage, item, NOW + 3_000)) == []
    assert pool.cancels == [(item.message.key, NOW + 2 * LOOK_MS)]
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.reason, job.cancel_requested_at, job.cancelled_at) == (
        Status.CANCELLED,
        "asked",
        NOW + 3_000,
        NOW + 2 * LOOK_MS + 50,
    )
    assert [(attempt.outcome, attempt.started_at) for attempt in job.attempts] == [(Outcome.CANCELLED, NOW)]


def test_a_job_that_does_not_stop_is_killed_and_its_result_ignored() -> None:
    stage = Stage()
    deaf, other = stage.hand(a_job(), a_job(due_at=NOW + 4_500))

    class OneIsLong(ScriptedPool):
        def start(self, job: Job) -> None:
            self.takes = 34_000 if job.key == deaf.message.key else 55_000
            super().start(job)

    pool = OneIsLong(stage.clock, stops_after=None)
    assert stage.execute([deaf, other], pool=pool, jobs=flag(stage, deaf, NOW + 1)) == []
    job = stage.stored(deaf.message.key)
    assert pool.kills == [(job.key, NOW + LOOK_MS + GRACE_MS)]
    assert lifecycle.state(job) is Status.CANCELLED and job.cancelled_at == NOW + LOOK_MS + GRACE_MS and job.output is None
    assert lifecycle.state(stage.stored(other.message.key)) is Status.SUCCEEDED


def test_a_job_that_succeeds_before_it_stops_succeeds() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    pool = ScriptedPool(stage.clock, takes=2_500, stops_after=None)
    assert stage.execute([item], pool=pool, jobs=flag(stage, item, NOW + 1)) == []
    assert pool.cancels and lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


def test_a_job_that_fails_after_a_cancel_request_is_not_retried() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    stage.execute([item], pool=ScriptedPool(stage.clock, takes=2_500, stops_after=None, result=FAILING), jobs=flag(stage, item, NOW + 1))
    assert lifecycle.state(stage.stored(item.message.key)) is Status.CANCELLED and stage.waiting(Lane.RETRY) == []


def test_a_cancel_just_before_a_failure_prevents_the_retry() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())

    def change(verb: Any, changes: Any) -> Any:
        stored = stage.stored(item.message.key)
        verb([Change(stored, lifecycle.flag(stored, stage.clock.now()))])
        return verb(changes)

    stage.execute([item], pool=ScriptedPool(stage.clock, result=FAILING), jobs=Wrapped(stage.jobs, change=times(1, change)))
    stage.clock.advance(2_000)
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.receive(Lane.RETRY), pool=pool, lane=Lane.RETRY)
    assert pool.starts == [] and lifecycle.state(stage.stored(item.message.key)) is Status.CANCELLED


def test_only_long_batches_check_for_cancels_every_two_seconds() -> None:
    for takes, looks in ((LOOK_MS - 1, 0), (7_000, 3)):
        stage = Stage()
        reads: list[int] = []

        def get_many(verb: Any, keys: Any, stage: Stage = stage, reads: list[int] = reads) -> Any:
            reads.append(stage.clock.now() - NOW)
            return verb(keys)

        stage.execute(
            stage.hand(a_job(), a_job()), pool=ScriptedPool(stage.clock, takes=takes), jobs=Wrapped(stage.jobs, get_many=get_many)
        )
        assert reads == [LOOK_MS * number for number in range(1, looks + 1)]


def test_a_refused_check_for_cancels_stops_nothing() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    stage.execute([item], pool=ScriptedPool(stage.clock, takes=9_000), jobs=Wrapped(stage.jobs, get_many=refuse))
    assert lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


def test_a_cancel_of_the_next_attempt_does_not_stop_this_one() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())

    def get_many(verb: Any, keys: Any) -> Any:
        stored = stage.stored(item.message.key)
        if stored.fence == 1:
            assert stage.jobs.change([Change(stored, lifecycle.take_back(stored, NOW, slot=stored.slot))]) == [Written.YES]
            stored = stage.stored(stored)
            stage.jobs.rows[stored.key] = replace(stored, cancel_requested_at=NOW)
        return verb(keys)

    pool = ScriptedPool(stage.clock, takes=5_000)
    stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, get_many=get_many))
    assert pool.cancels == []


def test_a_dead_executors_job_with_a_cancel_request_is_cancelled() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    job = stage.claim(item)
    assert stage.jobs.change([Change(job, lifecycle.flag(job, NOW + 5))]) == [Written.YES]
    stage.clock.advance(delivery.LEASE_MS)
    assert stage.execute([item]) == [] and stage.waiting(Lane.RETRY) == []
    assert lifecycle.state(stage.stored(job)) is Status.CANCELLED


def test_a_batch_whose_jobs_are_all_dropped_ends_at_once() -> None:
    stage = Stage()
    job = a_job(due_at=NOW + 3_000)
    stage.execute(stage.hand(job), jobs=cancel_while_held(stage, job, NOW))
    assert stage.clock.now() < NOW + 3_000


# latency


def test_latency_leaves_out_delayed_and_repeated_messages() -> None:
    stage = Stage()
    meter = LatencyMeter(Lane.ONE_TIME, "me")
    (item,) = stage.hand(a_job())
    stage.clock.advance(700)
    stage.execute([item], meter=meter)
    assert stage.ledger.latency(Lane.ONE_TIME, NOW) == 700
    for unfit in (a_job(due_at=stage.clock.now() + 4_000), a_job()):
        (item,) = stage.hand(unfit)
        if unfit.due_at <= stage.clock.now():
            stage.lanes.extend(Lane.ONE_TIME, [item.receipt], 0)
            (item,) = stage.receive()
        stage.execute([item], meter=meter)
    assert not meter.samples


def test_latency_reports_are_rare_and_a_refusal_fails_no_batch() -> None:
    ledger = Stage().ledger
    meter = LatencyMeter(Lane.ONE_TIME, "me")
    meter.add(5)
    meter.report(Wrapped(ledger, report_latency=refuse), NOW)
    meter.add(7)
    meter.report(ledger, NOW + 14_999)
    assert ledger.latency(Lane.ONE_TIME, 0) is None
    meter.report(ledger, NOW + 15_000)
    assert ledger.latency(Lane.ONE_TIME, 0) == 7


def test_latency_is_the_99th_percentile_of_times_not_below_zero() -> None:
    ledger = Stage().ledger
    meter = LatencyMeter(Lane.ONE_TIME, "me")
    for sample in [-50, *range(100)]:
        meter.add(sample)
    meter.report(ledger, NOW)
    assert ledger.latency(Lane.ONE_TIME, 0) == 98
