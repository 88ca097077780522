"""The job after the end of an attempt."""

from dataclasses import replace

import pytest

from scheduler.model import lifecycle, misfire, retry, settlement, slots
from scheduler.model.job import (
    Attempt,
    Claim,
    Failure,
    FailureKind,
    Finished,
    Job,
    Lane,
    Misfire,
    Outcome,
    RequeueCause,
    Result,
    RunInfo,
    Status,
)
from scheduler.model.rules import Rules
from scheduler.model.spec import RetryPolicy
from tests.conftest import NOW, a_job

RULES = Rules(shards=4)


def running(*, alone: bool = True, message_id: str = "m1", **fields: object) -> Job:
    return a_job(claim=Claim(message_id, "n1", NOW, alone), **fields)


def settle(result: Result, **fields: object) -> Job:
    return settlement.settle(Finished(running(**fields), NOW + 2, NOW + 9, result), NOW + 10, RULES)


def failing(kind: FailureKind) -> Result:
    return Result(failure=Failure(kind, "no"))


def test_a_successful_answer_completes_the_job() -> None:
    job = settle(Result("out"))
    assert (lifecycle.state(job), job.output, job.started_at, job.delay_ms) == (Status.SUCCEEDED, "out", NOW + 2, 2)


def test_a_time_out_kills_even_if_attempts_are_left() -> None:
    job = settle(failing(FailureKind.TIMEOUT), max_attempts=9)
    assert lifecycle.state(job) is Status.KILLED and job.attempts[-1].outcome is Outcome.KILLED


def test_time_outs_are_retried_by_choice_and_the_last_one_kills() -> None:
    chosen = RetryPolicy(on_timeout=True)
    job = settle(failing(FailureKind.TIMEOUT), retry=chosen)
    assert (lifecycle.state(job), job.charged, job.lane, job.attempts[-1].outcome) == (Status.SCHEDULED, 1, Lane.RETRY, Outcome.KILLED)
    last = settle(failing(FailureKind.TIMEOUT), retry=chosen, charged=2)
    assert (last.killed_at, last.reason) == (NOW + 9, "its time-out of 300 s passed; no attempt is left of 3")


def test_a_throttled_attempt_is_retried_at_the_requested_time_uncharged() -> None:
    job = settle(Result(failure=Failure(FailureKind.THROTTLED, "HTTP 429", 7_000)), charged=2)
    assert (lifecycle.state(job), job.due_at, job.charged, job.fence) == (Status.SCHEDULED, NOW + 10 + 7_000, 2, 2)
    assert job.attempts[-1].failure == Failure(FailureKind.THROTTLED, "HTTP 429", 7_000)


def test_a_retryable_error_is_retried_with_a_safe_slot_and_a_new_fence() -> None:
    job = settle(failing(FailureKind.RETRYABLE))
    assert (lifecycle.state(job), job.fence, job.charged, job.lane) == (Status.SCHEDULED, 2, 1, Lane.RETRY)
    assert job.due_at >= NOW + 10 and job.slot is not None
    assert slots.start_of(slots.minute(job.slot)) >= NOW + 10 + slots.HORIZON


@pytest.mark.parametrize(
    ("kind", "fields"),
    [(FailureKind.PERMANENT, {}), (FailureKind.RETRYABLE, {"charged": 2}), (FailureKind.RETRYABLE, {"max_attempts": 1})],
)
def test_an_error_without_a_further_attempt_fails_the_job(kind: FailureKind, fields: dict[str, int]) -> None:
    job = settle(failing(kind), **fields)
    assert lifecycle.state(job) is Status.FAILED and job.reason


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind not in (FailureKind.CRASHED, FailureKind.BURIED)])
def test_a_requested_cancel_wins_over_any_result_but_success(kind: FailureKind) -> None:
    job = settle(failing(kind), cancel_requested_at=NOW + 3, reason="asked")
    assert (lifecycle.state(job), job.reason, job.cancelled_at) == (Status.CANCELLED, "asked", NOW + 9)
    assert [(attempt.outcome, attempt.started_at) for attempt in job.attempts] == [(Outcome.CANCELLED, NOW + 2)]
    assert lifecycle.state(settle(Result("out"), cancel_requested_at=NOW + 3)) is Status.SUCCEEDED


def test_a_job_is_not_retried_after_its_expiry() -> None:
    job = settle(failing(FailureKind.RETRYABLE), start_by=NOW + 10)
    assert lifecycle.state(job) is Status.FAILED and job.reason == retry.EXPIRED
    assert lifecycle.state(settle(failing(FailureKind.RETRYABLE), start_by=NOW + 60_000)) is Status.SCHEDULED


def test_a_misfire_rule_does_not_end_retries() -> None:
    origin = RunInfo("t1", 1, NOW, misfire=Misfire.SKIP)
    assert lifecycle.state(settle(failing(FailureKind.RETRYABLE), start_by=NOW + 10, origin=origin)) is Status.SCHEDULED
    assert lifecycle.state(take_back(start_by=NOW + 10, origin=origin)) is Status.SCHEDULED


def test_a_requeued_job_takes_a_safe_slot_unless_its_lane_is_paused() -> None:
    job = running()
    back = settlement.requeue(job, RequeueCause.OVERLAP, "it waits", NOW + 10, RULES)
    assert (back.fence, back.lane, back.reason, back.requeue_cause) == (2, job.lane, "it waits", None)
    assert slots.start_of(slots.minute(back.slot or "")) >= NOW + 10 + slots.HORIZON
    paused = settlement.requeue(job, RequeueCause.PAUSED, "paused", NOW + 10, RULES)
    assert (paused.due_at, paused.fence, paused.reason, paused.requeue_cause) == (job.due_at, 2, "paused", RequeueCause.PAUSED)
    assert paused.slot == slots.waiting(job.lane, job.id, 4)


def test_a_pause_keeps_the_reason_of_a_run_that_waited_for_another() -> None:
    """Its misfire rule no longer applies."""
    paused = settlement.requeue(running(reason="overlap: ..."), RequeueCause.PAUSED, "paused", NOW, RULES)
    assert (paused.reason, paused.requeue_cause) == ("overlap: ...", None)


def test_a_second_pause_keeps_the_cause_of_the_first() -> None:
    once = running(reason="paused", requeue_cause=RequeueCause.PAUSED)
    again = settlement.requeue(once, RequeueCause.PAUSED, "paused", NOW, RULES)
    assert (again.reason, again.requeue_cause, again.fence) == ("paused", RequeueCause.PAUSED, 2)


def take_back(**fields: object) -> Job:
    return settlement.take_back(running(**fields), NOW + 40_000, RULES)


def test_a_job_whose_executor_died_goes_to_the_retry_lane_at_once() -> None:
    job = take_back()
    assert (lifecycle.state(job), job.lane, job.due_at, job.fence) == (Status.SCHEDULED, Lane.RETRY, NOW + 40_000, 2)


def test_two_crashes_alone_end_a_job() -> None:
    assert lifecycle.state(take_back(started_at=NOW, crashes=1, charged=1, max_attempts=9)) is Status.FAILED


def test_a_crash_alone_at_the_last_attempt_ends_a_job() -> None:
    job = take_back(started_at=NOW, max_attempts=1)
    assert lifecycle.state(job) is Status.FAILED and job.attempts[-1].outcome is Outcome.CRASHED


def died(job: Job, times: int = 1) -> Job:
    """The job after its executors died so often between claim and start."""
    for _ in range(times):
        at = max(job.due_at, NOW)
        claimed = lifecycle.claim(job, claim=Claim("m1", f"n{at}", at, True))
        job = settlement.take_back(claimed, at + 30_000, RULES)
    return job


def test_a_job_whose_executors_die_before_its_start_does_not_end() -> None:
    job, waits = a_job(max_attempts=1), list[int]()
    for _ in range(100):
        began, job = job.due_at, died(job)
        waits.append(job.due_at - began - 30_000)
    assert waits == [0, 10_000, 60_000, 300_000, *[900_000] * 96]
    assert (lifecycle.state(job), job.charged, job.crashes, job.reason) == (Status.SCHEDULED, 0, 0, lifecycle.UNSTARTED)
    assert [each.started_at for each in job.attempts] == [None] * lifecycle.RETAINED_ATTEMPTS
    done = lifecycle.claim(job, claim=Claim("m1", "n1", job.due_at, True))
    assert settle_succeeded(lifecycle.start(done, job.due_at)).reason is None


def settle_succeeded(job: Job) -> Job:
    return settlement.settle(Finished(job, job.due_at, job.due_at + 1, Result("done")), job.due_at + 1, RULES)


def test_the_first_crash_may_have_started_the_work() -> None:
    job = died(a_job())
    assert (job.attempts[0].started_at, job.reason, lifecycle.has_only_died(job)) == (NOW, None, False)
    assert lifecycle.has_only_died(died(job))


def test_a_started_job_that_kills_its_executors_ends_whatever_came_before() -> None:
    job = died(a_job(max_attempts=9), 8)
    for _ in range(retry.MAX_CRASHES):
        claimed = lifecycle.claim(job, claim=Claim("m1", f"n{job.due_at}", job.due_at, True))
        job = settlement.take_back(lifecycle.start(claimed, job.due_at), job.due_at + 30_000, RULES)
    assert (lifecycle.state(job), job.reason) == (Status.FAILED, "its executor died each time it ran alone")


def test_a_job_that_never_started_expires_as_one_that_waits() -> None:
    job = died(a_job(start_by=NOW + 200_000), 4)
    assert (lifecycle.state(job), job.due_at) == (Status.SCHEDULED, NOW + 190_000), "the next wait would miss the expiry"
    assert misfire.too_late(job, NOW + 199_999) is None
    assert (misfire.too_late(job, NOW + 200_000) or "").startswith("expired: ")
    late = died(job)
    assert (lifecycle.state(late), late.due_at) == (Status.SCHEDULED, NOW + 220_000 + 900_000)


@pytest.mark.parametrize("missed", [Misfire.SKIP, Misfire.RUN_LATEST])
def test_a_run_that_never_started_keeps_its_misfire_rule(missed: Misfire) -> None:
    run = a_job(start_by=NOW + 60_000, origin=RunInfo("t1", 1, NOW, misfire=missed))
    assert misfire.too_late(died(run), NOW + 60_000) is None, "it may have started"
    assert (misfire.too_late(died(run, 3), NOW + 60_000) or "").startswith("misfire: ")
    waited = settlement.requeue(
        lifecycle.claim(died(run, 3), claim=Claim("m1", "n1", NOW, True)), RequeueCause.OVERLAP, "waits", NOW, RULES
    )
    assert misfire.too_late(waited, NOW + 60_000) is None
    paused = settlement.requeue(
        lifecycle.claim(died(run, 3), claim=Claim("m1", "n1", NOW, True)), RequeueCause.PAUSED, "paused", NOW, RULES
    )
    assert (misfire.too_late(paused, NOW + 60_000) or "").startswith("misfire: ") and paused.reason == "paused"


def test_a_retried_job_whose_executor_dies_expires_as_before() -> None:
    retried = a_job(charged=1, delay_ms=0, start_by=NOW + 50_000, attempts=(Attempt(1, NOW, NOW, NOW + 1, Outcome.FAILED),))
    assert died(retried, 2).reason == retry.EXPIRED
    assert not lifecycle.has_only_died(died(replace(retried, start_by=None), 2))


def test_the_wait_after_a_crash_ends_no_job() -> None:
    crashed = Attempt(1, NOW, None, NOW + 1, Outcome.CRASHED)
    job = take_back(start_by=NOW + 41_000, attempts=(crashed,) * 3)
    assert (lifecycle.state(job), job.due_at) == (Status.SCHEDULED, NOW + 40_000)


def test_a_crash_is_not_retried_after_the_expiry_unless_it_never_started() -> None:
    assert take_back(start_by=NOW + 40_000).reason == retry.EXPIRED
    assert lifecycle.state(take_back(start_by=NOW + 40_001)) is Status.SCHEDULED
    assert lifecycle.state(take_back(start_by=NOW + 10, due_at=NOW + 50_000)) is Status.SCHEDULED


def test_a_crashed_job_with_a_requested_cancel_is_cancelled() -> None:
    job = take_back(cancel_requested_at=NOW + 3)
    assert (lifecycle.state(job), job.reason, job.attempts[-1].outcome) == (Status.CANCELLED, settlement.CANCELLED, Outcome.CANCELLED)
    assert take_back(cancel_requested_at=NOW + 3, due_at=NOW + 50_000).attempts == ()


@pytest.mark.parametrize("fields", [{"crashes": 1, "charged": 1}, {"max_attempts": 1}])
def test_a_crash_of_a_batch_of_many_ends_no_job_a6(fields: dict[str, int]) -> None:
    job = take_back(alone=False, **fields)
    assert lifecycle.state(job) is Status.SCHEDULED
    assert (job.crashes, job.charged) == (fields.get("crashes", 0), fields.get("charged", 0))


def test_innocent_jobs_survive_any_number_of_killed_batches_a6() -> None:
    job = a_job()
    for number in range(20):
        job = lifecycle.claim(job, claim=Claim(f"m{number}", f"n{number}", NOW, False))
        job = settlement.take_back(job, NOW + 40_000, RULES)
    assert lifecycle.is_open(job) and job.charged == 0


def bury(job: Job, message_id: str = "m1", fence: int = 1) -> Job | None:
    return settlement.bury(job, message_id, fence, NOW + 99_000, RULES)


def test_a_job_running_under_the_buried_message_is_taken_back() -> None:
    job = bury(running(max_attempts=1))
    assert job is not None and lifecycle.state(job) is Status.SCHEDULED and job.attempts[-1].outcome is Outcome.CRASHED
    assert (job.lane, job.charged, job.attempts[-1].failure) == (Lane.RETRY, 0, settlement.BURIED)


@pytest.mark.parametrize("job", [running(message_id="m2"), running(fence=2), a_job(fence=2), a_job(slot=None, completed_at=NOW)])
def test_an_outdated_message_buries_no_job(job: Job) -> None:
    assert bury(job) is None


def test_a_job_that_never_ran_keeps_its_slot_at_every_burial_a8() -> None:
    job = a_job()
    slot = job.slot
    for number in range(1, 10):
        after = bury(job)
        assert after is not None and (after.slot, after.buried, after.attempts) == (slot, number, ())
        job = after


def test_work_that_did_not_begin_waits_longer_each_time() -> None:
    busy = Result(failure=Failure(FailureKind.THROTTLED, "busy"), unstarted=True)
    found = []
    for fence in (1, 2, 3, 8, 99):
        job = settlement.returned(Finished(running(fence=fence), NOW, NOW, busy), NOW, RULES)
        assert (job.fence, job.charged, job.throttled, job.attempts, job.reason) == (fence + 1, 0, 0, (), "busy")
        found.append(job.due_at - NOW)
    assert found == [250, 500, 1_000, 30_000, 30_000]


def test_a_change_written_late_gets_a_slot_that_is_safe_then() -> None:
    before = running()
    after = settlement.requeue(before, RequeueCause.OVERLAP, "it waits", NOW, RULES)
    assert settlement.still_safe(before, after, NOW + 30_000, RULES) == after
    late = settlement.still_safe(before, after, NOW + 300_000, RULES)
    assert slots.is_safe(late.slot or "", NOW + 300_000) and (late.fence, late.due_at) == (after.fence, after.due_at)
    ended, paused = (settlement.cancel(before, NOW, RULES), replace(after, slot=before.slot))
    assert settlement.still_safe(before, ended, NOW + 300_000, RULES) == ended
    assert settlement.still_safe(before, paused, NOW + 300_000, RULES) == paused
