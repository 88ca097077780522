"""The jobs that one executor starts at one instant, and their delays: the real pool with its threads and child processes, on this machine.

The executor's loop calls `start` for one job after the other, from shortly before the instant; a job begins when its target does. Calls go
to a server on loopback, which shares the cores with the pool. It is a section of `make bench`.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from bench.figures import Figure
from lab.judge import percentile
from lambdas._children import Children
from lambdas._clock import SystemClock
from lambdas._pool import CHILDREN, THREADS, InOrder, Resources, ThreadPool, ahead
from local.steps import step
from scheduler.model import ids
from scheduler.model.job import Finished, Job
from scheduler.model.spec import JobSpec
from scheduler.storage.memory.stores import MemoryOutputs
from scheduler.targets.base import Reach

ROUNDS, SHORT_ROUNDS = 5, 1
MADE_MS = 300  # from the making of the jobs to their instant
PATIENCE_MS = 30_000
SERVER = """
import http.server
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1_000
server = Server(("127.0.0.1", 0), Answer)
print(server.server_port, flush=True)
server.serve_forever()
"""


def measure(short: bool = False) -> Iterator[Figure]:
    rounds = SHORT_ROUNDS if short else ROUNDS
    with step("Starting jobs of one instant in one executor"), _server() as url:
        pools = _Pools()
        crowds: Sequence[tuple[str, int, str, Mapping[str, Any]]] = (
            ("quick", 1_000, "log", {"message": "hello"}),
            ("calls", THREADS, "http", {"method": "GET", "url": url}),
            ("computing", CHILDREN, "log", {"message": "hello", "sleep_seconds": 0.2}),
        )
        found = [(key, count, type_, pools.delays(count, JobSpec(type_, dict(payload)), rounds)) for key, count, type_, payload in crowds]
        pools.close()
    for key, count, type_, delays in found:
        yield Figure(f"at_once.{key}.p50_ms", f"{count:,} `{type_}` jobs of one instant, {key}: p50", percentile(delays, 50), "ms")
        yield Figure(f"at_once.{key}.p99_ms", "  p99", percentile(delays, 99), "ms")


@contextmanager
def _server() -> Iterator[str]:
    child = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{(child.stdout or sys.stdin).readline().strip()}/"
    finally:
        child.kill()
        child.wait()


class _Pools:
    """The threads and processes that an executor keeps, and a pool of them for each batch."""

    def __init__(self) -> None:
        self._clock, self._children, self._outputs = SystemClock(), Children(), MemoryOutputs()
        self._threads, self._in_order = ThreadPoolExecutor(THREADS, "job"), InOrder(self._clock)

    def delays(self, count: int, spec: JobSpec, rounds: int) -> list[int]:
        """Return how late the jobs began (ms), over all rounds after one that warms up."""
        warmed = [self._round(count, spec) for _ in range(rounds + 1)]
        return [delay for each in warmed[1:] for delay in each]

    def _round(self, count: int, spec: JobSpec) -> list[int]:
        pool = ThreadPool(
            Resources(
                self._threads,
                self._clock,
                self._children,
                lambda: self._outputs,
                in_order=self._in_order,
                allow_private=True,
                reach=Reach(plain_http=True),
            )
        )
        due = self._clock.now() + MADE_MS
        jobs = [Job("ada", ids.new(due, number), spec, due, due, due, None) for number in range(count)]
        self._clock.sleep_until(due - ahead(count))
        for job in jobs:
            pool.start(job)
        done: list[Finished] = []
        while len(done) < count and self._clock.now() < due + PATIENCE_MS:
            done += pool.wait(self._clock.now() + 1_000)
        failed = [each.result.failure for each in done if each.result.failure]
        if failed or len(done) < count:
            raise RuntimeError(f"{len(done)} of {count} jobs ended; the first failure: {failed and failed[0]}")
        time.sleep(0.2)  # the threads are idle again
        return [each.started_at - due for each in done]

    def close(self) -> None:
        self._threads.shutdown()
        self._children.close()
