"""Next-run computations per second of one core, beside those of croniter for the same expressions in the same process.

"One" computes a task's next run from scratch, as a service does; "ten" computes the next ten at once. Caches are warm, as in a process
that plans many tasks. "Cold" is the first run of a new expression and zone. It is a section of `make bench`.
"""

import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from statistics import median

from croniter import croniter

from bench.figures import Figure
from local.steps import step
from scheduler.model import instants
from scheduler.model.schedule import Cron, Schedule
from scheduler.tasks import cron, zones
from scheduler.tasks.schedule import next_runs

TARGET = 100_000  # per second
SINCE = instants.parse("2027-01-01T00:00:00Z")
ZONE = "Europe/Berlin"
EXPRESSIONS = ("* * * * *", "*/5 * * * *", "30 2 * * *", "0 9 * * MON-FRI", "0 0 1 * *", "0 9 * * FRI#2")
CALLS, ROUNDS, SHORT_ROUNDS = 1_000, 5, 1


def measure(short: bool = False) -> Iterator[Figure]:
    with step("Computing next runs"):
        rates = {expression: _rates(expression, SHORT_ROUNDS if short else ROUNDS) for expression in EXPRESSIONS}
        first = cold()
    for expression, (alone, ten_at_once, theirs) in rates.items():
        key = f"schedule.{expression.replace(' ', '_')}"
        yield Figure(f"{key}.one", f"next runs of {expression}, from scratch", round(alone), "/s", TARGET, at_least=True)
        yield Figure(f"{key}.ten", "  ten at once", round(ten_at_once), "/s")
        yield Figure(f"{key}.floor", "  croniter alone", round(theirs), "/s")
    yield Figure("schedule.cold_ms", "first run of an expression and zone", round(first, 3), "ms")


def rate(calls: int, work: Callable[[], object], rounds: int) -> float:
    """Return calls per second of CPU time: the median of some rounds, after one to warm up."""
    work()
    took = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return calls / median(took)


def one(schedule: Schedule) -> None:
    for number in range(CALLS):
        next_runs(schedule, SINCE + number * 7_200_000, 1)


def ten(schedule: Schedule) -> None:
    for number in range(CALLS // 10):
        next_runs(schedule, SINCE + number * 7_200_000, 10)


def floor(expression: str) -> None:
    """Compute runs with croniter alone, each from its own last result: its fastest use."""
    walk = croniter(expression, datetime.fromtimestamp(SINCE / 1000, zones.zone(ZONE)))
    for _ in range(CALLS):
        walk.get_next(float)


def cold() -> float:
    """Return the milliseconds for a first run, as the mean over all zones."""
    cron.read.cache_clear()
    zones.of_span.cache_clear()
    zones.zone.cache_clear()
    names = sorted(zones.names())
    began = time.process_time()
    for number, name in enumerate(names):
        next_runs(Schedule(Cron(f"{number % 60} {number // 60} * * MON", name)), SINCE, 1)
    return (time.process_time() - began) * 1000 / len(names)


def _rates(expression: str, rounds: int) -> tuple[float, float, float]:
    schedule = Schedule(Cron(expression, ZONE))
    works = (partial(one, schedule), partial(ten, schedule), partial(floor, expression))
    alone, ten_at_once, theirs = (rate(CALLS, work, rounds) for work in works)
    return alone, ten_at_once, theirs
