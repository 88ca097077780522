"""Shared by the drivers in Python: what a job does, the jobs of an order, the command line that the harness calls.

A driver is a program with four commands: `describe` prints its versions, settings and worker commands as JSON, `init` prepares its server,
`worker` runs jobs until it is stopped, `produce FILE` creates the jobs of an order and prints when it began and ended.
"""

import http.client
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FOLDER = Path(os.environ.get("COMPARE_FOLDER", "."))
REDIS = os.environ.get("COMPARE_REDIS", "")
POSTGRES = os.environ.get("COMPARE_POSTGRES", "")
AMQP = os.environ.get("COMPARE_AMQP", "")
CALL = 1_000  # jobs of a bulk call

_local = threading.local()
_log: dict[int, int] = {}  # by process: the descriptor of the log; a forked worker opens its own


def run(job: str, url: str = "") -> None:
    """Run a job: note its start in one write to a shared file, or call a URL, whose server notes it."""
    if url:
        _call(f"{url}?{job}")
        return
    at, pid = time.time(), os.getpid()
    if pid not in _log:
        _log[pid] = os.open(FOLDER / "starts.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(_log[pid], b"%s %.6f\n" % (job.encode(), at))


def _call(url: str) -> None:
    """One GET on a connection that this thread keeps."""
    parts = urlsplit(url)
    if getattr(_local, "pid", None) != os.getpid():
        _local.pid, _local.connection = os.getpid(), http.client.HTTPConnection(parts.netloc, timeout=60)
    try:
        _local.connection.request("GET", f"{parts.path}?{parts.query}")
        _local.connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        _local.connection.close()
        raise


@dataclass(frozen=True)
class Order:
    """Jobs to create: job number i of `count` is due at `at + i * seconds / count` (Unix time).

    `one_by_one`: each is created at its instant, for now; else all are created ahead.
    """

    prefix: str
    count: int
    at: float
    seconds: float = 0
    url: str = ""
    one_by_one: bool = False

    def jobs(self) -> list[tuple[str, float]]:
        """Return id and due time of each job."""
        step = self.seconds / self.count if self.count else 0
        return [(f"{self.prefix}{number}", self.at + number * step) for number in range(self.count)]


def calls(order: Order, most: int = CALL) -> Iterator[Sequence[tuple[str, float]]]:
    """Yield the jobs of each call: `most` of them or, one by one, the next job at its instant."""
    jobs = order.jobs()
    if not order.one_by_one:
        for first in range(0, len(jobs), most):
            yield jobs[first : first + most]
        return
    for job, at in jobs:
        while (left := at - time.time()) > 0:
            time.sleep(left)
        yield [(job, at)]


def each(order: Order) -> Iterator[tuple[str, float]]:
    """Yield the jobs, for a scheduler that has no bulk call."""
    for call in calls(order):
        yield from call


class Creating:
    """A context manager around the creation of jobs: times it."""

    def __init__(self, api: str) -> None:
        self._api = api

    def __enter__(self) -> "Creating":
        self.began, self._cpu = time.time(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.answer = {"began": self.began, "ended": time.time(), "cpu_s": time.process_time() - self._cpu, "api": self._api}


def versions(*packages: str) -> dict[str, str]:
    return {name: version(name) for name in packages}


def follow(create: Callable[[str, float, str], None], api: str) -> None:
    """Create the jobs of each order that `hand_over` leaves in the folder: for schedulers that live in the process that creates jobs."""
    order_file = FOLDER / "order.json"
    while True:
        time.sleep(0.02)
        if not order_file.exists():
            continue
        order = Order(**json.loads(order_file.read_text()))
        order_file.unlink()
        with Creating(api) as done:
            for job, at in each(order):
                create(job, at, order.url)
        _write(FOLDER / "created.json", {**done.answer, "cpu_s": 0.0})  # it is among the worker's


def hand_over(order: Order) -> Mapping[str, Any]:
    """Leave an order for the worker, and return its answer."""
    answer = FOLDER / "created.json"
    _write(FOLDER / "order.json", vars(order))
    while not answer.exists():
        time.sleep(0.02)
    content: dict[str, Any] = json.loads(answer.read_text())
    answer.unlink()
    return content


def _write(file: Path, content: Mapping[str, Any]) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(content))
    fresh.replace(file)


def main(
    describe: Callable[[], Mapping[str, Any]],
    produce: Callable[[Order], Mapping[str, Any]],
    *,
    init: Callable[[], None] = lambda: None,
    worker: Callable[[], None] = lambda: None,
) -> None:
    command = sys.argv[1]
    if command == "describe":
        print(json.dumps(describe()))
    elif command == "init":
        init()
    elif command == "worker":
        worker()
    elif command == "produce":
        print(json.dumps(produce(Order(**json.loads(Path(sys.argv[2]).read_text())))))
