"""Parts that only the memory ports have: the queues' side of the event source mapping."""

from scheduler.model.job import Lane
from scheduler.storage.memory.stores import MAX_RECEIVES, MemoryJobs, MemoryLanes
from scheduler.storage.ports import Change, Guard, Written
from tests.conftest import NOW, a_job, a_message

ONE = Lane.ONE_TIME


def test_a_received_message_is_hidden_for_the_visibility_of_its_queue() -> None:
    lanes = MemoryLanes(visibility_ms=30_000)
    lanes.add(a_message(), NOW)
    (first,) = lanes.receive(ONE, 10, NOW)
    assert lanes.receive(ONE, 10, NOW + 29_999) == []
    (again,) = lanes.receive(ONE, 10, NOW + 30_000)
    assert (again.message_id, again.receive_count) == (first.message_id, 2) and again.receipt != first.receipt


def test_a_stale_receipt_deletes_and_extends_nothing() -> None:
    lanes = MemoryLanes(visibility_ms=1_000)
    lanes.add(a_message(), NOW)
    (stale,) = lanes.receive(ONE, 10, NOW)
    (fresh,) = lanes.receive(ONE, 10, NOW + 1_000)
    lanes.delete(ONE, stale.receipt)
    assert lanes.extend(ONE, [stale.receipt, fresh.receipt], 30) == {fresh.receipt}
    assert len(lanes.queues[ONE]) == 1
    lanes.delete(ONE, fresh.receipt)
    assert not lanes.queues[ONE] and lanes.extend(ONE, [fresh.receipt], 30) == set()


def test_a_message_received_too_often_goes_to_the_dead_letter_queue_a8() -> None:
    """Holds, throttles and duplicates count as well: ten at least."""
    lanes = MemoryLanes(visibility_ms=1)
    lanes.add(a_message(), NOW)
    counts = [item.receive_count for at in range(20) for item in lanes.receive(ONE, 10, NOW + at)]
    assert counts == list(range(1, MAX_RECEIVES + 1)) and MAX_RECEIVES >= 10
    assert len(lanes.dead[ONE]) == 1 and not lanes.queues[ONE]


def test_the_longest_visible_message_is_first_within_its_lane() -> None:
    lanes = MemoryLanes()
    late, early, retry = a_message(), a_message(), a_message(a_job(lane=Lane.RETRY))
    for message, at in ((late, NOW + 5), (early, NOW), (retry, NOW)):
        lanes.add(message, at)
    assert [item.message for item in lanes.receive(ONE, 10, NOW + 5)] == [early, late]
    assert [item.message for item in lanes.receive(Lane.RETRY, 10, NOW + 5)] == [retry]


def test_a_job_put_twice_is_listed_once_a2() -> None:
    jobs = MemoryJobs()
    job = a_job()
    assert jobs.put(job) and not jobs.put(job)
    page = jobs.history("ann", since=None, until=None, after=None, limit=10, newest_first=True)
    assert page.jobs == [job]


def test_a_change_that_fails_leaves_the_index_alone() -> None:
    jobs = MemoryJobs()
    job = a_job(slot="2026-11-20T10:00#00")
    jobs.put(job)
    before, after = (a_job(id=job.id, fence=2, slot=f"2026-11-20T{hour}:00#00") for hour in (10, 11))
    assert jobs.change([Change(before, after, Guard.SLOT)]) == [Written.NO]
    assert [entry.key for entry in jobs.due("2026-11-20T10:00#00")[0]] == [job.key]
    assert jobs.due("2026-11-20T11:00#00")[0] == []
