"""The pool of an executor: real threads."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from lambdas._clock import SystemClock
from lambdas._pool import ThreadPool
from scheduler import targets
from scheduler.errors import Unavailable
from scheduler.memory import MemoryKeys
from scheduler.model import CallBack, JobKey, Result
from scheduler.ports import Finished
from scheduler.services.callback import Addresses
from scheduler.targets import CallBackAddress, Context
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


@pytest.mark.real_clock
def test_a_job_that_reports_by_call_back_is_told_where_to_and_fails_for_now_while_that_cannot_be_signed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[CallBackAddress | None] = []

    def run(payload: Any, context: Context) -> Result:
        seen.append(context.callback)
        return Result()

    class Refusing:
        def keys(self, now: int, *, newest: bool = False) -> list[bytes]:
            raise Unavailable

    monkeypatch.setattr(targets, "load", lambda name: SimpleNamespace(run=run))
    clock, plain, long = SystemClock(), a_job(), a_job(callback=CallBack())
    with ThreadPoolExecutor(1) as threads:
        pool = ThreadPool(threads, clock, callbacks=Addresses("https://api.example.com", MemoryKeys(b"key")).of)
        for job in (plain, long):
            pool.start(job)
            back(pool, clock)
        refusing = ThreadPool(threads, clock, callbacks=Addresses("", Refusing()).of)
        refusing.start(long)
        (done,) = back(refusing, clock).values()
    none, address = seen
    assert none is None and address is not None and address.url == f"https://api.example.com/api/v1/jobs/{long.id}"
    assert done.result.failure is not None and done.result.failure.kind == "retryable"
