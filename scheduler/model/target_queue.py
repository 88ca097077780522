"""The records of a target queue and its users. `scheduler/admission/target_queue.py` has the rules."""

import zlib
from dataclasses import dataclass

from scheduler.model.limiter import is_key

QUEUE_PARTS = 16  # of the queues of keys: a part takes 1,000 writes a second, and is read whole


@dataclass(frozen=True, slots=True)
class Released:
    """The number of jobs that a release step released, and of slots of the target that had been taken until then."""

    at: int
    jobs: int
    taken: int


@dataclass(frozen=True, slots=True)
class TargetQueue:
    """The state of the release steps of a target. `epoch` fences its changes; one message of the work queue drives the steps."""

    target: str
    epoch: int = 0
    lease_until: int = 0
    next_at: int = 0
    message_id: str = ""
    clock: float = 0.0  # the tag of the job released last
    checked_at: int = 0  # when the jobs with concurrency slots were last checked
    released: tuple[Released, ...] = ()  # by the steps of the last seconds


def queue_part(name: str) -> int | None:
    """The part of the queues of keys that has this one; None: it is the queue of a target."""
    return zlib.crc32(name.encode()) % QUEUE_PARTS if is_key(name) else None


@dataclass(frozen=True, slots=True)
class QueueUser:
    """A user with jobs in a target queue."""

    target: str
    owner: str
    joined_at: int  # when a process last noted that a job joined
    finish: float = 0.0  # the tag of the user's next job
    waiting: bool = True  # whether jobs wait, as the last release step saw it
