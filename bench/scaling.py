"""A burst under AWS's scaling of a queue's executors, with and without prepared pollers: a model of AWS's limits, not of our services.

The model: five executors at first, 300 more a minute, up to the lane's limit; with pollers, ten executors each, and a thousand pollers
more a minute. A new executor has a cold start. An executor runs ten jobs at once.
"""

import heapq
from typing import NamedTuple

from bench.figures import Figure
from lab.world.limits import BATCH, COLD_MS, FIRST, LIMIT, MORE_A_MINUTE, POLLER_HOUR
from scheduler.insight import scaling
from scheduler.model.job import Lane

BURST = 50_000
JOB_MS = 200
AHEAD_MINUTES = 10  # pollers are raised this long before the burst; afterwards they fall by a tenth a minute


class Burst(NamedTuple):
    """The start delays of a burst, and the cost of the pollers prepared for it."""

    p50_ms: int
    p99_ms: int
    last_ms: int
    dollars: float


def by_itself(jobs: int = BURST) -> Burst:
    """Return the burst with AWS's own scaling by waiting messages."""
    return _run(jobs, [min(FIRST + MORE_A_MINUTE * minute, LIMIT) for minute in range(60)], 0.0)


def provisioned(jobs: int = BURST, most: int = scaling.MOST) -> Burst:
    """Return the burst with pollers raised ahead to the number that it requires."""
    needed = _pollers(0, -(-jobs * JOB_MS // 9_000), most)
    minutes, ready = float(AHEAD_MINUTES * needed), needed
    while ready:
        ready = _pollers(ready, 0, most)
        minutes += ready
    return _run(jobs, [needed * scaling.EXECUTORS_EACH] * 60, minutes / 60 * POLLER_HOUR)


def _pollers(current: int, required: int, most: int) -> int:
    lane = Lane.ONE_TIME
    return scaling.pollers({lane: current}, {lane: required}, {lane: most})[lane]


def _run(jobs: int, executors: list[int], dollars: float) -> Burst:
    """Run the batches, each on the executor that is free first. `executors`: their number in each minute."""
    free = [COLD_MS] * executors[0]
    heapq.heapify(free)
    have, delays = executors[0], list[int]()
    minute = 1
    for _ in range(0, jobs, BATCH):
        while minute < len(executors) and free[0] >= minute * 60_000:
            for _ in range(executors[minute] - have):
                heapq.heappush(free, minute * 60_000 + COLD_MS)
            have, minute = executors[minute], minute + 1
        at = heapq.heappop(free)
        delays += [at] * BATCH
        heapq.heappush(free, at + JOB_MS)
    delays.sort()
    return Burst(delays[len(delays) // 2], delays[len(delays) * 99 // 100], delays[-1], dollars)


def measure(short: bool = False) -> list[Figure]:
    """Return the figures. `short` changes nothing: the model takes a tenth of a second."""
    found = []
    for key, what, burst in (("by_itself", "AWS by itself", by_itself()), ("kept_ready", "pollers kept ready", provisioned())):
        named = f"50,000 jobs at once, {what}"
        found += [
            Figure(f"burst_{key}_p50", f"{named}: start delay p50", burst.p50_ms / 1_000, "s"),
            Figure(f"burst_{key}_p99", f"{named}: start delay p99", burst.p99_ms / 1_000, "s"),
            Figure(f"burst_{key}_cost", f"{named}: pollers", round(burst.dollars, 2), "$"),
        ]
    return found
