"""The pool of an executor whose `http` jobs are run by the function `fetch`: each waits for a place, with real threads."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lambdas import _pool
from lambdas._children import Children
from lambdas._clock import SystemClock
from lambdas._pool import THREADS, Resources, ThreadPool
from scheduler.admission.target_cache import TargetCache
from scheduler.model.job import FailureKind, Finished, Job, Result
from scheduler.model.named_target import NamedTarget
from scheduler.storage.memory.stores import MemoryOutputs
from scheduler.targets import fetch_call
from scheduler.targets.call_limit import ALL_BUSY, CallLimit
from scheduler.targets.calls import Refused, Request
from tests.conftest import a_job
from tests.unit.fake_calls import FUNCTION

CLOCK = SystemClock()
GUARD_MS = 60_000  # nothing takes so long
ANSWER = {"Payload": json.dumps(fetch_call.encode_answer(Result(response={"status": 200, "headers": {}, "body": ""}), 5)).encode()}
BUSY = Refused("TooManyRequestsException", "rate exceeded", retryable=True)

pytestmark = pytest.mark.real_clock


class Lambda:
    """The port `Calls`, in which each call waits for `go` and then has the answer of `answers` for its number."""

    def __init__(self, answer: Callable[[int], Mapping[str, Any]] = lambda number: ANSWER) -> None:
        self.go, self.lock, self.arrived = threading.Event(), threading.Lock(), threading.Semaphore(0)
        self.events, self.at_once, self.most, self._answer = list[dict[str, Any]](), 0, 0, answer
        self.functions = list[str]()

    def send(self, request: Request, *, left: Any) -> Mapping[str, Any]:
        with self.lock:
            self.events.append(json.loads(request.parameters["Payload"]))
            self.functions.append(request.parameters["FunctionName"])
            number, self.at_once = len(self.events), self.at_once + 1
            self.most = max(self.most, self.at_once)
        self.arrived.release()
        assert self.go.wait(60)
        with self.lock:
            self.at_once -= 1
        return self._answer(number)


@pytest.fixture(autouse=True)
def never_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stands still for two seconds is no freeze of an executor here."""
    monkeypatch.setattr(_pool, "LATE_MS", GUARD_MS)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(THREADS) as made:
        yield made


def a_pool(threads: ThreadPoolExecutor, calls: Lambda, limit: CallLimit, **more: Any) -> ThreadPool:
    fields: dict[str, Any] = {"fetcher": FUNCTION, "limit": limit} | more
    return ThreadPool(Resources(threads, CLOCK, Children(), MemoryOutputs, calls=lambda: calls, **fields))


def a_call(**fields: Any) -> Job:
    return a_job(type="http", payload={"url": "https://example.com"}, **fields)


def all_of(pool: ThreadPool, count: int) -> list[Finished]:
    found: list[Finished] = []
    while len(found) < count:
        back = pool.wait(CLOCK.now() + GUARD_MS)
        assert back
        found += back
    return found


def test_an_executor_has_no_more_calls_in_flight_than_places(threads: ThreadPoolExecutor) -> None:
    calls, limit = Lambda(), CallLimit(6)
    calls.go.set()
    pool = a_pool(threads, calls, limit)
    for _ in range(64):
        pool.start(a_call())
    found = all_of(pool, 64)
    assert all(done.result.failure is None for done in found)
    assert calls.most <= 6 and len(calls.events) == 64
    threads.shutdown()
    assert limit.calls == 0


def test_a_call_that_waits_takes_no_thread_from_other_jobs(threads: ThreadPoolExecutor) -> None:
    calls = Lambda()
    pool = a_pool(threads, calls, CallLimit(1))
    for _ in range(2 * THREADS):
        assert pool.has_room(a_call())
        pool.start(a_call())
    other = a_job()
    assert pool.has_room(other)
    pool.start(other)
    assert [done.job.key for done in pool.wait(CLOCK.now() + GUARD_MS)] == [other.key]
    pool.stop()
    calls.go.set()


def test_a_refused_call_is_sent_again_and_nothing_is_charged(threads: ThreadPoolExecutor) -> None:
    def answer(number: int) -> Mapping[str, Any]:
        if number <= 3:
            raise BUSY
        return ANSWER

    calls = Lambda(answer)
    calls.go.set()
    pool = a_pool(threads, calls, CallLimit())
    pool.start(a_call())
    (done,) = all_of(pool, 1)
    assert done.result.failure is None and len(calls.events) == 4


def test_another_refusal_ends_the_attempt_and_gives_the_place_back(threads: ThreadPoolExecutor) -> None:
    def answer(number: int) -> Mapping[str, Any]:
        raise Refused("AccessDeniedException", "no", retryable=False)

    calls, limit = Lambda(answer), CallLimit(1)
    calls.go.set()
    pool = a_pool(threads, calls, limit)
    for _ in range(2):
        pool.start(a_call())
    assert [done.result.failure and done.result.failure.kind for done in all_of(pool, 2)] == [FailureKind.PERMANENT] * 2


def test_a_job_that_gates_have_cleared_waits_until_its_latest_start(threads: ThreadPoolExecutor) -> None:
    calls = Lambda()
    pool = a_pool(threads, calls, CallLimit(1))
    pool.start(a_call())
    assert calls.arrived.acquire(timeout=60)
    cleared = a_call()
    pool.start(cleared, CLOCK.now() + 30)
    (done,) = pool.wait(CLOCK.now() + GUARD_MS)
    assert done.job is cleared and done.result.unstarted and done.result.failure is not None
    assert (done.result.failure.kind, done.result.failure.message) == (FailureKind.THROTTLED, ALL_BUSY)
    assert len(calls.events) == 1
    calls.go.set()
    all_of(pool, 1)


def test_a_cancelled_job_that_waits_ends_at_once(threads: ThreadPoolExecutor) -> None:
    calls = Lambda()
    pool = a_pool(threads, calls, CallLimit(1))
    pool.start(a_call())
    waiting = a_call()
    pool.start(waiting)
    pool.cancel(waiting)
    (done,) = pool.wait(CLOCK.now() + GUARD_MS)
    assert done.job is waiting and done.result.unstarted
    calls.go.set()
    all_of(pool, 1)
    assert len(calls.events) == 1


def test_an_executor_that_stops_sends_nothing_more(threads: ThreadPoolExecutor) -> None:
    calls, limit = Lambda(), CallLimit(1)
    pool = a_pool(threads, calls, limit)
    for _ in range(3):
        pool.start(a_call())
    assert calls.arrived.acquire(timeout=60)
    pool.stop()
    calls.go.set()
    threads.shutdown()
    assert (len(calls.events), limit.calls) == (1, 0)


def test_the_time_of_a_call_begins_when_it_has_its_place(threads: ThreadPoolExecutor) -> None:
    calls = Lambda()
    pool = a_pool(threads, calls, CallLimit(1))
    for _ in range(2):
        pool.start(a_call(timeout_ms=30_000))
    assert calls.arrived.acquire(timeout=60) and pool.wait(CLOCK.now() + 50) == []
    released_at = CLOCK.now()
    calls.go.set()
    all_of(pool, 2)
    first, second = (event["until"] for event in calls.events)
    assert first < released_at + 30_000 <= second


def test_a_stage_without_fetch_has_room_for_as_many_calls_as_threads(threads: ThreadPoolExecutor) -> None:
    pool = ThreadPool(Resources(threads, CLOCK, Children(), MemoryOutputs))
    pool._running = THREADS
    assert not pool.has_room(a_call())


# Private targets.


class Known(TargetCache):
    """A cache with these targets; `first`: none of them has been read before a job runs."""

    def __init__(self, *targets: NamedTarget, first: bool = False) -> None:
        self.by_name, self.first = {target.name: target for target in targets}, first

    def find(self, name: str) -> NamedTarget | None:
        return self.by_name.get(name)

    def peek(self, name: str | None) -> NamedTarget | None:
        return None if self.first or name is None else self.by_name.get(name)


def a_target(name: str, *allow: str) -> NamedTarget:
    return NamedTarget(name, "http", 0, 0, "ann", "ann", defaults={"url": "https://10.0.0.7"}, allow=allow)


NAMED = (a_target("public"), a_target("private", "10.0.0.0/16"))


@pytest.mark.parametrize("fetcher", [FUNCTION, ""])
def test_only_jobs_of_a_private_target_are_sent_to_the_private_network(threads: ThreadPoolExecutor, fetcher: str) -> None:
    calls = Lambda()
    calls.go.set()
    pool = a_pool(threads, calls, CallLimit(), fetcher=fetcher, private_fetcher=f"{FUNCTION}-private", named=Known(*NAMED))
    pool.start(a_job(type="http", payload={}, target="private"))
    if fetcher:
        pool.start(a_job(type="http", payload={}, target="public"))
        pool.start(a_call())
    assert all(done.result.failure is None for done in all_of(pool, 3 if fetcher else 1))
    sent = sorted((function, event.get("allow")) for function, event in zip(calls.functions, calls.events, strict=True))
    assert sent == [*[(FUNCTION, None)] * (2 if fetcher else 0), (f"{FUNCTION}-private", ["10.0.0.0/16"])]


def test_a_private_target_fails_in_a_stage_without_a_private_network(threads: ThreadPoolExecutor) -> None:
    calls = Lambda()
    calls.go.set()
    pool = a_pool(threads, calls, CallLimit(), named=Known(*NAMED))
    pool.start(a_job(type="http", payload={}, target="private"))
    (done,) = all_of(pool, 1)
    assert done.result.failure is not None and done.result.failure.kind is FailureKind.PERMANENT
    assert "the option network" in done.result.failure.message and not calls.events


def test_a_busy_private_network_defers_a_job_that_has_no_place(threads: ThreadPoolExecutor) -> None:
    """Executors that call URLs themselves learn only while the job runs that its target is private."""

    def answer(number: int) -> Mapping[str, Any]:
        raise BUSY

    calls = Lambda(answer)
    calls.go.set()
    pool = a_pool(threads, calls, CallLimit(), fetcher="", private_fetcher=FUNCTION, named=Known(*NAMED, first=True))
    pool.start(a_job(type="http", payload={}, target="private"))
    (done,) = all_of(pool, 1)
    assert done.result.unstarted and len(calls.events) == 1
