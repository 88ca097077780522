"""The decision about a message after the claim of its job."""

import pytest

from scheduler.model.job import Claim, Delivery, Job
from scheduler.pipeline import delivery
from scheduler.pipeline.delivery import Drop, PutBack, Run, TakeBack
from scheduler.storage.ports import ClaimResult
from tests.conftest import NOW, a_delivery, a_job, a_message

JOB = a_job()
ITEM = a_delivery(JOB, message_id="m1")


def running(message_id: str = "m1", nonce: str = "other", at: int = NOW) -> Job:
    return a_job(id=JOB.id, claim=Claim(message_id, nonce, at, False))


def decide(answer: ClaimResult | None, now: int = NOW, *, item: Delivery = ITEM) -> object:
    return delivery.decide(item, answer, "mine", now, hold_ms=5_000)


def test_a_claimed_job_is_run() -> None:
    assert decide(ClaimResult(True, JOB)) == Run(JOB)


def test_a_job_claimed_without_an_answer_is_run_a1c() -> None:
    mine = running(nonce="mine")
    assert decide(ClaimResult(False, mine)) == Run(mine)


def test_a_refused_claim_defers_the_message_longer_each_time() -> None:
    found = [decide(None, item=ITEM._replace(receive_count=count)) for count in (1, 2, 3, 4, 5, 6, 7, 8, 9, 40)]
    assert found == [PutBack(seconds) for seconds in (5, 15, 30, 60, 120, 300, 1_800, 3_600, 3_600, 3_600)]


@pytest.mark.parametrize("after", [0, 5_000, 29_999])
def test_the_same_message_within_a_lease_of_the_claim_is_deferred_a1b(after: int) -> None:
    assert decide(ClaimResult(False, running()), NOW + after) == PutBack(delivery.PUT_BACK_S, claimed=True)


def test_a_copy_seen_by_a_slower_clock_is_deferred_a1a() -> None:
    """The claim is in the future by this machine's clock."""
    assert decide(ClaimResult(False, running(at=NOW + 150)), NOW) == PutBack(delivery.PUT_BACK_S, claimed=True)


def test_the_same_message_a_lease_later_takes_the_job_back_a1a() -> None:
    assert decide(ClaimResult(False, running()), NOW + delivery.LEASE_MS) == TakeBack(running())


def test_the_same_message_with_another_nonce_is_another_claim_a1() -> None:
    """Of two copies of a message in one batch, only one has claimed the job."""
    assert not isinstance(decide(ClaimResult(False, running(nonce="m1/r1/1"))), Run)


def test_another_message_of_a_running_job_is_a_duplicate() -> None:
    assert decide(ClaimResult(False, running("m2")), NOW + 900_000) == Drop()


@pytest.mark.parametrize(
    "job", [None, a_job(slot=None, completed_at=NOW), a_job(fence=2), a_job(fence=2, claim=Claim("m1", "mine", NOW, False))]
)
def test_an_outdated_message_is_dropped_a7(job: Job | None) -> None:
    assert decide(ClaimResult(False, job), NOW + 900_000) == Drop()


@pytest.mark.parametrize(("ahead", "seconds"), [(5_001, 1), (6_000, 1), (6_001, 2), (30_000, 25), (3_600_000, 60), (5_000, 1), (-9_000, 1)])
def test_an_early_message_is_deferred_for_a_minute_at_most_b1(ahead: int, seconds: int) -> None:
    """A deferred message counts as in flight, which the lane limits; a job that waits long belongs into a slot."""
    job = a_job(due_at=NOW + ahead)
    assert decide(ClaimResult(False, job), item=a_delivery(message=a_message(job))) == PutBack(seconds)


def test_the_lease_outlives_two_missed_renewals_and_the_stop() -> None:
    assert 2 * delivery.RENEW_MS <= delivery.LOST_MS < delivery.LEASE_MS
