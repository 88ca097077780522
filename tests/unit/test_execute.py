"""The executor runs one batch: lease, claim, wait, start, settle, return messages."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from scheduler.admission.breaker_gate import BreakerRegistry
from scheduler.admission.gate import READ_AHEAD_MS, READ_SPREAD_MS
from scheduler.admission.lane_state import SEEN_MS, TRUSTED_MS, LaneStateCache, pause
from scheduler.model import callback_lease, lifecycle, retry, slots
from scheduler.model.errors import Unavailable
from scheduler.model.job import Claim, Delivery, Failure, FailureKind, Job, Lane, Outcome, Result, Status, TaskHead
from scheduler.model.named_target import NamedTarget
from scheduler.model.settlement import NOT_STARTED_MS
from scheduler.model.spec import CallBack, Jitter, Ordering, RetryPolicy
from scheduler.pipeline import delivery
from scheduler.pipeline.execute import LONGEST_MS, STOP_MS, execute
from scheduler.pipeline.latency import LatencyMeter
from scheduler.pipeline.process import Process
from scheduler.pipeline.running_jobs import CHECK_MS, GRACE_MS
from scheduler.pipeline.settling import DEFER_MS
from scheduler.pipeline.waiting_jobs import FRESH_CLAIM_MS
from scheduler.storage.memory.stores import MAX_RECEIVES
from scheduler.storage.ports import Change, Found, Guard, Written
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
    stage.execute(stage.hand(*jobs), pool=pool, ahead=lambda *_: 40)
    assert sorted(at for _, at in pool.starts) == [NOW, NOW + 1_460, NOW + 3_960]


def test_gates_that_take_until_the_instant_do_not_delay_other_jobs() -> None:
    stage = Stage()
    stage.targets.put(None, NamedTarget("few", "log", 0, 0, "ada", "ada", rate=2.0))
    free = a_job(due_at=NOW + 4_000)
    limited = a_job(due_at=NOW + 4_000, target="few")

    def usages(verb: Any, names: Any) -> Any:
        stage.clock.advance(2_000)
        return verb(names)

    pool = ScriptedPool(stage.clock, takes=100)
    stage.execute(stage.hand(free, limited), pool=pool, ahead=lambda *_: 40, targets=Wrapped(stage.targets, usages=usages))
    assert next(at for job, at in pool.starts if job.key == free.key) < NOW + 4_000


def test_a_job_without_room_is_tried_again_after_a_pause() -> None:
    stage = Stage()

    class Full(ScriptedPool):
        tries = 0

        def has_room(self, job: Job) -> bool:
            self.tries += 1
            return self.clock.now() >= job.due_at

    pool = Full(stage.clock)
    stage.execute(stage.hand(a_job(due_at=NOW + 4_000)), pool=pool, ahead=lambda *_: 200)
    assert [at for _, at in pool.starts] == [NOW + 4_000] and pool.tries == 11


def test_the_way_to_a_target_is_made_when_its_job_is_taken() -> None:
    stage = Stage()
    pool, taken = ScriptedPool(stage.clock), list[int]()

    def ahead(job: Job, jobs: int) -> int:
        taken.append(stage.clock.now())
        return 40

    stage.execute(stage.hand(a_job(due_at=NOW + 4_000)), pool=pool, ahead=ahead)
    assert (taken, [at for _, at in pool.starts]) == ([NOW], [NOW + 3_960])


def test_a_job_to_be_read_again_is_not_sent_ahead_before_that() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000))
    pool, reads = ScriptedPool(stage.clock), []

    def read(verb: Any, keys: Any) -> Any:
        reads.append(stage.clock.now())
        return verb(keys)

    stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, glance=read), ahead=lambda *_: 1_900)
    ((_, at),) = pool.starts
    assert at == reads[0] <= NOW + 2_000 - READ_AHEAD_MS


def test_a_run_sent_ahead_is_late_only_by_its_instant() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000, start_by=NOW + 2_000))
    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool, ahead=lambda *_: 40)
    assert pool.starts == []


def test_a_message_before_the_claim_window_is_deferred_a7() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + stage.rules.hold_ms + 1_500))
    assert stage.execute([item]) == [item.message_id]
    assert stage.stored(item.message.key).claim is None
    stage.clock.advance((item.message.not_before - NOW) // 1_000 * 1_000 - 1)
    assert stage.receive() == []
    stage.clock.advance(1)
    assert len(stage.receive()) == 1  # as if it had been enqueued: a little ahead of its instant


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


def first_only(failure: Any) -> Any:
    """For `Wrapped`: the first call takes the lease, and `failure` answers each renewal."""
    calls: list[int] = []

    def extend(verb: Any, *args: Any) -> Any:
        calls.append(1)
        return verb(*args) if len(calls) == 1 else failure(verb, *args)

    return extend


def none_renewed(verb: Any, *args: Any) -> Any:
    """As the adapter answers while SQS refuses."""
    return set()


@pytest.mark.parametrize("failure", [refuse, none_renewed], ids=["error", "none renewed"])
def test_when_renewals_are_refused_the_jobs_go_back_uncharged(failure: Any) -> None:
    stage = Stage()
    running, held = stage.hand(a_job(max_attempts=1), a_job(due_at=NOW + 25_000))
    pool = ScriptedPool(stage.clock, takes=60_000)
    view = stage.but(lanes=Wrapped(stage.lanes, extend=first_only(failure)), rules=replace(stage.rules, hold_ms=30_000))
    assert execute(Lane.ONE_TIME, [running, held], view, Process.of(Lane.ONE_TIME, "me", view), pool=pool, request_id="r1") == []
    assert pool.stopped and [job.key for job, _ in pool.starts] == [running.message.key]
    assert NOW + delivery.LOST_MS <= stage.clock.now() < NOW + delivery.LEASE_MS
    begun, waiting = stage.stored(running.message.key), stage.stored(held.message.key)
    assert [(lifecycle.state(job), job.fence, job.charged) for job in (begun, waiting)] == [(Status.SCHEDULED, 2, 0)] * 2
    assert [(each.outcome, each.started_at, each.failure and each.failure.kind) for each in begun.attempts] == [
        (Outcome.FAILED, NOW, FailureKind.REFUSED)
    ]
    assert (waiting.attempts, waiting.due_at, waiting.lane) == ((), NOW + 25_000, Lane.ONE_TIME)
    assert begun.due_at > stage.clock.now() and stage.waiting(Lane.RETRY) == [begun.id]


def test_refused_renewals_never_fail_a_job() -> None:
    """Not even a job whose executors have ended early before, so that each start is noted."""
    stage, job = Stage(), a_job(max_attempts=2)
    (item,) = stage.hand(job)
    stage.claim(item, alone=True)
    stage.clock.advance(delivery.LEASE_MS)
    stage.execute([item])
    for _ in range(8):
        stage.clock.at = max(stage.clock.now(), stage.stored(job).due_at) + 1_000
        (item,) = stage.receive(Lane.RETRY)
        pool, lanes = ScriptedPool(stage.clock, takes=60_000), Wrapped(stage.lanes, extend=first_only(none_renewed))
        assert stage.execute([item], pool=pool, lanes=lanes, lane=Lane.RETRY) == [] and len(pool.starts) == 1
    assert (lifecycle.state(stage.stored(job)), stage.stored(job).charged) == (Status.SCHEDULED, 0)


def test_finished_work_is_settled_even_without_the_lease() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    jobs = Wrapped(stage.jobs, change=lambda verb, changes: _after(stage, NOW + delivery.LOST_MS, verb, changes))
    assert stage.execute([item], jobs=jobs, lanes=Wrapped(stage.lanes, extend=first_only(none_renewed))) == []
    assert lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


def test_a_job_that_another_executor_has_by_now_is_not_given_back() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())

    class Overtaken(ScriptedPool):
        def stop(self) -> None:
            super().stop()
            stage.clock.advance(delivery.LEASE_MS)
            stage.execute(stage.receive())

    pool = Overtaken(stage.clock, takes=60_000)
    stage.execute([item], pool=pool, lanes=Wrapped(stage.lanes, extend=first_only(none_renewed)))
    job = stage.stored(item.message.key)
    assert (job.fence, job.attempts[-1].outcome) == (2, Outcome.CRASHED)


def test_slow_refusals_of_all_tables_cost_no_lease() -> None:
    """Each call takes as long as the client tries it: renewals happen between the calls."""
    stage = Stage()
    begin, end = NOW + 1_000, NOW + 100_000
    orders = [Ordering(name) for name in ("a", "b")]
    jobs = [a_job(), a_job(due_at=NOW + 1_200), *(a_job(due_at=NOW + 2_000, ordering=order) for order in orders)]
    items = stage.hand(*jobs)

    class Away:
        def __init__(self, port: Any) -> None:
            self.port = port

        def __getattr__(self, name: str) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if begin <= stage.clock.now() < end:
                    stage.clock.advance(7_000)
                    raise Unavailable
                return getattr(self.port, name)(*args, **kwargs)

            return call

    tables = {name: Away(getattr(stage, name)) for name in ("jobs", "tasks", "orders", "ledger", "targets", "users")}
    pool = ScriptedPool(stage.clock, takes=1_100)
    assert stage.execute(items, pool=pool, **tables) == []
    assert not pool.stopped and stage.clock.now() >= end
    stored = [stage.stored(job) for job in jobs]
    assert lifecycle.state(stored[0]) is Status.SUCCEEDED
    assert [(lifecycle.state(job), job.fence, job.charged) for job in stored[1:]] == [(Status.SCHEDULED, 2, 0)] * 3


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
    left = stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, glance=slow), lanes=Wrapped(stage.lanes, extend=extend))
    assert pool.starts == [] and left == [item.message_id]


def test_a_lost_lease_is_not_renewed_even_if_the_queue_accepts_it() -> None:
    """Nothing excludes that SQS accepts a change of visibility by an old receipt."""
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000))
    other = ScriptedPool(stage.clock)

    def slow(verb: Any, *args: Any) -> Any:
        before = verb(*args)
        stage.clock.advance(31_000)
        stage.execute(stage.receive(), pool=other)  # the message is visible again: this executor takes the job back
        return before

    def extend(verb: Any, lane: Lane, receipts: Any, seconds: int) -> Any:
        calls.append(stage.clock.now())
        return verb(lane, receipts, seconds) | set(receipts)

    calls: list[int] = []
    pool, lenient = ScriptedPool(stage.clock), Wrapped(stage.lanes, extend=extend)
    left = stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, glance=slow), lanes=lenient)
    assert (pool.starts, left, calls) == ([], [item.message_id], [NOW])
    assert stage.stored(item.message.key).fence == 2


@pytest.mark.parametrize("frozen_ms", [delivery.LOST_MS, 300_000])
def test_a_frozen_executor_starts_nothing_whatever_its_clock_says(frozen_ms: int) -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000))

    def slow(verb: Any, *args: Any) -> Any:
        stage.clock.freeze(frozen_ms)
        return verb(*args)

    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, glance=slow))
    assert (pool.starts, stage.stored(item.message.key).fence) == ([], 2)


def test_a_lease_is_renewed_in_time_after_a_short_freeze() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    beats: list[int] = []

    def extend(verb: Any, *args: Any) -> Any:
        beats.append(stage.clock.now() - NOW)
        if len(beats) == 1:
            stage.clock.freeze(delivery.LOST_MS - 1_000)
        return verb(*args)

    pool = ScriptedPool(stage.clock, takes=5_000)
    assert stage.execute([item], pool=pool, lanes=Wrapped(stage.lanes, extend=extend)) == []
    assert len(pool.starts) == 1 and beats[:2] == [0, delivery.LOST_MS - 1_000]


def test_a_clock_that_jumps_ahead_lets_the_jobs_go_uncharged_at_once() -> None:
    """As after a freeze between two invocations, when the wall clock is corrected a moment later."""
    stage = Stage()
    running, held = stage.hand(a_job(max_attempts=1), a_job(due_at=NOW + 4_000))
    pool = ScriptedPool(stage.clock, takes=60_000)

    def start(verb: Any, *args: Any) -> Any:
        verb(*args)
        stage.clock.freeze(delivery.LOST_MS)

    assert stage.execute([running, held], pool=Wrapped(pool, start=start)) == []
    assert pool.stopped and [job.key for job, _ in pool.starts] == [running.message.key]
    for item in (running, held):
        job = stage.stored(item.message.key)
        assert (lifecycle.state(job), job.fence, job.charged) == (Status.SCHEDULED, 2, 0)
        assert job.due_at - stage.clock.now() <= 1_000


def test_an_executor_blocked_by_its_jobs_lets_none_of_them_go() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    pool = ScriptedPool(stage.clock, takes=5_000)

    def start(verb: Any, *args: Any) -> Any:
        verb(*args)
        stage.clock.advance(delivery.LOST_MS)

    assert stage.execute([item], pool=Wrapped(pool, start=start)) == [item.message_id]
    assert (stage.stored(item.message.key).fence, pool.stopped) == (1, True)


def test_an_invocation_ends_in_time_if_its_monotonic_clock_stood_still() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000))
    left_ms = STOP_MS + 10_000

    def slow(verb: Any, *args: Any) -> Any:
        stage.clock.freeze(10_000)
        return verb(*args)

    view = stage.but(jobs=Wrapped(stage.jobs, glance=slow))
    pool, process = ScriptedPool(stage.clock), Process.of(Lane.ONE_TIME, "me", view)
    assert execute(Lane.ONE_TIME, [item], view, process, pool=pool, request_id="r1", left_ms=left_ms) == [item.message_id]
    assert pool.stopped and stage.clock.now() < NOW + left_ms


def test_a_renewal_answered_after_the_loss_of_the_lease_is_not_believed() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    calls: list[int] = []

    def extend(verb: Any, lane: Lane, receipts: Any, seconds: int) -> Any:
        calls.append(stage.clock.now() - NOW)
        if 0 < calls[-1] < 18_000:
            return set()
        if calls[-1] == 18_000:
            stage.clock.advance(15_000)  # SQS may have renewed it after the message was visible again
        return set(receipts)

    pool = ScriptedPool(stage.clock, takes=60_000)
    assert stage.execute([item], pool=pool, lanes=Wrapped(stage.lanes, extend=extend)) == [item.message_id]
    assert pool.stopped and calls == [0, 10_000, 12_000, 14_000, 16_000, 18_000]


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
    assert (job.fence, job.lane, job.charged, job.attempts[-1].outcome) == (2, Lane.RETRY, 0, Outcome.CRASHED)
    assert stage.waiting(Lane.RETRY) == [job.id] and stage.waiting(Lane.ONE_TIME) == []


def test_a_copy_after_a_lease_runs_the_job_again_beside_its_executor() -> None:
    """The limit of leases, as `docs/concepts/guarantees.md` states it: SQS may deliver a copy of a message that is in flight."""
    stage = Stage()
    (item,) = stage.hand(a_job())

    class Copied(ScriptedPool):
        def wait(self, until: int) -> Any:
            if stage.clock.now() >= NOW + delivery.LEASE_MS and stage.stored(item.message.key).fence == 1:
                stage.execute([item._replace(receipt="copy", receive_count=2)], lanes=lenient)
            return super().wait(until)

    lenient = Wrapped(stage.lanes, extend=lambda verb, lane, receipts, seconds: set(receipts))
    pool = Copied(stage.clock, takes=45_000)
    assert stage.execute([item], pool=pool) == [] and len(pool.starts) == 1
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.fence, job.charged, job.output) == (Status.SCHEDULED, 2, 0, None)
    assert stage.waiting(Lane.RETRY) == [job.id]


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

    def glance(verb: Any, jobs: Any) -> Any:
        stored = stage.stored(job)
        if stage.clock.now() >= at and stored.cancel_requested_at is None:
            assert stage.jobs.change([Change(stored, lifecycle.flag(stored, at))]) == [Written.YES]
        return verb(jobs)

    return Wrapped(stage.jobs, glance=glance)


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

    def glance(verb: Any, jobs: Any) -> Any:
        reads.append((NOW + 3_000 - stage.clock.now(), len(jobs)))
        return verb(jobs)

    stage.execute(stage.hand(*jobs), jobs=Wrapped(stage.jobs, glance=glance))
    ((ahead, count),) = reads
    assert READ_AHEAD_MS <= ahead <= READ_AHEAD_MS + READ_SPREAD_MS and count == 9


def test_a_job_claimed_at_its_instant_is_not_read_again() -> None:
    stage = Stage()
    stage.execute(stage.hand(a_job(), a_job(due_at=NOW + FRESH_CLAIM_MS)), jobs=Wrapped(stage.jobs, glance=refuse, get=refuse))


def test_a_waiting_job_taken_back_meanwhile_is_not_started_a9() -> None:
    stage = Stage()
    job = a_job(due_at=NOW + 3_000)

    def glance(verb: Any, jobs: Any) -> Any:
        stored = stage.stored(job)
        back = lifecycle.take_back(stored, NOW, slot="2026-11-20T10:05#00")
        assert stage.jobs.change([Change(stored, back)]) == [Written.YES]
        return verb(jobs)

    pool = ScriptedPool(stage.clock)
    assert stage.execute(stage.hand(job), pool=pool, jobs=Wrapped(stage.jobs, glance=glance)) == []
    assert pool.starts == []


@pytest.mark.parametrize("is_there", [True, False])
def test_a_waiting_job_starts_although_the_last_read_is_outdated(is_there: bool) -> None:
    """An eventually consistent read may return the job as it was before its claim, or not at all."""
    stage = Stage()
    item = stage.hand(a_job(due_at=NOW + 3_000))[0]
    before = stage.jobs.rows[item.message.key]
    pool = ScriptedPool(stage.clock)
    old = Found({before.key: before} if is_there else {})
    assert stage.execute([item], pool=pool, jobs=Wrapped(stage.jobs, glance=lambda verb, keys: old)) == []
    assert [at for _, at in pool.starts] == [NOW + 3_000]
    assert stage.jobs.rows[before.key].completed_at is not None


def test_a_refused_second_read_starts_no_cancelled_job() -> None:
    """Of two jobs one was cancelled, and the read of the other one is outdated."""
    stage = Stage()
    cancelled, outdated = stage.hand(a_job(due_at=NOW + 3_000), a_job(due_at=NOW + 3_000))
    before = stage.jobs.rows[outdated.message.key]

    def glance(verb: Any, jobs: Any) -> Any:
        stored = stage.stored(cancelled.message.key)
        assert stage.jobs.change([Change(stored, lifecycle.flag(stored, NOW))]) == [Written.YES]
        return Found({**verb(jobs), before.key: before})

    pool = ScriptedPool(stage.clock)
    assert stage.execute([cancelled, outdated], pool=pool, jobs=Wrapped(stage.jobs, glance=glance, get_many=refuse)) == []
    assert [job.key for job, _ in pool.starts] == [outdated.message.key]


def test_a_waiting_job_starts_even_if_the_last_read_is_refused() -> None:
    stage = Stage()
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.hand(a_job(due_at=NOW + 3_000)), pool=pool, jobs=Wrapped(stage.jobs, glance=refuse))
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
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
            super().start(job)
            moved = lifecycle.move(job, slot="2026-11-20T10:09#00")
            assert stage.jobs.change([Change(job, moved, Guard.SLOT)]) == [Written.YES]

    assert stage.execute([item], pool=Moving(stage.clock, takes=5_000, result=FAILING)) == []
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.fence, job.charged) == (Status.SCHEDULED, 2, 1)
    assert slots.is_overflow(job.slot or ""), "its attempt was long: it pins an executor of the retry lane"
    assert stage.waiting(Lane.RETRY) == [] and stage.jobs.due("2026-11-20T10:09#00")[0] == []


@pytest.mark.parametrize(("failing", "direct"), [(1, 1), (2, 0)])
def test_only_a_retry_that_is_alone_is_sent_directly(failing: int, direct: int) -> None:
    stage = Stage()
    items = stage.hand(*[a_job() for _ in range(failing)])
    stage.execute(items, pool=ScriptedPool(stage.clock, takes=100, result=FAILING))
    stored = [stage.stored(item.message.key) for item in items]
    assert len(stage.waiting(Lane.RETRY)) == direct
    assert sum(slots.is_overflow(job.slot or "") for job in stored) == failing - direct
    assert bool(stage.asked) is (direct == 0), "a single retry starts no dispatcher"


@pytest.mark.parametrize("change", [refuse, lost_answer, lambda verb, changes: [Written.REFUSED] * len(changes)])
def test_a_settlement_is_tried_again_while_the_table_refuses(change: Any) -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    assert stage.execute([item], jobs=Wrapped(stage.jobs, change=times(9, change))) == []
    assert lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


@pytest.mark.parametrize("minutes", [1.5, 10, 14])
def test_finished_work_is_settled_after_an_outage_of_minutes(minutes: float) -> None:
    stage = Stage()
    good, bad, late = stage.hand(a_job(), a_job(payload={"fails": 1}), a_job(due_at=NOW + 3_000))
    writes: list[int] = []

    def change(verb: Any, changes: Any) -> Any:
        writes.append(stage.clock.now() - NOW)
        return refuse(verb) if writes[-1] < minutes * 60_000 else verb(changes)

    class OneFails(ScriptedPool):
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
            self.result = FAILING if job.key == bad.message.key else Result("done")
            super().start(job)

    pool = OneFails(stage.clock)
    assert stage.execute([good, bad, late], pool=pool, jobs=Wrapped(stage.jobs, change=change)) == []
    assert [at for _, at in pool.starts] == [NOW, NOW, NOW + 3_000]
    assert stage.stored(good.message.key).completed_at == NOW + 10 and stage.stored(late.message.key).completed_at == NOW + 3_010
    again = stage.stored(bad.message.key)
    assert (lifecycle.state(again), again.fence, again.charged) == (Status.SCHEDULED, 2, 1)
    assert slots.is_safe(again.slot or "", stage.clock.now())
    assert stage.waiting(Lane.RETRY) == [again.id]
    assert max(after - before for before, after in itertools.pairwise(writes)) <= 5_000 and len(writes) < minutes * 60 / 4


def test_an_executor_gives_up_unsettled_work_before_its_invocation_ends() -> None:
    for left_ms in (LONGEST_MS, 60_000):
        stage = Stage()
        (item,) = stage.hand(a_job())
        view = stage.but(jobs=Wrapped(stage.jobs, change=refuse))
        process = Process.of(Lane.ONE_TIME, "me", view)
        pool = ScriptedPool(stage.clock)
        left = execute(Lane.ONE_TIME, [item], view, process, pool=pool, request_id="r1", left_ms=left_ms)
        assert left == [item.message_id] and pool.stopped
        assert NOW + left_ms - STOP_MS <= stage.clock.now() <= NOW + left_ms - STOP_MS + 5_000


def test_waiting_jobs_start_on_time_while_the_table_refuses_to_settle() -> None:
    stage = Stage()
    items = stage.hand(a_job(), a_job(due_at=NOW + 4_321))
    pool = ScriptedPool(stage.clock)
    stage.execute(items, pool=pool, jobs=Wrapped(stage.jobs, change=times(40)))
    assert [at for _, at in pool.starts] == [NOW, NOW + 4_321]


def test_finished_jobs_are_settled_once_no_job_leaves_soon() -> None:
    stage = Stage()
    pool, settled = ScriptedPool(stage.clock, takes=2), list[int]()

    def change(verb: Any, changes: Any) -> Any:
        settled.append(stage.clock.now() - NOW)
        stage.clock.advance(30)  # the table's answer takes longer than the next job has time
        return verb(changes)

    offsets = (1_000, 1_020, 1_040, 2_000)
    stage.execute(stage.hand(*[a_job(due_at=NOW + offset) for offset in offsets]), pool=pool, jobs=Wrapped(stage.jobs, change=change))
    assert [at - NOW for _, at in pool.starts] == list(offsets)
    assert settled == [1_045, 2_002]


def test_finished_jobs_are_settled_soon_even_if_jobs_leave_all_the_time() -> None:
    stage = Stage()
    pool, settled = ScriptedPool(stage.clock, takes=2), list[int]()

    def change(verb: Any, changes: Any) -> Any:
        settled.append(stage.clock.now() - NOW)
        return verb(changes)

    jobs = [a_job(due_at=NOW + 1_000 + 20 * number) for number in range(100)]
    items = stage.hand(*jobs)
    while more := stage.receive():
        items += more
    stage.execute(items, pool=pool, jobs=Wrapped(stage.jobs, change=change))
    assert [len(pool.starts), settled[0], len(settled)] == [100, 1_002 + DEFER_MS, 4]


def test_a_job_is_settled_at_once_if_others_may_wait_for_its_end() -> None:
    stage = Stage()
    pool, settled = ScriptedPool(stage.clock, takes=2), list[int]()

    def change(verb: Any, changes: Any) -> Any:
        settled.append(stage.clock.now() - NOW)
        return verb(changes)

    jobs = [a_job(due_at=NOW + 1_000, ordering=Ordering("a")), a_job(due_at=NOW + 1_020)]
    stage.execute(stage.hand(*jobs), pool=pool, jobs=Wrapped(stage.jobs, change=change))
    assert settled == [1_002, 1_022]


def test_a_job_accepted_after_an_outage_gets_its_whole_lease() -> None:
    stage = Stage()
    job = a_job(callback=CallBack(60_000, 600_000))
    stage.execute(stage.hand(job), jobs=Wrapped(stage.jobs, change=lambda verb, changes: _after(stage, NOW + 90_000, verb, changes)))
    stored = stage.stored(job)
    assert lifecycle.waits(stored) and stored.started_at == NOW
    assert stage.clock.now() + 30_000 <= callback_lease.ends_at(stored) == stored.due_at


def _after(stage: Stage, at: int, verb: Any, *args: Any) -> Any:
    return verb(*args) if stage.clock.now() >= at else refuse(verb)


@pytest.mark.parametrize("lasts", [30_000, 100_000, 300_000])
def test_a_message_is_late_by_at_most_the_length_of_the_outage(lasts: int) -> None:
    stage = Stage()
    job = a_job()
    (item,) = stage.hand(job)
    while stage.clock.now() < NOW + lasts:
        assert stage.execute([item], jobs=Wrapped(stage.jobs, claim=refuse)) == [item.message_id]
        stage.clock.at = stage.lanes.queues[Lane.ONE_TIME][item.message_id].visible_at
        (item,) = stage.receive()
    assert stage.clock.now() - NOW <= 2 * lasts


def test_the_receives_of_a_message_last_for_an_outage_of_hours() -> None:
    stage = Stage()
    job = a_job()
    stage.hand(job)
    stage.clock.advance(900_000)
    for _ in range(MAX_RECEIVES - 1):
        (item,) = stage.receive()
        assert stage.execute([item], jobs=Wrapped(stage.jobs, claim=refuse)) == [item.message_id]
        stage.clock.at = stage.lanes.queues[Lane.ONE_TIME][item.message_id].visible_at
    assert stage.clock.now() >= NOW + 2 * 3_600_000 and not stage.lanes.dead[Lane.ONE_TIME]


# a job that has crashed before


def test_a_crash_before_the_start_is_not_charged() -> None:
    """Its executors die between claim and start, in any lane."""
    stage, job = Stage(), a_job(max_attempts=1)
    (item,) = stage.hand(job)
    lane = Lane.ONE_TIME
    for crashes in range(1, 6):
        stage.claim(item, alone=True)
        stage.clock.advance(delivery.LEASE_MS)
        assert stage.execute([item], lane=lane) == []
        found = stage.stored(job)
        assert (lifecycle.state(found), found.charged, len(found.attempts)) == (Status.SCHEDULED, 0, crashes)
        lane, stage.clock.at = Lane.RETRY, max(stage.clock.now(), found.due_at) + 2_000
        (item,) = stage.receive(lane) or stage.hand(found)
    pool = ScriptedPool(stage.clock)
    stage.execute([item], pool=pool, lane=lane)
    assert lifecycle.state(stage.stored(job)) is Status.SUCCEEDED and len(pool.starts) == 1


def suspect(**fields: Any) -> Job:
    """A job of the retry lane whose last executor ended early."""
    crashed = lifecycle.take_back(a_job(claim=Claim("m0", "n0", NOW - 40_000, False)), NOW - 1, slot="2026-11-20T10:05#00")
    return replace(crashed, **fields)


def test_the_start_of_a_job_that_crashed_before_is_stored_first() -> None:
    stage, job = Stage(), suspect()
    (item,) = stage.hand(job)

    class Dies(ScriptedPool):
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
            assert (stage.stored(job).started_at, lifecycle.is_charged(stage.stored(job))) == (NOW, True)
            super().start(job)

    pool = Dies(stage.clock, result=FAILING)
    stage.execute([item], pool=pool, lane=Lane.RETRY)
    after = stage.stored(job)
    assert len(pool.starts) == 1 and (after.fence, after.charged, after.started_at) == (3, 1, None)


def test_no_start_is_stored_of_a_job_that_never_crashed() -> None:
    stage = Stage()
    writes: list[int] = []
    jobs = Wrapped(stage.jobs, change=lambda verb, changes: (writes.append(len(changes)), verb(changes))[1])
    stage.execute(stage.hand(a_job(lane=Lane.RETRY, fence=2)), lane=Lane.RETRY, jobs=jobs)
    assert writes == [1]


@pytest.mark.parametrize("change", [refuse, lost_answer, lambda verb, changes: [Written.REFUSED]])
def test_a_refused_note_of_the_start_delays_nothing(change: Any) -> None:
    stage, job = Stage(), suspect()
    pool = ScriptedPool(stage.clock, result=FAILING)
    stage.execute(stage.hand(job), pool=pool, lane=Lane.RETRY, jobs=Wrapped(stage.jobs, change=times(1, change)))
    after = stage.stored(job)
    assert [at for _, at in pool.starts] == [NOW] and (after.fence, after.started_at) == (3, None)


def test_a_suspect_that_was_taken_back_meanwhile_is_not_started() -> None:
    stage, job = Stage(), suspect()

    def change(verb: Any, changes: Any) -> Any:
        stored = stage.stored(job)
        assert verb([Change(stored, lifecycle.take_back(stored, NOW, slot=stored.slot))]) == [Written.YES]
        return verb(changes)

    pool = ScriptedPool(stage.clock)
    assert stage.execute(stage.hand(job), pool=pool, lane=Lane.RETRY, jobs=Wrapped(stage.jobs, change=times(1, change))) == []
    assert pool.starts == []


@pytest.mark.parametrize("frozen_ms", [SEEN_MS, TRUSTED_MS + 1])
def test_a_pause_while_the_start_is_stored_stops_the_job(frozen_ms: int) -> None:
    """The executor is frozen as it stores the start of a suspect, and the lane is paused meanwhile."""
    stage, job = Stage(), suspect()

    def change(verb: Any, changes: Any) -> Any:
        pause([Lane.RETRY], None, stage)
        stage.clock.advance(frozen_ms)
        return verb(changes)

    pool = ScriptedPool(stage.clock)
    assert stage.execute(stage.hand(job), pool=pool, lane=Lane.RETRY, jobs=Wrapped(stage.jobs, change=times(1, change))) == []
    after = stage.stored(job)
    assert pool.starts == [] and lifecycle.state(after) is Status.SCHEDULED
    assert after.slot == slots.waiting(Lane.RETRY, job.id, stage.rules.shards)
    assert (after.due_at, after.charged, after.started_at) == (job.due_at, job.charged, None)


def test_no_job_starts_if_its_lane_cannot_be_read_any_more() -> None:
    stage, job = Stage(), suspect()

    def change(verb: Any, changes: Any) -> Any:
        stage.clock.advance(TRUSTED_MS + 1)
        return verb(changes)

    def watched(verb: Any) -> Any:
        reads.append(stage.clock.now())
        return verb() if stage.clock.now() <= NOW + TRUSTED_MS else refuse(verb)

    reads: list[int] = []
    pool, jobs, ledger = ScriptedPool(stage.clock), Wrapped(stage.jobs, change=times(1, change)), Wrapped(stage.ledger, watched=watched)
    stage.execute(stage.hand(job), pool=pool, lane=Lane.RETRY, jobs=jobs, ledger=ledger)
    assert pool.starts == [] and lifecycle.state(stage.stored(job)) is Status.SCHEDULED
    assert len(set(reads)) == len(reads), "it reads again at once"


def test_a_job_that_kills_each_executor_fails_at_its_third_crash() -> None:
    stage, job = Stage(), a_job(max_attempts=9)
    (item,) = stage.hand(job)
    lane, starts = Lane.ONE_TIME, 0

    class Dies(ScriptedPool):
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
            raise SystemExit

    for _ in range(retry.MAX_CRASHES + 1):
        starts += 1
        with pytest.raises(SystemExit):
            stage.execute([item], pool=Dies(stage.clock), lane=lane)
        stage.clock.advance(delivery.LEASE_MS)
        (item,) = stage.receive(lane)
        stage.execute([item], lane=lane)
        found = stage.stored(job)
        lane, stage.clock.at = Lane.RETRY, max(stage.clock.now(), found.due_at)
        if lifecycle.is_open(found):
            (item,) = stage.receive(lane)
    assert (lifecycle.state(found), found.charged, found.crashes) == (Status.FAILED, 2, 1)
    assert found.reason == "its executor died each time it ran alone"


# work that did not begin


def test_work_that_did_not_begin_is_requeued_uncharged() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(start_by=NOW + 600))
    busy = Result(failure=Failure(FailureKind.THROTTLED, "all at work", 1_000), unstarted=True)
    stage.execute([item], pool=ScriptedPool(stage.clock, takes=400, result=busy))
    job = stage.stored(item.message.key)
    assert (job.fence, job.lane, job.charged, job.throttled, job.attempts) == (2, Lane.ONE_TIME, 0, 0, ())
    assert (job.delay_ms, job.due_at, job.reason) == (None, NOW + 400 + NOT_STARTED_MS[0], "all at work")
    stage.clock.at = job.due_at
    stage.execute(stage.receive(), pool=ScriptedPool(stage.clock))
    assert lifecycle.state(stage.stored(job)) is Status.SKIPPED


@pytest.mark.parametrize(("unstarted", "told"), [(True, 0), (False, 1)])
def test_breakers_learn_nothing_from_work_that_did_not_begin(unstarted: bool, told: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stage, seen = Stage(), list[Any]()
    monkeypatch.setattr(BreakerRegistry, "note", lambda self, done: seen.append(done))
    result = Result(failure=Failure(FailureKind.THROTTLED, "429"), unstarted=unstarted)
    circuits = BreakerRegistry(stage, LaneStateCache(stage))
    monkeypatch.setattr(BreakerRegistry, "find", lambda self, job: None)
    stage.execute(stage.hand(a_job()), pool=ScriptedPool(stage.clock, result=result), circuits=circuits)
    assert len(seen) == told


def test_a_cancelled_job_whose_work_did_not_begin_has_no_attempt() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    busy = Result(failure=Failure(FailureKind.THROTTLED, "all at work", 1_000), unstarted=True)
    pool = ScriptedPool(stage.clock, takes=5_000, result=busy, stops_after=None)
    stage.execute([item], pool=pool, jobs=flag(stage, item, NOW + 1))
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.attempts, job.started_at) == (Status.CANCELLED, (), None)


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
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
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
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
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
    assert pool.cancels == [(item.message.key, NOW + 2 * CHECK_MS)]
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.reason, job.cancel_requested_at, job.cancelled_at) == (
        Status.CANCELLED,
        "asked",
        NOW + 3_000,
        NOW + 2 * CHECK_MS + 50,
    )
    assert [(attempt.outcome, attempt.started_at) for attempt in job.attempts] == [(Outcome.CANCELLED, NOW)]


def test_a_job_that_does_not_stop_is_killed_and_its_result_ignored() -> None:
    stage = Stage()
    deaf, other = stage.hand(a_job(), a_job(due_at=NOW + 4_500))

    class OneIsLong(ScriptedPool):
        def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
            self.takes = 34_000 if job.key == deaf.message.key else 55_000
            super().start(job)

    pool = OneIsLong(stage.clock, stops_after=None)
    assert stage.execute([deaf, other], pool=pool, jobs=flag(stage, deaf, NOW + 1)) == []
    job = stage.stored(deaf.message.key)
    assert pool.kills == [(job.key, NOW + CHECK_MS + GRACE_MS)]
    assert lifecycle.state(job) is Status.CANCELLED and job.cancelled_at == NOW + CHECK_MS + GRACE_MS and job.output is None
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
    for takes, looks in ((CHECK_MS - 1, 0), (7_000, 3)):
        stage = Stage()
        reads: list[int] = []

        def get_many(verb: Any, keys: Any, stage: Stage = stage, reads: list[int] = reads) -> Any:
            reads.append(stage.clock.now() - NOW)
            return verb(keys)

        stage.execute(
            stage.hand(a_job(), a_job()), pool=ScriptedPool(stage.clock, takes=takes), jobs=Wrapped(stage.jobs, get_many=get_many)
        )
        assert reads == [CHECK_MS * number for number in range(1, looks + 1)]


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


def meters() -> tuple[LatencyMeter, LatencyMeter]:
    return LatencyMeter(Lane.ONE_TIME, "me"), LatencyMeter(Lane.ONE_TIME, "me", delayed=True)


def test_the_latency_leaves_out_repeated_messages() -> None:
    stage, both = Stage(), meters()
    (item,) = stage.hand(a_job())
    stage.clock.advance(700)
    stage.execute([item], meters=both)
    assert (stage.ledger.latency(Lane.ONE_TIME, NOW), stage.ledger.latency(Lane.ONE_TIME, NOW, delayed=True)) == (700, None)
    (item,) = stage.hand(a_job())
    stage.lanes.extend(Lane.ONE_TIME, [item.receipt], 0)
    stage.execute(stage.receive(), meters=both)
    assert not both[0].samples and not both[1].samples


@pytest.mark.parametrize("fraction", [0, 999])
def test_a_delayed_message_is_measured_from_the_end_of_its_delay(fraction: int) -> None:
    stage, both = Stage(), meters()
    (item,) = stage.hand(a_job(due_at=NOW + slots.DIRECT_LEAD + 4_000 + fraction))
    stage.clock.advance(4_080)
    stage.execute([item], meters=both)
    assert (stage.ledger.latency(Lane.ONE_TIME, NOW), stage.ledger.latency(Lane.ONE_TIME, NOW, delayed=True)) == (None, 80)


def test_a_message_that_was_not_delayed_after_all_is_not_measured() -> None:
    stage, both = Stage(), meters()
    (item,) = stage.hand(a_job(due_at=NOW + 2_000))  # wanted half a second ahead: SQS delays by whole seconds
    stage.execute([item], meters=both)
    assert stage.ledger.latency(Lane.ONE_TIME, NOW) is stage.ledger.latency(Lane.ONE_TIME, NOW, delayed=True) is None


def test_latency_reports_are_rare_and_a_refusal_fails_no_batch() -> None:
    ledger = Stage().ledger
    meter = LatencyMeter(Lane.ONE_TIME, "me")
    meter.add(5)
    meter.report(Wrapped(ledger, report_latency=refuse), NOW, "")
    meter.add(7)
    meter.report(ledger, NOW + 14_999, "")
    assert ledger.latency(Lane.ONE_TIME, 0) is None
    meter.report(ledger, NOW + 15_000, "")
    assert ledger.latency(Lane.ONE_TIME, 0) == 7


def test_latency_is_the_99th_percentile_of_times_not_below_zero() -> None:
    ledger = Stage().ledger
    meter = LatencyMeter(Lane.ONE_TIME, "me")
    for sample in [-50, *range(100)]:
        meter.add(sample)
    meter.report(ledger, NOW, "")
    assert ledger.latency(Lane.ONE_TIME, 0) == 98


def test_a_message_of_an_unreadable_job_stays_and_the_others_run() -> None:
    stage = Stage()
    broken, whole = stage.hand(a_job(), a_job())
    stage.jobs.unreadable[broken.message.key] = "its format is 2"
    pool = ScriptedPool(stage.clock)
    assert stage.execute([broken, whole], pool=pool) == [broken.message_id]
    assert [job.key for job, _ in pool.starts] == [whole.message.key]
    assert stage.jobs.rows[broken.message.key].claim is None


def test_a_job_that_became_unreadable_is_not_started() -> None:
    stage = Stage()
    items = stage.hand(*(a_job(due_at=NOW + 3_000) for _ in range(2)))

    def spoil(verb: Any, keys: Any) -> Any:
        stage.jobs.unreadable[items[0].message.key] = "its format is 2"
        return verb(keys)

    pool = ScriptedPool(stage.clock)
    stage.execute(items, pool=pool, jobs=Wrapped(stage.jobs, glance=spoil))
    assert [job.key for job, _ in pool.starts] == [items[1].message.key]
