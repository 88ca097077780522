from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model import lifecycle, retry, settlement
from scheduler.model.job import Claim, Failure, FailureKind, Finished, Job, Misfire, Result, RunInfo
from scheduler.model.retry import Again, GiveUp
from scheduler.model.rules import Rules
from scheduler.model.spec import Jitter, RetryPolicy
from tests.conftest import NOW, a_job

RETRYABLE = Failure(FailureKind.RETRYABLE, "503")
THROTTLED = Failure(FailureKind.THROTTLED, "429")
DAY = 86_400_000

waits = st.integers(1, 3_600_000)
policies = st.builds(RetryPolicy, waits, waits, st.sampled_from(Jitter), st.none() | st.integers(1, 30 * DAY), st.booleans())
kinds = st.sampled_from([kind for kind in FailureKind if kind not in (FailureKind.CANCELLED, FailureKind.BURIED)])
failures = st.builds(Failure, kinds, st.just("no"), st.none() | st.integers(1, 100 * DAY))


def running(*, alone: bool = True, at: int = NOW, **fields: Any) -> Job:
    return a_job(claim=Claim("m1", "n1", at, alone), **fields)


def ceiling(policy: RetryPolicy, number: int) -> int:
    return min(policy.cap_ms, policy.base_ms * int(2 ** (number - 1)))


# The wait


@given(policies, st.integers(1, 1_000), st.text())
def test_a_wait_is_within_the_bounds_of_its_jitter(policy: RetryPolicy, number: int, seed: str) -> None:
    most = ceiling(policy, number)
    least = {Jitter.FULL: 0, Jitter.EQUAL: most // 2, Jitter.NONE: most}[policy.jitter]
    wait = retry.backoff(policy, number, seed)
    assert least <= wait <= most
    if policy.jitter is not Jitter.NONE:
        assert wait < most


@given(policies, st.integers(1, 60), st.text())
def test_more_attempts_or_a_higher_cap_never_shorten_the_wait(policy: RetryPolicy, number: int, seed: str) -> None:
    wait = retry.backoff(policy, number, seed)
    assert wait <= retry.backoff(policy, number + 1, seed)
    assert wait <= retry.backoff(replace(policy, cap_ms=policy.cap_ms * 2), number, seed)
    assert wait <= retry.backoff(replace(policy, base_ms=policy.base_ms * 2), number, seed)


@pytest.mark.parametrize(("jitter", "least"), [(Jitter.FULL, 0.0), (Jitter.EQUAL, 0.5)])
def test_waits_use_the_whole_range_and_double_up_to_the_cap(jitter: Jitter, least: float) -> None:
    policy = RetryPolicy(jitter=jitter)
    for number, most in ((1, 1_000), (2, 2_000), (5, 16_000), (40, 900_000)):
        drawn = [retry.backoff(policy, number, f"job{seed}") / most for seed in range(500)]
        assert min(drawn) < least + 0.02 and max(drawn) > 0.98
        assert abs(sum(drawn) / len(drawn) - (1 + least) / 2) < 0.05


def test_the_same_attempt_waits_equally_long_wherever_it_is_decided() -> None:
    job = running()
    assert retry.decide(job, RETRYABLE, NOW) == retry.decide(job, RETRYABLE, NOW)


def test_the_policy_of_the_job_determines_the_wait() -> None:
    policy = RetryPolicy(base_ms=400, cap_ms=1_500, jitter=Jitter.NONE)
    found = [retry.decide(running(max_attempts=9, charged=charged, retry=policy), RETRYABLE, NOW) for charged in range(4)]
    assert found == [Again(NOW + wait) for wait in (400, 800, 1_500, 1_500)]


@pytest.mark.parametrize("failure", [RETRYABLE, THROTTLED])
def test_a_wait_requested_by_the_target_replaces_the_formula_up_to_an_hour(failure: Failure) -> None:
    for asked, waited in ((1, 1), (7_000, 7_000), (3_600_000, 3_600_000), (3_600_001, 3_600_000), (10**12, 3_600_000)):
        decision = retry.decide(running(retry=RetryPolicy(base_ms=60_000, cap_ms=60_000)), replace(failure, retry_after_ms=asked), NOW)
        assert decision == Again(NOW + waited)


def test_a_throttling_target_is_called_less_and_less_often() -> None:
    policy = RetryPolicy(jitter=Jitter.NONE)
    found = [retry.decide(running(throttled=number, charged=1, retry=policy), THROTTLED, NOW) for number in (0, 1, 5, 60)]
    assert found == [Again(NOW + wait) for wait in (2_000, 4_000, 64_000, 900_000)]


def test_throttled_waits_grow_to_half_a_minute_whatever_the_policy() -> None:
    policy = RetryPolicy(base_ms=100, cap_ms=100)
    found = []
    for number in range(9):
        decision = retry.decide(running(throttled=number, retry=policy), THROTTLED, NOW)
        assert isinstance(decision, Again)
        found.append(decision.at - NOW)
    assert all(least <= wait < 2 * least for wait, least in zip(found, (500, 1_000, 2_000, 4_000, 8_000, *[15_000] * 4), strict=True))
    assert retry.decide(running(throttled=9, retry=policy), replace(THROTTLED, retry_after_ms=200), NOW) == Again(NOW + 200)


# Whether another attempt follows


def test_a_failed_attempt_is_followed_by_another() -> None:
    decision = retry.decide(running(max_attempts=3), RETRYABLE, NOW)
    assert isinstance(decision, Again) and NOW <= decision.at < NOW + 1_000


def test_no_attempt_follows_the_last_one() -> None:
    assert isinstance(retry.decide(running(max_attempts=3, charged=1), RETRYABLE, NOW), Again)
    assert retry.decide(running(max_attempts=3, charged=2), RETRYABLE, NOW) == GiveUp("no attempt is left of 3")
    assert isinstance(retry.decide(running(max_attempts=1), RETRYABLE, NOW), GiveUp)


def test_a_permanent_error_is_not_retried_even_with_a_requested_wait() -> None:
    assert retry.decide(running(max_attempts=9), Failure(FailureKind.PERMANENT, "404", 7_000), NOW) == GiveUp("the error is permanent")


def test_a_requeue_uses_up_no_attempt() -> None:
    assert isinstance(retry.decide(running(max_attempts=2, fence=7, charged=0), RETRYABLE, NOW), Again)


def test_a_job_with_one_attempt_is_retried_only_after_a_throttle() -> None:
    assert isinstance(retry.decide(running(max_attempts=1), THROTTLED, NOW), Again)


def test_a_time_out_is_followed_by_another_attempt_only_by_choice() -> None:
    timeout = Failure(FailureKind.TIMEOUT, "too long")
    assert retry.decide(running(max_attempts=9), timeout, NOW) == GiveUp("its time-out of 300 s passed")
    chosen = RetryPolicy(on_timeout=True)
    assert isinstance(retry.decide(running(max_attempts=2, retry=chosen), timeout, NOW), Again)
    assert retry.decide(running(max_attempts=2, charged=1, retry=chosen), timeout, NOW) == GiveUp("no attempt is left of 2")


def test_a_crash_is_retried_at_once() -> None:
    assert retry.decide(running(alone=False, charged=5), lifecycle.CRASHED, NOW) == Again(NOW)


# The latest start of an attempt


@pytest.mark.parametrize("kind", [FailureKind.RETRYABLE, FailureKind.THROTTLED, FailureKind.TIMEOUT])
def test_no_attempt_starts_later_than_max_elapsed_after_the_first_start(kind: FailureKind) -> None:
    policy = RetryPolicy(base_ms=2_000, jitter=Jitter.NONE, max_elapsed_ms=60_000, on_timeout=True)
    job = running(at=NOW + 55_000, due_at=NOW + 55_000, scheduled_at=NOW - 5_000, delay_ms=5_000, max_attempts=25, retry=policy)
    assert retry.decide(job, Failure(kind, "no"), NOW + 58_000) == Again(NOW + 60_000)
    over = GiveUp("its next attempt would start later than 60 s after its first")
    assert retry.decide(job, Failure(kind, "no"), NOW + 58_001) == over
    assert retry.decide(job, Failure(kind, "no", 1_000), NOW + 59_001) == over


def test_the_time_for_retries_starts_from_scratch_with_a_redrive() -> None:
    policy = RetryPolicy(base_ms=2_000, jitter=Jitter.NONE, max_elapsed_ms=60_000)
    old = running(at=NOW + DAY, delay_ms=0, retry=policy, fence=4)
    assert isinstance(retry.decide(old, RETRYABLE, NOW + DAY), GiveUp)
    assert retry.decide(replace(old, redriven_at=NOW + DAY), RETRYABLE, NOW + DAY) == Again(NOW + DAY + 2_000)


def test_the_first_attempt_counts_from_its_own_start() -> None:
    policy = RetryPolicy(base_ms=2_000, jitter=Jitter.NONE, max_elapsed_ms=60_000)
    job = running(at=NOW + 100_000, retry=policy)
    assert retry.decide(job, RETRYABLE, NOW + 158_000) == Again(NOW + 160_000)
    assert isinstance(retry.decide(job, RETRYABLE, NOW + 158_001), GiveUp)


@pytest.mark.parametrize("failure", [THROTTLED, Failure(FailureKind.REFUSED, "no lease")], ids=["throttled", "refused"])
def test_only_uncharged_attempts_end_after_a_day_by_default(failure: Failure) -> None:
    job = running(at=NOW + DAY, due_at=NOW + DAY, scheduled_at=NOW, delay_ms=0)
    assert isinstance(retry.decide(job, failure, NOW + DAY - 1_000), Again)
    assert retry.decide(job, failure, NOW + DAY + 1) == GiveUp("its next attempt would start later than 86400 s after its first")
    assert isinstance(retry.decide(job, RETRYABLE, NOW + DAY + 1), Again)


def test_no_crash_is_retried_after_the_end_of_the_policy() -> None:
    job = running(retry=RetryPolicy(max_elapsed_ms=30_000))
    assert retry.decide(job, lifecycle.CRASHED, NOW + 30_000) == Again(NOW + 30_000)
    assert isinstance(retry.decide(job, lifecycle.CRASHED, NOW + 30_001), GiveUp)
    unstarted = running(due_at=NOW + 50_000, retry=RetryPolicy(max_elapsed_ms=1))
    assert isinstance(retry.decide(unstarted, lifecycle.CRASHED, NOW + 40_000), Again)


@pytest.mark.parametrize("failure", [RETRYABLE, THROTTLED, lifecycle.CRASHED])
def test_no_job_is_retried_after_its_expiry(failure: Failure) -> None:
    at = NOW + 90_000
    assert retry.decide(running(start_by=at), replace(failure, retry_after_ms=30_000), at) == GiveUp(retry.EXPIRED)
    by_rule = running(start_by=at, origin=RunInfo("t1", 1, NOW, misfire=Misfire.SKIP))
    assert isinstance(retry.decide(by_rule, failure, at), Again)


# From the first attempt to the end


def settled(job: Job, failure: Failure, now: int) -> Job:
    if failure.kind is FailureKind.CRASHED:
        return settlement.take_back(job, now, Rules(shards=4))
    return settlement.settle(Finished(job, lifecycle.started_at(job), now, Result(failure=failure)), now, Rules(shards=4))


@given(policies, st.integers(1, 25), st.lists(failures, min_size=1, max_size=4), st.integers(1, 60_000))
def test_every_job_ends_whatever_fails(policy: RetryPolicy, max_attempts: int, row: list[Failure], takes: int) -> None:
    """The sequence of failures repeats. Waits of some minutes and more limit the number of throttled attempts in a day."""
    least = 20 * 60_000
    policy = replace(policy, base_ms=policy.base_ms + least, cap_ms=policy.cap_ms + least, jitter=Jitter.EQUAL)
    row = [replace(failure, retry_after_ms=failure.retry_after_ms and failure.retry_after_ms + least // 2) for failure in row]
    job, first = a_job(max_attempts=max_attempts, retry=policy), NOW
    for number in range(30 * 24 * 6 + 25 + 6):
        failure, starts = row[number % len(row)], job.due_at
        job = lifecycle.claim(job, claim=Claim(f"m{number}", f"n{number}", starts, True))
        job = lifecycle.start(job, starts) if lifecycle.has_crashed(job) else job
        before, job = job, settled(job, failure, starts + takes)
        assert job.charged <= max_attempts and job.crashes <= retry.MAX_CRASHES
        if failure.kind in lifecycle.UNCHARGED:
            assert job.charged == before.charged
        if not lifecycle.is_open(job):
            break
        assert job.fence == before.fence + 1
        assert policy.max_elapsed_ms is None or job.due_at <= first + policy.max_elapsed_ms
        assert policy.max_elapsed_ms is not None or failure.kind not in lifecycle.UNCHARGED or job.due_at <= first + DAY
    assert not lifecycle.is_open(job) and job.reason


@given(st.integers(1, 100), st.none() | st.integers(1, DAY))
def test_a_throttle_never_uses_an_attempt_not_even_the_last_one(number: int, asked: int | None) -> None:
    job = running(throttled=number, max_attempts=1)
    again = settled(job, replace(THROTTLED, retry_after_ms=asked), NOW + 10)
    over = settled(replace(job, start_by=NOW + 1), replace(THROTTLED, retry_after_ms=asked), NOW + 10)
    assert (again.charged, again.throttled, again.fence) == (0, number + 1, 2)
    assert (over.charged, over.throttled, over.failed_at) == (0, number + 1, NOW + 10)
