"""Jobs whose work AWS does until its end: what is stored before a start, checks, stops, events, and crashes between two writes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scheduler.callbacks.conclude import conclude
from scheduler.jobs.cancel import cancel
from scheduler.model import callback_lease, lifecycle, settlement
from scheduler.model.job import Awaited, Failure, FailureKind, Finished, Job, Lane, Outcome, Result, Status
from scheduler.pipeline import leftover
from scheduler.storage.ports import Change, Written
from tests.conftest import NOW, ScriptedPool, a_job
from tests.unit.stage import Stage, Wrapped, refuse

ARN = "arn:aws:ecs:eu-west-1:123456789012:task/jobs/1"
CLUSTER = "arn:aws:ecs:eu-west-1:123456789012:cluster/jobs"
DEFINITION = "arn:aws:ecs:eu-west-1:123456789012:task-definition/report"
FIRST, MOST = callback_lease.CHECKS_MS


def container_job(**fields: Any) -> Job:
    payload = {"cluster": CLUSTER, "task_definition": DEFINITION}
    return a_job(**({"type": "ecs", "payload": payload, "timeout_ms": 7_200_000} | fields))


class Containers(ScriptedPool):
    """A pool whose target starts work in AWS. `answers`: of the next calls, the last one again and again."""

    def __init__(self, stage: Stage, *answers: Callable[[Job], Result]) -> None:
        super().__init__(stage.clock)
        self.answers = list(answers)

    def start(self, job: Job, *rest: Any) -> None:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.result = answer(job)
        super().start(job, *rest)


def goes_on(job: Job, **fields: Any) -> Result:
    assert job.awaited is not None
    return Result(awaited=replace(job.awaited, **({"id": ARN} | fields)))


def ends(result: Result) -> Callable[[Job], Result]:
    return lambda job: result


EXITED = Result("{}", failure=Failure(FailureKind.RETRYABLE, "the container main exited with code 3"))


def begun(stage: Stage, job: Job | None = None) -> Job:
    job = job or container_job()
    stage.execute(stage.hand(job), pool=Containers(stage, goes_on), lane=job.lane)
    return stage.stored(job)


def check(stage: Stage, pool: ScriptedPool, lane: Lane = Lane.ONE_TIME) -> None:
    stage.execute(stage.receive(lane), pool=pool, lane=lane)


def at_check(stage: Stage, job: Job) -> None:
    stage.clock.sleep_until(callback_lease.ends_at(job))


def event(job: Job, code: int | None = 0, *, fence: int = 1, task: str = ARN, status: str = "STOPPED", **fields: Any) -> dict[str, Any]:
    container = {"name": "main", "exitCode": code} if code is not None else {"name": "main"}
    detail = {
        "startedBy": f"punctual/{job.owner}/{job.id}/{fence}",
        "taskArn": task,
        "lastStatus": status,
        "stopCode": "EssentialContainerExited",
        "containers": [container],
    }
    return {"source": "aws.ecs", "detail-type": "ECS Task State Change", "detail": detail | fields}


def test_a_job_runs_without_an_executor_until_its_work_has_ended() -> None:
    stage = Stage()
    job = begun(stage)
    assert lifecycle.status(job, stage.clock.now()) is Status.RUNNING and lifecycle.waits(job)
    assert (job.awaited, job.due_at) == (Awaited(1, id=ARN), NOW + 10 + FIRST)
    at_check(stage, job)
    check(stage, Containers(stage, ends(Result("{}"))))
    done = stage.stored(job)
    assert (lifecycle.state(done), done.output, len(done.attempts)) == (Status.SUCCEEDED, "{}", 1)
    assert done.attempts[0].started_at == NOW, "the attempt began with its start, not with the check that saw its end"


def test_work_that_goes_on_is_checked_at_growing_distances() -> None:
    job, now, distances = begun(Stage()), NOW, list[int]()
    while now < callback_lease.must_end_at(job):
        following = callback_lease.lease(job, now)
        distances.append(following - now)
        now = following
    *growing, _ = distances
    assert growing == sorted(growing) and (growing[0], growing[-1]) == (FIRST, MOST)
    assert now == NOW + 7_200_000, "the last check is at the time-out"


def test_a_check_that_finds_the_work_going_on_changes_only_the_lease() -> None:
    stage = Stage()
    job = begun(stage)
    at_check(stage, job)
    check(stage, Containers(stage, goes_on))
    after = stage.stored(job)
    assert callback_lease.ends_at(after) == NOW + 10 + FIRST + 10 + FIRST
    assert (after.fence, after.attempts, after.started_at, after.delay_ms) == (1, (), NOW, 0)


def test_a_crash_before_the_record_repeats_the_same_start() -> None:
    stage, seen = Stage(), list[Awaited | None]()

    def crash(job: Job) -> Result:
        seen.append(stage.stored(job).awaited)
        raise KeyboardInterrupt

    job = container_job()
    with pytest.raises(KeyboardInterrupt):
        stage.execute(stage.hand(job), pool=Containers(stage, crash))
    assert seen == [Awaited(1)]
    stage.clock.advance(60_000)
    check(stage, Containers(stage, goes_on))  # it finds the crash
    again = stage.stored(job)
    assert (again.fence, again.attempts[-1].outcome, again.awaited) == (2, Outcome.CRASHED, Awaited(1))
    check(stage, Containers(stage, goes_on), Lane.RETRY)
    assert stage.stored(job).awaited == Awaited(1, id=ARN), "with the token of the first attempt"


@pytest.mark.parametrize(
    ("failure", "stays"),
    [(Result(failure=Failure(FailureKind.THROTTLED, "no answer"), unclear=True), True), (EXITED, False)],
    ids=["unclear", "ended"],
)
def test_only_an_unclear_start_is_repeated_with_its_token(failure: Result, stays: bool) -> None:
    stage = Stage()
    job = container_job()
    stage.execute(stage.hand(job), pool=Containers(stage, ends(failure)))
    stored = stage.stored(job)
    assert (lifecycle.state(stored), stored.awaited) == (Status.SCHEDULED, Awaited(1) if stays else None)


def test_a_start_that_cannot_be_stored_does_not_happen() -> None:
    stage = Stage()
    job, pool = container_job(), Containers(stage, goes_on)
    jobs = Wrapped(stage.jobs, change=refuse)
    stage.execute(stage.hand(job), pool=pool, jobs=jobs)
    assert not pool.starts


def test_an_edit_after_a_requeue_is_not_lost() -> None:
    job = lifecycle.intend(replace(container_job(), claim=begun(Stage()).claim), Awaited(1, "{}"))
    assert lifecycle.requeue(job, reason="its executor is full").awaited is None
    crashed = lifecycle.intend(replace(job, fence=2), Awaited(1, "{}"))
    assert lifecycle.requeue(crashed, reason="its executor is full").awaited == Awaited(1, "{}")


def test_a_cancel_stops_the_work_and_the_job_runs_until_that_has_stopped() -> None:
    stage = Stage()
    job = begun(stage)
    assert lifecycle.is_open(cancel(job.key, stage))
    pool = Containers(stage, lambda job: goes_on(job, stopping="the task is being stopped"))
    check(stage, pool)
    ((seen, _),) = pool.starts
    assert callback_lease.must_stop(seen, stage.clock.now()) == Failure(FailureKind.CANCELLED, "cancelled by request")
    stopping = stage.stored(job)
    assert (lifecycle.state(stopping), stopping.reason) == (Status.RUNNING, settlement.CANCELLED)
    assert conclude(event(job, 143, stopCode="UserInitiated", stoppedReason="Punctual cancelled: cancelled by request"), stage)
    cancelled = stage.stored(job)
    assert (lifecycle.state(cancelled), cancelled.reason) == (Status.CANCELLED, settlement.CANCELLED)


@pytest.mark.parametrize("cancelled", [True, False])
def test_a_stop_that_aws_refuses_is_tried_again_at_growing_distances(cancelled: bool) -> None:
    stage = Stage()
    job = begun(stage, container_job(timeout_ms=7_200_000 if cancelled else 40_000))
    if cancelled:
        cancel(job.key, stage)
    else:
        stage.clock.sleep_until(NOW + 40_000)
    distances = []
    for _ in range(7):
        now = stage.clock.now()
        after = settlement.returned(Finished(stage.stored(job), now, now, goes_on(job)), now, stage.rules)
        distances.append(callback_lease.lease(after, now) - now)
        assert stage.jobs.change([Change(stage.stored(job), after)]) == [Written.YES]
        stage.clock.advance(distances[-1])
    assert distances == sorted(distances) and (distances[0], distances[-1] > 4 * FIRST) == (FIRST, True)


def test_at_its_time_out_the_work_is_stopped_and_the_job_is_killed() -> None:
    stage = Stage()
    job = begun(stage, container_job(timeout_ms=40_000, max_attempts=1))
    at_check(stage, job)
    check(stage, Containers(stage, goes_on))
    job = stage.stored(job)
    assert callback_lease.ends_at(job) == NOW + 40_000
    at_check(stage, job)
    pool = Containers(stage, lambda job: goes_on(job, stopping="the task is being stopped"))
    check(stage, pool)
    failure = callback_lease.must_stop(pool.starts[0][0], stage.clock.now())
    assert failure is not None and failure.kind is FailureKind.TIMEOUT
    conclude(event(job, 0, stopCode="UserInitiated", stoppedReason=f"Punctual timeout: {failure.message}"), stage)
    killed = stage.stored(job)
    assert (lifecycle.state(killed), killed.attempts[0].outcome) == (Status.KILLED, Outcome.KILLED), "although its exit code is 0"


def test_a_lost_message_of_a_check_is_sent_again() -> None:
    stage = Stage()
    job = begun(stage)
    at_check(stage, job)
    found = leftover.decide(job, job.slot or "", stage.clock.now() + 120_000, stage.rules, behind=False)
    assert isinstance(found, leftover.Move) and found.hand_over
    paused = leftover.decide(job, job.slot or "", stage.clock.now(), stage.rules, behind=False, paused=True)
    assert isinstance(paused, leftover.Move) and not paused.hand_over


# Events.


@pytest.mark.parametrize(("code", "status"), [(0, Status.SUCCEEDED), (3, Status.SCHEDULED)])
def test_an_event_ends_the_attempt_at_once(code: int, status: Status) -> None:
    stage = Stage()
    job = begun(stage)
    assert conclude(event(job, code), stage) is not None
    after = stage.stored(job)
    assert lifecycle.state(after) is status
    if code:
        assert after.attempts[0].failure == Failure(FailureKind.RETRYABLE, "the container main exited with code 3")


def test_an_event_before_the_record_of_the_start_ends_the_job_once() -> None:
    stage = Stage()
    job = container_job()

    def start(running: Job) -> Result:
        conclude(event(job), stage)
        return goes_on(running)

    stage.execute(stage.hand(job), pool=Containers(stage, start))
    done = stage.stored(job)
    assert (lifecycle.state(done), len(done.attempts)) == (Status.SUCCEEDED, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"fence": 2},
        {"task": f"{ARN}2"},
        {"status": "RUNNING"},
        {"startedBy": "ecs-svc/1"},
        {"startedBy": "punctual/x/y/z"},
    ],
    ids=["another attempt", "another task", "still running", "a service", "malformed"],
)
def test_an_event_about_something_else_changes_nothing(change: dict[str, Any]) -> None:
    stage = Stage()
    job = begun(stage)
    assert conclude(event(job, **change), stage) is None and stage.stored(job) == job


def test_an_event_that_comes_twice_or_late_changes_nothing() -> None:
    stage = Stage()
    job = begun(stage)
    conclude(event(job, 3), stage)
    retrying = stage.stored(job)
    assert conclude(event(job, 3), stage) is None and stage.stored(job) == retrying
    for other in ({"source": "aws.batch"}, {"detail": None}, {"detail-type": "ECS Container Instance State Change"}):
        assert conclude(event(job) | other, stage) is None
