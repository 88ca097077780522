"""The pool of an executor, with real threads."""

import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, current_thread, main_thread
from typing import Any

import pytest

from lambdas import _pool
from lambdas._children import Children
from lambdas._clock import SystemClock
from lambdas._pool import (
    AHEAD_MS,
    EACH_MS,
    FEW,
    FEW_SWITCH_S,
    LATE_MS,
    MOST_AHEAD_MS,
    MOST_PREPARE_MS,
    PREPARE_EACH_MS,
    SWITCH_S,
    THREADS,
    UNANSWERED_MS,
    InOrder,
    Resources,
    ThreadPool,
    ahead,
)
from local.receiver import Receiver
from scheduler.callbacks.reports import Addresses
from scheduler.model import lifecycle, settlement
from scheduler.model.errors import Unavailable
from scheduler.model.job import Claim, Failure, FailureKind, Finished, JobKey, Preview, Result, RunInfo, Status, TaskHead
from scheduler.model.rules import Rules
from scheduler.model.spec import CallBack
from scheduler.storage.memory.stores import MemoryOutputs, MemorySecrets
from scheduler.storage.ports import Clock
from scheduler.targets import registry
from scheduler.targets.base import CallBackAddress, Context, Reach
from scheduler.targets.target_type import TargetType
from tests.conftest import NOW, FixedClock, a_job


@pytest.fixture
def children() -> Iterator[Children]:
    found = Children()
    yield found
    found.close()


GUARD_MS = 60_000  # nothing takes so long: a test that waits for it hangs


class SetClock(FixedClock):
    """A clock that is set. The pool's threads look at it again and again instead of waiting for real time to pass."""

    def __init__(self) -> None:
        super().__init__()
        self.is_awaited = Event()  # a job waits for an instant
        self._guard = time.monotonic() + GUARD_MS / 1_000

    def seconds_until(self, at: int) -> float:
        assert time.monotonic() < self._guard, "the test hangs"
        if current_thread() is not main_thread():
            self.is_awaited.set()
        return min((at - self.at) / 1_000, 0.001)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SetClock]:
    made = SetClock()
    monkeypatch.setattr(_pool, "seconds_until", made.seconds_until)
    yield made
    made.advance(86_400_000)  # so that no thread of `InOrder` waits for it any more


def a_pool(
    threads: ThreadPoolExecutor, children: Children, outputs: MemoryOutputs | None = None, clock: Clock | None = None, **more: Any
) -> ThreadPool:
    return ThreadPool(Resources(threads, clock or SystemClock(), children, lambda: outputs or MemoryOutputs(), **more))


def back(pool: ThreadPool, clock: Clock) -> dict[JobKey, Finished]:
    return {done.job.key: done for done in pool.wait(clock.now() + GUARD_MS)}


@pytest.mark.real_clock
def test_a_cancelled_job_ends_soon_and_other_jobs_go_on(children: Children) -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(2) as threads:
        pool = a_pool(threads, children)
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
def test_a_target_learns_the_latest_start_of_its_job(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int | None] = []

    def run(payload: Any, context: Context) -> Result:
        seen.append(context.not_after)
        return Result()

    monkeypatch.setattr(registry, "load", lambda name: TargetType(payload=dict, run=run))
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children)
        for latest in (None, 7):
            pool.start(a_job(), latest)
            back(pool, SystemClock())
    assert seen == [None, 7]


@pytest.mark.real_clock
@pytest.mark.parametrize("sleep", [0, 0.01])  # in a thread, and in a child process
def test_placeholders_are_replaced_in_a_marked_payload_alone(children: Children, sleep: float) -> None:
    origin = RunInfo("t1", 1, NOW - 30_000)
    payload = {"message": "{{task.name}} {{nominal_at:time}} {{attempt}}", "sleep_seconds": sleep}
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children)
        outputs = []
        for marked in (True, False):
            pool.start(a_job(payload=payload, placeholders=marked, origin=origin, dropped=6), None, TaskHead(1, name="Nightly"))
            outputs += [done.result.output for done in back(pool, SystemClock()).values()]
    assert outputs == ["Nightly 09:59:30 7", payload["message"]]


def test_a_payload_with_placeholders_is_not_quick(children: Children) -> None:
    """Its message may become too long for the one thread of the quick jobs."""
    with ThreadPoolExecutor(1) as threads:
        pool = ThreadPool(Resources(threads, SystemClock(), children, MemoryOutputs, in_order=InOrder(SystemClock())))
        pool._running = THREADS
        assert pool.has_room(a_job(payload={"message": "m"})) and not pool.has_room(a_job(payload={"message": "m"}, placeholders=True))


@pytest.mark.parametrize("sleep", [0, 0.01])  # a quick job, and one in a child process
def test_a_job_that_comes_ahead_begins_at_its_instant(children: Children, clock: SetClock, sleep: float) -> None:
    with ThreadPoolExecutor(3) as threads:
        pool = a_pool(threads, children, clock=clock, in_order=InOrder(clock))
        last, second, first = (
            a_job(due_at=NOW + offset, payload={"message": "m", "sleep_seconds": sleep}) for offset in (700, 500, -1_000)
        )
        for job in (last, second, first):
            pool.start(job)
        began = {}
        for job, wait in ((first, 0), (second, 500), (last, 200)):  # the first one does not wait for those that came before it
            clock.advance(wait)
            (done,) = back(pool, clock).values()
            assert done.job.key == job.key and done.result.failure is None
            began[job.key] = done.started_at
    assert began == {first.key: NOW, second.key: NOW + 500, last.key: NOW + 700}


@pytest.mark.real_clock
@pytest.mark.parametrize("sleep", [0, 0.01])
def test_no_job_begins_before_its_real_instant(children: Children, monkeypatch: pytest.MonkeyPatch, sleep: float) -> None:
    monkeypatch.setattr(_pool, "LATE_MS", GUARD_MS)
    clock = SystemClock()
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children, in_order=InOrder(clock))
        job = a_job(due_at=clock.now() + 50, payload={"message": "m", "sleep_seconds": sleep})
        pool.start(job)
        (done,) = back(pool, clock).values()
    assert done.started_at >= job.due_at and done.result.failure is None


@pytest.mark.parametrize("sleep", [0, 0.01])
def test_a_job_that_is_stopped_before_its_instant_does_not_begin(children: Children, clock: SetClock, sleep: float) -> None:
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children, clock=clock, in_order=InOrder(clock))
        job = a_job(due_at=NOW + 1_500, payload={"message": "m", "sleep_seconds": sleep})
        pool.start(job)
        pool.cancel(job)
        clock.advance(1_500)
        (done,) = back(pool, clock).values()
        assert done.result.unstarted and done.result.output is None


def preparing(run: Callable[[Any, Context], Result]) -> Callable[[str], TargetType]:
    """A registry whose only type prepares its calls."""
    return lambda name: TargetType(payload=dict, run=run, prepares=True)


def test_a_target_that_prepares_runs_ahead_and_begins_at_the_instant(
    children: Children, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def run(payload: Any, context: Context) -> Result:
        seen.append(clock.now())
        context.begin(lambda: seen.append(clock.now()))
        return Result(began_at=seen[1])

    monkeypatch.setattr(registry, "load", preparing(run))
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children, clock=clock)
        pool.start(a_job(due_at=NOW + 100))
        assert clock.is_awaited.wait(60)
        clock.advance(100)
        (done,) = back(pool, clock).values()
    assert seen == [NOW, NOW + 100] and done.started_at == NOW + 100


def test_quick_beginnings_share_a_thread_and_their_errors_come_back(
    children: Children, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads_of: list[str] = []

    def run(payload: Any, context: Context) -> Result:
        def first() -> None:
            threads_of.append(current_thread().name)
            if payload.get("broken"):
                raise ConnectionResetError("by the server")

        context.begin(first, is_quick=bool(payload.get("quick")))
        return Result()

    monkeypatch.setattr(registry, "load", preparing(run))
    failures = []
    with ThreadPoolExecutor(1, "job") as threads:
        pool = a_pool(threads, children, clock=clock, in_order=InOrder(clock))
        for payload in ({"quick": True}, {"quick": True, "broken": True}, {}):
            pool.start(a_job(due_at=clock.now() + 20, payload=payload))
            clock.advance(20)
            (done,) = back(pool, clock).values()
            failures.append(done.result.failure and done.result.failure.message)
    assert threads_of == ["quick", "quick", "job_0"]
    assert failures == [None, "ConnectionResetError: by the server", None]


def test_all_calls_that_are_due_begin_before_a_job_goes_on(clock: SetClock) -> None:
    in_order, went_on, seen = InOrder(clock), Event(), list[bool]()
    in_order.call(NOW, lambda: in_order.submit(NOW, lambda: seen.append(went_on.wait(0.2))))
    went_on.set()
    assert seen == [False]


def test_a_job_does_not_wait_long_for_the_calls_of_others(clock: SetClock) -> None:
    in_order, went_on, seen, over = InOrder(clock), Event(), list[bool](), Event()

    def a_long_one() -> None:
        clock.advance(UNANSWERED_MS)
        in_order.submit(NOW, lambda: seen.append(went_on.wait(60)))
        in_order.submit(NOW, over.set)

    in_order.call(NOW, lambda: in_order.submit(NOW, a_long_one))
    went_on.set()
    assert over.wait(60) and seen == [True]


def test_a_target_that_prepares_its_call_does_not_begin_after_a_stop(
    children: Children, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(payload: Any, context: Context) -> Result:
        context.begin(lambda: None)
        return Result(output="called")

    monkeypatch.setattr(registry, "load", preparing(run))
    with ThreadPoolExecutor(1) as threads:
        pool, job = a_pool(threads, children, clock=clock), a_job(due_at=NOW + 100)
        pool.start(job)
        assert clock.is_awaited.wait(60)
        pool.cancel(job)
        (done,) = back(pool, clock).values()
    assert done.result.unstarted and done.result.output is None


def test_a_failure_to_prepare_a_call_is_a_failure_at_the_instant(
    children: Children, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Result(failure=Failure(FailureKind.PERMANENT, "the URL is not allowed"))
    monkeypatch.setattr(registry, "load", preparing(lambda payload, context: failed))
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children, clock=clock)
        pool.start(a_job(due_at=NOW + 100))
        assert clock.is_awaited.wait(60)
        clock.advance(100)
        (done,) = back(pool, clock).values()
    assert (done.result, done.started_at, done.ended_at) == (failed, NOW + 100, NOW + 100)


def test_a_job_that_came_ahead_does_not_begin_after_a_freeze(children: Children, clock: SetClock) -> None:
    with ThreadPoolExecutor(1) as threads:
        pool, thaw = a_pool(threads, children, clock=clock), Event()
        threads.submit(thaw.wait)  # the one thread
        pool.start(a_job(due_at=NOW + 25))
        clock.advance(25 + LATE_MS + 1)
        thaw.set()
    (done,) = back(pool, clock).values()
    assert done.result.unstarted


def test_a_job_comes_earlier_as_one_of_many() -> None:
    assert [ahead(jobs) for jobs in (1, 1_000, 10_000)] == [AHEAD_MS, AHEAD_MS + round(EACH_MS * 1_000), MOST_AHEAD_MS]
    of_calls = [AHEAD_MS + PREPARE_EACH_MS, AHEAD_MS + PREPARE_EACH_MS * 50, MOST_PREPARE_MS]
    assert [ahead(jobs, prepares=True) for jobs in (1, 50, 1_000)] == of_calls


def test_threads_take_shorter_turns_while_few_jobs_run(children: Children, clock: SetClock) -> None:
    turns = []
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children, clock=clock, in_order=InOrder(clock))
        for number in range(FEW + 1):
            pool.start(a_job(due_at=clock.now() + (0 if number else 60_000), payload={"message": "m"}))
            turns.append(sys.getswitchinterval())
        back(pool, clock)  # one at least: the first job stays
        turns.append(sys.getswitchinterval())
        pool.stop()
    assert turns[:FEW] == pytest.approx([FEW_SWITCH_S] * FEW)
    assert (turns[FEW], turns[-1]) == pytest.approx((SWITCH_S, FEW_SWITCH_S))


def test_a_type_of_another_version_is_refused_and_uses_no_attempt(children: Children) -> None:
    """During a deployment, the API may accept a type that some executors do not know yet."""
    job = replace(a_job(type="newer", max_attempts=1), claim=Claim("m", "n", NOW, True))
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children)
        pool.start(job)
        (done,) = back(pool, SystemClock()).values()
    after = settlement.settle(done._replace(started_at=NOW, ended_at=NOW), NOW, Rules(shards=1))
    assert (lifecycle.state(after), after.charged) == (Status.SCHEDULED, 0)
    assert "there is no type 'newer'" in after.attempts[-1].failure.message and NOW < after.due_at <= NOW + 2_000


@pytest.mark.real_clock
def test_a_stop_ends_all_jobs_and_no_result_counts(children: Children) -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(2) as threads:
        pool = a_pool(threads, children)
        for _ in range(2):
            pool.start(a_job(payload={"message": "sleep", "sleep_seconds": 60}))
        pool.stop()
        assert pool.wait(clock.now() + 50) == []


@pytest.mark.real_clock
def test_work_ends_when_its_target_returns(children: Children) -> None:
    clock = SystemClock()
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children)
        pool.start(a_job(payload={"message": "sleep", "sleep_seconds": 0.05}))
        ((done,),) = [back(pool, clock).values()]
        assert done.ended_at - done.started_at >= 50


@pytest.mark.real_clock
def test_a_kill_ends_the_work_and_a_stop_does_so_at_once(children: Children) -> None:
    """The threads notice the kill and end with the work."""
    clock, payload = SystemClock(), {"message": "sleep", "sleep_seconds": 60}
    one, other = (a_job(payload=payload) for _ in range(2))
    with ThreadPoolExecutor(2) as threads:
        pool = a_pool(threads, children)
        pool.start(one)
        pool.start(other)
        pool.kill(one)
        assert list(back(pool, clock)) == [one.key]
        pool.stop()


@pytest.mark.real_clock
def test_results_come_together_and_without_a_pause_after_the_last(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pool, "GATHER_S", 60.0)
    monkeypatch.setattr(_pool, "MOST_GATHER_S", 60.0)
    clock = SystemClock()
    with ThreadPoolExecutor(1) as threads:  # the jobs run one after the other
        pool, jobs = a_pool(threads, children), [a_job(payload={"message": "hello"}) for _ in range(3)]
        for job in jobs:
            pool.start(job)
        begun = clock.monotonic()
        assert list(back(pool, clock)) == [job.key for job in jobs]
        assert clock.monotonic() - begun < GUARD_MS


@pytest.mark.real_clock
def test_a_plain_log_job_needs_no_child(children: Children, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "run", None)
    with ThreadPoolExecutor(1) as threads:
        pool, job = a_pool(threads, children), a_job(payload={"message": "hello", "sleep_seconds": 0})
        pool.start(job)
        assert back(pool, SystemClock())[job.key].result.output == "hello"


@pytest.mark.real_clock
def test_a_long_output_is_stored_before_it_is_settled(children: Children) -> None:
    outputs, job = MemoryOutputs(), a_job(payload={"message": "m" * 10_000})
    with ThreadPoolExecutor(1) as threads:
        pool = a_pool(threads, children, outputs)
        pool.start(job)
        result = back(pool, SystemClock())[job.key].result
    assert (result.output, result.preview) == ("m" * 4_096, Preview.STORED)
    assert outputs.rows[job.key, 1].output == "m" * 10_000


@pytest.mark.real_clock
def test_a_failing_output_store_does_not_block_the_batch(children: Children) -> None:
    def broken() -> MemoryOutputs:
        raise RuntimeError("no client")

    with ThreadPoolExecutor(1) as threads:
        pool, job = ThreadPool(Resources(threads, SystemClock(), children, broken)), a_job(payload={"message": "m" * 10_000})
        pool.start(job)
        failure = back(pool, SystemClock())[job.key].result.failure
    assert failure is not None and "no client" in failure.message


def test_a_callback_job_gets_its_address_or_fails_retryably(monkeypatch: pytest.MonkeyPatch, children: Children) -> None:
    seen: list[CallBackAddress | None] = []

    def run(payload: Any, context: Context) -> Result:
        seen.append(context.callback)
        return Result()

    class Refusing:
        def keys(self, now: int, *, newest: bool = False) -> list[bytes]:
            raise Unavailable

    monkeypatch.setattr(registry, "load", lambda name: TargetType(payload=dict, run=run))
    clock, plain, long = SystemClock(), a_job(), a_job(callback=CallBack())
    with ThreadPoolExecutor(1) as threads:
        pool = ThreadPool(
            Resources(
                threads, clock, children, MemoryOutputs, callbacks=Addresses("https://api.example.com", MemorySecrets(signing=[b"key"])).of
            )
        )
        for job in (plain, long):
            pool.start(job)
            back(pool, clock)
        refusing = ThreadPool(Resources(threads, clock, children, MemoryOutputs, callbacks=Addresses("", Refusing()).of))
        refusing.start(long)
        (done,) = back(refusing, clock).values()
    none, address = seen
    assert none is None and address is not None and address.url == f"https://api.example.com/api/v1/jobs/{long.id}"
    assert done.result.failure is not None and done.result.failure.kind is FailureKind.RETRYABLE


@pytest.mark.parametrize(("path", "waits"), [("/stream/0.05/begun", True), ("/stream/60/begun", False), ("/status/202/begun", True)])
def test_a_callback_job_waits_only_for_a_worker_whose_call_was_answered(children: Children, path: str, waits: bool) -> None:
    addresses = Addresses("https://api.example.com", MemorySecrets(signing=[b"key"])).of
    with ThreadPoolExecutor(1) as threads, Receiver() as receiver:
        pool = ThreadPool(
            Resources(
                threads, SystemClock(), children, MemoryOutputs, callbacks=addresses, allow_private=True, reach=Reach(plain_http=True)
            )
        )
        payload = {"url": receiver.url(path), "timeout_seconds": 60 if waits else 0.2}
        job = replace(a_job(type="http", payload=payload, callback=CallBack()), claim=Claim("m1", "n1", NOW, alone=False))
        pool.start(job)
        (done,) = back(pool, SystemClock()).values()
    after = settlement.returned(done, done.ended_at, Rules(shards=4))
    assert lifecycle.waits(after) == waits
    assert waits or (done.result.failure is not None and done.result.failure.kind is FailureKind.RETRYABLE)
