"""Retrying one job on request after it failed or was killed."""

from dataclasses import replace

import pytest

from scheduler.dead_letters import model
from scheduler.jobs import by_key
from scheduler.jobs.retry_job import retry_job
from scheduler.model import lifecycle
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Claim, Failure, FailureKind, Job, JobKey, Lane, Message, Misfire, Overlap, OwnKey, Result, RunInfo, Status
from scheduler.model.spec import JobSpec
from scheduler.pipeline.submit import NewJob
from scheduler.storage.ports import Change, Written
from scheduler.tasks import service as verbs
from tests.conftest import NOW, ScriptedPool, a_job, a_key
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times
from tests.unit.task_stage import TaskStage

NO = Result(failure=Failure(FailureKind.PERMANENT, "HTTP 404"))


def retry(stage: Stage, key: JobKey) -> Job:
    stage.requests += 1
    return retry_job(key, stage, request=f"r{stage.requests}")


def die(stage: Stage, **fields: object) -> Job:
    """A job that has run and failed."""
    stage.execute(stage.hand(a_job(**fields)), pool=ScriptedPool(stage.clock, result=NO))
    job: Job = next(job for job in stage.jobs.rows.values() if job.failed_at is not None)
    return job


def test_a_failed_job_runs_again_at_once_from_the_retry_lane() -> None:
    stage = Stage()
    dead = die(stage)
    stage.clock.advance(60_000)
    now = stage.clock.now()
    again = retry(stage, dead.key)
    assert again == stage.stored(dead) and (again.fence, again.lane, again.due_at) == (2, Lane.RETRY, now)
    assert stage.waiting(Lane.RETRY) == [dead.id]
    stage.clock.advance(1_000)
    stage.execute(stage.receive(Lane.RETRY), lane=Lane.RETRY)
    done = stage.stored(dead)
    assert lifecycle.state(done) is Status.SUCCEEDED
    assert [attempt.fence for attempt in done.attempts] == [1, 2] and done.redrives == 1


def test_retried_job_has_all_its_attempts_again() -> None:
    stage = Stage()
    dead = die(stage, max_attempts=2, charged=1)
    assert dead.charged == 2
    retry(stage, dead.key)
    later = ScriptedPool(stage.clock, result=Result(failure=Failure(FailureKind.RETRYABLE, "HTTP 503")))
    stage.clock.advance(1_000)
    stage.execute(stage.receive(Lane.RETRY), lane=Lane.RETRY, pool=later)
    assert lifecycle.is_open(stage.stored(dead)) and stage.stored(dead).charged == 1


def test_neither_expiry_nor_a_misfire_rule_ends_the_retry() -> None:
    stage = Stage()
    dead = die(stage, start_by=NOW + 1_000)
    stage.clock.advance(3_600_000)
    retry(stage, dead.key)
    stage.clock.advance(1_000)
    stage.execute(stage.receive(Lane.RETRY), lane=Lane.RETRY)
    assert lifecycle.state(stage.stored(dead)) is Status.SUCCEEDED


def test_message_of_an_earlier_life_starts_nothing() -> None:
    stage = Stage()
    dead = die(stage)
    retry(stage, dead.key)
    stage.lanes.add(Message.of(replace(dead, due_at=NOW), NOW), stage.clock.now())
    pool = ScriptedPool(stage.clock)
    assert stage.execute(stage.receive(), pool=pool) == [] and pool.starts == []


def test_refused_enqueue_leaves_the_safety_slot() -> None:
    stage = Stage()
    dead = die(stage)
    stage.lanes = Wrapped(stage.lanes, send=refuse)
    again = retry(stage, dead.key)
    assert [entry.key for entry in stage.jobs.due(again.slot or "")[0]] == [dead.key]


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (a_job(), "the job has not ended: it is queued"),
        (a_job(due_at=NOW + 5), "the job has not ended: it is scheduled"),
        (a_job(claim=Claim("m", "n", NOW, True)), "the job has not ended: it is running"),
        (a_job(slot=None, completed_at=NOW), "the status of this job is succeeded"),
        (a_job(slot=None, cancelled_at=NOW), "the status of this job is cancelled"),
        (a_job(slot=None, skipped_at=NOW), "the status of this job is skipped"),
    ],
    ids=["queued", "scheduled", "running", "succeeded", "cancelled", "skipped"],
)
def test_retry_of_a_job_that_is_not_dead_is_refused(job: Job, why: str) -> None:
    stage = Stage()
    stage.jobs.put(job)
    with pytest.raises(Conflict, match=why):
        retry(stage, job.key)
    assert stage.stored(job) == job


def test_a_killed_job_is_retried_too_and_a_second_retry_is_refused() -> None:
    stage = Stage()
    running = a_job(claim=Claim("m", "n", NOW, True))
    killed = lifecycle.kill(running, NOW + 5, started_at=NOW, result=Result(failure=Failure(FailureKind.TIMEOUT, "over")))
    stage.jobs.put(killed)
    retry(stage, killed.key)
    with pytest.raises(Conflict, match="the job has not ended"):
        retry(stage, killed.key)


def test_a_retry_beside_an_open_job_of_the_same_key_is_refused_with_its_id() -> None:
    stage = Stage()
    own = OwnKey("ann", "order:17")
    first = by_key.put(NewJob("ann", JobSpec("log", {}, key=own.key)), stage, random=1).job
    dead = replace(first, slot=None, failed_at=NOW + 5)
    stage.jobs._store(first, dead)
    stage.clock.advance(1_000)
    second = by_key.put(NewJob("ann", JobSpec("log", {}, key=own.key)), stage, random=2).job
    with pytest.raises(Conflict, match=f"key: 'order:17' belongs to the job {second.id}, which has not ended"):
        retry(stage, dead.key)
    assert stage.stored(dead) == dead
    stage.jobs._store(second, replace(second, slot=None, completed_at=NOW + 1_500))
    assert retry(stage, dead.key).redrives == 1
    assert by_key.find_by_key(own, stage).id == first.id, "it has its key again"


def test_missing_job_is_not_found() -> None:
    with pytest.raises(NotFound):
        retry(Stage(), a_key())


def test_second_simultaneous_retry_is_a_conflict() -> None:
    stage = Stage()
    dead = die(stage)
    first = stage.jobs

    def overtaken(verb: object, changes: object) -> list[Written]:
        stage.jobs = first
        stage.clock.advance(1)
        retry(stage, dead.key)
        return first.change(changes)  # type: ignore[no-any-return]

    stage.jobs = Wrapped(first, change=overtaken)
    with pytest.raises(Conflict, match="already"):
        retry(stage, dead.key)
    assert stage.stored(dead).redrives == 1


def test_of_two_retries_at_the_same_instant_one_is_a_conflict() -> None:
    stage = Stage()
    dead = die(stage)
    first, answers = stage.jobs, list[Job]()

    def overtaken(verb: object, changes: object) -> list[Written]:
        stage.jobs = first
        answers.append(retry(stage, dead.key))  # the other request has read the failed job, too
        return first.change(changes)  # type: ignore[no-any-return]

    stage.jobs = Wrapped(first, change=overtaken)
    with pytest.raises(Conflict, match="another request has already retried the job"):
        retry(stage, dead.key)
    assert stage.stored(dead) == answers[0] and answers[0].redrives == 1


def test_a_retry_and_a_bulk_redrive_at_one_instant_redrive_once() -> None:
    stage = Stage()
    dead = die(stage)
    first = stage.jobs

    def overtaken(verb: object, changes: object) -> list[Written]:
        stage.jobs = first
        assert first.change([Change(dead, model.again(dead, stage.clock.now(), stage.rules.shards))]) == [Written.YES]
        return first.change(changes)  # type: ignore[no-any-return]

    stage.jobs = Wrapped(first, change=overtaken)
    with pytest.raises(Conflict, match="another request"):
        retry(stage, dead.key)
    assert stage.stored(dead).redrives == 1


def test_retry_whose_own_answer_was_lost_recognizes_its_write() -> None:
    stage = Stage()
    dead = die(stage)
    first = stage.jobs

    def repeated(verb: object, changes: object) -> list[Written]:
        first.change(changes)  # the SDK got no answer and sends the write again
        return first.change(changes)  # type: ignore[no-any-return]

    stage.jobs = Wrapped(first, change=repeated)
    assert retry(stage, dead.key).redrives == 1


def test_a_refusal_of_the_table_is_unavailable() -> None:
    stage = Stage()
    dead = die(stage)
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: [Written.REFUSED])
    with pytest.raises(Unavailable):
        retry(stage, dead.key)
    stage.jobs = Wrapped(stage.jobs._port, change=times(1, lost_answer))
    with pytest.raises(Unavailable):
        retry(stage, dead.key)
    with pytest.raises(Conflict, match="the job has not ended"):  # it was done
        retry(stage, dead.key)


def dead_run(stage: TaskStage, **fields: object) -> Job:
    task = stage.create({"rate": "5 minutes"}, overlap=Overlap.SKIP)
    run = stage.runs(task)[0]
    dead = replace(run, slot=None, failed_at=run.due_at, delay_ms=0, **fields)
    stage.jobs._store(run, dead)
    return dead


def test_a_run_of_a_task_is_retried() -> None:
    stage = TaskStage()
    dead = dead_run(stage)
    assert dead.origin is not None and dead.origin.misfire is Misfire.RUN_LATEST
    assert retry(stage, dead.key).start_by is None


def test_a_run_whose_task_is_paused_or_deleted_is_refused_with_the_reason() -> None:
    stage = TaskStage()
    dead = dead_run(stage)
    assert isinstance(dead.origin, RunInfo)
    (task,) = stage.tasks.rows
    verbs.deactivate(task, "holidays", stage)
    with pytest.raises(Conflict, match="its task was made inactive: holidays"):
        retry(stage, dead.key)
    verbs.delete(task, stage)
    with pytest.raises(Conflict, match="its task was deleted"):
        retry(stage, dead.key)
    assert stage.stored(dead) == dead
