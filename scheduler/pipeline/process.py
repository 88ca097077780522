"""The state that the process of an executor keeps from one batch to the next."""

from collections.abc import Callable
from dataclasses import dataclass

from scheduler.admission.breaker_gate import BreakerRegistry
from scheduler.admission.lane_state import LaneStateCache
from scheduler.admission.owner_gate import BarredOwners
from scheduler.admission.target_cache import TargetCache
from scheduler.model.job import Job, Lane
from scheduler.pipeline.direct_path import DirectPath
from scheduler.pipeline.latency import LatencyMeter
from scheduler.storage.ports import Ports

Ahead = Callable[[Job, int], int]  # how long before its instant (ms) the pool gets a job; the number: the jobs of its batch


def at_the_instant(job: Job, jobs: int) -> int:
    return 0


@dataclass(slots=True)
class Process:
    """The state that an executor's process keeps from one batch to the next."""

    meters: tuple[LatencyMeter, LatencyMeter]  # of messages that were delivered at once, and of delayed ones
    pauses: LaneStateCache
    named: TargetCache
    circuits: BreakerRegistry
    owners: BarredOwners
    direct: DirectPath  # of retries
    ahead: Ahead = at_the_instant

    @classmethod
    def of(cls, lane: Lane, reporter: str, ports: Ports, ahead: Ahead = at_the_instant) -> "Process":
        """Return the state of a new process of the lane, which reports its latencies as `reporter`."""
        pauses = LaneStateCache(ports)
        meters = LatencyMeter(lane, reporter), LatencyMeter(lane, reporter, delayed=True)
        return cls(meters, pauses, TargetCache(ports), BreakerRegistry(ports, pauses), BarredOwners(ports), DirectPath(ports), ahead)
