"""Hand jobs to their lanes directly: whoever writes a job that is due before the first safe minute does this."""

from collections.abc import Sequence

from scheduler import slots
from scheduler.model import Job, Message
from scheduler.ports import Lanes


def hand_over(jobs: Sequence[Job], *, lanes: Lanes, now: int) -> int:
    """Send a message per job, delayed to just before its instant. Returns how many were refused: their slots are their net."""
    return len(lanes.send([message(job, now) for job in jobs], now)) if jobs else 0


def message(job: Job, now: int) -> Message:
    early = slots.not_before(job.due_at)
    return Message(job.key, job.fence, job.lane, job.due_at, sent_at=now, not_before=early if early > now else 0)
