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


def test_twice_is_as_good_as_once() -> None:
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


def test_the_flag_of_a_held_job_is_answered_when_its_executor_drops_it_a9() -> None:
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


def test_the_answer_waits_no_longer_than_to_just_after_the_instant_a9() -> None:
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


def test_a_job_claimed_in_between_is_flagged_instead() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())

    def change(verb: object, changes: object) -> object:
        stage.claim(item)
        return verb(changes)  # type: ignore[operator]

    stage.jobs = Wrapped(stage.jobs, change=times(1, change))
    assert ask(stage, item.message.key).cancel_requested_at == NOW


def test_a_cancel_whose_answer_was_lost_is_there_when_asked_again() -> None:
    stage = Stage()
    job = stage.submit(NOW + 600_000)
    stage.jobs = Wrapped(stage.jobs, change=times(1, lost_answer))
    with pytest.raises(Unavailable):
        ask(stage, job.key)
    assert lifecycle.state(ask(stage, job.key)) is Status.CANCELLED


@pytest.mark.parametrize(("answer", "calls"), [(Written.REFUSED, 1), (Written.NO, TRIES)])
def test_it_gives_up_when_the_table_refuses_or_the_job_keeps_changing(answer: Written, calls: int) -> None:
    stage = Stage()
    job = stage.submit(NOW + 600_000)
    asked = []
    stage.jobs = Wrapped(stage.jobs, change=lambda verb, changes: (asked.append(1), [answer])[1])
    with pytest.raises(Unavailable):
        ask(stage, job.key)
    assert len(asked) == calls
