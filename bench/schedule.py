"""Next-run computations per second of one core, beside croniter's own on the same expressions in the same process.

`python -m bench.schedule`. "one" plans a task's next run from scratch, as a service does it; "ten" its next ten at once.
Caches are warm, as they are in a process that plans many tasks; "cold" is the first run of an expression and zone it never saw.
"""

import sys
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial
from statistics import median

from croniter import croniter

from scheduler import cron, instants, zones
from scheduler.schedule import Cron, Schedule, next_runs

TARGET = 100_000  # per second
SINCE = instants.parse("2027-01-01T00:00:00Z")
ZONE = "Europe/Berlin"
EXPRESSIONS = ("* * * * *", "*/5 * * * *", "30 2 * * *", "0 9 * * MON-FRI", "0 0 1 * *", "0 9 * * FRI#2")
CALLS, ROUNDS = 1_000, 5


def rate(calls: int, work: Callable[[], object]) -> float:
    """Calls per second of CPU: the median of some rounds, after one to warm up."""
    work()
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return calls / median(took)


def one(schedule: Schedule) -> None:
    for step in range(CALLS):
        next_runs(schedule, SINCE + step * 7_200_000, 1)


def ten(schedule: Schedule) -> None:
    for step in range(CALLS // 10):
        next_runs(schedule, SINCE + step * 7_200_000, 10)


def floor(expression: str) -> None:
    """croniter, going on from its own last answer: what it is fastest at."""
    walk = croniter(expression, datetime.fromtimestamp(SINCE / 1000, zones.zone(ZONE)))
    for _ in range(CALLS):
        walk.get_next(float)


def cold() -> float:
    """Milliseconds for the first run, over all zones."""
    cron.read.cache_clear()
    zones.of_span.cache_clear()
    zones.zone.cache_clear()
    names = sorted(zones.names())
    began = time.process_time()
    for number, name in enumerate(names):
        next_runs(Schedule(Cron(f"{number % 60} {number // 60} * * MON", name)), SINCE, 1)
    return (time.process_time() - began) * 1000 / len(names)


def main() -> int:
    print(f"{'per second':18}{'one':>10}{'ten':>10}{'croniter':>10}{'one/croniter':>14}")
    slowest = float("inf")
    for expression in EXPRESSIONS:
        schedule = Schedule(Cron(expression, ZONE))
        ours, many, theirs = (
            rate(CALLS, partial(one, schedule)),
            rate(CALLS, partial(ten, schedule)),
            rate(CALLS, partial(floor, expression)),
        )
        slowest = min(slowest, ours)
        print(f"{expression:18}{ours:10,.0f}{many:10,.0f}{theirs:10,.0f}{ours / theirs:14.1f}")
    print(f"cold: {cold():.2f} ms. Slowest warm: {slowest:,.0f} per second, target {TARGET:,}")
    return int(slowest < TARGET)


if __name__ == "__main__":
    sys.exit(main())
