from hypothesis import given
from hypothesis import strategies as st

from scheduler import retry
from scheduler.model import Failure
from scheduler.retry import Again, GiveUp
from tests.conftest import NOW, a_job

RETRYABLE = Failure("retryable", "503")


@given(st.integers(min_value=1, max_value=10_000), st.text())
def test_a_pause_is_within_its_bounds(attempt: int, seed: str) -> None:
    assert 0 <= retry.backoff(attempt, seed) < min(retry.CAP_MS, retry.BASE_MS * 2 ** (attempt - 1)) or retry.backoff(attempt, seed) == 0


def test_pauses_use_the_whole_range_and_double() -> None:
    for attempt, ceiling in ((1, 1_000), (2, 2_000), (5, 16_000), (40, retry.CAP_MS)):
        drawn = [retry.backoff(attempt, f"job{number}") for number in range(500)]
        assert min(drawn) < ceiling * 0.02 and max(drawn) > ceiling * 0.98
        assert 0.45 < sum(drawn) / len(drawn) / ceiling < 0.55


def test_the_same_attempt_waits_equally_long_wherever_it_is_decided() -> None:
    job = a_job()
    assert retry.decide(job, RETRYABLE, NOW) == retry.decide(job, RETRYABLE, NOW)


def test_a_failed_attempt_is_followed_by_another() -> None:
    decision = retry.decide(a_job(max_attempts=3), RETRYABLE, NOW)
    assert isinstance(decision, Again) and NOW <= decision.at < NOW + 1_000


def test_the_last_attempt_is_the_last() -> None:
    assert isinstance(retry.decide(a_job(max_attempts=3, charged=1), RETRYABLE, NOW), Again)
    assert retry.decide(a_job(max_attempts=3, charged=2), RETRYABLE, NOW) == GiveUp("no attempt is left of 3")
    assert isinstance(retry.decide(a_job(max_attempts=1), RETRYABLE, NOW), GiveUp)


def test_a_permanent_error_is_not_tried_again() -> None:
    assert retry.decide(a_job(max_attempts=9), Failure("permanent", "404"), NOW) == GiveUp("the error is permanent")


def test_a_hand_back_that_was_not_charged_costs_no_attempt() -> None:
    assert isinstance(retry.decide(a_job(max_attempts=2, fence=7, charged=0), RETRYABLE, NOW), Again)
