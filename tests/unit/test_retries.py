"""Jobs that fail, from their first attempt to their end: through the retry lane, in virtual time."""

from typing import Any

import pytest

from scheduler.jobs.cancel import cancel
from scheduler.model import lifecycle, retry
from scheduler.model.job import Failure, FailureKind, Job, Lane, Message, Outcome, Result, Status, TaskHead
from scheduler.model.spec import Jitter, RetryPolicy
from scheduler.storage.ports import Change, Written
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage

TAKES = 10
DOWN = Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 500"))
GONE = Result(failure=Failure(FailureKind.PERMANENT, "HTTP 404"))
BUSY = Result(failure=Failure(FailureKind.THROTTLED, "HTTP 429", 7_000))
SLOW = Result(failure=Failure(FailureKind.TIMEOUT, "stopped"))
GOOD = Result("done")


def posted(stage: Stage, **fields: Any) -> Job:
    return stage.submit(NOW, **fields)


def attempt(stage: Stage, job: Job, result: Result) -> Job:
    """The job after its next attempt, which starts when it is due, and not before."""
    before = stage.stored(job)
    stage.clock.at = max(stage.clock.at, before.due_at)
    pool = ScriptedPool(stage.clock, takes=TAKES, result=result)
    items = stage.receive(before.lane)
    if not items:  # the job waits in its slot only: dispatch would publish it
        stage.lanes.add(Message.of(before, stage.clock.at), stage.clock.at)
        items = stage.receive(before.lane)
    stage.execute(items, pool=pool, lane=before.lane)
    assert [started.id for started, _ in pool.starts] == [job.id]
    return stage.stored(job)


def ended(job: Job) -> tuple[Status, str | None, int]:
    return lifecycle.state(job), job.reason, len(job.attempts)


@pytest.mark.parametrize("jitter", Jitter)
def test_two_errors_and_a_success_are_three_attempts_with_declared_waits(jitter: Jitter) -> None:
    stage = Stage()
    job = posted(stage, retry=RetryPolicy(base_ms=4_000, jitter=jitter))
    waits = []
    for result in (DOWN, DOWN):
        job = attempt(stage, job, result)
        waits.append(job.due_at - job.attempts[-1].ended_at)
    job = attempt(stage, job, GOOD)
    assert ended(job) == (Status.SUCCEEDED, None, 3) and job.charged == 3
    for wait, most in zip(waits, (4_000, 8_000), strict=True):
        assert {Jitter.FULL: 0, Jitter.EQUAL: most // 2, Jitter.NONE: most}[jitter] <= wait <= most
    assert [each.outcome for each in job.attempts] == [Outcome.FAILED, Outcome.FAILED, Outcome.SUCCEEDED]
    assert [each.fence for each in job.attempts] == [1, 2, 3] and job.lane is Lane.RETRY


def test_a_throttled_job_is_retried_exactly_at_the_requested_time() -> None:
    stage = Stage()
    job = attempt(stage, posted(stage, max_attempts=1), BUSY)
    assert (job.due_at, job.charged, lifecycle.state(job)) == (NOW + TAKES + 7_000, 0, Status.SCHEDULED)
    job = attempt(stage, job, GOOD)
    assert (ended(job), job.charged) == ((Status.SUCCEEDED, None, 2), 1)


def test_a_job_that_is_always_throttled_ends_after_a_day() -> None:
    stage = Stage()
    job = posted(stage)
    hourly = Result(failure=Failure(FailureKind.THROTTLED, "HTTP 429", 3_600_000))
    for _ in range(30):
        job = attempt(stage, job, hourly)
        if not lifecycle.is_open(job):
            break
    assert ended(job) == (Status.FAILED, "its next attempt would start later than 86400 s after its first", lifecycle.RETAINED_ATTEMPTS)
    assert (job.charged, job.throttled) == (0, 24) and job.failed_at is not None and job.failed_at < NOW + 86_400_000


def test_a_permanent_error_ends_the_job_after_one_attempt() -> None:
    stage = Stage()
    assert ended(attempt(stage, posted(stage, max_attempts=9), GONE)) == (Status.FAILED, "the error is permanent", 1)
    assert stage.waiting(Lane.RETRY) == []


def test_a_time_out_kills_unless_the_policy_retries_it() -> None:
    stage = Stage()
    assert ended(attempt(stage, posted(stage), SLOW)) == (Status.KILLED, "its time-out of 300 s passed", 1)
    job = attempt(stage, posted(stage, max_attempts=2, retry=RetryPolicy(on_timeout=True)), SLOW)
    assert (lifecycle.state(job), job.charged) == (Status.SCHEDULED, 1)
    assert ended(attempt(stage, job, SLOW)) == (Status.KILLED, "its time-out of 300 s passed; no attempt is left of 2", 2)


def test_expiry_or_the_end_of_the_policy_ends_a_job_with_attempts_left() -> None:
    stage = Stage()
    job = attempt(stage, posted(stage, expires_at=NOW + 5_000), BUSY)
    assert ended(job) == (Status.FAILED, retry.EXPIRED, 1)
    steady = RetryPolicy(base_ms=20_000, jitter=Jitter.NONE, max_elapsed_ms=50_000)
    job = posted(stage, max_attempts=9, retry=steady)
    job = attempt(stage, attempt(stage, job, DOWN), DOWN)
    assert ended(job) == (Status.FAILED, "its next attempt would start later than 50 s after its first", 2)


@pytest.mark.parametrize("failure", [DOWN, BUSY, SLOW])
def test_a_job_with_a_requested_cancel_is_not_retried(failure: Result) -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(retry=RetryPolicy(on_timeout=True)))
    pool = FlaggingPool(stage, result=failure)
    stage.execute([item], pool=pool)
    assert ended(stage.stored(item.message.key)) == (Status.CANCELLED, "enough", 1)


def test_a_job_that_waits_for_its_retry_is_cancelled_at_once() -> None:
    stage = Stage()
    job = attempt(stage, posted(stage), BUSY)
    cancel(job.key, stage)
    stage.clock.at = job.due_at + 1_000
    pool = ScriptedPool(stage.clock)
    stage.execute(stage.receive(Lane.RETRY), pool=pool, lane=Lane.RETRY)
    assert pool.starts == [] and lifecycle.state(stage.stored(job)) is Status.CANCELLED


class FlaggingPool(ScriptedPool):
    """A pool in which a cancel of each job is requested after its start."""

    def __init__(self, stage: Stage, **fields: Any) -> None:
        super().__init__(stage.clock, takes=5_000, **fields)
        self.stage = stage

    def start(self, job: Job, not_after: int | None = None, task: TaskHead | None = None) -> None:
        super().start(job)
        flagged = lifecycle.flag(self.stage.stored(job), self.stage.clock.now(), reason="enough")
        assert self.stage.jobs.change([Change(self.stage.stored(job), flagged)]) == [Written.YES]
