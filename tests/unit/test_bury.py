import pytest

from scheduler.model import lifecycle
from scheduler.model.errors import Unavailable
from scheduler.model.job import Status
from scheduler.pipeline.bury import bury
from scheduler.storage.ports import Written
from tests.conftest import a_delivery, a_job
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse, times


def test_only_a_job_running_under_the_message_fails_a8() -> None:
    stage = Stage()
    mine, others, waiting = stage.hand(a_job(), a_job(), a_job())
    stage.claim(mine)
    stage.claim(a_delivery(stage.stored(others.message.key), message_id="another"))
    done = bury([mine, others, waiting], stage)
    assert (done.failed, done.dropped, done.kept, done.returned) == (1, 1, 1, [])
    assert lifecycle.state(stage.stored(mine.message.key)) is Status.FAILED
    assert lifecycle.state(stage.stored(others.message.key)) is Status.RUNNING
    assert lifecycle.state(stage.stored(waiting.message.key)) is Status.SCHEDULED


def test_a_scheduled_job_fails_at_its_third_burial_a8() -> None:
    stage = Stage()
    (item,) = stage.hand(a_job())
    for _ in range(2):
        assert bury([item], stage).kept == 1
        assert len(stage.jobs.due(stage.stored(item.message.key).slot)[0]) == 1
    assert bury([item], stage).failed == 1
    assert "3 times" in (stage.stored(item.message.key).reason or "")


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
    assert done.returned == [items[0].message_id] and done.kept == 1


def test_a_refused_read_returns_the_whole_batch() -> None:
    stage = Stage()
    items = stage.hand(a_job(), a_job())
    stage.jobs = Wrapped(stage.jobs, get_many=refuse)
    with pytest.raises(Unavailable):
        bury(items, stage)
