"""One run of one workload: create the jobs ahead, wait for their instants, count the starts and what it took."""

import math
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from compare.accounting import cpu_s, machine_s, memory_mb
from compare.contestants import Session
from compare.drivers.lib import Order
from compare.work import Outcome, Spent, Workload, outcome
from local.aws import HOST

LEAD_S = 8  # from the expected end of the creation to the first instant
LEAST_S = 1.5  # a run whose jobs were created later than this before the first instant is repeated
PATIENCE_S, STALL_S = 180.0, 25.0  # after the last instant: at most, and without a further start
STEP_S = 0.25  # between two looks at the starts: each takes some milliseconds of processor
QUIET_S = 5  # after a run that is repeated


class Clock(Protocol):
    """The functions of the module `time` that a run uses."""

    def time(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


class Receiver(NamedTuple):
    """The server of the URL that jobs call."""

    url: str
    log: str


@contextmanager
def receiver(folder: Path) -> Iterator[Receiver]:
    log = str(folder / "calls.log")
    child = subprocess.Popen([sys.executable, "-m", "compare.receiver", log], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        with child.stdout as lines:
            yield Receiver(f"http://{HOST}:{int(lines.readline())}/", log)
    finally:
        child.terminate()
        child.wait()


def run(session: Session, work: Workload, url: str, *, tries: int = 3, clock: Clock = time) -> Outcome:
    """Run the workload. A run whose jobs were not created in time is repeated with more time, `tries` times in all."""
    per_second = float(session.per_second)
    for number in range(1, tries + 1):
        found, made_in = _once(session, work, url, per_second, number, clock)
        if found is not None:
            return found
        per_second = min(per_second / 2, work.count / made_in / 2)
    raise TimeoutError(f"{work.title}: the jobs could not be created in time, {made_in:.0f} s for {work.count:,}")


def _once(session: Session, work: Workload, url: str, per_second: float, number: int, clock: Clock) -> tuple[Outcome | None, float]:
    """Return the outcome, or None if the jobs came too late, and the seconds that their creation took."""
    began = clock.time()
    at = math.ceil(began + work.count / per_second + LEAD_S)
    order = Order(f"{work.key}{number}-", work.count, at, work.seconds, url if work.calls else "", work.one_by_one)
    before = cpu_s(session.roots)
    made = session.create(order)
    created, others = cpu_s(session.roots), machine_s()
    made_in = made["ended"] - made["began"]
    if work.one_by_one:
        spent_by = _watch(session, work, order, clock)
        spent = Spent(created - before + made["cpu_s"], spent_by - created, memory_mb(session.roots), 0)
        return outcome(work, session.starts(work, order), spent, made_in, [f"created by {made['api']}"]), made_in
    if at - clock.time() < LEAST_S:
        took = clock.time() - began
        _sleep_until(at + work.seconds + QUIET_S, clock)
        return None, took
    memory = [memory_mb(session.roots)]  # never while jobs start: to read it holds up the processes
    clock.sleep(1)
    idle_from, idle = clock.time(), cpu_s(session.roots)
    _sleep_until(at - 0.5, clock)
    due = cpu_s(session.roots)
    idle_percent = 100 * (due - idle) / max(clock.time() - idle_from, 0.1)
    spent_by = _watch(session, work, order, clock)
    memory.append(memory_mb(session.roots))
    busy = machine_s() - others - (spent_by - created)
    notes = [f"created by {made['api']}", f"other programs used {busy / max(clock.time() - made['ended'], 1):.2f} cores"]
    spent = Spent(created - before + made["cpu_s"], spent_by - due, max(memory), idle_percent)
    return outcome(work, session.starts(work, order), spent, made_in, notes), made_in


def _watch(session: Session, work: Workload, order: Order, clock: Clock) -> float:
    """Wait until all jobs have started, or no more do. Returns the processor seconds used until then."""
    _sleep_until(order.at + order.seconds, clock)
    begun, last, count = clock.time(), clock.time(), -1
    while True:
        spent = cpu_s(session.roots)
        if session.ended(work, order):
            clock.sleep(0.5)
            return max(spent, cpu_s(session.roots))
        now = clock.time()
        if now - last > STALL_S:
            seen = len(session.starts(work, order))
            if seen == count or now - begun > PATIENCE_S:
                return spent
            last, count = now, seen
        clock.sleep(STEP_S)


def _sleep_until(at: float, clock: Clock) -> None:
    while (left := at - clock.time()) > 0:
        clock.sleep(min(left, 60))
