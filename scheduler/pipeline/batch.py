"""A batch of deliveries as all parts of its execution see it."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from scheduler.admission.gate import READ_SPREAD_MS, Admission
from scheduler.model.job import Lane
from scheduler.pipeline.lease import Lease
from scheduler.pipeline.process import Process
from scheduler.pipeline.running_jobs import RunningJobs
from scheduler.storage.ports import Ports

AT_ONCE = 200  # jobs claimed or settled between two renewals of the lease: 25 a call, on eight connections

T = TypeVar("T")


@dataclass(slots=True)
class Batch:
    """One batch of an executor: what its jobs need, and which of them run."""

    lane: Lane
    request_id: str
    ports: Ports
    process: Process
    lease: Lease
    admission: Admission
    work: RunningJobs

    @property
    def spread(self) -> int:
        """The time (ms) by which this executor reads and settles later than others, so that all do not at the same moment."""
        return zlib.crc32(self.request_id.encode()) % READ_SPREAD_MS


def parts(values: Sequence[T]) -> list[Sequence[T]]:
    """Return the values in parts, between which the lease is renewed."""
    return [values[first : first + AT_ONCE] for first in range(0, len(values), AT_ONCE)]
