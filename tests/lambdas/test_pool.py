"""The pool of an executor: real threads."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lambdas._clock import SystemClock
from lambdas._pool import ThreadPool
from scheduler.model import JobKey
from scheduler.ports import Finished
from tests.conftest import a_job


def back(pool: ThreadPool, clock: SystemClock) -> dict[JobKey, Finished]:
    return {done.job.key: done for done in pool.wait(clock.now() + 5_000)}


@pytest.mark.real_clock
def test_a_job_that_is_cancelled_comes_back_soon_and_its_neighbour_goes_on() -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(2) as threads:
        pool = ThreadPool(threads, clock, allow_private=False)
        one, other = (a_job(payload={"message": "sleep", "sleep_seconds": 60}) for _ in range(2))
        pool.start(one)
        pool.start(other)
        pool.cancel(one)
        stopped = back(pool, clock)
        assert list(stopped) == [one.key] and stopped[one.key].result.failure is not None
        assert pool.wait(clock.now() + 50) == []
        pool.cancel(other)
        assert list(back(pool, clock)) == [other.key]


@pytest.mark.real_clock
def test_a_stop_ends_them_all_and_no_result_counts() -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(2) as threads:
        pool = ThreadPool(threads, clock, allow_private=False)
        for _ in range(2):
            pool.start(a_job(payload={"message": "sleep", "sleep_seconds": 60}))
        pool.stop()
        assert pool.wait(clock.now() + 50) == []


@pytest.mark.real_clock
def test_work_ends_when_its_target_comes_back() -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(1) as threads:
        pool = ThreadPool(threads, clock, allow_private=False)
        pool.start(a_job(payload={"message": "sleep", "sleep_seconds": 0.05}))
        ((done,),) = [back(pool, clock).values()]
        assert done.ended_at - done.started_at >= 50
