import pytest

from scheduler import ids, slots
from scheduler.errors import Unavailable
from scheduler.model import Lane
from tests.conftest import NOW
from tests.unit.stage import Stage, Wrapped, lost_answer, refuse


def test_a_job_without_an_instant_is_due_now_and_handed_over() -> None:
    stage = Stage()
    job = stage.submit()
    assert (job.scheduled_at, job.due_at, job.created_at) == (NOW, NOW, NOW)
    assert stage.stored(job) == job and stage.waiting(Lane.ONE_TIME) == [job.id]


def test_its_id_carries_its_scheduled_time() -> None:
    assert ids.time(Stage().submit(NOW + 86_400_000).id) == NOW + 86_400_000


def test_a_job_posted_for_the_past_is_due_now_and_keeps_the_time_its_owner_asked_for() -> None:
    job = Stage().submit(NOW - 5_000)
    assert (job.scheduled_at, job.due_at, ids.time(job.id)) == (NOW - 5_000, NOW, NOW - 5_000)


@pytest.mark.parametrize("ahead", [0, 1_000, 60_000, 239_999])
def test_a_job_due_before_the_first_safe_minute_is_handed_over_and_has_a_slot_as_its_net_a4(ahead: int) -> None:
    stage = Stage()
    job = stage.submit(NOW + ahead)
    assert stage.waiting(Lane.ONE_TIME) == [job.id]
    assert slots.minute(job.slot or "") == slots.first_safe_minute(NOW)
    assert [entry.key for entry in stage.jobs.due(job.slot)[0]] == [job.key]


def test_a_job_due_later_waits_in_the_slot_of_its_minute_only() -> None:
    stage = Stage()
    job = stage.submit(NOW + 600_000)
    assert stage.waiting(Lane.ONE_TIME) == [] and slots.minute(job.slot or "") == slots.minute_of(NOW + 600_000)


def test_a_direct_message_is_delayed_in_the_queue_not_put_back_b1() -> None:
    stage = Stage()
    job = stage.submit(NOW + 60_000)
    assert stage.receive() == []
    stage.clock.at = job.due_at - slots.DIRECT_LEAD
    assert [item.message.key for item in stage.receive()] == [job.key]
    assert job.due_at - stage.rules.hold_ms <= stage.clock.now() < job.due_at


@pytest.mark.parametrize("send", [refuse, lost_answer, lambda verb, messages, now: list(messages)])
def test_a_job_is_accepted_once_its_put_holds_even_if_the_hand_over_fails(send: object) -> None:
    stage = Stage()
    stage.lanes = Wrapped(stage.lanes, send=send)
    assert stage.stored(stage.submit()).slot is not None


@pytest.mark.parametrize("put", [refuse, lost_answer])
def test_a_refused_put_is_refused_to_the_caller_and_nothing_is_handed_over(put: object) -> None:
    stage = Stage()
    stage.jobs = Wrapped(stage.jobs, put=put)
    with pytest.raises(Unavailable):
        stage.submit()
    assert stage.waiting(Lane.ONE_TIME) == []


def slow_put(stage: Stage, ms: int) -> None:
    def put(verb: object, job: object) -> object:
        stage.clock.advance(ms)
        return verb(job)  # type: ignore[operator]

    stage.jobs = Wrapped(stage.jobs, put=put)


def test_a_writer_whose_put_was_slow_looks_at_the_clock_again() -> None:
    """Its slot's minute may have begun to be dispatched while it wrote: the job moves on and is handed over."""
    stage = Stage()
    slow_put(stage, 100_000)
    job = stage.submit(NOW + 250_000)
    assert stage.stored(job) == job
    assert slots.start_of(slots.minute(job.slot or "")) >= stage.clock.now() + slots.HORIZON
    assert stage.waiting(Lane.ONE_TIME) == [job.id]


def test_a_slow_put_into_a_minute_far_away_changes_nothing() -> None:
    stage = Stage()
    slow_put(stage, 100_000)
    job = stage.submit(NOW + 3_600_000)
    assert slots.minute(job.slot or "") == slots.minute_of(job.due_at) and stage.waiting(Lane.ONE_TIME) == []


def test_a_slow_writer_that_may_not_move_its_job_still_hands_it_over() -> None:
    stage = Stage()
    slow_put(stage, 100_000)
    stage.jobs = Wrapped(stage.jobs, change=refuse)
    job = stage.submit(NOW + 250_000)
    assert stage.stored(job) == job and stage.waiting(Lane.ONE_TIME) == [job.id]


def test_the_same_put_again_overwrites_nothing_a2() -> None:
    stage = Stage()
    job = stage.submit()
    (item,) = stage.receive()
    stage.execute([item])
    done = stage.stored(job)
    stage.requests = 0  # the very same id again
    stage.submit()
    assert stage.stored(job) == done
