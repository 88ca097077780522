"""The Python package against the deployed stack: no job is created twice or lost, and its worker reports."""

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from punctual import CallbackEnded, Job, Punctual, Worker
from punctual._sync.transport import Clock

from tests.system.conftest import System, until

TOMORROW = datetime.now(UTC) + timedelta(days=1)


class Unreliable(httpx.HTTPTransport):
    """A network that loses requests and answers, and an API that refuses some requests. Writes of `/jobs` only."""

    def __init__(self, seed: int, *, keeps_keys: bool = True) -> None:
        super().__init__()
        self._random, self._lock, self._keeps_keys = random.Random(seed), threading.Lock(), keeps_keys
        self.dealt: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method != "POST" or "/jobs" not in request.url.path:
            return super().handle_request(request)
        if not self._keeps_keys:
            del request.headers["Idempotency-Key"]
        with self._lock:
            kind = self._random.choices(["", "lost answer", "lost request", "503", "429", "503 afterwards"], [55, 15, 8, 8, 8, 6])[0]
            self.dealt += [kind] if kind else []
        if kind == "lost request":
            raise httpx.WriteError("broken pipe", request=request)
        if kind in ("503", "429"):
            return httpx.Response(int(kind), headers={"Retry-After": "0"}, json={"message": "Service Unavailable"}, request=request)
        answer = super().handle_request(request)
        if kind:
            answer.read()
        if kind == "lost answer":
            raise httpx.ReadError("connection reset", request=request)
        return httpx.Response(503, json={"message": "Service Unavailable"}, request=request) if kind else answer


class Hurried(Clock):
    """Pauses are a twentieth as long."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds / 20)


USER = "network"  # of its own: thousands of jobs would be in the lists of other tests


@pytest.fixture(scope="module")
def password(system: System) -> str:
    return system.create_user(USER)


@pytest.fixture
def reliable(system: System, password: str) -> Iterator[Punctual]:
    with Punctual(system.address, username=USER, password=password) as client:
        yield client


def unreliable(reliable: Punctual, password: str, network: Unreliable) -> Punctual:
    return Punctual(reliable.url, username=USER, password=password, transport=network, clock=Hurried(), max_retries=30)


def created(client: Punctual, tag: str) -> list[Job]:
    """Return the jobs with a tag, and cancel them."""
    found = list(client.jobs.list(upcoming=True, tag=tag))
    client.operations.wait(client.jobs.cancel_many(tag=tag, rate=1000).id, timeout=60)
    return found


def test_a_thousand_creates_over_a_bad_network_make_a_thousand_jobs(reliable: Punctual, password: str) -> None:
    network = Unreliable(seed=1)
    with unreliable(reliable, password, network) as client, ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda n: client.jobs.create(message=f"{n}", execute_at=TOMORROW, tags=["bad-network"]), range(1000)))
    found = created(reliable, "bad-network")
    assert len(found) == 1000 and {job.id for job in found} == {job.id for job in jobs}
    assert sorted(int(job.payload["message"]) for job in found) == list(range(1000))
    assert len(network.dealt) > 500 and len(set(network.dealt)) == 5


def test_a_batch_over_a_bad_network_makes_each_job_once(reliable: Punctual, password: str) -> None:
    with unreliable(reliable, password, Unreliable(seed=4)) as client:
        result = client.jobs.create_many([{"message": f"{n}", "execute_at": TOMORROW, "tags": ["bad-batch"]} for n in range(2500)])
    found = created(reliable, "bad-batch")
    assert (result.accepted, len(found), len({job.id for job in found})) == (2500, 2500, 2500)


def test_without_idempotency_keys_jobs_are_doubled(reliable: Punctual, password: str) -> None:
    with unreliable(reliable, password, Unreliable(seed=1, keeps_keys=False)) as client:
        for number in range(60):
            client.jobs.create(message=f"{number}", execute_at=TOMORROW, tags=["no-keys"])
    assert len(created(reliable, "no-keys")) > 60


def test_a_worker_reports_progress_and_the_result(system: System, reliable: Punctual) -> None:
    job = reliable.jobs.create(http=system.receiver.url("/ok/package-worker"), callback={"lease_seconds": 10})
    (call,) = until(60, lambda: system.receiver.calls("/ok/package-worker") or None)
    with Worker.from_headers(call.headers) as work:
        work.progress(0.5, "half")
        until(120, lambda: reliable.jobs.get(job.id).progress)
        assert reliable.jobs.get(job.id).status == "running"
        work.complete({"rows": 42})
    done = reliable.jobs.wait(job.id, timeout=120)
    assert done.succeeded and done.output == '{"rows": 42}'
    with pytest.raises(CallbackEnded), Worker.from_headers(call.headers) as late:
        late.heartbeat()


def test_a_worker_learns_that_its_job_is_to_be_cancelled(system: System, reliable: Punctual) -> None:
    job = reliable.jobs.create(http=system.receiver.url("/ok/package-cancelled"), callback={"lease_seconds": 10})
    (call,) = until(60, lambda: system.receiver.calls("/ok/package-cancelled") or None)
    with Worker.from_headers(call.headers) as work:
        reliable.jobs.cancel(job.id)
        assert work.cancel_requested.wait(120)
        work.fail("stopped as requested")
    assert reliable.jobs.wait(job.id, timeout=120).status == "cancelled"
