"""Hand jobs to their lanes directly: whoever writes a job that is due before the first safe minute does this."""

from collections.abc import Sequence

from scheduler.model import slots
from scheduler.model.job import Job, Message
from scheduler.storage.ports import Lanes


def hand_over(jobs: Sequence[Job], *, lanes: Lanes, now: int, after: int = 0) -> int:
    """Send a message per job, delayed to just before its instant, and to `after`. Returns how many were refused: slots are the net."""
    return len(lanes.send([message(job, now, after) for job in jobs], now)) if jobs else 0


def message(job: Job, now: int, after: int = 0) -> Message:
    early = max(slots.not_before(job.due_at), after)
    return Message(job.key, job.fence, job.lane, job.due_at, sent_at=now, not_before=early if early > now else 0)
