"""Jobs that report by call-back: acceptance, heartbeats, rescue of silent ones, reports."""

from dataclasses import replace
from typing import Any

import pytest

from scheduler.callbacks import reports as service
from scheduler.callbacks.reports import HeartbeatAnswer
from scheduler.callbacks.tokens import AttemptKey
from scheduler.jobs.cancel import cancel
from scheduler.model import callback_lease, lifecycle, settlement, slots
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Claim, Delivery, Failure, FailureKind, Finished, Job, JobKey, Lane, Outcome, Progress, Result, Status
from scheduler.model.rules import Rules
from scheduler.model.spec import CallBack, RetryPolicy
from scheduler.pipeline import delivery, leftover
from scheduler.pipeline.bury import bury
from scheduler.pipeline.delivery import Drop, Later, PutBack, TakeBack
from scheduler.pipeline.reconcile import recheck as run_recheck
from scheduler.storage.memory.stores import MemorySecrets
from scheduler.storage.ports import Change, ClaimResult, Written
from tests.conftest import NOW, ScriptedPool, a_delivery, a_job, entries_of
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times

LEASE, SKEW = 60_000, callback_lease.SKEW_MS
POLICY = CallBack(LEASE, 600_000)
STARTED = NOW + 10  # the target of `ScriptedPool` answers 10 ms after the start


def long_job(**fields: Any) -> Job:
    return a_job(**({"callback": POLICY} | fields))


def accepted(stage: Stage, job: Job | None = None, *, result: Result | None = None) -> Job:
    """Return a job that its target accepted."""
    job = job or long_job()
    stage.execute(stage.hand(job), pool=ScriptedPool(stage.clock, result=result), lane=job.lane)
    return stage.stored(job)


def which(job: Job) -> AttemptKey:
    return AttemptKey(job.key, job.fence)


def beat(stage: Stage, job: Job, progress: Progress | None = None) -> HeartbeatAnswer:
    return service.heartbeat(which(job), progress, stage)


def report(stage: Stage, job: Job, result: Result) -> Job:
    return service.report(which(job), result, stage)


def rescue(stage: Stage, lane: Lane = Lane.ONE_TIME) -> None:
    """Run every job of the lane, once a lease that has ended is over by all clocks."""
    stage.clock.advance(SKEW)
    stage.execute(stage.receive(lane), lane=lane)


# accepted


def test_a_job_that_its_target_accepted_runs_without_an_executor() -> None:
    stage = Stage()
    job = accepted(stage, result=Result("queued", {"status": 202, "headers": {}, "body": ""}))
    assert lifecycle.status(job, stage.clock.now()) is Status.RUNNING and lifecycle.waits(job)
    assert (job.fence, job.attempts, job.charged) == (1, (), 0)
    assert (job.output, job.response) == ("queued", {"status": 202, "headers": {}, "body": ""})


def test_acceptance_changes_neither_start_nor_delay() -> None:
    stage = Stage()
    job = accepted(stage, long_job(scheduled_at=NOW - 40, due_at=NOW))
    assert (lifecycle.started_at(job), lifecycle.delay(job, NOW + 99_000)) == (NOW, 40)


def test_without_a_callback_any_good_response_ends_the_job() -> None:
    stage = Stage()
    job = accepted(stage, a_job(), result=Result(response={"status": 202, "headers": {}, "body": ""}))
    assert lifecycle.state(job) is Status.SUCCEEDED


def test_a_bad_response_of_the_target_is_a_failure() -> None:
    stage = Stage()
    job = accepted(stage, result=Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 503")))
    assert lifecycle.state(job) is Status.SCHEDULED and job.fence == 2


def test_at_the_end_of_its_lease_an_accepted_job_is_checked() -> None:
    stage = Stage()
    job = accepted(stage)
    assert job.due_at == STARTED + LEASE
    (queued,) = stage.lanes.queues[Lane.ONE_TIME].values()
    assert (queued.message.fence, queued.message.due_at) == (1, job.due_at)
    assert job.due_at - 3_000 < queued.visible_at <= job.due_at
    assert slots.start_of(slots.minute(job.slot or "")) >= NOW + slots.HORIZON


def test_a_lease_beyond_the_horizon_is_left_to_dispatch() -> None:
    stage = Stage()
    job = accepted(stage, long_job(callback=CallBack(3_600_000, 86_400_000)))
    assert stage.waiting(Lane.ONE_TIME) == []
    assert slots.minute(job.slot or "") == slots.minute_of(job.due_at) == slots.minute_of(STARTED + 3_600_000)


def test_a_job_that_reconciling_moved_can_be_accepted() -> None:
    stage = Stage()
    before = long_job(claim=Claim("m1", "n1", NOW, True))
    stage.jobs.put(replace(before, slot="2026-11-20T10:09#01"))
    after = lifecycle.accept(before, started_at=NOW, result=Result(), lease_until=NOW + LEASE, slot="2026-11-20T10:05#00")
    assert stage.jobs.change([Change(before, after)]) == [Written.YES]
    assert stage.stored(before).slot == "2026-11-20T10:05#00"


# heartbeats


def test_a_heartbeat_extends_the_lease_and_returns_its_end() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.clock.advance(50_000)
    now = stage.clock.now()
    assert beat(stage, job, Progress(0.4, "page 4 of 10")) == HeartbeatAnswer(now + LEASE, False)
    stored = stage.stored(job)
    assert (stored.heartbeat_at, stored.progress, callback_lease.ends_at(stored)) == (now, Progress(0.4, "page 4 of 10"), now + LEASE)
    assert (stored.slot, stored.due_at, stored.fence) == (job.slot, job.due_at, job.fence)  # nothing that the due index shows


def test_a_heartbeat_without_progress_keeps_the_last_progress() -> None:
    stage = Stage()
    job = accepted(stage)
    beat(stage, job, Progress(0.4))
    beat(stage, job)
    assert stage.stored(job).progress == Progress(0.4)


def test_a_heartbeat_may_precede_the_response_of_the_target() -> None:
    stage = Stage()
    (item,) = stage.hand(long_job())
    job = stage.claim(item)
    assert beat(stage, job, Progress(0.1)) == HeartbeatAnswer(NOW + LEASE, False)
    assert not lifecycle.waits(stage.stored(job)) and stage.stored(job).progress == Progress(0.1)


def test_a_heartbeat_before_a_late_acceptance_counts() -> None:
    stage = Stage()
    (item,) = stage.hand(long_job())
    job = stage.claim(item)
    late = settlement.returned(Finished(job, NOW, NOW, Result("taken")), NOW, stage.rules)
    stage.clock.advance(7_000)
    promised = beat(stage, job).lease_until
    assert stage.jobs.change([Change(job, late)]) == [Written.YES]
    stored = stage.stored(job)
    assert lifecycle.waits(stored) and callback_lease.ends_at(stored) == promised == NOW + 7_000 + LEASE


def test_no_heartbeat_extends_a_lease_beyond_the_longest_time() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.clock.advance(570_000 - 10)
    assert beat(stage, job).lease_until == NOW + POLICY.max_ms
    stage.clock.advance(30_000)
    with pytest.raises(Conflict, match="did not report within 600 s"):
        beat(stage, job)


def test_the_heartbeat_of_another_attempt_is_refused() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.clock.at = job.due_at
    rescue(stage)
    assert stage.stored(job).fence == 2
    with pytest.raises(Conflict, match="attempt has ended"):
        beat(stage, job)


def test_reports_on_unknown_jobs_are_refused() -> None:
    with pytest.raises(NotFound):
        beat(Stage(), long_job())


@pytest.mark.parametrize("is_accepted", [True, False])
def test_an_older_heartbeat_never_shortens_an_answered_lease(is_accepted: bool) -> None:
    stage = Stage()
    job = accepted(stage) if is_accepted else stage.claim(stage.hand(long_job())[0])
    late = settlement.returned(Finished(job, NOW, NOW, Result()), NOW, stage.rules)
    stage.clock.advance(30_000)
    real, answered = stage.jobs, list[HeartbeatAnswer]()

    def overtaken(verb: Any, changes: Any) -> Any:
        if not answered:
            stage.clock.advance(25_000)
            answered.append(beat(Stage(clock=stage.clock, jobs=real), job))
        return verb(changes)

    stage.jobs = Wrapped(real, change=overtaken)
    slow = beat(stage, job)
    if not is_accepted:
        assert real.change([Change(job, late)]) == [Written.YES]
    ends_at = callback_lease.ends_at(real.get(job.key))
    assert ends_at >= answered[0].lease_until and ends_at >= slow.lease_until


def test_a_heartbeat_that_the_table_refuses_raises_unavailable() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED])
    with pytest.raises(Unavailable):
        beat(stage, job)


# rescue


def waiting(lease_until: int, **fields: Any) -> Job:
    return long_job(**({"claim": Claim("m1", "n1", NOW, False, lease_until), "started_at": NOW, "due_at": lease_until} | fields))


def decide(job: Job, now: int, *, message_id: str = "m2") -> object:
    item: Delivery = a_delivery(job, message_id=message_id)
    return delivery.decide(item, ClaimResult(False, job), "mine", now, hold_ms=5_000)


@pytest.mark.parametrize("message_id", ["m1", "m2"])
def test_any_message_takes_back_a_job_whose_lease_has_passed_a3(message_id: str) -> None:
    job = waiting(NOW + LEASE)
    assert decide(job, NOW + LEASE + SKEW, message_id=message_id) == TakeBack(job)


@pytest.mark.parametrize("message_id", ["m1", "m2"])
def test_a_message_well_before_the_due_time_is_a_copy(message_id: str) -> None:
    assert decide(waiting(NOW + LEASE), NOW + 20_000, message_id=message_id) == Drop()


@pytest.mark.parametrize(("left", "seconds"), [(-4_999, 1), (0, 5), (1, 6), (1_000, 6), (2_400, 8), (5_000, 10)])
def test_a_message_before_the_end_of_the_lease_is_deferred(left: int, seconds: int) -> None:
    """Also one shortly after it: the clock of the function that promised the lease may be behind."""
    assert decide(waiting(NOW + LEASE), NOW + LEASE - left) == PutBack(seconds)


def test_after_a_heartbeat_the_job_is_checked_at_the_later_end() -> None:
    job = waiting(NOW + 100_000, due_at=NOW + LEASE)
    assert decide(job, NOW + LEASE - 2_000) == Later(job, NOW + 100_000)


def test_each_lease_has_one_message_for_any_number_of_deliveries() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.clock.advance(50_000)
    beat(stage, job)
    stage.clock.at = job.due_at
    (first,) = stage.receive()
    stage.execute([first])
    moved = stage.stored(job)
    assert moved.due_at == callback_lease.ends_at(moved) == STARTED + 50_000 + LEASE
    assert stage.waiting(Lane.ONE_TIME) == [job.id]
    stage.execute([first._replace(message_id="copy")])
    assert stage.stored(job) == moved and stage.waiting(Lane.ONE_TIME) == [job.id]


def test_the_job_of_a_silent_worker_is_tried_again_and_charged() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.clock.at = job.due_at
    rescue(stage)
    after = stage.stored(job)
    assert (after.fence, after.lane, after.charged, after.crashes, after.claim) == (2, Lane.RETRY, 1, 1, None)
    assert after.attempts[-1].failure == Failure(FailureKind.CRASHED, "no heartbeat within 60 s")
    assert after.attempts[-1].outcome is Outcome.CRASHED and after.attempts[-1].started_at == NOW
    assert (after.heartbeat_at, after.progress, after.started_at) == (None, None, None)
    assert stage.waiting(Lane.RETRY) == [job.id]


def test_a_job_whose_worker_is_silent_twice_fails() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.clock.at = job.due_at
    rescue(stage)
    rescue(stage, Lane.RETRY)
    second = stage.stored(job)
    assert lifecycle.waits(second) and second.fence == 2
    stage.clock.at = second.due_at
    rescue(stage, Lane.RETRY)
    after = stage.stored(job)
    assert lifecycle.state(after) is Status.FAILED and after.reason == "no heartbeat within 60 s each time"
    assert [attempt.outcome for attempt in after.attempts] == [Outcome.CRASHED] * 2


@pytest.mark.parametrize(("on_timeout", "state"), [(False, Status.KILLED), (True, Status.SCHEDULED)])
def test_a_job_beyond_its_longest_time_ends_despite_heartbeats(on_timeout: bool, state: Status) -> None:
    stage = Stage()
    job = accepted(stage, long_job(retry=RetryPolicy(on_timeout=on_timeout)), result=Result("queued"))
    for _ in range(11):
        stage.clock.advance(54_000)
        beat(stage, job)
    stage.clock.at = NOW + POLICY.max_ms
    rescue(stage)
    after = stage.stored(job)
    assert lifecycle.state(after) is state
    assert after.attempts[-1].failure == Failure(FailureKind.TIMEOUT, "it did not report within 600 s")
    assert after.output == "queued"


def test_a_heartbeat_just_before_the_take_back_saves_the_job() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.clock.at = job.due_at + SKEW

    def beaten(verb: Any, changes: Any) -> Any:
        beats.append(beat(Stage(clock=stage.clock, jobs=real), job))
        return verb(changes)

    real, beats = stage.jobs, list[HeartbeatAnswer]()
    stage.execute(stage.receive(), jobs=Wrapped(real, change=beaten))
    assert lifecycle.waits(stage.stored(job)) and callback_lease.ends_at(stage.stored(job)) == beats[0].lease_until


def test_a_slow_acceptance_keeps_the_lease_of_a_heartbeat() -> None:
    stage = Stage()
    real, beats = stage.jobs, list[HeartbeatAnswer]()

    def beaten(verb: Any, changes: Any) -> Any:
        stage.clock.advance(30_000)
        beats.append(beat(Stage(clock=stage.clock, jobs=real), changes[0].before))
        return verb(changes)

    stage.execute(stage.hand(long_job()), jobs=Wrapped(real, change=beaten))
    (job,) = real.rows.values()
    assert lifecycle.waits(job) and callback_lease.ends_at(job) == beats[0].lease_until == NOW + 30_010 + LEASE


def test_a_repeated_acceptance_keeps_the_lease_of_a_heartbeat() -> None:
    stage = Stage()
    real, beats = stage.jobs, list[HeartbeatAnswer]()

    def lost(verb: Any, changes: Any) -> Any:
        verb(changes)
        stage.clock.advance(1_000)
        beats.append(beat(Stage(clock=stage.clock, jobs=real), changes[0].before))
        raise Unavailable

    assert stage.execute(stage.hand(long_job()), jobs=Wrapped(real, change=times(1, lost))) == []
    (job,) = real.rows.values()
    assert job.claim is not None and job.claim.lease_until == beats[0].lease_until == STARTED + 1_000 + LEASE


# reconcile and bury


def test_reconciling_moves_slot_and_due_time_to_the_end_of_the_lease() -> None:
    job = waiting(NOW + 700_000, due_at=NOW)
    assert leftover.decide(job, job.slot or "", NOW + 180_000, Rules(shards=1), behind=False) == leftover.Move(
        f"{slots.minute_of(NOW + 700_000)}#00", hand_over=False, due_at=NOW + 700_000
    )


def test_reconciling_takes_back_jobs_whose_lease_has_ended_a3() -> None:
    stage = Stage()
    stage.clock.advance(200_000)
    soon, over = waiting(NOW + 230_000, due_at=NOW), waiting(NOW + 200_000 - SKEW, due_at=NOW)
    for job in (soon, over):
        stage.jobs.put(job)
    run_recheck(entries_of(soon, over), stage, now=NOW + 200_000)
    assert stage.waiting(Lane.ONE_TIME) == [soon.id] and stage.stored(soon).due_at == NOW + 230_000
    assert stage.waiting(Lane.RETRY) == [over.id] and stage.stored(over).fence == 2


def test_an_old_read_takes_back_no_job_accepted_meanwhile() -> None:
    stage = Stage()
    stage.clock.advance(400_000)
    running = long_job(claim=Claim("m1", "n1", NOW, True))
    stage.jobs.put(replace(running, claim=Claim("m1", "n1", NOW, True, NOW + 900_000), started_at=NOW))
    run_recheck(entries_of(running), stage, now=stage.clock.now())
    assert stage.stored(running).fence == 1


def test_a_dead_letter_of_the_first_message_does_not_end_the_job() -> None:
    stage = Stage()
    job = accepted(stage)
    assert job.claim is not None
    dead = a_delivery(job, message_id=job.claim.message_id)
    assert bury([dead], stage).dropped == 1
    assert stage.stored(job) == job


# reports


def test_a_worker_completes_its_job() -> None:
    stage = Stage()
    job = accepted(stage, result=Result("queued", {"status": 202, "headers": {}, "body": ""}))
    stage.clock.advance(40_000)
    done = report(stage, job, Result("42 rows"))
    assert lifecycle.state(done) is Status.SUCCEEDED and done.completed_at == stage.clock.now()
    assert (done.output, done.charged, done.attempts[-1].started_at) == ("42 rows", 1, NOW)
    assert done.response == {"status": 202, "headers": {}, "body": ""}  # the response of the target, unless the worker reports more
    assert stage.stored(job) == done


def test_a_repeated_report_is_answered_like_the_first_one() -> None:
    stage = Stage()
    job = accepted(stage)
    done = report(stage, job, Result("42 rows"))
    stage.clock.advance(1_000)
    assert report(stage, job, Result("42 rows")) == done
    with pytest.raises(Conflict, match="already ended: succeeded"):
        report(stage, job, Result(failure=Failure(FailureKind.PERMANENT, "no")))


def test_a_report_with_a_lost_answer_counts_once() -> None:
    stage = Stage()
    job = accepted(stage)
    real, stage.jobs = stage.jobs, Wrapped(stage.jobs, change=times(1, lost_answer))
    with pytest.raises(Unavailable):
        report(stage, job, Result("42 rows"))
    assert report(stage, job, Result("42 rows")) == real.get(job.key)
    assert len(stage.stored(job).attempts) == 1


def test_a_reported_failure_is_retried() -> None:
    stage = Stage()
    job = accepted(stage)
    failure = Failure(FailureKind.RETRYABLE, "disk full", 20_000)
    after = report(stage, job, Result(failure=failure))
    assert (after.fence, after.lane, after.due_at) == (2, Lane.RETRY, stage.clock.now() + 20_000)
    assert after.attempts[-1].failure == failure
    assert stage.waiting(Lane.RETRY) == [job.id]
    assert report(stage, job, Result(failure=failure)) == after  # its answer was lost
    with pytest.raises(Conflict, match="attempt has ended"):
        report(stage, job, Result("done"))


def test_a_permanent_failure_ends_the_job() -> None:
    stage = Stage()
    job = accepted(stage)
    after = report(stage, job, Result(failure=Failure(FailureKind.PERMANENT, "no such customer")))
    assert lifecycle.state(after) is Status.FAILED and after.reason == "the error is permanent"


def test_a_report_may_precede_the_acceptance_of_its_job() -> None:
    stage = Stage()
    job = long_job()
    done: list[Job] = []

    def fast(verb: Any, changes: Any) -> Any:
        if not done:
            claimed = stage.stored(job)
            done.append(report(Stage(clock=stage.clock, jobs=real, tasks=stage.tasks, lanes=stage.lanes), claimed, Result("42 rows")))
        return verb(changes)

    real, items = stage.jobs, stage.hand(job)
    left = stage.execute(items, jobs=Wrapped(real, change=fast))
    assert left == [] and stage.stored(job) == done[0]
    assert lifecycle.state(stage.stored(job)) is Status.SUCCEEDED and stage.stored(job).output == "42 rows"


def test_a_report_after_the_lease_counts_until_the_take_back() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.clock.at = job.due_at + 500
    assert lifecycle.state(report(stage, job, Result("late"))) is Status.SUCCEEDED
    rescue(stage)
    assert stage.stored(job).output == "late"


def test_a_retry_that_cannot_be_enqueued_is_no_error_of_the_worker() -> None:
    stage = Stage()
    job = accepted(stage)
    stage.lanes = Wrapped(stage.lanes, send=refuse)
    assert report(stage, job, Result(failure=Failure(FailureKind.RETRYABLE, "no", 1_000))).fence == 2


# cancel


def ask(stage: Stage, key: JobKey) -> Job:
    return cancel(key, stage)


def test_a_cancel_cuts_the_lease_and_shows_in_the_next_heartbeat() -> None:
    stage = Stage()
    job = accepted(stage, long_job(callback=CallBack(3_600_000, 86_400_000)))
    now = stage.clock.now()
    flagged = ask(stage, job.key)
    assert stage.clock.now() == now and flagged.cancel_requested_at == now
    assert beat(stage, job) == HeartbeatAnswer(now + callback_lease.GRACE_MS, True)
    assert ask(stage, job.key) == stage.stored(job)
    stage.clock.advance(callback_lease.GRACE_MS)
    rescue(stage)
    after = stage.stored(job)
    assert lifecycle.state(after) is Status.CANCELLED and after.attempts[-1].outcome is Outcome.CANCELLED


def test_after_a_cancel_the_workers_report_decides_the_state() -> None:
    stage = Stage()
    faster, obedient = accepted(stage), accepted(stage)
    for job in (faster, obedient):
        ask(stage, job.key)
    assert lifecycle.state(report(stage, faster, Result("done"))) is Status.SUCCEEDED
    assert lifecycle.state(report(stage, obedient, Result(failure=Failure(FailureKind.RETRYABLE, "stopped")))) is Status.CANCELLED


def test_a_repeated_report_after_a_cancel_gets_the_same_answer() -> None:
    stage, stopped = Stage(), Result(failure=Failure(FailureKind.RETRYABLE, "stopped"))
    job = accepted(stage)
    cancel(job.key, stage)
    done = report(stage, job, stopped)
    assert lifecycle.state(done) is Status.CANCELLED
    assert report(stage, job, stopped) == done  # its answer was lost
    with pytest.raises(Conflict, match="already ended: cancelled"):
        report(stage, job, Result("done"))


def test_a_cancel_before_the_acceptance_cuts_the_first_lease() -> None:
    asked = long_job(claim=Claim("m1", "n1", NOW, True), cancel_requested_at=NOW + 5_000)
    done = settlement.Finished(asked, NOW, NOW + 6_000, Result())
    after = settlement.returned(done, NOW + 6_000, Rules(shards=2))
    assert after.due_at == NOW + 5_000 + callback_lease.GRACE_MS


# tokens of attempts


def test_the_address_of_an_attempt_is_valid_for_it_alone() -> None:
    keys = MemorySecrets(signing=[b"new", b"old"])
    job = long_job(fence=3)
    address = service.Addresses("https://api.example.com", keys).of(job, NOW)
    assert address.url == f"https://api.example.com/api/v1/jobs/{job.id}"
    assert service.admit(address.token, job.id, keys, NOW) == AttemptKey(job.key, 3)


def test_a_token_of_an_unknown_key_makes_the_keys_be_read_again() -> None:
    job = long_job()
    token = service.Addresses("", MemorySecrets(signing=[b"newest"])).of(job, NOW).token

    class Rotated:
        def keys(self, now: int, *, newest: bool = False) -> list[bytes]:
            return [b"newest", b"old"] if newest else [b"old"]

    assert service.admit(token, job.id, Rotated(), NOW) == AttemptKey(job.key, 1)
