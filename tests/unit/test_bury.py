import pytest

from scheduler.model import lifecycle, settlement
from scheduler.model.errors import Unavailable
from scheduler.model.job import Lane, Status
from scheduler.pipeline.bury import bury
from scheduler.pipeline.delivery import LEASE_MS
from scheduler.storage.ports import Change, Written
from tests.conftest import NOW, a_delivery, a_job
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times


def test_only_a_job_running_under_the_message_is_taken_back_a8() -> None:
    stage = Stage()
    mine, others, waiting = stage.hand(a_job(), a_job(), a_job())
    stage.claim(mine, alone=True)
    stage.claim(a_delivery(stage.stored(others.message.key), message_id="another"))
    stage.clock.advance(LEASE_MS)
    done = bury([mine, others, waiting], stage)
    assert (done.failed, done.taken_back, done.dropped, done.unchanged, done.returned) == (0, 1, 1, 1, [])
    assert done.buried == 2
    assert lifecycle.state(stage.stored(others.message.key)) is Status.RUNNING
    assert lifecycle.state(stage.stored(waiting.message.key)) is Status.SCHEDULED


def test_a_job_taken_back_from_a_dead_letter_runs_again_uncharged() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(max_attempts=1))
    stage.claim(item, alone=True)
    stage.clock.advance(3_600_000)
    bury([item], stage)
    job = stage.stored(item.message.key)
    assert (lifecycle.state(job), job.fence, job.lane, job.charged) == (Status.SCHEDULED, 2, Lane.RETRY, 0)
    assert job.attempts[-1].failure == settlement.BURIED
    stage.execute(stage.receive(Lane.RETRY), lane=Lane.RETRY)
    assert lifecycle.state(stage.stored(job)) is Status.SUCCEEDED


def test_a_job_that_crashed_too_often_fails_at_its_burial() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job(crashes=1, charged=1))
    job = stage.claim(item, alone=True)
    assert stage.jobs.change([Change(job, lifecycle.start(job, NOW))]) == [Written.YES]
    stage.clock.advance(LEASE_MS)
    assert bury([item], stage).failed == 1
    assert lifecycle.state(stage.stored(job)) is Status.FAILED


def test_a_dead_letter_waits_while_an_executor_may_have_its_lease() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    job = stage.claim(item)
    stage.clock.advance(LEASE_MS - 1)
    assert bury([item], stage).returned == [item.message_id]
    assert stage.stored(job) == job


def test_a_scheduled_job_never_fails_by_burials_a8() -> None:
    """Its messages reach the dead-letter queue while the table refuses all claims."""
    stage = Stage()
    (item,) = stage.hand(a_job())
    for number in range(1, 9):
        assert bury([item], stage).unchanged == 1
        assert len(stage.jobs.due(stage.stored(item.message.key).slot)[0]) == 1
        assert stage.stored(item.message.key).buried == number
    stage.execute([item])
    assert lifecycle.state(stage.stored(item.message.key)) is Status.SUCCEEDED


def test_messages_of_unknown_and_finished_jobs_are_dropped() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    stage.execute([item])
    assert bury([item, a_delivery()], stage).dropped == 2


def test_one_message_twice_in_a_batch_counts_once() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    bury([item, item], stage)
    assert stage.stored(item.message.key).buried == 1


@pytest.mark.parametrize("change", [refuse, lost_answer, lambda verb, changes: [Written.REFUSED]])
def test_a_refusal_returns_that_message_only(change: object) -> None:
    stage = Stage()
    items = stage.hand(a_job(), a_job())
    stage.jobs = Wrapped(stage.jobs, change=times(1, change))  # type: ignore[arg-type]
    done = bury(items, stage)
    assert done.returned == [items[0].message_id] and done.unchanged == 1


def test_a_refused_read_returns_the_whole_batch() -> None:
    stage = Stage()
    items = stage.hand(a_job(), a_job())
    stage.jobs = Wrapped(stage.jobs, get_many=refuse)
    with pytest.raises(Unavailable):
        bury(items, stage)


def test_an_unreadable_job_keeps_its_slot_and_the_others_are_settled() -> None:
    stage = Stage()
    broken, mine = stage.hand(a_job(), a_job())
    stage.claim(mine)
    stage.jobs.unreadable[broken.message.key] = "its format is 2"
    stage.clock.advance(LEASE_MS)
    done = bury([broken, mine], stage)
    assert (done.failed, done.taken_back, done.unchanged, done.dropped, done.returned) == (0, 1, 1, 0, [])
    assert stage.jobs.rows[broken.message.key].buried == 0
