import pytest

from scheduler.jobs.cancel import POLL_MS, TRIES, cancel
from scheduler.model import lifecycle
from scheduler.model.errors import Conflict, NotFound, Unavailable
from scheduler.model.job import Job, JobKey, Status
from scheduler.storage.ports import Change, Written
from tests.conftest import NOW, ScriptedPool, a_job, a_key
from tests.unit.stage import Stage, Wrapped, lost_answer, times


def ask(stage: Stage, key: JobKey) -> Job:
    return cancel(key, stage)


def test_a_job_that_has_not_started_is_cancelled_at_once() -> None:
    stage = Stage()
    job = stage.submit(NOW + 600_000)
    done = ask(stage, job.key)
    assert lifecycle.state(done) is Status.CANCELLED and done.cancelled_at == NOW and done.reason == "cancelled by request"
    assert stage.stored(job) == done and stage.jobs.due(job.slot)[0] == []


def test_the_message_of_a_cancelled_job_starts_nothing() -> None:
    stage = Stage()
    job = stage.submit()
    ask(stage, job.key)
    pool = ScriptedPool(stage.clock)
    assert stage.execute(stage.receive(), pool=pool) == [] and pool.starts == []


def test_cancel_is_idempotent() -> None:
    stage = Stage()
    job = stage.submit(NOW + 600_000)
    assert ask(stage, job.key) == ask(stage, job.key)


def test_a_running_job_is_flagged() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    job = stage.claim(item)
    stage.clock.advance(1_000)
    flagged = ask(stage, job.key)
    assert lifecycle.status(flagged, stage.clock.now()) is Status.RUNNING and flagged.cancel_requested_at == NOW + 1_000
    assert ask(stage, job.key) == flagged


def test_cancel_of_a_waiting_job_returns_when_its_executor_drops_it_a9() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 3_000))
    stage.claim(item)
    polls = []

    def get(verb: object, key: JobKey) -> Job:
        polls.append(stage.clock.now())
        job: Job = verb(key)  # type: ignore[operator]
        if len(polls) == 3:  # its executor reads it just before its instant
            dropped = lifecycle.cancel(job, stage.clock.now(), reason="cancelled by request")
            stage.jobs.change([Change(job, dropped)])
            job = verb(key)  # type: ignore[operator]
        return job

    stage.jobs = Wrapped(stage.jobs, get=get)
    assert lifecycle.state(ask(stage, item.message.key)) is Status.CANCELLED
    assert polls == [NOW, NOW + POLL_MS, NOW + 2 * POLL_MS]


def test_cancel_returns_at_latest_just_after_the_instant_a9() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(due_at=NOW + 3_000))
    stage.claim(item)
    job = ask(stage, item.message.key)
    assert lifecycle.is_open(job) and stage.clock.now() <= NOW + 3_000 + 2 * POLL_MS


def test_a_finished_job_is_a_conflict_and_an_unknown_one_is_not_found() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    stage.execute([item])
    with pytest.raises(Conflict, match="succeeded"):
        ask(stage, item.message.key)
    with pytest.raises(NotFound):
        ask(stage, a_key())


def test_job_claimed_meanwhile_is_flagged() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())

    def change(verb: object, changes: object) -> object:
        stage.claim(item)
        return verb(changes)  # type: ignore[operator]

    stage.jobs = Wrapped(stage.jobs, change=times(1, change))
    assert ask(stage, item.message.key).cancel_requested_at == NOW


def test_repeated_cancel_finds_the_first_whose_answer_was_lost() -> None:
    stage = Stage()
    job = stage.submit(NOW + 600_000)
    stage.jobs = Wrapped(stage.jobs, change=times(1, lost_answer))
    with pytest.raises(Unavailable):
        ask(stage, job.key)
    assert lifecycle.state(ask(stage, job.key)) is Status.CANCELLED


@pytest.mark.parametrize(("answer", "calls"), [(Written.REFUSED, 1), (Written.NO, TRIES)])
def test_cancel_gives_up_on_a_refusing_table_or_a_changing_job(answer: Written, calls: int) -> None:
    stage = Stage()
    job = stage.submit(NOW + 600_000)
    asked = []
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: (asked.append(1), [answer])[1])
    with pytest.raises(Unavailable):
        ask(stage, job.key)
    assert len(asked) == calls
